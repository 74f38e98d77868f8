/*
 * test_vercel_files.c
 *		Files of a Vercel sandbox, up and down: paths, refusals, and what is no file.
 */
#include <stdlib.h>
#include <zlib.h>

#include "unit.h"

#define WRITE   VERCEL_SESSION "/fs/write?teamId=team_1"
#define READ    VERCEL_SESSION "/fs/read?teamId=team_1"
#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define BYTES   "Content-Type: application/octet-stream\r\n"

static SbxOp *
upload(const char *path, const char *bytes, size_t length)
{
	SbxUploadInput input = {.path = path, .bytes = bytes, .length = length};

	return sbx_kind_vercel.upload(vercel_account(), &vercel_target, &input);
}

static SbxOp *
download(const char *path)
{
	return sbx_kind_vercel.download(vercel_account(), &vercel_target, path, 10);
}

/* Neither leaves where it is extracted, nor names a directory. */
static void
paths(void)
{
	static const struct
	{
		const char *path;
		bool valid;
	} rows[] = {{"a", true},      {"/a", true},    {"//a", true},
	            {"/a/./b", true}, {"a..b", true},  {"/...", true},
	            {"/..a/b", true}, {"../a", false}, {"/a/../b", false},
	            {"/a/..", false}, {"/", false},    {"", false},
	            {"/a/", false},   {"/a/.", false}, {".", false},
	            {"/..", false},   {"//", false},   {"/a//../b", false}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		for (int up = 0; up < 2; up++)
		{
			Drive drive;

			drive_start(&drive,
			            up ? upload(rows[i].path, "x", 1) : download(rows[i].path));
			if (rows[i].valid)
				asks(&drive, "GET", VERCEL_SANDBOX, "must not fire: \"%s\"",
				     rows[i].path);
			else
				fails(&drive, SBX_PHASE_NONE, 0, "INVALID_FILE_PATH",
				      SBX_ALLOCATION_NONE, "must fire: \"%s\"", rows[i].path);
			drive_end(&drive);
		}
	}
}

/* --- archives --------------------------------------------------------------- */

static size_t
octal(const unsigned char *field)
{
	return strtoul((const char *) field, NULL, 8);
}

static bool
has_sum(const unsigned char *header)
{
	size_t sum = 0;

	for (int i = 0; i < 512; i++)
		sum += i >= 148 && i < 156 ? ' ' : header[i];
	return octal(header + 148) == sum;
}

/* What an upload of that path and length is, block by block; the caller frees it. */
static unsigned char *
archived(const char *path, size_t length, size_t *size)
{
	char *content = malloc(length + 1);
	size_t room = length + 8192;
	unsigned char *archive = calloc(1, room);
	z_stream stream = {.next_out = archive, .avail_out = (uInt) room};
	Drive drive;

	memset(content, 'x', length);
	drive = vercel_opened(upload(path, content, length));
	asks(&drive, "POST", WRITE, "one request");
	stream.next_in = (unsigned char *) drive.op->request.body;
	stream.avail_in = (uInt) drive.op->request.body_length;
	inflateInit2(&stream, MAX_WBITS + 16);
	ok(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0,
	   "a gzip stream and nothing after it");
	*size = room - stream.avail_out;
	inflateEnd(&stream);
	drive_end(&drive);
	free(content);
	return archive;
}

static void
lengths(void)
{
	static const size_t rows[] = {0, 1, 511, 512, 513, 1024, 100000};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		size_t size;
		size_t blocks = (rows[i] + 511) / 512;
		unsigned char *archive = archived("/tmp/a", rows[i], &size);

		is_number((int64_t) size, (int64_t) (512 * (blocks + 3)),
		          "%zu bytes: a header, the content, and two blocks", rows[i]);
		is_number((int64_t) octal(archive + 124), (int64_t) rows[i], "its size");
		ok(has_sum(archive), "its checksum");
		is_text((char *) archive, "tmp/a", "its name");
		ok(rows[i] == 0 || (archive[512] == 'x' && archive[511 + rows[i]] == 'x'),
		   "its content");
		free(archive);
	}
}

/* A name of more than 100 bytes needs a header of its own, which says its own length. */
static void
names(void)
{
	static const size_t rows[] = {99, 100, 101, 102, 255, 256, 980, 990, 1000, 4000};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		char path[4100] = "/";
		char *end;
		size_t size;
		size_t told;
		unsigned char *archive;

		memset(path + 1, 'n', rows[i]);
		archive = archived(path, 1, &size);
		if (rows[i] <= 100)
		{
			ok(strncmp((char *) archive, path + 1, 100) == 0 && archive[156] == '0',
			   "must not fire: %zu bytes are in the header", rows[i]);
			free(archive);
			continue;
		}
		told = strtoul((char *) archive + 512, &end, 10);
		ok(archive[156] == 'x' && has_sum(archive), "must fire: %zu bytes", rows[i]);
		is_number((int64_t) told, (int64_t) octal(archive + 124), "all of the record");
		ok(strncmp(end, " path=n", 7) == 0 && archive[512 + told - 1] == '\n' &&
		       (size_t) ((char *) archive + 512 + told - end) == rows[i] + 7,
		   "and it is the name");
		free(archive);
	}
}

/* --- answers ------------------------------------------------------------------ */

