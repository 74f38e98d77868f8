/*
 * test_daytona_sessions.c
 *		What a run leaves for the next of its session, by real shells.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static const char *outer;    /* the shell that sources the text */
static const char *programs; /* for names: what the script itself is run by */
static char session[60];
static char session_file[100];

static SbxRunInput
in_session(const char *command)
{
	SbxRunInput input = shell_input(command);

	input.session = session;
	return input;
}

static ShellRun
run(const SbxRunInput *input)
{
	char *text = shell_wrapped(input);
	ShellRun ran = shell_source(outer, text);

	free(text);
	return ran;
}

static ShellRun
run_text(const char *command)
{
	SbxRunInput input = in_session(command);

	return run(&input);
}

static void
prints(const char *command, int exit_code, const char *out, const char *what)
{
	ShellRun ran = run_text(command);

	if (!ok(ran.noted && ran.exit_code == exit_code && strcmp(ran.out, out) == 0 &&
	            ran.err[0] == '\0',
	        "%s, %s: %s", outer, programs, what))
		printf("# noted %d, code %d\n# out: %s\n# expected: %s\n# err: %s\n", ran.noted,
		       ran.exit_code, ran.out, out, ran.err);
}

static void
forget(void)
{
	unlink(session_file);
}

static void
kept(void)
{
	struct stat facts;
	int mode = 0;

	forget();
	prints("echo \"${A-unset}\"; pwd >/dev/null", 0, "unset\n",
	       "the first has nothing");
	prints("export A='it'\\''s \"$HOME\" `x` $(x) \\ \\n'; export B='x\ny\n'; "
	       "export D=; C=1; export E_1='\xc3\xa4\t*'; cd /usr/bin; exit 3",
	       3, "", "its exit code stays its own");
	if (stat(session_file, &facts) == 0)
		mode = (int) facts.st_mode & 0777;
	is_number(mode, 0600, "%s, %s: for nobody else", outer, programs);
	prints(
	    "printf '<%s>' \"$A\" \"$B\" \"${C-unset}\" \"${D-unset}\" \"$E_1\" \"$PWD\" "
	    "\"${sbx_directory-unset}\"; printenv A >/dev/null || echo no",
	    0,
	    "<it's \"$HOME\" `x` $(x) \\ \\n><x\ny\n><unset><><\xc3\xa4\t*></usr/bin>"
	    "<unset>",
	    "exported variables and the directory are there");
	prints("pwd; unset A; exit 4", 4, "/usr/bin\n", "also after one that left them");
	prints("echo \"${A-unset}\" \"$E_1\"", 0, "unset \xc3\xa4\t*\n",
	       "what was unset is not");
}

static void
directories(void)
{
	static const char *const names[] = {"a b", "it's",     "-d", "\"$HOME\"", "`x`",
	                                    "\\n", "\xc3\xa4", "*",  "a\nb"};

	forget();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		char path[300];
		char line[400];

		shell_path(path, names[i]);
		mkdir(path, 0700);
		{
			SbxRunInput input = in_session(":");

			input.cwd = path;
			is_number(run(&input).exit_code, 0, "%s, %s: in directory %zu", outer,
			          programs, i);
		}
		snprintf(line, sizeof(line), "%s\n", path);
		prints("pwd", 0, line, "is there again");
		rmdir(path);
	}
	ok(run_text("pwd").exit_code == 0, "%s, %s: a directory that is gone ends nothing",
	   outer, programs);
	forget();
}

static void
endings(void)
{
	ShellRun ran;

	forget();
	prints("set -e; export A=1; cd /usr; false; export A=2", 1, "", "set -e");
	prints("echo $A; pwd", 0, "1\n/usr\n", "set -e leaves what was there");
	prints("trap 'echo own' EXIT; export A=9; exit 5", 5, "own\n", "a trap of its own");
	prints("echo $A", 0, "1\n", "a trap of its own leaves nothing");
	ran = run_text("export A=9; kill -9 $$");
	is_number(ran.exit_code, 137, "%s, %s: killed", outer, programs);
	prints("echo $A", 0, "1\n", "one that is killed leaves nothing");
	prints("export A=2; (exit 6); export A=3; (export A=4; exit)", 0, "",
	       "subshells leave nothing of their own");
	prints("echo $A", 0, "3\n", "and take nothing away");
	prints("set -u; set -f; set -C; export A=4; exit 7", 7, "", "options");
	prints("echo $A", 0, "4\n", "do not hurt");
	ran = run_text("set -x\n: a\nexit 2");
	ok(ran.exit_code == 2 && strstr(ran.err, "sbx_") == NULL &&
	       strstr(ran.err, "export") == NULL && strstr(ran.err, ": a") != NULL,
	   "%s, %s: a trace has the script's own lines only", outer, programs);
}

