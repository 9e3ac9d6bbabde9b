/* SPDX-License-Identifier: Apache-2.0 */
#include "hold_answer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/client/api/api.h"

int hold_list(json_t **ret, struct problem *p)
{
	return api_call("GET", "/v1/holds", NULL, API_TIMEOUT_MS, ret, p);
}

static char *path_of(const char *sandbox, const char *id)
{
	AUTO_FREE char *quoted = api_quote(id), *name = api_quote(sandbox);

	return xasprintf("/v1/holds/%s%s%s", quoted, name[0] ? "?sandbox=" : "", name);
}

int hold_get(const char *ref, json_t **ret, struct problem *p)
{
	const char *slash = strchr(ref, '/');
	AUTO_FREE char *sandbox = xasprintf("%.*s", slash ? (int)(slash - ref) : 0, ref);
	AUTO_FREE char *path = path_of(sandbox, slash ? slash + 1 : ref);

	return api_call("GET", path, NULL, API_TIMEOUT_MS, ret, p);
}

static json_t *tty_name(void)
{
	char name[32];

	return ttyname_r(STDIN_FILENO, name, sizeof(name)) == 0 ? json_string(name) : NULL;
}

int hold_answer_send(const json_t *hold, const char *choice, uint64_t seconds, const char *reason,
	json_t **ret, struct problem *p)
{
	AUTO_FREE char *path = path_of(api_str(hold, "sandbox"), api_str(hold, "id"));
	AUTO_JSON json_t *body =
		json_pack("{s:s,s:s}", "answer", choice, "digest", api_str(hold, "digest"));
	json_t *tty = tty_name();

	if (tty)
		json_object_set_new(body, "tty", tty);
	if (seconds)
		json_object_set_new(body, "seconds", json_integer((json_int_t)seconds));
	if (reason)
		json_object_set_new(body, "reason", json_string(reason));
	return api_call("POST", path, body, API_TIMEOUT_MS, ret, p);
}
