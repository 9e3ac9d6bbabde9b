/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in sbx. Prints numbers of the host, and names of sandboxes and bytes counted by sbxd. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/form.h"
#include "lib/client/cli/table.h"
#include "lib/client/tui/tui.h"
#include "top.h"
#include "usage.h"

#define SAMPLE_MS 1000 /* over which the use of CPUs is measured first */
#define REPEAT_MS 2000 /* between two outputs */
#define MAX_NAMES 1024

static const struct opt_def opts[] = {
	{'a', "all", NULL, "also list sandboxes that are not running"},
	{0, "no-stream", NULL, "print one table and exit"},
	{0, "json", NULL, "print JSON: one object per line, or one object with --no-stream"},
	{0},
};

/* One sandbox at two moments. */
struct stats_row {
	const json_t *sandbox; /* of the later list */
	struct usage use;
	double cpu; /* percent of one CPU; < 0: not known */
	uint64_t disk;
};

struct sample {
	json_t *list;
	struct usage_scan scan;
};

static void sample_done(struct sample *s)
{
	json_decref(s->list);
	usage_done(&s->scan);
	*s = (struct sample){0};
}

/* ---- measuring ---- */

static bool is_named(const json_t *s, const char *ref)
{
	return strcmp(api_str(s, "name"), ref) == 0 || strcmp(api_str(s, "id"), ref) == 0;
}

static bool is_running(const json_t *s)
{
	return api_int(s, "keeper_pid") > 0;
}

static bool is_wanted(const struct opts *o, const json_t *s)
{
	for (size_t i = 0; i < o->args.n; i++)
		if (is_named(s, o->args.v[i]))
			return true;
	return o->args.n == 0 && (opts_has(o, "all") || is_running(s));
}

static int check_refs(const struct opts *o, const json_t *list, struct problem *p)
{
	for (size_t i = 0; i < o->args.n; i++) {
		size_t at = 0;

		while (at < json_array_size(list) &&
			!is_named(json_array_get(list, at), o->args.v[i]))
			at++;
		if (at < json_array_size(list))
			continue;
		(void)err_set(&p->err, -ENOENT, "no sandbox named %s", o->args.v[i]);
		return problem_hint(p, -ENOENT, "sbx ls");
	}
	return 0;
}

static int take_sample(const struct opts *o, struct sample *ret, struct problem *p)
{
	int r;

	sample_done(ret);
	r = sandbox_list(&ret->list, p);
	if (r < 0)
		return r;
	usage_scan(&ret->scan);
	return check_refs(o, ret->list, p);
}

/* Percent of one CPU between two scans of the same keeper. */
static double cpu_percent(const struct sample *was, const struct sample *is, const json_t *s)
{
	pid_t keeper = (pid_t)api_int(s, "keeper_pid");
	uint64_t passed = is->scan.at_us - was->scan.at_us;
	struct usage before, now;

	usage_of(&was->scan, keeper, 0, &before);
	usage_of(&is->scan, keeper, 0, &now);
	if (!before.n_processes || !now.n_processes || !passed)
		return -1;
	return now.cpu_us < before.cpu_us
		       ? 0
		       : (double)(now.cpu_us - before.cpu_us) * 100 / (double)passed;
}

static void measure_row(
	const struct sample *was, const struct sample *is, const json_t *s, struct stats_row *ret)
{
	*ret = (struct stats_row){.sandbox = s, .cpu = cpu_percent(was, is, s)};
	usage_of(&is->scan, (pid_t)api_int(s, "keeper_pid"), (pid_t)api_int(s, "qemu_pid"),
		&ret->use);
	ret->disk = usage_disk(api_str(s, "id"));
}

/* ---- printing ---- */

static void add_row(struct table *t, const struct stats_row *row)
{
	const json_t *s = row->sandbox;
	char cpu[16] = "-", used[32], limit[32], share[16] = "-", sent[32], received[32], disk[32],
	     memory[80] = "-", net[80] = "-", processes[24] = "-";
	uint64_t size = (uint64_t)api_int(s, "memory");

	str_from_size(row->use.memory, used, sizeof(used));
	str_from_size(size, limit, sizeof(limit));
	str_from_size((uint64_t)api_int(s, "net_sent"), sent, sizeof(sent));
	str_from_size((uint64_t)api_int(s, "net_received"), received, sizeof(received));
	str_from_size(row->disk, disk, sizeof(disk));
	if (row->cpu >= 0)
		(void)snprintf(cpu, sizeof(cpu), "%.1f%%", row->cpu);
	if (row->use.n_processes) {
		(void)snprintf(memory, sizeof(memory), "%s / %s", used, limit);
		(void)snprintf(net, sizeof(net), "%s / %s", received, sent);
		(void)snprintf(processes, sizeof(processes), "%zu", row->use.n_processes);
	}
	if (row->use.n_processes && size)
		(void)snprintf(share, sizeof(share), "%.1f%%",
			(double)row->use.memory * 100 / (double)size);
	table_add(t, (const char *const[]){
			     api_str(s, "name"), cpu, memory, share, net, disk, processes});
}

