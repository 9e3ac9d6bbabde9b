/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_mounts - unmounts the share, and mounts it again at the same places.
 *
 * How      Unmounted lazily, latest first, in each namespace. Later PID 1 mounts the share again,
 *          and each mount is cloned from it (open_tree), gets its old attributes (mount_setattr),
 *          and is moved into its namespace (move_mount).
 * Trust    See park_list.h.
 * See      park_list.h
 */
#pragma once

#include "park_list.h"

void park_mounts_drop(struct park_list *l);
void park_mounts_restore(struct park_list *l);
