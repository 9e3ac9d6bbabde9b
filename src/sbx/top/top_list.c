/* SPDX-License-Identifier: Apache-2.0 */
#include "top_list.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"

/* In one read: a hundred sandboxes with a thousand files each must not stop the view. */
#define MAX_SLOW 16

const char *top_box_name(const struct top_box *b)
{
	return api_str(b->object, "name");
}

bool top_box_is_running(const struct top_box *b)
{
	return api_int(b->object, "keeper_pid") > 0;
}

size_t top_list_find(const struct top_list *l, const char *id)
{
	size_t i = 0;

	while (i < l->n && strcmp(l->v[i].id, id) != 0)
		i++;
	return i;
}

static void free_boxes(struct top_box *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_decref(v[i].object);
	free(v);
}

void top_list_done(struct top_list *l)
{
	free_boxes(l->v, l->n);
	json_decref(l->holds);
	usage_done(&l->scan);
	*l = (struct top_list){0};
}

/* ---- one sandbox ---- */

static uint64_t net_bytes(const json_t *object)
{
	return (uint64_t)api_int(object, "net_sent") + (uint64_t)api_int(object, "net_received");
}

/* Both are of the same run of the keeper. */
static void set_rates(struct top_box *b, const struct top_box *was, uint64_t passed_us)
{
	uint64_t bytes = net_bytes(b->object), before = net_bytes(was->object);

	if (api_int(b->object, "keeper_pid") != api_int(was->object, "keeper_pid") ||
		!was->use.n_processes || !b->use.n_processes || !passed_us)
		return;
	b->cpu = b->use.cpu_us < was->use.cpu_us
			 ? 0
			 : (double)(b->use.cpu_us - was->use.cpu_us) * 100 / (double)passed_us;
	b->net_rate = bytes < before ? 0 : (double)(bytes - before) * 1000000 / (double)passed_us;
}

static void read_slowly(struct top_box *b, unsigned *n_read)
{
	uint64_t now = clock_mono_ms();

	if ((b->slow_ms && now < b->slow_ms + TOP_SLOW_MS) || *n_read == MAX_SLOW)
		return;
	b->disk = usage_disk(b->id);
	branch_of(b->object, b->branch);
	b->slow_ms = now;
	++*n_read;
}

static void fill_box(struct top_list *l, struct top_box *b, const struct usage_scan *scan,
	const json_t *object, unsigned *n_read)
{
	size_t was;

	*b = (struct top_box){.object = json_incref((json_t *)object), .cpu = -1, .net_rate = -1};
	(void)snprintf(b->id, sizeof(b->id), "%s", api_str(object, "id"));
	usage_of(scan, (pid_t)api_int(object, "keeper_pid"), (pid_t)api_int(object, "qemu_pid"),
		&b->use);
	was = top_list_find(l, b->id);
	if (was < l->n) {
		b->disk = l->v[was].disk;
		b->slow_ms = l->v[was].slow_ms;
		memcpy(b->branch, l->v[was].branch, sizeof(b->branch));
		set_rates(b, &l->v[was], scan->at_us - l->scan.at_us);
	}
	read_slowly(b, n_read);
}

/* ---- all ---- */

static void count_holds(struct top_list *l)
{
	const json_t *hold;
	size_t i;

	json_array_foreach (json_object_get(l->holds, "holds"), i, hold)
		for (size_t b = 0; b < l->n; b++)
			l->v[b].n_holds +=
				strcmp(api_str(hold, "state"), "open") == 0 &&
				strcmp(api_str(hold, "sandbox"), top_box_name(&l->v[b])) == 0;
}

static void replace_boxes(struct top_list *l, const json_t *list)
{
	size_t n = json_array_size(list);
	struct top_box *v = xcalloc(n + 1, sizeof(*v));
	struct usage_scan scan = {0};
	unsigned n_read = 0;

	usage_scan(&scan);
	for (size_t i = 0; i < n; i++)
		fill_box(l, &v[i], &scan, json_array_get(list, i), &n_read);
	free_boxes(l->v, l->n);
	usage_done(&l->scan);
	l->v = v;
	l->n = n;
	l->scan = scan;
	l->is_read = true;
}

void top_list_read(struct top_list *l)
{
	AUTO_JSON json_t *list = NULL;
	json_t *holds = NULL;
	struct problem p = {0};
	int r = sandbox_list(&list, &p);

	if (r == 0)
		r = api_call("GET", "/v1/holds", NULL, API_TIMEOUT_MS, &holds, &p);
	(void)snprintf(l->fault, sizeof(l->fault), "%s", r < 0 ? err_text(&p.err, r) : "");
	if (r < 0)
		return;
	replace_boxes(l, list);
	json_decref(l->holds);
	l->holds = holds;
	count_holds(l);
}
