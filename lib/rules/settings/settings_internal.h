/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_internal - shared by the files of lib/rules/settings and their tests only.
 *
 * How      settings_rewrite gives the new text of the file: the key's line replaced, removed or
 *          added at the end, every other byte as it was.
 * Trust    As settings.h.
 */
#pragma once

#include "settings.h"

/* On the heap. */
char *settings_rewrite(struct slice old, const char *key, const char *value);
