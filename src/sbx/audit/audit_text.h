/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_text - records of audit logs as text for users, and as JSON for programs.
 *
 * How      audit_text_line prints one record on one line. A struct audit_tail keeps the newest
 *          lines of several logs, in the order of their times but never against the order of their
 *          own log, whose clock may have been set back.
 * Trust    Hosts, rules and reasons come from the guest: no terminal control characters are
 *          printed, and JSON has each byte as one character, as the log has.
 * Owns     A tail owns copies of its lines; audit_tail_done frees them.
 * Limits   The number of lines given to audit_tail_init, AUDIT_MAX_RECORD bytes each.
 * See      audit_text_test.c
 */
#pragma once

#include <jansson.h>
#include <stdio.h>
#include "lib/rules/audit/audit_record.h"

/* TIME SANDBOX WHAT ..., with a newline. */
void audit_text_line(const struct audit_record *rec, FILE *out);
/* "host:port", "[v6]:port" or "host", "-" without a host; control characters become '?'. */
void audit_text_target(struct slice host, uint64_t port, char *ret, size_t size);
/* Cleaned and truncated to fit, "-" if empty. */
void audit_text_cell(struct slice text, char *ret, size_t size);
json_t *audit_text_json(struct slice text);

struct audit_tail_line {
	uint64_t time_ms, order; /* order: of arrival, for equal times */
	char *text;
	size_t n;
};

struct audit_tail {
	struct audit_tail_line *v; /* a heap, the oldest first */
	size_t n, max;
	uint64_t n_seen, latest_ms; /* latest_ms: of the log that is being added */
	char log[AUDIT_MAX_WORD + 1];
};

void audit_tail_init(struct audit_tail *t, size_t max);
void audit_tail_done(struct audit_tail *t);
/* Adds the records of one log after the other. */
void audit_tail_add(struct audit_tail *t, const struct audit_record *rec, struct slice line);
/* Sorts v from oldest to newest; nothing may be added afterwards. */
void audit_tail_sort(struct audit_tail *t);
