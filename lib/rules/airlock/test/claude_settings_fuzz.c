/* SPDX-License-Identifier: Apache-2.0 */
/* Old text, NUL, new text. What is accepted is accepted again, unchanged. For another reader it is
 * the new text, and its members except permissions are those of the old one. */
#include <jansson.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/base/slice.h"
#include "lib/rules/airlock/claude_settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static json_t *load_text(struct slice s)
{
	return json_loadb((const char *)s.p, s.n, JSON_ALLOW_NUL, NULL);
}

static void drop_json(json_t **j)
{
	json_decref(*j);
}

static void compare_members(json_t *old, json_t *new)
{
	const char *key;
	json_t *value;

	json_object_foreach (new, key, value)
		must(!strcmp(key, "permissions") || json_equal(json_object_get(old, key), value));
	json_object_foreach (old, key, value)
		must(!strcmp(key, "permissions") || json_equal(json_object_get(new, key), value));
}

static void compare_texts(struct slice old, struct slice new, struct slice result)
{
	CLEANUP(drop_json) json_t *a = load_text(old.n ? old : slice_from_str("{}"));
	CLEANUP(drop_json) json_t *b = load_text(new);
	CLEANUP(drop_json) json_t *c = load_text(result);

	/* Numbers that are too large for it. */
	if (!a || !b)
		return;
	must(c && json_equal(b, c));
	compare_members(a, c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
	struct slice rest = slice_of(data, size), old = {0};
	AUTO_FREE char *one = NULL, *two = NULL;
	size_t n = 0, m = 0;

	if (nul) {
		old = slice_take(&rest, (size_t)(nul - data));
		(void)slice_take(&rest, 1);
	}
	if (claude_settings_check(
		    (const char *)old.p, old.n, (const char *)rest.p, rest.n, &one, &n, NULL) < 0)
		return 0;
	compare_texts(old, rest, slice_of(one, n));
	must(claude_settings_check((const char *)old.p, old.n, one, n, &two, &m, NULL) == 0);
	must(n == m && !memcmp(one, two, n));
	return 0;
}