static void
syntax_error(void)
{
	ShellRun ran;

	forget();
	prints("export A=1", 0, "", "a variable");
	ran = run_text("export A=2\nif\n");
	ok(ran.noted && ran.exit_code != 0, "%s, %s: a syntax error", outer, programs);
	ran = run_text("echo $A");
	ok(ran.exit_code == 0 &&
	       (strcmp(ran.out, "1\n") == 0 || strcmp(ran.out, "2\n") == 0),
	   "%s, %s: does not spoil the session", outer, programs);
}

static void
given(void)
{
	static const SbxPair env[] = {{"A", "given"}, {"N", "x\ny"}};
	SbxRunInput input = in_session("echo \"$A\" \"$N\"; pwd");
	char *long_text = malloc(200001);
	ShellRun ran;

	forget();
	prints("export A=left N=left; cd /usr/bin", 0, "", "left");
	input.env = env;
	input.env_count = 2;
	input.cwd = "/usr";
	ran = run(&input);
	is_text(ran.out, "given x\ny\n/usr\n", "%s, %s: what is given wins", outer,
	        programs);
	prints("echo \"$A\"; pwd", 0, "given\n/usr\n", "and is left for the next");

	memset(long_text, '\n', 200000);
	strcpy(long_text + 200000 - 40, "echo $A; export A=long; exit 3");
	ran = run_text(long_text);
	ok(ran.exit_code == 3 && strcmp(ran.out, "given\n") == 0, "%s, %s: a long script",
	   outer, programs);
	prints("echo $A", 0, "long\n", "leaves its variables, too");
	free(long_text);
}

static void
two_sessions(void)
{
	SbxRunInput other = in_session("echo ${A-unset}; export A=2; cd /usr");
	SbxRunInput none = shell_input("echo ${A-unset}; export A=3");
	char name[80];
	char path[120];

	forget();
	snprintf(name, sizeof(name), "%s-2", session);
	snprintf(path, sizeof(path), "%s-2", session_file);
	other.session = name;
	prints("export A=1; cd /usr/bin", 0, "", "one session");
	is_text(run(&other).out, "unset\n", "%s, %s: another begins anew", outer, programs);
	is_text(run(&none).out, "unset\n", "%s, %s: none has nothing", outer, programs);
	prints("echo $A; pwd", 0, "1\n/usr/bin\n", "they do not mix");
	unlink(path);
}

/* Nothing of ours may be left beside the sessions' files. */
static void
no_rest(void)
{
	char line[200];

	forget();
	snprintf(line, sizeof(line), "! ls %s* >/dev/null 2>&1", session_file);
	ok(system(line) == 0, "%s, %s: no other file is left", outer, programs);
}

void
test_daytona_sessions(void)
{
	const char *everywhere = shell_programs;

	section("session");
	shell_begin();
	snprintf(session, sizeof(session), "%s_S", shell_run_id);
	snprintf(session_file, sizeof(session_file), "/tmp/.sbx-session-%s", session);
	for (int i = 0; i < SHELLS; i++)
	{
		for (int without = 0; without < 3; without++)
		{
			static const char *const names[] = {"run by bash", "run by sh",
			                                    "no groups"};

			outer = shells[i];
			programs = names[without];
			shell_programs = without == 0   ? everywhere
			                 : without == 1 ? shell_without("bash")
			                                : shell_without("setsid");
			kept();
			directories();
			endings();
			syntax_error();
			given();
			two_sessions();
			no_rest();
		}
	}
	shell_programs = everywhere;
	shell_end();
}
