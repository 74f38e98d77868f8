/*
 * freestyle_store.c
 *		Writing a file to a machine of Freestyle's, in one piece or in many.
 *
 * The machine has the old file until the new one is there, whole.  A large one is sent
 * piece after piece and appears with the last request.  Afterwards its size is looked at: a
 * success that leaves nothing has been seen.
 */
#include <string.h>

#include "providers/freestyle.h"

/* Larger files go in pieces. */
#define FREESTYLE_ONE_PIECE ((size_t) 8 * 1024 * 1024)
#define FREESTYLE_PIECE     ((size_t) 16 * 1024 * 1024)

/* Attempts at one piece. */
#define FREESTYLE_PIECE_TRIES    5
#define FREESTYLE_PIECE_PAUSE_MS 500

/* What the machine gets to make directories; it takes milliseconds. */
#define FREESTYLE_PARENTS_MS (30 * 1000)

static SbxStep freestyle_store_written;
static SbxStep freestyle_store_made_parents;
static SbxStep freestyle_store_look;
static SbxStep freestyle_store_looked;
static SbxStep freestyle_store_judge;
static SbxStep freestyle_pieces_begun;
static SbxStep freestyle_piece_sent;
static SbxStep freestyle_pieces_look;
static SbxStep freestyle_pieces_looked;
static SbxStep freestyle_pieces_committed;
static SbxStep freestyle_pieces_dropped;

/* A plus would be read as a blank: everything is encoded. */
const char *
sbx_freestyle_file_url(SbxOp *op, const char *verb, const char *path)
{
	SbxFreestyleState *state = op->state;
	const char *encoded = sbx_arena_url_encode(&op->arena, path);

	return encoded == NULL ? NULL
	                       : sbx_arena_printf(&op->arena, "%s/fs/%s?path=%s",
	                                          state->vm_url, verb, encoded);
}

/* --- refusals ----------------------------------------------------------------- */

/* 404 is the file, or the machine: looking tells. */
SbxOpWant
sbx_freestyle_file_refused(SbxOp *op, bool missing_is_file)
{
	const char *code = sbx_freestyle_code(op);

	switch (op->response.status)
	{
		case 400:
		case 422:
			return sbx_freestyle_explain(op, "INVALID_FILE_PATH");
		case 403:
			return sbx_freestyle_explain(op, "FORBIDDEN");
		case 404:
			return sbx_freestyle_explain(
			    op, missing_is_file && sbx_freestyle_not_found(op) ? "FILE_NOT_FOUND"
			                                                       : code);
		case 409:
			return sbx_freestyle_explain(op, code);
		case 413:
			return sbx_steps_fail_response(op, "FILE_TOO_LARGE");
	}
	return sbx_steps_fail_response(op, code);
}

/* --- the directories on the way ------------------------------------------------- */

static const char *
freestyle_parents_body(SbxOp *op, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *directory =
	    sbx_arena_strndup(&op->arena, path, (size_t) (slash - path) + 1);

	return directory == NULL ? NULL
	                         : sbx_freestyle_exec_body(
	                               op, sbx_script_directory_text(&op->arena, directory),
	                               FREESTYLE_PARENTS_MS);
}

/*
 * Whether a write makes them is not said.  So it is tried first, and only one that was
 * refused is worth a command.
 */
static SbxOpWant
freestyle_store_refused(SbxOp *op)
{
	SbxFreestyleWriter *writer = op->state;
	int status = op->response.status;
	const char *body;

	if (writer->file.parents_made ||
	    (status != 400 && status != 404 && status != 409 && status != 422))
		return sbx_freestyle_file_refused(op, false);
	writer->file.parents_made = true;
	body = freestyle_parents_body(op, writer->file.path);
	if (body == NULL)
		return sbx_freestyle_file_refused(op, false);
	return sbx_freestyle_exec(op, body, freestyle_store_made_parents);
}

/* What could not be made is told by the write that follows. */
static SbxOpWant
freestyle_store_made_parents(SbxOp *op)
{
	return sbx_steps_is_success(op) ? sbx_freestyle_store(op)
	                                : sbx_freestyle_file_refused(op, false);
}

/* --- in one piece --------------------------------------------------------------- */

