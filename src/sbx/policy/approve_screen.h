/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approve_screen - the full-screen list of requests that wait for approval.
 *
 * How      The list is read again every APPROVE_TICK_MS. A row keeps its place until the view is
 *          closed, so that a key never means another request than the one on the screen. Each
 *          answer is confirmed by `y`, and the list does not change meanwhile.
 * Trust    As hold_text.h.
 * See      lib/client/tui/tui.h
 */
#pragma once

#include "lib/base/err.h"

#define APPROVE_TICK_MS 1000

int approve_screen_run(struct err *err) MUST_CHECK;
