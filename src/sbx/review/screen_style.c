/* SPDX-License-Identifier: Apache-2.0 */
#include "screen_style.h"

enum tui_style screen_style_of(struct slice line)
{
	switch (line.n ? line.p[0] : 0) {
	case '+':
		return TUI_GREEN;
	case '-':
		return TUI_RED;
	case '@':
		return TUI_CYAN;
	default:
		return TUI_PLAIN;
	}
}
