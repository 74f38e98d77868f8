/*
 * registry.c
 *		sbx_provider rows: read, written, validated.
 */
#include "store/registry.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "store/catalog.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/memutils.h"

/* Longest endpoint; real ones are below 100 bytes. */
#define SBX_MAX_URL 2048

#define ROW_COLUMNS                                                                    \
	"id, kind, enabled, settings, capabilities, signals, capacity, registered_by"

static SbxStatement select_all = {"SELECT " ROW_COLUMNS
                                  " FROM %1$s.sbx_provider ORDER BY id"};

static SbxStatement select_for_update = {
    "SELECT " ROW_COLUMNS " FROM %1$s.sbx_provider WHERE id OPERATOR(pg_catalog.=) $1"
    " FOR NO KEY UPDATE",
    1,
    {TEXTOID}};

static SbxStatement insert_row = {
    "INSERT INTO %1$s.sbx_provider (" ROW_COLUMNS ")"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING",
    8,
    {TEXTOID, TEXTOID, BOOLOID, JSONBOID, JSONBOID, JSONBOID, JSONBOID, REGROLEOID}};

static SbxStatement update_row = {
    "UPDATE %1$s.sbx_provider SET kind = $2, enabled = $3, settings = $4,"
    " capabilities = $5, signals = $6, capacity = $7, registered_by = $8"
    " WHERE id OPERATOR(pg_catalog.=) $1",
    8,
    {TEXTOID, TEXTOID, BOOLOID, JSONBOID, JSONBOID, JSONBOID, JSONBOID, REGROLEOID}};

static SbxStatement delete_row = {
    "DELETE FROM %1$s.sbx_provider WHERE id OPERATOR(pg_catalog.=) $1", 1, {TEXTOID}};

static SbxStatement select_sandbox = {"SELECT 1 FROM %1$s.sbx_mapping WHERE "
                                      "provider_id OPERATOR(pg_catalog.=) $1 LIMIT 1",
                                      1,
                                      {TEXTOID}};

/* --- settings ----------------------------------------------------------- */

static char *
read_url(const SbxPath *path, const JsonbValue *value)
{
	char *url = sbx_jsonb_text(path, value);
	const char *authority;

	if (strlen(url) > SBX_MAX_URL)
		sbx_refuse(path, SBX_REASON_TOO_LARGE, NULL);
	if (strncmp(url, "https://", 8) == 0)
		authority = url + 8;
	else if (strncmp(url, "http://", 7) == 0)
		authority = url + 7;
	else
		sbx_refuse(path, SBX_REASON_BAD_FORMAT, _("An endpoint starts with https://."));

	/* No user, no query, no fragment, nothing that needs encoding. */
	if (*authority == '\0' || *authority == '/' || strpbrk(url, "@?#\\ \"<>") != NULL)
		sbx_refuse(path, SBX_REASON_BAD_FORMAT, NULL);
	return url;
}

/* The longest name that DNS has. */
#define MAX_HOST 253

/* Requests will go there: nothing that ends a host name in a URL. */
static char *
read_host(const SbxPath *path, const JsonbValue *value)
{
	char *host = sbx_jsonb_text(path, value);

	if (strlen(host) > MAX_HOST)
		sbx_refuse(path, SBX_REASON_TOO_LARGE, NULL);
	if (host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-")] != '\0' ||
	    strchr(".-", host[0]) != NULL)
		sbx_refuse(path, SBX_REASON_BAD_FORMAT, NULL);
	return host;
}

static void
read_setting(const SbxPath *path, const SbxField *field, const JsonbValue *value,
             SbxFieldValue *setting)
{
	memset(setting, 0, sizeof(*setting));
	if (value->type == jbvNull)
	{
		if (field->required)
			sbx_refuse(path, SBX_REASON_MISSING, NULL);
		return;
	}
	setting->is_set = true;
	switch (field->type)
	{
		case SBX_FIELD_TEXT:
			setting->text = sbx_jsonb_text(path, value);
			break;
		case SBX_FIELD_WORD:
			setting->text = sbx_jsonb_text(path, value);
			if (strchr(setting->text, ' ') != NULL)
				sbx_refuse(path, SBX_REASON_BAD_FORMAT, NULL);
			break;
		case SBX_FIELD_HOST:
			setting->text = read_host(path, value);
			break;
		case SBX_FIELD_URL:
			setting->text = read_url(path, value);
			break;
		case SBX_FIELD_INTEGER:
			setting->integer =
			    sbx_jsonb_range(path, value, field->minimum, field->maximum);
			break;
		case SBX_FIELD_BOOLEAN:
			setting->boolean = sbx_jsonb_bool(path, value, false);
			break;
	}
}

