/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiles - the table of resources of each jailed program. Internal to lib/os/jail.
 *
 * How      A row a program. Its system calls are groups, each with the reason; a call is a name
 *          known to libseccomp or "name/condition" from the table in filter.c.
 * Trust    Constants. Linked into keeper and into our own jailed programs.
 * Never    Allows by default: a call that is not listed is refused.
 * See      jail.h, filter.c, jail_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include "jail.h"

struct jail_group {
	const char *why;
	const char *calls; /* separated by spaces */
};

struct jail_row {
	const char *name;
	uint64_t caps; /* kept, ambient; inside the own user namespace only */
	bool proc;     /* an own /proc in the new root */
	bool landlock;
	bool host_net;	/* stays in the network namespace of its spawner */
	bool run_tmpfs; /* a private writable /run */
	bool outlives;	/* not killed with its parent: it exits with its channel */
	bool dev_null;	/* qemu probes its kind of file locks on it, and takes worse ones without */
	struct {
		rlim_t core, fsize, nproc, nofile, memlock;
		rlim_t as;  /* address space; 0: no limit */
		rlim_t cpu; /* seconds of processor time; 0: no limit */
	} limit;
	const struct jail_group *start;	  /* allowed from exec on; others: EPERM */
	const struct jail_group *special; /* allowed too with jail_plan.special_files */
	const struct jail_group *faked;	  /* answered with success without being done */
	const struct jail_group *absent;  /* answered ENOSYS, so that libc uses the older call */
	const struct jail_group *seal; /* allowed after jail_seal; others: the process is killed */
};

/* Bound for rows with dev_null, before the plan's own. */
extern const struct jail_mount jail_dev_null;

const struct jail_row *jail_row(enum jail_profile profile);
/* The calls that a spawner and all that it starts are refused (broker.h). */
extern const struct jail_group jail_refused_calls[];
/* The calls that jail_plan.notify_paths sends to the supervisor. */
extern const struct jail_group jail_path_calls[];
/* Those of jail_plan.notify_changes: the second also with notify_paths, the third is absent. */
extern const struct jail_group jail_change_calls[];
extern const struct jail_group jail_mode_calls[];
extern const struct jail_group jail_change_absent[];
