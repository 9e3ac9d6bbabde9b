/* SPDX-License-Identifier: Apache-2.0 */
#include "overlap.h"

#include <string.h>

#include "lib/client/api/api.h"
#include "lib/base/mem.h"
#include "lib/vm/share/place.h"
#include "lib/client/api/sandbox.h"

/* Whether `inner` has the same relative path below `outer` in the guest. */
static bool is_held(const json_t *outer, const json_t *inner)
{
	const char *rest = api_str(inner, "host") + strlen(api_str(outer, "host"));
	AUTO_FREE char *there = xasprintf("%s%s", api_str(outer, "guest"), rest);

	return strcmp(there, api_str(inner, "guest")) == 0;
}

char *overlap_text(const json_t *a, const json_t *b, const char *other)
{
	bool b_is_inner = strlen(api_str(b, "host")) > strlen(api_str(a, "host"));
	const json_t *inner = b_is_inner ? b : a, *outer = b_is_inner ? a : b;
	const char *in = api_str(inner, "host"), *out = api_str(outer, "host");

	if (strcmp(in, out) == 0 || !place_is_in(in, out) ||
		json_is_true(json_object_get(outer, "ro")))
		return NULL;
	if (other)
		return xasprintf("workspace %s is inside %s, which %s%s%s can change: that sandbox "
				 "can remove or replace it",
			in, out, b_is_inner ? "the new sandbox" : "sandbox '",
			b_is_inner ? "" : other, b_is_inner ? "" : "'");
	if (is_held(outer, inner))
		return NULL;
	return xasprintf("workspace %s is inside %s, which the sandbox can change: the sandbox can "
			 "remove or replace it",
		in, out);
}

static void warn_overlap(const json_t *a, const json_t *b, const char *other)
{
	AUTO_FREE char *text = overlap_text(a, b, other);

	if (other && strcmp(api_str(a, "host"), api_str(b, "host")) == 0)
		ui_note("Sandbox '%s' also shares %s.", other, api_str(a, "host"));
	if (text)
		ui_warning("%s", text);
}

void overlap_warn(const json_t *sandbox)
{
	const json_t *mine = json_object_get(sandbox, "workspaces"), *s, *w, *v;
	AUTO_JSON json_t *all = NULL;
	struct problem ignored = {0};
	size_t i, k, n;

	json_array_foreach (mine, i, w) {
		for (k = 0; k < i; k++)
			warn_overlap(w, json_array_get(mine, k), NULL);
	}
	if (json_array_size(mine) == 0 || sandbox_list(&all, &ignored) < 0)
		return;
	json_array_foreach (all, n, s) {
		if (strcmp(api_str(s, "id"), api_str(sandbox, "id")) == 0)
			continue;
		json_array_foreach (json_object_get(s, "workspaces"), k, v) {
			json_array_foreach (mine, i, w) {
				warn_overlap(w, v, api_str(s, "name"));
			}
		}
	}
}