/* The part of a field's name before its dot, or the whole name. */
static char *
group_of(const SbxField *field)
{
	const char *dot = strchr(field->name, '.');

	return dot == NULL ? pstrdup(field->name)
	                   : pnstrdup(field->name, dot - field->name);
}

/* The members of one nested object, e.g. createParams. */
static void
read_group(const SbxPath *path, const SbxProviderKind *kind, const JsonbValue *object,
           SbxFieldValue *settings)
{
	size_t length = strlen(path->key);
	const char *keys[SBX_MAX_KEYS];
	int fields[SBX_MAX_KEYS];
	JsonbValue member[SBX_MAX_KEYS];
	int count = 0;

	for (int i = 0; kind->settings[i].name != NULL; i++)
	{
		if (strncmp(kind->settings[i].name, path->key, length) == 0 &&
		    kind->settings[i].name[length] == '.')
		{
			keys[count] = kind->settings[i].name + length + 1;
			fields[count++] = i;
		}
	}
	sbx_jsonb_members(path, object, keys, count, member, NULL);
	for (int i = 0; i < count; i++)
		read_setting(SBX_MEMBER(path, keys[i]), &kind->settings[fields[i]], &member[i],
		             &settings[fields[i]]);
}

/* A credential in the settings would end up in dumps and backups. */
static void
refuse_credentials(const SbxPath *path, const SbxProviderKind *kind, Jsonb *settings)
{
	for (int i = 0; kind->credentials[i].name != NULL; i++)
	{
		const char *name = kind->credentials[i].name;
		JsonbValue found;

		if (getKeyJsonValueFromContainer(&settings->root, name, strlen(name), &found) !=
		    NULL)
			sbx_refuse(SBX_MEMBER(path, name), SBX_REASON_SECRET,
			           _("Use sbx_set_credential() to give credentials."));
	}
}

static void
parse_settings(const SbxPath *pool, const SbxProviderKind *kind, Jsonb *settings,
               SbxFieldValue *values)
{
	const SbxPath *path = SBX_MEMBER(pool, "settings");
	const char *keys[SBX_MAX_KEYS];
	bool is_group[SBX_MAX_KEYS];
	int fields[SBX_MAX_KEYS];
	JsonbValue member[SBX_MAX_KEYS];
	JsonbValue root;
	const char *offender;
	int count = 0;

	for (int i = 0; kind->settings[i].name != NULL; i++)
	{
		char *group = group_of(&kind->settings[i]);
		bool nested = strchr(kind->settings[i].name, '.') != NULL;

		if (nested && count > 0 && strcmp(keys[count - 1], group) == 0)
			continue;
		keys[count] = group;
		is_group[count] = nested;
		fields[count++] = i;
	}
	sbx_jsonb_document(path, settings, &root);
	refuse_credentials(path, kind, settings);
	sbx_jsonb_members(path, &root, keys, count, member, NULL);
	for (int i = 0; i < count; i++)
	{
		if (is_group[i])
			read_group(SBX_MEMBER(path, keys[i]), kind, &member[i], values);
		else
			read_setting(SBX_MEMBER(path, keys[i]), &kind->settings[fields[i]],
			             &member[i], &values[fields[i]]);
	}
	offender = kind->check_settings == NULL ? NULL : kind->check_settings(values);
	if (offender != NULL)
		sbx_refuse(SBX_MEMBER(path, offender), SBX_REASON_CONFLICT, NULL);
}

/* --- a registration as a whole --------------------------------------------- */

static const SbxProviderKind *
find_kind(const SbxPath *path, const char *name)
{
	const SbxProviderKind *kind = sbx_provider_kind_find(name);
	const char *names[SBX_MAX_KEYS];
	int count = 0;

	if (kind != NULL)
		return kind;
	while (count < SBX_MAX_KEYS && sbx_provider_kinds[count] != NULL)
	{
		names[count] = sbx_provider_kinds[count]->name;
		count++;
	}
	sbx_refuse(SBX_MEMBER(path, "kind"), SBX_REASON_UNKNOWN_NAME,
	           sbx_error_nearest_hint(name, names, count));
}

/* Does it point requests elsewhere, which only superusers may? */
static bool
overrides_endpoint(const SbxProvider *provider)
{
	for (int i = 0; provider->kind->settings[i].name != NULL; i++)
	{
		if (provider->kind->settings[i].needs_superuser && provider->settings[i].is_set)
			return true;
	}
	return false;
}

