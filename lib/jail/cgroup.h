/*
 * cgroup - a memory and process limit where this user has been given a cgroup (v2) of his own.
 *
 * How      jail_cgroup_find looks for the own cgroup in /proc/self/cgroup and whether it is
 *          writable with the memory and pids controllers (a systemd unit with Delegate=yes).
 *          jail_cgroup_claim moves the caller into a leaf, since a group with processes cannot
 *          have limited children; jail_cgroup_make makes one limited child a program.
 * Trust    Runs in sbxd and keeper, reads the kernel's files.
 * Owns     Folders made here are removed by jail_cgroup_remove once their programs are gone.
 * Never    Is needed: without delegation the jail stands, only the limits are missing, and
 *          jail_cgroup_status says so for `sbx diagnose`.
 * See      cgroup_test.c
 */
#pragma once

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
int jail_cgroup_limit(
	const char *dir, uint64_t memory_max, uint64_t pids_max, struct err *err) MUST_CHECK;
void jail_cgroup_remove(const char *dir);
/* One line for `sbx diagnose`: the folder, or why there is none and what to do. */
void jail_cgroup_status(const struct jail_cgroup_host *host, char *buf, size_t size);
