/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_job - one program of a run of `sbx prove`, with its output in memory and its time bounded.
 *
 * How      prove_job_start forks it into a session of its own; prove_job_poll says what to wait for
 *          and prove_job_look takes what is there, without ever waiting. Its leader is not reaped
 *          before prove_job_end, so that its process group keeps its number until all of it is
 *          killed.
 * Trust    What it prints may be a guest's: bounded, cleaned by whoever shows it.
 * Owns     The process group, until prove_job_end; it dies with us.
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
#define PROVE_JOB_LATE 1000 /* the status of one whose time was over */
#define PROVE_JOB_FDS 4

struct prove_job {
	pid_t pid; /* 0: none */
	int pidfd;
	int to, out; /* of a piped one: its stdin and stdout, the caller's to use; else -1 */
	int text_fd; /* stderr, and stdout when it is not piped */
	uint64_t begun_ms, late_ms;
	char text[PROVE_JOB_MAX_OUT];
	size_t n;
	bool ended;
	int status; /* then: its own, 128 + a signal, or PROVE_JOB_LATE */
};

struct prove_job_spec {
	const char *const *argv; /* the first is looked for in PATH */
	char *const *env;	 /* NULL: ours */
	const char *dir;	 /* NULL: / */
	bool piped;
	unsigned seconds; /* 0: without a bound of its own */
};

int prove_job_start(
	struct prove_job *j, const struct prove_job_spec *spec, struct err *err) MUST_CHECK;
static inline bool prove_job_runs(const struct prove_job *j)
{
	return j->pid > 0 && !j->ended;
}
/* At most PROVE_JOB_FDS of them; the caller's own fds of a piped one are not among them. */
size_t prove_job_poll(const struct prove_job *j, struct pollfd *ret);
/* True when it has ended, now or before. */
bool prove_job_look(struct prove_job *j);
/* How long the next thing to do is away; -1: nothing is. */
int prove_job_wait_ms(const struct prove_job *j);
/* Kills what is left of it, and closes. */
void prove_job_end(struct prove_job *j);
/* Only waits, for at most its time: its status, or an error. */
int prove_job_run(
	struct prove_job *j, const struct prove_job_spec *spec, struct err *err) MUST_CHECK;
