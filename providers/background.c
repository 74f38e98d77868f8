/*
 * background.c
 *		Scripts that nobody waits for: how one is started once, and asked about later.
 */
#include "providers/background.h"

/* --- start ---------------------------------------------------------------- */

bool
sbx_background_write(SbxArena *arena, SbxBackground *background,
                     const SbxRunInput *input)
{
	SbxStartedScript *started = &background->started;

	if (!sbx_script_valid(input))
		return false;
	background->text = sbx_script_background_text(arena, input);
	if (background->text == NULL || !sbx_json_is_text(background->text))
		return false;
	started->session_id = sbx_arena_strdup(arena, input->run_id);
	started->command_id = sbx_script_fingerprint(arena, background->text);
	if (started->session_id == NULL || started->command_id == NULL)
		return false;
	background->claim_text =
	    sbx_script_claim_text(arena, started->session_id, started->command_id);
	background->status_text =
	    sbx_script_status_text(arena, started->session_id, started->command_id);
	return background->claim_text != NULL && background->status_text != NULL;
}

SbxOpWant
sbx_background_found(SbxOp *op, SbxBackground *background)
{
	background->started.reconciled = true;
	return sbx_op_succeed(op, &background->started);
}

/*
 * Whose is the name?  Ours without a trace is one whose start was lost; the text itself
 * sees to it that it runs once.
 */
SbxOpWant
sbx_background_claimed(SbxOp *op, SbxBackground *background, SbxScriptWord word)
{
	if (sbx_script_has_begun(word))
		return sbx_background_found(op, background);
	background->started.reconciled = word == SBX_SCRIPT_IS_CLAIMED;
	if (word == SBX_SCRIPT_IS_NEW || word == SBX_SCRIPT_IS_CLAIMED)
		return background->deliver(op);
	return background->fail(op, sbx_script_claim_code(word));
}

/* Not yet there, or not seen: the answer was lost a moment ago. */
SbxOpWant
sbx_background_looked(SbxOp *op, SbxBackground *background, SbxScriptWord word)
{
	if (sbx_script_has_begun(word))
		return sbx_background_found(op, background);
	return ++background->looks < SBX_SCRIPT_LOOKS
	           ? sbx_steps_pause(op, SBX_SCRIPT_LOOK_PAUSE_MS, background->look)
	           : background->give_up(op);
}

/* --- asking about one ------------------------------------------------------ */

bool
sbx_background_valid_target(const SbxScriptTarget *script)
{
	return sbx_script_valid_name(script->session_id) &&
	       sbx_script_valid_name(script->command_id);
}

const char *
sbx_background_log_text(SbxArena *arena, const SbxScriptTarget *script, bool of_errors)
{
	size_t maximum = script->max_stream < SIZE_MAX ? script->max_stream + 1 : SIZE_MAX;

	return sbx_script_log_text(arena, script->session_id, script->command_id, of_errors,
	                           maximum);
}

SbxOpWant
sbx_background_logs_read(SbxOp *op, SbxScriptOutput *output)
{
	SbxRunResult *result = sbx_arena_alloc(&op->arena, sizeof(*result));

	sbx_script_join(&op->arena, output);
	if (result != NULL)
		sbx_script_store(output, result);
	return sbx_op_succeed(op, result);
}
