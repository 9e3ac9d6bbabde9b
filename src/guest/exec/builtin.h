/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builtin - the programs inside sbx-guest: the guest's half of `sbx cp`, `sbx review`, `sbx ssh`.
 *
 * How      Run in a child of PID 1 with the exec's pipes as 0, 1, 2; see PROTOCOL.guest.
 * Trust    unpack reads an archive that the host created; the rules of lib/wire/tar still apply.
 */
#pragma once

struct child;

typedef int builtin_fn(char **argv, const struct child *c);

/* Returns NULL if the name is unknown. */
builtin_fn *builtin_find(const char *name);
