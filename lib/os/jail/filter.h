/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter - the seccomp lists of profiles.c as loaded filters. Internal to lib/os/jail.
 *
 * How      libseccomp generates the BPF program before the fork (filter_make_start) and one system
 *          call in the child installs it (filter_install); jail_seal does both.
 * Trust    Constants in, BPF out. Foreign architectures and x32 are killed.
 * Owns     struct filter owns the BPF bytes.
 * See      profiles.h, filter_test.c, profiles_test.c
 */
#pragma once

#include <linux/filter.h>
#include "profiles.h"

struct filter {
	struct sock_fprog prog;
};

/* The start list, with the row's special list when special_files; exec_fd is the only fd that
 * may be executed. */
int filter_make_start(const struct jail_row *row, bool special_files, int exec_fd,
	struct filter *ret_filter, struct err *err) MUST_CHECK;
/* A second filter that only turns calls into notifications. */
struct filter_notify {
	bool paths;	  /* jail_path_calls */
	bool changes;	  /* jail_change_calls; openat2 is absent then, unless `paths` has it */
	unsigned full_at; /* statx of a descriptor from this number on; 0: of none */
};
int filter_make_notify(
	const struct filter_notify *what, struct filter *ret_filter, struct err *err) MUST_CHECK;
/* Everything but jail_refused_calls. */
int filter_make_refusal(struct filter *ret_filter, struct err *err) MUST_CHECK;
int filter_make_seal(
	const struct jail_row *row, struct filter *ret_filter, struct err *err) MUST_CHECK;
/* Needs no_new_privs. Gives the listener's fd when `listen`, else 0. */
int filter_install(const struct filter *f, bool listen) MUST_CHECK;
void filter_done(struct filter *f);
