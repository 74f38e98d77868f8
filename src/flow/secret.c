/*
 * secret.c
 *		Credentials from SQL, kept out of everything that is written down.
 *
 * A credential arrives as a value of type sbx_secret, whose output is always
 * ********, or as a line of COPY into the view sbx_credential_input.  It is split
 * into the fields of its provider kind and handed to the session's store; errors
 * name a field, never a value.
 */
#include "flow/secret.h"

#include "compat.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "flow/session.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "pgstat.h"
#include "store/catalog.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/rel.h"

#include "net/json.h"

/* The text of one credential: larger than any token in use. */
#define SBX_MAX_CREDENTIAL 16384

/* --- type sbx_secret ---------------------------------------------------------- */

PG_FUNCTION_INFO_V1(sbx_secret_in);
Datum
sbx_secret_in(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(PG_GETARG_CSTRING(0)));
}

PG_FUNCTION_INFO_V1(sbx_secret_out);
Datum
sbx_secret_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(pstrdup("********"));
}

PG_FUNCTION_INFO_V1(sbx_secret_recv);
Datum
sbx_secret_recv(PG_FUNCTION_ARGS)
{
	StringInfo buffer = (StringInfo) PG_GETARG_POINTER(0);
	int length;
	char *bytes = pq_getmsgtext(buffer, buffer->len - buffer->cursor, &length);

	PG_RETURN_TEXT_P(cstring_to_text_with_len(bytes, length));
}

/* --- the server log ------------------------------------------------------------ */

static emit_log_hook_type previous_log_hook = NULL;

/*
 * Start of the statement that is a COPY into sbx_credential_input; a malformed
 * line of it would otherwise be printed as context.
 */
static TimestampTz copy_statement = 0;

static bool
mentions_credential(const char *string)
{
	return string != NULL && (strstr(string, "sbx_set_credential") != NULL ||
	                          strstr(string, "sbx_set_local_credential") != NULL ||
	                          strstr(string, "sbx_credential_input") != NULL);
}

/* Said instead of what may quote a literal; hidden from nobody but the log. */
static void
log_instead(ErrorData *report)
{
	static bool busy = false;

	if (busy)
		return;
	report->output_to_server = false;
	busy = true;
	PG_TRY();
	{
		ereport(LOG_SERVER_ONLY, (errcode(report->sqlerrcode),
		                          errmsg("statement with a credential is not shown"),
		                          errhidestmt(true), errhidecontext(true)));
	}
	PG_FINALLY();
	{
		busy = false;
	}
	PG_END_TRY();
}

/* Errors in which the server quotes what it could not read or find. */
static bool
may_quote(const ErrorData *report)
{
	int category = ERRCODE_TO_CATEGORY(report->sqlerrcode);

	return report->elevel == ERROR &&
	       (category == ERRCODE_DATA_EXCEPTION ||
	        category == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION);
}

/*
 * Literals are best effort: a statement that names one of our functions is not
 * logged, whatever it says; the server's own errors about it may quote it, and go to
 * the client alone.
 */
static void
hide_credentials(ErrorData *report)
{
	if (copy_statement != 0 && copy_statement == GetCurrentStatementStartTimestamp())
	{
		report->hide_stmt = true;

		/* The client gets what is left of the report: no line for it either. */
		report->context = NULL;
	}
	if (mentions_credential(debug_query_string) || mentions_credential(report->context))
	{
		report->hide_stmt = true;
		report->hide_ctx = true;
		if (report->elevel < LOG) /* what debugging says about it quotes it, too */
			report->output_to_server = false;
		else if (may_quote(report))
			log_instead(report);
	}
	if (report->elevel < WARNING &&
	    (mentions_credential(report->message) || mentions_credential(report->detail) ||
	     mentions_credential(report->detail_log)))
		log_instead(report);
	if (previous_log_hook != NULL)
		previous_log_hook(report);
}

/* Whoever looks at pg_stat_activity from now on does not see a literal. */
static void
hide_activity(void)
{
	pgstat_report_activity(STATE_RUNNING, "<statement with a credential>");
}

void
sbx_secret_install_hook(void)
{
	previous_log_hook = emit_log_hook;
	emit_log_hook = hide_credentials;
}

