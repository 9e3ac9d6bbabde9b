/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space - pauses a sandbox that writes to a full disk of the host, and continues it.
 *
 * How      Every SPACE_LOOK_MS the keeper checks the free space of the state directory and of each
 *          writable workspace on a local file system, once per file system. Below the reserve
 *          (setting disk.reserve, at most a tenth of the file system) it pauses a VM that has
 *          written since the last check, by QMP; other VMs keep running. qemu itself pauses a VM,
 *          also one that starts or is being suspended, if a write to its disks finds no space. All
 *          continue at the reserve and an eighth more; until then their timeouts do not run.
 *
 *          If the memory of the VM is a file (vm.memory-backing, the default), a page that finds no
 *          space kills QEMU and virtiofsd. Such a VM is paused below the reserve even if it has not
 *          written, there is always a reserve, and the checks follow each other faster the closer
 *          the free space is to it: nothing may use up half of the reserve between two of them
 *          (SPACE_PER_MS). A VM that starts without room for all its memory gets a memfd.
 * Trust    Numbers of the kernel. /proc/PID/io of QEMU and virtiofsd counts the guest's writes;
 *          space that is allocated without a write (fallocate in a workspace) is not counted. A
 *          process of the user that allocates the complete file system at once is faster than any
 *          check.
 * Limits   SPACE_MAX_PLACES.
 * See      space_test.c, tests/e2e/test_disk_full.py
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/spec/spec.h"

#define SPACE_LOOK_MS 250
#define SPACE_FAR_MS 1000 /* if there is SPACE_FAR more than the reserve */
#define SPACE_FAR (4ULL << 30)
#define SPACE_FAST_MS 5		  /* the least */
#define SPACE_PER_MS (4u << 20)	  /* bytes: faster than guests touch memory and disks are written */
#define SPACE_MEMORY (256u << 20) /* the reserve for memory in a file, if the setting is less */
#define SPACE_MAX_PLACES (SPEC_MAX_WORKSPACES + 1)
#define SPACE_WRITES (64u << 10) /* bytes between two checks: less does not count as writing */
#define SPACE_LEAST (4u << 20)	 /* needed to continue a VM that found no space at all */
#define SPACE_PAUSED "paused (disk full)"

struct space {
	const char *place[SPACE_MAX_PLACES]; /* borrowed; one per file system */
	dev_t dev[SPACE_MAX_PLACES];
	size_t n_places;
	uint64_t written; /* at the last check; UINT64_MAX: unknown */
	struct loop_timer timer;
};

/* Bytes to keep free on a file system of `total` bytes. */
static inline uint64_t space_reserve(uint64_t setting, uint64_t total)
{
	return MIN(setting, total / 10);
}

/* Returns 1 to pause the VM, -1 to continue it, 0 for no change. `need` is the reserve of the place
 * with the least space. */
static inline int space_decide(bool is_paused, bool writes, uint64_t free, uint64_t need)
{
	if (is_paused)
		return free >= MAX(need + need / 8, (uint64_t)SPACE_LEAST) ? -1 : 0;
	return writes && free < need;
}

/* Milliseconds until the next check. */
static inline uint64_t space_interval(
	bool is_paused, bool is_memory_file, uint64_t free, uint64_t need)
{
	uint64_t above = free > need ? free - need : 0;

	if (!is_paused && above > SPACE_FAR)
		return SPACE_FAR_MS;
	if (is_paused || !is_memory_file)
		return SPACE_LOOK_MS;
	return MIN(MAX((above + need / 2) / SPACE_PER_MS, SPACE_FAST_MS), SPACE_LOOK_MS);
}

/* Borrows the path. Skips one that is not local, or whose file system is already in the list. */
void space_add(struct space *s, const char *path);

struct keeper;
/* Before the VM is created: chooses where its memory is. */
void space_place_memory(struct keeper *k);
void space_start(struct keeper *k);
void space_on_timer(struct keeper *k);
/* qemu has paused the VM. */
void space_on_full(struct keeper *k);
void space_stop(struct keeper *k);
/* Returns -ENOSPC if the sandbox's directory has less than this many bytes above the reserve. */
int space_check(const struct keeper *k, uint64_t bytes, struct err *err) MUST_CHECK;
