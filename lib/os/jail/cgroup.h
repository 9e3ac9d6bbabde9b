/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup - a memory and process limit where this user has been given a cgroup (v2) of his own.
 *
 * How      The keeper moves itself into a group with limits before it starts anything
 *          (jail_cgroup_enter): every program that it starts is born there, whoever forks it.
 *          Such a group is made below the nearest group above the own one that is writable and
 *          hands the memory and pids controllers down (jail_cgroup_place): a slice of the
 *          systemd user manager. A unit with Delegate=yes hands nothing down as long as it has
 *          processes, so sbxd first moves itself into a leaf of it (jail_cgroup_prepare).
 *          jail_cgroup_leave removes the group at the end. What a killed keeper leaves,
 *          jail_cgroup_sweep removes: the kernel removes no group with a process in it.
 * Trust    Runs in sbxd and keeper, reads the kernel's files.
 * Owns     The groups sbx-ID.
 * Limits   Those of struct jail_cgroup_limits. cpu.weight stays the kernel's 100.
 * Never    Is required: without delegation only the limits are missing. `sbx diagnose` reports it
 *          (src/sbx/host/check_host.c).
 * See      cgroup_test.c
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

/* Where the kernel shows things; tests give a folder of their own. */
struct jail_cgroup_host {
	const char *self;  /* NULL: /proc/self/cgroup */
	const char *mount; /* NULL: /sys/fs/cgroup */
};

/* The folder of the delegated cgroup. -ENOENT with the reason when there is none. */
int jail_cgroup_find(
	const struct jail_cgroup_host *host, char *buf, size_t size, struct err *err) MUST_CHECK;
/* Moves this process into `root`/`leaf` and hands memory and pids to the children of `root`. */
int jail_cgroup_claim(const char *root, const char *leaf, struct err *err) MUST_CHECK;
/* Makes `root`/`name` with the limits (0: none) and gives its folder. */
int jail_cgroup_make(const char *root, const char *name, uint64_t memory_max, uint64_t pids_max,
	char *buf, size_t size, struct err *err) MUST_CHECK;

struct jail_cgroup_limits {
	uint64_t memory_max, pids_max; /* 0: none */
};

/* All zero: in none. */
struct jail_cgroup {
	char dir[PATH_MAX];
	char from[PATH_MAX]; /* where this process was before */
};

/* The folder below which groups with limits can be made. -ENOENT when there is none. */
int jail_cgroup_place(
	const struct jail_cgroup_host *host, char *buf, size_t size, struct err *err) MUST_CHECK;
/* For sbxd: makes such a folder of the own group where there is none yet. */
int jail_cgroup_prepare(
	const struct jail_cgroup_host *host, const char *leaf, struct err *err) MUST_CHECK;
/* Moves this process into the group of the sandbox `id`, which may be left over. */
int jail_cgroup_enter(const struct jail_cgroup_host *host, const char *id,
	const struct jail_cgroup_limits *limits, struct jail_cgroup *ret,
	struct err *err) MUST_CHECK;
/* Moves it back and removes the group, unless somebody is in it still. */
void jail_cgroup_leave(struct jail_cgroup *g);
/* Removes all groups of sandboxes that nobody is in. */
void jail_cgroup_sweep(const struct jail_cgroup_host *host);
