/*
 * daytona_files.c
 *		Files of a Daytona sandbox, up and down, byte for byte.
 */
#include <string.h>

#include "providers/daytona.h"
#include "providers/script.h"

/* Megabytes over a slow line take minutes. */
#define DAYTONA_FILE_TIMEOUT_MS (10 * 60 * 1000)

/* What the sandbox gets to count the bytes of a file. */
#define DAYTONA_COUNT_SECONDS 8

/*
 * Room around the content of an upload, so that megabytes are copied once.  A path has
 * at most 4096 bytes, and as much again for the home directory.
 */
#define DAYTONA_FORM_HEAD ((size_t) 10 * 1024)
#define DAYTONA_FORM_TAIL ((size_t) SBX_SANDBOX_ID_MAX + 16)

typedef struct SbxDaytonaFile
{
	SbxDaytonaState state; /* first */
	const char *path;
	const char *home_dir; /* the setting, if it is of use; or NULL */
	SbxStep *addressed;   /* what comes once the path is absolute */

	/* Of an upload: a form, of which the content has its place from the start. */
	char *form;
	size_t length; /* of the content */
	const char *boundary;

	/* Of a download. */
	size_t max_bytes;
} SbxDaytonaFile;

static SbxStep daytona_file_start;
static SbxStep daytona_file_address;
static SbxStep daytona_file_at_home;
static SbxStep daytona_upload_send;
static SbxStep daytona_upload_answered;
static SbxStep daytona_upload_counted;
static SbxStep daytona_download_send;
static SbxStep daytona_download_answered;

static SbxOp *
daytona_make_file_op(const SbxAccount *account, const char *operation,
                     SbxStep *addressed, const SbxTarget *target, const char *path)
{
	const SbxFieldValue *home = &account->settings[DAYTONA_SET_HOME_DIR];
	SbxOp *op = sbx_daytona_make_op(account, operation, daytona_file_start,
	                                sizeof(SbxDaytonaFile), DAYTONA_ARENA_SMALL,
	                                DAYTONA_FILE_TIMEOUT_MS);
	SbxDaytonaFile *file;

	if (op == NULL)
		return NULL;
	file = op->state;
	file->addressed = addressed;
	file->path = sbx_arena_strdup(&op->arena, path);
	if (home->is_set && home->text[0] == '/')
		file->home_dir = sbx_arena_strdup(&op->arena, home->text);
	sbx_daytona_set_target(op, target);

	/* A line break would end a line of the form that the path is sent in. */
	if (*path == '\0' || strpbrk(path, "\r\n") != NULL)
		file->state.steps.step = sbx_steps_refuse;
	return op;
}

static SbxOpWant
daytona_file_start(SbxOp *op)
{
	return sbx_daytona_open_toolbox(op, daytona_file_address);
}

/* --- where? ------------------------------------------------------------- */

/*
 * A relative path counts from the home directory, as a shell's does at login.  The
 * toolbox would take its own working directory.
 */
static SbxOpWant
daytona_file_address(SbxOp *op)
{
	SbxDaytonaFile *file = op->state;

	if (file->path[0] == '/')
		return file->addressed(op);
	return sbx_daytona_send_toolbox(op, "GET", "/user-home-dir", NULL,
	                                daytona_file_at_home);
}

static SbxOpWant
daytona_file_at_home(SbxOp *op)
{
	SbxDaytonaFile *file = op->state;
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	const char *told = sbx_json_string(answer, "dir");
	const char *home = told != NULL && told[0] == '/' ? told : file->home_dir;

	if (home != NULL)
		file->path = sbx_arena_printf(&op->arena, "%s/%s", home, file->path);
	json_decref(answer);
	if (home != NULL && file->path != NULL && strpbrk(file->path, "\r\n") == NULL)
		return file->addressed(op);
	if (op->response.status != 200)
		return sbx_daytona_fail_in_toolbox(op, NULL);
	return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "HOME_UNKNOWN");
}

/* --- refusals ----------------------------------------------------------- */

