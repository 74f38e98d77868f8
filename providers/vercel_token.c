/*
 * vercel_token.c
 *		What a token says itself.
 *
 * An access token is opaque.  An OIDC token is a JWT, whose payload names the team that
 * owns it: the interface wants that team, whatever else is configured.  Nothing is verified
 * here, that is the provider's; what cannot be read is taken for an opaque token.
 */
#include <string.h>

#include "net/base64.h"
#include "providers/vercel.h"

/* Standard base64 of what is written for URLs, without padding; NULL = no memory. */
static char *
vercel_standard_base64(SbxArena *arena, const char *text, size_t length)
{
	char *standard = sbx_arena_alloc(arena, length + 4);

	if (standard == NULL)
		return NULL;
	for (size_t i = 0; i < length; i++)
		standard[i] = text[i];
	for (size_t i = 0; i < length; i++)
	{
		if (standard[i] == '-')
			standard[i] = '+';
		else if (standard[i] == '_')
			standard[i] = '/';
	}
	while (length % 4 != 0)
		standard[length++] = '=';
	standard[length] = '\0';
	return standard;
}

const char *
sbx_vercel_token_team(SbxArena *arena, const char *token)
{
	const char *payload = strchr(token, '.');
	const char *end = payload == NULL ? NULL : strchr(payload + 1, '.');
	const char *team = NULL;
	char *text;
	size_t length;
	json_t *claims;

	if (end == NULL || strchr(end + 1, '.') != NULL)
		return NULL;
	payload++;
	text = vercel_standard_base64(arena, payload, (size_t) (end - payload));
	if (text == NULL || !sbx_base64_decode(text, strlen(text), text, &length))
		return NULL;
	claims = sbx_json_parse(text, length, false);
	team = sbx_json_string(claims, "owner_id");
	if (team != NULL && *team != '\0')
		team = sbx_arena_strdup(arena, team);
	else
		team = NULL;
	json_decref(claims);
	return team;
}
