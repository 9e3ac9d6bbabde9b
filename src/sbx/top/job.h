/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job - other commands of sbx, run for the full-screen view.
 *
 * How      job_start runs a command without a terminal in the background; job_poll returns its
 *          result as one line when it has exited. The view can be closed meanwhile: the command
 *          continues. job_run gives the terminal to a command and waits for it.
 * Trust    Arguments are names of sandboxes that sbxd has accepted, and what the user typed. Output
 *          may have words of a guest; the view escapes them.
 * Owns     The descriptors of the commands; jobs_done closes them.
 * Limits   JOB_MAX commands at the same time, JOB_MAX_OUTPUT bytes of the output of each.
 * See      tests/cli/top/test_top.py
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "lib/base/err.h"

#define JOB_MAX 8
#define JOB_MAX_OUTPUT 4096
#define JOB_MAX_ARGS 12

struct job {
	pid_t pid; /* 0: unused */
	int fd;
	char label[96]; /* "stop demo" */
	char output[JOB_MAX_OUTPUT];
	size_t n;
};

struct jobs {
	struct job v[JOB_MAX];
};

/* args: without the name of the program, NULL-terminated. -EBUSY if too many run. */
int job_start(
	struct jobs *j, const char *label, const char *const *args, struct err *err) MUST_CHECK;
/* True if a command has exited; `buf` has its result. */
bool job_poll(struct jobs *j, char *buf, size_t size);
void jobs_done(struct jobs *j);
/* On the terminal, between tui_pause and tui_resume. Prompts for Enter if the command fails, or if
 * `stay`, so that its output can be read. Returns its
 * exit status. */
int job_run(const char *const *args, bool stay, struct err *err) MUST_CHECK;