/* The setting that the role in registered_by may not give; NULL = all is well. */
static const SbxField *
forbidden_setting(const SbxProvider *provider)
{
	for (int i = 0; provider->kind->settings[i].name != NULL; i++)
	{
		const SbxField *field = &provider->kind->settings[i];

		if (field->needs_superuser && provider->settings[i].is_set &&
		    !superuser_arg(provider->registered_by))
			return field;
	}
	return NULL;
}

void
sbx_registry_check_written(const SbxProvider *provider)
{
	const SbxField *field = forbidden_setting(provider);

	if (field != NULL)
		ereport(
		    ERROR,
		    (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
		     errmsg("permission denied to set \"%s\" of provider \"%s\"", field->name,
		            provider->pool.id),
		     errdetail("Only superusers may point a provider to another endpoint.")));
}

bool
sbx_registry_is_usable(const SbxProvider *provider)
{
	return forbidden_setting(provider) == NULL;
}

void
sbx_registry_check_usable(const SbxProvider *provider)
{
	const SbxField *field = forbidden_setting(provider);

	if (field != NULL)
		ereport(
		    ERROR,
		    (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
		     errmsg("provider \"%s\" cannot be used", provider->pool.id),
		     errdetail("Its setting \"%s\" counts only while the role that registered "
		               "it is a superuser.",
		               field->name),
		     errhint("A superuser can use sbx_update_provider() to answer for it.")));
}

/* A document of the pool as a value; SQL NULL is absent. */
static void
open_document(const SbxPath *path, Jsonb *jsonb, JsonbValue *value)
{
	value->type = jbvNull;
	if (jsonb != NULL)
		sbx_jsonb_document(path, jsonb, value);
}

void
sbx_registry_parse(const SbxRegistration *registration, SbxDeclared *declared,
                   SbxProvider *provider)
{
	const SbxPath root = {SBX_DOCUMENT_PROVIDER, NULL, "provider"};
	const SbxPath *path = &root;
	SbxPool *pool = &provider->pool;
	JsonbValue document;

	memset(provider, 0, sizeof(*provider));
	if (!sbx_is_provider_id(registration->id))
		sbx_refuse(SBX_MEMBER(path, "id"), SBX_REASON_BAD_FORMAT,
		           _("An id starts with a letter or digit, followed by at most 62 "
		             "letters, digits, dots, underscores or hyphens."));
	provider->kind = find_kind(path, registration->kind);
	provider->enabled = registration->enabled;
	provider->registered_by = registration->registered_by;
	pool->id = pstrdup(registration->id);
	pool->enabled = registration->enabled;
	provider->launch.max_env = provider->kind->max_launch_env;
	provider->launch.carries_variable = provider->kind->carries_variable;
	provider->launch.carries_label = provider->kind->carries_label;
	provider->launch.create_timeout = provider->kind->launch_create_timeout;
	provider->launch.detached = provider->kind->detached_launch;
	provider->launch.max_labels =
	    provider->kind->max_labels < 0
	        ? -1
	        : Max(provider->kind->max_labels - SBX_ROUTER_LABELS_ALWAYS, 0);
	parse_settings(path, provider->kind, registration->settings, provider->settings);
	open_document(SBX_MEMBER(path, "capabilities"), registration->capabilities,
	              &document);
	sbx_profile_parse(path, &document, declared, &pool->profile);
	open_document(SBX_MEMBER(path, "signals"), registration->signals, &document);
	sbx_signals_parse(path, &document, &pool->signals);
	open_document(SBX_MEMBER(path, "capacity"), registration->capacity, &document);
	sbx_capacity_parse(path, &document, &provider->capacity);
}

/* --- rows ------------------------------------------------------------------ */

static Jsonb *
read_jsonb(SbxCatalogScope *scope, int row, int column)
{
	bool is_null;
	Datum value = sbx_catalog_datum(scope, row, column, &is_null);

	return is_null ? NULL : DatumGetJsonbP(value);
}

static void
read_row(SbxCatalogScope *scope, int row, SbxRegistration *registration)
{
	bool is_null;

	registration->id = sbx_catalog_text(scope, row, 1);
	registration->kind = sbx_catalog_text(scope, row, 2);
	registration->enabled = DatumGetBool(sbx_catalog_datum(scope, row, 3, &is_null));
	registration->settings = read_jsonb(scope, row, 4);
	registration->capabilities = read_jsonb(scope, row, 5);
	registration->signals = read_jsonb(scope, row, 6);
	registration->capacity = read_jsonb(scope, row, 7);
	registration->registered_by =
	    DatumGetObjectId(sbx_catalog_datum(scope, row, 8, &is_null));
}

