/*
 * hook.c
 *		Calling SQL functions of users: never with our rights, never with our errors.
 */
#include "observe/hook.h"

#include "observe/error.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/varlena.h"

/*
 * A kept plan.  The role is part of the key: privileges that are checked while planning
 * (the schema, a function that gets inlined) were checked for that role.
 */
typedef struct HookKey
{
	Oid role;
	Oid argument_type;
	char function[SBX_MAX_HOOK_NAME];
} HookKey;

typedef struct HookPlan
{
	HookKey key;
	SPIPlanPtr plan; /* NULL = to be made */
	int running;     /* a function may get here again while it runs */
} HookPlan;

static HTAB *plans = NULL;

/* What was in force before, to go back to. */
typedef struct HookScope
{
	MemoryContext context;
	ResourceOwner owner;
	Oid user;
	int security_context;
	int guc_level;
	uint32 interrupt_holdoff;
	uint32 cancel_holdoff;
} HookScope;

/* --- names ---------------------------------------------------------------- */

bool
sbx_hook_split(const char *function, char **schema, char **name)
{
	List *parts;

	if (strlen(function) >= SBX_MAX_HOOK_NAME ||
	    !SplitIdentifierString(pstrdup(function), '.', &parts) ||
	    list_length(parts) != 2)
		return false;
	*schema = linitial(parts);
	*name = lsecond(parts);
	return true;
}

Oid
sbx_hook_find(const char *schema, const char *name, Oid argument_type)
{
	Oid namespace = get_namespace_oid(schema, true);
	HeapTuple tuple;
	Form_pg_proc form;
	Oid found = InvalidOid;

	/* A temporary schema is somebody else's tomorrow. */
	if (!OidIsValid(namespace) || isAnyTempNamespace(namespace))
		return InvalidOid;
	tuple = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(name),
	                        PointerGetDatum(buildoidvector(&argument_type, 1)),
	                        ObjectIdGetDatum(namespace));
	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prokind == PROKIND_FUNCTION && !form->proretset &&
	    form->prorettype == JSONBOID)
		found = form->oid;
	ReleaseSysCache(tuple);
	return found;
}

/* --- plans ---------------------------------------------------------------- */

static HookPlan *
find_plan(const SbxHook *hook)
{
	HookKey key;
	HookPlan *plan;
	bool found;

	if (plans == NULL)
	{
		HASHCTL info = {.keysize = sizeof(HookKey), .entrysize = sizeof(HookPlan)};

		plans = hash_create("sbx_router hooks", 8, &info, HASH_ELEM | HASH_BLOBS);
	}
	memset(&key, 0, sizeof(key));
	key.role = hook->role;
	key.argument_type = hook->argument_type;
	strlcpy(key.function, hook->function, sizeof(key.function));
	plan = hash_search(plans, &key, HASH_ENTER, &found);
	if (!found)
	{
		plan->plan = NULL;
		plan->running = 0;
	}
	return plan;
}

