/*
 * kinds.c
 *		The list of provider kinds.  Adding one: its file, one line here.
 */
#include <string.h>

#include "providers/provider.h"

const SbxProviderKind *const sbx_provider_kinds[] = {&sbx_kind_daytona,
                                                     &sbx_kind_e2b,
                                                     &sbx_kind_vercel,
                                                     &sbx_kind_agent37,
                                                     &sbx_kind_freestyle,
                                                     &sbx_kind_microsandbox,
                                                     NULL};

const SbxProviderKind *
sbx_provider_kind_find(const char *name)
{
	for (int i = 0; sbx_provider_kinds[i] != NULL; i++)
	{
		if (strcmp(sbx_provider_kinds[i]->name, name) == 0)
			return sbx_provider_kinds[i];
	}
	return NULL;
}
