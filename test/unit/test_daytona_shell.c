/*
 * test_daytona_shell.c
 *		The text given to a session's shell, sourced by real shells.
 *
 * The toolbox sources a command in a shell that lives on and then notes `$?`.
 * The same is done here: if the text ends the shell, no note is written, which in
 * the toolbox would be a call that never returns.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/script.h"
#include "unit.h"

/* Both shells end up with this exit code (-1: any but 0) and output (NULL: any). */
static void
runs(const SbxRunInput *input, int exit_code, const char *out, const char *what)
{
	char *text = shell_wrapped(input);

	for (size_t i = 0; i < SHELLS; i++)
	{
		ShellRun ran = shell_source(shells[i], text);
		bool right = exit_code < 0 ? ran.exit_code != 0 : ran.exit_code == exit_code;

		if (!ok(ran.noted && right && (out == NULL || strcmp(ran.out, out) == 0),
		        "%s: %s", shells[i], what))
			printf("# noted %d, code %d, out: %s err: %s\n", ran.noted, ran.exit_code,
			       ran.out, ran.err);
	}
	free(text);
}

static void
runs_text(const char *command, int exit_code, const char *out, const char *what)
{
	SbxRunInput input = shell_input(command);

	runs(&input, exit_code, out, what);
}

/* The trap itself: if this stops being true, the wrapping proves nothing. */
static void
trap_is_real(void)
{
	section("unwrapped");
	ok(!shell_source("bash", "exit 3").noted, "bash: exit leaves no exit code");
	ok(!shell_source("dash", "exit 3").noted, "dash: exit leaves no exit code");
	ok(!shell_source("bash", "set -e\nfalse\n").noted, "bash: set -e leaves none");
	ok(!shell_source("dash", "if\n").noted, "dash: a syntax error leaves none");
	ok(strcmp(shell_source("bash", "cat").out, "stolen\n") == 0, "input is stolen");
}

static void
plain_scripts(void)
{
	section("wrapped");
	runs_text("exit 3", 3, "", "exit");
	runs_text("set -e\nfalse\necho no", 1, "", "set -e");
	runs_text("echo a; echo b", 0, "a\nb\n", "output");
	runs_text("", 0, "", "nothing");
	runs_text("\n\n# only a comment", 0, "", "a comment without a line end");
	runs_text("}", -1, NULL, "unbalanced brace");
	runs_text("fi", -1, NULL, "unbalanced fi");
	runs_text("'", -1, NULL, "unbalanced single quote");
	runs_text("\"", -1, NULL, "unbalanced double quote");
	runs_text("(", -1, NULL, "unbalanced parenthesis");
	runs_text("echo 'a'\\''b'; exit 4", 4, "a'b\n", "quotes");
	runs_text("echo \"$((1+1))\" `echo x` '$HOME' \\\\", 0, "2 x $HOME \\\n",
	          "expansion");
	runs_text("cat <<E\n$(echo in)\nE\nexit 5", 5, "in\n", "here-document");
	runs_text("cat <<'E'\n$x '\nE", 0, "$x '\n", "quoted here-document at the end");
	runs_text("cat <<E\nopen", 0, NULL, "here-document without an end");
	runs_text("cat; echo after", 0, "after\n", "standard input is empty");
	runs_text("read x; echo $?", 0, "1\n", "read finds the end of it");
	runs_text("kill -9 $$", 137, "", "killed by a signal");
	runs_text("exec true", 0, "", "exec");
	runs_text("trap 'echo bye' EXIT; exit 6", 6, "bye\n", "a trap");
	runs_text("return 7 2>/dev/null; echo r", 0, NULL, "return");
	runs_text("printf '%s' \"\xc3\xa4\xe2\x82\xac\"", 0, "\xc3\xa4\xe2\x82\xac",
	          "UTF-8");
	runs_text("echo \\", 0, NULL, "a backslash at the end");
	runs_text("echo a\r", 0, "a\r\n", "carriage return");
	runs_text("#!/bin/sh\necho x", 0, "x\n", "a first line with an interpreter");
}

