/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - a memory and process limit if a cgroup (v2) is delegated to this user.
 *
 * How      The keeper moves itself into a group with limits before it starts anything
 *          (jail_cgroup_enter): every program that it starts is in that group, directly or through
 *          the spawner. The group is created below the nearest ancestor group that is writable and
 *          delegates the memory and pids controllers (jail_cgroup_place): a slice of the systemd
 *          user manager. A unit with Delegate=yes delegates nothing while it has processes, so sbxd
 *          first moves itself into a leaf of it (jail_cgroup_prepare). jail_cgroup_leave removes
 *          the group at the end. jail_cgroup_sweep removes the groups of killed keepers: the kernel
 *          removes no group with a process in it.
 * Trust    Runs in sbxd and keeper, reads the kernel's files.
 * Owns     The groups sbx-ID.
 * Limits   Those of struct jail_cgroup_limits. cpu.weight stays the kernel's 100.
 * Never    Fails without delegation: only the limits are missing then. `sbx diagnose` reports it
 *          (src/sbx/host/check_host.c).
 * See      cgroup_test.c
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

/* Where the kernel's files are; tests pass another directory. */
struct jail_cgroup_host {
	const char *self;  /* NULL: /proc/self/cgroup */
	const char *mount; /* NULL: /sys/fs/cgroup */
};

/* The directory of the delegated cgroup. -ENOENT with the reason when there is none. */
int jail_cgroup_find(
	const struct jail_cgroup_host *host, char *buf, size_t size, struct err *err) MUST_CHECK;

struct jail_cgroup_limits {
	uint64_t memory_max, pids_max; /* 0: none */
};

/* All zero: in none. */
struct jail_cgroup {
	char dir[PATH_MAX];
	char from[PATH_MAX]; /* where this process was before */
};

/* The directory below which groups with limits can be made. -ENOENT when there is none. */
int jail_cgroup_place(
	const struct jail_cgroup_host *host, char *buf, size_t size, struct err *err) MUST_CHECK;
/* For sbxd: turns its own group into such a directory, unless there is one. */
int jail_cgroup_prepare(
	const struct jail_cgroup_host *host, const char *leaf, struct err *err) MUST_CHECK;
/* Moves this process into the group of the sandbox `id`, which may be left over. */
int jail_cgroup_enter(const struct jail_cgroup_host *host, const char *id,
	const struct jail_cgroup_limits *limits, struct jail_cgroup *ret,
	struct err *err) MUST_CHECK;
/* Moves the keeper back and removes the group, unless it has other processes. */
void jail_cgroup_leave(struct jail_cgroup *g);
/* Removes all groups of sandboxes that have no process. */
void jail_cgroup_sweep(const struct jail_cgroup_host *host);
