/*
 * error.h
 *		SQLSTATEs of class SB and the reports that go with them.
 *
 * MESSAGE follows the server's style guide, DETAIL is one line of JSON for
 * programs, HINT is advice for people.  No provider text and no credential ever
 * reaches one of them.
 */
#ifndef SBX_ERROR_H
#define SBX_ERROR_H

#include "compat.h"

#include "lib/stringinfo.h"

#define SBX_ERRCODE_INVALID_REQUEST        MAKE_SQLSTATE('S', 'B', '0', '0', '1')
#define SBX_ERRCODE_ROUTING_NOT_APPLICABLE MAKE_SQLSTATE('S', 'B', '0', '0', '2')
#define SBX_ERRCODE_NO_ELIGIBLE_PROVIDER   MAKE_SQLSTATE('S', 'B', '0', '0', '3')
#define SBX_ERRCODE_CAPACITY_EXHAUSTED     MAKE_SQLSTATE('S', 'B', '0', '0', '4')
#define SBX_ERRCODE_PROVISIONING_FAILED    MAKE_SQLSTATE('S', 'B', '0', '0', '5')
#define SBX_ERRCODE_ATTEMPTS_EXHAUSTED     MAKE_SQLSTATE('S', 'B', '0', '0', '6')
#define SBX_ERRCODE_READINESS_FAILED       MAKE_SQLSTATE('S', 'B', '0', '0', '7')
#define SBX_ERRCODE_PROVIDER_RUNTIME       MAKE_SQLSTATE('S', 'B', '0', '0', '8')
#define SBX_ERRCODE_UNKNOWN_SANDBOX        MAKE_SQLSTATE('S', 'B', '0', '1', '0')
#define SBX_ERRCODE_CREDENTIAL_MISSING     MAKE_SQLSTATE('S', 'B', '0', '1', '1')
#define SBX_ERRCODE_OPERATION_UNSUPPORTED  MAKE_SQLSTATE('S', 'B', '0', '1', '2')
#define SBX_ERRCODE_INVALID_REGISTRATION   MAKE_SQLSTATE('S', 'B', '0', '1', '3')

/* Which document a path belongs to; decides SQLSTATE and wording. */
typedef enum SbxDocument
{
	SBX_DOCUMENT_REQUEST,   /* SB001 */
	SBX_DOCUMENT_ARGUMENT,  /* SB001: arguments of a call other than the request */
	SBX_DOCUMENT_PROVIDER,  /* SB013 */
	SBX_DOCUMENT_POLICY,    /* SB013 */
	SBX_DOCUMENT_CREDENTIAL /* SB013: never with a HINT made from the input */
} SbxDocument;

/* Why a value is refused; the token is what DETAIL carries as "reason". */
typedef enum SbxReason
{
	SBX_REASON_UNKNOWN_KEY,
	SBX_REASON_WRONG_TYPE,
	SBX_REASON_MISSING,
	SBX_REASON_EMPTY,
	SBX_REASON_CONTROL_CHARACTER,
	SBX_REASON_DUPLICATE,
	SBX_REASON_NEGATIVE,
	SBX_REASON_NOT_FINITE,
	SBX_REASON_NOT_INTEGER,
	SBX_REASON_OUT_OF_RANGE,
	SBX_REASON_TOO_MANY,
	SBX_REASON_TOO_LARGE,
	SBX_REASON_TOO_DEEP,
	SBX_REASON_BAD_FORMAT,
	SBX_REASON_UNKNOWN_NAME,
	SBX_REASON_CONFLICT,
	SBX_REASON_RESERVED,
	SBX_REASON_IN_USE,
	SBX_REASON_SECRET,
	SBX_REASON_FORBIDDEN
} SbxReason;

/* The token of a reason. */
extern const char *sbx_error_reason(SbxReason reason);

/*
 * Refuse a document: SB001 or SB013, DETAIL {"path","reason"}.  hint is a
 * complete sentence or NULL.
 */
extern void sbx_error_document(SbxDocument document, const char *path, SbxReason reason,
                               const char *hint) pg_attribute_noreturn();

/*
 * A part of the request language that is valid but not built: 0A000, so that no
 * requirement is ever silently ignored.
 */
extern void sbx_error_not_built(const char *what) pg_attribute_noreturn();

/* Cancel, statement_timeout, termination: nobody's to swallow, or to sit on. */
extern bool sbx_error_is_interrupt(int sqlerrcode);

/* One sentence "Perhaps you meant "x"." for the nearest name, or NULL. */
extern char *
sbx_error_nearest_hint(const char *given, const char *const *names, int count);

/*
 * Build one line of JSON: sbx_detail_open, members, sbx_detail_close.  A NULL
 * value is left out.
 */
extern void sbx_detail_open(StringInfo detail);
extern void sbx_detail_text(StringInfo detail, const char *key, const char *value);
extern void sbx_detail_raw(StringInfo detail, const char *key, const char *json);
extern char *sbx_detail_close(StringInfo detail);

#endif /* SBX_ERROR_H */
