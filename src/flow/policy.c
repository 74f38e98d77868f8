/*
 * policy.c
 *		Policies from SQL, the check that every row passes, and the classifier that is
 *		shipped.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "core/classify.h"
#include "core/isotime.h"
#include "core/request.h"
#include "flow/rows.h"
#include "flow/seam.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "store/policy.h"
#include "store/registry.h"
#include "utils/builtins.h"

#define POLICY     SBX_DOCUMENT_POLICY
#define ORDER_PATH "policy.providerOrder"

/* Parts of a policy that are not built: columns, and arguments of sbx_set_policy(). */
static const struct
{
	const char *column;
	int argument;
	const char *path;
} unbuilt[] = {{"signals_resolver", 5, "policy.signalsResolver"},
               {"readiness", 6, "policy.readiness"},
               {"observer", 7, "policy.observer"}};

/* --- checks ------------------------------------------------------------------- */

static void
check_name(const char *name)
{
	if (!sbx_is_provider_id(name))
		sbx_error_document(
		    POLICY, "policy.name", SBX_REASON_BAD_FORMAT,
		    _("A name starts with a letter or digit, followed by at most 62 "
		      "letters, digits, dots, underscores or hyphens."));
}

/*
 * The capability names that defaults may use: those that a request may use now.  But a
 * dump may have a policy whose pools are not there yet, or not any more: any name that
 * is well formed is accepted, and looked at again when the policy is used.
 */
static const SbxDeclared *
known_names(Jsonb *defaults, bool restoring)
{
	SbxDeclared *declared;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue item;

	if (!restoring)
		return sbx_registry_get()->declared;
	declared = sbx_declared_create(CurrentMemoryContext);
	iterator = JsonbIteratorInit(&defaults->root);
	while ((token = JsonbIteratorNext(&iterator, &item, false)) != WJB_DONE)
	{
		if (token == WJB_ELEM && item.type == jbvString)
			(void) sbx_names_intern(declared->capabilities,
			                        pnstrdup(item.val.string.val, item.val.string.len));
	}
	return declared;
}

/* Defaults have to be a valid request by themselves. */
static void
check_defaults(Jsonb *defaults, bool restoring)
{
	const SbxPath path = {SBX_DOCUMENT_POLICY, NULL, "policy.requestDefaults"};

	(void) sbx_request_parse_at(&path, defaults, known_names(defaults, restoring));
}

/* An id of the order: registered, unless a dump may know it from another time. */
static void
check_ordered(const char *id, bool restoring)
{
	const SbxRegistry *registry = sbx_registry_get();
	const char **ids;

	if ((restoring && sbx_is_provider_id(id)) || sbx_registry_find(id) != NULL)
		return;
	ids = palloc(sizeof(char *) * (registry->count + 1));
	for (int i = 0; i < registry->count; i++)
		ids[i] = registry->providers[i].pool.id;
	sbx_error_document(POLICY, ORDER_PATH, SBX_REASON_UNKNOWN_NAME,
	                   sbx_error_nearest_hint(id, ids, registry->count));
}

/* A list of distinct pools; an empty one would reach nobody. */
static void
check_order(const SbxPolicy *policy, bool restoring)
{
	char **ids;
	int count;

	if (ARR_NDIM(policy->provider_order) > 1)
		sbx_error_document(POLICY, ORDER_PATH, SBX_REASON_WRONG_TYPE, NULL);
	if (array_contains_nulls(policy->provider_order))
		sbx_error_document(POLICY, ORDER_PATH, SBX_REASON_MISSING, NULL);
	ids = sbx_policy_order(policy, &count);
	if (count == 0)
		sbx_error_document(POLICY, ORDER_PATH, SBX_REASON_EMPTY, NULL);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		check_ordered(ids[i], restoring);
		for (int earlier = 0; earlier < i; earlier++)
		{
			if (strcmp(ids[earlier], ids[i]) == 0)
				sbx_error_document(POLICY, ORDER_PATH, SBX_REASON_DUPLICATE, NULL);
		}
	}
}

/* restoring: this may be a dump, so what it cannot have yet is not asked for. */
static void
check_policy(const SbxPolicy *policy, bool restoring)
{
	int64 ms;

	if (policy->provider_order != NULL)
		check_order(policy, restoring);
	if (policy->capacity_timeout != NULL &&
	    !sbx_isotime_interval_ms(policy->capacity_timeout, &ms))
		sbx_error_document(POLICY, "policy.capacityTimeout", SBX_REASON_OUT_OF_RANGE,
		                   NULL);
	if (policy->request_defaults != NULL)
		check_defaults(policy->request_defaults, restoring);
	if (policy->classifier != NULL)
		sbx_seam_check(POLICY, "policy.classifier", policy->classifier, JSONBOID,
		               policy->registered_by, restoring);
}

/* --- functions ------------------------------------------------------------------ */

