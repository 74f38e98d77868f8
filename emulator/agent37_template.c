/*
 * agent37_template.c
 *		Templates: what an instance is made from, and what answers at its URL.
 *
 * Any name is known, except those that begin with "no-such-", and so is any
 * version with the same exception.  Two beginnings stand for what customers
 * may bring: with "custom-" their own program is at the URL instead of the
 * gateway, with "headless-" there is no URL.
 */
#include "agent37.h"

#include <string.h>

const char agent37_default_template[] = "agent37-hermes";

#define UNKNOWN  "no-such-"
#define CUSTOM   "custom-"
#define HEADLESS "headless-"

static bool
begins(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* name or name@version; what has a slash or a colon is an image, not a template. */
bool
agent37_template_valid(const char *reference)
{
	static const char letters[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	size_t length = strspn(reference, letters);

	if (length == 0 || reference[length] == '\0')
		return length > 0;
	reference += length + 1;
	length = strspn(reference, letters);
	return reference[-1] == '@' && length > 0 && reference[length] == '\0';
}

bool
agent37_template_known(const char *reference)
{
	const char *version = strchr(reference, '@');

	return !begins(reference, UNKNOWN) &&
	       (version == NULL || !begins(version + 1, UNKNOWN));
}

bool
agent37_has_url(const Agent37Details *details)
{
	return !begins(details->template, HEADLESS);
}

bool
agent37_has_gateway(const Agent37Details *details)
{
	return !begins(details->template, CUSTOM);
}
