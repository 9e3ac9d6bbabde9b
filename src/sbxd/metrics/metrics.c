/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/http/http.h"
#include "src/sbxd/keepers/keepers.h"
#include "src/sbxd/policy/policy.h"
#include "lib/base/clock.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/store/store.h"

static const char *const statuses[] = {
	"paused", "running", "starting", "stopped", "stopping", "suspended", "unresponsive"};

#define N_HOLD_STATES (HOLD_WITHDRAWN + 1)

/* A running sandbox with its own series. */
struct shown {
	const struct keeper *keeper;
	uint64_t started_ms, memory;
	uint32_t cpus;
	size_t n_holds, n_guard;
};

/* What one pass over the registry and the keepers finds. */
struct census {
	struct sbxd *d;
	uint64_t n[ARRAY_LEN(statuses)];
	uint64_t n_guard, n_running, n_holds[N_HOLD_STATES];
	struct shown shown[METRICS_MAX_SANDBOXES];
	size_t n_shown;
};

/* ---- collecting ---- */

static void count_status(struct census *c, const char *status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		c->n[i] += strcmp(statuses[i], status) == 0;
}

static int add_row(void *arg, const struct store_row *row)
{
	struct census *c = arg;
	const struct keeper *k = keeper_find(c->d, row->spec.id);
	size_t n_guard = guarded_each(row->spec.id, GUARDED_DIRTY, NULL, NULL);

	count_status(c, !k && kept_is_there(row->spec.id) ? "suspended" : keeper_status(k));
	c->n_guard += n_guard;
	if (!k)
		return 0;
	c->n_running++;
	if (c->n_shown < METRICS_MAX_SANDBOXES)
		c->shown[c->n_shown++] = (struct shown){.keeper = k,
			.started_ms = row->started_at,
			.memory = row->spec.memory,
			.cpus = row->spec.cpus,
			.n_guard = n_guard};
	return 0;
}

static void add_hold(void *arg, const struct keeper *k, const struct held *h)
{
	struct census *c = arg;

	if (h->msg.state < N_HOLD_STATES)
		c->n_holds[h->msg.state]++;
	for (size_t i = 0; h->msg.state == HOLD_OPEN && i < c->n_shown; i++)
		c->shown[i].n_holds += c->shown[i].keeper == k;
}

/* ---- writing ---- */

static void begin_family(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_gauge(FILE *f, const char *name, const char *help, uint64_t value)
{
	begin_family(f, name, "gauge", help);
	fprintf(f, "%s %llu\n", name, (unsigned long long)value);
}

static void put_seconds(
	FILE *f, const char *name, const char *label, const char *value, const struct tally *t)
{
	fprintf(f, "%s_count{%s=\"%s\"} %llu\n%s_sum{%s=\"%s\"} %llu.%06llu\n", name, label, value,
		(unsigned long long)t->n, name, label, value, (unsigned long long)(t->us / 1000000),
		(unsigned long long)(t->us % 1000000));
}

static void put_moment(FILE *f, const char *name, const char *label, uint64_t ms)
{
	fprintf(f, "%s%s %llu.%03llu\n", name, label, (unsigned long long)(ms / 1000),
		(unsigned long long)(ms % 1000));
}

static void put_sandboxes(FILE *f, const struct census *c)
{
	AUTO_SETTINGS struct settings set = {0};
	uint64_t most = KEEPER_MAX;

	begin_family(f, "sbx_sandboxes", "gauge", "Registered sandboxes by status.");
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		fprintf(f, "sbx_sandboxes{status=\"%s\"} %llu\n", statuses[i],
			(unsigned long long)c->n[i]);
	if (settings_load(&set, NULL) == 0 && settings_get_u64(&set, SETTINGS_DAEMON_SANDBOXES))
		most = settings_get_u64(&set, SETTINGS_DAEMON_SANDBOXES);
	put_gauge(f, "sbx_sandboxes_limit",
		"Sandboxes that can run at the same time (setting daemon.max-sandboxes).", most);
	put_gauge(f, "sbx_sandboxes_without_series",
		"Running sandboxes without their own series, because there are too many.",
		c->n_running - c->n_shown);
	put_gauge(f, "sbx_guard_changed_files",
		"Workspace files that programs on the host run and that a sandbox changed.",
		c->n_guard);
	begin_family(f, "sbx_holds", "gauge", "Requests for approval by state.");
	for (enum hold_state s = HOLD_OPEN; s < N_HOLD_STATES; s++)
		fprintf(f, "sbx_holds{state=\"%s\"} %llu\n", hold_state_name(s),
			(unsigned long long)c->n_holds[s]);
}

static void put_policy(FILE *f, struct sbxd *d)
{
	const struct rulebook *b = d->rulebook;
	uint64_t behind = 0;

	rulebook_refresh(d->rulebook);
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		behind += reload_why_not(d->keepers->slot[i], d->keepers->slot[i]->reload.want) !=
			  NULL;
	put_gauge(f, "sbx_policy_rules", "Rules of the policy.", b->rules.n);
	put_gauge(f, "sbx_policy_denies_all",
		"1 if all traffic is denied because there is no policy or it cannot be read.",
		!b->exists || b->fault.text[0]);
	put_gauge(f, "sbx_policy_unapplied_sandboxes",
		"Running sandboxes that have not applied the last change of the policy.", behind);
}

static void put_daemon(FILE *f, struct sbxd *d)
{
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);
	struct rusage use = {0};
	struct statvfs fs = {0};
	unsigned ready, size;

	(void)statvfs(state, &fs);
	(void)getrusage(RUSAGE_SELF, &use);
	pool_count(d, &ready, &size);
	begin_family(f, "sbx_daemon_info", "gauge", "Version of sbxd, with the value 1.");
	fprintf(f, "sbx_daemon_info{version=\"%s\"} 1\n", SBX_VERSION);
	begin_family(f, "sbx_daemon_start_time_seconds", "gauge", "Time of the start of sbxd.");
	put_moment(f, "sbx_daemon_start_time_seconds", "", d->conns->served.since_ms);
	put_gauge(f, "sbx_daemon_resident_memory_max_bytes", "Largest memory use of sbxd.",
		(uint64_t)use.ru_maxrss * 1024);
	put_gauge(f, "sbx_daemon_connections", "Open connections to the API.", d->conns->n_used);
	put_gauge(f, "sbx_daemon_watchers", "Open streams of changes.", d->conns->n_watching);
	put_gauge(f, "sbx_pool_ready", "VMs of the pool that wait for a sandbox.", ready);
	put_gauge(f, "sbx_pool_limit", "VMs that should wait for a sandbox.", size);
	put_gauge(f, "sbx_state_filesystem_size_bytes",
		"Size of the file system of the state directory.",
		(uint64_t)fs.f_frsize * fs.f_blocks);
	put_gauge(f, "sbx_state_filesystem_free_bytes",
		"Free space of the file system of the state directory for the user.",
		(uint64_t)fs.f_frsize * fs.f_bavail);
}

