/*
 * text.h
 *		Growing text, JSON output, and the few encodings the emulator needs.
 *
 * Answers are written straight into an EmuText instead of being built as a
 * tree first: a create answer has thirty members, and the emulator must not
 * be what a benchmark measures.
 */
#ifndef EMU_TEXT_H
#define EMU_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct EmuText
{
	char *data; /* NUL-terminated once anything was added */
	size_t length;
	size_t capacity;
} EmuText;

/* Memory: running out of it ends the process, callers need no checks. */
extern void *emu_alloc(size_t size);
extern void *emu_realloc(void *old, size_t size);
extern char *emu_strdup(const char *string);
extern char *emu_strndup(const char *string, size_t length);

extern void emu_text_append(EmuText *text, const char *data, size_t length);
extern void emu_text_add(EmuText *text, const char *string);
extern void emu_text_fill(EmuText *text, char byte, size_t count);
extern void emu_text_number(EmuText *text, int64_t number);
extern void emu_text_format(EmuText *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
extern void
emu_text_insert(EmuText *text, size_t position, const char *data, size_t length);
extern void emu_text_free(EmuText *text);
extern char *emu_text_steal(EmuText *text);

/* JSON output: a member writes its own comma when one is needed. */
extern void emu_json_string(EmuText *text, const char *data, size_t length);
extern void emu_json_string_ascii(EmuText *text, const char *data, size_t length);
extern void emu_json_key(EmuText *text, const char *name);
extern void emu_json_member(EmuText *text, const char *name, const char *value);
extern void
emu_json_member_bytes(EmuText *text, const char *name, const char *data, size_t length);
extern void emu_json_member_raw(EmuText *text, const char *name, const char *json);
extern void emu_json_member_number(EmuText *text, const char *name, double number);
extern void emu_json_member_integer(EmuText *text, const char *name, int64_t number);
extern void emu_json_member_time(EmuText *text, const char *name, int64_t wall_ms);

extern void emu_text_time(EmuText *text, int64_t wall_ms);

/* How many bytes at the end are the start of a character that is not complete. */
extern size_t emu_utf8_tail(const char *data, size_t length);
extern void emu_text_base64(EmuText *text, const char *data, size_t length);
extern bool emu_text_unbase64(EmuText *text, const char *data, size_t length);
extern void emu_text_unescape_url(EmuText *text, const char *data, size_t length,
                                  bool plus_is_space);
extern void emu_text_gzip(EmuText *text, const char *data, size_t length);
extern bool
emu_text_gunzip(EmuText *text, const char *data, size_t length, size_t limit);

extern int64_t emu_wall_ms(void);
extern int64_t emu_clock_ms(void);

/* Random numbers repeat with --seed, so that a failing run can be replayed. */
extern void emu_random_seed(uint64_t seed);
extern uint64_t emu_random(void);

#define EMU_UUID_SIZE 37
extern void emu_uuid(char *buffer);

#endif
