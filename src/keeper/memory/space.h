/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space - a full disk of the host: the sandbox that writes is paused, and continues by itself.
 *
 * How      Every SPACE_LOOK_MS the keeper asks for the free space below the state folder and below
 *          each writable workspace on a local file system, once for each file system. Below the
 *          reserve (setting disk.reserve, at most a tenth of the file system) a machine that has
 *          written since the last look is paused by QMP; others keep running. qemu pauses a machine
 *          by itself when a write of its disks finds no space, also one that starts or is being
 *          suspended. All continue when there is the reserve and an eighth more; until then no time
 *          limit of theirs runs.
 * Trust    Numbers of the kernel. What the guest writes is counted by /proc/PID/io of qemu and
 *          virtiofsd; space that is allocated without a write (fallocate in a workspace) is not
 *          counted as one.
 * Limits   SPACE_MAX_PLACES.
 * See      space_test.c, tests/e2e/test_disk_full.py
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/err.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/spec/spec.h"

#define SPACE_LOOK_MS 250
#define SPACE_FAR_MS 1000 /* when there is SPACE_FAR more than the reserve */
#define SPACE_FAR (4ULL << 30)
#define SPACE_MAX_PLACES (SPEC_MAX_WORKSPACES + 1)
#define SPACE_WRITES (64u << 10) /* bytes between two looks: less is not writing */
#define SPACE_LEAST (4u << 20)	 /* what a machine that found no space at all needs to continue */
#define SPACE_PAUSED "paused (disk full)"

struct space {
	const char *place[SPACE_MAX_PLACES]; /* borrowed; one for each file system */
	dev_t dev[SPACE_MAX_PLACES];
	size_t n_places;
	uint64_t written; /* at the last look; UINT64_MAX: not known */
	struct loop_timer timer;
};

/* What is to be kept free of a file system of `total` bytes. */
uint64_t space_reserve(uint64_t setting, uint64_t total);
/* Is the machine to be paused, or to continue? 1: pause, -1: continue, 0: as it is. `need` is the
 * reserve of the place with the least room. */
int space_decide(bool is_paused, bool writes, uint64_t free, uint64_t need);

/* The path is borrowed. One that is not local, or whose file system is there already, is left
 * out. */
void space_add(struct space *s, const char *path);

struct keeper;
void space_start(struct keeper *k);
void space_on_timer(struct keeper *k);
/* qemu has paused the machine. */
void space_on_full(struct keeper *k);
void space_stop(struct keeper *k);
/* -ENOSPC: the sandbox's folder does not have so many bytes above the reserve. */
int space_check(const struct keeper *k, uint64_t bytes, struct err *err) MUST_CHECK;
