/* SPDX-License-Identifier: Apache-2.0 */
/* template build AGENT and template update: see agent_build.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/agent/agent.h"
#include "src/sbx/disk/disk.h"
#include "template_verbs.h"

const struct opt_def template_update_opts[] = {
	{0},
};

int template_agent_build(const char *name, bool force)
{
	const struct agent *a = agent_need_find(name);
	struct problem p = {0};
	int r;

	if (!a && agent_need_unavailable(name))
		return EXIT_FAILED;
	if (!a) {
		AUTO_FREE char *names = agent_need_names();
		const char *near = agent_need_nearest(name);

		ui_error(
			"cannot build template '%s': expected debian or an agent: %s", name, names);
		if (near)
			ui_hint("sbx template build %s", near);
		else
			ui_hint("sbx agent ls");
		return EXIT_USAGE;
	}
	if (agent_is_built(a) && template_is_there(name) && !force) {
		printf("Template '%s' already exists. Update it with: sbx template update %s. "
		       "Rebuild it with: sbx template build --force %s\n",
			name, name, name);
		return EXIT_OK;
	}
	r = agent_build(a, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("Use it with: sbx run %s\n", name);
	return EXIT_OK;
}

/* A base that another version of sbx has built lacks what this version expects in it. */
static int update_base(bool quiet)
{
	struct problem p = {0};
	int r = template_is_there(SANDBOX_TEMPLATE) ? 0 : 1;

	if (r == 0)
		r = template_is_current(SANDBOX_TEMPLATE, &p.err);
	if (r > 0 && !quiet)
		printf("Template '%s' is up to date\n", SANDBOX_TEMPLATE);
	if (r > 0)
		return EXIT_OK;
	if (r == 0) {
		ui_note("Template '%s' was built by another version of sbx: rebuilding it",
			SANDBOX_TEMPLATE);
		r = template_build(SANDBOX_TEMPLATE, NULL, &p);
	}
	if (r < 0)
		return ui_problem(&p, r);
	printf("%s Template '%s' is ready. Existing sandboxes keep their template\n", ui_tick(),
		SANDBOX_TEMPLATE);
	(void)fflush(stdout);
	return EXIT_OK;
}

static int update_one(const struct agent *a)
{
	struct problem p = {0};
	bool changed = false;
	int r;

	ui_note("%s:", a->title);
	r = agent_update(a, &changed, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (changed)
		printf("Existing sandboxes keep their template. Create a new one with: sbx run "
		       "%s\n",
			a->name);
	else
		printf("Template '%s' is up to date\n", a->name);
	(void)fflush(stdout);
	return EXIT_OK;
}

/* Agents with a template. */
static int update_all(void)
{
	const struct agents *all = agent_need_all();
	int status = update_base(false);
	size_t n = 0;

	for (size_t i = 0; status == EXIT_OK && i < all->n; i++) {
		if (!agent_is_built(all->v[i]) || !template_is_there(all->v[i]->name))
			continue;
		n++;
		if (update_one(all->v[i]) != EXIT_OK)
			status = EXIT_FAILED;
	}
	if (n == 0 && status == EXIT_OK)
		printf("No agent templates found. Build one with: sbx template build claude\n");
	return status;
}

int template_agent_update(struct opts *o)
{
	const struct agent *a;

	if (o->args.n == 0)
		return update_all();
	if (strcmp(o->args.v[0], SANDBOX_TEMPLATE) == 0)
		return update_base(false);
	a = agent_need_find(o->args.v[0]);
	if (!a || !agent_is_built(a)) {
		ui_error("'%s' is not an agent with its own template", o->args.v[0]);
		ui_hint("sbx agent ls");
		return EXIT_USAGE;
	}
	if (strcmp(a->base, SANDBOX_TEMPLATE) == 0 && update_base(true) != EXIT_OK)
		return EXIT_FAILED;
	return update_one(a);
}
