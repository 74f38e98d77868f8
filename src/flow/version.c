/*
 * version.c
 *		sbx_router_version: what is at work here.
 */
#include "compat.h"

#include "flow/call.h"
#include "flow/session.h"
#include "net/libcurl.h"
#include "store/catalog.h"
#include "utils/builtins.h"

static void
set_text(const char *text, Datum *value, bool *is_null)
{
	*is_null = text == NULL || text[0] == '\0';
	if (!*is_null)
		*value = CStringGetTextDatum(text);
}

/* The file that certificates are verified with: the setting's, or libcurl's own. */
static const char *
ca_file(const SbxLibcurlFacts *libcurl)
{
	const char *setting = sbx_session_settings()->ca_file;

	return setting[0] == '\0' ? libcurl->ca_file : setting;
}

/*
 * sbx_router_version() returns record (extension text, library text, postgresql text,
 *					libcurl text, tls text, resolver text, ca_file text)
 *		Versions of the SQL objects, of the library, of the server and of libcurl with
 *		its TLS library; how names are resolved (threaded, c-ares); the file of CA
 *		certificates in force, NULL when there is none.
 *
 *		Errors: none.
 */
PG_FUNCTION_INFO_V1(sbx_router_version);
Datum
sbx_router_version(PG_FUNCTION_ARGS)
{
	SbxLibcurlFacts libcurl;
	Datum values[7] = {0};
	bool nulls[7];

	sbx_libcurl_describe(&libcurl);
	set_text(sbx_catalog_extension_version(), &values[0], &nulls[0]);
	set_text(SBX_ROUTER_VERSION, &values[1], &nulls[1]);
	set_text(GetConfigOption("server_version", false, false), &values[2], &nulls[2]);
	set_text(libcurl.version, &values[3], &nulls[3]);
	set_text(libcurl.tls, &values[4], &nulls[4]);
	set_text(libcurl.resolver, &values[5], &nulls[5]);
	set_text(ca_file(&libcurl), &values[6], &nulls[6]);
	return sbx_call_row(fcinfo, values, nulls);
}
