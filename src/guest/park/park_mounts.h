/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_mounts - lets the share go, and puts it back at every place where it was.
 *
 * How      Lazily unmounted, latest first, in each namespace. Afterwards PID 1 mounts the share
 *          anew, and each mount is cloned from it (open_tree), made as it was (mount_setattr), and
 *          put into its namespace (move_mount).
 * Trust    See park_list.h.
 * See      park_list.h
 */
#pragma once

#include "park_list.h"

void park_mounts_drop(struct park_list *l);
void park_mounts_restore(struct park_list *l);
