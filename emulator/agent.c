/*
 * agent.c
 *		The first process inside a sandbox: starts commands for the server.
 *
 * It is process 1 of the sandbox's own pid namespace, so when it ends, for
 * whatever reason, the kernel ends everything in the sandbox.  It ends when
 * the server closes the socket, which also happens if the server is killed.
 *
 * A command's end is reported when the process itself has ended, even if
 * something it left in the background still holds its output open; what such
 * a background process writes later is still forwarded.  Only when the server
 * asks for it the end waits until nobody holds the output open any more.
 */
#include "guest_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Limits of one sandbox.  The number of processes is counted per user
 * namespace and each sandbox has its own, so this is a limit per sandbox;
 * the others hold per process.
 */
#define LIMIT_PROCESSES   1024
#define LIMIT_MEMORY      ((rlim_t) 4 << 30)
#define LIMIT_FILE        ((rlim_t) 1 << 30)
#define LIMIT_CPU_SECONDS 600
#define LIMIT_DESCRIPTORS 1024

/* How often a group that was told to end is looked at. */
#define KILL_CHECK_MS 20

typedef struct Command
{
	struct Command *next;
	uint32_t number;
	pid_t pid;      /* also its process group; 0 for a sourced command */
	uint32_t shell; /* sourced: the shell it was handed to, else 0 */
	bool running;
	int streams[2]; /* output and errors, -1 once closed */
	int input;
	int status;       /* sourced: the FIFO that carries $? */
	uint32_t room[2]; /* bytes still forwarded of each stream */
	char *queue;      /* input not yet taken by the command */
	size_t queue_length;
	bool input_ended;
	bool keep;  /* its group may be killed after its end */
	bool await; /* its end waits for the end of its output */
	bool exited;
	EmuExitHeader end; /* once it has exited */
	bool killing;
	int64_t kill_deadline;
} Command;

static Command *commands;
static char *pending_payload; /* RUN_PART pieces collected so far */
static size_t pending_length;

