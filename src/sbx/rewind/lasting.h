/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lasting - effects of a sandbox outside its disks, which a rewind does not take back.
 *
 * How      lasting_add classifies one audit record and counts equal ones: requests that write,
 *          git pushes, connections whose content sbx does not see, signatures, stored tokens,
 *          credentials that a request contained, workspace files that the guard recorded, files
 *          that were applied, and published ports. No I/O.
 * Trust    Records have hosts, paths and names of the guest. Unknown methods count as writes.
 * Owns     The rows; lasting_done frees them. All zero is valid and empty.
 * Limits   LASTING_MAX rows; `more` counts the others.
 * See      lasting_test.c
 */
#pragma once

#include "lib/rules/audit/audit_record.h"

#define LASTING_MAX 200

enum lasting_kind {
	LASTING_NONE,
	LASTING_PUSH,
	LASTING_REQUEST,
	LASTING_CONNECTION, /* ssh, a database, TLS that is not intercepted */
	LASTING_SIGNATURE,
	LASTING_TOKEN,
	LASTING_FILE,
	LASTING_APPLY, /* files of a staged workspace; one row each */
	LASTING_UNDO,  /* of the last apply that was not undone */
	LASTING_PORT,
	LASTING_CREDENTIAL,
	LASTING_N_KINDS,
};

struct lasting_row {
	enum lasting_kind kind;
	char *target, *what; /* "host:443", "POST /path"; may be "" */
	uint64_t count;
};

struct lasting {
	struct lasting_row *rows;
	size_t n;
	uint64_t more; /* effects without a row */
};

/* Adds nothing if the event changed nothing outside the sandbox. */
void lasting_add(struct lasting *l, const struct audit_event *ev);
/* "git push"; the word for people. */
const char *lasting_word(enum lasting_kind kind);
void lasting_done(struct lasting *l);
#define AUTO_LASTING CLEANUP(lasting_done)
