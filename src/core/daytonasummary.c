/*
 * daytonasummary.c
 *		How full a Daytona account is, for people to look at.
 *
 * An account is shared by workspaces.  All that it holds counts in the totals; only what
 * carries the caller's label is ever shown by itself.
 */
#include "core/daytonasummary.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/jsonapi.h"
#include "core/daytonalimits.h"
#include "core/jsonlook.h"
#include "core/isotime.h"
#include "core/jsonwalk.h"
#include "core/jsonwrite.h"
#include "core/level.h"
#include "core/names.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/json.h"

/* Memory and disk are written in GiB, and shown in the MiB of the limits. */
#define MIB_PER_GIB 1024

/* Longest state that is shown as it is. */
#define MAX_STATE_LENGTH 32

#define DEFAULT_LABEL "workspace"

/* The dimensions that sandboxes have a size in come first. */
#define SIZES SBX_DIMENSION_SANDBOXES

/* Whose sandboxes are listed. */
typedef struct Workspace
{
	char *key; /* NULL = nobody's */
	char *value;
} Workspace;

/* A sandbox that is listed; texts point into the inventory. */
typedef struct Listed
{
	JsonbValue id; /* this and those below: text, or null */
	JsonbValue name;
	JsonbValue last_activity;
	const char *state;
	double sizes[SIZES];
	int64 idle_minutes; /* -1 = unknown */
	int position;       /* in the inventory */
} Listed;

typedef struct Summary
{
	TimestampTz now;
	Workspace workspace;
	int64 sandboxes;
	int64 coerced;       /* sandboxes that did not have three sizes */
	Numeric used[SIZES]; /* decimals add up to what people expect; doubles do not */
	SbxNames *states;
	int64 *in_state; /* by number of the state */
	int state_room;
	Listed *listed;
	int listed_count;
	int listed_room;
} Summary;

/* --- reading a sandbox ---------------------------------------------------------- */

/* jbvNull when absent, or when there is no sandbox object (NULL). */
static JsonbValue
member(JsonbContainer *sandbox, const char *key)
{
	JsonbValue value;

	sbx_look_member(sandbox, key, &value);
	return value;
}

static JsonbValue
text_member(JsonbContainer *sandbox, const char *key)
{
	JsonbValue value = member(sandbox, key);

	if (value.type != jbvString)
		value.type = jbvNull;
	return value;
}

/* NaN = it is no number. */
static double
number_of(const JsonbValue *value)
{
	double number = NAN;
	char *text;

	if (value->type == jbvNumeric)
		return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
		                                          NumericGetDatum(value->val.numeric)));
	if (value->type == jbvString &&
	    IsValidJsonNumber(value->val.string.val, value->val.string.len))
	{
		text = sbx_look_text(value);
		number = strtod(text, NULL);
		pfree(text);
	}
	return number;
}

/* What can be no size counts nothing.  The sign says so even of what is nearly zero. */
static double
read_size(JsonbContainer *sandbox, const char *key, bool *coerced)
{
	JsonbValue value = member(sandbox, key);
	double number = number_of(&value);
	bool is_size = isfinite(number) && !signbit(number);

	if (value.type != jbvNumeric || !is_size)
		*coerced = true;
	return is_size ? number : 0;
}

static const char *
read_state(JsonbContainer *sandbox)
{
	JsonbValue value = text_member(sandbox, "state");

	if (value.type == jbvNull || value.val.string.len == 0 ||
	    value.val.string.len > MAX_STATE_LENGTH)
		return "other";
	for (int i = 0; i < value.val.string.len; i++)
	{
		char c = value.val.string.val[i];

		if (c != '_' && (c < 'a' || c > 'z'))
			return "other";
	}
	return sbx_look_text(&value);
}

