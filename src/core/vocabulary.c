/*
 * vocabulary.c
 *		The words of the request language: capability names and enumerations.
 */
#include "core/vocabulary.h"

const char *const sbx_strategy_names[] = {"cost", "latency", "reliability", "balanced"};
const char *const sbx_objective_names[] = {"coldStart", "ready"};

/* A pool may say "unknown"; it satisfies no requirement. */
const char *const sbx_isolation_names[] = {"none", "process", "strong", "unknown"};
const int sbx_isolation_count = lengthof(sbx_isolation_names);
const char *const sbx_egress_names[] = {"none", "allowlist", "open"};
const int sbx_egress_count = lengthof(sbx_egress_names);
const char *const sbx_fallback_names[] = {"allowed", "forbidden"};
const int sbx_fallback_count = lengthof(sbx_fallback_names);
const char *const sbx_authority_names[] = {"provider", "none", "fleet"};
const int sbx_authority_count = lengthof(sbx_authority_names);
const char *const sbx_durability_names[] = {"ephemeral", "persistent"};
const int sbx_durability_count = lengthof(sbx_durability_names);

const char *const sbx_capability_names[] = {
    "pty",
    "publicPorts",
    "nestedUserNamespaces",
    "asyncExec",
    "reattach",
    "detachedLaunch",
    "warmLease",
    "lifecycle",
    "snapshots",
    "persistentHandle",
    "streamingLogs",
    "syncExec",
    "fileTransfer",
    "tailnet",
    "longRunningProcess",
    "stablePid",
    "processRestart",
    "unattendedEnrollment",
    "gpu",
};
const int sbx_capability_count = lengthof(sbx_capability_names);

const char *const sbx_default_capabilities[] = {"syncExec", "fileTransfer"};
const int sbx_default_capability_count = lengthof(sbx_default_capabilities);

/* Names and ids are at most 63 bytes, as PostgreSQL's own names. */
#define SBX_MAX_NAME 63

static bool
is_ascii_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool
is_ascii_alphanumeric(char c)
{
	return is_ascii_letter(c) || (c >= '0' && c <= '9');
}

bool
sbx_is_capability_name(const char *name)
{
	size_t length = strlen(name);

	if (length > SBX_MAX_NAME || !is_ascii_letter(name[0]))
		return false;
	for (size_t i = 0; i < length; i++)
	{
		if (!is_ascii_alphanumeric(name[i]))
			return false;
	}
	return true;
}

bool
sbx_is_provider_id(const char *id)
{
	size_t length = strlen(id);

	if (length > SBX_MAX_NAME || !is_ascii_alphanumeric(id[0]))
		return false;
	for (size_t i = 0; i < length; i++)
	{
		if (!is_ascii_alphanumeric(id[i]) && strchr("._-", id[i]) == NULL)
			return false;
	}
	return true;
}

bool
sbx_is_sandbox_id(const char *id)
{
	if (strlen(id) != SBX_ID_LENGTH || strncmp(id, "sbx_", 4) != 0)
		return false;
	return strspn(id + 4, "0123456789abcdef") == SBX_ID_LENGTH - 4;
}
