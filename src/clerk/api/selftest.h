/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest - `--jail-selftest` of sbx-clerk.
 *
 * How      See lib/os/jail/selftest.h. Its ordinary work is a request with a mutation.
 * Trust    Runs in the program under test, before it is given anything.
 */
#pragma once

int calls_selftest(void);