/* Whole minutes up to now; what is ahead of our clock was just now.  -1 = unknown. */
static int64
idle_minutes(const JsonbValue *last_activity, TimestampTz now)
{
	TimestampTz since;

	if (last_activity->type != jbvString ||
	    !sbx_isotime_parse(sbx_look_text(last_activity), &since))
		return -1;
	if (since >= now)
		return 0;

	/* The server's last year is further from year 1 than fits with a sign. */
	return (int64) (((uint64) now - (uint64) since) / USECS_PER_MINUTE);
}

static bool
is_in_workspace(JsonbContainer *sandbox, const Workspace *workspace)
{
	JsonbValue labels = member(sandbox, "labels");
	JsonbValue label;

	if (workspace->key == NULL)
		return false;
	label = member(sbx_look_object(&labels), workspace->key);
	return sbx_look_is_text(&label, workspace->value);
}

/* --- adding it up ------------------------------------------------------------------ */

static void
count_state(Summary *summary, const char *state)
{
	int number = sbx_names_intern(summary->states, state);

	if (number >= summary->state_room)
	{
		int room = Max(summary->state_room * 2, 16);

		summary->in_state =
		    summary->in_state == NULL
		        ? palloc(sizeof(int64) * room)
		        : repalloc_huge(summary->in_state, sizeof(int64) * room);
		memset(summary->in_state + summary->state_room, 0,
		       sizeof(int64) * (room - summary->state_room));
		summary->state_room = room;
	}
	summary->in_state[number]++;
}

static void
count_size(Numeric *sum, double size)
{
	Numeric before = *sum;
	Numeric addend;

	if (size == 0)
		return;
	addend = sbx_double_numeric(size);
	*sum = DatumGetNumeric(DirectFunctionCall2(numeric_add, NumericGetDatum(before),
	                                           NumericGetDatum(addend)));
	pfree(before);
	pfree(addend);
}

static void
list_sandbox(Summary *summary, JsonbContainer *sandbox, const char *state,
             const double *sizes)
{
	Listed *listed;

	if (summary->listed_count == summary->listed_room)
	{
		summary->listed_room = Max(summary->listed_room * 2, 16);
		summary->listed =
		    summary->listed == NULL
		        ? palloc(sizeof(Listed) * summary->listed_room)
		        : repalloc_huge(summary->listed, sizeof(Listed) * summary->listed_room);
	}
	listed = &summary->listed[summary->listed_count++];
	listed->id = text_member(sandbox, "id");
	listed->name = text_member(sandbox, "name");
	listed->last_activity = text_member(sandbox, "lastActivityAt");
	listed->state = state;
	memcpy(listed->sizes, sizes, sizeof(listed->sizes));
	listed->idle_minutes = idle_minutes(&listed->last_activity, summary->now);
	listed->position = summary->listed_count;
}

/* NULL: an item that is no object, which is a sandbox all the same. */
static void
add_sandbox(Summary *summary, JsonbContainer *sandbox)
{
	const char *state = read_state(sandbox);
	double sizes[SIZES];
	bool coerced = false;

	for (int i = 0; i < SIZES; i++)
	{
		sizes[i] = read_size(sandbox, sbx_dimension_names[i], &coerced);
		count_size(&summary->used[i], sizes[i]);
	}
	summary->sandboxes++;
	summary->coerced += coerced ? 1 : 0;
	count_state(summary, state);
	if (is_in_workspace(sandbox, &summary->workspace))
		list_sandbox(summary, sandbox, state, sizes);
}

static JsonbContainer *
items_of(Jsonb *inventory)
{
	const SbxPath path = {SBX_DOCUMENT_ARGUMENT, NULL, "inventory"};
	JsonbValue items;

	if (JB_ROOT_IS_ARRAY(inventory) && !JB_ROOT_IS_SCALAR(inventory))
		return &inventory->root;
	if (!JB_ROOT_IS_OBJECT(inventory))
		sbx_refuse(&path, SBX_REASON_WRONG_TYPE, NULL);
	items = member(&inventory->root, "items");
	if (items.type == jbvNull)
		sbx_refuse(SBX_MEMBER(&path, "items"), SBX_REASON_MISSING, NULL);
	if (items.type != jbvBinary || !JsonContainerIsArray(items.val.binary.data))
		sbx_refuse(SBX_MEMBER(&path, "items"), SBX_REASON_WRONG_TYPE, NULL);
	return items.val.binary.data;
}

