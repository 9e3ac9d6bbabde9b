/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commits - git commits of a staged sandbox: `sbx review --git` and `sbx apply --git`.
 *
 * How      A review lists the branches of each workspace that is a git repository, gets the commits
 *          that the host does not have into a quarantine (src/sbx/clone/clone.h), and shows their
 *          log, which a jailed git writes. The object names are saved. An apply fetches exactly
 *          these objects through another quarantine and stores them as refs/sbx/SANDBOX/BRANCH of
 *          the host repository. Branches, index and files of the host are not changed.
 * Trust    Everything that the sandbox sends is untrusted: see src/sbx/clone/transfer.h and
 *          src/sbx/clone/refs.h. Logs are cleaned for a terminal.
 * Owns     Nothing after a call.
 * Limits   A log has at most 1 MiB and 200 commits. 50 branches of a workspace have one.
 * See      docs/decisions/clone-quarantine.md, tests/cli/test_clone.py
 */
#pragma once

#include "lib/client/cli/opt.h"

/* Exit statuses of the commands. */
int commits_review(const struct opts *o);
int commits_apply(const struct opts *o);
