/*
 * script.c
 *		What a sandbox's shell is given: scripts as text, and what is asked about them.
 *
 * The user's text always runs in a child shell, as one quoted argument, with an
 * empty standard input.  A provider may source what it is given in a shell that
 * lives on and has more to do: a bare `exit`, `set -e` or a syntax error would end
 * that shell instead of the script, and a command that reads would swallow what is
 * meant for it.
 */
#include <string.h>

#include "providers/script.h"

/*
 * The kernel refuses a single argument of 128 KiB (MAX_ARG_STRLEN); a quarter is
 * left for what surrounds the script.  Longer scripts go through a file.
 */
#define SCRIPT_ARGUMENT_MAX ((size_t) 96 * 1024)

/* --- writing ------------------------------------------------------------ */

/*
 * Texts are written twice, once to count (bytes is NULL) and once for real: one
 * allocation of the right size instead of copies of a script in the arena, which
 * frees nothing before the operation ends.
 */
typedef struct ScriptText
{
	char *bytes;
	size_t length;
} ScriptText;

static void
script_add_bytes(ScriptText *text, const char *bytes, size_t length)
{
	if (text->bytes != NULL && length > 0)
		memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
}

static void
script_add(ScriptText *text, const char *bytes)
{
	script_add_bytes(text, bytes, strlen(bytes));
}

/* From counting to writing; false when out of memory. */
static bool
script_start_over(ScriptText *text, SbxArena *arena)
{
	text->bytes = sbx_arena_alloc(arena, text->length + 1);
	text->length = 0;
	return text->bytes != NULL;
}

/*
 * The one quoting function.  Between single quotes a shell takes everything
 * literally, but the quote itself.  newline, if given, is written for each line
 * break, outside the quotes.
 */
static void
script_add_quoted(ScriptText *text, const char *bytes, size_t length,
                  const char *newline)
{
	script_add(text, "'");
	for (size_t i = 0; i < length; i++)
	{
		if (bytes[i] == '\'')
			script_add(text, "'\\''");
		else if (bytes[i] == '\n' && newline != NULL)
		{
			script_add(text, "'");
			script_add(text, newline);
			script_add(text, "'");
		}
		else
			script_add_bytes(text, &bytes[i], 1);
	}
	script_add(text, "'");
}

/* --- the text ----------------------------------------------------------- */

#define SCRIPT_NAME_BYTES                                                              \
	"0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

bool
sbx_script_valid_name(const char *name)
{
	return name != NULL && *name != '\0' &&
	       name[strspn(name, SCRIPT_NAME_BYTES "-")] == '\0';
}

/*
 * Variable names are written without quotes, so they are checked once more.  A
 * NUL would end the script early, and a relative directory would depend on where
 * a provider happens to start.
 */
bool
sbx_script_valid(const SbxRunInput *input)
{
	for (int i = 0; i < input->env_count; i++)
	{
		const char *key = input->env[i].key;

		if (*key == '\0' || (*key >= '0' && *key <= '9') ||
		    key[strspn(key, SCRIPT_NAME_BYTES)] != '\0')
			return false;
	}
	return memchr(input->command, '\0', input->command_length) == NULL &&
	       sbx_script_valid_name(input->run_id) &&
	       (input->cwd == NULL || input->cwd[0] == '/') &&
	       (input->session == NULL || sbx_script_valid_name(input->session));
}

static bool
script_has_newline(const SbxRunInput *input)
{
	for (int i = 0; i < input->env_count; i++)
	{
		if (strchr(input->env[i].value, '\n') != NULL)
			return true;
	}
	return input->cwd != NULL && strchr(input->cwd, '\n') != NULL;
}

/* What a session keeps from one run to the next. */
#define SCRIPT_SESSION_FILE "/tmp/.sbx-session-"

/*
 * Bring back the exported variables and the directory that the last run of the session
 * left, and leave one's own for the next.  The shell quotes what it exports; the
 * directory goes with it.  A script that traps EXIT itself leaves nothing.  One that is
 * traced (set -x) does not see ours.
 */
static void
script_write_session(ScriptText *text, const char *session)
{
	script_add(text, "[ -f " SCRIPT_SESSION_FILE);
	script_add(text, session);
	script_add(text, " ] && . " SCRIPT_SESSION_FILE);
	script_add(text, session);
	script_add(text, "; [ -z \"$sbx_directory\" ] || cd -- \"$sbx_directory\"; "
	                 "unset sbx_directory; "
	                 "trap '{ sbx_code=$?; set +x; } 2>/dev/null; "
	                 "export sbx_directory=\"$PWD\"; "
	                 "(umask 077; export -p >" SCRIPT_SESSION_FILE);
	script_add(text, session);
	script_add(text, ".$$ && mv -f " SCRIPT_SESSION_FILE);
	script_add(text, session);
	script_add(text, ".$$ " SCRIPT_SESSION_FILE);
	script_add(text, session);
	script_add(text, ") 2>/dev/null; exit \"$sbx_code\"' EXIT; ");
}

