/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guarded - the files in the guard directory of a sandbox: what its guest changed or was denied.
 *
 * How      sandboxes/ID/guard has `dirty` and `copy/N`, which the guard of the share writes
 *          (lib/vm/share/guard.h), and `denied`, which the keeper writes. guarded_each reads a list
 *          (lib/rules/airlock/dirty.h); guarded_forget removes all of it. A running guard notices
 *          that and begins anew.
 * Trust    The lists are untrusted: a compromised keeper can write anything there. Symbolic links
 *          are not followed.
 * Limits   DIRTY_MAX_BYTES of a list; the rest is not read.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/rules/airlock/dirty.h"

#define GUARDED_DIRTY "dirty"
#define GUARDED_DENIED "denied"

typedef void guarded_fn(void *arg, const struct dirty_row *row);

/* Each row of a list; none if it does not exist. fn may be NULL. Returns their number. */
size_t guarded_each(const char *id, const char *list, guarded_fn *fn, void *arg);
int guarded_forget(const char *id, struct err *err) MUST_CHECK;
