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
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

/*
 * A kept plan.  The role is part of the key: privileges that are checked while planning
 * (the schema, a function that gets inlined) were checked for that role.
 */
typedef struct HookKey
{
	Oid role;
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
sbx_hook_find(const char *schema, const char *name)
{
	Oid argument = JSONBOID;
	Oid namespace = get_namespace_oid(schema, true);
	HeapTuple tuple;
	Form_pg_proc form;
	Oid found = InvalidOid;

	/* A temporary schema is somebody else's tomorrow. */
	if (!OidIsValid(namespace) || isAnyTempNamespace(namespace))
		return InvalidOid;
	tuple = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(name),
	                        PointerGetDatum(buildoidvector(&argument, 1)),
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
find_plan(const char *function, Oid role)
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
	key.role = role;
	strlcpy(key.function, function, sizeof(key.function));
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
	Oid argument = JSONBOID;
	char *schema;
	char *name;
	char *sql;

	if (!sbx_hook_split(plan->key.function, &schema, &name))
		ereport(ERROR,
		        (errcode(ERRCODE_INVALID_NAME), errmsg("invalid function name")));
	sql = psprintf("SELECT %s($1)", quote_qualified_identifier(schema, name));

	/* Generic: otherwise the planner itself would call a function that is immutable. */
	plan->plan = SPI_prepare_cursor(sql, 1, &argument, CURSOR_OPT_GENERIC_PLAN);
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
execute(HookPlan *plan, Jsonb *argument, MemoryContext context)
{
	Datum value = JsonbPGetDatum(argument);
	Jsonb *result;
	int code;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (plan->plan == NULL)
		make_plan(plan);

	/* Two rows are enough to see that it returns a set. */
	code = SPI_execute_plan(plan->plan, &value, NULL, false, 2);
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

static bool
call(HookPlan *plan, Jsonb *argument, Jsonb **result)
{
	HookScope scope;
	ErrorData *volatile error = NULL;

	remember(&scope);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(scope.context);
	plan->running++;
	PG_TRY();
	{
		enter(&scope, plan->key.role);
		*result = execute(plan, argument, scope.context);
		leave(&scope);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		error = recover(&scope);
	}
	PG_END_TRY();
	plan->running--;
	MemoryContextSwitchTo(scope.context);
	CurrentResourceOwner = scope.owner;
	if (error == NULL)
		return true;

	*result = NULL;
	forget_plan_if_stale(plan);
	if (sbx_error_is_interrupt(error->sqlerrcode))
		ReThrowError(error);
	FreeErrorData(error);
	return false;
}

bool
sbx_hook_call(const char *function, Oid role, Jsonb *argument, Jsonb **result)
{
	*result = NULL;
	if (strlen(function) >= SBX_MAX_HOOK_NAME ||
	    !SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(role)))
		return false;
	return call(find_plan(function, role), argument, result);
}
