/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_places - the files, disks and memory that a sandbox is made of, each as a descriptor to read
 * from.
 *
 * How      Disks, logs and files by the names in its folders; memory and the layers below its own
 *          by /proc/QEMU/fd, which leads to the very files that the machine has open: the memory is
 *          a memfd of qemu's, and the disks are those, whatever lies under their names by now.
 * Trust    The user's own files. qemu's descriptors are only opened for reading; the vault reads.
 * Owns     One descriptor at a time, closed after `fn`.
 * Limits   SCAN_MAX_FILES files of one place.
 * Never    Stops the machine, reads a byte, or passes a path to anybody.
 * See      cmd_secret_scan.c, tests/cli/test_secret.py, tests/e2e/test_credentials.py
 */
#pragma once

#include "lib/client/api/api.h"

#define SCAN_MAX_FILES 4096

enum scan_place {
	SCAN_RAM,    /* what the guest has in memory, now */
	SCAN_DISK,   /* its root disk: the sandbox's own layers */
	SCAN_DOCKER, /* its docker disk: the same */
	SCAN_LOGS,   /* what sbx wrote down about it and about itself */
	SCAN_AUDIT,  /* the audit logs of all sandboxes */
	SCAN_FILES,  /* everything else in its two directories, and the registry and the policy */
	SCAN_BASE,   /* the layers of the template below its own; only on request */
	SCAN_N_PLACES,
};

/* "ram", ... */
const char *scan_place_name(enum scan_place place);
/* A comma-separated list as bits; -EINVAL with a sentence. */
int scan_place_parse(const char *text, unsigned *ret, struct problem *p) MUST_CHECK;
/* All but SCAN_BASE. */
#define SCAN_USUAL ((1U << SCAN_BASE) - 1)

typedef int scan_file_fn(void *arg, enum scan_place place, int fd, struct problem *p);
/* `sandbox` is what the API says about it. What ends or vanishes meanwhile is omitted; what cannot
 * be opened is an error, since a place that was not looked at proves nothing. */
int scan_place_each(const json_t *sandbox, enum scan_place place, scan_file_fn *fn, void *arg,
	struct problem *p) MUST_CHECK;