/* --- from text to fields --------------------------------------------------------- */

/* Found before anything is raised, because documents have to be wiped first. */
typedef struct Fault
{
	const char *path;
	const char *field; /* below the path; NULL = none */
	SbxReason reason;
} Fault;

static bool
fault(Fault *where, const char *path, SbxReason reason)
{
	where->path = path;
	where->field = NULL;
	where->reason = reason;
	return false;
}

static bool
field_fault(Fault *where, const SbxField *field, SbxReason reason)
{
	where->path = "credential";
	where->field = field->name;
	where->reason = reason;
	return false;
}

/* A key goes into a header line: printable ASCII without blanks, or it is none. */
static bool
is_token(const char *value)
{
	if (*value == '\0')
		return false;
	for (; *value != '\0'; value++)
	{
		if (*value <= ' ' || *value >= 0x7f)
			return false;
	}
	return true;
}

static int
find_field(const SbxProviderKind *kind, const char *name)
{
	for (int i = 0; kind->credentials[i].name != NULL; i++)
	{
		if (strcmp(kind->credentials[i].name, name) == 0)
			return i;
	}
	return -1;
}

static bool
read_field(const SbxProviderKind *kind, const char *key, const json_t *member,
           const char **values, Fault *where)
{
	int i = find_field(kind, key);

	if (i < 0)
		return fault(where, "credential", SBX_REASON_UNKNOWN_NAME);
	if (!json_is_string(member))
		return field_fault(where, &kind->credentials[i], SBX_REASON_WRONG_TYPE);
	if (!is_token(json_string_value(member)))
		return field_fault(where, &kind->credentials[i], SBX_REASON_BAD_FORMAT);
	values[i] = json_string_value(member);
	return true;
}

static bool
read_object(const SbxProviderKind *kind, json_t *object, const char **values,
            Fault *where)
{
	const char *key;
	json_t *member;

	json_object_foreach (object, key, member)
	{
		if (!read_field(kind, key, member, values, where))
			return false;
	}
	for (int i = 0; kind->credentials[i].name != NULL; i++)
	{
		if (kind->credentials[i].required && values[i] == NULL)
			return field_fault(where, &kind->credentials[i], SBX_REASON_MISSING);
	}
	return true;
}

