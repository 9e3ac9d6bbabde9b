/* SPDX-License-Identifier: Apache-2.0 */
/* What a person reads. The texts are printable ASCII in one line each (notify_chan.h), so the guest
 * chooses no line break and no direction of writing; a quoted line begins with a bar. */
#include "notify.h"

#include <stdio.h>
#include <string.h>

struct out {
	char *p;
	size_t n;
};

static void add_text(struct out *o, const char *s)
{
	size_t n = MIN(strlen(s), TEXT_MAX - 1 - o->n);

	memcpy(o->p + o->n, s, n);
	o->n += n;
	o->p[o->n] = '\0';
}

/* An escape is never cut. */
static void add_quoted(struct out *o, const char *s, size_t most)
{
	for (size_t i = 0; i < most && s[i]; i++) {
		const char one[2] = {s[i], '\0'};
		const char *text = s[i] == '&'	 ? "&amp;"
				   : s[i] == '<' ? "&lt;"
				   : s[i] == '>' ? "&gt;"
						 : one;

		if (strlen(text) < TEXT_MAX - o->n)
			add_text(o, text);
	}
}

/* The title is plain text in every service. */
void text_title(const struct notify_show *show, char ret[TEXT_MAX])
{
	(void)snprintf(ret, TEXT_MAX, "sbx: %s waits for approval", show->sandbox);
}

/* Escaped for each service: dunst reads markup also if it does not report the capability. */
void text_body(const struct notify_show *show, char ret[TEXT_MAX])
{
	size_t n = strlen(show->effect);
	struct out o = {.p = ret};
	char more[96] = "";

	add_text(&o, "| ");
	add_quoted(&o, show->effect, TEXT_MAX_EFFECT);
	if (n > TEXT_MAX_EFFECT)
		(void)snprintf(
			more, sizeof(more), "... (%zu more characters)", n - TEXT_MAX_EFFECT);
	add_text(&o, more);
	if (show->more) {
		(void)snprintf(more, sizeof(more), "\nand %u more", show->more);
		add_text(&o, more);
	}
	add_text(&o, "\nTo decide, type: sbx approve ");
	add_quoted(&o, show->hold, NOTIFY_MAX_HOLD);
}
