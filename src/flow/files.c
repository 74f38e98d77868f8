/*
 * files.c
 *		Files of a sandbox: sbx_upload, sbx_download.
 */
#include "compat.h"

#include "access/detoast.h"
#include "flow/call.h"
#include "flow/sandbox.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"

/* Longest path, as on Linux. */
#define MAX_PATH_BYTES 4096

/* The argument path, as the wire has it. */
static char *
file_path(FunctionCallInfo fcinfo, int n)
{
	char *path = text_to_cstring(PG_GETARG_TEXT_PP(n));

	sbx_check_text(SBX_CALL_PATH("path"), path);
	path = sbx_session_to_utf8(path);
	if (strlen(path) > MAX_PATH_BYTES)
		sbx_call_refuse("path", SBX_REASON_TOO_LARGE);
	return path;
}

/* Before the value is read: it may be stored compressed, elsewhere, and be huge. */
static void
check_content_size(Datum content)
{
	if (toast_raw_datum_size(content) - VARHDRSZ > sbx_session_max_file_size())
		sbx_error_document(
		    SBX_DOCUMENT_ARGUMENT, "content", SBX_REASON_TOO_LARGE,
		    _("The setting \"sbx_router.max_file_size\" says how large a "
		      "file may be."));
}

/*
 * sbx_upload(id text, path text, content bytea) returns void
 *		Writes a file, with the directories that lead there; one that exists is
 *		replaced.  A relative path starts at the home directory of the sandbox.
 *		The file stays when the transaction is rolled back.
 *
 *		Errors: SB001 invalid path, or content larger than
 *		sbx_router.max_file_size, SB008 (DETAIL code FILE_ACCESS_DENIED,
 *		INVALID_FILE_PATH, HOME_UNKNOWN), SB010, SB011, 25006.
 */
PG_FUNCTION_INFO_V1(sbx_upload);
Datum
sbx_upload(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxUploadInput input;
	SbxCall call;
	bytea *content;

	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_upload()");
	input.path = file_path(fcinfo, 1);
	check_content_size(PG_GETARG_DATUM(2));
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	sbx_sandbox_check_supported(sandbox.kind, sandbox.kind->upload != NULL,
	                            "sbx_upload()");
	content = PG_GETARG_BYTEA_PP(2);
	input.bytes = VARDATA_ANY(content);
	input.length = VARSIZE_ANY_EXHDR(content);

	/* 128 random bits: no content can have been made to hold them. */
	input.boundary = psprintf("sbx-%s", sbx_session_random_hex(16));
	sbx_sandbox_run(&sandbox, sandbox.kind->upload(&sandbox.access.account,
	                                               &sandbox.target, &input));
	sbx_session_end(&call);
	PG_RETURN_VOID();
}

/*
 * sbx_download(id text, path text) returns bytea
 *		The bytes of a file.  A relative path starts at the home directory of the
 *		sandbox.
 *
 *		Errors: SB001 invalid path, SB008 (DETAIL code FILE_NOT_FOUND,
 *		FILE_ACCESS_DENIED, INVALID_FILE_PATH, HOME_UNKNOWN, or FILE_TOO_LARGE above
 *		sbx_router.max_file_size), SB010, SB011.
 */
PG_FUNCTION_INFO_V1(sbx_download);
Datum
sbx_download(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxFileContent *file;
	SbxCall call;
	SbxOp *op;
	char *path;
	bytea *content;

	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_download()");
	path = file_path(fcinfo, 1);
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	sbx_sandbox_check_supported(sandbox.kind, sandbox.kind->download != NULL,
	                            "sbx_download()");
	op = sandbox.kind->download(&sandbox.access.account, &sandbox.target, path,
	                            sbx_session_max_file_size());
	file = sbx_sandbox_run(&sandbox, op)->result;

	content = palloc(file->length + VARHDRSZ);
	SET_VARSIZE(content, file->length + VARHDRSZ);
	memcpy(VARDATA(content), file->bytes, file->length);
	sbx_session_end(&call);
	PG_RETURN_BYTEA_P(content);
}
