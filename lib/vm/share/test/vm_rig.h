/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vm_rig - a VM whose first program is a test's, for share_vm_test.c and guard_vm_test.c.
 *
 * How      vm_rig_make_initrd writes an archive with one program, vm_rig_start starts a jailed qemu
 *          with it and with a share, vm_rig_talk passes each line of the serial port to a function
 *          until that returns true.
 * Trust    Tests only.
 * Limits   Four minutes.
 */
#pragma once

#include <stdbool.h>
#include "lib/os/jail/jail.h"
#include "lib/vm/share/share.h"

void vm_rig_make_initrd(const char *path, const char *program);
int vm_rig_start(const char *kernel, const char *initrd, const char *words, int vhost_fd,
	int con_fd, struct jail_child *ret_child, struct err *err) MUST_CHECK;
/* False if the guest did not come to its end. */
bool vm_rig_talk(int con, bool (*on_line)(int con, const char *line));
/* All of these with a share. -ETIMEDOUT: the guest did not come to its end. */
int vm_rig_run(const struct share_config *cfg, const char *kernel, const char *initrd,
	const char *words, bool (*on_line)(int con, const char *line), struct err *err) MUST_CHECK;
