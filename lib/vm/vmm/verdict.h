/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict - one cached result about the host, in a file with a key.
 *
 * How      The file holds the key and the text, a line each, and is replaced by rename. The key
 *          names the subject of the verdict; with another key, the verdict is unknown.
 * Trust    Runs in keeper. The file is in the runtime directory, which is the user's.
 * Limits   VERDICT_MAX for key and text together.
 * See      verdict_test.c
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/attr.h"
#include "lib/base/slice.h"

#define VERDICT_MAX 1024

/* Adds a file to a key: it is the same while its path, size and times are. */
int verdict_add_file(struct wr *w, const char *path) MUST_CHECK;
/* False when nothing is known under that key. */
bool verdict_load(
	const char *path, const char *key, char *text, size_t size, uint64_t *ret_age_s) MUST_CHECK;
/* Not being able to remember only costs the next start the finding out. */
void verdict_store(const char *path, const char *key, const char *text);