static json_t *row_json(const struct stats_row *row)
{
	static const char *const of_running[] = {"cpu_percent", "cpu_ms", "memory_used", "net_sent",
		"net_received", "processes", NULL};
	const json_t *s = row->sandbox;
	json_t *o = json_pack("{s:O, s:O, s:O, s:O, s:O, s:I}", "name", json_object_get(s, "name"),
		"id", json_object_get(s, "id"), "status", json_object_get(s, "status"), "cpus",
		json_object_get(s, "cpus"), "memory", json_object_get(s, "memory"), "disk_used",
		(json_int_t)row->disk);

	if (row->cpu >= 0)
		json_object_set_new(o, "cpu_percent", json_real(row->cpu));
	if (row->use.n_processes) {
		json_object_set_new(
			o, "cpu_ms", json_integer((json_int_t)(row->use.cpu_us / 1000)));
		json_object_set_new(o, "memory_used", json_integer((json_int_t)row->use.memory));
		json_object_set_new(o, "net_sent", json_integer(api_int(s, "net_sent")));
		json_object_set_new(o, "net_received", json_integer(api_int(s, "net_received")));
		json_object_set_new(o, "processes", json_integer((json_int_t)row->use.n_processes));
	}
	form_fill(o, of_running);
	return o;
}

static void print_json(const struct opts *o, const struct sample *was, const struct sample *is)
{
	AUTO_JSON json_t *whole =
		json_pack("{s:o, s:[]}", "sampled_at", form_time(clock_wall_ms()), "sandboxes");
	const json_t *s;
	size_t i;

	json_array_foreach (is->list, i, s) {
		struct stats_row row;

		if (!is_wanted(o, s))
			continue;
		measure_row(was, is, s, &row);
		json_array_append_new(json_object_get(whole, "sandboxes"), row_json(&row));
	}
	if (opts_has(o, "no-stream")) {
		api_print(whole);
		return;
	}
	(void)json_dumpf(whole, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	printf("\n");
}

static void print_rows(const struct opts *o, const struct sample *was, const struct sample *is)
{
	static const char *const heading[] = {
		"SANDBOX", "CPU %", "MEM USAGE / LIMIT", "MEM %", "NET IN / OUT", "DISK", "PIDS"};
	CLEANUP(table_done) struct table t;
	const json_t *s;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (is->list, i, s) {
		struct stats_row row;

		if (!is_wanted(o, s))
			continue;
		measure_row(was, is, s, &row);
		add_row(&t, &row);
	}
	/* The cursor goes to the first line, and the rest of the screen is cleared. */
	if (!opts_has(o, "no-stream") && tui_is_usable())
		printf("\x1b[H\x1b[J");
	table_print(&t);
}

static void wait_ms(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static int run_stats(struct opts *o)
{
	CLEANUP(sample_done) struct sample was = {0}, is = {0};
	struct problem p = {0};
	int r = take_sample(o, &was, &p);

	for (unsigned ms = SAMPLE_MS; r == 0; ms = REPEAT_MS) {
		wait_ms(ms);
		r = take_sample(o, &is, &p);
		if (r < 0)
			break;
		if (opts_has(o, "json"))
			print_json(o, &was, &is);
		else
			print_rows(o, &was, &is);
		if (fflush(stdout) != 0 || opts_has(o, "no-stream"))
			return EXIT_OK;
		sample_done(&was);
		was = is;
		is = (struct sample){0};
	}
	return ui_problem(&p, r);
}

const struct verb verb_stats = {
	.name = "stats",
	.group = "sandboxes",
	.args = "[SANDBOX...]",
	.summary = "print the use of CPUs, memory, disks and network",
	.about =
		"Prints what running sandboxes use, as the host measures it, and repeats this every two\n"
		"seconds until Ctrl-C. 100% is one CPU. The memory is that of the VM and of the processes\n"
		"of sbx around it. The network counts bytes of requests and tunnels to servers that have\n"
		"ended. The disk is the space that the disks of the sandbox take on the host, without the\n"
		"template.",
	.examples = "  sbx stats\n  sbx stats --no-stream demo\n"
		    "  sbx stats --no-stream --json | jq '.sandboxes[].memory_used'\n",
	.opts = opts,
	.max = MAX_NAMES,
	.first = VERB_SANDBOX,
	.others = VERB_SANDBOX,
	.run = run_stats,
};
