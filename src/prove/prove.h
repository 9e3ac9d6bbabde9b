/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove - the results of a run of `sbx prove`, for the reports.
 *
 * How      prove_run.c fills the results as probes finish; prove_text.c, prove_json.c and
 *          prove_html.c write them. A probe that did not finish fails: no result passes by default.
 * Trust    inside and outside are the output of parts, inside of the guest. All texts have passed
 *          prove_clean: valid UTF-8, no control character except newline, limited.
 * Owns     struct prove_run owns its texts and results.
 * Limits   PROVE_MAX_TEXT bytes a text.
 * See      data/probes/README
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

#define PROVE_MAX_TEXT 4096

enum prove_verdict {
	PROVE_FAIL, /* 0: an unjudged probe has failed */
	PROVE_PASS,
	PROVE_SKIP,
	PROVE_N_VERDICTS,
};

struct prove_result {
	char *id;    /* GROUP/NAME; of a repeated one recovery/X+GROUP/NAME */
	char *group; /* the group of its section */
	char *title, *tried, *means;
	char *inside, *outside; /* output; empty without such a part */
	char *why;		/* fail: the reason; skip: what was missing; pass: empty */
	char *next;		/* fail: the command to run next; else empty */
	enum prove_verdict verdict;
	bool untried; /* the run was interrupted before; failed, but not reported */
	bool twin;    /* tried on the scratch twin */
	bool own;     /* a probe of the user */
	unsigned ms;  /* total time of its parts */
};

struct prove_run {
	char *sandbox, *id, *accel; /* accel: "kvm" or "tcg" */
	char *template;
	char *twin;   /* its name; NULL if there was none */
	char *kernel; /* the guest's, from its template; NULL if that was removed */
	char *host;   /* "Linux 6.1.0-30-amd64 x86_64" */
	char *version;
	uint64_t begun_ms; /* since 1970 */
	uint64_t took_ms;
	bool quick;
	bool cut; /* interrupted: missing probes were not tried */
	struct prove_result *results;
	size_t n;
	size_t count[PROVE_N_VERDICTS];
};

/* "pass", "fail" or "skip". */
const char *prove_word(enum prove_verdict v);

/* The reports. prove_html writes one page that needs no other file. */
void prove_json(const struct prove_run *run);
int prove_html(const struct prove_run *run, int fd, struct err *err) MUST_CHECK;