static SbxOpWant
freestyle_store_whole(SbxOp *op)
{
	SbxFreestyleFile *file = &((SbxFreestyleWriter *) op->state)->file;
	const char *url = sbx_freestyle_file_url(op, "write", file->path);
	SbxOpWant want;

	if (url != NULL && file->mode != NULL)
		url = sbx_arena_printf(&op->arena, "%s&mode=%s", url, file->mode);
	want = sbx_freestyle_send_bytes(op, "PUT", url, file->bytes, file->length,
	                                freestyle_store_written);
	op->request.timeout_ms = 0;
	return want;
}

static SbxOpWant
freestyle_store_written(SbxOp *op)
{
	SbxSteps *steps = op->state;

	steps->acted |= sbx_steps_may_have_arrived(op);
	return sbx_steps_is_success(op) ? freestyle_store_look(op)
	                                : freestyle_store_refused(op);
}

/* --- is it there? ---------------------------------------------------------------- */

static SbxOpWant
freestyle_store_look(SbxOp *op)
{
	SbxFreestyleFile *file = &((SbxFreestyleWriter *) op->state)->file;

	return sbx_freestyle_send(op, "GET", sbx_freestyle_file_url(op, "stat", file->path),
	                          NULL, freestyle_store_looked);
}

static SbxOpWant
freestyle_store_looked(SbxOp *op)
{
	return sbx_steps_looked(op, freestyle_store_look, freestyle_store_judge);
}

static SbxOpWant
freestyle_store_judge(SbxOp *op)
{
	SbxFreestyleFile *file = &((SbxFreestyleWriter *) op->state)->file;
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	int64_t size = -1;
	bool told = sbx_json_integer(answer, "size", &size);

	json_decref(answer);
	if (op->response.status == 404)
		return sbx_freestyle_explain(op, "UPLOAD_INCOMPLETE");
	if (op->response.status != 200)
		return sbx_freestyle_file_refused(op, false);
	if (!told)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return size >= 0 && (uint64_t) size == file->length
	           ? file->stored(op)
	           : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "UPLOAD_INCOMPLETE");
}

/* --- in pieces -------------------------------------------------------------------- */

static const char *
freestyle_begin_body(SbxOp *op, const SbxFreestyleFile *file)
{
	json_t *body = sbx_json_new_object();
	const char *printed = NULL;

	if (json_object_set_new(body, "path", json_string(file->path)) == 0 &&
	    json_object_set_new(body, "size", json_integer((json_int_t) file->length)) == 0)
		printed = sbx_json_print(&op->arena, body);
	json_decref(body);
	return printed;
}

