/*
 * freestyle_files.c
 *		Files of a machine of Freestyle's, up and down, byte for byte.
 */
#include <string.h>

#include "providers/freestyle.h"

#define FREESTYLE_HOME_DIR "/home/ubuntu"

/* Characters of a path. */
#define FREESTYLE_PATH_MAX 4096

/* Megabytes over a slow line take minutes. */
#define FREESTYLE_FILE_TIMEOUT_MS (10 * 60 * 1000)

/* Both ways; the file is what goes up, or the path of what comes down. */
typedef struct SbxFreestyleTransfer
{
	SbxFreestyleWriter writer; /* first */
	size_t max_bytes;
} SbxFreestyleTransfer;

static SbxStep freestyle_file_refuse;
static SbxStep freestyle_upload_start;
static SbxStep freestyle_upload_stored;
static SbxStep freestyle_download_start;
static SbxStep freestyle_download_send;
static SbxStep freestyle_download_answered;

/* The provider refuses a part "..", too. */
static bool
freestyle_is_file_path(const char *path)
{
	return sbx_steps_is_file_path(path) && strlen(path) <= FREESTYLE_PATH_MAX &&
	       sbx_json_is_text(path);
}

static SbxOpWant
freestyle_file_refuse(SbxOp *op)
{
	return sbx_op_fail(op, SBX_PHASE_NONE, "INVALID_FILE_PATH", SBX_ALLOCATION_NONE);
}

static SbxOp *
freestyle_make_file_op(const SbxAccount *account, const char *operation,
                       SbxStep *first_step, const SbxTarget *target, const char *path)
{
	const SbxFieldValue *home = &account->settings[FREESTYLE_SET_HOME_DIR];
	SbxOp *op = sbx_freestyle_make_op(account, operation, first_step,
	                                  sizeof(SbxFreestyleTransfer),
	                                  FREESTYLE_ARENA_SMALL, FREESTYLE_FILE_TIMEOUT_MS);
	SbxFreestyleFile *file;

	if (op == NULL)
		return NULL;
	file = &((SbxFreestyleWriter *) op->state)->file;
	sbx_freestyle_set_target(op, target);
	file->path =
	    path[0] == '/'
	        ? sbx_arena_strdup(&op->arena, path)
	        : sbx_arena_printf(&op->arena, "%s/%s",
	                           home->is_set ? home->text : FREESTYLE_HOME_DIR, path);
	if (*path == '\0' || (file->path != NULL && !freestyle_is_file_path(file->path)))
		((SbxSteps *) op->state)->step = freestyle_file_refuse;
	return op;
}

/* --- up ------------------------------------------------------------------- */

/* Without a mode a file that is there keeps its own, and a new one is its user's alone. */
SbxOp *
sbx_freestyle_upload(const SbxAccount *account, const SbxTarget *target,
                     const SbxUploadInput *input)
{
	SbxOp *op = freestyle_make_file_op(account, "upload", freestyle_upload_start,
	                                   target, input->path);
	SbxFreestyleFile *file;

	if (op == NULL)
		return NULL;
	file = &((SbxFreestyleWriter *) op->state)->file;
	file->length = input->length;
	file->stored = freestyle_upload_stored;
	file->bytes = sbx_steps_copy_content(op, input);
	return sbx_steps_made(op);
}

static SbxOpWant
freestyle_upload_start(SbxOp *op)
{
	return sbx_freestyle_open(op, sbx_freestyle_store);
}

static SbxOpWant
freestyle_upload_stored(SbxOp *op)
{
	return sbx_op_succeed(op, NULL);
}

/* --- down ----------------------------------------------------------------- */

SbxOp *
sbx_freestyle_download(const SbxAccount *account, const SbxTarget *target,
                       const char *path, size_t max_bytes)
{
	SbxOp *op = freestyle_make_file_op(account, "download", freestyle_download_start,
	                                   target, path);

	if (op == NULL)
		return NULL;
	((SbxFreestyleTransfer *) op->state)->max_bytes = max_bytes > 0 ? max_bytes : 1;
	return sbx_steps_made(op);
}

static SbxOpWant
freestyle_download_start(SbxOp *op)
{
	return sbx_freestyle_open(op, freestyle_download_send);
}

/* What is compressed on the way would not be the file's bytes. */
static SbxOpWant
freestyle_download_send(SbxOp *op)
{
	SbxFreestyleTransfer *transfer = op->state;
	const char *url = sbx_freestyle_file_url(op, "read", transfer->writer.file.path);
	SbxOpWant want =
	    sbx_freestyle_send(op, "GET", url, NULL, freestyle_download_answered);

	if (!sbx_op_header(op, "Accept-Encoding", "", "identity"))
		return sbx_steps_refuse(op);
	op->request.timeout_ms = 0;
	sbx_steps_expect_file(op, transfer->max_bytes);
	return want;
}

/* A web page of something else may come with a success, too. */
static bool
freestyle_is_content(SbxOp *op)
{
	const char *type = sbx_op_response_header(op, "Content-Type");
	const char *page = "text/html";

	return type == NULL || !sbx_ascii_equal(type, page, strlen(page));
}

static SbxOpWant
freestyle_download_answered(SbxOp *op)
{
	SbxFreestyleTransfer *transfer = op->state;

	if (sbx_steps_is_file_too_large(op, transfer->max_bytes))
		return sbx_steps_fail_response(op, "FILE_TOO_LARGE");
	if (op->response.status != 200)
		return sbx_freestyle_file_refused(op, true);
	if (!freestyle_is_content(op))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return sbx_steps_succeed_with_file(op);
}
