/* SPDX-License-Identifier: Apache-2.0 */
/*
 * browser - starts the user's browser with a URL.
 *
 * How      The program is the first one of $BROWSER, else xdg-open if there is a display. It is
 *          executed with an argument vector, without a shell, in its own session, with /dev/null as
 *          its terminal. A name is searched for in the directories of PATH that root alone can
 *          change (search_path.h).
 * Trust    The user's environment. The URL was parsed (lib/rules/url/url.h): it begins with http.
 * Owns     Nothing: the browser outlives sbx.
 * Limits   BROWSER_MAX_WORDS. BROWSER_WAIT_MS in which a failure is noticed.
 * Never    Is called before the user has said yes to this URL.
 * See      browser_test.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define BROWSER_MAX_WORDS 16
#define BROWSER_WAIT_MS 3000

struct browser {
	char *words; /* one block */
	char *argv[BROWSER_MAX_WORDS + 2];
};

/* value: of $BROWSER, or NULL. False: there is none, the user has to open the link. */
bool browser_choose(struct browser *b, const char *value, bool has_display, const char *url);
void browser_done(struct browser *b);
/* Whether the environment has a display. */
bool browser_has_display(void);
int browser_start(const struct browser *b, struct err *err) MUST_CHECK;
