/*
 * fuzz.h
 *		What the fuzz targets share: reading the input, and saying what is wrong.
 */
#ifndef SBX_FUZZ_H
#define SBX_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each target has one; nothing may be left over from one input to the next. */
extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input is read from its start; what is beyond its end is zero. */
typedef struct FuzzInput
{
	const uint8_t *data;
	size_t left;
} FuzzInput;

extern uint8_t fuzz_byte(FuzzInput *input);

/* So many bytes at most, as a malloc'ed block of exactly that size and a NUL. */
extern char *fuzz_bytes(FuzzInput *input, size_t wanted, size_t *length);

/* A rule that the code has to keep whatever the input is; ends the process otherwise. */
extern void
fuzz_check(bool kept, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads every byte, so that a sanitizer sees one that is not there. */
extern void fuzz_touch(const void *bytes, size_t length);
extern void fuzz_touch_text(const char *text);

#endif /* SBX_FUZZ_H */
