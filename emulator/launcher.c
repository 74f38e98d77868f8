/*
 * launcher.c
 *		A small process that starts the sandboxes' bubblewraps.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest_protocol.h"
#include "text.h"

/* How long a sandbox whose socket was closed may take to end by itself. */
#define END_PATIENCE_MS 2000

/*
 * Started by root, sandboxes run as this user (nobody): the limit on the
 * number of processes does not hold for root, not even inside a namespace.
 */
#define SANDBOX_UID 65534

/* Inside, everybody is this user. */
#define INNER_UID "1000"

typedef enum LauncherOrder
{
	ORDER_LAUNCH = 1,
	ORDER_END,
	ORDER_END_AND_REMOVE
} LauncherOrder;

typedef struct LauncherMessage
{
	LauncherOrder order;
	uint64_t guest;
	char home[EMU_HOME_SIZE];
	char user[32];
} LauncherMessage;

typedef struct Child
{
	struct Child *next;
	uint64_t guest;
	pid_t pid;
	bool ending;
	bool remove_files;
	int64_t kill_at;
} Child;

/* Of the emulator */
static int launcher_socket = -1;
static pid_t launcher_pid;

/* Of both */
static char state_directory[128];

/* Of the launcher */
static Child *children;
static bool as_nobody;

static int
remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void) status;
	(void) kind;
	(void) walk;
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

/* Directories that their owner made unreadable would stop the removal. */
static int
open_up(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void) walk;
	if (kind == FTW_D || kind == FTW_DNR)
		chmod(path, status->st_mode | 0700);
	return 0;
}

static void
remove_tree(const char *path)
{
	/* A directory opened up in one pass is walked into by the next one. */
	for (int attempt = 0; attempt < 16; attempt++)
	{
		if (nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS) == 0 ||
		    access(path, F_OK) != 0)
			return;
		nftw(path, open_up, 32, FTW_PHYS);
	}
}

static void
guest_path(char *path, size_t size, uint64_t guest, const char *name)
{
	snprintf(path, size, "%s/%llu/%s", state_directory, (unsigned long long) guest,
	         name);
}

static void
remove_guest(uint64_t guest)
{
	char path[192];

	guest_path(path, sizeof(path), guest, "");
	remove_tree(path);
}

static bool
make_directory(const char *path, mode_t mode)
{
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return false;
	if (chmod(path, mode) != 0)
		return false;
	return !as_nobody || chown(path, SANDBOX_UID, SANDBOX_UID) == 0;
}

static bool
write_file(const char *name, const char *text)
{
	char path[192];
	FILE *file;
	bool written;

	snprintf(path, sizeof(path), "%s/%s", state_directory, name);
	file = fopen(path, "we");
	if (file == NULL)
		return false;
	written = fputs(text, file) >= 0;
	return fclose(file) == 0 && written && chmod(path, 0644) == 0;
}

/*
 * The arguments of bubblewrap
 */

typedef struct Arguments
{
	const char *list[128];
	size_t count;
} Arguments;

static void
argue(Arguments *arguments, const char *const *words)
{
	for (; *words != NULL && arguments->count < 127; words++)
		arguments->list[arguments->count++] = *words;
	arguments->list[arguments->count] = NULL;
}

#define ARGUE(arguments, ...) argue(arguments, (const char *const[]){__VA_ARGS__, NULL})

/* /bin and its like are links into /usr here; elsewhere they are directories. */
static void
argue_system(Arguments *arguments)
{
	static const char *const tops[][2] = {
	    {"/bin", "usr/bin"},     {"/sbin", "usr/sbin"},   {"/lib", "usr/lib"},
	    {"/lib32", "usr/lib32"}, {"/lib64", "usr/lib64"}, {"/libx32", "usr/libx32"},
	};

	ARGUE(arguments, "--ro-bind", "/usr", "/usr");
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++)
	{
		struct stat status;

		if (lstat(tops[i][0], &status) != 0)
			continue;
		if (S_ISLNK(status.st_mode))
			ARGUE(arguments, "--symlink", tops[i][1], tops[i][0]);
		else
			ARGUE(arguments, "--ro-bind", tops[i][0], tops[i][0]);
	}
	ARGUE(arguments, "--ro-bind-try", "/etc/alternatives", "/etc/alternatives");
}

