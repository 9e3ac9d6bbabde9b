/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an agent: what is read keeps to its limits, and nothing in it leaves the home
 * folder. */
#include <assert.h>
#include <stdlib.h>
#include "lib/rules/agent/agent.h"
#include "lib/rules/agent/clean.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One of the parts is ".."; a name such as "..x" is harmless. */
static bool has_up(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2]))
			return true;
	}
	return false;
}

static void check_paths(const struct agent_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		assert(l->v[i].a[0] != '/' && !has_up(l->v[i].a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_AGENT struct agent a = {0};
	struct err err = {0};

	if (agent_parse(slice_of(data, size), "fuzz", &a, &err) < 0) {
		assert(err.text[0] && !a.name);
		return 0;
	}
	assert(a.name && (a.unavailable || (a.command && a.base && agent_template(&a)[0])));
	for (size_t i = 0; i < a.pin.n; i++)
		assert(a.pin.v[i].a[0] != '-' && agent_is_digest(a.pin.v[i].b));
	check_paths(&a.history);
	check_paths(&a.import);
	check_paths(&a.seed);
	for (size_t i = 0; i < a.package.n; i++)
		assert(a.package.v[i].a[0] != '-' && agent_is_version(a.package.v[i].b));
	for (size_t i = 0; i < a.import.n; i++)
		assert(!clean_is_secret_name(a.import.v[i].a));
	for (size_t i = 0; i < a.seed.n; i++)
		free(agent_fill_seed(a.seed.v[i].b, "/w \"x\"", "423c774dc9c8"));
	return 0;
}
