/*
 * request.h
 *		request jsonb -> SbxRequest, strictly validated.
 */
#ifndef SBX_REQUEST_H
#define SBX_REQUEST_H

#include "core/jsonread.h"
#include "core/names.h"
#include "core/vocabulary.h"

/* Attempts of one acquisition: the default and the largest that may be asked for. */
#define SBX_DEFAULT_ATTEMPTS 3
#define SBX_MAX_ATTEMPTS     10

typedef struct SbxResources
{
	double cpu;      /* vCPU, may be fractional */
	int64 memory_mb; /* MiB */
	int64 disk_mb;   /* MiB */
	int64 gpu;       /* count */
} SbxResources;

/*
 * A list of names in the request's order: the texts, and the numbers under which
 * pools declare them (-1 = no pool does).
 */
typedef struct SbxNameList
{
	char **names;
	int *numbers;
	int count;
} SbxNameList;

/* A key of requires.network with the value that a pool has to declare. */
typedef struct SbxNetworkNeed
{
	char *key;
	JsonbValue value;
	bool is_claim; /* number says it all; otherwise the values are compared */
	int number;    /* of the claim; -1 = no pool makes it */
} SbxNetworkNeed;

typedef struct SbxRequest
{
	SbxResources resources;
	SbxNameList required; /* capabilities */
	SbxNameList forbidden;
	char *image_identity; /* NULL = any */
	int image_number;     /* -1 = no pool declares it */
	SbxNameList binaries;
	int isolation;  /* floor; -1 = any */
	int egress;     /* exact class; -1 = any */
	int durability; /* floor; -1 = any */
	SbxNameList restrictions;
	SbxNetworkNeed *network; /* in jsonb key order */
	int network_count;
	SbxNameList semantics;
	int64 granularity_ms;       /* -1 = any */
	int64 max_ready_latency_ms; /* -1 = any */
	int64 required_lifetime_ms; /* -1 = any */
	int64 completion_budget_ms; /* -1 = not given; input of a signals resolver */
	SbxNameList preferred_regions;
	bool region_required;
	SbxStrategy strategy;
	SbxLatencyObjective objective;
	bool fallback_allowed;
	int max_attempts;
	bool routable;     /* false: placement bypasses routing */
	char *provider_id; /* NULL = any */
	char *name;        /* launch.name, NULL = none */
	SbxText *env;
	int env_count;
	SbxText *labels;
	int label_count;
	int64 create_timeout_ms; /* 0 = not given */
	char *idempotency_key;   /* NULL = none */
} SbxRequest;

/*
 * What the pools of a routing decision declare, numbered; so it is known, too, which
 * names there are.  All tables belong to the same set of pools.
 */
typedef struct SbxDeclared
{
	SbxNames *capabilities; /* the builtin names first */
	SbxNames *texts;        /* regions, binaries, restrictions, semantics */
	SbxNames *images;       /* identities: one a pool, so many would crowd the texts */
	SbxNames *claims;       /* keys of network with their values */
} SbxDeclared;

extern SbxDeclared *sbx_declared_create(MemoryContext context);

/*
 * A key of network with its value as one text: equal values, equal texts.  NULL for
 * values that are compared the long way: lists, objects, and what is long.
 */
extern char *sbx_network_claim(const JsonbValue *key, const JsonbValue *value);

/*
 * Parse and validate.  Raises SB001 naming the first fault in the order of the
 * request language (unknown keys of an object before its members; a capability
 * name that is neither builtin nor declared is a fault, too).  Allocates in the
 * current memory context.
 */
extern SbxRequest *sbx_request_parse(Jsonb *jsonb, const SbxDeclared *declared);

/* The same for a request that stands elsewhere, e.g. the defaults of a policy. */
extern SbxRequest *
sbx_request_parse_at(const SbxPath *path, Jsonb *jsonb, const SbxDeclared *declared);

/* Raises SB002 when placement bypasses routing. */
extern void sbx_request_check_routable(const SbxRequest *request);

/* The request with every default filled in. */
extern Jsonb *sbx_request_normalize(const SbxRequest *request);

#endif /* SBX_REQUEST_H */
