/*
 * microsandbox_transfer.c
 *		Files that are open: handles, and the streams from and to them.
 *
 * A handle belongs to its socket.  It stands for a path: a file that is moved
 * away meanwhile is another one then.
 */
#include "microsandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct MicrosandboxHandle
{
	MicrosandboxHandle *next;
	uint64_t number;
	char *path;
	bool append;
};

/* Any of the three things that take a while. */
typedef struct Transfer
{
	MicrosandboxOperation operation; /* first */
	EmuProcess *process;
	MicrosandboxHandle *handle; /* of an OpenFile: what will be handed out */
	int64_t expected;           /* bytes of a Write, -1: not said */
	int64_t heard;
	bool complete; /* all of it is here */
} Transfer;

/* "$2" has a letter for each option, "$3" is a mode in octal. */
static const char open_script[] =
    "has() { case $flags in *$1*) true;; *) false;; esac; }; flags=$2; "
    "[ -d \"$1\" ] && exit 21; "
    "if has w || has a; then "
    "if [ -e \"$1\" ]; then has n && exit 17; [ -w \"$1\" ] || exit 13; "
    "else has c || has n || exit 2; [ -d \"$(dirname -- \"$1\")\" ] || exit 2; "
    ": >\"$1\" || exit 13; [ -z \"$3\" ] || chmod \"$3\" -- \"$1\"; fi; "
    "if has t; then : >\"$1\" || exit 13; fi; "
    "else [ -e \"$1\" ] || exit 2; fi; "
    "if has r; then [ -r \"$1\" ] || exit 13; fi";

/* "$2" is the offset, "$3" a length or empty. */
static const char read_script[] =
    "[ -e \"$1\" ] || exit 2; "
    "if [ -z \"$3\" ]; then exec tail -c +$(($2 + 1)) -- \"$1\"; fi; "
    "tail -c +$(($2 + 1)) -- \"$1\" | head -c \"$3\"";

/* "$3" tells to append. */
static const char write_script[] =
    "if [ -n \"$3\" ]; then exec cat >>\"$1\"; fi; "
    "exec dd of=\"$1\" conv=notrunc oflag=seek_bytes seek=\"$2\" bs=65536 "
    "iflag=fullblock status=none";

/*
 * Handles
 */

static void
handle_free(MicrosandboxHandle *handle)
{
	free(handle->path);
	free(handle);
}

void
microsandbox_handles_free(MicrosandboxAgent *agent)
{
	while (agent->handles != NULL)
	{
		MicrosandboxHandle *next = agent->handles->next;

		handle_free(agent->handles);
		agent->handles = next;
	}
}

static MicrosandboxHandle **
handle_place(MicrosandboxAgent *agent, const cbor_item_t *members)
{
	MicrosandboxHandle **place = &agent->handles;
	int64_t number = -1;

	emu_cbor_integer(emu_cbor_member(members, "handle"), &number);
	while (*place != NULL && (int64_t) (*place)->number != number)
		place = &(*place)->next;
	return place;
}

static void
no_handle(MicrosandboxAgent *agent, uint32_t id)
{
	microsandbox_files_answer(agent, id, "there is no such handle", NULL);
}

static void
close_handle(MicrosandboxAgent *agent, uint32_t id, const cbor_item_t *members)
{
	MicrosandboxHandle **place = handle_place(agent, members);
	MicrosandboxHandle *handle = *place;

	if (handle == NULL)
	{
		no_handle(agent, id);
		return;
	}
	*place = handle->next;
	handle_free(handle);
	microsandbox_files_answer(agent, id, NULL, NULL);
}

/*
 * Transfers
 */

static void
transfer_hear(MicrosandboxOperation *operation, const char *type,
              const cbor_item_t *payload)
{
	Transfer *transfer = (Transfer *) operation;
	const char *data;
	size_t length;

	if (strcmp(type, "core.fs.data") != 0 ||
	    !emu_cbor_bytes(emu_cbor_member(payload, "data"), &data, &length))
		return;
	transfer->heard += (int64_t) length;
	if (length > 0)
		emu_process_input(transfer->process, data, length);
	else
	{
		transfer->complete = true;
		emu_process_input_end(transfer->process);
	}
}

static void
transfer_lost(MicrosandboxOperation *operation)
{
	emu_process_kill(((Transfer *) operation)->process, 0);
}

static void
transfer_output(void *owner, bool errors, const char *data, size_t length)
{
	Transfer *transfer = owner;
	cbor_item_t *payload;

	if (errors || transfer->operation.agent == NULL)
		return;
	payload = emu_cbor_map(1);
	emu_cbor_put(payload, "data", emu_cbor_new_bytes(data, length));
	microsandbox_say(&transfer->operation, "core.fs.data", payload);
}

static cbor_item_t *
hand_out(MicrosandboxAgent *agent, MicrosandboxHandle *handle)
{
	handle->number = ++agent->last_handle;
	handle->next = agent->handles;
	agent->handles = handle;
	return emu_cbor_variant("Handle", emu_cbor_new_integer((int64_t) handle->number));
}

