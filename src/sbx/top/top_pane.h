/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_pane - the lower half of the full-screen view: details, policy log, approvals or sessions of
 * one sandbox.
 *
 * How      top_pane_print prints the text and keeps what it is about in `shown`: a key acts on that
 *          and never on newer data. An approval has the digest of the request that was printed.
 * Trust    As top_text.h, top_log.h and src/sbx/policy/hold_text.h. Names of sessions come from the
 *          guest and have only a to z, 0 to 9 and '-' (lib/os/ipc/keeper_chan.h).
 * Owns     The log, the request and the sessions, until top_panes_done.
 * Limits   TOP_SESSIONS_MS between two requests to the guest, and only for the pane of sessions;
 *          TOP_WAIT_MS for its reply.
 */
#pragma once

#include "top_log.h"

#define TOP_SESSIONS_MS 6000
#define TOP_WAIT_MS 1500

enum top_pane { TOP_INFO, TOP_LOG, TOP_HOLDS, TOP_SESSIONS };

/* What the text is about. */
struct top_shown {
	char id[TOP_ID], name[64];
	json_t *hold; /* NULL: none */
	/* Denied hosts, or sessions, by their number less 1. */
	struct top_log_hosts choices;
};

struct top_panes {
	enum top_pane pane;
	size_t hold_at; /* of the requests of the sandbox */
	struct top_log log;
	struct top_shown shown;
	json_t *stats;
	char stats_id[TOP_ID], stats_fault[256];
	uint64_t stats_ms;
};

/* The title above the text. */
const char *top_pane_title(const struct top_panes *p);
void top_pane_print(
	FILE *f, struct top_panes *p, const struct top_list *l, const struct top_box *b);
/* A URL that the sandbox asks the user to open: sbx open prompts and opens it. */
bool top_pane_is_link(const json_t *hold);
void top_panes_done(struct top_panes *p);