/*
 * The toolbox's own codes where it gives one, else what its status means here.  A 400 to
 * an upload can mean anything, from a bad path to a full disk.
 */
static const char *
daytona_file_code(const SbxOp *op)
{
	static const char *const known[] = {"FILE_NOT_FOUND", "FILE_ACCESS_DENIED",
	                                    "INVALID_FILE_PATH"};
	json_t *answer = sbx_steps_object(op, false);
	const char *given = sbx_json_string(answer, "code");
	const char *code = NULL;

	for (size_t i = 0; given != NULL && i < sizeof(known) / sizeof(known[0]); i++)
	{
		if (strcmp(given, known[i]) == 0)
			code = known[i];
	}
	json_decref(answer);
	if (code != NULL)
		return code;
	if (sbx_daytona_toolbox_has_no_sandbox(op))
		return "NOT_STARTED";
	switch (op->response.status)
	{
		case 400:
			return strcmp(op->operation, "download") == 0 ? "INVALID_FILE_PATH" : NULL;
		case 403:
			return "FILE_ACCESS_DENIED";
		case 404:
			return "FILE_NOT_FOUND";
		case 413:
			return "FILE_TOO_LARGE";
	}
	return NULL;
}

/* --- up ----------------------------------------------------------------- */

SbxOp *
sbx_daytona_upload(const SbxAccount *account, const SbxTarget *target,
                   const SbxUploadInput *input)
{
	SbxOp *op = daytona_make_file_op(account, "upload", daytona_upload_send, target,
	                                 input->path);
	SbxDaytonaFile *file;

	if (op == NULL)
		return NULL;
	file = op->state;
	file->length = input->length;
	file->boundary = sbx_arena_strdup(&op->arena, input->boundary);
	file->form = sbx_arena_alloc(&op->arena,
	                             DAYTONA_FORM_HEAD + input->length + DAYTONA_FORM_TAIL);
	if (file->form != NULL && input->length > 0)
		memcpy(file->form + DAYTONA_FORM_HEAD, input->bytes, input->length);

	/* Made at random when the bytes were there already: it is not in them. */
	if (!sbx_steps_valid_id(input->boundary))
		file->state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

/*
 * A form of two parts: where to, then what.  The order counts; the name of the file in
 * the second part does not, and a constant needs no quoting.  Returns where it starts,
 * NULL = the path is too long, or no memory.
 */
static char *
daytona_upload_form(SbxOp *op, size_t *form_length)
{
	SbxDaytonaFile *file = op->state;
	const char *head = sbx_arena_printf(
	    &op->arena,
	    "--%s\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\n%s\r\n"
	    "--%s\r\nContent-Disposition: form-data; name=\"files[0].file\"; "
	    "filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n",
	    file->boundary, file->path, file->boundary);
	const char *tail = sbx_arena_printf(&op->arena, "\r\n--%s--\r\n", file->boundary);
	size_t head_length = head == NULL ? 0 : strlen(head);
	size_t tail_length = tail == NULL ? 0 : strlen(tail);
	char *start;

	if (head == NULL || tail == NULL || head_length > DAYTONA_FORM_HEAD ||
	    tail_length > DAYTONA_FORM_TAIL)
		return NULL;
	start = file->form + DAYTONA_FORM_HEAD - head_length;
	memcpy(start, head, head_length);
	memcpy(file->form + DAYTONA_FORM_HEAD + file->length, tail, tail_length);
	*form_length = head_length + file->length + tail_length;
	return start;
}

static SbxOpWant
daytona_upload_send(SbxOp *op)
{
	SbxDaytonaFile *file = op->state;
	SbxDaytonaState *state = op->state;
	const char *type = sbx_arena_printf(&op->arena, "multipart/form-data; boundary=%s",
	                                    file->boundary);
	const char *url =
	    sbx_arena_printf(&op->arena, "%s/files/bulk-upload", state->toolbox_url);
	size_t length = 0;
	char *form = daytona_upload_form(op, &length);
	SbxOpWant want;

	if (form == NULL || type == NULL || url == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	want = sbx_daytona_send_bytes(op, "POST", url, type, form, length,
	                              daytona_upload_answered);

	/* The same bytes to the same place: a second delivery does no harm. */
	op->request.repeatable = true;
	op->request.timeout_ms = 0;
	return want;
}

/* For an older toolbox, which answers nothing: how many bytes are there? */
static SbxOpWant
daytona_upload_count(SbxOp *op)
{
	SbxDaytonaFile *file = op->state;
	const char *count = sbx_script_count_text(&op->arena, file->path, file->length);
	const char *body =
	    sbx_daytona_command_body(&op->arena, count, DAYTONA_COUNT_SECONDS);
	SbxOpWant want;

	/* The path is no UTF-8, so no command can have it. */
	if (body == NULL)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "UPLOAD_INCOMPLETE");
	want = sbx_daytona_send_toolbox(op, "POST", "/process/execute", body,
	                                daytona_upload_counted);
	op->request.repeatable = true;
	return want;
}

/*
 * {"files":[{"path","bytes"}]}.  A number that is not ours is a file that is not ours.
 */
static SbxOpWant
daytona_upload_answered(SbxOp *op)
{
	SbxDaytonaFile *file = op->state;
	SbxDaytonaState *state = op->state;
	json_t *answer;
	int64_t written = -1;
	bool told;

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return sbx_daytona_fail_in_toolbox(op, daytona_file_code(op));
	answer = sbx_steps_object(op, false);
	told = sbx_json_integer(json_array_get(json_object_get(answer, "files"), 0),
	                        "bytes", &written);
	json_decref(answer);
	if (!told)
		return daytona_upload_count(op);
	if (written < 0 || (uint64_t) written != file->length)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "UPLOAD_INCOMPLETE");
	return sbx_op_succeed(op, NULL);
}