static void
make_plan(HookPlan *plan)
{
	char *schema;
	char *name;
	char *sql;

	if (!sbx_hook_split(plan->key.function, &schema, &name))
		ereport(ERROR,
		        (errcode(ERRCODE_INVALID_NAME), errmsg("invalid function name")));
	sql = psprintf("SELECT %s($1)", quote_qualified_identifier(schema, name));

	/* Generic: otherwise the planner itself would call a function that is immutable. */
	plan->plan =
	    SPI_prepare_cursor(sql, 1, &plan->key.argument_type, CURSOR_OPT_GENERIC_PLAN);
	if (plan->plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	SPI_keepplan(plan->plan);
}

/*
 * A plan that does not parse any more is of no use: its function is gone.  One that is
 * running, further up the stack, has to stay.
 */
static void
forget_plan_if_stale(HookPlan *plan)
{
	if (plan->running > 0 || (plan->plan != NULL && SPI_plan_is_valid(plan->plan)))
		return;
	if (plan->plan != NULL)
		SPI_freeplan(plan->plan);
	hash_search(plans, &plan->key, HASH_REMOVE, NULL);
}

/* --- time ----------------------------------------------------------------- */

/*
 * A function whose time is over is cancelled like a statement; by this flag that is told
 * from a cancel of the statement.
 */
static volatile sig_atomic_t time_is_over = false;
static TimeoutId timer = MAX_TIMEOUTS;

/* The time of a call, and what was running when it started. */
typedef struct HookTime
{
	int64 timeout_ms;
	bool outer; /* a function further up the stack has a time of its own */
	TimestampTz outer_end;
	bool statement; /* statement_timeout */
	TimestampTz statement_end;
} HookTime;

static void
cancel_function(void)
{
	/* A cancel that is pending already is not ours. */
	if (QueryCancelPending || ProcDiePending)
		return;
	time_is_over = true;
	QueryCancelPending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

static void
start_time(HookTime *time, int64 timeout_ms)
{
	TimestampTz end;

	time->timeout_ms = timeout_ms;
	if (timeout_ms <= 0)
		return;
	time_is_over = false;
	if (timer == MAX_TIMEOUTS)
		timer = RegisterTimeout(USER_TIMEOUT, cancel_function);
	time->outer = get_timeout_active(timer);
	time->outer_end = get_timeout_finish_time(timer);
	time->statement = get_timeout_active(STATEMENT_TIMEOUT);
	time->statement_end = get_timeout_finish_time(STATEMENT_TIMEOUT);

	/* No function gets more time by calling another. */
	end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	enable_timeout_at(timer, time->outer ? Min(end, time->outer_end) : end);
}

/* The function has ended; what follows is not its time. */
static void
stop_time(const HookTime *time)
{
	if (time->timeout_ms > 0)
		disable_timeout(timer, false);
}

/*
 * True = its time was over, even if it went on and returned, and the statement's was not.
 * error is what it raised, or NULL.
 */
static bool
end_time(const HookTime *time, const ErrorData *error)
{
	bool noticed = error != NULL && error->sqlerrcode == ERRCODE_QUERY_CANCELED;
	bool is_over;

	if (time->timeout_ms <= 0)
		return false;
	is_over = time_is_over;
	time_is_over = false;

	/* It has not noticed: the cancel must not hit anybody else. */
	if (is_over && !noticed)
		QueryCancelPending = false;

	/* Only now: where its time is over as well, this cancels it. */
	if (time->outer)
		enable_timeout_at(timer, time->outer_end);
	return is_over && (!noticed || !time->statement ||
	                   time->statement_end > GetCurrentTimestamp());
}

/* --- the call ------------------------------------------------------------- */

static void
enter(HookScope *scope, Oid role)
{
	/* Nothing is inherited: SECURITY_NOFORCE_RLS is for our own statements. */
	SetUserIdAndSecContext(role, SECURITY_RESTRICTED_OPERATION |
	                                 SECURITY_LOCAL_USERID_CHANGE);
	scope->guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
	                         PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

static void
leave(const HookScope *scope)
{
	/* false: what the function set is undone as well. */
	AtEOXact_GUC(false, scope->guc_level);
	SetUserIdAndSecContext(scope->user, scope->security_context);
}

/* The one value it returned.  It may have been replaced by something else since. */
static Jsonb *
read_result(MemoryContext context)
{
	MemoryContext spi_context;
	Datum value;
	bool is_null;
	Jsonb *result;

	if (SPI_processed != 1 || SPI_tuptable == NULL ||
	    SPI_gettypeid(SPI_tuptable->tupdesc, 1) != JSONBOID)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
		                errmsg("function does not return one jsonb")));
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
	if (is_null)
		return NULL;
	spi_context = MemoryContextSwitchTo(context);
	result = DatumGetJsonbPCopy(value);
	MemoryContextSwitchTo(spi_context);
	return result;
}

static Jsonb *
execute(HookPlan *plan, Datum argument, MemoryContext context)
{
	Jsonb *result;
	int code;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (plan->plan == NULL)
		make_plan(plan);

	/* Two rows are enough to see that it returns a set. */
	code = SPI_execute_plan(plan->plan, &argument, NULL, false, 2);
	if (code < 0)
		elog(ERROR, "SPI failed: %s", SPI_result_code_string(code));
	result = read_result(context);
	SPI_finish();
	return result;
}

static void
remember(HookScope *scope)
{
	scope->context = CurrentMemoryContext;
	scope->owner = CurrentResourceOwner;
	GetUserIdAndSecContext(&scope->user, &scope->security_context);
	scope->interrupt_holdoff = InterruptHoldoffCount;
	scope->cancel_holdoff = QueryCancelHoldoffCount;
}

/* After an error: roll back, and go on where nothing has happened. */
static ErrorData *
recover(const HookScope *scope)
{
	ErrorData *error;

	MemoryContextSwitchTo(scope->context);
	error = CopyErrorData();
	FlushErrorState();

	/* Restores user, security context, settings and SPI, too. */
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(scope->context);
	CurrentResourceOwner = scope->owner;

	/* An error sets them to zero. */
	InterruptHoldoffCount = scope->interrupt_holdoff;
	QueryCancelHoldoffCount = scope->cancel_holdoff;
	return error;
}

/*
 * An interrupt, as if it had come between statements of the caller: where the function
 * was, and by which statement, is not his to know.  Nor are the function's own words, if
 * it raised by itself what only looks like an interrupt.
 */
static void
raise_again(const ErrorData *error)
{
	bool is_genuine =
	    error->funcname != NULL && strcmp(error->funcname, "ProcessInterrupts") == 0;

	ereport(ERROR, (errcode(error->sqlerrcode),
	                is_genuine ? errmsg_internal("%s", error->message)
	                           : errmsg("function of a registration or policy was "
	                                    "interrupted")));
}

static SbxHookOutcome
call(HookPlan *plan, int64 timeout_ms, Datum argument, Jsonb **result)
{
	HookScope scope;
	HookTime time;
	ErrorData *volatile error = NULL;
	bool timed_out;

	remember(&scope);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(scope.context);
	plan->running++;
	start_time(&time, timeout_ms);
	PG_TRY();
	{
		enter(&scope, plan->key.role);
		*result = execute(plan, argument, scope.context);
		leave(&scope);
		ReleaseCurrentSubTransaction();
		stop_time(&time);
	}
	PG_CATCH();
	{
		stop_time(&time);
		error = recover(&scope);
	}
	PG_END_TRY();
	timed_out = end_time(&time, error);
	plan->running--;
	MemoryContextSwitchTo(scope.context);
	CurrentResourceOwner = scope.owner;
	if (error == NULL)
		return timed_out ? SBX_HOOK_TIMED_OUT : SBX_HOOK_RETURNED;

	*result = NULL;
	forget_plan_if_stale(plan);
	if (!timed_out && sbx_error_is_interrupt(error->sqlerrcode))
		raise_again(error);
	FreeErrorData(error);
	return timed_out ? SBX_HOOK_TIMED_OUT : SBX_HOOK_FAILED;
}

SbxHookOutcome
sbx_hook_call(const SbxHook *hook, Datum argument, Jsonb **result)
{
	*result = NULL;
	if (strlen(hook->function) >= SBX_MAX_HOOK_NAME ||
	    !SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(hook->role)))
		return SBX_HOOK_FAILED;
	return call(find_plan(hook), hook->timeout_ms, argument, result);
}