static void
environment(void)
{
	static const SbxPair env[] = {
	    {"A", "it's"},      {"B", "x\ny\n"},      {"C", "$HOME `id` $(id) \"\\"},
	    {"D", ""},          {"E_1", "'"},         {"F", "-n"},
	    {"G", "a; exit 9"}, {"H", "\xc3\xa4 b\t"}};
	static const char show[] =
	    "printf '<%s>' \"$A\" \"$B\" \"$C\" \"$D\" \"$E_1\" \"$F\" \"$G\" \"$H\"; "
	    "printf '%s' \"${sbx_newline-unset}\"; sh -c 'printf %s \"$A\"'";
	static const SbxPair one_line[] = {{"A", "x"}};
	static const SbxPair two_lines[] = {{"A", "x\ny"}};
	SbxRunInput input = shell_input(show);

	section("environment");
	input.env = env;
	input.env_count = sizeof(env) / sizeof(env[0]);
	runs(&input, 0,
	     "<it's><x\ny\n><$HOME `id` $(id) \"\\><><'><-n><a; exit 9><\xc3\xa4 b\t>"
	     "unsetit's",
	     "values arrive as given, and are exported");

	input = shell_input("#!/bin/sh\necho $A");
	input.env = one_line;
	input.env_count = 1;
	runs(&input, 0, "x\n", "the first line stays a comment");

	for (int i = 0; i < 2; i++)
	{
		char *text;

		input = shell_input("\necho $LINENO");
		input.env = i == 0 ? one_line : two_lines;
		input.env_count = 1;
		input.cwd = i == 0 ? "/tmp" : NULL;
		text = shell_wrapped(&input);
		for (size_t s = 0; s < 2; s++)
			is_text(shell_source(shells[s], text).out, "2\n",
			        "%s: line numbers are the user's", shells[s]);
		free(text);
	}
}

static void
directories(void)
{
	char quoted[200];
	char line[300];
	SbxRunInput input = shell_input("pwd; exit 2");

	section("directory");
	shell_path(quoted, "it's \"$HOME\"\n`x`");
	snprintf(line, sizeof(line), "mkdir '%s/it'\\''s \"$HOME\"\n`x`'", shell_directory);
	ok(system(line) == 0, "a directory with an odd name");
	input.cwd = quoted;
	snprintf(line, sizeof(line), "%s\n", quoted);
	runs(&input, 2, line, "is entered");

	input = shell_input("echo ran");
	input.cwd = "/nonexistent/x";
	runs(&input, -1, "", "one that does not exist ends the run before the script");
	input.cwd = "/";
	runs(&input, 0, "ran\n", "one that does exist does not");
}

static char *
long_script(size_t length, const char *tail)
{
	char *text = malloc(length + strlen(tail) + 1);

	memset(text, '\n', length);
	memcpy(text, ": '", 3);
	for (size_t i = 3; i < length - 2; i++)
		text[i] = i % 80 == 0 ? '\n' : 'a';
	text[length - 2] = '\'';
	strcpy(text + length, tail);
	return text;
}

static void
long_scripts(void)
{
	static const size_t lengths[] = {90000, 98290, 98304, 98320, 300 * 1024};
	static const SbxPair env[] = {{"A", "v"}};
	SbxRunInput input;
	char *text;
	char *outer;

	section("long script");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		text = long_script(lengths[i], "echo $A; cat; exit 3");
		input = shell_input(text);
		input.env = env;
		input.env_count = 1;
		runs(&input, 3, "v\n", "arguments have a limit, scripts do not");
		outer = shell_wrapped(&input);
		ok((strstr(outer, "mktemp") != NULL) == (lengths[i] > 98270), "%zu bytes: %s",
		   lengths[i], lengths[i] > 98270 ? "a file" : "an argument");
		free(outer);
		free(text);
	}

	/* Quotes grow: what counts is what the shell has to read. */
	text = malloc(60003);
	memset(text, '\'', 60002);
	memcpy(text, ": ", 2);
	text[60002] = '\0';
	input = shell_input(text);
	runs(&input, 0, "", "60,000 quotes");
	free(text);

	text = long_script(200000, "exit 8");
	input = shell_input(text);
	outer = shell_wrapped(&input);
	setenv("TMPDIR", shell_directory, 1);
	is_number(shell_source("dash", outer).exit_code, 8,
	          "the exit code survives tidying up");
	ok(system("ls \"$TMPDIR\"/tmp.* >/dev/null 2>&1") != 0, "no file is left");
	setenv("TMPDIR", "/nonexistent", 1);
	ok(shell_source("dash", outer).exit_code != 0, "no place for a file is a failure");
	unsetenv("TMPDIR");
	free(outer);
	free(text);
}

/* The group that the script is in while it runs; 0 = none is named. */
static pid_t
named_group(void)
{
	char text[20] = "";
	char path[100];
	FILE *file;

	snprintf(path, sizeof(path), SBX_SCRIPT_FILE "%s", shell_run_id);
	file = fopen(path, "r");
	if (file == NULL)
		return 0;
	if (fgets(text, sizeof(text), file) == NULL)
		text[0] = '\0';
	fclose(file);
	return (pid_t) atoi(text);
}

