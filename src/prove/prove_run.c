/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/vm/template/template.h"
#include "lib/base/fs/paths.h"
#include "lib/client/api/daemon.h"
#include "lib/client/cli/follow.h"
#include "prove_folder.h"
#include "prove_lane.h"
#include "prove_twin.h"
#include "lib/client/api/sandbox.h"

#define MAX_TOOL (8u << 20)
#define TICK_MS 500 /* maximum delay of a signal */

enum { LANE_SANDBOX, LANE_TWIN, N_LANES };

struct prove {
	const struct prove_wish *wish;
	const struct probes *set;
	struct prove_run *run;
	struct prove_folder folder;
	struct prove_common common;
	struct prove_lane lane[N_LANES];
	struct prove_twin twin;
	char *tool, *tool_bytes;
};

/* ---- selection ---- */

static bool is_in(const char *const *list, const char *word)
{
	for (; list && *list; list++)
		if (strcmp(*list, word) == 0)
			return true;
	return false;
}

bool prove_wants(const struct prove_wish *w, const struct probe *p)
{
	bool named = is_in(w->ids, p->id);
	bool group = is_in(w->groups, probe_groups[p->group]);

	if (w->ids || w->groups)
		return (named || group) && (!w->quick || p->quick);
	return !w->quick || (p->quick && !p->twin);
}

static struct prove_result *add_result(
	struct prove_run *run, const struct probe *p, const char *owner, bool twin)
{
	struct prove_result *res = &run->results[run->n++];

	*res = (struct prove_result){
		.id = owner ? xasprintf("%s+%s", owner, p->id) : xstrdup(p->id),
		.group = xstrdup(owner ? "recovery" : probe_groups[p->group]),
		.title = xstrdup(p->title),
		.tried = xstrdup(p->tried),
		.means = xstrdup(p->means),
		.inside = xstrdup(""),
		.outside = xstrdup(""),
		.why = xstrdup(""),
		.next = xstrdup(""),
		.twin = twin,
		.own = p->own,
	};
	return res;
}

static void add_probe(struct prove *pr, const struct probe *p)
{
	struct prove_lane *l = &pr->lane[p->twin ? LANE_TWIN : LANE_SANDBOX];
	size_t owner;

	if (!prove_wants(pr->wish, p))
		return;
	owner = prove_lane_add(l, p, add_result(pr->run, p, NULL, p->twin), SIZE_MAX);
	for (size_t k = 0; k < p->n_again; k++) {
		const struct probe *other = prove_probes_find(pr->set, p->again[k]);

		(void)prove_lane_add(l, other, add_result(pr->run, other, p->id, true), owner);
	}
}

/* Lanes point into the results, so all of them must be allocated first. */
static void fill_lanes(struct prove *pr)
{
	size_t room = 0;

	for (size_t i = 0; i < pr->set->n; i++)
		room += 1 + pr->set->v[i]->n_again;
	pr->run->results = xcalloc(room + 1, sizeof(struct prove_result));
	for (size_t i = 0; i < pr->set->n; i++)
		if (!pr->set->v[i]->alone)
			add_probe(pr, pr->set->v[i]);
	for (size_t i = 0; i < pr->set->n; i++)
		if (pr->set->v[i]->alone)
			add_probe(pr, pr->set->v[i]);
}

/* ---- common facts ---- */

static int load_prelude(const char *name, char **ret, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_SHARE, "probes/prelude/%s", name);
	size_t n;
	int r = file_load(path, PROBE_MAX_FILE, ret, &n, err);

	return r == -ENOENT ? err_set(err, r, "incomplete installation: %s is missing", path) : r;
}

/* Functions for the probes of one group; not every group has such a file. */
static int load_group_preludes(struct prove_common *c, struct err *err)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < PROBE_N_GROUPS; i++) {
		AUTO_FREE char *name = xasprintf("outside.%s", probe_groups[i]);

		r = load_prelude(name, &c->prelude_group[i], err);
		if (r == -ENOENT) {
			*err = (struct err){0};
			c->prelude_group[i] = xstrdup("");
			r = 0;
		}
	}
	return r;
}

static int prepare_run(struct prove *pr, struct err *err)
{
	struct prove_common *c = &pr->common;
	size_t n_tool = 0;
	int r;

	pr->tool = daemon_helper_path("sbx-probe");
	r = file_load(pr->tool, MAX_TOOL, &pr->tool_bytes, &n_tool, err);
	if (r == -ENOENT)
		return err_set(err, r, "incomplete installation: %s is missing", pr->tool);
	if (r == 0)
		r = load_prelude("inside", &c->prelude_inside, err);
	if (r == 0)
		r = load_prelude("outside", &c->prelude_outside, err);
	if (r == 0)
		r = load_group_preludes(c, err);
	if (r < 0)
		return r;
	c->folder = pr->folder.path;
	c->sbx = pr->wish->sbx;
	c->tool = pr->tool;
	c->tool_bytes = slice_of(pr->tool_bytes, n_tool);
	c->echo_url = pr->wish->echo_url ? pr->wish->echo_url : "";
	return 0;
}

