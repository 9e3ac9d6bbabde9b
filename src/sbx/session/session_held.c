/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_held - shows in the title of the terminal that requests of the sandbox wait for approval.
 *
 * How      Every SESSION_HELD_MS the caller's session_link.held is asked for their number. The
 *          title is set, with one bell when the number grows, and set back when none waits. This is
 *          written between two characters or escape sequences of the program, never inside one, and
 *          nothing is written on the screen.
 * Trust    The number comes from sbxd. No text of the guest is in the title.
 */
#include "session_live.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define SAVE_TITLE "\033[22;2t"
#define LAST_TITLE "\033[23;2t"

/* Bytes of UTF-8 that are missing after this output. */
static unsigned missing_bytes(unsigned missing, struct slice out)
{
	for (size_t i = 0; i < out.n; i++) {
		uint8_t c = out.p[i];

		if (c >= 0xc0)
			missing = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
		else if (c >= 0x80 && missing)
			missing--;
		else
			missing = 0;
	}
	return missing;
}

void live_track(struct live *l, struct slice out)
{
	screen_track(&l->screen, out);
	l->n_missing = missing_bytes(l->n_missing, out);
}

bool live_shows_held(const struct live *l)
{
	return l->s->tty && live_is_kept(l) && l->s->link && l->s->link->held && l->started &&
	       !l->ended;
}

void live_show_held(struct live *l)
{
	char text[128];
	int n;

	if (!live_shows_held(l) || clock_mono_ms() < l->held_ms)
		return;
	l->held_ms = clock_mono_ms() + SESSION_HELD_MS;
	if (l->n_missing || screen_is_inside(&l->screen) || bufq_len(&l->to_out))
		return;
	n = l->s->link->held(l->s->link->ctx);
	if (n < 0 || n == l->n_held)
		return;
	if (n)
		(void)snprintf(text, sizeof(text),
			"%s\033]2;sbx: %d request%s for approval\033\\%s",
			l->n_held ? "" : SAVE_TITLE, n, n == 1 ? " waits" : "s wait",
			n > l->n_held ? "\a" : "");
	else
		(void)snprintf(text, sizeof(text), LAST_TITLE);
	(void)bufq_put(&l->to_out, slice_from_str(text));
	l->n_held = n;
}

void live_hide_held(const struct live *l)
{
	if (l->n_held)
		(void)!write(l->s->out_fd, LAST_TITLE, strlen(LAST_TITLE));
}