SbxRegistration *
sbx_registry_read_for_update(const char *id)
{
	SbxRegistration *registration = palloc(sizeof(SbxRegistration));
	Datum value = CStringGetTextDatum(id);
	SbxCatalogScope scope;
	bool found;

	sbx_catalog_begin(&scope);
	sbx_catalog_execute(&select_for_update, &value, NULL);
	found = SPI_processed > 0;
	if (found)
		read_row(&scope, 0, registration);
	sbx_catalog_end(&scope);
	return found ? registration : NULL;
}

/* --- the cache ---------------------------------------------------------------- */

/*
 * All pools, parsed.  An outdated one lives on for whoever still works with it: a
 * hook further down the stack may have changed a registration.
 */
struct CachedRegistry
{
	SbxRegistry registry; /* first */
	MemoryContext context;
	int pins;
	bool outdated;
	int *overriding; /* pools that override an endpoint: indexes */
	int overriding_count;
};

static struct CachedRegistry *cached = NULL;
static bool cache_valid = false;
static Oid cached_relid = InvalidOid;

/* No catalog access here: a flag, and the rest at the next use. */
static void
registrations_changed(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == cached_relid)
		cache_valid = false;
}

static void
release(struct CachedRegistry *registry)
{
	if (registry->pins == 0 && registry->outdated)
		MemoryContextDelete(registry->context);
}

static void
unpin(void *arg)
{
	struct CachedRegistry *registry = arg;

	registry->pins--;
	release(registry);
}

static void
pin(struct CachedRegistry *registry)
{
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));

	callback->func = unpin;
	callback->arg = registry;
	registry->pins++;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
}

/* A stored row that is not valid: which one? */
static void
name_registration(void *arg)
{
	errcontext("registration of provider \"%s\"", (const char *) arg);
}

static void
parse_stored(const SbxRegistration *registration, SbxDeclared *declared,
             SbxProvider *provider)
{
	ErrorContextCallback context;

	context.callback = name_registration;
	context.arg = unconstify(char *, registration->id);
	context.previous = error_context_stack;
	error_context_stack = &context;
	sbx_registry_parse(registration, declared, provider);
	error_context_stack = context.previous;
}

static SbxRegistration *
read_all(int *count)
{
	SbxRegistration *registrations;
	SbxCatalogScope scope;

	sbx_catalog_begin(&scope);
	sbx_catalog_execute_latest(&select_all, NULL, NULL);
	*count = (int) SPI_processed;
	registrations = MemoryContextAlloc(scope.caller_context,
	                                   sizeof(SbxRegistration) * (*count + 1));
	for (int i = 0; i < *count; i++)
		read_row(&scope, i, &registrations[i]);
	sbx_catalog_end(&scope);
	return registrations;
}

/* Read and parse into a context of its own, which goes with an ERROR. */
static struct CachedRegistry *
load(void)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(caller, "sbx_router registrations",
	                                              ALLOCSET_DEFAULT_SIZES);
	struct CachedRegistry *loaded =
	    MemoryContextAllocZero(context, sizeof(struct CachedRegistry));
	SbxRegistry *registry = &loaded->registry;
	SbxRegistration *rows;

	loaded->context = context;
	rows = read_all(&registry->count);
	MemoryContextSwitchTo(context);
	registry->declared = sbx_declared_create(context);
	registry->providers = palloc(sizeof(SbxProvider) * (registry->count + 1));
	loaded->overriding = palloc(sizeof(int) * (registry->count + 1));
	for (int i = 0; i < registry->count; i++)
	{
		parse_stored(&rows[i], registry->declared, &registry->providers[i]);
		registry->providers[i].pool.launch = &registry->providers[i].launch;
		if (overrides_endpoint(&registry->providers[i]))
			loaded->overriding[loaded->overriding_count++] = i;
	}
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(context, TopMemoryContext);
	return loaded;
}

/*
 * The flag is set before the rows are read, under the newest snapshot, and the whole
 * is repeated while somebody clears it meanwhile: otherwise a commit that arrives
 * during the scan would be missed for ever.
 */
