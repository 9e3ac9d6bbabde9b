/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hide - names that the guest cannot reach, decided at each system call of virtiofsd.
 *
 * How      virtiofsd runs with a seccomp filter that sends its calls with a name to a listener
 *          (jail_plan.notify_paths). hide_start forks a supervisor that holds the listener, reads
 *          the name from virtiofsd's memory, checks that the call still waits, and answers EACCES
 *          when the last component matches a glob, else lets the call continue. It is a separate
 *          process, so that a guest that looks up a million names costs the keeper nothing.
 * Trust    The bytes of a name are the guest's, at most PATH_MAX of them. virtiofsd copies requests
 *          out of guest memory before it acts, so the guest cannot change a name after the check.
 *          A guarded share (guard.h) has the same supervisor.
 * Owns     The supervisor is sealed (JAIL_HIDE, JAIL_GUARD) and dies with the keeper or with
 *          virtiofsd. After its exit every such call fails (fail closed).
 * Limits   SHARE_MAX_HIDE globs.
 * See      share.h, hide_test.c, share_test.c, share_vm_test.c
 */
#pragma once

#include "share.h"

struct guard;

/* Whether a glob can be used: it is refused when it would hit the numbers by which virtiofsd opens
 * its own descriptors. */
int hide_check(const char *const *globs, size_t n, struct err *err) MUST_CHECK;
/* Whether the last component of `path` is hidden. "", "." and ".." never are. */
bool hide_matches(const char *const *globs, size_t n, const char *path);
/* What the supervisor decides by. */
struct hide_ask {
	const char *const *globs;
	size_t n;
	struct room_ask room; /* lookups that need room are passed on */
	struct guard *guard;  /* NULL: none */
};

/* Takes notify_fd over. */
int hide_start(int *notify_fd, const struct hide_ask *ask, struct jail_child *ret_child,
	struct err *err) MUST_CHECK;
/* One notification, blocking: what the supervisor does in a loop. 1 when there are no more. */
int hide_answer(int notify_fd, const struct hide_ask *ask) MUST_CHECK;
