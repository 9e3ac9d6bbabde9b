/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp_between - `sbx cp` from one sandbox to another.
 *
 * How      A child process runs `pack` in the first sandbox, this process `unpack` in the second,
 *          with a pipe between them. Nothing is stored on the host.
 * Trust    The archive is the first guest's. The host passes its bytes on unread; sbx-guest of the
 *          second sandbox checks them (lib/wire/tar) and writes nothing outside DST.
 * Limits   The pipe's: a sandbox that does not read stops the other one.
 * See      cmd_cp.c, tests/cli/test_cp.py
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/client/cli/ui.h"

struct cp_between {
	const char *src_ref, *src_path;
	const char *dst_ref, *dst_path;
	const char *as; /* the name of the source in a destination directory */
	bool follow;
};

/* Both sandboxes run. *ret_bytes: of the archive. */
int cp_between(const struct cp_between *c, uint64_t *ret_bytes, struct problem *p) MUST_CHECK;