static void
reload(void)
{
	struct CachedRegistry *fresh;

	do
	{
		cache_valid = true;
		cached_relid = sbx_catalog_relation("sbx_provider");
		PG_TRY();
		{
			fresh = load();
		}
		PG_CATCH();
		{
			cache_valid = false;
			PG_RE_THROW();
		}
		PG_END_TRY();
		if (cached != NULL)
		{
			cached->outdated = true;
			release(cached);
		}
		cached = fresh;
	} while (!cache_valid);
}

/*
 * An endpoint override counts only while its registrar is superuser, which no
 * invalidation tells: asked each time, of those few that override one.
 */
static void
refresh_usability(struct CachedRegistry *registry)
{
	for (int i = 0; i < registry->overriding_count; i++)
	{
		SbxProvider *provider = &registry->registry.providers[registry->overriding[i]];

		provider->pool.enabled =
		    provider->enabled && forbidden_setting(provider) == NULL;
	}
}

const SbxRegistry *
sbx_registry_get(void)
{
	static bool registered = false;

	if (!registered)
	{
		CacheRegisterRelcacheCallback(registrations_changed, (Datum) 0);
		registered = true;
	}

	/* Nothing on the cached path takes a lock, so nothing else would read them. */
	AcceptInvalidationMessages();
	if (!cache_valid || cached == NULL)
		reload();
	pin(cached);
	refresh_usability(cached);
	return &cached->registry;
}

static int
compare_to_id(const void *key, const void *provider)
{
	return strcmp(key, ((const SbxProvider *) provider)->pool.id);
}

int
sbx_registry_index(const SbxRegistry *registry, const char *id)
{
	const SbxProvider *found = bsearch(id, registry->providers, registry->count,
	                                   sizeof(SbxProvider), compare_to_id);

	return found == NULL ? -1 : (int) (found - registry->providers);
}

const SbxProvider *
sbx_registry_find(const char *id)
{
	const SbxRegistry *registry = sbx_registry_get();
	int index = sbx_registry_index(registry, id);

	return index < 0 ? NULL : &registry->providers[index];
}

/* --- writing --------------------------------------------------------------------- */

static void
set_jsonb(Datum *values, char *nulls, int i, Jsonb *jsonb)
{
	values[i] = jsonb == NULL ? (Datum) 0 : JsonbPGetDatum(jsonb);
	nulls[i] = jsonb == NULL ? 'n' : ' ';
}

static int
write_row(SbxStatement *statement, const SbxRegistration *registration)
{
	SbxCatalogScope scope;
	Datum values[8];
	char nulls[] = "        ";
	int rows;

	values[0] = CStringGetTextDatum(registration->id);
	values[1] = CStringGetTextDatum(registration->kind);
	values[2] = BoolGetDatum(registration->enabled);
	set_jsonb(values, nulls, 3, registration->settings);
	set_jsonb(values, nulls, 4, registration->capabilities);
	set_jsonb(values, nulls, 5, registration->signals);
	set_jsonb(values, nulls, 6, registration->capacity);
	values[7] = ObjectIdGetDatum(registration->registered_by);

	sbx_catalog_begin_write(&scope, "sbx_provider");
	sbx_catalog_execute(statement, values, nulls);
	rows = (int) SPI_processed;
	sbx_catalog_end(&scope);
	return rows;
}

void
sbx_registry_insert(const SbxRegistration *registration)
{
	if (write_row(&insert_row, registration) == 0)
		sbx_error_document(SBX_DOCUMENT_PROVIDER, "provider.id", SBX_REASON_IN_USE,
		                   _("Use sbx_update_provider() to change a registration."));
}

void
sbx_registry_update(const SbxRegistration *registration)
{
	(void) write_row(&update_row, registration);
}

bool
sbx_registry_delete(const char *id)
{
	Datum value = CStringGetTextDatum(id);
	SbxCatalogScope scope;
	bool in_use;
	bool deleted = false;

	sbx_catalog_begin_write(&scope, "sbx_provider");
	sbx_catalog_execute_latest(&select_sandbox, &value, NULL);
	in_use = SPI_processed > 0;
	if (!in_use)
	{
		sbx_catalog_execute(&delete_row, &value, NULL);
		deleted = SPI_processed > 0;
	}
	sbx_catalog_end(&scope);
	if (in_use)
		ereport(ERROR,
		        (errcode(SBX_ERRCODE_INVALID_REGISTRATION),
		         errmsg("provider \"%s\" still has sandboxes", id),
		         errdetail_internal("{\"path\":\"provider.id\",\"reason\":\"in_use\"}"),
		         errhint("Destroy the sandboxes of this provider first.")));
	return deleted;
}