/*
 * When a process started: its number alone can come back, after a restart above all.
 * Nothing for one that is gone or dead, and where there is no /proc.  What stands before
 * the last parenthesis is its name, which may be anything.
 */
#define SCRIPT_START_OF(pid)                                                           \
	"$(sbx_stat=$(cat \"/proc/" pid "/stat\" 2>/dev/null); "                           \
	"sbx_stat=${sbx_stat##*\")\"}; "                                                   \
	"[ \"${sbx_stat# Z}\" = \"$sbx_stat\" ] && echo \"$sbx_stat\" | cut -d\" \" -f21)"

/*
 * The child names its process.  A foreground script does that only if the outer text
 * made the file: without a group there is none to name.  Either way it succeeds: `$?` is
 * what a script that does nothing ends with.  A link needs no block of a full disk.
 */
static void
script_write_name(ScriptText *text, const char *run_id, bool in_background)
{
	script_add(text,
	           in_background ? "ln -sn \"$$:" SCRIPT_START_OF("$$") "\" " : "[ ! -f ");
	script_add(text, SBX_SCRIPT_FILE);
	script_add(text, run_id);
	script_add(text, in_background ? " 2>/dev/null || :; " : " ] || echo $$ >");
	if (in_background)
		return;
	script_add(text, SBX_SCRIPT_FILE);
	script_add(text, run_id);
	script_add(text, "; ");
}

/*
 * The child's text.  Everything before the user's first byte stays on one line,
 * so that line numbers in its messages are the user's; hence the detour for line
 * breaks in values.  A directory that cannot be entered ends the run.
 */
static void
script_write_inner(ScriptText *text, const SbxRunInput *input, bool in_background)
{
	const char *newline = NULL;

	script_write_name(text, input->run_id, in_background);
	if (input->session != NULL)
		script_write_session(text, input->session);
	if (script_has_newline(input))
	{
		/* $(...) drops line breaks at the end: one byte behind keeps this one. */
		newline = "\"$sbx_newline\"";
		script_add(text,
		           "sbx_newline=$(printf '\\n_'); sbx_newline=${sbx_newline%_}; ");
	}
	for (int i = 0; i < input->env_count; i++)
	{
		const SbxPair *pair = &input->env[i];

		script_add(text, "export ");
		script_add(text, pair->key);
		script_add(text, "=");
		script_add_quoted(text, pair->value, strlen(pair->value), newline);
		script_add(text, "; ");
	}
	if (input->cwd != NULL)
	{
		script_add(text, "cd ");
		script_add_quoted(text, input->cwd, strlen(input->cwd), newline);
		script_add(text, " || exit $?; ");
	}
	if (newline != NULL)
		script_add(text, "unset sbx_newline; ");
	script_add_bytes(text, input->command, input->command_length);
}

/*
 * Run the child and keep its exit code.  It gets a process group of its own, if the
 * image has the means: what it leaves running in the background then outlives the
 * shell that started it, as people expect of a background process.  That shell's own
 * remarks ("Killed") are not the script's output and go nowhere.
 */
static void
script_write_child(ScriptText *text, const char *argument, const ScriptText *inner)
{
	script_add(text,
	           "(exec 2>/dev/null; (exec 2>&9 9>&-; exec $sbx_group \"$sbx_shell\" ");
	script_add(text, argument);
	if (inner != NULL)
		script_add_quoted(text, inner->bytes, inner->length, NULL);
	script_add(text, " </dev/null); exit $?) 9>&2; sbx_code=$?; ");
}

/* What stands around the child in the text. */
typedef struct ScriptFrame
{
	bool in_background;
	const char *before;
	const char *after;
} ScriptFrame;

/*
 * Only one that can be named gets a group of its own: without a name nothing could
 * kill it.
 */
#define SCRIPT_GROUP                                                                   \
	"sbx_group=; command -v setsid >/dev/null 2>&1 && "                                \
	"(: >\"$sbx_pid\") 2>/dev/null && sbx_group=setsid; "

static const ScriptFrame script_waited = {false, SCRIPT_GROUP, "rm -f \"$sbx_pid\"; "};

/*
 * Of a child that nobody waits for the output goes to files.  A text that is delivered
 * twice does nothing the second time, not even to a file of the first.  What cannot be
 * run at all ends as in a shell, with 126.
 */
