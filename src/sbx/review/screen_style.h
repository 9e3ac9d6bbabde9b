/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen_style - the color of a line of a diff.
 *
 * How      By the first character of the line.
 * Trust    Any bytes.
 * See      lib/client/tui/tui.h
 */
#pragma once

#include "lib/client/tui/tui.h"

enum tui_style screen_style_of(struct slice line);
