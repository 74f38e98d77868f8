/*
 * jsonread.c
 *		Reading jsonb documents strictly: every value checked, every fault named
 *		by its path.
 */
#include "core/jsonread.h"

#include <math.h>

#include "core/jsonwalk.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

/* Whole numbers above this are not exact in a JSON number (2^53). */
#define SBX_MAX_EXACT_INTEGER 9007199254740992.0

/* "request.resources.cpu" */
static char *
path_text(const SbxPath *path)
{
	if (path->parent == NULL)
		return pstrdup(path->key);
	return psprintf("%s.%s", path_text(path->parent), path->key);
}

void
sbx_refuse(const SbxPath *path, SbxReason reason, const char *hint)
{
	sbx_error_document(path->document, path_text(path), reason, hint);
}

void
sbx_jsonb_document(const SbxPath *path, Jsonb *jsonb, JsonbValue *value)
{
	if (VARSIZE_ANY_EXHDR(jsonb) > SBX_MAX_DOCUMENT)
		sbx_refuse(path, SBX_REASON_TOO_LARGE, NULL);
	if (sbx_walk_is_deeper(&jsonb->root, SBX_MAX_NESTING))
		sbx_refuse(path, SBX_REASON_TOO_DEEP, NULL);
	value->type = jbvBinary;
	value->val.binary.data = &jsonb->root;
	value->val.binary.len = VARSIZE_ANY_EXHDR(jsonb);
	if (!JB_ROOT_IS_OBJECT(jsonb))
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
}

static bool
is_container(const JsonbValue *value, bool object)
{
	if (value->type != jbvBinary)
		return false;
	return object ? JsonContainerIsObject(value->val.binary.data)
	              : (JsonContainerIsArray(value->val.binary.data) &&
	                 !JsonContainerIsScalar(value->val.binary.data));
}

static int
find_key(const char *const *keys, int count, const char *key, int length)
{
	for (int i = 0; i < count; i++)
	{
		/* Most keys differ in their first byte: no call for those. */
		if (length > 0 && keys[i][0] == key[0] && strncmp(keys[i], key, length) == 0 &&
		    keys[i][length] == '\0')
			return i;
	}
	return -1;
}

void
sbx_jsonb_members(const SbxPath *path, const JsonbValue *object,
                  const char *const *keys, int count, JsonbValue *members,
                  bool *present)
{
	JsonbValue key;
	JsonbValue item;
	SbxWalk walk;

	Assert(count <= SBX_MAX_KEYS);
	for (int i = 0; i < count; i++)
	{
		members[i].type = jbvNull;
		if (present != NULL)
			present[i] = false;
	}
	if (object->type == jbvNull)
		return;
	if (!is_container(object, true))
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);

	sbx_walk_start(&walk, object->val.binary.data);
	while (sbx_walk_member(&walk, &key, &item))
	{
		int i = find_key(keys, count, key.val.string.val, key.val.string.len);

		if (i < 0)
		{
			char *name = pnstrdup(key.val.string.val, key.val.string.len);

			sbx_refuse(SBX_MEMBER(path, name), SBX_REASON_UNKNOWN_KEY,
			           sbx_error_nearest_hint(name, keys, count));
		}
		members[i] = item;
		if (present != NULL)
			present[i] = true;
	}
}

static void
check_bytes(const SbxPath *path, const char *string, int length)
{
	if (length == 0)
		sbx_refuse(path, SBX_REASON_EMPTY, NULL);
	for (int i = 0; i < length; i++)
	{
		unsigned char byte = string[i];

		if (byte < 0x20 || byte == 0x7f)
			sbx_refuse(path, SBX_REASON_CONTROL_CHARACTER, NULL);
	}
}

void
sbx_check_text(const SbxPath *path, const char *string)
{
	check_bytes(path, string, strlen(string));
}

