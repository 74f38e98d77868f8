/*
 * policy.c
 *		Policies from SQL, the check that every row passes, and the classifier that is
 *		shipped.
 */
#include "compat.h"

#include "catalog/namespace.h"
#include "core/classify.h"
#include "core/request.h"
#include "flow/rows.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "observe/hook.h"
#include "store/policy.h"
#include "store/registry.h"
#include "utils/builtins.h"

#define POLICY SBX_DOCUMENT_POLICY

/* Parts of a policy that are not built: columns, and arguments of sbx_set_policy(). */
static const struct
{
	const char *column;
	int argument;
	const char *path;
} unbuilt[] = {{"provider_order", 1, "policy.providerOrder"},
               {"capacity_timeout", 2, "policy.capacityTimeout"},
               {"signals_resolver", 5, "policy.signalsResolver"},
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
 * dump restores policies before pools, and then nothing is known yet: any name that is
 * well formed is accepted, and looked at again when the policy is used.
 */
static const SbxDeclared *
known_names(Jsonb *defaults, bool restoring)
{
	const SbxRegistry *registry = sbx_registry_get();
	SbxDeclared *declared;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue item;

	if (!restoring || registry->count > 0)
		return registry->declared;
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

static bool
has_privilege(PGFunction check, Oid role, Oid object, const char *privilege)
{
	return DatumGetBool(DirectFunctionCall3(check, ObjectIdGetDatum(role),
	                                        ObjectIdGetDatum(object),
	                                        CStringGetTextDatum(privilege)));
}

/*
 * A classifier is a function that its policy's role may call.  While a dump is restored,
 * privileges on schemas are not there yet: they are looked at when it is called.
 */
static void
check_classifier(const char *function, Oid role, bool restoring)
{
	const char *path = "policy.classifier";
	char *schema;
	char *name;
	Oid oid;

	if (!sbx_hook_split(function, &schema, &name))
		sbx_error_document(POLICY, path, SBX_REASON_BAD_FORMAT,
		                   _("Write the function as schema.name, without arguments."));
	oid = sbx_hook_find(schema, name);
	if (!OidIsValid(oid))
		sbx_error_document(
		    POLICY, path, SBX_REASON_UNKNOWN_NAME,
		    psprintf(_("There has to be a function %s(jsonb) that returns jsonb."),
		             quote_qualified_identifier(schema, name)));
	if (!has_privilege(has_function_privilege_id_id, role, oid, "EXECUTE") ||
	    (!restoring && !has_privilege(has_schema_privilege_id_id, role,
	                                  get_namespace_oid(schema, false), "USAGE")))
		sbx_error_document(POLICY, path, SBX_REASON_FORBIDDEN,
		                   _("The role that registers a policy has to have the "
		                     "privilege to call its functions."));
}

/* restoring: this may be a dump, so what it cannot have yet is not asked for. */
static void
check_policy(const SbxPolicy *policy, bool restoring)
{
	if (policy->request_defaults != NULL)
		check_defaults(policy->request_defaults, restoring);
	if (policy->classifier != NULL)
		check_classifier(policy->classifier, policy->registered_by, restoring);
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
	policy.request_defaults = sbx_rows_jsonb(&row, "request_defaults");
	policy.classifier = sbx_rows_text(&row, "classifier");
	policy.registered_by = sbx_rows_settle_registrar(&row);
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
