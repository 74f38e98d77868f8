/*
 * vercel_files.c
 *		Files of a Vercel sandbox, up and down, byte for byte.
 *
 * Up goes a compressed archive, which is extracted at the root: that makes the directories
 * on the way.  Down comes the content alone.
 */
#include <string.h>

#include "providers/tar.h"
#include "providers/vercel.h"

/* Megabytes over a slow line take minutes. */
#define VERCEL_FILE_TIMEOUT_MS (10 * 60 * 1000)

typedef struct SbxVercelFile
{
	SbxVercelState state; /* first */
	SbxVercelArchive archive;
	const char *body;
	size_t max_bytes;
} SbxVercelFile;

static SbxStep vercel_file_refuse;
static SbxStep vercel_upload_start;
static SbxStep vercel_upload_send;
static SbxStep vercel_upload_answered;
static SbxStep vercel_download_start;
static SbxStep vercel_download_send;
static SbxStep vercel_download_answered;

/* A relative path starts at the home directory. */
static const char *
vercel_absolute_path(SbxOp *op, const char *path)
{
	SbxVercelState *state = op->state;

	return *path == '/' ? path
	                    : sbx_arena_printf(&op->arena, "%s/%s", state->home, path);
}

static SbxOpWant
vercel_file_refuse(SbxOp *op)
{
	return sbx_op_fail(op, SBX_PHASE_NONE, "INVALID_FILE_PATH", SBX_ALLOCATION_NONE);
}

static SbxOp *
vercel_make_file_op(const SbxAccount *account, const char *operation,
                    SbxStep *first_step, const SbxTarget *target)
{
	SbxOp *op =
	    sbx_vercel_make_op(account, operation, first_step, sizeof(SbxVercelFile),
	                       VERCEL_ARENA_SMALL, VERCEL_FILE_TIMEOUT_MS);

	if (op != NULL)
		sbx_vercel_set_target(op, target);
	return op;
}

/* --- up ------------------------------------------------------------------- */

bool
sbx_vercel_pack(SbxOp *op, const char *path, const char *bytes, size_t length,
                SbxVercelArchive *archive)
{
	archive->bytes = sbx_tar_gzip(&op->arena, path + strspn(path, "/"), bytes, length,
	                              &archive->length);
	return archive->bytes != NULL;
}

SbxOpWant
sbx_vercel_send_archive(SbxOp *op, const SbxVercelArchive *archive, SbxStep *answer)
{
	SbxOpWant want;

	sbx_vercel_request(op, "POST", sbx_vercel_session_url(op, "/fs/write"));
	sbx_steps_header(op, "X-Cwd", "", "/");
	want =
	    sbx_steps_send(op, "application/gzip", archive->bytes, archive->length, answer);
	op->request.timeout_ms = 0;
	return want;
}

SbxOp *
sbx_vercel_upload(const SbxAccount *account, const SbxTarget *target,
                  const SbxUploadInput *input)
{
	SbxOp *op = vercel_make_file_op(account, "upload", vercel_upload_start, target);
	SbxVercelFile *file;
	const char *path;

	if (op == NULL)
		return NULL;
	file = op->state;
	path = vercel_absolute_path(op, input->path);
	if (path == NULL)
		return sbx_steps_made(op);
	/* An archive must not climb out of where it is extracted. */
	if (!sbx_steps_is_file_path(path))
		file->state.steps.step = vercel_file_refuse;
	else if (!sbx_vercel_pack(op, path, input->bytes, input->length, &file->archive))
		file->state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
vercel_upload_start(SbxOp *op)
{
	return sbx_vercel_open(op, vercel_upload_send);
}

/* The same bytes to the same place: a second delivery does no harm. */
static SbxOpWant
vercel_upload_send(SbxOp *op)
{
	SbxVercelFile *file = op->state;
	SbxOpWant want =
	    sbx_vercel_send_archive(op, &file->archive, vercel_upload_answered);

	op->request.repeatable = true;
	return want;
}

/* An empty object.  Something else that says 200 has stored nothing. */
static bool
vercel_is_stored(const SbxOp *op)
{
	json_t *answer = sbx_steps_object(op, false);
	bool stored = answer != NULL;

	json_decref(answer);
	return stored;
}

static SbxOpWant
vercel_upload_answered(SbxOp *op)
{
	SbxSteps *steps = op->state;

	steps->acted |= sbx_steps_may_have_arrived(op);
	if (sbx_steps_is_success(op))
		return vercel_is_stored(op) ? sbx_op_succeed(op, NULL)
		                            : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return sbx_vercel_fail_in_session(op, op->response.status == 400
	                                          ? "INVALID_FILE_PATH"
	                                          : sbx_steps_status_code(op));
}

/* --- down ----------------------------------------------------------------- */

SbxOp *
sbx_vercel_download(const SbxAccount *account, const SbxTarget *target,
                    const char *path, size_t max_bytes)
{
	SbxOp *op = vercel_make_file_op(account, "download", vercel_download_start, target);
	SbxVercelFile *file;
	json_t *body;

	if (op == NULL)
		return NULL;
	file = op->state;
	file->max_bytes = max_bytes > 0 ? max_bytes : 1;
	path = vercel_absolute_path(op, path);
	if (path == NULL)
		return sbx_steps_made(op);
	body = sbx_json_new_object();
	if (json_object_set_new(body, "path", json_string(path)) == 0)
		file->body = sbx_json_print(&op->arena, body);
	json_decref(body);
	if (file->body == NULL)
		file->state.steps.step = sbx_steps_refuse;
	if (!sbx_steps_is_file_path(path))
		file->state.steps.step = vercel_file_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
vercel_download_start(SbxOp *op)
{
	return sbx_vercel_open(op, vercel_download_send);
}

static SbxOpWant
vercel_download_send(SbxOp *op)
{
	SbxVercelFile *file = op->state;
	SbxOpWant want = sbx_vercel_send_session(op, "POST", "/fs/read", file->body,
	                                         vercel_download_answered);

	/* It only reads, whatever its method. */
	op->request.repeatable = true;
	op->request.timeout_ms = 0;
	sbx_steps_expect_file(op, file->max_bytes);
	return want;
}

/* The media type alone: it may have parameters.  Without one it is bytes. */
static bool
vercel_is_content(SbxOp *op)
{
	const char *type = sbx_op_response_header(op, "Content-Type");
	const char *bytes = "application/octet-stream";
	size_t length = strlen(bytes);

	return type == NULL ||
	       (strlen(type) >= length && sbx_ascii_equal(type, bytes, length) &&
	        strchr(" ;", type[length]) != NULL);
}

static SbxOpWant
vercel_fail_download(SbxOp *op)
{
	switch (op->response.status)
	{
		case 400:
			return sbx_vercel_fail_in_session(op, "INVALID_FILE_PATH");
		case 404:
			return sbx_vercel_fail_in_session(op, "FILE_NOT_FOUND");
	}
	return sbx_vercel_fail_in_session(op, sbx_steps_status_code(op));
}

static SbxOpWant
vercel_download_answered(SbxOp *op)
{
	SbxVercelFile *file = op->state;

	if (sbx_steps_is_file_too_large(op, file->max_bytes))
		return sbx_steps_fail_response(op, "FILE_TOO_LARGE");
	if (op->response.status != 200)
		return vercel_fail_download(op);
	if (!vercel_is_content(op))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return sbx_steps_succeed_with_file(op);
}