/* ---- which sandbox ---- */

static int say_stopped(const char *name, const char *status, struct problem *p)
{
	(void)err_set(&p->err, -ENOTCONN, "sandbox '%s' is %s: probes need a running sandbox", name,
		status);
	return problem_hint(p, -ENOTCONN, "sbx start %s", name);
}

/* The only running sandbox, on the heap. */
static int choose_run(char **ret, struct problem *p)
{
	AUTO_JSON json_t *all = NULL;
	AUTO_FREE char *names = xstrdup("");
	const json_t *s;
	size_t i, n = 0;
	int r = sandbox_list(&all, p);

	if (r < 0)
		return r;
	json_array_foreach (all, i, s) {
		AUTO_FREE char *old = NULL;

		if (!sandbox_is(s, "running") || prove_twin_is_name(api_str(s, "name")))
			continue;
		free(*ret);
		*ret = xstrdup(api_str(s, "name"));
		old = names;
		names = xasprintf("%s%s%s", old, n++ ? ", " : "", *ret);
	}
	if (n == 1)
		return 0;
	if (n == 0) {
		(void)err_set(&p->err, -ENOENT, "no sandbox is running");
		return problem_hint(p, -ENOENT, "sbx ls");
	}
	(void)err_set(
		&p->err, -EINVAL, "missing SANDBOX: %zu sandboxes are running: %.300s", n, names);
	(void)problem_hint(p, -EINVAL, "sbx prove %s", *ret);
	return problem_usage(p, -EINVAL, "prove");
}

static int make_facts(struct prove *pr, const char *ref, size_t lane, struct problem *p)
{
	AUTO_FREE char *dir = xasprintf("%s/facts%zu", pr->folder.path, lane);

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(&p->err, -errno, "cannot create %s", dir);
	return prove_place_fill(&pr->lane[lane].place, pr->wish->sbx, ref, dir, p);
}

static int find_sandbox(struct prove *pr, struct problem *p)
{
	AUTO_FREE char *only = NULL;
	AUTO_JSON json_t *s = NULL;
	struct prove_lane *l = &pr->lane[LANE_SANDBOX];
	const char *ref = pr->wish->sandbox;
	int r = ref ? 0 : choose_run(&only, p);

	if (r == 0)
		r = sandbox_get(ref ? ref : only, &s, p);
	if (r == 0 && !sandbox_is(s, "running"))
		r = say_stopped(api_str(s, "name"), api_str(s, "status"), p);
	if (r == 0)
		r = make_facts(pr, api_str(s, "name"), LANE_SANDBOX, p);
	l->up = r == 0;
	return r;
}

/* From the template, not from the guest. */
static char *kernel_of(const char *template_id)
{
	AUTO_TEMPLATE struct template t = {0};
	struct err err;

	if (template_open(template_id, &t, &err) < 0)
		return NULL;
	return xstrdup(api_str(t.manifest, "kernel"));
}

static void describe_run(struct prove *pr)
{
	struct prove_run *run = pr->run;
	const struct prove_place *pl = &pr->lane[LANE_SANDBOX].place;
	struct utsname u = {0};

	(void)uname(&u);
	run->sandbox = xstrdup(pl->name);
	run->id = xstrdup(pl->id);
	run->accel = xstrdup(pl->accel);
	run->template = xstrdup(pl->template);
	run->kernel = kernel_of(pl->template_id);
	run->host = xasprintf("%s %s %s", u.sysname, u.release, u.machine);
	run->version = xstrdup(SBX_VERSION);
	run->quick = pr->wish->quick;
}

/* ---- the loop ---- */

static void on_done(void *arg, const struct prove_result *res)
{
	struct prove *pr = arg;

	pr->run->count[res->verdict]++;
	if (pr->wish->on_done)
		pr->wish->on_done(pr->wish->arg, pr->run, res);
}

