/*
 * test_agent37_shell.c
 *		The text of a script that ends itself, run by real shells.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "providers/script.h"
#include "unit.h"

static char *
bounded(const SbxRunInput *input)
{
	Drive drive;
	json_t *body;
	char *text;

	agent37_account();
	drive = agent37_running(input);
	body = sbx_json_parse(drive.op->request.body, drive.op->request.body_length, false);
	text = strdup(sbx_json_string(body, "command"));
	json_decref(body);
	drive_end(&drive);
	return text;
}

/* Has the shell said that it killed the script? */
static bool
was_killed(const ShellRun *ran)
{
	SbxRunResult result = {.has_exit_code = true, .exit_code = ran->exit_code};
	SbxArena arena;
	bool killed;

	result.stderr_text = ran->err;
	result.stderr_length = strlen(ran->err);
	sbx_arena_init(&arena, 64, 4096);
	killed = sbx_script_ran_out_of_time(&arena, &result, shell_run_id);
	sbx_arena_free(&arena);
	return killed;
}

static void
runs(const SbxRunInput *input, int exit_code, const char *out, const char *err,
     const char *what)
{
	char *text = bounded(input);

	for (size_t i = 0; i < SHELLS; i++)
	{
		ShellRun ran = shell_source(shells[i], text);

		if (!ok(ran.noted && ran.exit_code == exit_code && strcmp(ran.out, out) == 0 &&
		            (err == NULL || strcmp(ran.err, err) == 0) && !was_killed(&ran),
		        "%s: %s", shells[i], what))
			printf("# noted %d, code %d, out: %s err: %s\n", ran.noted, ran.exit_code,
			       ran.out, ran.err);
	}
	free(text);
}

/* What deletes all that is ours there; another run of these tests has files there, too. */
static const char *
tidying_up(const char *rest)
{
	static char command[200];

	snprintf(command, sizeof(command), "rm -f " SBX_SCRIPT_FILE "%s*; %s", shell_run_id,
	         rest);
	return command;
}

static void
in_time(void)
{
	static const SbxPair env[] = {{"A", "it's\n"}};
	SbxRunInput input = shell_input("echo out; echo err >&2; exit 7");

	section("Agent37 text, in time");
	runs(&input, 7, "out\n", "err\n", "streams and exit code");
	input = shell_input("printf %s \"$A\"; pwd");
	input.env = env;
	input.env_count = 1;
	input.cwd = "/tmp";
	runs(&input, 0, "it's\n/tmp\n", "", "variables and directory");
	input = shell_input("cat; echo after");
	runs(&input, 0, "after\n", "", "standard input is empty");
	input = shell_input("kill -9 $$");
	runs(&input, 137, "", "", "must not fire: a script that kills itself");
	input = shell_input(tidying_up("echo still"));
	runs(&input, 0, "still\n", NULL, "must not fire: one that cleans up /tmp");
	input = shell_input("trap 'echo int' INT; kill -INT $$; echo on");
	runs(&input, 0, "int\non\n", "", "signals are the script's own");
	input = shell_input("head -c 5000 /dev/zero | tr '\\0' x");
	input.max_stream = 9;
	runs(&input, 0, "xxxxxxxxxx", "", "one byte more than is kept");
	input.cwd = "/nonexistent/x";
	{
		char *text = bounded(&input);
		ShellRun ran = shell_source("dash", text);

		ok(ran.exit_code != 0 && ran.out[0] == '\0', "no directory, no script");
		free(text);
	}
}

/* What is left behind, and whether any of it is. */
static void
background(void)
{
	char path[200];
	char line[400];
	char *text;

	section("Agent37 text, background");
	for (size_t i = 0; i < SHELLS; i++)
	{
		SbxRunInput input = shell_input("echo started; sleep 1000 & echo $! >pid");
		ShellRun ran;

		text = bounded(&input);
		ran = shell_source(shells[i], text);
		is_text(ran.out, "started\n", "%s: must not fire: it holds nothing up",
		        shells[i]);
		shell_path(path, "pid");
		snprintf(line, sizeof(line), "kill \"$(cat '%s')\"", path);
		ok(system(line) == 0, "%s: and goes on", shells[i]);
		unlink(path);
		free(text);
	}
	snprintf(line, sizeof(line), "! ls " SBX_SCRIPT_FILE "%s* 2>/dev/null",
	         shell_run_id);
	ok(system(line) == 0, "no file of ours is left");
}

