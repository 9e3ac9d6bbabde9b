/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open - `sbx open`: links that a sandbox asks the user to open.
 *
 * How      The keeper keeps a link like a request for approval (src/sbx/policy/hold_answer.h).
 *          link.h is a link as the user sees it, browser.h starts the browser.
 * Trust    Links are text of a guest: lib/rules/url parses them again here.
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_open;
