/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_probe - parses the probes of `sbx prove`: files with a header and parts.
 *
 * How      prove_probes_load reads the built-in directory and then the user's own. An invalid file
 *          is rejected with its name and line, and the run with it: a probe that is skipped
 *          silently would look like a pass.
 * Trust    Built-in files and the user's own, which run as the user: they are programs. Texts pass
 *          prove_clean anyway.
 * Owns     struct probes owns everything; prove_probes_done frees it.
 * Limits   PROBE_MAX_FILE bytes a file, PROBE_MAX probes, PROBE_MAX_TITLE and PROBE_MAX_VALUE bytes
 *          a value, PROBE_MAX_AGAIN probes tried again.
 * See      prove_probe_test.c, data/probes/README
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"
#include "lib/base/err.h"

#define PROBE_MAX_FILE 32768
#define PROBE_MAX 1000
#define PROBE_N_GROUPS 9
#define PROBE_MAX_TITLE 120
#define PROBE_MAX_VALUE 1000
#define PROBE_MAX_NAME 48
#define PROBE_MAX_AGAIN 32
#define PROBE_MAX_SECONDS 180
#define PROBE_SECONDS 30

enum probe_part {
	PROBE_BEFORE,
	PROBE_INSIDE,
	PROBE_OUTSIDE,
	PROBE_N_PARTS,
};

struct probe {
	char *id, *path;
	unsigned group; /* index into probe_groups */
	char *title, *tried, *means;
	bool quick, twin, own;
	bool alone; /* after all others of the run: it harms shared state */
	unsigned seconds;
	char *again[PROBE_MAX_AGAIN];
	size_t n_again;
	char *part[PROBE_N_PARTS]; /* NULL: none */
};

struct probes {
	struct probe *v[PROBE_MAX];
	size_t n;
};

extern const char *const probe_groups[]; /* in report order; ends with NULL */
extern const char *const probe_part_words[];

/* Index of a group in probe_groups, or -1. */
int probe_group_find(const char *name);
/* Loads one file. `path` is its name in messages. *ret must be all zero. */
int probe_parse(struct slice text, const char *group, const char *name, const char *path,
	struct probe *ret, struct err *err) MUST_CHECK;
/* It changes the sandbox and checks what still holds afterwards. */
bool probe_is_recovery(const struct probe *p);
void probe_done(struct probe *p);

/* Loads all files of one directory; a missing directory of the user is not an error. */
int prove_probes_load(struct probes *set, const char *folder, bool own, struct err *err) MUST_CHECK;
/* Loads both directories, and checks references between probes. */
int prove_probes_load_installed(struct probes *set, struct err *err) MUST_CHECK;
int prove_probes_check(const struct probes *set, struct err *err) MUST_CHECK;
void prove_probes_done(struct probes *set);
const struct probe *prove_probes_find(const struct probes *set, const char *id);

#define AUTO_PROBES CLEANUP(prove_probes_done)
