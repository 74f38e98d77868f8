/*
 * request.h
 *		request jsonb -> SbxRequest, strictly validated.
 */
#ifndef SBX_REQUEST_H
#define SBX_REQUEST_H

#include "core/jsonread.h"
#include "core/vocabulary.h"

typedef struct SbxResources
{
	double cpu;      /* vCPU, may be fractional */
	int64 memory_mb; /* MiB */
	int64 disk_mb;   /* MiB */
	int64 gpu;       /* count */
} SbxResources;

typedef struct SbxRequest
{
	SbxResources resources;
	char **required; /* capability names, request order */
	int required_count;
	char **forbidden;
	int forbidden_count;
	SbxStrategy strategy;
	SbxLatencyObjective objective;
	char *provider_id; /* NULL = any */
	char *name;        /* launch.name, NULL = none */
	SbxText *env;
	int env_count;
	SbxText *labels;
	int label_count;
	int64 create_timeout_ms; /* 0 = not given */
} SbxRequest;

/* Capability names that the registered pools declare. */
typedef struct SbxNames
{
	const char *const *names;
	int count;
} SbxNames;

/*
 * Parse and validate.  Raises SB001 naming the first fault in the order of the
 * request language, 0A000 for a part of the language that is not built.
 * Allocates in the current memory context.
 */
extern SbxRequest *sbx_request_parse(Jsonb *jsonb, const SbxNames *declared);

#endif /* SBX_REQUEST_H */