/* What the adapter sends to kill the script. */
static int
kill_script(const char *shell)
{
	char line[1000];
	char *text;
	SbxArena arena;
	int status;

	sbx_arena_init(&arena, 1000, 10000);
	text = (char *) sbx_script_kill_text(&arena, shell_run_id);
	snprintf(line, sizeof(line), "%s -c '%s' 2>/dev/null", shell, text);
	status = system(line);
	sbx_arena_free(&arena);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
background(void)
{
	ShellRun ran;
	pid_t left;
	char *text;
	SbxRunInput input = shell_input("sleep 60 >/dev/null 2>&1 & echo $!");

	section("background");
	text = shell_wrapped(&input);
	for (size_t i = 0; i < SHELLS; i++)
	{
		ran = shell_source(shells[i], text);
		left = (pid_t) atoi(ran.out);
		ok(left > 0 && kill(left, 0) == 0, "%s: a process outlives its run", shells[i]);
		ok(getpgid(left) != getpgrp(), "%s: in a group of its own", shells[i]);
		ok(named_group() == 0, "%s: no file is left", shells[i]);
		ok(kill_script(shells[i]) != 0, "%s: after the end there is nothing to kill",
		   shells[i]);
		ok(kill(left, 0) == 0, "%s: and nothing was", shells[i]);
		kill(left, SIGKILL);
	}
	free(text);

	ran = shell_source("dash",
	                   (text = shell_wrapped(&(SbxRunInput){.run_id = shell_run_id,
	                                                        .command = "kill -9 $$",
	                                                        .command_length = 10,
	                                                        .timeout_ms = 1000})));
	ok(ran.exit_code == 137 && ran.err[0] == '\0',
	   "the outer shell's remarks are not the script's output");
	free(text);
}

static void
killing(void)
{
	SbxRunInput input = shell_input("sleep 60 & echo $!; sleep 60");
	char *text = shell_wrapped(&input);
	pid_t child;
	pid_t group = 0;

	section("kill");
	for (size_t i = 0; i < SHELLS; i++)
	{
		child = fork();
		if (child == 0)
		{
			ShellRun ran = shell_source(shells[i], text);

			_exit(ran.exit_code == 137 ? 0 : 1);
		}
		while ((group = named_group()) == 0)
			usleep(1000);
		ok(kill_script(shells[i]) == 0, "%s: killed", shells[i]);
		waitpid(child, NULL, 0);

		/* Whoever adopts the orphan has to reap it before the group is gone. */
		for (int wait = 0;
		     wait < 10000 && kill(-group, 0) == 0 && !shell_all_dead(group); wait++)
			usleep(1000);
		ok(kill(-group, 0) != 0 || shell_all_dead(group), "%s: with all of its group",
		   shells[i]);
		ok(named_group() == 0, "%s: no file is left", shells[i]);
	}
	free(text);
}

/*
 * The child of a script is a group already, and is about to write its name: a pipe is
 * empty for whoever reads it first, and then has the name.
 */
static void
name_later(const char *path)
{
	char name[20];
	int file;

	setsid();
	close(open(path, O_WRONLY));
	while ((file = open(path, O_WRONLY | O_NONBLOCK)) >= 0)
		close(file); /* the first reader is still there */
	snprintf(name, sizeof(name), "%d\n", (int) getpid());
	file = open(path, O_WRONLY);
	if (write(file, name, strlen(name)) < 0)
		_exit(1);
	close(file);
	for (;;)
		pause();
}

static void
killing_early(void)
{
	char path[200];

	section("kill, early");
	snprintf(path, sizeof(path), SBX_SCRIPT_FILE "%s", shell_run_id);
	for (size_t i = 0; i < SHELLS; i++)
	{
		pid_t child;
		int status = 0;
		int file;

		ok(mkfifo(path, 0600) == 0, "%s: a pipe", shells[i]);
		child = fork();
		if (child == 0)
			name_later(path);
		ok(kill_script(shells[i]) == 0, "must fire: %s: the name comes a moment later",
		   shells[i]);
		kill(child, SIGTERM);
		waitpid(child, &status, 0);
		ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%s: it was killed",
		   shells[i]);
		unlink(path);
		file = open(path, O_WRONLY | O_CREAT, 0600);
		ok(kill_script(shells[i]) != 0, "must not fire: %s: it never comes", shells[i]);
		close(file);
		unlink(path);
	}
}

void
test_daytona_shell(void)
{
	shell_begin();
	trap_is_real();
	plain_scripts();
	environment();
	directories();
	long_scripts();
	background();
	killing();
	killing_early();
	shell_end();
}
