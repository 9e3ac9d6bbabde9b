/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remount - restores the mounts of the share after its device was unbound from the kernel.
 *
 * How      remount_note records where virtiofs is mounted. remount_again detaches dead mounts and
 *          mounts the same again: the share itself, and each workspace as a bind mount of its path
 *          in it.
 * Trust    Runs as root in the guest: the attacker.
 * Limits   REMOUNT_MAX mounts; files that a process has open in one of them stay dead.
 * See      fuse.c
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/attr.h"

#define REMOUNT_MAX 64
#define REMOUNT_SHARE "/run/sbx/workspaces/share"

struct remount {
	struct {
		char path[1024];
		bool ro;
	} mounts[REMOUNT_MAX];
	size_t n;
};

void remount_note(struct remount *r);
int remount_again(const struct remount *r) MUST_CHECK;
