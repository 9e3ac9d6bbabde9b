/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "audit_cmd.h"
#include "home_record.h"
#include "lib/client/api/sandbox.h"

static void tell_home(
	void *arg, enum home_change what, const char *group, const char *path, const char *at)
{
	static const char *const words[] = {
		[HOME_CHANGED] = "changed", [HOME_NEW] = "new", [HOME_GONE] = "gone"};
	size_t *n = arg;

	printf("%-8s ~/", words[what]);
	ui_put(path);
	printf("%s%s\n", at[0] ? "  " : "", at);
	(*n)++;
}

static int accept_home(const char *dir, const char *key, const char *home, struct problem *p)
{
	AUTO_FREE char *text = NULL;
	int r = home_record_take(key, home, &text, &p->err);

	if (r == 0)
		r = home_record_save(dir, text, &p->err);
	if (r < 0)
		return ui_problem(p, r);
	printf("Recorded the current state as the new baseline\n");
	return EXIT_OK;
}

static int look_home(const char *dir, const char *key, const char *home, const char *group,
	const char *name, struct problem *p)
{
	size_t n = 0;
	int r = home_record_compare(dir, key, home, group, tell_home, &n, &p->err);

	if (r < 0) {
		(void)ui_problem(p, r);
		return r == -ENOENT ? EXIT_OURS : EXIT_FAILED;
	}
	if (n == 0) {
		printf("%d files, none changed since the sandbox was created\n", r);
		return EXIT_OK;
	}
	ui_note("To accept changes that you made yourself:");
	ui_hint("sbx audit home --accept %s", name);
	return EXIT_FAILED;
}

int audit_cmd_home(struct opts *o)
{
	AUTO_FREE char *key = paths_get(PATHS_STATE, "home-record.key");
	const char *group = opts_value(o, "group"), *home = getenv("HOME"), *name = o->args.v[0];
	AUTO_FREE char *dir = NULL;
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r;

	if (group && !home_record_is_group(group)) {
		r = err_set(&p.err, -EINVAL,
			"invalid --only '%s': expected shell, ssh, git, keys or start", group);
		return ui_problem(&p, problem_usage(&p, r, "audit home"));
	}
	r = home ? sandbox_get(name, &s, &p) : err_set(&p.err, -EINVAL, "HOME is not set");
	if (r < 0)
		return ui_problem(&p, r);
	dir = paths_get(PATHS_STATE, "sandboxes/%s", api_str(s, "id"));
	return opts_has(o, "accept") ? accept_home(dir, key, home, &p)
				     : look_home(dir, key, home, group, name, &p);
}
