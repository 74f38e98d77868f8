/*
 * compat.h
 *		Every difference between the PostgreSQL and libcurl versions we build for.
 *
 * Nothing else tests PG_VERSION_NUM or LIBCURL_VERSION_NUM.
 */
#ifndef SBX_COMPAT_H
#define SBX_COMPAT_H

#include "postgres.h"

#include "fmgr.h"

#if PG_VERSION_NUM < 150000
#error "sbx_router needs PostgreSQL 15 or later"
#endif

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* The wait-event set moved to a header and an owner of its own. */
#if PG_VERSION_NUM >= 180000
#include "storage/waiteventset.h"
#else
#include "storage/latch.h"
#endif

#if PG_VERSION_NUM >= 170000
#define sbx_create_wait_event_set(n) CreateWaitEventSet(NULL, (n))
#else
#define sbx_create_wait_event_set(n) CreateWaitEventSet(TopMemoryContext, (n))
#endif

/* A lexer of JSON text; unescape: what strings stand for is wanted, too. */
#if PG_VERSION_NUM >= 170000
#define sbx_json_lexer(text, length, unescape)                                         \
	makeJsonLexContextCstringLen(NULL, (text), (length), GetDatabaseEncoding(),        \
	                             (unescape))
#else
#define sbx_json_lexer(text, length, unescape)                                         \
	makeJsonLexContextCstringLen((text), (length), GetDatabaseEncoding(), (unescape))
#endif

#if PG_VERSION_NUM >= 180000
#define SBX_MODULE_MAGIC                                                               \
	PG_MODULE_MAGIC_EXT(.name = "sbx_router", .version = SBX_ROUTER_VERSION)
#else
#define SBX_MODULE_MAGIC PG_MODULE_MAGIC
#endif

#endif /* SBX_COMPAT_H */