static SbxOpWant
freestyle_pieces_begin(SbxOp *op)
{
	SbxFreestyleWriter *writer = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s/fs/uploads", writer->state.vm_url);
	const char *body = freestyle_begin_body(op, &writer->file);

	if (body == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	return sbx_freestyle_send(op, "POST", url, body, freestyle_pieces_begun);
}

SbxOpWant
sbx_freestyle_store(SbxOp *op)
{
	SbxFreestyleWriter *writer = op->state;

	return writer->file.length > FREESTYLE_ONE_PIECE ? freestyle_pieces_begin(op)
	                                                 : freestyle_store_whole(op);
}

/* How much has arrived, as the provider counts; false = more than was sent, or nothing. */
static bool
freestyle_read_received(SbxOp *op, SbxFreestyleFile *file)
{
	json_t *answer = sbx_steps_object(op, false);
	int64_t received = -1;
	bool told = sbx_json_integer(answer, "receivedBytes", &received);

	json_decref(answer);
	if (!told || received < 0 || (uint64_t) received > file->sent)
		return false;
	if ((size_t) received > file->received)
		file->tries = 0;
	file->received = (size_t) received;
	return true;
}

/* What has been sent is of no use to anybody. */
static SbxOpWant
freestyle_pieces_drop(SbxOp *op)
{
	SbxFreestyleWriter *writer = op->state;

	writer->state.steps.tidying = true;
	return sbx_freestyle_send(op, "DELETE", writer->file.made_url, NULL,
	                          freestyle_pieces_dropped);
}

static SbxOpWant
freestyle_pieces_fail(SbxOp *op, SbxPhase phase)
{
	SbxSteps *steps = op->state;

	sbx_steps_note(op, sbx_freestyle_code(op));
	if (phase != SBX_PHASE_NONE)
		steps->noted.phase = phase;
	return freestyle_pieces_drop(op);
}

static SbxOpWant
freestyle_pieces_dropped(SbxOp *op)
{
	SbxSteps *steps = op->state;

	return sbx_steps_fail_noted(op, steps->noted.provider_code);
}

/* Each starts where the provider says that the last one ended. */
static SbxOpWant
freestyle_piece_send(SbxOp *op)
{
	SbxFreestyleFile *file = &((SbxFreestyleWriter *) op->state)->file;
	size_t rest = file->length - file->received;
	size_t piece;
	const char *url;
	SbxOpWant want;

	if (rest == 0)
		return sbx_freestyle_send(
		    op, "POST", sbx_arena_printf(&op->arena, "%s/commit", file->made_url), "{}",
		    freestyle_pieces_committed);
	url = sbx_arena_printf(&op->arena, "%s?offset=%zu", file->made_url, file->received);
	piece = rest < FREESTYLE_PIECE ? rest : FREESTYLE_PIECE;
	if (file->sent < file->received + piece)
		file->sent = file->received + piece;
	want = sbx_freestyle_send_bytes(op, "PUT", url, file->bytes + file->received, piece,
	                                freestyle_piece_sent);

	/* One that has arrived is not sent again: the provider is asked first. */
	op->request.repeatable = false;
	op->request.timeout_ms = 0;
	return want;
}

static SbxOpWant
freestyle_pieces_begun(SbxOp *op)
{
	SbxFreestyleWriter *writer = op->state;
	json_t *answer;
	const char *id;
	bool right;

	writer->state.steps.acted |= sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return freestyle_store_refused(op);
	answer = sbx_steps_object(op, false);
	id = sbx_json_string(answer, "uploadId");
	right = sbx_steps_valid_id(id);
	if (right)
		writer->file.made_url =
		    sbx_arena_printf(&op->arena, "%s/fs/uploads/%s", writer->state.vm_url, id);
	json_decref(answer);
	writer->file.received = 0;
	writer->file.sent = 0;
	return right ? freestyle_piece_send(op)
	             : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

static SbxOpWant
freestyle_piece_sent(SbxOp *op)
{
	SbxFreestyleFile *file = &((SbxFreestyleWriter *) op->state)->file;
	size_t before = file->received;

	if (sbx_steps_is_success(op))
		return freestyle_read_received(op, file) && file->received > before
		           ? freestyle_piece_send(op)
		           : freestyle_pieces_fail(op, SBX_PHASE_PROTOCOL);
	if ((!sbx_steps_is_passing(op) && op->response.status != 409) ||
	    ++file->tries >= FREESTYLE_PIECE_TRIES)
		return freestyle_pieces_fail(op, SBX_PHASE_NONE);
	sbx_steps_note(op, sbx_freestyle_code(op));
	return sbx_steps_pause(op, FREESTYLE_PIECE_PAUSE_MS << (file->tries - 1),
	                       freestyle_pieces_look);
}

/* It may have arrived after all. */
static SbxOpWant
freestyle_pieces_look(SbxOp *op)
{
	SbxFreestyleFile *file = &((SbxFreestyleWriter *) op->state)->file;

	return sbx_freestyle_send(op, "GET", file->made_url, NULL, freestyle_pieces_looked);
}

static SbxOpWant
freestyle_pieces_looked(SbxOp *op)
{
	SbxFreestyleFile *file = &((SbxFreestyleWriter *) op->state)->file;

	if (sbx_steps_is_success(op))
		return freestyle_read_received(op, file)
		           ? freestyle_piece_send(op)
		           : freestyle_pieces_fail(op, SBX_PHASE_PROTOCOL);
	if (!sbx_steps_is_passing(op) || ++file->tries >= FREESTYLE_PIECE_TRIES)
		return freestyle_pieces_fail(op, SBX_PHASE_NONE);
	sbx_steps_note(op, sbx_freestyle_code(op));
	return sbx_steps_pause(op, FREESTYLE_PIECE_PAUSE_MS << (file->tries - 1),
	                       freestyle_pieces_look);
}

static SbxOpWant
freestyle_pieces_committed(SbxOp *op)
{
	return sbx_steps_is_success(op) ? freestyle_store_look(op)
	                                : freestyle_pieces_fail(op, SBX_PHASE_NONE);
}