char *
sbx_jsonb_text(const SbxPath *path, const JsonbValue *value)
{
	if (value->type == jbvNull)
		return NULL;
	if (value->type != jbvString)
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
	check_bytes(path, value->val.string.val, value->val.string.len);
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* Digits after the point, as written: almost always none, which settles the rest. */
static bool
has_fraction_digits(const JsonbValue *value)
{
	return DatumGetInt32(DirectFunctionCall1(numeric_scale,
	                                         NumericGetDatum(value->val.numeric))) > 0;
}

/*
 * Small whole numbers, which most are: the general way goes through text.  The digits
 * are looked at, too, because the conversion rounds.
 */
static bool
small_number(const JsonbValue *value, int32 *number)
{
	bool failed = false;

	if (value->type != jbvNumeric)
		return false;
	*number = numeric_int4_opt_error(value->val.numeric, &failed);
	return !failed && !has_fraction_digits(value);
}

/* The plain cast would raise 22003 for 1e400; ours names the path. */
static double
finite_number(const SbxPath *path, const JsonbValue *value)
{
	double number;

	if (value->type != jbvNumeric)
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
	number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
	                                            NumericGetDatum(value->val.numeric)));
	if (!isfinite(number))
		sbx_refuse(path, SBX_REASON_NOT_FINITE, NULL);
	return number;
}

/*
 * Whole, and exact as a JSON number: asked of what was written, not of the double,
 * which rounds 0.99999999999999999999 to 1.
 */
static int64
whole_number(const SbxPath *path, const JsonbValue *value)
{
	double number = finite_number(path, value);
	Datum numeric = NumericGetDatum(value->val.numeric);
	int64 whole;

	if (has_fraction_digits(value) &&
	    !DatumGetBool(DirectFunctionCall2(
	        numeric_eq, numeric,
	        DirectFunctionCall2(numeric_trunc, numeric, Int32GetDatum(0)))))
		sbx_refuse(path, SBX_REASON_NOT_INTEGER, NULL);
	if (fabs(number) > SBX_MAX_EXACT_INTEGER)
		sbx_refuse(path, SBX_REASON_OUT_OF_RANGE, NULL);
	whole = DatumGetInt64(DirectFunctionCall1(numeric_int8, numeric));
	if (whole > (int64) SBX_MAX_EXACT_INTEGER || whole < -(int64) SBX_MAX_EXACT_INTEGER)
		sbx_refuse(path, SBX_REASON_OUT_OF_RANGE, NULL);
	return whole;
}

/* Also what is so small that its double is zero. */
static void
refuse_negative(const SbxPath *path, const JsonbValue *value, double number)
{
	if (number < 0 || (number == 0 && has_fraction_digits(value) &&
	                   DatumGetBool(DirectFunctionCall2(
	                       numeric_lt, NumericGetDatum(value->val.numeric),
	                       DirectFunctionCall1(int4_numeric, Int32GetDatum(0))))))
		sbx_refuse(path, SBX_REASON_NEGATIVE, NULL);
}

double
sbx_jsonb_double(const SbxPath *path, const JsonbValue *value, double absent)
{
	double number;
	int32 small;

	if (value->type == jbvNull)
		return absent;
	if (small_number(value, &small) && small >= 0)
		return small;
	number = finite_number(path, value);
	refuse_negative(path, value, number);
	return number;
}

int64
sbx_jsonb_int64(const SbxPath *path, const JsonbValue *value, int64 absent)
{
	int32 small;

	if (value->type == jbvNull)
		return absent;
	if (small_number(value, &small) && small >= 0)
		return small;
	refuse_negative(path, value, finite_number(path, value));
	return whole_number(path, value);
}

int64
sbx_jsonb_range(const SbxPath *path, const JsonbValue *value, int64 minimum,
                int64 maximum)
{
	int32 small;
	int64 number = small_number(value, &small) ? small : whole_number(path, value);

	if (number < minimum || number > maximum)
		sbx_refuse(path, SBX_REASON_OUT_OF_RANGE, NULL);
	return number;
}

bool
sbx_jsonb_bool(const SbxPath *path, const JsonbValue *value, bool absent)
{
	if (value->type == jbvNull)
		return absent;
	if (value->type != jbvBool)
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
	return value->val.boolean;
}

int
sbx_jsonb_word(const SbxPath *path, const JsonbValue *value, const char *const *words,
               int count, int absent)
{
	char *string = sbx_jsonb_text(path, value);
	int found;

	if (string == NULL)
		return absent;
	found = find_key(words, count, string, strlen(string));
	if (found < 0)
		sbx_refuse(path, SBX_REASON_UNKNOWN_NAME,
		           sbx_error_nearest_hint(string, words, count));
	return found;
}