static void
refusals(void)
{
	static const struct
	{
		int status;
		const char *up;
		const char *down;
	} rows[] = {{400, "INVALID_FILE_PATH", "INVALID_FILE_PATH"},
	            {401, "UNAUTHORIZED", "UNAUTHORIZED"},
	            {403, "FORBIDDEN", "FORBIDDEN"},
	            {410, "NOT_STARTED", "NOT_STARTED"},
	            {413, NULL, NULL},
	            {422, "NOT_STARTED", "NOT_STARTED"},
	            {429, "RATE_LIMITED", "RATE_LIMITED"},
	            {307, NULL, NULL},
	            {500, NULL, NULL}};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++)
	{
		bool up = i % 2 == 0;
		Drive drive = vercel_opened(up ? upload("a", "x", 1) : download("a"));

		ok(drive.op->request.repeatable, "a second delivery does no harm");
		drive_answer(&drive, rows[i / 2].status, "{}");
		fails(&drive, SBX_PHASE_REMOTE, rows[i / 2].status,
		      up ? rows[i / 2].up : rows[i / 2].down, UNKNOWN, "%s: %d",
		      up ? "up" : "down", rows[i / 2].status);
		drive_end(&drive);
	}
}

static void
stored(void)
{
	static const char *const rows[] = {"", "<html>", "[]", "null", "{"};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = vercel_opened(upload("a", "x", 1));

		drive_answer(&drive, 200, rows[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN,
		      "must fire: a success that is none of the interface's: %s", rows[i]);
		ok(drive.op->failure.request_sent, "and it may be there");
		drive_end(&drive);
	}
}

/* It can be the file that is not there, the session, or the sandbox. */
static void
not_found(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *up;
		const char *down;
	} rows[] = {
	    {404, "{}", "SANDBOX_GONE", "SANDBOX_GONE"},
	    {200, VERCEL_DTO("running"), NULL, "FILE_NOT_FOUND"},
	    {200, VERCEL_DTO("stopped"), "NOT_STARTED", "NOT_STARTED"},
	    {200, "{\"sandbox\":{\"currentSessionId\":\"sbx_S2\",\"status\":\"running\"}}",
	     "NOT_STARTED", "NOT_STARTED"},
	    {500, "", NULL, "FILE_NOT_FOUND"},
	    {200, "<html>", NULL, "FILE_NOT_FOUND"}};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++)
	{
		bool up = i % 2 == 0;
		Drive drive = vercel_opened(up ? upload("a", "x", 1) : download("a"));

		drive_answer(&drive, 404, "{}");
		asks(&drive, "GET", VERCEL_SANDBOX, "404 is looked into");
		drive_answer(&drive, rows[i / 2].status, rows[i / 2].body);
		fails(&drive, SBX_PHASE_REMOTE, 404, up ? rows[i / 2].up : rows[i / 2].down,
		      UNKNOWN, "%s: %s", up ? "up" : "down", rows[i / 2].body);
		drive_end(&drive);
	}
}

/* What the look before says. */
static void
not_running(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {
	    {404, "{}", SBX_PHASE_REMOTE, "SANDBOX_GONE"},
	    {200, VERCEL_DTO("stopped"), SBX_PHASE_REMOTE, "NOT_STARTED"},
	    {200, VERCEL_DTO("pending"), SBX_PHASE_REMOTE, "NOT_STARTED"},
	    {200, "{\"sandbox\":{\"name\":\"" NAME "\"}}", SBX_PHASE_REMOTE, "NOT_OURS"},
	    {200, "{\"sandbox\":{\"name\":\"sbx_other\"}}", SBX_PHASE_PROTOCOL, NULL},
	    {200,
	     VERCEL_DTO_OF("{\"name\":\"" NAME "\",\"status\":\"running\","
	                   "\"currentSessionId\":\"../x\",\"tags\":{"
	                   "\"sbx-router-id\":\"" NAME "\"}}",
	                   "running"),
	     SBX_PHASE_REMOTE, NULL},
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL},
	    {500, "", SBX_PHASE_REMOTE, NULL}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive;

		drive_start(&drive, upload("a", "x", 1));
		drive_answer_always(&drive, rows[i].status, rows[i].body);
		ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded,
		   "nothing is sent: %s", rows[i].body);
		is_text(drive.op->failure.provider_code, rows[i].code, "%s: code",
		        rows[i].body);
		drive_end(&drive);
	}
}

static void
contents(void)
{
	static const struct
	{
		const char *headers;
		const char *body;
		const char *code;
		bool is_file;
	} rows[] = {
	    {BYTES, "0123456789", NULL, true},
	    {BYTES, "", NULL, true},
	    {"content-type: Application/Octet-Stream;charset=x\r\n", "a", NULL, true},
	    {"", "a", NULL, true},
	    {BYTES, "0123456789a", "FILE_TOO_LARGE", false},
	    {"Content-Type: application/octet-streams\r\n", "a", NULL, false},
	    {"Content-Type: application/json\r\n", "{}", NULL, false},
	    {"Content-Type: text/html\r\n", "a", NULL, false}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = vercel_opened(download("/a"));

		asks(&drive, "POST", READ, "read by POST");
		drive_headed(&drive, 200, rows[i].headers, rows[i].body);
		ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->succeeded == rows[i].is_file,
		   "%s \"%s\"", rows[i].headers, rows[i].body);
		if (rows[i].is_file)
			is_text(((const SbxFileContent *) drive.op->result)->bytes, rows[i].body,
			        "byte for byte");
		else
			is_text(drive.op->failure.provider_code, rows[i].code, "its code");
		drive_end(&drive);
	}
}

void
test_vercel_files(void)
{
	section("Vercel files");
	paths();
	lengths();
	names();
	refusals();
	stored();
	not_found();
	not_running();
	contents();
}
