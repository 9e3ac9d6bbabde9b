/* SPDX-License-Identifier: Apache-2.0 */
#include "template_source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/vm/template/template.h"

bool template_source_wanted(const struct opts *o)
{
	return opts_has(o, "image") || opts_has(o, "file");
}

static int usage_source(struct problem *p, const char *why)
{
	(void)err_set(&p->err, -EINVAL, "%s", why);
	return problem_usage(p, -EINVAL, "template");
}

static int check_source(const struct opts *o, struct problem *p)
{
	const char *name = o->args.n ? o->args.v[0] : NULL;

	if (opts_has(o, "image") && opts_has(o, "file"))
		return usage_source(p, "--image and --file are mutually exclusive");
	if (opts_has(o, "mirror"))
		return usage_source(p, "--mirror can be used only for the base template");
	if (!name)
		return usage_source(p, "missing NAME");
	if (!template_is_name(name))
		return usage_source(p, "invalid template name: use letters, digits, '.' and '-'");
	if (strcmp(name, TEMPLATE_SOURCE_BASE) == 0)
		return usage_source(
			p, "'" TEMPLATE_SOURCE_BASE "' is the name of the base template");
	return 0;
}

/* A name changes only with --force; sandboxes keep their template either way. */
static int check_free(const struct opts *o, struct problem *p)
{
	AUTO_TEMPLATE struct template old = {0};
	const char *name = o->args.v[0];
	int r = template_open(name, &old, &(struct err){0});

	if (r == -ENOENT || opts_has(o, "force"))
		return 0;
	(void)err_set(&p->err, -EEXIST,
		"template '%s' already exists: choose another name, or use --force", name);
	return problem_hint(p, -EEXIST, "sbx template rm %s", name);
}

int template_source_build(const struct opts *o)
{
	struct problem p = {0};
	int r = check_source(o, &p);

	if (r == 0)
		r = check_free(o, &p);
	if (r == 0 && opts_has(o, "image"))
		r = template_image_build(o->args.v[0], opts_value(o, "image"),
			opts_has(o, "plain-http"), opts_has(o, "use-docker-login"), NULL, &p);
	else if (r == 0)
		r = template_file_build(o->args.v[0], o, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("%s Template '%s' is ready. To use it: sbx create shell . --template %s\n",
		ui_tick(), o->args.v[0], o->args.v[0]);
	return EXIT_OK;
}
