/*
 * cbor.h
 *		CBOR, as far as messages of maps with text keys need it; through libcbor.
 */
#ifndef EMU_CBOR_H
#define EMU_CBOR_H

#include <cbor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* The one item that these bytes are; NULL if they are anything else. */
extern cbor_item_t *emu_cbor_read(const char *data, size_t length);
extern void emu_cbor_free(cbor_item_t *item);

/* NULL where there is none, or what is asked is no map. */
extern cbor_item_t *emu_cbor_member(const cbor_item_t *map, const char *name);
extern bool emu_cbor_is_null(const cbor_item_t *item);
extern bool emu_cbor_is_true(const cbor_item_t *item);

/* A copy; NULL for what is no text, or has a NUL. */
extern char *emu_cbor_text(const cbor_item_t *item);
extern bool emu_cbor_bytes(const cbor_item_t *item, const char **data, size_t *length);
extern bool emu_cbor_integer(const cbor_item_t *item, int64_t *number);

/* Making: maps and lists take over what is put into them, and keep its order. */
extern cbor_item_t *emu_cbor_map(size_t count);
extern void emu_cbor_put(cbor_item_t *map, const char *name, cbor_item_t *value);
extern cbor_item_t *emu_cbor_list(size_t count);
extern void emu_cbor_add(cbor_item_t *list, cbor_item_t *value);

/* A map with one member, whose name says what it is. */
extern cbor_item_t *emu_cbor_variant(const char *name, cbor_item_t *value);
extern cbor_item_t *emu_cbor_new_boolean(bool value);
extern cbor_item_t *emu_cbor_new_integer(int64_t number);
extern cbor_item_t *emu_cbor_new_text(const char *text); /* null for NULL */
extern cbor_item_t *emu_cbor_new_bytes(const char *data, size_t length);

/* Writes the item behind the text, and frees it. */
extern void emu_cbor_write(EmuText *text, cbor_item_t *item);

#endif
