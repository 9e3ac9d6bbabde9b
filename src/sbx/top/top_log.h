/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_log - the policy log of one sandbox, for the full-screen view.
 *
 * How      top_log_read reads the audit log of a sandbox, or what has come since the call before.
 *          top_log_print prints the decisions, the last first. Denied hosts have numbers, so that a
 *          key can name one.
 * Trust    Hosts, rules and reasons come from a guest: control characters become '?'. Only a name
 *          or an address that a rule can have, without a pattern, gets a number: an allow rule from
 *          it can never allow another host.
 * Owns     A reader and its rows, until top_log_done.
 * Limits   TOP_LOG_ROWS different decisions, TOP_LOG_HOSTS numbers.
 * See      lib/rules/audit/audit_view.h, tests/cli/top/test_top.py
 */
#pragma once

#include <stdio.h>
#include "lib/rules/audit/audit_read.h"
#include "lib/rules/audit/audit_view.h"
#include "top_list.h"

#define TOP_LOG_ROWS 1000
#define TOP_LOG_HOSTS 9
#define TOP_LOG_HOST 272 /* "host:port" */

struct top_log {
	char id[TOP_ID];
	struct audit_reader *reader;
	struct audit_view *view;
	char fault[256];
};

struct top_log_hosts {
	size_t n;
	char v[TOP_LOG_HOSTS][TOP_LOG_HOST];
};

void top_log_read(struct top_log *l, const char *id);
void top_log_print(FILE *f, const struct top_log *l, struct top_log_hosts *ret);
void top_log_done(struct top_log *l);