/*
 * sbx_set_policy(name text, provider_order text[], capacity_timeout interval,
 *				  request_defaults jsonb, classifier, signals_resolver, readiness,
 *				  observer text) returns void
 *		Makes a policy or replaces the whole row; the caller becomes the role that
 *		its functions are called as.
 *		Errors: SB013 naming the path, 0A000 for the parts that are not built.
 */
PG_FUNCTION_INFO_V1(sbx_set_policy);
Datum
sbx_set_policy(PG_FUNCTION_ARGS)
{
	SbxPolicy policy = {0};

	sbx_rows_refuse_write("sbx_set_policy()");
	if (PG_ARGISNULL(0))
		sbx_error_document(POLICY, "policy.name", SBX_REASON_MISSING, NULL);
	policy.name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	check_name(policy.name);
	for (size_t i = 0; i < lengthof(unbuilt); i++)
	{
		if (!PG_ARGISNULL(unbuilt[i].argument))
			sbx_error_not_built(unbuilt[i].path);
	}
	policy.provider_order = PG_ARGISNULL(1) ? NULL : PG_GETARG_ARRAYTYPE_P(1);
	policy.capacity_timeout = PG_ARGISNULL(2) ? NULL : PG_GETARG_INTERVAL_P(2);
	policy.request_defaults = PG_ARGISNULL(3) ? NULL : PG_GETARG_JSONB_P(3);
	policy.classifier = PG_ARGISNULL(4) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(4));
	policy.registered_by = GetUserId();

	/* The row's trigger checks again; here the error has no context of ours. */
	check_policy(&policy, false);
	sbx_policy_write(&policy);
	PG_RETURN_VOID();
}

/*
 * sbx_drop_policy(name text) returns void
 *		Errors: SB013 when there is none.
 */
PG_FUNCTION_INFO_V1(sbx_drop_policy);
Datum
sbx_drop_policy(PG_FUNCTION_ARGS)
{
	sbx_rows_refuse_write("sbx_drop_policy()");
	sbx_policy_delete(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}

static void
refuse_lent_classifier(const SbxRow *row, const SbxPolicy *policy)
{
	SbxRow former;
	bool is_null;

	if (sbx_rows_former(row, &former))
		sbx_seam_refuse_lent(
		    POLICY, "policy.classifier", policy->classifier, policy->registered_by,
		    sbx_rows_text(&former, "classifier"),
		    DatumGetObjectId(sbx_rows_column(&former, "registered_by", &is_null)));
}

/*
 * sbx_policy_check() returns trigger
 *		However a row is written, it passes the same checks as through the
 *		functions.
 */
PG_FUNCTION_INFO_V1(sbx_policy_check);
Datum
sbx_policy_check(PG_FUNCTION_ARGS)
{
	SbxRow row = {.document = POLICY, .path = "policy"};
	SbxPolicy policy = {0};
	Datum value;
	bool is_null;

	sbx_rows_open(fcinfo, "sbx_policy", "sbx_policy_check", &row);
	policy.name = sbx_rows_required_text(&row, "name");
	check_name(policy.name);
	for (size_t i = 0; i < lengthof(unbuilt); i++)
	{
		(void) sbx_rows_column(&row, unbuilt[i].column, &is_null);
		if (!is_null)
			sbx_error_not_built(unbuilt[i].path);
	}
	value = sbx_rows_column(&row, "provider_order", &is_null);
	policy.provider_order = is_null ? NULL : DatumGetArrayTypeP(value);
	value = sbx_rows_column(&row, "capacity_timeout", &is_null);
	policy.capacity_timeout = is_null ? NULL : DatumGetIntervalP(value);
	policy.request_defaults = sbx_rows_jsonb(&row, "request_defaults");
	policy.classifier = sbx_rows_text(&row, "classifier");
	policy.registered_by = sbx_rows_settle_registrar(&row);
	if (!superuser())
		refuse_lent_classifier(&row, &policy);
	check_policy(&policy, superuser()); /* only superusers restore dumps */
	return PointerGetDatum(row.tuple);
}

/*
 * sbx_classify_proven(failure jsonb) returns jsonb
 *		{"code","retryable"}: retryable where nothing can have been allocated and
 *		another provider may do better.
 */
PG_FUNCTION_INFO_V1(sbx_classify_proven_sql);
Datum
sbx_classify_proven_sql(PG_FUNCTION_ARGS)
{
	SbxClassification classification;
	StringInfoData json;

	sbx_classify_proven(PG_GETARG_JSONB_P(0), &classification);
	sbx_detail_open(&json);
	sbx_detail_text(&json, "code", classification.code);
	sbx_detail_raw(&json, "retryable", classification.retryable ? "true" : "false");
	PG_RETURN_DATUM(
	    DirectFunctionCall1(jsonb_in, CStringGetDatum(sbx_detail_close(&json))));
}
