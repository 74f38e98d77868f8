/*
 * test_daytona_texts.c
 *		Scripts that nobody waits for, and the texts that ask about them, by real shells.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/script.h"
#include "unit.h"

static SbxArena arena;

static void
beside(char *path, const char *suffix)
{
	snprintf(path, 100, SBX_SCRIPT_FILE "%s%s", shell_run_id, suffix);
}

/* A file beside the script, or where a link leads; false when there is none. */
static bool
left(const char *suffix, char *text, size_t size)
{
	char path[100];
	FILE *file;
	size_t length;
	ssize_t linked;

	text[0] = '\0';
	beside(path, suffix);
	linked = readlink(path, text, size - 1);
	if (linked >= 0)
	{
		text[linked] = '\0';
		return true;
	}
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	length = fread(text, 1, size - 1, file);
	text[length] = '\0';
	fclose(file);
	return true;
}

static int
mode_of(const char *suffix)
{
	struct stat facts;
	char path[100];

	beside(path, suffix);
	return stat(path, &facts) == 0 ? (int) facts.st_mode & 0777 : -1;
}

static ShellRun
piped(const char *shell, const char *text)
{
	return shell_piped(shell, text);
}

#define FINGERPRINT "0123456789abcdef"

/* As in a new sandbox. */
static void
clear(void)
{
	char line[300];

	snprintf(line, sizeof(line), "rm -rf " SBX_SCRIPT_FILE "%s*", shell_run_id);
	ok(system(line) == 0, "cleared");
}

static void
claim_says(const char *shell, const char *fingerprint, const char *expected,
           const char *what)
{
	ShellRun ran =
	    piped(shell, sbx_script_claim_text(&arena, shell_run_id, fingerprint));

	is_text(ran.out, expected, "%s: claim: %s", shell, what);
	is_text(ran.err, "", "%s: claim: %s: silent", shell, what);
}

static ShellRun
in_background(const char *shell, const SbxRunInput *input)
{
	return shell_source(shell, sbx_script_background_text(&arena, input));
}

static void
status_is(const char *shell, const char *expected, const char *what)
{
	ShellRun ran =
	    piped(shell, sbx_script_status_text(&arena, shell_run_id, FINGERPRINT));

	is_text(ran.out, expected, "%s: status: %s", shell, what);
	is_text(ran.err, "", "%s: status: %s: silent", shell, what);
}

static ShellRun
read_log(const char *shell, bool of_errors, size_t maximum)
{
	return piped(shell, sbx_script_log_text(&arena, shell_run_id, FINGERPRINT,
	                                        of_errors, maximum));
}

/* The group that the script names once it runs. */
static pid_t
named_group(void)
{
	char text[100];

	for (int i = 0; i < 5000; i++)
	{
		if (left("", text, sizeof(text)) && atoi(text) > 0)
			return (pid_t) atoi(text);
		usleep(1000);
	}
	return 0;
}

/* The shell of a session, with a text that takes its time. */
static pid_t
start_daemon(const char *shell, const char *text)
{
	pid_t daemon = fork();

	if (daemon == 0)
	{
		setpgid(0, 0);
		shell_source(shell, text);
		_exit(0);
	}
	setpgid(daemon, daemon);
	return daemon;
}

/* What the text waits for; gone again once it has seen it. */
static void
let_go(pid_t daemon)
{
	char path[200];
	FILE *file;

	shell_path(path, "go");
	file = fopen(path, "w");
	ok(file != NULL && fclose(file) == 0, "let go");
	waitpid(daemon, NULL, 0);
	unlink(path);
}

/* --- background ---------------------------------------------------------- */

