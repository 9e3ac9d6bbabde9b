/* SPDX-License-Identifier: Apache-2.0 */
#include "project.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "project_file.h"
#include "src/sbx/sandbox/create_clone.h"
#include "src/sbx/sandbox/port_spec.h"

static void print_project(const char *path, const char *dir, const struct project_file *f)
{
	ui_note("%s requests for the new sandbox:", path);
	if (f->template)
		ui_note("  template   %s", f->template);
	for (size_t i = 0; i < f->path.n; i++) {
		AUTO_FREE char *typed = xasprintf("%s/%s", dir, f->path.v[i].text);
		AUTO_FREE char *real = realpath(typed, NULL);

		ui_note("  path       %s (%s)", real ? real : typed,
			f->path.v[i].is_writable ? "the sandbox can write it" : "read-only");
	}
	for (size_t i = 0; i < f->host.n; i++)
		ui_note("  host       %s  %s", f->host.v[i].text, f->host.v[i].why);
	for (size_t i = 0; i < f->port.n; i++)
		ui_note("  port       %s of this machine's loopback", f->port.v[i].text);
}

static bool is_empty(const struct project_file *f)
{
	return !f->template && !f->path.n && !f->host.n && !f->port.n;
}

static bool may_apply(const struct opts *o, const char *path)
{
	if (opts_has(o, "project"))
		return true;
	if (ui_can_ask() && ui_confirm("Apply this to the new sandbox?"))
		return true;
	ui_note("%s was not applied%s", path,
		ui_can_ask() ? "" : ": stdin is not a terminal, and --project is not given");
	return false;
}

/* Empty if there is no file or it is not applied. */
static int project_want(
	const struct opts *o, const char *dir, struct project_file *ret, struct problem *p)
{
	AUTO_PROJECT_FILE struct project_file f = {0};
	AUTO_FREE char *path = xasprintf("%s/" PROJECT_NAME, dir), *text = NULL;
	size_t n = 0;
	int r;

	if (opts_has(o, "no-project"))
		return 0;
	r = file_load_no_link(path, PROJECT_MAX_BYTES, &text, &n, &p->err);
	if (r == -ENOENT && opts_has(o, "project"))
		return err_set(&p->err, r, "--project: %s does not exist", path);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == 0)
		r = project_parse(slice_of(text, n), path, &f, &p->err);
	if (r == -ELOOP)
		(void)err_set(
			&p->err, r, "%s is a symbolic link: use --no-project to ignore it", path);
	if (r < 0 || is_empty(&f))
		return r;
	print_project(path, dir, &f);
	if (!may_apply(o, path))
		return 0;
	*ret = f;
	f = (struct project_file){0};
	return 0;
}

static int add_paths(
	const char *dir, const struct project_list *l, struct creation *c, struct problem *p)
{
	json_t *list = json_object_get(c->body, "workspaces");
	int r = 0;

	for (size_t i = 0; i < l->n && r == 0; i++) {
		AUTO_FREE char *arg =
			xasprintf("%s/%s:%s", dir, l->v[i].text, l->v[i].is_writable ? "rw" : "ro");

		r = create_add_workspace(list, arg, false, p);
	}
	return r;
}

static int add_ports(const struct project_list *l, struct creation *c, struct err *err)
{
	struct opt_list specs = {0};

	for (size_t i = 0; i < l->n; i++)
		opt_list_add(&specs, l->v[i].text);
	return port_spec_list(&specs, json_object_get(c->body, "ports"), err);
}

static void add_hosts(const struct project_list *l, struct creation *c)
{
	for (size_t i = 0; i < l->n; i++) {
		AUTO_FREE char *old = c->project_hosts;

		c->project_hosts =
			xasprintf("%s%s%s", old ? old : "", old ? "," : "", l->v[i].text);
	}
}

int project_apply(const struct opts *o, struct creation *c, struct problem *p)
{
	const json_t *first = create_clone_place(c);
	AUTO_FREE char *dir = xstrdup(first ? api_str(first, "host") : "");
	AUTO_PROJECT_FILE struct project_file f = {0};
	int r;

	if (opts_has(o, "project") && opts_has(o, "no-project"))
		return err_set(
			&p->err, -EINVAL, "--project and --no-project are mutually exclusive");
	if (!first && opts_has(o, "project"))
		return err_set(&p->err, -EINVAL, "--project requires a workspace");
	if (!first)
		return 0;
	r = project_want(o, dir, &f, p);
	if (r == 0)
		r = add_paths(dir, &f.path, c, p);
	if (r == 0)
		r = add_ports(&f.port, c, &p->err);
	if (r < 0)
		return r;
	add_hosts(&f.host, c);
	if (f.template && !opts_has(o, "template"))
		(void)json_object_set_new(c->body, "template", json_string(f.template));
	return 0;
}