static const ScriptFrame script_background = {
    true,
    "sbx_code=126; if ln -sn \"$$:" SCRIPT_START_OF(
        "$$") "\" \"$sbx_pid.once\" 2>/dev/null; then "
              "(umask 077; : >\"$sbx_pid.out\"; : >\"$sbx_pid.err\"); sbx_group=; "
              "command -v setsid >/dev/null 2>&1 && sbx_group=setsid; { ",
    "} >\"$sbx_pid.out\" 2>\"$sbx_pid.err\"; "
    "ln -sn \"$sbx_code\" \"$sbx_pid.exit\" 2>/dev/null && "
    "rm -f \"$sbx_pid\"; fi; "};

/*
 * Beside a child whose time the text itself has to watch sleeps a watch.  It has the
 * child's name open before the child is there: nothing that the script deletes can hide
 * it.  To stop the watch is to ask it: its exit code says whether it has killed anything,
 * so that a script that ends in its last moment is not called too late.  Somebody else may
 * kill a sleep, which is then slept anew, and not every sleep knows parts of seconds.
 */
#define SCRIPT_WATCH                                                                   \
	"sbx_watch=; if [ -n \"$sbx_group\" ]; then exec 4<\"$sbx_pid\"; ("                \
	"sbx_nap() { sleep \"$1\" & sbx_sleep=$!; wait \"$sbx_sleep\"; }; "                \
	"trap 'kill \"$sbx_sleep\"; exit 1' TERM; "                                        \
	"until read -r sbx_target <&4; do sbx_nap 0.1 || sbx_nap 1; done; "                \
	"until sbx_nap \"$sbx_time\"; do sbx_time=$sbx_seconds; done; "                    \
	"trap '' TERM; kill -9 \"-$sbx_target\""                                           \
	") 5<&- 6<&- 7>&- 8>&- </dev/null >/dev/null 2>&1 & "                              \
	"sbx_watch=$!; exec 4<&-; fi; "

/*
 * The output goes to files there, too.  What the script leaves in the background could
 * hold the provider's own open for as long as it lives, and so the answer.  Once they are
 * open they need no names.
 */
#define SCRIPT_KEEP                                                                    \
	"sbx_kept=; exec 7>&1 8>&2 5</dev/null 6</dev/null; "                              \
	"if (umask 077; : >\"$sbx_pid.out\" && : >\"$sbx_pid.err\") 2>/dev/null; "         \
	"then sbx_kept=1; exec 7>\"$sbx_pid.out\" 8>\"$sbx_pid.err\" "                     \
	"5<\"$sbx_pid.out\" 6<\"$sbx_pid.err\"; "                                          \
	"rm -f \"$sbx_pid.out\" \"$sbx_pid.err\"; fi; "

/* One byte more than is kept shows that something was cut. */
static ScriptFrame
script_bounded(SbxArena *arena, const SbxRunInput *input)
{
	long long seconds = input->timeout_ms / 1000;
	int rest = (int) (input->timeout_ms % 1000);
	size_t maximum =
	    input->max_stream < SIZE_MAX ? input->max_stream + 1 : input->max_stream;
	ScriptFrame frame = {false, NULL, NULL};

	frame.before = sbx_arena_printf(
	    arena,
	    "sbx_time=%lld.%03d; sbx_seconds=%lld; " SCRIPT_GROUP SCRIPT_KEEP SCRIPT_WATCH
	    "{ ",
	    seconds, rest, seconds + (rest > 0));
	frame.after = sbx_arena_printf(
	    arena,
	    "} >&7 2>&8 5<&- 6<&- 7>&- 8>&-; exec 7>&- 8>&-; if [ -n \"$sbx_watch\" ] && "
	    "{ kill \"$sbx_watch\"; wait \"$sbx_watch\"; } 2>/dev/null; then "
	    "sbx_code=%d; echo " SBX_SCRIPT_OUT_OF_TIME "%s >&2; "
	    "elif [ -n \"$sbx_kept\" ]; then head -c %zu <&5; head -c %zu <&6 >&2; fi; "
	    "exec 5<&- 6<&-; rm -f \"$sbx_pid\"; ",
	    SBX_SCRIPT_KILLED, input->run_id, maximum, maximum);
	return frame;
}

/*
 * What the sandbox's shell gets.  Scripts are mostly written for bash, but an image
 * may have no more than sh.
 */
