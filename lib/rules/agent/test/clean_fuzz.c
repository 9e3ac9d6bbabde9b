/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of any shape: what comes out is shaped like no credential, and cleaning it again
 * changes nothing more. */
#include <assert.h>
#include <stdlib.h>
#include "lib/rules/agent/clean.h"
#include "lib/base/mem.h"
#include "lib/secret/service/shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void *arg, const char *key)
{
	assert(key[0]);
	(*(size_t *)arg)++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a.json", "a.toml", "a.md"}, *const drop[] = {"hooks"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *out = NULL, *again = NULL;
		struct err err = {0};
		size_t n = 0, m = 0;

		if (clean_settings(names[i], slice_of(data, size), drop, 1, count, &n, &out, &err) <
			0) {
			assert(err.text[0] && !out);
			continue;
		}
		assert(!shape_has_secret(slice_from_str(out)));
		if (clean_settings(
			    names[i], slice_from_str(out), drop, 1, count, &m, &again, &err) == 0)
			assert(m == 0);
	}
	return 0;
}
