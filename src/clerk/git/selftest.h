/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest - `--jail-selftest` of sbx-clerk-git.
 *
 * How      See lib/os/jail/selftest.h. Its ordinary work is a push with a pack.
 * Trust    Runs in the program under test, before it is given anything.
 */
#pragma once

int clerk_selftest(void);