static void
script_write_outer(ScriptText *text, const ScriptText *inner, const char *run_id,
                   const ScriptFrame *frame)
{
	ScriptText quoted = {0};

	script_add_quoted(&quoted, inner->bytes, inner->length, NULL);
	/* Options of the shell that sources this would end it early. */
	script_add(
	    text,
	    "set +eC; sbx_shell=sh; command -v bash >/dev/null 2>&1 && sbx_shell=bash; "
	    "sbx_pid=" SBX_SCRIPT_FILE);
	script_add(text, run_id);
	script_add(text, "; ");
	script_add(text, frame->before);
	if (quoted.length <= SCRIPT_ARGUMENT_MAX)
		script_write_child(text, "-c ", inner);
	else
	{
		/* printf is built in: no limit on its arguments. */
		script_add(text, "sbx_file=$(mktemp) && printf %s ");
		script_add_quoted(text, inner->bytes, inner->length, NULL);
		script_add(text, " >\"$sbx_file\" && ");
		script_write_child(text, "\"$sbx_file\"", NULL);
		script_add(text, "rm -f \"$sbx_file\"; ");
	}
	script_add(text, frame->after);

	/* A subshell sets `$?` without ending the shell that may be sourcing this. */
	script_add(text, "(exit \"$sbx_code\")");
}

static const char *
script_text(SbxArena *arena, const SbxRunInput *input, const ScriptFrame *frame)
{
	ScriptText inner = {0};
	ScriptText outer = {0};

	script_write_inner(&inner, input, frame->in_background);
	if (!script_start_over(&inner, arena))
		return NULL;
	script_write_inner(&inner, input, frame->in_background);

	script_write_outer(&outer, &inner, input->run_id, frame);
	if (!script_start_over(&outer, arena))
		return NULL;
	script_write_outer(&outer, &inner, input->run_id, frame);
	return outer.bytes;
}

const char *
sbx_script_text(SbxArena *arena, const SbxRunInput *input)
{
	return script_text(arena, input, &script_waited);
}

const char *
sbx_script_bounded_text(SbxArena *arena, const SbxRunInput *input)
{
	ScriptFrame frame = script_bounded(arena, input);

	return frame.before == NULL || frame.after == NULL
	           ? NULL
	           : script_text(arena, input, &frame);
}

const char *
sbx_script_marked_text(SbxArena *arena, const SbxRunInput *input)
{
	const char *text = script_text(arena, input, &script_waited);

	if (text == NULL)
		return NULL;
	return sbx_arena_printf(
	    arena,
	    "%s; sbx_code=$?; printf '\\001%%s:%%s\\002' %s \"$sbx_code\"; "
	    "printf '\\001%%s:%%s\\002' %s \"$sbx_code\" >&2; "
	    "exit \"$sbx_code\"",
	    text, input->run_id, input->run_id);
}

const char *
sbx_script_background_text(SbxArena *arena, const SbxRunInput *input)
{
	return script_text(arena, input, &script_background);
}

/* --- through a file ------------------------------------------------------- */

/*
 * The kernel refuses a single argument of 128 KiB.  Something is left for what starts
 * the shell.
 */
#define SCRIPT_TEXT_MAX ((size_t) 120 * 1024)

bool
sbx_script_is_long(const char *text)
{
	return strlen(text) > SCRIPT_TEXT_MAX;
}

const char *
sbx_script_stored_path(SbxArena *arena, const char *run_id)
{
	return sbx_arena_printf(arena, SBX_SCRIPT_FILE "%s.sh", run_id);
}

/* A shell has read all of a file before it does the first thing in it. */
const char *
sbx_script_stored_text(SbxArena *arena, const char *run_id, const char *text)
{
	return sbx_arena_printf(arena, "rm -f " SBX_SCRIPT_FILE "%s.sh 2>/dev/null; %s",
	                        run_id, text);
}

const char *
sbx_script_source_text(SbxArena *arena, const char *run_id)
{
	return sbx_arena_printf(arena, ". " SBX_SCRIPT_FILE "%s.sh", run_id);
}

/* --- its end, and what is known of it -------------------------------------- */

/*
 * A name that is still empty is that of a child which is about to write it: whoever says
 * then that there is nothing to kill leaves it running.  It takes a moment, so a second is
 * waited for it, whether or not sleep knows parts of one.
 */
const char *
sbx_script_kill_text(SbxArena *arena, const char *run_id)
{
	return sbx_arena_printf(
	    arena,
	    "sbx_pid=; sbx_try=0; while [ -z \"$sbx_pid\" ] && [ \"$sbx_try\" -lt 10 ] && "
	    "sbx_pid=$(cat " SBX_SCRIPT_FILE "%s); do [ -n \"$sbx_pid\" ] || "
	    "sleep 0.1 2>/dev/null || { sleep 1; sbx_try=9; }; "
	    "sbx_try=$((sbx_try + 1)); done; "
	    "[ -n \"$sbx_pid\" ] && rm -f " SBX_SCRIPT_FILE "%s && kill -9 \"-$sbx_pid\"",
	    run_id, run_id);
}