static void
background(const char *shell, const char *programs)
{
	SbxRunInput input = shell_input("echo out; echo err >&2; cat; exit 3");
	char text[4096];
	ShellRun ran;

	clear();
	claim_says(shell, FINGERPRINT, "new\n", "nobody has it");
	ran = in_background(shell, &input);
	ok(ran.noted && ran.exit_code == 3 && ran.out[0] == '\0' && ran.err[0] == '\0',
	   "%s, %s: the session's shell lives, and is told the code alone", shell,
	   programs);
	ok(left(".out", text, sizeof(text)), "%s, %s: output", shell, programs);
	is_text(text, "out\n", "%s, %s: in a file, input was empty", shell, programs);
	ok(left(".err", text, sizeof(text)), "%s, %s: errors", shell, programs);
	is_text(text, "err\n", "%s, %s: in a file", shell, programs);
	ok(left(".exit", text, sizeof(text)), "%s, %s: exit code", shell, programs);
	is_text(text, "3", "%s, %s: in a link", shell, programs);
	ok(!left("", text, sizeof(text)), "%s, %s: no name stays", shell, programs);
	is_number(mode_of(".out"), 0600, "%s, %s: output for nobody else", shell, programs);
	is_number(mode_of(".err"), 0600, "%s, %s: errors for nobody else", shell, programs);
	status_is(shell, "3\n", "ended");
	claim_says(shell, FINGERPRINT, "3\n", "the same again");
	claim_says(shell, "0123456789abcdee", "another\n", "another");
	clear();
}

static void
background_scripts(const char *shell)
{
	static const struct
	{
		const char *command;
		const char *code;
	} rows[] = {{"", "0"},           {"kill -9 $$", "137"},     {"set -e; false", "1"},
	            {"exit 255", "255"}, {"# only a comment", "0"}, {"exit 0", "0"}};
	char *long_text = malloc(200001);
	char text[4096];
	ShellRun ran;
	SbxRunInput input;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		clear();
		input = shell_input(rows[i].command);
		ran = in_background(shell, &input);
		left(".exit", text, sizeof(text));
		ok(ran.noted && strcmp(text, rows[i].code) == 0, "%s: '%s' ends with %d", shell,
		   rows[i].command, atoi(rows[i].code));
	}
	clear();
	claim_says(shell, FINGERPRINT, "new\n", "a long script");
	memset(long_text, '\n', 200000);
	strcpy(long_text + 200000 - 30, "echo long; exit 6");
	input = shell_input(long_text);
	in_background(shell, &input);
	left(".out", text, sizeof(text));
	is_text(text, "long\n", "%s: a long script", shell);
	status_is(shell, "6\n", "a long script");
	clear();
	free(long_text);
}

static void
outlived(const char *shell)
{
	SbxRunInput input = shell_input("sleep 60 & echo $!");
	char text[100];
	pid_t child;

	clear();
	claim_says(shell, FINGERPRINT, "new\n", "one that leaves a process");
	in_background(shell, &input);
	left(".out", text, sizeof(text));
	child = (pid_t) atoi(text);
	ok(child > 0 && kill(child, 0) == 0, "%s: a process outlives its script", shell);
	status_is(shell, "0\n", "ended all the same");
	if (child > 0)
		kill(child, SIGKILL);
	clear();
}

/* Without a place for its files it does not run, and that is no success. */
static void
no_place(const char *shell)
{
	SbxRunInput input = shell_input("echo ran >ran");
	const char *text = sbx_script_background_text(&arena, &input);
	char *elsewhere = malloc(2 * strlen(text) + 1);
	char *end = elsewhere;
	char path[200];
	ShellRun ran;

	while (*text != '\0')
	{
		if (strncmp(text, "/tmp/", 5) == 0)
		{
			end = stpcpy(end, "/nonexistent/");
			text += 5;
		}
		else
			*end++ = *text++;
	}
	*end = '\0';
	ran = shell_source(shell, elsewhere);
	shell_path(path, "ran");
	ok(ran.noted, "%s: no place for files: the session's shell lives", shell);
	ok(ran.exit_code != 0 && access(path, F_OK) != 0,
	   "%s: nothing ran, and that is said", shell);
	unlink(path);
	free(elsewhere);
}

