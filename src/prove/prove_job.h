/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_job - one program of a run of `sbx prove`, with captured output and a time limit.
 *
 * How      prove_job_start forks it into its own session. prove_job_poll returns the descriptors to
 *          wait for, prove_job_look reads available output and never blocks. The leader is not
 *          reaped before prove_job_end, so its process group keeps its number until the whole group
 *          is killed.
 * Trust    The output can come from a guest: limited here, cleaned by the caller that prints it.
 * Owns     The process group, until prove_job_end; it is killed when we exit.
 * Limits   PROVE_JOB_MAX_OUT bytes of output are kept, more is dropped.
 * See      prove_lane.c, prove_session.c
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/err.h"

#define PROVE_JOB_MAX_OUT 8192
#define PROVE_JOB_LATE 1000 /* status after a timeout */
#define PROVE_JOB_FDS 4

struct prove_job {
	pid_t pid; /* 0: none */
	int pidfd;
	int to, out; /* of a piped one: its stdin and stdout, for the caller; else -1 */
	int text_fd; /* stderr, and stdout when it is not piped */
	uint64_t begun_ms, late_ms;
	char text[PROVE_JOB_MAX_OUT];
	size_t n;
	bool ended;
	int status; /* then: its own, 128 + a signal, or PROVE_JOB_LATE */
};

struct prove_job_spec {
	const char *const *argv; /* the first is searched in PATH */
	char *const *env;	 /* NULL: ours */
	const char *dir;	 /* NULL: / */
	bool piped;
	unsigned seconds; /* 0: no timeout */
};

int prove_job_start(
	struct prove_job *j, const struct prove_job_spec *spec, struct err *err) MUST_CHECK;
static inline bool prove_job_runs(const struct prove_job *j)
{
	return j->pid > 0 && !j->ended;
}
/* At most PROVE_JOB_FDS of them, without the caller's own fds of a piped one. */
size_t prove_job_poll(const struct prove_job *j, struct pollfd *ret);
/* Returns true if it has exited, now or before. */
bool prove_job_look(struct prove_job *j);
/* Time until the next deadline; -1: none. */
int prove_job_wait_ms(const struct prove_job *j);
/* Kills the rest of the group, and closes. */
void prove_job_end(struct prove_job *j);
/* Waits until its exit or timeout; returns its status, or an error. */
int prove_job_run(
	struct prove_job *j, const struct prove_job_spec *spec, struct err *err) MUST_CHECK;