static void
exec_bubblewrap(const LauncherMessage *message)
{
	char paths[6][192];
	Arguments arguments = {0};

	guest_path(paths[0], sizeof(paths[0]), message->guest, "home");
	guest_path(paths[1], sizeof(paths[1]), message->guest, "tmp");
	snprintf(paths[2], sizeof(paths[2]), "%s/agent", state_directory);
	snprintf(paths[3], sizeof(paths[3]), "%s/passwd.%s", state_directory,
	         message->user);
	snprintf(paths[4], sizeof(paths[4]), "%s/group", state_directory);
	snprintf(paths[5], sizeof(paths[5]), "%s/shells", state_directory);

	ARGUE(&arguments, "bwrap", "--die-with-parent", "--as-pid-1", "--new-session",
	      "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
	      "--unshare-net", "--unshare-cgroup-try", "--hostname", "sandbox", "--uid",
	      INNER_UID, "--gid", INNER_UID, "--cap-drop", "ALL", "--clearenv");
	argue_system(&arguments);
	ARGUE(&arguments, "--proc", "/proc", "--dev", "/dev", "--size", "67108864",
	      "--tmpfs", "/dev/shm", "--size", "67108864", "--tmpfs", "/run", "--dir",
	      EMU_AGENT_DIRECTORY, "--ro-bind", paths[3], "/etc/passwd", "--ro-bind",
	      paths[4], "/etc/group", "--ro-bind", paths[5], "/etc/shells", "--bind",
	      paths[1], "/tmp");
	ARGUE(&arguments, "--bind", paths[0], message->home, "--ro-bind", paths[2],
	      "/.agent", "--remount-ro", "/", "--chdir", message->home, "--", "/.agent");
	execvp("bwrap", (char *const *) arguments.list);
	dprintf(2, "could not run bwrap: %s\n", strerror(errno));
	_exit(127);
}

/* In the child: nothing of the emulator may reach the sandbox. */
static void
child_prepare(int agent_socket, int complaints)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int number = 1; number < 32; number++)
		signal(number, SIG_DFL);
	setsid();

	/* The socket may have one of the low numbers: move it away first. */
	agent_socket = fcntl(agent_socket, F_DUPFD, 16);
	complaints = fcntl(complaints, F_DUPFD, 16);
	null = fcntl(null, F_DUPFD, 16);
	dup2(null, 0);
	dup2(null, 1);
	dup2(complaints, 2);
	dup2(agent_socket, EMU_AGENT_SOCKET);
	close_range(EMU_AGENT_SOCKET + 1, ~0U, 0);
	if (as_nobody && (setgid(SANDBOX_UID) != 0 || setuid(SANDBOX_UID) != 0))
		_exit(126);
}

/*
 * Some systems let only root make user namespaces.  There the sandboxes run
 * as root mapped to an ordinary user: as isolated as before, but without the
 * limit on the number of processes.
 */
