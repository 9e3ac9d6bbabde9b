/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claude_settings - whether a guest may replace .claude/settings.local.json, and the text to write.
 *
 * How      claude_settings_check walks over both texts (lib/base/json/jtext.h). Only `allow`,
 *          `deny` and `ask` of the object `permissions` may differ, and only as arrays of strings.
 *          Entries of `deny` and `ask` can be added, but not removed. All other members must be
 *          the same in both texts. The result is a serialisation of what was read.
 * Trust    Input: both texts are hostile. The strings of the result are plain UTF-8, except those
 *          that the old text already has.
 * Owns     *ret belongs to the caller, NUL-terminated.
 * Limits   CLAUDE_SETTINGS_MAX_BYTES a text, CLAUDE_SETTINGS_MAX_RULES strings of
 *          CLAUDE_SETTINGS_MAX_RULE bytes in an array.
 * Never    Reads a file. jansson is not used: it opens /dev/urandom at its first object, and the
 *          caller is sealed.
 * See      claude_settings_test.c, claude_settings_fuzz.c
 */
#pragma once

#include "lib/base/err.h"

#define CLAUDE_SETTINGS_MAX_BYTES (256 * 1024)
#define CLAUDE_SETTINGS_MAX_RULES 1024
#define CLAUDE_SETTINGS_MAX_RULE 1024

/* Without an old file, old_len is 0. Returns 0: *ret is the text to write. -EACCES: a member is
 * refused, and err names it. -EBADMSG: one of the texts is not JSON. -E2BIG: a limit. */
int claude_settings_check(const char *old, size_t old_len, const char *new, size_t new_len,
	char **ret, size_t *ret_len, struct err *err) MUST_CHECK;