static void
add_sandboxes(Summary *summary, JsonbContainer *items)
{
	JsonbValue item;
	SbxWalk walk;

	sbx_walk_start(&walk, items);
	while (sbx_walk_element(&walk, &item))
	{
		bool is_object =
		    item.type == jbvBinary && JsonContainerIsObject(item.val.binary.data);

		CHECK_FOR_INTERRUPTS();
		add_sandbox(summary, is_object ? item.val.binary.data : NULL);
	}
}

/* --- showing it ---------------------------------------------------------------------- */

/* null when it is no finite number. */
static void
push_number(JsonbParseState **state, const char *key, double number)
{
	if (isfinite(number))
		sbx_push_double(state, key, number);
	else
		sbx_push_value(state, key, &(JsonbValue){.type = jbvNull});
}

/* Infinite when no double holds it. */
static double
used_of(const Summary *summary, int dimension)
{
	Datum sum;

	if (dimension == SBX_DIMENSION_SANDBOXES)
		return summary->sandboxes;
	sum = NumericGetDatum(summary->used[dimension]);
	if (dimension != SBX_DIMENSION_CPU)
		sum = DirectFunctionCall2(
		    numeric_mul, sum,
		    DirectFunctionCall1(int4_numeric, Int32GetDatum(MIB_PER_GIB)));
	return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, sum));
}

/* The worst level of all. */
static const char *
push_totals(JsonbParseState **state, const Summary *summary,
            const SbxDaytonaLimits *limits)
{
	const char *worst = sbx_level_of(0, NAN);

	sbx_push_begin(state, "totals");
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		double used = used_of(summary, i);
		const char *level = sbx_level_of(used, limits->limit[i]);

		sbx_push_begin(state, sbx_dimension_names[i]);
		push_number(state, "used", used);
		push_number(state, "limit", limits->limit[i]);
		push_number(state, "ratio", sbx_level_ratio(used, limits->limit[i]));
		sbx_push_text(state, "level", level);
		sbx_push_text(state, "unit", sbx_dimension_units[i]);
		sbx_push_text(state, "provenance", sbx_provenance_names[limits->provenance[i]]);
		sbx_push_end(state);
		worst = sbx_level_worse(worst, level);
	}
	sbx_push_end(state);
	return worst;
}

static void
push_states(JsonbParseState **state, const Summary *summary)
{
	sbx_push_begin(state, "states");
	for (int i = 0; i < sbx_names_count(summary->states); i++)
		sbx_push_int64(state, sbx_names_all(summary->states)[i], summary->in_state[i]);
	sbx_push_end(state);
}

/* By bytes; no id comes first. */
static int
compare_ids(const JsonbValue *one, const JsonbValue *other)
{
	int one_length = one->type == jbvNull ? 0 : one->val.string.len;
	int other_length = other->type == jbvNull ? 0 : other->val.string.len;
	int order = 0;

	if (one_length > 0 && other_length > 0)
		order = memcmp(one->val.string.val, other->val.string.val,
		               Min(one_length, other_length));
	return order != 0 ? order : one_length - other_length;
}

/* Longest idle first; unknown is -1, and thereby last. */
static int
compare_listed(const void *a, const void *b)
{
	const Listed *one = a;
	const Listed *other = b;
	int order;

	if (one->idle_minutes != other->idle_minutes)
		return one->idle_minutes > other->idle_minutes ? -1 : 1;
	order = compare_ids(&one->id, &other->id);
	return order != 0 ? order : one->position - other->position;
}

