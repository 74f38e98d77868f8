/*
 * find.c
 *		sbx_find: the sandboxes of an account, ours and others.
 */
#include "compat.h"

#include "core/isotime.h"
#include "flow/call.h"
#include "flow/failure.h"
#include "flow/sandbox.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "store/mapping.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"

#define FIND_COLUMNS 6

/* --- arguments ---------------------------------------------------------------------- */

/* By the rules of launch.labels; those of the router may be looked for, too. */
static SbxPair *
find_labels(FunctionCallInfo fcinfo, int n, int *count)
{
	const SbxPath *path = SBX_CALL_PATH("labels");
	JsonbValue root;
	SbxText *pairs;

	if (PG_ARGISNULL(n))
		sbx_refuse(path, SBX_REASON_MISSING, NULL);
	sbx_jsonb_document(path, PG_GETARG_JSONB_P(n), &root);
	pairs = sbx_jsonb_pairs(path, &root, false, count);
	return sbx_session_wire_pairs(pairs, *count, 0);
}

/* --- results ------------------------------------------------------------------------ */

static Datum
labels_value(const SbxSandboxFacts *facts)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for (int i = 0; i < facts->label_count; i++)
	{
		if (i > 0)
			appendStringInfoChar(&json, ',');
		escape_json(&json,
		            text_to_cstring(sbx_session_provider_text(facts->labels[i].key)));
		appendStringInfoChar(&json, ':');
		escape_json(&json,
		            text_to_cstring(sbx_session_provider_text(facts->labels[i].value)));
	}
	appendStringInfoChar(&json, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

static Datum
time_value(const char *iso8601, bool *is_null)
{
	TimestampTz time;

	*is_null = iso8601 == NULL || !sbx_isotime_parse(iso8601, &time);
	return *is_null ? (Datum) 0 : TimestampTzGetDatum(time);
}

static void
put_row(ReturnSetInfo *result, const char *own_id, const SbxSandboxFacts *facts)
{
	Datum values[FIND_COLUMNS] = {0};
	bool nulls[FIND_COLUMNS] = {false};

	nulls[0] = own_id == NULL;
	if (own_id != NULL)
		values[0] = CStringGetTextDatum(own_id);
	values[1] = PointerGetDatum(sbx_session_provider_text(facts->sandbox_id));
	nulls[2] = facts->name == NULL;
	if (facts->name != NULL)
		values[2] = PointerGetDatum(sbx_session_provider_text(facts->name));
	values[3] = labels_value(facts);
	values[4] = CStringGetTextDatum(sbx_sandbox_state_name(facts->state));
	values[5] = time_value(facts->created_at, &nulls[5]);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* One look-up for all of them. */
static const char **
own_ids(const char *provider_id, const SbxFindResult *found)
{
	const char **sandbox_ids = palloc(sizeof(char *) * (found->count + 1));

	for (int i = 0; i < found->count; i++)
		sandbox_ids[i] =
		    text_to_cstring(sbx_session_provider_text(found->sandboxes[i].sandbox_id));
	return sbx_mapping_find(provider_id, sandbox_ids, found->count);
}

static void
put_rows(ReturnSetInfo *result, const char *provider_id, const SbxFindResult *found)
{
	const char **ids = own_ids(provider_id, found);

	for (int i = 0; i < found->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		put_row(result, ids[i], &found->sandboxes[i]);
	}
}

/*
 * sbx_find(provider text, labels jsonb) returns setof record (sbx_id text,
 *			provider_sandbox_id text, name text, labels jsonb, state text,
 *			created_at timestamptz)
 *		Every sandbox of the session's account at that provider that has all the
 *		labels ('{}' = every one), whatever its state.  name and labels are the
 *		provider's; sbx_id is NULL where it is none of the caller's, created_at
 *		where the provider gave no time.  A listing that cannot be read to its end
 *		is an error, never a shorter result; one that lags behind is the
 *		provider's truth.
 *
 *		Errors: SB001 labels that are no object of texts, SB008, SB011, SB013
 *		unknown provider.
 */
PG_FUNCTION_INFO_V1(sbx_find);
Datum
sbx_find(PG_FUNCTION_ARGS)
{
	const SbxProvider *provider;
	SbxAccess access;
	SbxPair *labels;
	SbxCall call;
	SbxOp *op;
	int count;

	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_find()");
	provider = sbx_call_provider(fcinfo, 0);
	labels = find_labels(fcinfo, 1, &count);
	sbx_session_access(provider, &access);
	sbx_sandbox_check_supported(provider->kind, provider->kind->find != NULL,
	                            "sbx_find()");
	op = sbx_session_hold(provider->kind->find(&access.account, labels, count),
	                      access.credential);
	sbx_session_run(op);
	if (!op->succeeded)
		sbx_failure_runtime(provider->pool.id, NULL, op, false);

	InitMaterializedSRF(fcinfo, 0);
	put_rows((ReturnSetInfo *) fcinfo->resultinfo, provider->pool.id, op->result);
	sbx_session_end(&call);
	return (Datum) 0;
}
