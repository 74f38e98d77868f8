/*
 * unit_shell.c
 *		Texts sourced by real shells, as the toolbox does with a command.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/script.h"
#include "unit.h"

char shell_directory[] = "/tmp/sbx_unit_XXXXXX";
const char *const shells[SHELLS] = {"bash", "dash"};

char shell_run_id[30];
const char *shell_programs = "/usr/bin:/bin";

/* As of another run of these tests, at the same time. */
static char shell_others_file[60];

void
shell_begin(void)
{
	snprintf(shell_others_file, sizeof(shell_others_file),
	         SBX_SCRIPT_FILE "unit-%dx-run", (int) getpid());
	close(open(shell_others_file, O_WRONLY | O_CREAT, 0600));
	snprintf(shell_run_id, sizeof(shell_run_id), "unit-%d-run", (int) getpid());
	strcpy(shell_directory, "/tmp/sbx_unit_XXXXXX");
	if (mkdtemp(shell_directory) == NULL)
		exit(1);
}

const char *
shell_without(const char *program)
{
	static char path[200];
	char line[1000];

	shell_path(path, program);
	snprintf(
	    line, sizeof(line),
	    "mkdir -p '%s' && cd '%s' && for p in bash sh setsid rm mv cat head wc mktemp "
	    "sleep mkdir rmdir ls ln readlink cut ps printenv; do [ $p = %s ] || ln "
	    "-sf "
	    "\"$(command -v "
	    "$p)\" .; done",
	    path, path, program);
	ok(system(line) == 0, "programs without %s", program);
	return path;
}

void
shell_end(void)
{
	char line[200];

	snprintf(line, sizeof(line), "rm -rf '%s'", shell_directory);
	ok(system(line) == 0, "tidied up");
	ok(unlink(shell_others_file) == 0,
	   "must not fire: files of another run are left alone");
}

void
shell_path(char *path, const char *name)
{
	snprintf(path, 200, "%s/%s", shell_directory, name);
}

static void
write_file(const char *name, const char *text)
{
	char path[200];
	FILE *file;

	shell_path(path, name);
	file = fopen(path, "w");
	if (file == NULL || fputs(text, file) < 0)
		exit(1);
	fclose(file);
}

static bool
read_file(const char *name, char *text, size_t size)
{
	char path[200];
	FILE *file;
	size_t length;

	text[0] = '\0';
	shell_path(path, name);
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	length = fread(text, 1, size - 1, file);
	text[length] = '\0';
	fclose(file);
	unlink(path);
	return true;
}

ShellRun
shell_source(const char *shell, const char *text)
{
	static const char daemon[] =
	    "cd \"$1\" && PATH=$2 && . ./cmd >out 2>err; { echo $? >code; } 2>/dev/null";
	ShellRun ran = {0};
	char code[20];
	char path[200];
	pid_t child;

	write_file("cmd", text);
	write_file("in", "stolen\n");
	child = fork();
	if (child == 0)
	{
		shell_path(path, "in");
		dup2(open(path, O_RDONLY), 0);
		execlp(shell, shell, "-c", daemon, shell, shell_directory, shell_programs,
		       (char *) NULL);
		_exit(127);
	}
	waitpid(child, NULL, 0);
	read_file("out", ran.out, sizeof(ran.out));
	read_file("err", ran.err, sizeof(ran.err));
	ran.noted = read_file("code", code, sizeof(code)) && code[0] != '\0';
	ran.exit_code = atoi(code);
	return ran;
}

/* The toolbox pipes the text of a one-shot command to a shell. */
ShellRun
shell_piped(const char *shell, const char *text)
{
	char line[1000];
	ShellRun ran = {0};
	int status;

	write_file("piped", text);
	snprintf(line, sizeof(line), "cd '%s' && PATH='%s' /usr/bin/%s <piped >out 2>err",
	         shell_directory, shell_programs, shell);
	status = system(line);
	ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	read_file("out", ran.out, sizeof(ran.out));
	read_file("err", ran.err, sizeof(ran.err));
	return ran;
}

/* Where ps cannot be run nothing is known, and so nobody dead. */
bool
shell_all_dead(pid_t group)
{
	char line[120];

	snprintf(line, sizeof(line),
	         "ps -o stat= -p $$ >/dev/null && ! ps -o stat= -g %d | grep -qv '^Z'",
	         (int) group);
	return system(line) == 0;
}

SbxRunInput
shell_input(const char *command)
{
	SbxRunInput input = plain_run(command);

	input.run_id = shell_run_id;
	return input;
}

char *
shell_wrapped(const SbxRunInput *input)
{
	SbxTarget target = {.sandbox_id = ID};
	Drive drive;
	json_t *body;
	char *text;

	drive =
	    opened(sbx_kind_daytona.run_script(account_reset(&account), &target, input));
	drive_answer(&drive, 201, "");
	body = sbx_json_parse(drive.op->request.body, drive.op->request.body_length, false);
	text = strdup(sbx_json_string(body, "command"));
	json_decref(body);
	drive_end(&drive);
	return text;
}