static void
push_listed(JsonbParseState **state, const Listed *listed)
{
	sbx_push_begin(state, NULL);
	sbx_push_value(state, "id", &listed->id);
	sbx_push_value(state, "name", &listed->name);
	sbx_push_text(state, "state", listed->state);
	for (int i = 0; i < SIZES; i++)
		push_number(state, sbx_dimension_names[i],
		            i == SBX_DIMENSION_CPU ? listed->sizes[i]
		                                   : listed->sizes[i] * MIB_PER_GIB);
	sbx_push_value(state, "lastActivityAt", &listed->last_activity);
	if (listed->idle_minutes < 0)
		sbx_push_value(state, "idleMinutes", &(JsonbValue){.type = jbvNull});
	else
		sbx_push_int64(state, "idleMinutes", listed->idle_minutes);
	sbx_push_end(state);
}

static void
push_workspace(JsonbParseState **state, Summary *summary)
{
	if (summary->workspace.key == NULL)
	{
		sbx_push_value(state, "workspace", &(JsonbValue){.type = jbvNull});
		return;
	}
	qsort(summary->listed, summary->listed_count, sizeof(Listed), compare_listed);
	sbx_push_begin(state, "workspace");
	sbx_push_begin(state, "label");
	sbx_push_text(state, summary->workspace.key, summary->workspace.value);
	sbx_push_end(state);
	sbx_push_begin_array(state, "sandboxes");
	for (int i = 0; i < summary->listed_count; i++)
		push_listed(state, &summary->listed[i]);
	sbx_push_end_array(state);
	sbx_push_end(state);
}

static Jsonb *
document_of(Summary *summary, const SbxDaytonaLimits *limits)
{
	JsonbParseState *state = NULL;
	char measured_at[MAXDATELEN + 1];
	const int utc = 0;

	(void) JsonEncodeDateTime(measured_at, TimestampTzGetDatum(summary->now),
	                          TIMESTAMPTZOID, &utc);
	sbx_push_begin(&state, NULL);
	/* Always: room under the limits is no promise of the provider's. */
	sbx_push_text(&state, "provisioningCheck", "not_covered");
	sbx_push_text(&state, "measuredAt", measured_at);
	sbx_push_begin(&state, "thresholds");
	sbx_push_double(&state, "warning", SBX_LEVEL_WARNING);
	sbx_push_double(&state, "critical", SBX_LEVEL_CRITICAL);
	sbx_push_end(&state);
	sbx_push_text(&state, "level", push_totals(&state, summary, limits));
	push_states(&state, summary);
	sbx_push_int64(&state, "coerced", summary->coerced);
	push_workspace(&state, summary);
	return sbx_push_finish(&state);
}

/* --- all of it ----------------------------------------------------------------------- */

static Workspace
read_workspace(const char *text)
{
	Workspace workspace = {NULL, NULL};
	const char *equals;

	if (text == NULL || *text == '\0')
		return workspace;
	equals = strchr(text, '=');
	workspace.key =
	    equals == NULL ? pstrdup(DEFAULT_LABEL) : pnstrdup(text, equals - text);
	workspace.value = pstrdup(equals == NULL ? text : equals + 1);
	return workspace;
}

Jsonb *
sbx_daytona_summarize(Jsonb *inventory, Jsonb *limits, const char *workspace,
                      TimestampTz now)
{
	const SbxPath now_path = {SBX_DOCUMENT_ARGUMENT, NULL, "now"};
	JsonbContainer *items = items_of(inventory);
	SbxDaytonaLimits known_limits;
	Summary summary = {0};

	if (TIMESTAMP_NOT_FINITE(now))
		sbx_refuse(&now_path, SBX_REASON_NOT_FINITE, NULL);
	summary.now = now;
	summary.workspace = read_workspace(workspace);
	summary.states = sbx_names_create(CurrentMemoryContext);
	for (int i = 0; i < SIZES; i++)
		summary.used[i] = sbx_double_numeric(0);
	add_sandboxes(&summary, items);
	sbx_daytona_limits_read(limits, &known_limits);
	return document_of(&summary, &known_limits);
}