static void
decide_user(void)
{
	static bool decided;
	pid_t pid;
	int status;

	if (decided || geteuid() != 0)
		return;
	decided = as_nobody = true;
	pid = fork();
	if (pid == 0)
	{
		int null = open("/dev/null", O_RDWR);

		child_prepare(null, null);
		execlp("bwrap", "bwrap", "--unshare-user", "--ro-bind", "/usr", "/usr",
		       "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		       "/usr/bin/true", (char *) NULL);
		_exit(127);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0)
		as_nobody = false;
}

static Child *
child_find(uint64_t guest)
{
	Child *child = children;

	while (child != NULL && child->guest != guest)
		child = child->next;
	return child;
}

static void
child_gone(pid_t pid)
{
	Child **place = &children;
	Child *child;

	while (*place != NULL && (*place)->pid != pid)
		place = &(*place)->next;
	child = *place;
	if (child == NULL)
		return;
	*place = child->next;
	if (child->remove_files)
		remove_guest(child->guest);
	free(child);
}

static void
launch(const LauncherMessage *message, int agent_socket)
{
	Child *child = child_find(message->guest);
	char path[192];
	int complaints;

	decide_user();

	/* Stopped a moment ago and started again: the two must not overlap. */
	if (child != NULL)
	{
		pid_t old = child->pid;

		kill(old, SIGKILL);
		waitpid(old, NULL, 0);
		child_gone(old);
	}
	guest_path(path, sizeof(path), message->guest, "");
	if (mkdir(path, 0711) != 0 && errno != EEXIST)
		return;
	guest_path(path, sizeof(path), message->guest, "home");
	if (!make_directory(path, 0755))
		return;
	guest_path(path, sizeof(path), message->guest, "tmp");
	if (!make_directory(path, 01777))
		return;
	guest_path(path, sizeof(path), message->guest, "complaint");
	complaints = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	if (complaints < 0)
		return;
	child = emu_alloc(sizeof(Child));
	child->guest = message->guest;
	child->pid = fork();
	if (child->pid == 0)
	{
		child_prepare(agent_socket, complaints);
		exec_bubblewrap(message);
	}
	close(complaints);
	if (child->pid < 0)
	{
		free(child);
		return;
	}
	child->next = children;
	children = child;
}

static void
end(uint64_t guest, bool remove_files)
{
	Child *child = child_find(guest);

	if (child == NULL)
	{
		if (remove_files)
			remove_guest(guest);
		return;
	}
	if (!child->ending)
		child->kill_at = emu_clock_ms() + END_PATIENCE_MS;
	child->ending = true;
	child->remove_files |= remove_files;
}

static void
reap(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		child_gone(pid);
	for (Child *child = children; child != NULL; child = child->next)
		if (child->ending && emu_clock_ms() >= child->kill_at)
			kill(child->pid, SIGKILL);
}

/* Returns false once the emulator has gone. */
static bool
obey(int server)
{
	LauncherMessage message;
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = {&message, sizeof(message)};
	struct msghdr header = {
	    .msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control),
	};
	struct cmsghdr *extra;
	ssize_t length = recvmsg(server, &header, MSG_CMSG_CLOEXEC);
	int agent_socket = -1;

	if (length < 0 && errno == EINTR)
		return true;
	if (length != (ssize_t) sizeof(message))
		return false;
	extra = CMSG_FIRSTHDR(&header);
	if (extra != NULL && extra->cmsg_type == SCM_RIGHTS)
		memcpy(&agent_socket, CMSG_DATA(extra), sizeof(int));
	if (message.order == ORDER_LAUNCH)
		launch(&message, agent_socket);
	else
		end(message.guest, message.order == ORDER_END_AND_REMOVE);
	if (agent_socket >= 0)
		close(agent_socket);
	return true;
}

static void
finish(void)
{
	for (Child *child = children; child != NULL; child = child->next)
		end(child->guest, false);
	for (int64_t give_up = emu_clock_ms() + 3 * END_PATIENCE_MS;
	     emu_clock_ms() < give_up;)
	{
		reap();
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			break;
		usleep(2000);
	}
	remove_tree(state_directory);
	_exit(0);
}

static void
launcher_run(int server)
{
	sigset_t signals;
	int deaths;
	int null = open("/dev/null", O_RDWR);

	/*
	 * Whoever waits for the emulator's output to end must not wait for us,
	 * and an interrupt from the terminal is the emulator's business.
	 */
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	if (null > 2)
		close(null);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "sbx_launcher");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	deaths = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	for (;;)
	{
		struct pollfd fds[2] = {{server, POLLIN, 0}, {deaths, POLLIN, 0}};
		struct signalfd_siginfo information;

		poll(fds, 2, children != NULL ? 250 : -1);
		if (fds[1].revents != 0 && read(deaths, &information, sizeof(information)) < 0)
			continue;
		reap();
		if (fds[0].revents != 0 && !obey(server))
			finish();
	}
}

/*
 * The agent is copied: where it was built may be closed to the user that
 * the sandboxes run as, and a rebuild must not pull it from under them.
 */
static bool
copy_agent(const char *agent_path)
{
	char path[192];
	char buffer[65536];
	ssize_t count = -1;
	int from = open(agent_path, O_RDONLY | O_CLOEXEC);
	int to;

	snprintf(path, sizeof(path), "%s/agent", state_directory);
	to = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	while (from >= 0 && to >= 0 && (count = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t) count) != count)
		{
			count = -1;
			break;
		}
	if (to >= 0 && fchmod(to, 0755) != 0)
		count = -1;
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return count == 0;
}

