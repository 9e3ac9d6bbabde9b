/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saved - texts of merges in the state directory: results, and base versions for later merges.
 *
 * How      A file has a line with the SHA-256 and the mode of the text, then the text. Its name is
 *          a hash: of a result, of the path and of both versions that were merged, so that a result
 *          is found only as long as both are the same; of a base version, of the path. The
 *          versions of the sandbox that were applied are in the directory of the journal, so that
 *          an undo removes them.
 * Trust    The user's own directory. A text that does not match its line is treated as absent.
 * Owns     Results are the caller's.
 * Limits   PLAN_HUGE bytes a text.
 * See      merge.h, base.h, src/sbx/stage/apply.h
 */
#pragma once

#include "src/sbx/stage/plan.h"

#define SAVED_BASE "base-"	  /* begins the name of a base version */
#define SAVED_MAX_BASE (1u << 20) /* bytes of a base version */

struct saved {
	char *text;
	size_t n;
	uint32_t mode;
	uint8_t sha[SHA256_BYTES];
};

void saved_done(struct saved *s);
#define AUTO_SAVED CLEANUP(saved_done)

/* The file of the result of a step in `dir`. */
char *saved_path(const char *dir, const struct plan_step *s);
/* The file of a base version in `dir`. */
char *saved_base_path(const char *dir, size_t ws, const char *path);
/* Without sync: a file that a crash has cut is treated as absent. */
int saved_put(const char *file, struct slice text, uint32_t mode, struct err *err) MUST_CHECK;
bool saved_get(const char *file, struct saved *ret);
/* Whether a file has this text. */
bool saved_has(const char *file, const uint8_t sha[SHA256_BYTES]);
/* The sandbox's version of a step becomes a base version. */
void saved_put_base(const char *dir, const struct bundle *b, const struct plan_step *s);

/* The content that a step puts, from the bundle or from its merge; at most `max` bytes of it. */
int saved_load_step(const struct bundle *b, const struct plan_step *s, size_t max, char **ret,
	size_t *ret_n, struct err *err) MUST_CHECK;
/* Writes it to a file. -EBADMSG if it is not what the step has. */
int saved_copy_step(
	const struct bundle *b, const struct plan_step *s, int out, struct err *err) MUST_CHECK;
