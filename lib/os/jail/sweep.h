/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep - every system call number tried under a program's list, against what profiles.c declares.
 *
 * How      One child for each number that the row does not allow: it installs the very filter that
 *          the program gets and makes the call with zeros. Sealed, it must die of it; from exec on,
 *          it must get the declared error. Calls with conditions are left to --jail-selftest, which
 *          tries forms.
 * Trust    Run by the user, by tests and by `sbx prove`; no guest byte.
 * Limits   SWEEP_CALLS numbers; SWEEP_SECONDS for one that hangs because it was let through.
 * Never    Makes a call that would hurt when the list has a hole: all arguments are zero.
 * See      sweep_test.c, selftest.h
 */
#pragma once

#include "jail.h"

#define SWEEP_CALLS 480
#define SWEEP_SECONDS 2

enum sweep_list {
	SWEEP_START, /* from exec on */
	SWEEP_SEAL,  /* after jail_seal */
};

/* Prints what is allowed, and each call that is not as declared; 0 when there is none, else 1. */
int jail_sweep(enum jail_profile profile, enum sweep_list list);
/* For `sbx-keeper --jail-selftest NAME`: what the row declares, and all its lists. 2: no such
 * row. */
int jail_sweep_named(const char *name);
