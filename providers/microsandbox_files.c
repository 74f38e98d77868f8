/*
 * microsandbox_files.c
 *		Files of a Microsandbox sandbox, up and down, byte for byte.
 *
 * A shell moves them between its streams and a file, and says with its exit code what is
 * wrong with the path.
 */
#include <string.h>

#include "providers/microsandbox.h"

/* Megabytes over a slow line take minutes. */
#define MICROSANDBOX_FILE_TIMEOUT_MS (10 * 60 * 1000)

/* Of that, for the command itself. */
#define MICROSANDBOX_FILE_COMMAND_MS (9 * 60 * 1000)

/* What the exit codes of the texts below mean. */
enum
{
	FILE_NOT_FOUND = 64,
	FILE_INVALID_PATH,
	FILE_ACCESS_DENIED,
	FILE_INCOMPLETE
};

/* A relative path counts from the home directory. */
#define GO_HOME "case $1 in /*) ;; *) cd || exit 66 ;; esac; "

/* The directory that cannot be made may not be one, or not be ours. */
static const char upload_text[] =
    "{ " GO_HOME "case $1 in */) exit 65 ;; */*) d=${1%/*} ;; *) d=. ;; esac; "
    "[ ! -d \"$1\" ] || exit 65; mkdir -p -- \"${d:=/}\" || "
    "{ while [ ! -e \"$d\" ] && [ \"$d\" != \"${d%/*}\" ]; do d=${d%/*}; done; "
    "[ -d \"${d:-/}\" ] && exit 66; exit 65; }; "
    "true >\"$1\" || exit 66; cat >\"$1\" || exit 67; } 2>/dev/null";

static const char download_text[] =
    "{ " GO_HOME "[ -e \"$1\" ] || exit 64; [ ! -d \"$1\" ] || exit 65; "
    "[ -r \"$1\" ] || exit 66; cat <\"$1\"; } 2>/dev/null";

typedef struct SbxMicrosandboxFile
{
	SbxMicrosandboxCommand command; /* first */
	SbxMicrosandboxCommandLine line;
	size_t max_bytes;
} SbxMicrosandboxFile;

static SbxStep microsandbox_file_start;
static SbxStep microsandbox_uploaded;
static SbxStep microsandbox_downloaded;

static SbxOp *
microsandbox_make_file_op(const SbxAccount *account, const char *operation,
                          const SbxTarget *target, const char *path, const char *text)
{
	SbxOp *op = sbx_microsandbox_make_op(
	    account, operation, microsandbox_file_start, sizeof(SbxMicrosandboxFile),
	    MICROSANDBOX_ARENA_SMALL, MICROSANDBOX_FILE_TIMEOUT_MS);
	SbxMicrosandboxFile *file;

	if (op == NULL)
		return NULL;
	file = op->state;
	sbx_microsandbox_set_target(op, target);
	file->line.text = text;
	file->line.argument = sbx_arena_strdup(&op->arena, path);
	file->line.timeout_ms = MICROSANDBOX_FILE_COMMAND_MS;
	if (*path == '\0' || !sbx_json_is_text(path))
		file->command.state.steps.step = sbx_steps_refuse;
	return op;
}

static SbxOpWant
microsandbox_file_start(SbxOp *op)
{
	SbxMicrosandboxFile *file = op->state;

	return sbx_microsandbox_execute(op, &file->line,
	                                file->line.input != NULL ? microsandbox_uploaded
	                                                         : microsandbox_downloaded);
}

/* Done, or how it failed. */
static const char *
microsandbox_file_code(int exit_code)
{
	switch (exit_code)
	{
		case FILE_NOT_FOUND:
			return "FILE_NOT_FOUND";
		case FILE_INVALID_PATH:
			return "INVALID_FILE_PATH";
		case FILE_ACCESS_DENIED:
			return "FILE_ACCESS_DENIED";
		case FILE_INCOMPLETE:
			return "UPLOAD_INCOMPLETE";
	}
	return NULL;
}

/* --- up ------------------------------------------------------------------- */

SbxOp *
sbx_microsandbox_upload(const SbxAccount *account, const SbxTarget *target,
                        const SbxUploadInput *input)
{
	SbxOp *op =
	    microsandbox_make_file_op(account, "upload", target, input->path, upload_text);
	SbxMicrosandboxFile *file;

	if (op == NULL)
		return NULL;
	file = op->state;
	file->line.input = sbx_arena_strndup(&op->arena, input->bytes, input->length);
	file->line.input_length = input->length;
	return sbx_steps_made(op);
}

static SbxOpWant
microsandbox_uploaded(SbxOp *op)
{
	SbxSteps *steps = op->state;
	int exit_code;

	steps->acted = ((SbxMicrosandboxCommand *) op->state)->exec.asked;
	if (!sbx_microsandbox_has_ended(op, &exit_code))
		return sbx_microsandbox_fail_exec(op, NULL);
	return exit_code == 0 ? sbx_op_succeed(op, NULL)
	                      : sbx_steps_fail(op, SBX_PHASE_REMOTE,
	                                       microsandbox_file_code(exit_code));
}

/* --- down ----------------------------------------------------------------- */

/* One byte more than is wanted shows that it is too long. */
SbxOp *
sbx_microsandbox_download(const SbxAccount *account, const SbxTarget *target,
                          const char *path, size_t max_bytes)
{
	SbxOp *op =
	    microsandbox_make_file_op(account, "download", target, path, download_text);
	SbxMicrosandboxFile *file;

	if (op == NULL)
		return NULL;
	file = op->state;
	file->max_bytes = max_bytes;
	file->line.max_stream = max_bytes < SIZE_MAX ? max_bytes + 1 : SIZE_MAX;
	file->line.full_is_enough = true;
	return sbx_steps_made(op);
}

static SbxOpWant
microsandbox_downloaded(SbxOp *op)
{
	SbxMicrosandboxFile *file = op->state;
	const SbxScriptStream *out = &file->command.exec.marked.output.out;
	SbxFileContent *content;
	int exit_code;

	if (out->cut || out->length > file->max_bytes)
		return sbx_steps_fail(op, SBX_PHASE_REMOTE, "FILE_TOO_LARGE");
	if (!sbx_microsandbox_has_ended(op, &exit_code))
		return sbx_microsandbox_fail_exec(op, NULL);
	if (exit_code != 0)
		return sbx_steps_fail(op, SBX_PHASE_REMOTE, microsandbox_file_code(exit_code));
	content = sbx_arena_alloc(&op->arena, sizeof(*content));
	if (content == NULL)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	content->bytes = out->bytes != NULL ? out->bytes : "";
	content->length = out->length;
	return sbx_op_succeed(op, content);
}
