/*
 * seam.c
 *		The functions of users that registrations and policies name.
 */
#include "flow/seam.h"

#include "catalog/namespace.h"
#include "observe/hook.h"
#include "utils/builtins.h"

static bool
has_privilege(PGFunction check, Oid role, Oid object, const char *privilege)
{
	return DatumGetBool(DirectFunctionCall3(check, ObjectIdGetDatum(role),
	                                        ObjectIdGetDatum(object),
	                                        CStringGetTextDatum(privilege)));
}

void
sbx_seam_check(SbxDocument document, const char *path, const char *function,
               Oid argument_type, Oid role, bool restoring)
{
	char *schema;
	char *name;
	Oid oid;

	if (!sbx_hook_split(function, &schema, &name))
		sbx_error_document(document, path, SBX_REASON_BAD_FORMAT,
		                   _("Write the function as schema.name, without arguments."));
	oid = sbx_hook_find(schema, name, argument_type);
	if (!OidIsValid(oid))
		sbx_error_document(
		    document, path, SBX_REASON_UNKNOWN_NAME,
		    psprintf(_("There has to be a function %s(%s) that returns jsonb."),
		             quote_qualified_identifier(schema, name),
		             format_type_be(argument_type)));
	if (!has_privilege(has_function_privilege_id_id, role, oid, "EXECUTE") ||
	    (!restoring && !has_privilege(has_schema_privilege_id_id, role,
	                                  get_namespace_oid(schema, false), "USAGE")))
		sbx_error_document(
		    document, path, SBX_REASON_FORBIDDEN,
		    document == SBX_DOCUMENT_POLICY
		        ? _("The role that registers a policy has to have the privilege to "
		            "call its functions.")
		        : _("The role that registers a provider has to have the privilege to "
		            "call its functions."));
}

void
sbx_seam_refuse_lent(SbxDocument document, const char *path, const char *function,
                     Oid role, const char *former, Oid former_role)
{
	if (function == NULL || former == NULL || role == former_role ||
	    strcmp(function, former) != 0)
		return;
	sbx_error_document(document, path, SBX_REASON_FORBIDDEN,
	                   _("Another role has chosen the function, which would be called "
	                     "with your privileges: name it yourself."));
}
