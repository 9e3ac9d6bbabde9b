/* SPDX-License-Identifier: Apache-2.0 */
#include "create_clone.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "workspace.h"

/* The clone in the body, for the first PATH. */
static int put_clone(struct creation *c, const char *arg, const char *branch, struct problem *p)
{
	CLEANUP(workspace_done) struct workspace w = {0};
	int r = workspace_parse(arg, c->force, &w, p);
	json_t *clone;

	if (r < 0)
		return r;
	if (w.ro || w.file)
		return err_set(
			&p->err, -EINVAL, "--clone requires a directory without :ro: '%s'", arg);
	clone = json_pack("{s:s, s:s, s:s*}", "host", w.host, "guest", w.guest, "branch", branch);
	if (!clone)
		return err_set(&p->err, -EINVAL, "the path '%s' is not UTF-8", arg);
	(void)json_object_set_new(c->body, "clone", clone);
	c->clone.host = api_str(clone, "host");
	c->clone.guest = api_str(clone, "guest");
	c->clone.branch = branch;
	return 0;
}

int create_clone_parse(const struct opts *o, struct creation *c, const char *const **paths,
	size_t *n, struct problem *p)
{
	static const char *const only[] = {"branch", "carry"};
	int r;

	for (size_t i = 0; !opts_has(o, "clone") && i < ARRAY_LEN(only); i++)
		if (opts_has(o, only[i]))
			return err_set(&p->err, -EINVAL, "--%s requires --clone", only[i]);
	if (!opts_has(o, "clone"))
		return 0;
	if (*n == 0)
		return err_set(&p->err, -EINVAL, "--clone requires PATH");
	if (opts_has(o, "staged"))
		return err_set(&p->err, -EINVAL,
			"--clone and --staged are mutually exclusive: a clone keeps changes in the sandbox too");
	c->clone.carry = opts_list(o, "carry");
	r = put_clone(c, (*paths)[0], opts_value(o, "branch"), p);
	(*paths)++;
	(*n)--;
	return r;
}

const json_t *create_clone_place(const struct creation *c)
{
	const json_t *clone = json_object_get(c->body, "clone");

	return clone ? clone : json_array_get(json_object_get(c->body, "workspaces"), 0);
}

char *create_clone_host(const char *host, const char *branch)
{
	char *text = xasprintf("%s%s%s", host, branch ? "-" : "", branch ? branch : "");

	for (char *s = text + strlen(host); *s; s++)
		if (*s == '/')
			*s = '-';
	return text;
}

void create_clone_print(const json_t *s)
{
	const json_t *clone = json_object_get(s, "clone");

	if (!clone)
		return;
	printf("clone      ");
	ui_put(api_str(clone, "guest"));
	printf(" (remote sandbox-%s)\n", api_str(s, "name"));
}
