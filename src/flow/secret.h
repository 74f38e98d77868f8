/*
 * secret.h
 *		Credentials from SQL, kept out of everything that is written down.
 */
#ifndef SBX_SECRET_H
#define SBX_SECRET_H

/* Called by _PG_init: drops the lines of a credential COPY from the server log. */
extern void sbx_secret_install_hook(void);

#endif /* SBX_SECRET_H */