/*
 * A text that is delivered twice, the second time while the first runs: it does nothing,
 * and takes nothing from the one that runs.
 */
static void
delivered_twice(const char *shell, const char *programs)
{
	SbxRunInput input =
	    shell_input("echo ran; while [ ! -f go ]; do sleep 0.02; done; exit 5");
	const char *text = sbx_script_background_text(&arena, &input);
	char output[100];
	pid_t daemon;

	clear();
	claim_says(shell, FINGERPRINT, "new\n", "delivered twice");
	daemon = start_daemon(shell, text);
	ok(named_group() > 0, "%s, %s: the first runs", shell, programs);
	shell_source(shell, text);
	status_is(shell, "running\n", "the second changes nothing");
	let_go(daemon);
	status_is(shell, "5\n", "the first has ended");
	ok(!left("", output, sizeof(output)), "%s, %s: no name stays", shell, programs);
	left(".out", output, sizeof(output));
	is_text(output, "ran\n", "%s, %s: it ran once", shell, programs);
	shell_source(shell, text);
	status_is(shell, "5\n", "a third changes nothing, either");
	clear();
}

/* What the shell brings along that sources the text. */
static void
inherited(const char *shell, const char *before, const char *command,
          const char *expected)
{
	SbxRunInput input = shell_input(command);
	const char *text = sbx_script_background_text(&arena, &input);
	char *whole = malloc(strlen(before) + strlen(text) + 1);

	clear();
	claim_says(shell, FINGERPRINT, "new\n", before);
	strcpy(whole, before);
	strcat(whole, text);
	shell_source(shell, whole);
	status_is(shell, expected, before);
	free(whole);
	clear();
}

static void
surroundings(const char *shell)
{
	inherited(shell, "set -e; ", "exit 3", "3\n");
	inherited(shell, "set -C; ", "echo x; exit 4", "4\n");
	inherited(shell, "set -u; ", "exit 5", "5\n");

	/* Nothing can be written into any file, as on a full disk. */
	inherited(shell, "trap '' XFSZ; ulimit -f 0; ", "exit 7", "7\n");
}

/* --- status -------------------------------------------------------------- */

/*
 * A script that is not alive gets three looks, a second apart, before it is lost.  That
 * they are made of a script that has just died is statuses()'s to see, with a real sleep;
 * where nothing ever was that could write an exit code, nobody has to sleep for it.
 */
static const char *
without_rest(void)
{
	static char programs[300];
	char path[200];
	char line[500];

	shell_path(path, "restless");
	snprintf(line, sizeof(line),
	         "mkdir -p '%s' && cd '%s' && echo '#!/bin/sh' >sleep && chmod +x sleep",
	         path, path);
	ok(system(line) == 0, "a sleep that takes no time");
	snprintf(programs, sizeof(programs), "%s:%s", path, shell_programs);
	return programs;
}

