/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of a push: one for each verb of a ref, and for each file if the rules need files. */
#include "clerk_internal.h"

static const struct {
	enum gitpush_verb verb;
	enum clerk_verb as;
} verbs[] = {
	{GITPUSH_PUSH, CLERK_PUSH},
	{GITPUSH_CREATE, CLERK_CREATE},
	{GITPUSH_DELETE, CLERK_DELETE},
	{GITPUSH_FORCE, CLERK_FORCE},
	{GITPUSH_TAG, CLERK_TAG},
};

static void put_effects(const struct clerk *c, const struct gitpush_ref *ref, enum clerk_verb verb)
{
	struct clerk_effect e = {.verb = verb, .ref = slice_from_str(ref->command->name)};

	/* a push without a changed file is still an effect */
	e.no_path = ref->has_paths && ref->n_paths == 0;
	if (!c->config.paths || ref->n_paths == 0)
		c->sink.effect(c->sink.arg, &e);
	e.no_path = false;
	for (size_t i = 0; c->config.paths && i < ref->n_paths; i++) {
		e.path = slice_from_str(ref->path[i].path);
		c->sink.effect(c->sink.arg, &e);
	}
}

void effects_put(const struct clerk *c)
{
	for (unsigned i = 0; i < c->commands.n; i++) {
		const struct gitpush_ref *ref = gitpush_ref(c->push, i);

		for (size_t v = 0; v < ARRAY_LEN(verbs); v++)
			if (ref->verbs & verbs[v].verb)
				put_effects(c, ref, verbs[v].as);
	}
}