static void
too_late(void)
{
	const char *const commands[] = {
	    "echo out; sleep 1000", "echo $$ >group; sleep 1000 & sleep 1000; echo no",
	    "trap '' TERM INT HUP; while :; do sleep 1; done", tidying_up("sleep 1000")};
	char path[200];
	char line[300];

	section("Agent37 text, out of time");
	shell_path(path, "group");
	for (size_t i = 0; i < SHELLS * sizeof(commands) / sizeof(commands[0]); i++)
	{
		SbxRunInput input = shell_input(commands[i / SHELLS]);
		ShellRun ran;
		char *text;

		input.timeout_ms = i % 3 == 0 ? 1 : 300;
		text = bounded(&input);
		ran = shell_source(shells[i % SHELLS], text);
		if (!ok(ran.noted && was_killed(&ran) && ran.out[0] == '\0',
		        "%s: must fire: %s", shells[i % SHELLS], commands[i / SHELLS]))
			printf("# code %d, out: %s err: %s\n", ran.exit_code, ran.out, ran.err);
		free(text);
	}
	{
		SbxRunInput input = shell_input("echo $$ >group; sleep 1000 & sleep 1000");
		FILE *file;
		int group = 0;
		char *text;

		input.timeout_ms = 1000;
		text = bounded(&input);
		shell_source("dash", text);
		file = fopen(path, "r");
		ok(file != NULL && fscanf(file, "%d", &group) == 1 && group > 1 &&
		       shell_all_dead(group),
		   "nothing of the script is alive");
		if (file != NULL)
			fclose(file);
		free(text);
	}
	snprintf(line, sizeof(line), "! ls " SBX_SCRIPT_FILE "%s* 2>/dev/null",
	         shell_run_id);
	ok(system(line) == 0, "no file of ours is left");
}

/*
 * A sleep that somebody kills is no end of time.  How long it is is the process's own: it
 * must not be the sleep of another run of these tests.
 */
static void
killed_sleep(void)
{
	int ms = 100000 + (int) getpid() % 170000;
	char command[600];
	SbxRunInput input;

	snprintf(command, sizeof(command),
	         "sbx_its() { ps -o pid= -o args= -A | "
	         "sed -n 's/ *\\([0-9]*\\) sleep %d.%03d$/\\1/p'; }; "
	         "until first=$(sbx_its) && [ -n \"$first\" ]; do :; done; kill $first; "
	         "until second=$(sbx_its) && [ -n \"$second\" ] && "
	         "[ \"$second\" != \"$first\" ]; do "
	         "ps -A -o args= | grep -q '^sleep %d$' && second=x && break; done; "
	         "echo alive",
	         ms / 1000, ms % 1000, (ms + 999) / 1000);
	input = shell_input(command);
	section("Agent37 text, watch");
	input.timeout_ms = ms;
	runs(&input, 0, "alive\n", "", "must not fire: somebody killed its sleep");
}

static void
without_means(void)
{
	SbxRunInput input = shell_input("echo out; echo err >&2; exit 3");

	section("Agent37 text, without setsid");
	shell_programs = shell_without("setsid");
	runs(&input, 3, "out\n", "err\n", "a script runs all the same");
	shell_programs = "/usr/bin:/bin";
}

static void
forged(void)
{
	SbxRunResult result = {.has_exit_code = true, .exit_code = 137};
	char mark[100];
	SbxArena arena;

	section("Agent37 text, its word");
	snprintf(mark, sizeof(mark), "x\nsbx-out-of-time:%s\n", shell_run_id);
	result.stderr_text = mark;
	result.stderr_length = strlen(mark);
	sbx_arena_init(&arena, 64, 4096);
	ok(sbx_script_ran_out_of_time(&arena, &result, shell_run_id), "must fire: it is");
	ok(!sbx_script_ran_out_of_time(&arena, &result, "another"),
	   "must not fire: another run's");
	result.stderr_length--;
	ok(!sbx_script_ran_out_of_time(&arena, &result, shell_run_id),
	   "must not fire: cut off");
	result.stderr_length++;
	result.exit_code = 1;
	ok(!sbx_script_ran_out_of_time(&arena, &result, shell_run_id),
	   "must not fire: another exit code");
	result.has_exit_code = false;
	ok(!sbx_script_ran_out_of_time(&arena, &result, shell_run_id),
	   "must not fire: none");
	sbx_arena_free(&arena);
}

void
test_agent37_shell(void)
{
	shell_begin();
	in_time();
	background();
	too_late();
	killed_sleep();
	without_means();
	forged();
	section("Agent37 text");
	shell_end();
}