static void
statuses(const char *shell)
{
	SbxRunInput input = shell_input("trap 'exit 4' TERM; while :; do sleep 0.02; done");
	const char *text = sbx_script_background_text(&arena, &input);
	pid_t daemon;
	pid_t group;

	clear();
	status_is(shell, "nothing\n", "no trace");
	claim_says(shell, "0123456789abcdee", "new\n", "another has it");
	status_is(shell, "another\n", "another has it");
	clear();
	claim_says(shell, FINGERPRINT, "new\n", "ours");
	status_is(shell, "claimed\n", "ours, not begun");
	claim_says(shell, FINGERPRINT, "claimed\n", "once more");
	daemon = start_daemon(shell, text);
	group = named_group();
	ok(group > 0, "%s: it names its group", shell);
	status_is(shell, "running\n", "while it runs");
	kill(group, SIGTERM);
	waitpid(daemon, NULL, 0);
	status_is(shell, "4\n", "ended");
	clear();

	/* It may call itself what it likes. */
	input = shell_input(
	    "printf ') Z\\n1) ' >/proc/$$/comm; until [ -f go ]; do sleep 0.02; "
	    "done");
	claim_says(shell, FINGERPRINT, "new\n", "one with a strange name");
	daemon = start_daemon(shell, sbx_script_background_text(&arena, &input));
	group = named_group();
	status_is(shell, "running\n", "one with a strange name");
	let_go(daemon);
	status_is(shell, "0\n", "one with a strange name");
	clear();

	/* The toolbox dies, and everything with it: as when the sandbox stops. */
	claim_says(shell, FINGERPRINT, "new\n", "one that gets lost");
	daemon = start_daemon(shell, text);
	group = named_group();
	kill(-daemon, SIGKILL);
	waitpid(daemon, NULL, 0);
	kill(-group, SIGKILL);
	while (waitpid(-group, NULL, 0) > 0)
		;
	status_is(shell, "lost\n", "it will never have an exit code");
	claim_says(shell, FINGERPRINT, "lost\n", "and nobody starts it again");
	clear();
}

/* After a stop, numbers of processes come again. */
static void
numbered_again(const char *shell)
{
	static const char *const names[] = {"", ".once"};
	const char *everywhere = shell_programs;
	char path[100];
	char target[60];

	shell_programs = without_rest();
	for (int i = 0; i < 2; i++)
	{
		clear();
		claim_says(shell, FINGERPRINT, "new\n", "numbered again");
		snprintf(target, sizeof(target), "%d:12345", (int) getpid());
		beside(path, names[i]);
		ok(symlink(target, path) == 0, "another process of that number");
		if (i == 0)
		{
			beside(path, ".once");
			ok(symlink(target, path) == 0, "and of the shell's");
		}
		status_is(shell, "lost\n", "another process of that number");
	}
	snprintf(target, sizeof(target), "%d:", (int) getpid());
	clear();
	claim_says(shell, FINGERPRINT, "new\n", "without /proc");
	ok(symlink(target, path) == 0, "without /proc");
	status_is(shell, "running\n", "without /proc the number counts");
	clear();
	shell_programs = everywhere;
}

/* Many at once: one gets it. */
static void
claimed_by_many(const char *shell)
{
	char line[4000];
	char winners[20];
	FILE *pipe;

	clear();
	snprintf(line, sizeof(line),
	         "cd '%s' && for i in 1 2 3 4 5 6 7 8 9; do %s -c '%s' & done | "
	         "grep -c '^new$'",
	         shell_directory, shell,
	         sbx_script_claim_text(&arena, shell_run_id, FINGERPRINT));
	ok(strlen(line) < sizeof(line) - 1, "%s: many", shell);
	pipe = popen(line, "r");
	if (!ok(pipe != NULL && fgets(winners, sizeof(winners), pipe) != NULL, "%s: many",
	        shell))
		winners[0] = '\0';
	is_text(winners, "1\n", "%s: of nine that claim at once, one gets it", shell);
	pclose(pipe);
	clear();
}

/* --- logs and counts ----------------------------------------------------- */

