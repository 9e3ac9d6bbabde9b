/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/sbx/agent/agent.h"
#include "lib/client/api/api.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/str.h"
#include "lib/client/api/out_place.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/disk/disk.h"
#include "template_source.h"
#include "template_verbs.h"

const struct opt_def template_save_opts[] = {
	{'o', "output", "FILE", "write the template to FILE; - is stdout"},
	{0, "flat", NULL, "write one file per disk instead of layers"},
	{'f', "force", NULL, "replace an existing template without prompting"},
	{0},
};

static int export_to(const struct template *t, int fd, struct problem *p)
{
	int r = template_export(t, fd, template_show, NULL, &p->err);

	ui_progress_end();
	return r < 0 ? err_wrap(&p->err, r, "cannot write the template") : 0;
}

/* Written completely or not at all. */
static int write_file(const struct template *t, const char *path, struct problem *p)
{
	AUTO_OUT_PLACE struct out_place place = {.dir = -1};
	AUTO_FILE_NEW struct file_new f = {.fd = -1};
	int r = out_place_find(path, &place, p);

	if (r == 0)
		r = file_new_open(&f, place.path, &p->err);
	if (r == 0)
		r = export_to(t, f.fd, p);
	return r < 0 ? r : file_new_keep(&f, 0666, &p->err);
}

static int output_save(const struct template *t, const char *path, struct problem *p)
{
	struct stat st = {0};
	char size[32];
	int r;

	if (strcmp(path, "-") == 0) {
		if (isatty(STDOUT_FILENO))
			return err_set(&p->err, -EINVAL,
				"refusing to write a template to a terminal: redirect stdout to a file or a pipe");
		return export_to(t, STDOUT_FILENO, p);
	}
	r = write_file(t, path, p);
	if (r < 0)
		return r;
	(void)stat(path, &st);
	str_from_size((uint64_t)st.st_size, size, sizeof(size));
	ui_done("Wrote %s (%s). Load it on another machine with: sbx template load %s", path, size,
		path);
	return 0;
}

/* A sandbox needs a name for its template. */
static int hint_missing(const char *name, const char *path, struct problem *p)
{
	AUTO_JSON json_t *s = NULL;
	struct problem ignored = {0};

	if (sandbox_get(name, &s, &ignored) < 0)
		return problem_hint(p, -ENOENT, "sbx template ls");
	return problem_hint(p, -ENOENT, "sbx template save %s %s-template -o %s", name, name, path);
}

static int export_named(const char *name, const char *path, struct problem *p)
{
	AUTO_TEMPLATE struct template t = {0};
	int r;

	if (!path) {
		(void)err_set(&p->err, -EINVAL, "missing NAME or -o FILE");
		return problem_usage(p, -EINVAL, "template save");
	}
	r = template_open_shown(name, template_show, NULL, &t, &p->err);
	ui_progress_end();
	if (r == -ENOENT)
		return hint_missing(name, path, p);
	return r < 0 ? r : output_save(&t, path, p);
}

static uint64_t own_bytes(const char *name)
{
	AUTO_JSON json_t *m = template_manifest(name);

	return m ? (uint64_t)(api_int(m, "size")) : 0;
}

/* A template of that name is replaced only if the user confirms. */
static int may_overwrite(const char *ref, const char *name, bool force, struct problem *p)
{
	AUTO_JSON json_t *old = template_manifest(name);

	if (!old || force)
		return 0;
	if (ui_can_ask() && ui_confirm("Template '%s' already exists. Replace it?", name))
		return 0;
	(void)err_set(&p->err, -EEXIST, "template '%s' already exists", name);
	return problem_hint(p, -EEXIST, "sbx template save --force %s %s", ref, name);
}

static int save_sandbox(struct opts *o, struct problem *p)
{
	const char *ref = o->args.v[0], *name = o->args.v[1], *path = opts_value(o, "output");
	struct template_wish wish = {.name = name, .flat = opts_has(o, "flat")};
	AUTO_TEMPLATE struct template t = {0};
	uint64_t begin = clock_mono_ms();
	char size[32];
	int r = may_overwrite(ref, name, opts_has(o, "force"), p);

	if (r == 0)
		r = template_save_as(ref, &wish, &t, p);
	if (r < 0)
		return r;
	str_from_size(own_bytes(name), size, sizeof(size));
	ui_done("Saved sandbox %s as template %s (%s, %s with shared layers) in %.1f s. Use it "
		"with: sbx create shell . --template %s",
		ref, name, t.id, size, (double)(clock_mono_ms() - begin) / 1000, name);
	return path ? output_save(&t, path, p) : 0;
}

int template_save_run(struct opts *o)
{
	struct problem p = {0};
	int r = o->args.n == 2 ? save_sandbox(o, &p)
			       : export_named(o->args.v[0], opts_value(o, "output"), &p);

	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

/* Names that the user must have typed or confirmed: an existing template, the base, or an agent.
 * Everything built from this name later depends on it. */
static bool is_taken(const char *name, const json_t *old)
{
	return old || strcmp(name, TEMPLATE_SOURCE_BASE) == 0 || agent_need_find(name);
}

struct load {
	const char *path;
	struct problem *p;
};

static int refuse_name(const struct load *load, const char *name, const char *was, struct err *err)
{
	(void)problem_hint(load->p, -EEXIST, "sbx template load %s %.50s-loaded", load->path, name);
	return err_set(err, -EEXIST, "the file names its template '%s', which %s%s", name,
		was[0] ? "is the template " : "is reserved for a template of sbx", was);
}

static int may_take(void *arg, const char *name, const char *id, struct err *err)
{
	AUTO_JSON json_t *old = template_manifest(name);
	const struct load *load = arg;
	const char *was = old ? api_str(old, "id") : "";

	if (!is_taken(name, old) || strcmp(was, id) == 0)
		return 0;
	if (old && !was[0])
		was = "in use (without an id)";
	if (ui_can_ask() &&
		ui_confirm(
			"The file contains the template '%s'. '%s' is currently %s%s; loading replaces it with %s from this file. Replace it?",
			name, name, was[0] ? "the template " : "not built", was, id))
		return 0;
	return refuse_name(load, name, was, err);
}

int template_load_run(struct opts *o)
{
	const char *path = o->args.v[0];
	AUTO_TEMPLATE struct template t = {0};
	AUTO_CLOSE int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
						   : open(path, O_RDONLY | O_CLOEXEC);
	struct problem p = {0};
	struct load load = {path, &p};
	struct template_naming naming = {
		.name = o->args.n == 2 ? o->args.v[1] : NULL, .may_take = may_take, .arg = &load};
	int r = 0;

	if (fd < 0)
		r = err_errno(&p.err, -errno, "cannot open %s", path);
	/* A name of old sandboxes may change. */
	if (r == 0)
		r = template_collect_unused(&p);
	if (r == 0)
		r = template_import(fd, &naming, template_show, NULL, &t, &p.err);
	ui_progress_end();
	if (r == 0)
		r = template_collect_unused(&p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("%s Loaded template %s (%s). Use it with: sbx create shell . --template %s\n",
		ui_tick(), naming.given, t.id, naming.given);
	return EXIT_OK;
}
