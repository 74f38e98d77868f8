/*
 * capacity.c
 *		How much room accounts have: read fresh, all at once.
 */
#include "flow/capacity.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "core/level.h"
#include "flow/call.h"
#include "flow/session.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "observe/hook.h"
#include "store/policy.h"
#include "utils/array.h"
#include "utils/builtins.h"

#define CAPACITY_COLUMNS 9

/* --- reading ---------------------------------------------------------------------- */

static void
ask_reader(const SbxProvider *provider, int64 timeout_ms, SbxMeasurement *measurement)
{
	const SbxHook hook = {provider->capacity.reader, TEXTOID, provider->registered_by,
	                      timeout_ms};
	Jsonb *answer;

	switch (sbx_hook_call(&hook, CStringGetTextDatum(provider->pool.id), &answer))
	{
		case SBX_HOOK_RETURNED:
			sbx_admission_read(&provider->capacity, answer, measurement);
			break;
		case SBX_HOOK_FAILED:
			sbx_admission_unknown(measurement, SBX_UNKNOWN_FAILED);
			break;
		case SBX_HOOK_TIMED_OUT:
			sbx_admission_unknown(measurement, SBX_UNKNOWN_TIMEOUT);
			break;
	}
}

/* NULL = it is unknown without asking anybody, and the measurement says why. */
static SbxOp *
make_reading(const SbxProvider *provider, int64 timeout_ms, SbxMeasurement *measurement)
{
	const char *obstacle =
	    sbx_admission_obstacle(&provider->capacity, provider->kind->usage != NULL);
	SbxAccess access;

	if (obstacle == NULL && !sbx_session_has_access(provider, &access))
		obstacle = SBX_UNKNOWN_CREDENTIALS;
	if (obstacle != NULL)
	{
		sbx_admission_unknown(measurement, obstacle);
		return NULL;
	}
	return sbx_session_hold(provider->kind->usage(&access.account, timeout_ms),
	                        access.credential);
}

/* A key that the provider does not know is as good as none. */
static const char *
reason_of(const SbxFailure *failure)
{
	const char *code = failure->provider_code;

	if (code != NULL && strcmp(code, SBX_CODE_MALFORMED) == 0)
		return SBX_UNKNOWN_MALFORMED;
	if (code != NULL && strcmp(code, SBX_CODE_UNAUTHORIZED) == 0)
		return SBX_UNKNOWN_CREDENTIALS;
	return failure->timed_out ? SBX_UNKNOWN_TIMEOUT : SBX_UNKNOWN_FAILED;
}

static void
take_reading(const SbxProvider *provider, const SbxOp *op, SbxMeasurement *measurement)
{
	const SbxUsage *usage = op->result;
	double used[SBX_DIMENSIONS];

	if (!op->succeeded)
	{
		sbx_admission_unknown(measurement, reason_of(&op->failure));
		return;
	}
	used[SBX_DIMENSION_CPU] = usage->cpu_untold ? NAN : usage->cpu;
	used[SBX_DIMENSION_MEMORY] = usage->memory_untold ? NAN : usage->memory_mib;
	used[SBX_DIMENSION_DISK] = usage->disk_untold ? NAN : usage->disk_mib;
	used[SBX_DIMENSION_SANDBOXES] = (double) usage->sandboxes;
	sbx_admission_measure(&provider->capacity, used, measurement);
}

void
sbx_capacity_read(const SbxProvider *const *providers, int count, int64 timeout_ms,
                  SbxMeasurement *measurements)
{
	MemoryContext context = AllocSetContextCreate(
	    CurrentMemoryContext, "sbx_router capacity", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	SbxOp **ops = palloc0(sizeof(SbxOp *) * (count + 1));
	int *of = palloc(sizeof(int) * (count + 1));
	int asked = 0;

	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (providers[i]->capacity.reader != NULL)
		{
			/* What it says may be its reason, and stays. */
			MemoryContextSwitchTo(caller);
			ask_reader(providers[i], timeout_ms, &measurements[i]);
			MemoryContextSwitchTo(context);
		}
	}
	for (int i = 0; i < count; i++)
	{
		if (providers[i]->capacity.reader != NULL)
			continue;
		ops[asked] = make_reading(providers[i], timeout_ms, &measurements[i]);
		of[asked] = i;
		asked += ops[asked] != NULL;
	}
	sbx_session_run_many(ops, asked, NULL, NULL);
	for (int i = 0; i < asked; i++)
		take_reading(providers[of[i]], ops[i], &measurements[of[i]]);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* --- sbx_capacity ------------------------------------------------------------------ */

static bool
is_among(const SbxProvider *const *providers, int count, const SbxProvider *provider)
{
	for (int i = 0; i < count; i++)
	{
		if (providers[i] == provider)
			return true;
	}
	return false;
}

/* Those of the argument, each once, in its order; all that are registered for NULL. */
static const SbxProvider **
providers_argument(FunctionCallInfo fcinfo, int n, int *count)
{
	const SbxRegistry *registry = sbx_registry_get();
	const SbxProvider **providers;
	Datum *elements;
	bool *nulls;
	int length = registry->count;

	*count = 0;
	if (PG_ARGISNULL(n))
	{
		providers = palloc(sizeof(SbxProvider *) * (length + 1));
		while (*count < length)
		{
			providers[*count] = &registry->providers[*count];
			(*count)++;
		}
		return providers;
	}
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(n), TEXTOID, -1, false, TYPALIGN_INT,
	                  &elements, &nulls, &length);
	providers = palloc(sizeof(SbxProvider *) * (length + 1));
	for (int i = 0; i < length; i++)
	{
		const SbxProvider *provider;

		if (nulls[i])
			sbx_error_document(SBX_DOCUMENT_PROVIDER, "providers", SBX_REASON_MISSING,
			                   NULL);
		provider = sbx_call_find_provider(registry, TextDatumGetCString(elements[i]),
		                                  "providers");
		if (!is_among(providers, *count, provider))
			providers[(*count)++] = provider;
	}
	return providers;
}

