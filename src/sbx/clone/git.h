/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git - runs git on the host, in the user's repository.
 *
 * How      git_run executes /usr/bin/git with the configuration of the repository, but without
 *          hooks, fsmonitor and transports. Variables GIT_* of the caller are removed.
 * Trust    The repository is the user's own. Input may be a checked pack (transfer.h).
 * Owns     The output is the caller's.
 * Limits   GIT_RUN_MAX_OUT bytes of output.
 * See      repo.h
 */
#pragma once

#include <stddef.h>
#include "lib/base/err.h"

#define GIT_PROGRAM "/usr/bin/git"
#define GIT_RUN_MAX_OUT (16u << 20)

struct git_run {
	const char *dir;	 /* where it runs; NULL: here */
	const char *git_dir;	 /* --git-dir; NULL: found from dir */
	const char *const *args; /* NULL-terminated, after "git" and our options */
	const char *const *more; /* further ones, or NULL */
	const char *const *env;	 /* NAME=value, or NULL */
	int in_fd;		 /* 0: none */
	char *out;		 /* result: stdout, NUL-terminated */
	size_t n_out;
	char said[512]; /* result: the last line of stderr, cleaned */
};

/* The exit status, or -errno. */
int git_run(struct git_run *g, struct err *err) MUST_CHECK;
/* The same, where every status but 0 is an error that begins with `what`. */
int git_must(struct git_run *g, const char *what, struct err *err) MUST_CHECK;
/* The output without the last newline, or NULL if git failed. The caller frees it. */
char *git_line(const char *dir, const char *git_dir, const char *const *args);
