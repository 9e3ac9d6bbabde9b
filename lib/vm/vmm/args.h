/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args - from a struct vmm_config to qemu's command line, jail mounts and descriptors.
 *
 * How      args_build calls one small function for each part of the machine. Files appear in the
 *          jail under fixed names, so no path of the host is ever part of qemu's own syntax.
 * Trust    Runs in keeper. The config is ours; cmdline_extra is checked for control characters.
 * Owns     The strings of argv and of names. Mount sources point into the config and must outlive
 *          the spawn.
 * Limits   ARGS_MAX, ARGS_MAX_MOUNTS, ARGS_MAX_FDS; more is a bug in sbx.
 * Never    A shell, a network, a display, a monitor besides the inherited QMP socket.
 * See      args_test.c
 */
#pragma once

#include "vmm.h"

#define ARGS_MAX 96
#define ARGS_MAX_MOUNTS (21 + VMM_N_DISKS * VMM_MAX_LAYERS)
#define ARGS_MAX_FDS 8

#define ARGS_QEMU "/usr/bin/qemu-system-x86_64"

/* Where qemu finds its descriptors. */
enum args_fd {
	ARGS_FD_QMP = 3,
	ARGS_FD_CTL = 4,
	ARGS_FD_SHARE = 5,
	ARGS_FD_NET = 6,
	ARGS_FD_MEMORY = 7,
};

struct args {
	char *argv[ARGS_MAX + 1];
	size_t n;
	struct jail_mount mounts[ARGS_MAX_MOUNTS];
	size_t n_mounts;
	char *names[VMM_N_DISKS * VMM_MAX_LAYERS]; /* of the disks' files in the jail */
	size_t n_names;
	struct jail_fd fds[ARGS_MAX_FDS];
	size_t n_fds;
};

/* -EINVAL and a sentence when the config cannot be. qmp_fd is the caller's descriptor that becomes
 * ARGS_FD_QMP. Call args_done in any case. */
int args_build(struct args *a, const struct vmm_config *c, int qmp_fd, struct err *err) MUST_CHECK;
void args_done(struct args *a);
/* "root" or "docker". */
const char *args_disk_name(enum vmm_disk_id disk);
/* The libraries and data that qemu and qemu-img need, read-only. */
void args_mount_programs(struct args *a);