static void
transfer_ended(void *owner, const EmuProcessEnd *end)
{
	Transfer *transfer = owner;
	const char *error = microsandbox_files_error(end);
	cbor_item_t *data = NULL;

	if (error == NULL && transfer->complete && transfer->expected >= 0 &&
	    transfer->heard != transfer->expected)
		error = "the data was not as long as announced";
	if (transfer->handle != NULL && error == NULL && transfer->operation.agent != NULL)
		data = hand_out(transfer->operation.agent, transfer->handle);
	else if (transfer->handle != NULL)
		handle_free(transfer->handle);
	microsandbox_files_end(&transfer->operation, end, error, data);
	free(transfer);
}

/* Only a Write has input, which goes on until the client says so. */
static Transfer *
transfer_begin(MicrosandboxAgent *agent, uint32_t id, const char *script,
               const char *path, const char *second, const char *third)
{
	static const EmuProcessEvents events = {transfer_output, transfer_ended, NULL,
	                                        NULL};
	const char *words[] = {path, second, third};
	Transfer *transfer = emu_alloc(sizeof(Transfer));

	transfer->expected = -1;
	transfer->operation.hear = transfer_hear;
	transfer->operation.lost = transfer_lost;
	microsandbox_operation_begin(agent, &transfer->operation, id);
	transfer->process = microsandbox_files_run(agent, script, words, &events, transfer);
	return transfer;
}

/*
 * What is asked for
 */

static void
open_file(MicrosandboxAgent *agent, uint32_t id, const cbor_item_t *members)
{
	static const struct
	{
		const char *name;
		char letter;
	} options[] = {{"read", 'r'},   {"write", 'w'},    {"append", 'a'},
	               {"create", 'c'}, {"truncate", 't'}, {"create_new", 'n'}};
	const cbor_item_t *given = emu_cbor_member(members, "options");
	char *path = emu_cbor_text(emu_cbor_member(members, "path"));
	char letters[sizeof(options) / sizeof(options[0]) + 1] = "";
	size_t count = 0;
	char mode[8] = "";
	int64_t number;
	Transfer *transfer;

	if (path == NULL || given == NULL)
	{
		microsandbox_files_answer(agent, id, strerror(EINVAL), NULL);
		free(path);
		return;
	}
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (emu_cbor_is_true(emu_cbor_member(given, options[i].name)))
			letters[count++] = options[i].letter;
	if (emu_cbor_integer(emu_cbor_member(given, "mode"), &number))
		snprintf(mode, sizeof(mode), "%o", (unsigned) number & 07777);
	transfer = transfer_begin(agent, id, open_script, path, letters, mode);
	transfer->handle = emu_alloc(sizeof(MicrosandboxHandle));
	transfer->handle->path = path;
	transfer->handle->append = strchr(letters, 'a') != NULL;
	emu_process_input_end(transfer->process);
}

/* The place in the file, and a length where one is given. */
static bool
read_extent(const cbor_item_t *members, EmuText *offset, EmuText *length)
{
	const cbor_item_t *given = emu_cbor_member(members, "len");
	int64_t number;

	emu_text_add(length, "");
	if (!emu_cbor_integer(emu_cbor_member(members, "offset"), &number) || number < 0)
		return false;
	emu_text_number(offset, number);
	if (given == NULL || emu_cbor_is_null(given))
		return true;
	if (!emu_cbor_integer(given, &number) || number < 0)
		return false;
	emu_text_number(length, number);
	return true;
}

static void
read_or_write(MicrosandboxAgent *agent, uint32_t id, const cbor_item_t *members,
              bool write)
{
	const MicrosandboxHandle *handle = *handle_place(agent, members);
	EmuText offset = {0};
	EmuText length = {0};
	Transfer *transfer;

	if (handle == NULL)
		no_handle(agent, id);
	else if (!read_extent(members, &offset, &length))
		microsandbox_files_answer(agent, id, strerror(EINVAL), NULL);
	else if (write)
	{
		transfer = transfer_begin(agent, id, write_script, handle->path, offset.data,
		                          handle->append ? "append" : "");
		emu_cbor_integer(emu_cbor_member(members, "len"), &transfer->expected);
	}
	else
	{
		transfer = transfer_begin(agent, id, read_script, handle->path, offset.data,
		                          length.data);
		emu_process_input_end(transfer->process);
	}
	emu_text_free(&offset);
	emu_text_free(&length);
}

/* False if it is none of these. */
bool
microsandbox_transfer(MicrosandboxAgent *agent, uint32_t id, const char *name,
                      const cbor_item_t *members)
{
	if (strcmp(name, "OpenFile") == 0)
		open_file(agent, id, members);
	else if (strcmp(name, "CloseHandle") == 0)
		close_handle(agent, id, members);
	else if (strcmp(name, "Read") == 0 || strcmp(name, "Write") == 0)
		read_or_write(agent, id, members, *name == 'W');
	else
		return false;
	return true;
}
