/*
 * e2b_files.c
 *		Files of an E2B sandbox, up and down, byte for byte.
 */
#include <string.h>

#include "providers/e2b.h"

/* Megabytes over a slow line take minutes. */
#define E2B_FILE_TIMEOUT_MS (10 * 60 * 1000)

typedef struct SbxE2bFile
{
	SbxE2bState state; /* first */
	const char *path;  /* of the request, the file's in its query */
	const char *bytes;
	size_t length;
	size_t max_bytes;
} SbxE2bFile;

static SbxStep e2b_upload_start;
static SbxStep e2b_upload_send;
static SbxStep e2b_upload_answered;
static SbxStep e2b_download_start;
static SbxStep e2b_download_send;
static SbxStep e2b_download_answered;

/* A relative path counts from the user's home, which is what the daemon does itself. */
static SbxOp *
e2b_make_file_op(const SbxAccount *account, const char *operation, SbxStep *first_step,
                 const SbxTarget *target, const char *path)
{
	SbxOp *op = sbx_e2b_make_op(account, operation, first_step, sizeof(SbxE2bFile),
	                            E2B_ARENA_SMALL, E2B_FILE_TIMEOUT_MS);
	SbxE2bFile *file;
	const char *encoded;

	if (op == NULL)
		return NULL;
	file = op->state;
	sbx_e2b_set_target(op, target);
	encoded = sbx_arena_url_encode(&op->arena, path);
	if (encoded != NULL)
		file->path = sbx_arena_printf(&op->arena, "/files?path=%s", encoded);
	if (*path == '\0')
		file->state.steps.step = sbx_steps_refuse;
	return op;
}

/* 404 is the file's, 502 the sandbox's. */
static SbxOpWant
e2b_fail_file(SbxOp *op)
{
	switch (op->response.status)
	{
		case 400:
			return sbx_e2b_fail_in_envd(op, "INVALID_FILE_PATH");
		case 403:
			return sbx_e2b_fail_in_envd(op, "FILE_ACCESS_DENIED");
		case 404:
			return sbx_e2b_fail_in_envd(op, "FILE_NOT_FOUND");
		case 507:
			return sbx_e2b_fail_in_envd(op, "DISK_FULL");
	}
	return sbx_e2b_fail_in_envd(op, sbx_steps_status_code(op));
}

/* --- up ------------------------------------------------------------------- */

SbxOp *
sbx_e2b_upload(const SbxAccount *account, const SbxTarget *target,
               const SbxUploadInput *input)
{
	SbxOp *op =
	    e2b_make_file_op(account, "upload", e2b_upload_start, target, input->path);
	SbxE2bFile *file;

	if (op == NULL)
		return NULL;
	file = op->state;
	file->length = input->length;
	file->bytes = sbx_steps_copy_content(op, input);
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_upload_start(SbxOp *op)
{
	return sbx_e2b_open(op, e2b_upload_send);
}

/* The same bytes to the same place: a second delivery does no harm. */
static SbxOpWant
e2b_upload_send(SbxOp *op)
{
	SbxE2bFile *file = op->state;
	SbxOpWant want =
	    sbx_e2b_send_envd(op, "POST", file->path, "application/octet-stream",
	                      file->bytes, file->length, e2b_upload_answered);

	op->request.repeatable = true;
	op->request.timeout_ms = 0;
	return want;
}

/* What was stored: [{"path":...}].  Something else that says 200 has stored nothing. */
static bool
e2b_is_stored(const SbxOp *op)
{
	json_t *answer = sbx_json_parse(op->response.body, op->response.body_length, false);
	bool stored = json_is_array(answer) &&
	              sbx_json_string(json_array_get(answer, 0), "path") != NULL;

	json_decref(answer);
	return stored;
}

static SbxOpWant
e2b_upload_answered(SbxOp *op)
{
	SbxSteps *steps = op->state;

	steps->acted |= sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return e2b_fail_file(op);
	return e2b_is_stored(op) ? sbx_op_succeed(op, NULL)
	                         : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

/* --- down ----------------------------------------------------------------- */

SbxOp *
sbx_e2b_download(const SbxAccount *account, const SbxTarget *target, const char *path,
                 size_t max_bytes)
{
	SbxOp *op = e2b_make_file_op(account, "download", e2b_download_start, target, path);

	if (op == NULL)
		return NULL;
	((SbxE2bFile *) op->state)->max_bytes = max_bytes > 0 ? max_bytes : 1;
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_download_start(SbxOp *op)
{
	return sbx_e2b_open(op, e2b_download_send);
}

static SbxOpWant
e2b_download_send(SbxOp *op)
{
	SbxE2bFile *file = op->state;
	SbxOpWant want =
	    sbx_e2b_send_envd(op, "GET", file->path, NULL, NULL, 0, e2b_download_answered);

	op->request.timeout_ms = 0;
	sbx_steps_expect_file(op, file->max_bytes);
	return want;
}

static SbxOpWant
e2b_download_answered(SbxOp *op)
{
	SbxE2bFile *file = op->state;

	if (sbx_steps_is_file_too_large(op, file->max_bytes))
		return sbx_steps_fail_response(op, "FILE_TOO_LARGE");
	if (op->response.status != 200)
		return e2b_fail_file(op);
	return sbx_steps_succeed_with_file(op);
}
