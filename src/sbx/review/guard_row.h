/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_row - a changed or denied file of the guard, in words.
 *
 * How      From a row of GET /v1/sandboxes/REF/guard.
 * Trust    Paths are a guest's: the texts are cleaned for a terminal.
 * Owns     Results are the caller's.
 */
#pragma once

#include <jansson.h>

/* The path for people: in the workspace, or of the host if there are several. */
char *guard_row_path(const json_t *sandbox, const json_t *row);
/* "Makefile: make runs it (changed)" */
char *guard_row_heading(const json_t *sandbox, const json_t *row);