static int64_t
clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Without the server there is nothing left to do. */
static void
server_write(const void *data, size_t length)
{
	const char *bytes = data;

	while (length > 0)
	{
		ssize_t written = write(EMU_AGENT_SOCKET, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			_exit(0);
		bytes += written;
		length -= (size_t) written;
	}
}

static void
server_tell(EmuFrameKind kind, uint32_t number, const void *data, size_t length)
{
	EmuFrame frame = {(uint32_t) length, (uint32_t) kind, number};

	server_write(&frame, sizeof(frame));
	server_write(data, length);
}

static void
server_tell_failure(uint32_t number, const char *what, int error)
{
	struct
	{
		int32_t error;
		char text[512];
	} failure = {.error = error};

	snprintf(failure.text, sizeof(failure.text), "%s: %s", what, strerror(error));
	server_tell(EMU_FRAME_FAILED, number, &failure,
	            sizeof(failure.error) + strlen(failure.text));
}

static void
close_descriptor(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static Command *
command_new(uint32_t number, uint32_t output_limit)
{
	Command *command = calloc(1, sizeof(Command));

	if (command == NULL)
		_exit(1);
	command->number = number;
	command->streams[0] = command->streams[1] = -1;
	command->input = command->status = -1;
	command->room[0] = command->room[1] = output_limit;
	command->next = commands;
	commands = command;
	return command;
}

static Command *
command_find(uint32_t number)
{
	Command *command = commands;

	while (command != NULL && command->number != number)
		command = command->next;
	return command;
}

static void
command_free(Command *command)
{
	Command **place = &commands;

	while (*place != command)
		place = &(*place)->next;
	*place = command->next;
	close_descriptor(&command->streams[0]);
	close_descriptor(&command->streams[1]);
	close_descriptor(&command->input);
	close_descriptor(&command->status);
	free(command->queue);
	free(command);
}

/* Forwards what a stream has; returns the number of bytes read. */
static size_t
command_forward(Command *command, int stream)
{
	char buffer[EMU_FRAME_LIMIT];
	ssize_t count = read(command->streams[stream], buffer, sizeof(buffer));
	size_t kept;

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (count <= 0)
	{
		close_descriptor(&command->streams[stream]);
		return 0;
	}
	kept =
	    (size_t) count < command->room[stream] ? (size_t) count : command->room[stream];
	command->room[stream] -= (uint32_t) kept;
	if (kept > 0)
		server_tell(stream == 0 ? EMU_FRAME_OUTPUT : EMU_FRAME_ERRORS, command->number,
		            buffer, kept);
	return (size_t) count;
}

/*
 * What the command wrote before it ended is in the pipes by now.  Bounded,
 * because something in the background may go on writing for ever.
 */
static void
command_drain(Command *command)
{
	for (int stream = 0; stream < 2; stream++)
	{
		size_t drained = 0;
		size_t count;

		while (command->streams[stream] >= 0 && drained < (4 << 20) &&
		       (count = command_forward(command, stream)) > 0)
			drained += count;
	}
}

static void
command_report_end(Command *command)
{
	command->running = false;
	server_tell(EMU_FRAME_EXIT, command->number, &command->end, sizeof(command->end));
}

static void
command_ended(Command *command, int code, int signal_number)
{
	command->end = (EmuExitHeader){code, signal_number};
	command_drain(command);
	close_descriptor(&command->input);
	close_descriptor(&command->status);
	command->exited = true;
	if (!command->await)
		command_report_end(command);
}

/* Input */

static void
command_feed(Command *command)
{
	while (command->input >= 0 && command->queue_length > 0)
	{
		ssize_t written = write(command->input, command->queue, command->queue_length);

		if (written < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (written < 0)
		{
			close_descriptor(&command->input);
			return;
		}
		command->queue_length -= (size_t) written;
		memmove(command->queue, command->queue + written, command->queue_length);
	}
	if (command->input_ended)
		close_descriptor(&command->input);
}

static void
command_input(Command *command, const char *data, size_t length)
{
	char *queue;

	if (command->input < 0)
		return;
	queue = realloc(command->queue, command->queue_length + length + 1);
	if (queue == NULL)
		_exit(1);
	memcpy(queue + command->queue_length, data, length);
	command->queue = queue;
	command->queue_length += length;
	command_feed(command);
}

/* Starting a process */

static void
child_limit(int resource, rlim_t value)
{
	struct rlimit limit = {value, value};

	setrlimit(resource, &limit);
}

static void
child_run(const char *cwd, char **arguments, char **variables, int input, int output,
          int errors, int report)
{
	sigset_t none;
	int error;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(input, 0);
	dup2(output, 1);
	dup2(errors, 2);
	child_limit(RLIMIT_NPROC, LIMIT_PROCESSES);
	child_limit(RLIMIT_AS, LIMIT_MEMORY);
	child_limit(RLIMIT_FSIZE, LIMIT_FILE);
	child_limit(RLIMIT_CPU, LIMIT_CPU_SECONDS);
	child_limit(RLIMIT_NOFILE, LIMIT_DESCRIPTORS);
	child_limit(RLIMIT_CORE, 0);
	if (*cwd == '\0' || chdir(cwd) == 0)
		execvpe(arguments[0], arguments, variables);
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* Returns 0, or the error that kept the child from running its program. */
static int
process_start(Command *command, uint32_t flags, const char *cwd, char **arguments,
              char **variables)
{
	int pipes[4][2]; /* input, output, errors, report of failure */
	int error = 0;
	int null = -1;

	for (int i = 0; i < 4; i++)
		if (pipe2(pipes[i], O_CLOEXEC) != 0)
		{
			error = errno;
			while (i-- > 0)
			{
				close(pipes[i][0]);
				close(pipes[i][1]);
			}
			return error;
		}
	if (flags & EMU_RUN_NULL)
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	command->pid = fork();
	if (command->pid == 0)
		child_run(cwd, arguments, variables, null >= 0 ? null : pipes[0][0],
		          pipes[1][1], flags & EMU_RUN_MERGE ? pipes[1][1] : pipes[2][1],
		          pipes[3][1]);
	if (command->pid < 0)
		error = errno;
	close_descriptor(&null);
	close(pipes[0][0]);
	close(pipes[1][1]);
	close(pipes[2][1]);
	close(pipes[3][1]);
	if (error == 0 && read(pipes[3][0], &error, sizeof(error)) <= 0)
		error = 0;
	close(pipes[3][0]);
	command->input = pipes[0][1];
	if (flags & EMU_RUN_NULL)
		close_descriptor(&command->input);
	command->streams[0] = pipes[1][0];
	command->streams[1] = pipes[2][0];
	for (int i = 0; i < 2; i++)
		fcntl(command->streams[i], F_SETFL, O_NONBLOCK);
	if (command->input >= 0)
		fcntl(command->input, F_SETFL, O_NONBLOCK);
	command->running = error == 0;
	return error;
}

static void
agent_run(uint32_t number, char *payload, size_t length)
{
	EmuRunHeader header;
	char **strings;
	char *place = payload + sizeof(header);
	size_t count;
	size_t string = 0;
	Command *command;
	int32_t pid;
	int error;

	memcpy(&header, payload, sizeof(header));
	count = 1 + (size_t) header.argument_count + 1 + header.variable_count + 1;
	strings = calloc(count, sizeof(char *));
	if (strings == NULL)
		_exit(1);

	/* cwd, argv, NULL, environment, NULL in one array */
	while (string < count - 1 && place < payload + length)
	{
		if (string == 1 + (size_t) header.argument_count)
		{
			string++;
			continue;
		}
		strings[string++] = place;
		place += strlen(place) + 1;
	}
	command = command_new(number, header.output_limit);
	command->keep = (header.flags & EMU_RUN_KEEP) != 0;
	command->await = (header.flags & EMU_RUN_AWAIT) != 0;
	error = process_start(command, header.flags, strings[0], strings + 1,
	                      strings + 2 + header.argument_count);
	free(strings);
	if (error != 0)
	{
		server_tell_failure(number, "could not start the command", error);
		command_free(command);
		return;
	}
	pid = command->pid;
	server_tell(EMU_FRAME_STARTED, number, &pid, sizeof(pid));
}

/*
 * Running text in the shell of a session
 *
 * The text is sourced, so that its cd and export stay; the shell then writes
 * $? into a FIFO.  Text that makes the shell itself exit leaves that FIFO
 * silent for ever, and the command is never reported as ended.
 */

/*
 * Opened for reading and writing: so the other side never waits for a
 * partner, and a FIFO that no writer has reached yet does not read as ended.
 */
static int
source_fifo(uint32_t number, const char *suffix)
{
	char path[128];

	snprintf(path, sizeof(path), EMU_AGENT_DIRECTORY "/%u.%s", number, suffix);
	unlink(path);
	if (mkfifo(path, 0600) != 0)
		return -1;
	return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

/* From now on the last writer's leaving is the end of the stream. */
static void
source_await_end(Command *command, int stream, const char *suffix)
{
	char path[128];
	int reader;

	snprintf(path, sizeof(path), EMU_AGENT_DIRECTORY "/%u.%s", command->number, suffix);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	close_descriptor(&command->streams[stream]);
	command->streams[stream] = reader;
}

static bool
source_write_text(uint32_t number, const char *text, size_t length)
{
	char path[128];
	FILE *file;
	bool written;

	snprintf(path, sizeof(path), EMU_AGENT_DIRECTORY "/%u.sh", number);
	file = fopen(path, "we");
	if (file == NULL)
		return false;
	written = fwrite(text, 1, length, file) == length && fputc('\n', file) != EOF;
	return fclose(file) == 0 && written;
}

static void
source_remove_files(uint32_t number)
{
	static const char *const suffixes[] = {"in", "out", "err", "status", "sh"};
	char path[128];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
	{
		snprintf(path, sizeof(path), EMU_AGENT_DIRECTORY "/%u.%s", number, suffixes[i]);
		unlink(path);
	}
}

static void
agent_source(uint32_t number, const char *payload, size_t length)
{
	EmuSourceHeader header;
	Command *shell;
	Command *command;
	char line[512];
	int line_length;

	memcpy(&header, payload, sizeof(header));
	shell = command_find(header.shell);
	command = command_new(number, header.output_limit);
	command->running = true;
	command->shell = header.shell;
	if (shell == NULL || !shell->running)
	{
		server_tell_failure(number, "the shell of the session has ended", EPIPE);
		command_free(command);
		return;
	}

	command->input = source_fifo(number, "in");
	command->streams[0] = source_fifo(number, "out");
	command->streams[1] = source_fifo(number, "err");
	command->status = source_fifo(number, "status");
	if (command->input < 0 || command->streams[0] < 0 || command->streams[1] < 0 ||
	    command->status < 0 ||
	    !source_write_text(number, payload + sizeof(header), length - sizeof(header)))
	{
		server_tell_failure(number, "could not hand over the command", errno);
		source_remove_files(number);
		command_free(command);
		return;
	}
	line_length =
	    snprintf(line, sizeof(line),
	             ". %1$s/%2$u.sh <%1$s/%2$u.in >%1$s/%2$u.out 2>%1$s/%2$u.err; "
	             "echo $? >%1$s/%2$u.status\n",
	             EMU_AGENT_DIRECTORY, number);
	command_input(shell, line, (size_t) line_length);
}

static void
source_status_ready(Command *command)
{
	char text[16];
	ssize_t count = read(command->status, text, sizeof(text) - 1);

	if (count <= 0)
		return;
	text[count] = '\0';
	source_await_end(command, 0, "out");
	source_await_end(command, 1, "err");
	source_remove_files(command->number);
	command_ended(command, atoi(text), 0);
}

/* Ending a process group */

static void
command_kill(Command *command, const EmuKillHeader *order)
{
	if (command->pid <= 0)
		return;
	kill(-command->pid, order->grace_ms > 0 ? order->first_signal : SIGKILL);
	if (order->grace_ms > 0)
		kill(-command->pid, SIGCONT);
	command->killing = true;
	command->kill_deadline = clock_ms() + order->grace_ms;
}

/* Its number may belong to another process once it has exited. */
static void
command_signal(const Command *command, int number, bool group)
{
	if (command->pid <= 0 || !command->running)
		return;
	if (group)
		kill(-command->pid, number);
	else if (!command->exited)
		kill(command->pid, number);
}

static bool
kills_in_progress(void)
{
	for (Command *command = commands; command != NULL; command = command->next)
		if (command->killing)
			return true;
	return false;
}

/* Commands that a shell never finished go with it. */
static void
kill_forget_sourced(uint32_t shell)
{
	Command *next;

	for (Command *command = commands; command != NULL; command = next)
	{
		next = command->next;
		if (command->shell != shell || !command->running)
			continue;
		source_remove_files(command->number);
		command_free(command);
	}
}

static void
kills_advance(void)
{
	for (Command *command = commands; command != NULL; command = command->next)
	{
		if (!command->killing)
			continue;
		if (kill(-command->pid, 0) != 0 && errno == ESRCH)
		{
			command->killing = command->keep = false;
			server_tell(EMU_FRAME_KILLED, command->number, NULL, 0);
			kill_forget_sourced(command->number);
			return; /* the list has changed; the rest is next */
		}
		else if (clock_ms() >= command->kill_deadline)
			kill(-command->pid, SIGKILL);
	}
}

/* Everything in the sandbox without a parent becomes a child of process 1. */
static void
agent_reap(void)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
	{
		Command *command = commands;

		while (command != NULL &&
		       (command->pid != pid || !command->running || command->exited))
			command = command->next;
		if (command == NULL)
			continue;
		if (WIFSIGNALED(status))
			command_ended(command, -1, WTERMSIG(status));
		else
			command_ended(command, WEXITSTATUS(status), 0);
	}
}

/* Frames from the server */

static void
read_exactly(void *data, size_t length)
{
	char *bytes = data;

	while (length > 0)
	{
		ssize_t count = read(EMU_AGENT_SOCKET, bytes, length);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			_exit(0);
		bytes += count;
		length -= (size_t) count;
	}
}

static void
pending_add(const char *data, size_t length)
{
	char *grown = realloc(pending_payload, pending_length + length + 1);

	if (grown == NULL)
		_exit(1);
	memcpy(grown + pending_length, data, length);
	pending_payload = grown;
	pending_length += length;
	pending_payload[pending_length] = '\0';
}

static void
agent_obey(const EmuFrame *frame, const char *payload)
{
	Command *command = command_find(frame->command);

	switch (frame->kind)
	{
		case EMU_FRAME_RUN_PART:
		case EMU_FRAME_RUN:
		case EMU_FRAME_SOURCE:
			pending_add(payload, frame->length);
			if (frame->kind == EMU_FRAME_RUN_PART)
				break;
			if (frame->kind == EMU_FRAME_RUN && pending_length >= sizeof(EmuRunHeader))
				agent_run(frame->command, pending_payload, pending_length);
			else if (frame->kind == EMU_FRAME_SOURCE &&
			         pending_length >= sizeof(EmuSourceHeader))
				agent_source(frame->command, pending_payload, pending_length);
			pending_length = 0;
			break;
		case EMU_FRAME_INPUT:
			if (command != NULL)
				command_input(command, payload, frame->length);
			break;
		case EMU_FRAME_INPUT_END:
			if (command != NULL)
			{
				command->input_ended = true;
				command_feed(command);
			}
			break;
		case EMU_FRAME_KILL:
			if (command != NULL && frame->length == sizeof(EmuKillHeader))
			{
				EmuKillHeader order;

				memcpy(&order, payload, sizeof(order));
				command_kill(command, &order);
			}
			else
				server_tell(EMU_FRAME_KILLED, frame->command, NULL, 0);
			break;
		case EMU_FRAME_SIGNAL:
		case EMU_FRAME_SIGNAL_GROUP:
			if (command != NULL && frame->length == sizeof(int32_t))
			{
				int32_t number;

				memcpy(&number, payload, sizeof(number));
				command_signal(command, number, frame->kind == EMU_FRAME_SIGNAL_GROUP);
			}
			break;
		case EMU_FRAME_FREEZE:
		case EMU_FRAME_THAW:
			kill(-1, frame->kind == EMU_FRAME_FREEZE ? SIGSTOP : SIGCONT);
			break;
		default:
			_exit(1);
	}
}

static void
agent_listen(void)
{
	static char payload[EMU_FRAME_LIMIT];
	EmuFrame frame;

	read_exactly(&frame, sizeof(frame));
	if (frame.length > sizeof(payload))
		_exit(1);
	read_exactly(payload, frame.length);
	agent_obey(&frame, payload);
}

/* The loop */

typedef enum PollRole
{
	ROLE_SERVER,
	ROLE_CHILDREN,
	ROLE_OUTPUT,
	ROLE_ERRORS,
	ROLE_INPUT,
	ROLE_STATUS
} PollRole;

typedef struct PollSet
{
	struct pollfd *fds;
	PollRole *roles;
	uint32_t *numbers; /* command numbers: a command may go meanwhile */
	size_t count;
	size_t capacity;
} PollSet;

static void
poll_add(PollSet *set, int fd, short events, PollRole role, uint32_t number)
{
	if (fd < 0)
		return;
	if (set->count == set->capacity)
	{
		set->capacity = set->capacity * 2 + 16;
		set->fds = realloc(set->fds, set->capacity * sizeof(*set->fds));
		set->roles = realloc(set->roles, set->capacity * sizeof(*set->roles));
		set->numbers = realloc(set->numbers, set->capacity * sizeof(*set->numbers));
		if (set->fds == NULL || set->roles == NULL || set->numbers == NULL)
			_exit(1);
	}
	set->fds[set->count] = (struct pollfd){fd, events, 0};
	set->roles[set->count] = role;
	set->numbers[set->count++] = number;
}

static void
poll_collect(PollSet *set, int children)
{
	Command *next;

	set->count = 0;
	poll_add(set, EMU_AGENT_SOCKET, POLLIN, ROLE_SERVER, 0);
	poll_add(set, children, POLLIN, ROLE_CHILDREN, 0);
	for (Command *command = commands; command != NULL; command = next)
	{
		next = command->next;
		if (command->running && command->exited && command->streams[0] < 0 &&
		    command->streams[1] < 0)
			command_report_end(command);
		if (!command->running && !command->killing && !command->keep &&
		    command->streams[0] < 0 && command->streams[1] < 0)
		{
			command_free(command);
			continue;
		}
		poll_add(set, command->streams[0], POLLIN, ROLE_OUTPUT, command->number);
		poll_add(set, command->streams[1], POLLIN, ROLE_ERRORS, command->number);
		poll_add(set, command->status, POLLIN, ROLE_STATUS, command->number);
		if (command->queue_length > 0)
			poll_add(set, command->input, POLLOUT, ROLE_INPUT, command->number);
	}
}

static void
poll_serve(PollRole role, uint32_t number, int children)
{
	Command *command = command_find(number);
	struct signalfd_siginfo information;

	switch (role)
	{
		case ROLE_SERVER:
			agent_listen();
			break;
		case ROLE_CHILDREN:
			if (read(children, &information, sizeof(information)) > 0)
				agent_reap();
			break;
		case ROLE_OUTPUT:
		case ROLE_ERRORS:
			if (command != NULL && command->streams[role - ROLE_OUTPUT] >= 0)
				command_forward(command, (int) (role - ROLE_OUTPUT));
			break;
		case ROLE_INPUT:
			if (command != NULL)
				command_feed(command);
			break;
		case ROLE_STATUS:
			if (command != NULL && command->status >= 0)
				source_status_ready(command);
			break;
	}
}

int
main(void)
{
	PollSet set = {0};
	sigset_t child_signal;
	int children;

	/* The commands have the same user; they must not get at our socket. */
	prctl(PR_SET_DUMPABLE, 0);
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	fcntl(EMU_AGENT_SOCKET, F_SETFD, FD_CLOEXEC);
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_signal, NULL);
	children = signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
	if (children < 0)
		return 1;
	server_tell(EMU_FRAME_HELLO, 0, NULL, 0);
	for (;;)
	{
		int count;

		poll_collect(&set, children);
		count = poll(set.fds, set.count, kills_in_progress() ? KILL_CHECK_MS : -1);
		for (size_t i = 0; count > 0 && i < set.count; i++)
			if (set.fds[i].revents != 0)
				poll_serve(set.roles[i], set.numbers[i], children);
		kills_advance();
	}
}