char **
sbx_jsonb_texts(const SbxPath *path, const JsonbValue *value, int *count)
{
	JsonbValue item;
	SbxWalk walk;
	char **texts;
	int n = 0;

	*count = 0;
	if (value->type == jbvNull)
		return NULL;
	if (!is_container(value, false))
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
	if (JsonContainerSize(value->val.binary.data) > SBX_MAX_MEMBERS)
		sbx_refuse(path, SBX_REASON_TOO_MANY, NULL);

	texts = palloc(sizeof(char *) * (JsonContainerSize(value->val.binary.data) + 1));
	sbx_walk_start(&walk, value->val.binary.data);
	while (sbx_walk_element(&walk, &item))
	{
		/* A null in a list is no absence: there is a member, of the wrong type. */
		if (item.type != jbvString)
			sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
		texts[n] = sbx_jsonb_text(path, &item);
		for (int i = 0; i < n; i++)
		{
			if (strcmp(texts[i], texts[n]) == 0)
				sbx_refuse(path, SBX_REASON_DUPLICATE, NULL);
		}
		n++;
	}
	*count = n;
	return texts;
}

SbxText *
sbx_jsonb_pairs(const SbxPath *path, const JsonbValue *value, bool free_values,
                int *count)
{
	JsonbValue key;
	JsonbValue item;
	SbxWalk walk;
	SbxText *pairs;
	int n = 0;

	*count = 0;
	if (value->type == jbvNull)
		return NULL;
	if (!is_container(value, true))
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
	if (JsonContainerSize(value->val.binary.data) > SBX_MAX_MEMBERS)
		sbx_refuse(path, SBX_REASON_TOO_MANY, NULL);

	pairs = palloc(sizeof(SbxText) * (JsonContainerSize(value->val.binary.data) + 1));
	sbx_walk_start(&walk, value->val.binary.data);
	while (sbx_walk_member(&walk, &key, &item))
	{
		const SbxPath *member;

		check_bytes(path, key.val.string.val, key.val.string.len);
		pairs[n].key = pnstrdup(key.val.string.val, key.val.string.len);
		member = SBX_MEMBER(path, pairs[n].key);
		if (item.type != jbvString)
			sbx_refuse(member, SBX_REASON_WRONG_TYPE, NULL);
		pairs[n].value = free_values
		                     ? pnstrdup(item.val.string.val, item.val.string.len)
		                     : sbx_jsonb_text(member, &item);
		n++;
	}
	*count = n;
	return pairs;
}

static void
check_any_scalar(const SbxPath *path, const JsonbValue *value)
{
	if (value->type == jbvString)
		check_bytes(path, value->val.string.val, value->val.string.len);
	else if (value->type == jbvNumeric)
		(void) finite_number(path, value);
}

/* What stands inside is nobody's schema, but strings and numbers have their rules. */
static void
check_any_members(const SbxPath *path, JsonbContainer *container)
{
	SbxWalk walk;
	bool is_object = JsonContainerIsObject(container);
	JsonbValue key;
	JsonbValue item;

	check_stack_depth();
	sbx_walk_start(&walk, container);
	while (is_object ? sbx_walk_member(&walk, &key, &item)
	                 : sbx_walk_element(&walk, &item))
	{
		if (is_object)
			check_any_scalar(path, &key);
		if (item.type == jbvBinary)
			check_any_members(path, item.val.binary.data);
		else
			check_any_scalar(path, &item);
	}
}

void
sbx_jsonb_any_object(const SbxPath *path, const JsonbValue *value)
{
	if (value->type == jbvNull)
		return;
	if (!is_container(value, true))
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
	if (JsonContainerSize(value->val.binary.data) > SBX_MAX_MEMBERS)
		sbx_refuse(path, SBX_REASON_TOO_MANY, NULL);
	check_any_members(path, value->val.binary.data);
}

bool
sbx_is_environment_name(const char *name)
{
	if (*name == '\0' || (*name >= '0' && *name <= '9'))
		return false;
	for (; *name != '\0'; name++)
	{
		if (!((*name >= 'A' && *name <= 'Z') || (*name >= 'a' && *name <= 'z') ||
		      (*name >= '0' && *name <= '9') || *name == '_'))
			return false;
	}
	return true;
}
