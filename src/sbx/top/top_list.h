/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_list - all sandboxes at one moment, with what they use.
 *
 * How      top_list_read gets the sandboxes and the requests for approval from sbxd and measures
 *          the processes. CPU and network are rates since the read before. Disks and branches are
 *          read every TOP_SLOW_MS, a part of the sandboxes at a time. A sandbox is identified by
 *          its id: its place in the list can change.
 * Trust    Objects of sbxd and files of workspaces: texts may be hostile. A view escapes them.
 * Owns     The objects; top_list_done frees them.
 * Limits   API_TIMEOUT_MS for each call of sbxd.
 * See      usage.h, branch.h
 */
#pragma once

#include <jansson.h>
#include "branch.h"
#include "lib/client/cli/ui.h"
#include "usage.h"

#define TOP_SLOW_MS 10000
#define TOP_ID 33

struct top_box {
	char id[TOP_ID], branch[BRANCH_MAX];
	json_t *object;
	struct usage use;
	double cpu;		/* percent of one CPU; < 0: not known */
	double net_rate;	/* bytes a second, both directions; < 0: not known */
	uint64_t disk, slow_ms; /* slow_ms: when disk and branch were read */
	unsigned n_holds;	/* open ones */
};

struct top_list {
	struct top_box *v; /* sorted by name */
	size_t n;
	json_t *holds;
	struct usage_scan scan;
	bool is_read;
	char fault[256]; /* why the last read failed */
};

/* After a failure, the list is as before and `fault` is set. */
void top_list_read(struct top_list *l);
void top_list_done(struct top_list *l);
/* l->n if it does not exist. */
size_t top_list_find(const struct top_list *l, const char *id);
const char *top_box_name(const struct top_box *b);
bool top_box_is_running(const struct top_box *b);