static SbxOpWant
daytona_upload_counted(SbxOp *op)
{
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, true) : NULL;
	int64_t exit_code;
	bool counted = sbx_json_integer(answer, "exitCode", &exit_code);
	bool complete = counted && exit_code == 0;

	json_decref(answer);
	if (op->response.status != 200)
		return sbx_daytona_fail_in_toolbox(op, NULL);
	return complete ? sbx_op_succeed(op, NULL)
	                : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "UPLOAD_INCOMPLETE");
}

/* --- down --------------------------------------------------------------- */

SbxOp *
sbx_daytona_download(const SbxAccount *account, const SbxTarget *target,
                     const char *path, size_t max_bytes)
{
	SbxOp *op =
	    daytona_make_file_op(account, "download", daytona_download_send, target, path);

	if (op == NULL)
		return NULL;
	((SbxDaytonaFile *) op->state)->max_bytes = max_bytes;
	return sbx_steps_made(op);
}

static SbxOpWant
daytona_download_send(SbxOp *op)
{
	SbxDaytonaFile *file = op->state;
	SbxDaytonaState *state = op->state;
	const char *path = sbx_arena_url_encode(&op->arena, file->path);
	const char *url;
	SbxOpWant want;

	if (path == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	url = sbx_arena_printf(&op->arena, "%s/files/download?path=%s", state->toolbox_url,
	                       path);
	want = sbx_daytona_send_bytes(op, "GET", url, NULL, NULL, 0,
	                              daytona_download_answered);
	op->request.timeout_ms = 0;
	sbx_steps_expect_file(op, file->max_bytes);
	return want;
}

static SbxOpWant
daytona_download_answered(SbxOp *op)
{
	SbxDaytonaFile *file = op->state;

	if (sbx_steps_is_file_too_large(op, file->max_bytes))
		return sbx_steps_fail_response(op, "FILE_TOO_LARGE");
	if (op->response.status != 200)
		return sbx_daytona_fail_in_toolbox(op, daytona_file_code(op));
	return sbx_steps_succeed_with_file(op);
}
