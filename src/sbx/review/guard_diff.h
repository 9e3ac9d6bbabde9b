/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_diff - the difference between a guarded file of now and the copy of its earlier content.
 *
 * How      guard_diff_print finds the workspace of a row (GET /v1/sandboxes/REF/guard) among those
 *          of the sandbox, opens the file in it and the copy, and passes a unified diff on.
 * Trust    The row, the file and the copy are untrusted. No symbolic link is followed below the
 *          workspace, and nothing but a regular file is read.
 * Limits   TEXTDIFF_MAX_BYTES of each side.
 */
#pragma once

#include <jansson.h>
#include "lib/rules/airlock/textdiff.h"

/* `sandbox` is its object, `list` the reply with `dir`. Without a diff, one line gives the
 * reason. */
void guard_diff_print(
	const json_t *sandbox, const json_t *list, const json_t *row, textdiff_put *put, void *arg);
/* The content of the file of now. -EINVAL: the file *ret_fault, for example "is a directory". */
int guard_diff_file(const json_t *sandbox, const json_t *row, char **ret, size_t *ret_n,
	const char **ret_fault) MUST_CHECK;
