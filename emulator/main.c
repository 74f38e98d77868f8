/*
 * main.c
 *		The emulator's command line, start and end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launcher.h"
#include "options.h"
#include "reactor.h"
#include "sandbox.h"
#include "server.h"
#include "text.h"

typedef struct Options
{
	EmuServerOptions server;
	char *host;
	const char *port_file;
	const char *certificate; /* file names */
	const char *key;
	bool allow_non_loopback;
	bool seeded;
	uint64_t seed;
} Options;

bool emu_no_exec = false;

static const char usage[] =
    "Usage: sbx_emulator [OPTION]...\n"
    "  --listen ADDRESS:PORT   where to listen (default 127.0.0.1:0, any free port)\n"
    "  --port-file FILE        write the port there once listening\n"
    "  --seed N                repeatable ids and garbage\n"
    "  --no-exec               answer commands without running anything\n"
    "  --latency-ms N          hold every answer of a provider this long\n"
    "  --threads N             threads of the HTTP server (default 2)\n"
    "  --tls CERT KEY          HTTPS with these PEM files\n"
    "  --allow-non-loopback    permit an address that other machines can reach\n";

static void
fail(const char *what, const char *which)
{
	fprintf(stderr, "sbx_emulator: %s: %s\n", what, which);
	exit(2);
}

static uint64_t
number_argument(const char *option, const char *text, uint64_t most)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number > most)
		fail(option, "not a number in range");
	return number;
}

/* 127.0.0.1:0 or [::1]:0 */
static void
parse_listen(Options *options, const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon != NULL ? (size_t) (colon - text) : 0;

	if (colon == NULL || length == 0)
		fail("--listen", "ADDRESS:PORT expected");
	options->server.port = (int) number_argument("--listen", colon + 1, 65535);
	free(options->host);
	if (text[0] == '[' && text[length - 1] == ']')
		options->host = emu_strndup(text + 1, length - 2);
	else
		options->host = emu_strndup(text, length);
}

static bool
address_is_loopback(const char *host)
{
	struct in_addr four;
	struct in6_addr six;

	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static void
parse_options(Options *options, int count, char **arguments)
{
	static const struct option known[] = {
	    {"listen", required_argument, NULL, 'l'},
	    {"port-file", required_argument, NULL, 'p'},
	    {"seed", required_argument, NULL, 's'},
	    {"no-exec", no_argument, NULL, 'n'},
	    {"latency-ms", required_argument, NULL, 'y'},
	    {"threads", required_argument, NULL, 't'},
	    {"tls", required_argument, NULL, 'T'},
	    {"allow-non-loopback", no_argument, NULL, 'a'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(count, arguments, "", known, NULL)) != -1)
		switch (letter)
		{
			case 'l':
				parse_listen(options, optarg);
				break;
			case 'p':
				options->port_file = optarg;
				break;
			case 's':
				options->seed = number_argument("--seed", optarg, UINT64_MAX);
				options->seeded = true;
				break;
			case 'n':
				emu_no_exec = true;
				break;
			case 'y':
				options->server.latency_ms =
				    (int64_t) number_argument("--latency-ms", optarg, 3600000);
				break;
			case 't':
				options->server.threads =
				    (int) number_argument("--threads", optarg, 64);
				break;
			case 'T':
				if (optind >= count)
					fail("--tls", "CERT and KEY expected");
				options->certificate = optarg;
				options->key = arguments[optind++];
				break;
			case 'a':
				options->allow_non_loopback = true;
				break;
			case 'h':
				fputs(usage, stdout);
				exit(0);
			default:
				fputs(usage, stderr);
				exit(2);
		}
	if (optind < count)
		fail("unexpected argument", arguments[optind]);
	if (!options->allow_non_loopback && !address_is_loopback(options->host))
		fail("--listen", "not a loopback address; --allow-non-loopback permits it");
	options->server.host = options->host;
}

static char *
read_pem(const char *path)
{
	EmuText text = {0};
	char buffer[4096];
	size_t count;
	FILE *file = fopen(path, "re");

	if (file == NULL)
		fail(path, strerror(errno));
	while ((count = fread(buffer, 1, sizeof(buffer), file)) > 0)
		emu_text_append(&text, buffer, count);
	fclose(file);
	return emu_text_steal(&text);
}

/* The agent is installed beside this program. */
static char *
agent_path(void)
{
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	EmuText path = {0};

	if (length <= 0)
		fail("/proc/self/exe", strerror(errno));
	self[length] = '\0';
	emu_text_format(&path, "%s_agent", self);
	return path.data;
}

/* By renaming: whoever waits for the file never reads half a number. */
static bool
write_port_file(const char *path, int port)
{
	EmuText temporary = {0};
	FILE *file;
	bool written = false;

	emu_text_format(&temporary, "%s.%d", path, (int) getpid());
	file = fopen(temporary.data, "we");
	if (file != NULL)
	{
		written = fprintf(file, "%d\n", port) > 0;
		written = fclose(file) == 0 && written;
		written = written && rename(temporary.data, path) == 0;
	}
	if (!written)
	{
		fprintf(stderr, "sbx_emulator: could not write \"%s\": %s\n", path,
		        strerror(errno));
		unlink(temporary.data);
	}
	emu_text_free(&temporary);
	return written;
}

static void
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
	{
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * The state of the emulator only grows.  One arena that grows in large steps
 * saves a system call for every few sandboxes.
 */
static void
tune_memory(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TOP_PAD, 16 << 20);
}

static void
seed_random(const Options *options)
{
	uint64_t seed = options->seed;

	if (!options->seeded && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t) emu_wall_ms();
	emu_random_seed(seed);
}

/* Serves until a signal asks for the end. */
static int
serve(Options *options, const sigset_t *ending)
{
	int port;
	int signal_number;
	int status = 0;

	if (!emu_reactor_start())
		fail("could not start", strerror(errno));
	port = emu_server_start(&options->server);
	if (port < 0)
		return 1;
	if (options->port_file == NULL)
	{
		printf("%d\n", port);
		fflush(stdout);
	}
	else if (!write_port_file(options->port_file, port))
		status = 1;
	if (status == 0)
		sigwait(ending, &signal_number);
	emu_server_stop();
	emu_reactor_stop();
	emu_lock();
	emu_sandbox_reset();
	emu_unlock();
	return status;
}

int
main(int count, char **arguments)
{
	Options options = {
	    .server.threads = 2,
	    .host = emu_strdup("127.0.0.1"),
	};
	sigset_t ending;
	int status;

	parse_options(&options, count, arguments);
	if (options.certificate != NULL)
	{
		options.server.tls_certificate = read_pem(options.certificate);
		options.server.tls_key = read_pem(options.key);
	}
	tune_memory();
	seed_random(&options);
	raise_descriptor_limit();
	signal(SIGPIPE, SIG_IGN);

	/* Before any thread exists: the launcher must be a plain child. */
	if (!emu_no_exec)
	{
		char *agent = agent_path();

		if (!emu_launcher_start(agent))
			exit(1);
		free(agent);
	}

	/* All threads inherit the mask, so these reach sigwait only. */
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ending, NULL);
	status = serve(&options, &ending);
	emu_launcher_stop();
	return status;
}
