/*
 * tar.h
 *		One file as a compressed archive.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_TAR_H
#define SBX_TAR_H

#include "net/op.h"

/*
 * A gzip'd ustar archive with one regular file of mode 0644, owned by root; a name of more
 * than 100 bytes goes into a PAX header.  The name has no slash at its start.  NULL = no
 * memory, or the file is larger than 1 GiB.
 */
extern char *sbx_tar_gzip(SbxArena *arena, const char *name, const char *bytes,
                          size_t length, size_t *packed_length);

#endif /* SBX_TAR_H */