/* Started by root, the sandboxes' user must be able to reach the files. */
static bool
usable_base(const char *base)
{
	struct stat status;
	char path[96];

	if (base == NULL || base[0] != '/' || strlen(base) >= 80)
		return false;
	for (size_t length = strlen(base); geteuid() == 0 && length > 0; length--)
	{
		if (base[length] != '/' && base[length] != '\0')
			continue;
		snprintf(path, sizeof(path), "%.*s", (int) length, base);
		if (stat(path, &status) != 0 || (status.st_mode & S_IXOTH) == 0)
			return false;
	}
	return true;
}

static bool
prepare_state(const char *agent_path)
{
	const char *base = getenv("TMPDIR");

	snprintf(state_directory, sizeof(state_directory), "%s/sbx_emulator.XXXXXX",
	         usable_base(base) ? base : "/tmp");
	if (mkdtemp(state_directory) == NULL)
		return false;
	return chmod(state_directory, 0711) == 0 && copy_agent(agent_path) &&
	       write_file("passwd.daytona", "daytona:x:" INNER_UID ":" INNER_UID
	                                    ":daytona:/home/daytona:/bin/bash\n") &&
	       write_file("passwd.user",
	                  "user:x:" INNER_UID ":" INNER_UID "::/home/user:/bin/bash\n") &&
	       write_file("passwd.ubuntu", "ubuntu:x:" INNER_UID ":" INNER_UID
	                                   "::/vercel/sandbox:/bin/bash\n") &&
	       write_file("passwd.node",
	                  "node:x:" INNER_UID ":" INNER_UID "::/home/node:/bin/bash\n") &&
	       write_file("passwd.root",
	                  "root:x:" INNER_UID ":" INNER_UID "::/root:/bin/bash\n") &&
	       write_file("group", "users:x:" INNER_UID ":\n") &&
	       write_file("shells", "/bin/sh\n/bin/bash\n");
}

bool
emu_launcher_start(const char *agent_path)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	if (!prepare_state(agent_path))
	{
		fprintf(stderr,
		        "sbx_emulator: could not prepare \"%s\" with the agent \"%s\": %s\n",
		        state_directory, agent_path, strerror(errno));
		remove_tree(state_directory);
		return false;
	}
	launcher_pid = fork();
	if (launcher_pid == 0)
	{
		close(ends[0]);
		launcher_run(ends[1]);
	}
	close(ends[1]);
	launcher_socket = ends[0];
	return launcher_pid > 0;
}

void
emu_launcher_stop(void)
{
	if (launcher_socket < 0)
		return;
	close(launcher_socket);
	launcher_socket = -1;
	while (waitpid(launcher_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool
launcher_send(const LauncherMessage *message, int descriptor)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {(void *) (uintptr_t) message, sizeof(*message)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (descriptor >= 0)
	{
		struct cmsghdr *extra;

		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		extra = CMSG_FIRSTHDR(&header);
		extra->cmsg_level = SOL_SOCKET;
		extra->cmsg_type = SCM_RIGHTS;
		extra->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(extra), &descriptor, sizeof(int));
	}
	return sendmsg(launcher_socket, &header, MSG_NOSIGNAL) ==
	       (ssize_t) sizeof(*message);
}

bool
emu_launcher_launch(uint64_t guest, const char *home, const char *user,
                    int agent_socket)
{
	LauncherMessage message = {.order = ORDER_LAUNCH, .guest = guest};

	snprintf(message.home, sizeof(message.home), "%s", home);
	snprintf(message.user, sizeof(message.user), "%s", user);
	return launcher_send(&message, agent_socket);
}

void
emu_launcher_end(uint64_t guest, bool remove_files)
{
	LauncherMessage message = {
	    .order = remove_files ? ORDER_END_AND_REMOVE : ORDER_END,
	    .guest = guest,
	};

	launcher_send(&message, -1);
}

char *
emu_launcher_complaint(uint64_t guest)
{
	char path[192];
	char text[512];
	FILE *file;
	size_t length = 0;

	guest_path(path, sizeof(path), guest, "complaint");
	file = fopen(path, "re");
	if (file != NULL)
	{
		length = fread(text, 1, sizeof(text), file);
		fclose(file);
	}
	while (length > 0 && text[length - 1] == '\n')
		length--;
	return length > 0 ? emu_strndup(text, length) : emu_strdup("no explanation given");
}
