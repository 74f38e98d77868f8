#include "microsandbox.h"
void
microsandbox_files(MicrosandboxAgent *agent, uint32_t id, const cbor_item_t *payload)
{
	(void) payload;
	microsandbox_agent_complain(agent, id, "capability_unavailable", "not yet",
	                            "core.fs.request");
}
void
microsandbox_handles_free(MicrosandboxAgent *agent)
{
	(void) agent;
}
