/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitconfig - whether a guest may replace the text of a git configuration, and the text to write.
 *
 * How      gitconfig_parse reads a text as git does, and rejects what git rejects or what is easily
 *          misread. gitconfig_check compares the entries of two texts. Entries with a key on the
 *          allow list (gitconfig_allow.c) may be added, changed and removed; a new value must be
 *          harmless. All other entries must be the same in both texts, in the same order. The
 *          result is a serialisation of the entries, never bytes of the guest's file.
 * Trust    Input: both texts are hostile. The result contains plain UTF-8 only, except values that
 *          the old text already has.
 * Owns     *ret belongs to the caller, NUL-terminated.
 * Limits   GITCONFIG_MAX_BYTES a text, GITCONFIG_MAX_ENTRIES entries.
 * Never    Reads a file or follows an include.
 * See      gitconfig_internal.h, gitconfig_test.c, gitconfig_fuzz.c
 */
#pragma once

#include "lib/base/err.h"

#define GITCONFIG_MAX_BYTES (256 * 1024)
#define GITCONFIG_MAX_ENTRIES 8192

struct gitconfig_place {
	/* The path of the file, relative to the root of the workspace, without empty, "." or ".."
	 * components: "a/.git/config", ".git/modules/x/config". */
	const char *path;
};

/* Compares a new text of a git configuration with the present one. Without a present one, old_len
 * is 0. Returns 0: *ret is the text to write. -EACCES: a key or value is refused, and err names the
 * key. -EBADMSG: one of the texts is not a configuration. -E2BIG: a limit is exceeded. */
int gitconfig_check(const char *old, size_t old_len, const char *new, size_t new_len,
	const struct gitconfig_place *place, char **ret, size_t *ret_len,
	struct err *err) MUST_CHECK;