static void put_totals(FILE *f, struct sbxd *d)
{
	static const char *const ends[RUNS_N_ENDS] = {
		[RUNS_REQUEST] = "request", [RUNS_SUSPENDED] = "suspended", [RUNS_OTHER] = "other"};
	static const char *const codes[SERVED_N] = {"2xx", "4xx", "5xx"};

	begin_family(f, "sbx_api_request_duration_seconds", "summary",
		"Time from a request to its reply, by class of the status.");
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		put_seconds(f, "sbx_api_request_duration_seconds", "code", codes[i],
			&d->conns->served.of[i]);
	begin_family(f, "sbx_sandbox_start_duration_seconds", "summary",
		"Time of completed starts of sandboxes, by kind of start.");
	for (enum keeper_how how = 0; how < KEEPER_N_HOWS; how++)
		put_seconds(f, "sbx_sandbox_start_duration_seconds", "how", keeper_how_name(how),
			&d->keepers->runs.starts[how]);
	begin_family(f, "sbx_sandbox_run_duration_seconds", "summary",
		"Time that sandboxes ran, by what ended the run.");
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		put_seconds(f, "sbx_sandbox_run_duration_seconds", "end", ends[i],
			&d->keepers->runs.ends[i]);
}

/* One family of a number for each shown sandbox. */
static void put_each(FILE *f, const struct census *c, const char *name, const char *help,
	uint64_t (*value)(const struct shown *s))
{
	begin_family(f, name, "gauge", help);
	for (size_t i = 0; i < c->n_shown; i++)
		fprintf(f, "%s{sandbox=\"%s\"} %llu\n", name, c->shown[i].keeper->id,
			(unsigned long long)value(&c->shown[i]));
}

static uint64_t shown_cpus(const struct shown *s)
{
	return s->cpus;
}

static uint64_t shown_memory(const struct shown *s)
{
	return s->memory;
}

static uint64_t shown_sessions(const struct shown *s)
{
	return s->keeper->state.sessions;
}

static uint64_t shown_holds(const struct shown *s)
{
	return s->n_holds;
}

static uint64_t shown_guard(const struct shown *s)
{
	return s->n_guard;
}

static uint64_t shown_responds(const struct shown *s)
{
	return strcmp(keeper_status(s->keeper), "unresponsive") != 0;
}

static void put_shown(FILE *f, const struct census *c)
{
	begin_family(f, "sbx_sandbox_start_time_seconds", "gauge",
		"Time of the last start of a running sandbox.");
	for (size_t i = 0; i < c->n_shown; i++) {
		char label[SPEC_ID_LEN + 16];

		(void)snprintf(label, sizeof(label), "{sandbox=\"%s\"}", c->shown[i].keeper->id);
		put_moment(f, "sbx_sandbox_start_time_seconds", label, c->shown[i].started_ms);
	}
	put_each(f, c, "sbx_sandbox_up", "1 if the running sandbox responds, 0 if it does not.",
		shown_responds);
	put_each(f, c, "sbx_sandbox_cpus", "CPUs of a running sandbox.", shown_cpus);
	put_each(f, c, "sbx_sandbox_memory_bytes", "Memory size of a running sandbox.",
		shown_memory);
	put_each(
		f, c, "sbx_sandbox_sessions", "Open streams of a running sandbox.", shown_sessions);
	put_each(f, c, "sbx_sandbox_holds_open",
		"Requests of a running sandbox that wait for approval.", shown_holds);
	put_each(f, c, "sbx_sandbox_guard_changed_files",
		"Workspace files that programs on the host run and that the sandbox changed.",
		shown_guard);
}

int metrics_print(struct sbxd *d, char **ret, struct err *err)
{
	AUTO_FREE struct census *c = xcalloc(1, sizeof(*c));
	size_t n = 0;
	FILE *f;
	int r;

	c->d = d;
	r = store_list(d->store, NULL, 0, add_row, c, err);
	if (r < 0)
		return r;
	holds_each(d, add_hold, c);
	f = open_memstream(ret, &n);
	if (!f)
		abort();
	put_daemon(f, d);
	put_sandboxes(f, c);
	put_policy(f, d);
	put_totals(f, d);
	put_shown(f, c);
	fprintf(f, "# EOF\n");
	if (fclose(f) != 0)
		abort();
	return 0;
}