static void
put_unknown(ReturnSetInfo *result, const char *provider_id, const char *reason)
{
	Datum values[CAPACITY_COLUMNS] = {0};
	bool nulls[CAPACITY_COLUMNS];

	memset(nulls, true, sizeof(nulls));
	memset(nulls, false, 3 * sizeof(bool));
	values[0] = CStringGetTextDatum(provider_id);
	values[1] = CStringGetTextDatum("unknown");
	values[2] = CStringGetTextDatum(reason);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
put_resource(ReturnSetInfo *result, const char *provider_id, SbxDimension dimension,
             const SbxResource *resource)
{
	Datum values[CAPACITY_COLUMNS] = {0};
	bool nulls[CAPACITY_COLUMNS] = {false};

	values[0] = CStringGetTextDatum(provider_id);
	values[1] = CStringGetTextDatum("known");
	nulls[2] = true;
	values[3] = CStringGetTextDatum(sbx_dimension_names[dimension]);
	values[4] = Float8GetDatum(resource->used);
	values[5] = Float8GetDatum(resource->limit);
	values[6] = CStringGetTextDatum(sbx_dimension_units[dimension]);
	values[7] = Float8GetDatum(resource->headroom);
	values[8] = Float8GetDatum(resource->required);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
put_measurement(ReturnSetInfo *result, const char *provider_id,
                const SbxMeasurement *measurement)
{
	if (measurement->unknown != NULL)
	{
		put_unknown(result, provider_id, measurement->unknown);
		return;
	}
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		if (measurement->resources[i].reported)
			put_resource(result, provider_id, i, &measurement->resources[i]);
	}
}

/*
 * sbx_capacity(providers text[], timeout interval) returns setof record (provider_id
 *				text, status text, reason text, resource text, used float8, "limit"
 *				float8, unit text, headroom float8, required float8)
 *		What accounts use, against the limits that their registrations state: a row for
 *		each resource with a limit, or one row with a reason and no resource for an
 *		account of which nothing is known.  cpu is in vCPU, memory and disk in MiB.
 *		NULL reads all that are registered; each account may take timeout (5 s).
 *
 *		Reads listings and nothing else: creates and starts nothing, assigns no
 *		transaction id, works on a standby.
 *
 *		Errors: SB013 unknown provider, SB001 timeout.
 */
PG_FUNCTION_INFO_V1(sbx_capacity);
Datum
sbx_capacity(PG_FUNCTION_ARGS)
{
	const SbxProvider **providers;
	SbxMeasurement *measurements;
	int64 timeout_ms;
	SbxCall call;
	int count;

	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_capacity()");
	providers = providers_argument(fcinfo, 0, &count);
	timeout_ms = sbx_call_ms(fcinfo, 1, "timeout", SBX_CAPACITY_TIMEOUT_MS);
	measurements = palloc0(sizeof(SbxMeasurement) * (count + 1));
	sbx_capacity_read(providers, count, timeout_ms, measurements);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < count; i++)
		put_measurement((ReturnSetInfo *) fcinfo->resultinfo, providers[i]->pool.id,
		                &measurements[i]);
	sbx_session_end(&call);
	return (Datum) 0;
}

static bool
is_finite_argument(FunctionCallInfo fcinfo, int n)
{
	return !PG_ARGISNULL(n) && isfinite(PG_GETARG_FLOAT8(n));
}

/*
 * sbx_capacity_level(used float8, "limit" float8, required float8) returns record
 *				(percent_used float8, launches bigint, level text)
 *		A row of sbx_capacity in words: how much of the limit is used, how many more
 *		launches fit (NULL when one needs nothing), and critical from 95 percent or when
 *		none fits, warning from 80 percent, ok, or unknown when anything is NULL or no finite
 *		number.
 */
PG_FUNCTION_INFO_V1(sbx_capacity_level);
Datum
sbx_capacity_level(PG_FUNCTION_ARGS)
{
	Datum values[3] = {0};
	bool nulls[3] = {true, true, false};
	const char *level = "unknown";
	SbxResource resource = {0};
	int64 launches;

	if (is_finite_argument(fcinfo, 0) && is_finite_argument(fcinfo, 1) &&
	    is_finite_argument(fcinfo, 2))
	{
		resource.used = PG_GETARG_FLOAT8(0);
		resource.limit = PG_GETARG_FLOAT8(1);
		resource.headroom = resource.limit - resource.used;
		resource.required = PG_GETARG_FLOAT8(2);
		launches = sbx_admission_launches(&resource);
		level =
		    launches == 0 ? "critical" : sbx_level_of(resource.used, resource.limit);
		values[0] = Float8GetDatum(sbx_level_percent(resource.used, resource.limit));
		values[1] = Int64GetDatum(launches);
		nulls[0] = false;
		nulls[1] = launches < 0;
	}
	values[2] = CStringGetTextDatum(level);
	return sbx_call_row(fcinfo, values, nulls);
}