/* The lane of the twin continues when the twin runs, and fails if it cannot be created. */
static void look_twin(struct prove *pr)
{
	struct prove_lane *l = &pr->lane[LANE_TWIN];
	struct problem p = {0};
	AUTO_FREE char *why = NULL;

	if (l->up || l->first == l->n)
		return;
	prove_twin_look(&pr->twin);
	if (pr->twin.state == PROVE_TWIN_UP) {
		free(pr->run->twin);
		pr->run->twin = xstrdup(pr->twin.name);
		l->up = make_facts(pr, pr->twin.name, LANE_TWIN, &p) == 0 && l->place.running;
		if (!l->up)
			why = xasprintf("cannot use the scratch sandbox %s: %s", pr->twin.name,
				p.err.text[0] ? p.err.text : "not running");
	} else if (pr->twin.state == PROVE_TWIN_FAILED) {
		why = xasprintf("cannot create the scratch sandbox: %s", pr->twin.why);
	}
	if (why)
		prove_lane_give_up(l, why, false);
}

static void wait_for_more(const struct prove *pr)
{
	struct pollfd p[N_LANES * PROVE_LANE_FDS + PROVE_JOB_FDS];
	size_t n = prove_twin_poll(&pr->twin, p);
	int ms = TICK_MS;

	for (size_t i = 0; i < N_LANES; i++) {
		int one = prove_lane_wait_ms(&pr->lane[i]);

		n += prove_lane_poll(&pr->lane[i], p + n);
		ms = one < 0 ? ms : MIN(ms, one);
	}
	(void)poll(p, n, ms);
}

static void loop_run(struct prove *pr)
{
	bool more = true;

	while (more && !follow_caught()) {
		look_twin(pr);
		more = false;
		for (size_t i = 0; i < N_LANES; i++) {
			pr->lane[i].free = !more;
			more = prove_lane_step(&pr->lane[i]) || more;
		}
		if (more)
			wait_for_more(pr);
	}
	pr->run->cut = follow_caught();
	/* From here on no signal may interrupt the cleanup. */
	follow_ignore();
	for (size_t i = 0; i < N_LANES; i++)
		prove_lane_give_up(&pr->lane[i], "interrupted before the probe", true);
}

static void clean_up(struct prove *pr)
{
	for (size_t i = 0; i < N_LANES; i++)
		prove_lane_done(&pr->lane[i]);
	prove_twin_remove(&pr->twin);
	if (pr->folder.path)
		prove_folder_remove(&pr->folder);
	free(pr->common.prelude_inside);
	free(pr->common.prelude_outside);
	for (unsigned i = 0; i < PROBE_N_GROUPS; i++)
		free(pr->common.prelude_group[i]);
	free(pr->tool);
	free(pr->tool_bytes);
}

static int begin_run(struct prove *pr, struct problem *p)
{
	int r = prove_folder_make(&pr->folder, pr->wish->top, &p->err);

	if (r == 0)
		r = prepare_run(pr, &p->err);
	if (r == 0)
		r = find_sandbox(pr, p);
	if (r < 0)
		return r;
	describe_run(pr);
	fill_lanes(pr);
	if (pr->lane[LANE_TWIN].n > 0)
		prove_twin_start(
			&pr->twin, pr->wish->twin, &pr->lane[LANE_SANDBOX].place, &pr->folder);
	if (pr->wish->on_begin)
		pr->wish->on_begin(pr->wish->arg, pr->run);
	return 0;
}

int prove_run(const struct prove_wish *w, const struct probes *set, struct prove_run *ret,
	struct problem *p)
{
	AUTO_FREE struct prove *pr = xcalloc(1, sizeof(*pr));
	uint64_t begun = clock_mono_ms();
	int r;

	*pr = (struct prove){.wish = w, .set = set, .run = ret, .folder = {.lock = -1}};
	pr->twin.sbx = w->sbx;
	pr->common.on_done = on_done;
	pr->common.arg = pr;
	for (size_t i = 0; i < N_LANES; i++)
		pr->lane[i].common = &pr->common;
	ret->begun_ms = clock_wall_ms();
	(void)signal(SIGPIPE, SIG_IGN);
	follow_catch();
	prove_twin_sweep(w->top, w->sbx);
	r = begin_run(pr, p);
	if (r == 0)
		loop_run(pr);
	clean_up(pr);
	ret->took_ms = clock_mono_ms() - begun;
	return r;
}

void prove_run_done(struct prove_run *run)
{
	for (size_t i = 0; i < run->n; i++) {
		struct prove_result *res = &run->results[i];
		char *const texts[] = {res->id, res->group, res->title, res->tried, res->means,
			res->inside, res->outside, res->why, res->next};

		for (size_t k = 0; k < ARRAY_LEN(texts); k++)
			free(texts[k]);
	}
	free(run->results);
	free(run->sandbox);
	free(run->id);
	free(run->accel);
	free(run->template);
	free(run->kernel);
	free(run->twin);
	free(run->host);
	free(run->version);
	*run = (struct prove_run){0};
}
