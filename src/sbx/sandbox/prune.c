/* SPDX-License-Identifier: Apache-2.0 */
#include "prune.h"

#include <errno.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/when.h"

int prune_parse_until(const char *filter, uint64_t now_ms, uint64_t *ret_ms, struct err *err)
{
	if (!str_starts(filter, "until="))
		return err_set(err, -EINVAL, "unknown filter '%s': expected until=WHEN", filter);
	return when_parse(filter + 6, now_ms, ret_ms, err);
}

/* Describes a sandbox to be removed. */
static json_t *describe_prune(const json_t *s)
{
	json_t *hosts = json_array(), *w;
	size_t i;

	json_array_foreach (json_object_get(s, "workspaces"), i, w)
		(void)json_array_append(hosts, json_object_get(w, "host"));
	return json_pack("{s:s, s:s, s:s, s:I, s:o}", "name", api_str(s, "name"), "id",
		api_str(s, "id"), "agent", api_str(s, "agent"), "stopped_at",
		(json_int_t)api_int(s, "stopped_at"), "workspaces", hosts);
}

/* `sbx stop` suspends an idle sandbox. Others that are suspended are to be resumed. */
static bool is_stopped(const json_t *s)
{
	return sandbox_is(s, "stopped") ||
	       (sandbox_is(s, "suspended") && strcmp(api_str(s, "suspended_by"), "stop") == 0);
}

void prune_choose(const json_t *list, bool filtered, uint64_t until_ms, json_t *go, json_t *unknown)
{
	const json_t *s;
	size_t i;

	json_array_foreach (list, i, s) {
		long long at = api_int(s, "stopped_at");

		if (!is_stopped(s))
			continue;
		if (filtered && at <= 0)
			(void)json_array_append(unknown, json_object_get(s, "name"));
		else if (!filtered || (uint64_t)at < until_ms)
			(void)json_array_append_new(go, describe_prune(s));
	}
}
