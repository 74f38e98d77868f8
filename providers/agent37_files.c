/*
 * agent37_files.c
 *		Files of an Agent37 instance, up and down, byte for byte.
 */
#include <string.h>

#include "providers/agent37.h"

#define AGENT37_HOME_DIR "/home/node"

/* Megabytes over a slow line take minutes. */
#define AGENT37_FILE_TIMEOUT_MS (10 * 60 * 1000)

typedef struct SbxAgent37File
{
	SbxAgent37State state; /* first */
	const char *path;      /* absolute */
	const char *bytes;
	size_t length;
	size_t max_bytes;
} SbxAgent37File;

static SbxStep agent37_upload_start;
static SbxStep agent37_upload_send;
static SbxStep agent37_upload_answered;
static SbxStep agent37_upload_stored;
static SbxStep agent37_download_start;
static SbxStep agent37_download_send;
static SbxStep agent37_download_answered;

static SbxOp *
agent37_make_file_op(const SbxAccount *account, const char *operation,
                     SbxStep *first_step, const SbxTarget *target, const char *path)
{
	const SbxFieldValue *home = &account->settings[AGENT37_SET_HOME_DIR];
	SbxOp *op =
	    sbx_agent37_make_op(account, operation, first_step, sizeof(SbxAgent37File),
	                        AGENT37_ARENA_SMALL, AGENT37_FILE_TIMEOUT_MS);
	SbxAgent37File *file;

	if (op == NULL)
		return NULL;
	file = op->state;
	sbx_agent37_set_target(op, target);
	file->path =
	    path[0] == '/'
	        ? sbx_arena_strdup(&op->arena, path)
	        : sbx_arena_printf(&op->arena, "%s/%s",
	                           home->is_set ? home->text : AGENT37_HOME_DIR, path);
	if (*path == '\0')
		file->state.steps.step = sbx_steps_refuse;
	return op;
}

/* --- up ------------------------------------------------------------------- */

SbxOp *
sbx_agent37_upload(const SbxAccount *account, const SbxTarget *target,
                   const SbxUploadInput *input)
{
	SbxOp *op = agent37_make_file_op(account, "upload", agent37_upload_start, target,
	                                 input->path);
	SbxAgent37File *file;

	if (op == NULL)
		return NULL;
	file = op->state;
	file->length = input->length;
	file->bytes = sbx_steps_copy_content(op, input);
	return sbx_steps_made(op);
}

static SbxOpWant
agent37_upload_start(SbxOp *op)
{
	return sbx_agent37_open(op, agent37_upload_send);
}

static SbxOpWant
agent37_upload_send(SbxOp *op)
{
	SbxAgent37File *file = op->state;

	return sbx_agent37_send_file(op, file->path, file->bytes, file->length,
	                             agent37_upload_answered);
}

static SbxOpWant
agent37_upload_answered(SbxOp *op)
{
	SbxAgent37File *file = op->state;

	file->state.steps.acted |= sbx_steps_may_have_arrived(op);
	return sbx_steps_is_success(op)
	           ? sbx_agent37_file_stored(op, file->length, agent37_upload_stored)
	           : sbx_agent37_file_refused(op, agent37_upload_send);
}

static SbxOpWant
agent37_upload_stored(SbxOp *op)
{
	return sbx_op_succeed(op, NULL);
}

/* --- down ----------------------------------------------------------------- */

SbxOp *
sbx_agent37_download(const SbxAccount *account, const SbxTarget *target,
                     const char *path, size_t max_bytes)
{
	SbxOp *op =
	    agent37_make_file_op(account, "download", agent37_download_start, target, path);

	if (op == NULL)
		return NULL;
	((SbxAgent37File *) op->state)->max_bytes = max_bytes > 0 ? max_bytes : 1;
	return sbx_steps_made(op);
}

static SbxOpWant
agent37_download_start(SbxOp *op)
{
	return sbx_agent37_open(op, agent37_download_send);
}

static SbxOpWant
agent37_download_send(SbxOp *op)
{
	SbxAgent37File *file = op->state;
	SbxOpWant want =
	    sbx_agent37_send_file(op, file->path, NULL, 0, agent37_download_answered);

	sbx_steps_expect_file(op, file->max_bytes);
	return want;
}

/*
 * The program of a template of one's own may answer every path with a page: only the
 * provider's sends what was asked for as an attachment.
 */
static bool
agent37_is_attachment(SbxOp *op)
{
	const char *disposition = sbx_op_response_header(op, "Content-Disposition");

	return disposition != NULL && sbx_ascii_equal(disposition, "attachment", 10);
}

static SbxOpWant
agent37_download_answered(SbxOp *op)
{
	SbxAgent37File *file = op->state;

	if (sbx_steps_is_file_too_large(op, file->max_bytes))
		return sbx_steps_fail_response(op, "FILE_TOO_LARGE");
	if (op->response.status != 200)
		return sbx_agent37_file_refused(op, agent37_download_send);
	if (!agent37_is_attachment(op))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "NO_FILE_SERVICE");
	return sbx_steps_succeed_with_file(op);
}
