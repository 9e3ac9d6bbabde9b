/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest - `--jail-selftest` of our jailed programs.
 *
 * How      Each probe is a child that seals itself exactly as in normal operation and then tries
 *          one thing. The final filter kills on violation, so a probe that is not killed by SIGSYS
 *          has found a hole. The program's normal calls must work. Then each number is tried
 *          (sweep.h). System calls are called by number, so that no reference to open, connect or
 *          fork exists in the program, which tests/lint/links proves; `syscall` itself is refused
 *          there in every other object.
 * Trust    Runs in the program under test, before it is given anything.
 * Owns     Its children, which it waits for.
 * See      jail.h, profiles.c, sweep.h
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "jail.h"

#define JAIL_SELFTEST_FD (-77) /* in args: one end of a pair of Unix stream sockets */

/* A system call that the filter must refuse by its number and these arguments. Pointers are NULL:
 * the filter does not see what they point to, and a call that is let through does nothing. */
struct jail_selftest_probe {
	const char *name;
	long number;
	long args[6];
};

/* Probes that several programs share, each a table that ends with NULL: calls that no program may
 * make, files, and the creation of sockets. */
extern const struct jail_selftest_probe jail_selftest_any[], jail_selftest_files[],
	jail_selftest_sockets[];

struct jail_selftest {
	enum jail_profile profile;
	const struct jail_selftest_probe
		*tables[4];   /* all of them must be refused; ends with NULL */
	int (*prepare)(void); /* before the seal; may be NULL */
	long (*work)(int fd); /* must live, and give 0; fd: one end of such a pair */
};

/* Prints a line for each probe; 0 when all is as it must be, else 1. */
int jail_selftest_run(const struct jail_selftest *t);
