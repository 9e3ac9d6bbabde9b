/* SPDX-License-Identifier: Apache-2.0 */
#include "guard_row.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/cli/ui.h"

char *guard_row_path(const json_t *sandbox, const json_t *row)
{
	const char *host = api_str(row, "workspace");
	bool is_only = json_array_size(json_object_get(sandbox, "workspaces")) == 1 &&
		       json_array_size(json_object_get(sandbox, "mounts")) == 0;
	char *text = is_only ? xstrdup(api_str(row, "path"))
			     : xasprintf("%s%s%s", strcmp(host, "/") == 0 ? "" : host,
				       strcmp(host, "/") == 0 ? "" : "/", api_str(row, "path"));

	ui_clean(text);
	return text;
}

static const char *state_text(const json_t *row)
{
	static const struct {
		const char *state, *text;
	} states[] = {
		{"new", "new"},
		{"changed", "changed"},
		{"was-link", "was a symbolic link"},
		{"was-other", "replaced"},
		{"tree", "files in it were created or changed"},
	};

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (strcmp(api_str(row, "state"), states[i].state) == 0)
			return states[i].text;
	return "changed";
}

char *guard_row_heading(const json_t *sandbox, const json_t *row)
{
	AUTO_FREE char *path = guard_row_path(sandbox, row);
	const char *program = api_str(row, "program"), *detail = api_str(row, "detail");
	char *text = xasprintf("%s: %s runs it%s%s (%s)", path,
		program[0] ? program : "a program of the host", detail[0] ? ": " : "", detail,
		strcmp(api_str(row, "state"), "denied") == 0 ? "denied" : state_text(row));

	ui_clean(text);
	return text;
}
