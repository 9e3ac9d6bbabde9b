/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of a push, one text each: `git:VERB TARGET REF [path=PATH]`. */
#include "clerk_internal.h"

#include "lib/base/hex.h"

static const struct {
	enum gitpush_verb verb;
	const char *name;
} verbs[] = {
	{GITPUSH_PUSH, "push"},
	{GITPUSH_CREATE, "create"},
	{GITPUSH_DELETE, "delete"},
	{GITPUSH_FORCE, "force"},
	{GITPUSH_TAG, "tag"},
};

/* Blanks and what is not printable ASCII as %XX. */
static void put_escaped(struct wr *wr, const char *text)
{
	for (const uint8_t *p = (const uint8_t *)text; *p; p++)
		if (*p > 0x20 && *p < 0x7f && *p != '%')
			wr_u8(wr, *p);
		else
			hex_put_percent(wr, *p);
}

static void put_effect(const struct clerk *c, const char *verb, const char *ref, const char *path)
{
	uint8_t buf[CLERK_MAX_TARGET + 3 * (GITREF_MAX + GITPUSH_MAX_PATH) + 64];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_printf(&wr, "git:%s %s ", verb, c->config.target);
	put_escaped(&wr, ref);
	if (path) {
		wr_printf(&wr, " path=");
		put_escaped(&wr, path);
	}
	c->sink.effect(c->sink.arg, slice_of(buf, wr.n));
}

void effects_put(const struct clerk *c)
{
	for (unsigned i = 0; i < c->commands.n; i++) {
		const struct gitpush_ref *ref = gitpush_ref(c->push, i);

		for (size_t v = 0; v < ARRAY_LEN(verbs); v++) {
			if (!(ref->verbs & verbs[v].verb))
				continue;
			/* a push without a changed file is still an effect */
			if (ref->n_paths == 0)
				put_effect(c, verbs[v].name, ref->command->name, NULL);
			for (size_t k = 0; k < ref->n_paths; k++)
				put_effect(c, verbs[v].name, ref->command->name, ref->path[k].path);
		}
	}
}