static void
logs(const char *shell)
{
	SbxRunInput input = shell_input("printf 'ab\\ncd'; printf 'e\\377f' >&2");
	ShellRun ran;

	clear();
	ran = read_log(shell, false, 10);
	ok(ran.exit_code != 0 && ran.out[0] == '\0' && ran.err[0] == '\0',
	   "%s: no such script is a failure, without a word", shell);
	claim_says(shell, "0123456789abcdee", "new\n", "another has it");
	in_background(shell, &input);
	ok(read_log(shell, false, 10).exit_code != 0, "%s: nor is another's its own",
	   shell);
	clear();
	claim_says(shell, FINGERPRINT, "new\n", "for logs");
	ran = read_log(shell, false, 10);
	ok(ran.exit_code == 0 && ran.out[0] == '\0' && ran.err[0] == '\0',
	   "%s: nothing written yet is nothing", shell);
	in_background(shell, &input);
	ran = read_log(shell, false, 10);
	ok(ran.exit_code == 0 && strcmp(ran.out, "ab\ncd") == 0, "%s: output", shell);
	ran = read_log(shell, true, 10);
	ok(ran.exit_code == 0 && strcmp(ran.out, "e\377f") == 0, "%s: errors", shell);
	ran = read_log(shell, false, 4);
	ok(ran.exit_code == 0 && strcmp(ran.out, "ab\nc") == 0, "%s: the head of it",
	   shell);
	ran = read_log(shell, false, 1);
	ok(ran.exit_code == 0 && strcmp(ran.out, "a") == 0, "%s: one byte", shell);
	clear();
}

static void
counts(const char *shell)
{
	static const char *const names[] = {"plain",    "a b", "it's", "-n", "$HOME",
	                                    "\"q\"",    "\\n", "`x`",  "*",  "a;b",
	                                    "\xc3\xa4", "a&b", "a\tb", "(",  "#"};
	char path[300];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		FILE *file;

		shell_path(path, names[i]);
		file = fopen(path, "w");
		if (file == NULL)
			exit(1);
		fputs("12345", file);
		fclose(file);
		is_number(piped(shell, sbx_script_count_text(&arena, path, 5)).exit_code, 0,
		          "%s: %s has 5 bytes", shell, names[i]);
		ok(piped(shell, sbx_script_count_text(&arena, path, 4)).exit_code != 0 &&
		       piped(shell, sbx_script_count_text(&arena, path, 0)).exit_code != 0,
		   "%s: %s has no other number", shell, names[i]);
		truncate(path, 0);
		is_number(piped(shell, sbx_script_count_text(&arena, path, 0)).exit_code, 0,
		          "%s: %s is empty", shell, names[i]);
		unlink(path);
		ok(piped(shell, sbx_script_count_text(&arena, path, 0)).exit_code != 0,
		   "%s: %s is not there", shell, names[i]);
	}
	ok(piped(shell, sbx_script_count_text(&arena, shell_directory, 0)).exit_code != 0,
	   "%s: a directory is no file", shell);
}

/* --- images that lack something ------------------------------------------ */

static void
poor_image(const char *shell, const char *missing)
{
	static const char *const nothing[] = {"", "# a comment", "\n"};
	const char *everywhere = shell_programs;
	SbxRunInput input;

	shell_programs = shell_without(missing);
	background(shell, missing);
	delivered_twice(shell, missing);
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
	{
		char *text;

		input = shell_input(nothing[i]);
		text = shell_wrapped(&input);
		is_number(shell_source(shell, text).exit_code, 0,
		          "%s without %s: nothing to do is no failure: %zu", shell, missing, i);
		free(text);
	}
	input = shell_input("echo $?");
	{
		char *text = shell_wrapped(&input);

		is_text(shell_source(shell, text).out, "0\n",
		        "%s without %s: nothing has failed", shell, missing);
		free(text);
	}
	shell_programs = everywhere;
}

void
test_daytona_texts(void)
{
	section("background");
	shell_begin();

	/* What loses its parent is ours to reap, as it is init's elsewhere. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sbx_arena_init(&arena, 0, SIZE_MAX);
	for (int i = 0; i < SHELLS; i++)
	{
		background(shells[i], "all");
		background_scripts(shells[i]);
		outlived(shells[i]);
		no_place(shells[i]);
		delivered_twice(shells[i], "all");
		statuses(shells[i]);
		claimed_by_many(shells[i]);
		numbered_again(shells[i]);
		surroundings(shells[i]);
		logs(shells[i]);
		counts(shells[i]);
		poor_image(shells[i], "setsid");
		poor_image(shells[i], "bash");
	}
	sbx_arena_free(&arena);
	shell_end();
}