/* The one required field that a bare key stands for; -1 = there is no such. */
static int
bare_field(const SbxProviderKind *kind)
{
	int found = -1;

	for (int i = 0; kind->credentials[i].name != NULL; i++)
	{
		if (!kind->credentials[i].required)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

static bool
read_bare(const SbxProviderKind *kind, const char *key, const char **values,
          Fault *where)
{
	int i = bare_field(kind);

	if (i < 0 || !is_token(key))
		return fault(where, "credential", SBX_REASON_BAD_FORMAT);
	values[i] = key;
	return true;
}

static void
refuse(const Fault *where)
{
	const char *path = where->field == NULL
	                       ? where->path
	                       : psprintf("%s.%s", where->path, where->field);

	sbx_error_document(SBX_DOCUMENT_CREDENTIAL, path, where->reason,
	                   _("A credential is a JSON object of the fields that "
	                     "sbx_provider_kinds() lists, or the bare key where one field "
	                     "is required."));
}

static const SbxProviderKind *
kind_of(const char *provider_id)
{
	const SbxProvider *provider = sbx_registry_find(provider_id);

	if (provider == NULL)
		sbx_error_document(SBX_DOCUMENT_CREDENTIAL, "provider", SBX_REASON_UNKNOWN_NAME,
		                   _("Use sbx_register_provider() to register it first."));
	return provider->kind;
}

/* --- sbx_set_credential ------------------------------------------------------------ */

static void
set_from_text(const char *provider_id, char *secret, SbxCredentialScope scope)
{
	const SbxProviderKind *kind = kind_of(provider_id);
	const char *values[SBX_MAX_CREDENTIALS] = {NULL};
	size_t length = strlen(secret);
	json_t *document = NULL;
	Fault where;
	bool valid;

	if (length > SBX_MAX_CREDENTIAL)
		valid = fault(&where, "credential", SBX_REASON_TOO_LARGE);
	else if (secret[strspn(secret, " \t\r\n")] != '{')
		valid = read_bare(kind, secret, values, &where);
	else
	{
		sbx_json_init();
		document = sbx_json_parse(secret, length, false);
		valid = document == NULL ? fault(&where, "credential", SBX_REASON_BAD_FORMAT)
		                         : read_object(kind, document, values, &where);
	}

	PG_TRY();
	{
		if (!valid)
			refuse(&where);
		sbx_credential_set(provider_id, values, scope);
	}
	PG_FINALLY();
	{
		json_decref(document);
		explicit_bzero(secret, length);
	}
	PG_END_TRY();
}

static char *
secret_argument(FunctionCallInfo fcinfo, int n, const char *path)
{
	if (PG_ARGISNULL(n))
		sbx_error_document(SBX_DOCUMENT_CREDENTIAL, path, SBX_REASON_MISSING, NULL);
	return text_to_cstring(PG_GETARG_TEXT_PP(n));
}

static Datum
set_credential(FunctionCallInfo fcinfo, SbxCredentialScope scope)
{
	SbxCall call;
	char *provider_id;

	hide_activity();
	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_set_credential()");
	provider_id = secret_argument(fcinfo, 0, "provider");
	set_from_text(provider_id, secret_argument(fcinfo, 1, "credential"), scope);
	sbx_session_end(&call);
	PG_RETURN_VOID();
}

/*
 * sbx_set_credential(provider text, credential sbx_secret) returns void
 *		For the session, like SET.  Errors: SB013 (unknown provider, malformed
 *		credential), 42501 where session credentials are off.
 */
PG_FUNCTION_INFO_V1(sbx_set_credential);
Datum
sbx_set_credential(PG_FUNCTION_ARGS)
{
	return set_credential(fcinfo, SBX_SCOPE_SESSION);
}

/*
 * sbx_set_local_credential(provider text, credential sbx_secret) returns void
 *		For the transaction, like SET LOCAL: the form for transaction poolers.
 */
PG_FUNCTION_INFO_V1(sbx_set_local_credential);
Datum
sbx_set_local_credential(PG_FUNCTION_ARGS)
{
	return set_credential(fcinfo, SBX_SCOPE_LOCAL);
}

/*
 * sbx_clear_credentials(provider text) returns void
 *		NULL forgets all of them.  At once: ROLLBACK does not bring them back.
 */
PG_FUNCTION_INFO_V1(sbx_clear_credentials);
Datum
sbx_clear_credentials(PG_FUNCTION_ARGS)
{
	sbx_credential_clear(PG_ARGISNULL(0) ? NULL
	                                     : text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}

/*
 * sbx_credential_list() returns setof (provider, scope)
 *		Those that the current user can use now; never a value.
 */
PG_FUNCTION_INFO_V1(sbx_credential_list);
Datum
sbx_credential_list(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result;
	SbxCredential *credential = NULL;

	InitMaterializedSRF(fcinfo, 0);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	while ((credential = sbx_credential_next(credential)) != NULL)
	{
		const char *provider_id = sbx_credential_provider(credential);
		bool local = sbx_credential_scope(credential) == SBX_SCOPE_LOCAL;
		bool nulls[2] = {false, false};
		Datum values[2];

		/* A session's credential that a local one hides is none that can be used. */
		if (sbx_credential_find(provider_id) != credential)
			continue;
		values[0] = CStringGetTextDatum(provider_id);
		values[1] = CStringGetTextDatum(local ? "local" : "session");
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* --- COPY sbx_credential_input ------------------------------------------------------- */

/* Anybody's trigger may call these with any row: look at no row but our own. */
static void
check_trigger(FunctionCallInfo fcinfo, TriggerEvent expected, const char *function)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	TriggerEvent mask =
	    TRIGGER_EVENT_OPMASK | TRIGGER_EVENT_ROW | TRIGGER_EVENT_TIMINGMASK;

	if (!CALLED_AS_TRIGGER(fcinfo) || (trigger->tg_event & mask) != expected ||
	    !sbx_catalog_is_own(RelationGetRelid(trigger->tg_relation),
	                        "sbx_credential_input"))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
		                errmsg("function \"%s\" can only be used by its own trigger",
		                       function)));
}

/*
 * sbx_credential_input_begin() returns trigger
 *		Before the first line is read: loads the library and marks the statement.
 */
PG_FUNCTION_INFO_V1(sbx_credential_input_begin);
Datum
sbx_credential_input_begin(PG_FUNCTION_ARGS)
{
	check_trigger(fcinfo, TRIGGER_EVENT_INSERT | TRIGGER_EVENT_BEFORE,
	              "sbx_credential_input_begin");
	/* Before any row: a trigger of somebody else's would be shown every key. */
	sbx_catalog_refuse_triggers(((TriggerData *) fcinfo->context)->tg_relation);
	hide_activity();
	copy_statement = GetCurrentStatementStartTimestamp();
	return PointerGetDatum(NULL);
}

typedef struct InputRow
{
	const char *provider_id;
	const json_t *credential;
	SbxCredentialScope scope;
} InputRow;

static bool
read_row(json_t *document, InputRow *row, Fault *where)
{
	const char *key;
	json_t *member;

	memset(row, 0, sizeof(*row));
	json_object_foreach (document, key, member)
	{
		if (strcmp(key, "provider") == 0 && json_is_string(member))
			row->provider_id = json_string_value(member);
		else if (strcmp(key, "credential") == 0)
			row->credential = member;
		else if (strcmp(key, "scope") == 0 && json_is_string(member) &&
		         strcmp(json_string_value(member), "session") == 0)
			row->scope = SBX_SCOPE_SESSION;
		else if (strcmp(key, "scope") == 0 && json_is_string(member) &&
		         strcmp(json_string_value(member), "local") == 0)
			row->scope = SBX_SCOPE_LOCAL;
		else
			return fault(where, "document", SBX_REASON_BAD_FORMAT);
	}
	if (row->provider_id == NULL)
		return fault(where, "document.provider", SBX_REASON_MISSING);
	if (row->credential == NULL)
		return fault(where, "document.credential", SBX_REASON_MISSING);
	return true;
}

static void
take_row(json_t *document)
{
	const char *values[SBX_MAX_CREDENTIALS] = {NULL};
	const SbxProviderKind *kind;
	InputRow row;
	Fault where = {"document", NULL, SBX_REASON_BAD_FORMAT};
	bool valid = false;

	if (!json_is_object(document) || !read_row(document, &row, &where))
		refuse(&where);
	kind = kind_of(row.provider_id);
	if (json_is_object(row.credential))
		valid = read_object(kind, (json_t *) row.credential, values, &where);
	else if (json_is_string(row.credential))
		valid = read_bare(kind, json_string_value(row.credential), values, &where);
	if (!valid)
		refuse(&where);
	sbx_credential_set(row.provider_id, values, row.scope);
}

/*
 * sbx_credential_input_row() returns trigger
 *		Takes one document.  Nothing is stored in any table.
 */
PG_FUNCTION_INFO_V1(sbx_credential_input_row);
Datum
sbx_credential_input_row(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	ErrorContextCallback *context = error_context_stack;
	SbxCall call;
	json_t *document;
	Datum value;
	bool is_null;
	char *string;

	check_trigger(fcinfo,
	              TRIGGER_EVENT_INSERT | TRIGGER_EVENT_ROW | TRIGGER_EVENT_INSTEAD,
	              "sbx_credential_input_row");

	/* COPY's own context quotes the whole line. */
	error_context_stack = NULL;
	sbx_session_begin(&call);
	value = heap_getattr(trigger->tg_trigtuple, 1,
	                     RelationGetDescr(trigger->tg_relation), &is_null);
	string = is_null ? pstrdup("") : TextDatumGetCString(value);
	sbx_json_init();
	document = sbx_json_parse(string, Min(strlen(string), SBX_MAX_CREDENTIAL), false);
	explicit_bzero(string, strlen(string));
	PG_TRY();
	{
		take_row(document);
	}
	PG_FINALLY();
	{
		json_decref(document);
	}
	PG_END_TRY();
	sbx_session_end(&call);
	error_context_stack = context;
	/* RETURNING and later triggers get an empty row: what was given is not readable. */
	value = (Datum) 0;
	is_null = true;
	return PointerGetDatum(
	    heap_form_tuple(RelationGetDescr(trigger->tg_relation), &value, &is_null));
}
