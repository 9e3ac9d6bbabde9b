/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref_check - whether a program may be registered as the source of a credential.
 *
 * How      Resolves the path as the kernel does. The program is rejected if another user can change
 *          or replace it (lib/os/program/run_ref.h), or if any directory, link or file of the path
 *          is in a writable workspace of any sandbox: the guest could replace it, and it is
 *          executed on the host. sbx-vault-run checks both again before each execution, with the
 *          workspaces that ref_places_* list for it (lib/os/program/run_places.h).
 * Trust    Runs in sbxd. The path is the user's; the registry has the workspaces.
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/os/ipc/vault_item.h"
#include "lib/rules/spec/spec.h"
#include "lib/vm/store/store.h"

/* Whether a program may be registered: see run_ref_check. Also rejects a path with a part in a
 * writable workspace. */
int ref_check(struct sbxd *d, const struct vault_ref *ref, struct err *err) MUST_CHECK;
/* Lists the paths that the guest of this sandbox can write, before it is in the registry. */
int ref_places_save(const struct spec *spec, struct err *err) MUST_CHECK;
/* All sandboxes of the registry, a batch at a time. */
int ref_each_row(struct sbxd *d, store_row_fn *fn, void *arg, struct err *err) MUST_CHECK;
