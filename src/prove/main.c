/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/trace.h"
#include "lib/client/api/out_place.h"
#include "prove_run.h"
#include "prove_text.h"
#include "lib/client/cli/prove_opts.h"
#include "lib/client/cli/search_path.h"

#define PROVE_USER_PATH "USER_PATH"

static void words_done(struct opt_list *w)
{
	mem_free_list((char **)w->v, w->n);
}

static void take_words(const struct opt_list *list, struct opt_list *ret)
{
	for (size_t i = 0; i < list->n; i++) {
		AUTO_FREE char *copy = xstrdup(list->v[i]);

		for (char *save = NULL, *one = strtok_r(copy, ",", &save); one;
			one = strtok_r(NULL, ",", &save))
			opt_list_add(ret, xstrdup(one));
	}
}

static int check_groups(const struct opt_list *w, struct problem *p)
{
	for (size_t i = 0; i < w->n; i++)
		if (probe_group_find(w->v[i]) < 0) {
			const char *near = opt_nearest(w->v[i], probe_groups);

			(void)err_set(&p->err, -EINVAL, "unknown group '%s'", w->v[i]);
			if (near)
				(void)problem_hint(p, 0, "sbx prove --group %s", near);
			return problem_usage(p, -EINVAL, "prove");
		}
	return 0;
}

static int check_ids(const struct opt_list *w, const struct probes *set, struct problem *p)
{
	for (size_t i = 0; i < w->n; i++)
		if (!prove_probes_find(set, w->v[i])) {
			(void)err_set(&p->err, -EINVAL, "probe '%s' not found", w->v[i]);
			(void)problem_hint(p, 0, "sbx prove --list");
			return problem_usage(p, -EINVAL, "prove");
		}
	return 0;
}

static void list_probes(const struct prove_wish *w, const struct probes *set)
{
	const char *group = "";

	for (size_t i = 0; i < set->n; i++) {
		const struct probe *p = set->v[i];

		if (!prove_wants(w, p))
			continue;
		if (strcmp(group, probe_groups[p->group]) != 0)
			printf("%s%s\n", group[0] ? "\n" : "", probe_groups[p->group]);
		group = probe_groups[p->group];
		printf("  %-32s ", p->id);
		ui_put(p->title);
		printf("%s%s%s\n", p->quick ? " (quick)" : "", p->twin ? " (twin)" : "",
			p->own ? " (own)" : "");
	}
}

struct view {
	struct prove_text text;
	bool json;
};

static void on_begin(void *arg, const struct prove_run *run)
{
	const struct view *v = arg;

	if (!v->json)
		prove_text_head(run);
}

static void on_done(void *arg, const struct prove_run *run, const struct prove_result *res)
{
	struct view *v = arg;

	prove_text_one(&v->text, run, res);
}

static int write_page(const struct prove_run *run, struct file_new *page, struct err *err)
{
	int r = prove_html(run, page->fd, err);

	return r < 0 ? r : file_new_keep(page, 0600, err);
}

/* The first of $TMPDIR, /tmp and /var/tmp that no guest can write to, without symlinks: parts on
 * the host write there by path. */
static int find_top(char **ret, struct problem *p)
{
	const char *dir = getenv("TMPDIR");
	const char *const tops[] = {dir && dir[0] == '/' ? dir : "/tmp", "/tmp", "/var/tmp"};

	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		CLEANUP(cp_dest_done) struct cp_dest d = {0};
		int r = out_place_source(tops[i], &d, p);

		if (r < 0)
			return r;
		if (!d.root) {
			*ret = TAKE(d.path);
			return 0;
		}
	}
	return err_set(&p->err, -EPERM,
		"%.300s, /tmp and /var/tmp are in writable workspaces of sandboxes: set TMPDIR to "
		"a directory outside all workspaces",
		tops[0]);
}

