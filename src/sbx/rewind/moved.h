/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moved - files of a workspace that changed since a moment.
 *
 * How      moved_find walks a directory and counts files whose inode changed at or after the
 *          moment. The host's own changes count too.
 * Trust    Names are the guest's. No symbolic link is followed, no file is opened.
 * Owns     The examples; moved_done frees them. All zero is valid and empty.
 * Limits   MOVED_MAX entries are visited, MOVED_EXAMPLES names are kept.
 * See      moved_test.c
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/attr.h"

#define MOVED_MAX 500000
#define MOVED_EXAMPLES 5

struct moved {
	uint64_t n;
	bool is_cut; /* there are more than MOVED_MAX entries */
	char *examples[MOVED_EXAMPLES];
	size_t n_examples;
};

/* A directory that cannot be read has no files. */
void moved_find(const char *dir, uint64_t since_ms, struct moved *ret);
void moved_done(struct moved *m);
#define AUTO_MOVED CLEANUP(moved_done)
