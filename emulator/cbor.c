/*
 * cbor.c
 *		CBOR, as far as messages of maps with text keys need it; through libcbor.
 */
#include "cbor.h"

#include <stdlib.h>
#include <string.h>

/*
 * Reading
 */

cbor_item_t *
emu_cbor_read(const char *data, size_t length)
{
	struct cbor_load_result result;
	cbor_item_t *item = cbor_load((cbor_data) data, length, &result);

	if (item == NULL || (result.error.code == CBOR_ERR_NONE && result.read == length))
		return item;
	emu_cbor_free(item);
	return NULL;
}

void
emu_cbor_free(cbor_item_t *item)
{
	if (item != NULL)
		cbor_decref(&item);
}

static bool
is_text(const cbor_item_t *item)
{
	return item != NULL && cbor_isa_string(item) && cbor_string_is_definite(item);
}

static bool
text_is(const cbor_item_t *item, const char *text)
{
	size_t length = strlen(text);

	return is_text(item) && cbor_string_length(item) == length &&
	       memcmp(cbor_string_handle(item), text, length) == 0;
}

cbor_item_t *
emu_cbor_member(const cbor_item_t *map, const char *name)
{
	const struct cbor_pair *pairs;

	if (map == NULL || !cbor_isa_map(map))
		return NULL;
	pairs = cbor_map_handle(map);
	for (size_t i = 0; i < cbor_map_size(map); i++)
		if (text_is(pairs[i].key, name))
			return pairs[i].value;
	return NULL;
}

bool
emu_cbor_is_null(const cbor_item_t *item)
{
	return item != NULL && cbor_isa_float_ctrl(item) && cbor_is_null(item);
}

bool
emu_cbor_is_true(const cbor_item_t *item)
{
	return item != NULL && cbor_isa_float_ctrl(item) && cbor_is_bool(item) &&
	       cbor_get_bool(item);
}

char *
emu_cbor_text(const cbor_item_t *item)
{
	const char *data;
	size_t length;

	if (!is_text(item))
		return NULL;
	data = (const char *) cbor_string_handle(item);
	length = cbor_string_length(item);
	if (length > 0 && memchr(data, '\0', length) != NULL)
		return NULL;
	return emu_strndup(length > 0 ? data : "", length);
}

bool
emu_cbor_bytes(const cbor_item_t *item, const char **data, size_t *length)
{
	if (item == NULL || !cbor_isa_bytestring(item) ||
	    !cbor_bytestring_is_definite(item))
		return false;
	*data = (const char *) cbor_bytestring_handle(item);
	*length = cbor_bytestring_length(item);
	return true;
}

bool
emu_cbor_integer(const cbor_item_t *item, int64_t *number)
{
	uint64_t value;

	if (item == NULL || !cbor_is_int(item))
		return false;
	value = cbor_get_int(item);
	if (value > INT64_MAX)
		return false;
	*number = cbor_isa_negint(item) ? -1 - (int64_t) value : (int64_t) value;
	return true;
}

/*
 * Making.  Like everything here it ends when there is no memory.
 */

static cbor_item_t *
made(cbor_item_t *item)
{
	if (item == NULL)
		abort();
	return item;
}

cbor_item_t *
emu_cbor_map(size_t count)
{
	return made(cbor_new_definite_map(count));
}

void
emu_cbor_put(cbor_item_t *map, const char *name, cbor_item_t *value)
{
	struct cbor_pair pair = {
	    .key = cbor_move(made(cbor_build_string(name))),
	    .value = cbor_move(value),
	};

	if (!cbor_map_add(map, pair))
		abort();
}

cbor_item_t *
emu_cbor_list(size_t count)
{
	return made(cbor_new_definite_array(count));
}

void
emu_cbor_add(cbor_item_t *list, cbor_item_t *value)
{
	if (!cbor_array_push(list, cbor_move(value)))
		abort();
}

cbor_item_t *
emu_cbor_variant(const char *name, cbor_item_t *value)
{
	cbor_item_t *map = emu_cbor_map(1);

	emu_cbor_put(map, name, value);
	return map;
}

cbor_item_t *
emu_cbor_new_boolean(bool value)
{
	return made(cbor_build_bool(value));
}

cbor_item_t *
emu_cbor_new_integer(int64_t number)
{
	uint64_t value = number < 0 ? (uint64_t) (-1 - number) : (uint64_t) number;
	cbor_item_t *item = value <= UINT8_MAX    ? cbor_build_uint8((uint8_t) value)
	                    : value <= UINT16_MAX ? cbor_build_uint16((uint16_t) value)
	                    : value <= UINT32_MAX ? cbor_build_uint32((uint32_t) value)
	                                          : cbor_build_uint64(value);

	if (number < 0)
		cbor_mark_negint(made(item));
	return made(item);
}

cbor_item_t *
emu_cbor_new_text(const char *text)
{
	return made(text != NULL ? cbor_build_string(text) : cbor_new_null());
}

cbor_item_t *
emu_cbor_new_bytes(const char *data, size_t length)
{
	return made(cbor_build_bytestring((cbor_data) data, length));
}

void
emu_cbor_write(EmuText *text, cbor_item_t *item)
{
	unsigned char *buffer;
	size_t size;
	size_t length = cbor_serialize_alloc(item, &buffer, &size);

	if (length == 0)
		abort();
	emu_text_append(text, (const char *) buffer, length);
	free(buffer);
	emu_cbor_free(item);
}