static int try_all(const struct opts *o, const struct prove_wish *wish, const struct probes *set)
{
	AUTO_PROVE_RUN struct prove_run run = {0};
	const char *html = opts_value(o, "html");
	struct view v = {.json = opts_has(o, "json")};
	struct prove_wish w = *wish;
	struct problem p = {0};
	AUTO_FILE_NEW struct file_new page = {.fd = -1};
	AUTO_OUT_PLACE struct out_place place = {.dir = -1};
	AUTO_FREE char *top = NULL;
	int r = 0;

	v.text.live = !v.json && isatty(STDOUT_FILENO);
	v.text.verbose = opts_has(o, "verbose");
	w.on_begin = on_begin;
	w.on_done = on_done;
	w.arg = &v;
	/* Before any probe runs: a mistyped path must not cost five minutes. */
	if (html)
		r = out_place_find(html, &place, &p);
	if (html && r >= 0)
		r = file_new_open(&page, place.path, &p.err);
	if (r >= 0)
		r = find_top(&top, &p);
	w.top = top;
	if (r >= 0)
		r = prove_run(&w, set, &run, &p);
	ui_progress_end();
	if (r < 0)
		return ui_problem(&p, r) == EXIT_USAGE ? EXIT_USAGE : EXIT_OURS;
	if (v.json)
		prove_json(&run);
	else
		prove_text_end(&v.text, &run);
	if (html && write_page(&run, &page, &p.err) < 0)
		return ui_problem(&p, -EIO) == EXIT_USAGE ? EXIT_USAGE : EXIT_OURS;
	if (html)
		ui_done("Wrote %s. The report contains paths of this host.", html);
	if (run.cut)
		return EXIT_OURS;
	return run.count[PROVE_FAIL] || run.n == 0 ? EXIT_FAILED : EXIT_OK;
}

/* A guest may have put programs into a directory of the user's PATH. An sbxd started by a probe has
 * the user's own PATH anyway. */
static void set_path(void)
{
	const char *user = getenv("PATH");
	AUTO_FREE char *safe = search_path_make(user);

	if (setenv(PROVE_USER_PATH, user ? user : safe, 1) < 0 || setenv("PATH", safe, 1) < 0)
		abort(); /* out of memory, as xmalloc */
}

static int run_prove(const char *sbx, const struct opts *o)
{
	CLEANUP(words_done) struct opt_list groups = {0}, ids = {0};
	AUTO_PROBES struct probes set = {0};
	struct prove_wish w = {.sbx = sbx,
		.quick = opts_has(o, "quick"),
		.sandbox = o->args.n ? o->args.v[0] : NULL,
		.echo_url = opts_value(o, "echo"),
		.twin = opts_value(o, "twin")};
	struct problem p = {0};
	int r;

	take_words(opts_list(o, "group"), &groups);
	take_words(opts_list(o, "probe"), &ids);
	r = check_groups(&groups, &p);
	if (r < 0)
		return ui_problem(&p, r);
	r = prove_probes_load_installed(&set, &p.err);
	if (r < 0) {
		(void)ui_problem(&p, r);
		return EXIT_OURS;
	}
	r = check_ids(&ids, &set, &p);
	if (r < 0)
		return ui_problem(&p, r);
	w.groups = groups.v;
	w.ids = ids.v;
	if (opts_has(o, "list")) {
		list_probes(&w, &set);
		return EXIT_OK;
	}
	set_path();
	return try_all(o, &w, &set);
}

/* sbx has checked the arguments; they are invalid only if another program runs this one. */
static int parse_words(const char *sbx, int argc, char **argv)
{
	CLEANUP(opts_done) struct opts o = {0};
	struct problem p = {0};

	if (opt_parse(prove_opts, 0, argc, argv, &o, &p.err) < 0)
		return ui_problem(&p, problem_usage(&p, -EINVAL, "prove"));
	return run_prove(sbx, &o);
}

/* sbx-prove SBX [-D] [WORD...]: SBX is the path of sbx, the words are those after `sbx prove`. */
int main(int argc, char **argv)
{
	int words = argc > 2 && strcmp(argv[2], "-D") == 0 ? 3 : 2;
	struct err err = {0};

	log_init("sbx-prove");
	ui_init();
	if (trace_init(&err) < 0) {
		ui_error("%s", err.text);
		return EXIT_USAGE;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 2 || argv[1][0] != '/') {
		ui_error("sbx-prove is a helper program of sbx");
		ui_hint("sbx prove");
		return EXIT_USAGE;
	}
	ui_set_debug(words == 3);
	return ui_finish(parse_words(argv[1], argc - words, argv + words));
}
