/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_places - the files, disks and memory of a sandbox, each as a descriptor to read from.
 *
 * How      Disks, logs and files by the names in its directories; memory and lower layers by
 *          /proc/QEMU/fd, which refers to the files that the VM has open: the memory is a file
 *          without a name or a memfd, and the disks are the real ones even if their names were
 *          replaced.
 * Trust    The user's own files. qemu's descriptors are only opened for reading; the vault reads.
 * Owns     One descriptor at a time, closed after `fn`.
 * Limits   SCAN_MAX_FILES files of one place.
 * Never    Stops the VM, reads a byte, or passes a path on.
 * See      cmd_secret_scan.c, tests/cli/test_secret.py, tests/e2e/test_credentials.py
 */
#pragma once

#include "lib/client/api/api.h"

#define SCAN_MAX_FILES 4096

enum scan_place {
	SCAN_RAM,    /* current memory of the guest */
	SCAN_DISK,   /* its root disk: the sandbox's own layers */
	SCAN_DOCKER, /* its docker disk: the same */
	SCAN_LOGS,   /* logs of sbx about the sandbox and itself */
	SCAN_AUDIT,  /* the audit logs of all sandboxes */
	SCAN_FILES,  /* all other files in its two directories, the registry and the policy */
	SCAN_BASE,   /* the template's layers; only on request */
	SCAN_N_PLACES,
};

/* "ram", ... */
const char *scan_place_name(enum scan_place place);
/* A comma-separated list as bits; returns -EINVAL if invalid. */
int scan_place_parse(const char *text, unsigned *ret, struct problem *p) MUST_CHECK;
/* All but SCAN_BASE. */
#define SCAN_USUAL ((1U << SCAN_BASE) - 1)

typedef int scan_file_fn(void *arg, enum scan_place place, int fd, struct problem *p);
/* `sandbox` is its API object. Files that vanish meanwhile are skipped; a file that cannot be
 * opened is an error, since an unsearched place proves nothing. */
int scan_place_each(const json_t *sandbox, enum scan_place place, scan_file_fn *fn, void *arg,
	struct problem *p) MUST_CHECK;