/*
 * The exit code counts, whatever runs.  Before the script has named its process, that of
 * the shell that runs the text counts.  When the process is gone the exit code is asked
 * for again: the shell that notes it is a moment behind, and only one that takes seconds
 * for that will never do it.  That a process is there says /proc, because it may be
 * another user's by now.
 */
const char *
sbx_script_status_text(SbxArena *arena, const char *run_id, const char *fingerprint)
{
	static const char functions[] =
	    "sbx_end() { readlink \"$sbx_file.exit\"; }; "
	    "sbx_alive() { if [ -n \"${1#*:}\" ]; then [ \"" SCRIPT_START_OF(
	        "${1%%:*}") "\" = \"${1#*:}\" ]; else kill -0 \"${1%%:*}\" 2>/dev/null; "
	                    "fi; }; ";

	return sbx_arena_printf(
	    arena,
	    "sbx_file=" SBX_SCRIPT_FILE "%s; %s"
	    "if [ ! -L \"$sbx_file.claim\" ]; then echo " SBX_SCRIPT_NOTHING "; "
	    "elif [ \"$(readlink \"$sbx_file.claim\")\" != %s ]; then "
	    "echo " SBX_SCRIPT_ANOTHER "; "
	    "elif [ ! -L \"$sbx_file.once\" ]; then echo " SBX_SCRIPT_CLAIMED "; "
	    "elif ! sbx_end; then sbx_pid=$(readlink \"$sbx_file\"); "
	    "[ -n \"$sbx_pid\" ] || sbx_pid=$(readlink \"$sbx_file.once\"); "
	    "if sbx_alive \"$sbx_pid\"; then echo " SBX_SCRIPT_RUNNING "; "
	    "else for sbx_try in 1 2 3; do sbx_end && break; sleep 1; "
	    "[ \"$sbx_try\" = 3 ] && echo " SBX_SCRIPT_LOST "; done; fi; fi",
	    run_id, functions, fingerprint);
}

/* A link is there with what it says, or not at all, and only one can make it. */
const char *
sbx_script_claim_text(SbxArena *arena, const char *run_id, const char *fingerprint)
{
	const char *status_text = sbx_script_status_text(arena, run_id, fingerprint);

	if (status_text == NULL)
		return NULL;
	return sbx_arena_printf(arena,
	                        "if ln -sn %s " SBX_SCRIPT_FILE
	                        "%s.claim 2>/dev/null; then echo " SBX_SCRIPT_NEW
	                        "; else %s; fi",
	                        fingerprint, run_id, status_text);
}

/* FNV-1a: the texts are the caller's own, so nobody gains from two that collide. */
const char *
sbx_script_fingerprint(SbxArena *arena, const char *text)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char) *text) * UINT64_C(1099511628211);
	return sbx_arena_printf(arena, "%016llx", (unsigned long long) hash);
}

const char *
sbx_script_log_text(SbxArena *arena, const char *run_id, const char *fingerprint,
                    bool of_errors, size_t maximum)
{
	return sbx_arena_printf(
	    arena,
	    "[ \"$(readlink " SBX_SCRIPT_FILE "%s.claim)\" = %s ] && "
	    "{ head -c %zu " SBX_SCRIPT_FILE "%s.%s 2>/dev/null || :; }",
	    run_id, fingerprint, maximum, run_id, of_errors ? "err" : "out");
}

const char *
sbx_script_directory_text(SbxArena *arena, const char *path)
{
	ScriptText text = {0};

	for (int pass = 0; pass < 2; pass++)
	{
		script_add(&text, "mkdir -p -- ");
		script_add_quoted(&text, path, strlen(path), NULL);
		if (pass == 0 && !script_start_over(&text, arena))
			return NULL;
	}
	return text.bytes;
}

const char *
sbx_script_count_text(SbxArena *arena, const char *path, size_t length)
{
	ScriptText text = {0};

	for (int pass = 0; pass < 2; pass++)
	{
		script_add(&text, "test -f ");
		script_add_quoted(&text, path, strlen(path), NULL);
		script_add(&text, " && test \"$(wc -c <");
		script_add_quoted(&text, path, strlen(path), NULL);
		script_add(&text, ")\" -eq ");
		if (pass == 0 && !script_start_over(&text, arena))
			return NULL;
	}
	return sbx_arena_printf(arena, "%s%zu", text.bytes, length);
}
