/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow - runs one program and reads its lines while it works.
 *
 * How      The lines come from one descriptor of the program (1: its output and its errors
 *          together, or 3: progress). After follow_catch, Ctrl-C and similar signals stop the
 *          program and not sbx, so that sbx can clean up; follow_caught reports the signal.
 * Trust    The lines may come from a guest or a registry: ui_clean removes control characters.
 * Owns     The program while it runs; none is left behind.
 * Limits   FOLLOW_MAX_LINE bytes a line, the rest is dropped; FOLLOW_MAX_MS for a run that names no
 *          other time; FOLLOW_END_MS for an end after that or after a signal; max_bytes of output.
 * See      template_file.c, template_image.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/err.h"

#define FOLLOW_MAX_LINE 1024
#define FOLLOW_END_MS 30000
#define FOLLOW_MAX_MS 1800000

typedef void follow_line_fn(void *arg, char *line);

struct follow {
	const char *const *argv; /* the first is a path */
	int lines;		 /* the descriptor with the lines: 1 or 3 */
	int in_fd;		 /* its input; -1: none */
	int out_fd;		 /* its output when lines is 3; -1: our stderr */
	uint64_t max_bytes;	 /* of any file that it writes; 0: no limit */
	uint64_t max_ms;	 /* timeout; 0: FOLLOW_MAX_MS */
	follow_line_fn *fn;	 /* NULL: output is ignored */
	void *arg;
};

/* The status, 128 + the signal that killed it, or -errno; -ETIMEDOUT when it took too long. */
int follow_run(const struct follow *f, struct err *err) MUST_CHECK;
void follow_catch(void);
bool follow_caught(void);
/* For the cleanup: ignores keys that send a signal. */
void follow_ignore(void);
