/* SPDX-License-Identifier: Apache-2.0 */
#include "plain.h"

#include <string.h>

#include "ui.h"

void plain_flush(struct plain *p, FILE *out)
{
	if (p->n == 0)
		return;
	p->line[p->n] = '\0';
	ui_clean(p->line);
	(void)fputs(p->line, out);
	p->n = 0;
}

static void end_line(struct plain *p, FILE *out)
{
	plain_flush(p, out);
	(void)fputc('\n', out);
	p->returned = false;
}

static void put_plain(struct plain *p, char c, FILE *out)
{
	if (p->n == PLAIN_MAX_LINE)
		plain_flush(p, out);
	p->line[p->n++] = c;
}

static void text_plain(struct plain *p, char c, FILE *out)
{
	if (c == '\n') {
		end_line(p, out);
		return;
	}
	/* What follows is drawn over the line. */
	if (p->returned && c != '\r' && p->n > 0)
		end_line(p, out);
	p->returned = c == '\r';
	if (c == '\t')
		put_plain(p, ' ', out);
	else if ((unsigned char)c >= 0x20 && c != 0x7f)
		put_plain(p, c, out);
}

static enum plain_state behind_escape(char c)
{
	if (c == '[')
		return PLAIN_SEQUENCE;
	if (strchr("]P_^X", c))
		return PLAIN_STRING;
	return strchr("()*+-./#% ", c) ? PLAIN_CHARSET : PLAIN_TEXT;
}

static void feed_one(struct plain *p, char c, FILE *out)
{
	if (c == 0x1b) {
		p->state = p->state == PLAIN_STRING ? PLAIN_STRING_END : PLAIN_ESCAPE;
		return;
	}
	switch (p->state) {
	case PLAIN_TEXT:
		text_plain(p, c, out);
		break;
	case PLAIN_ESCAPE:
		p->state = c ? behind_escape(c) : PLAIN_TEXT;
		break;
	case PLAIN_SEQUENCE:
		if (c >= 0x40 && c <= 0x7e)
			p->state = PLAIN_TEXT;
		break;
	case PLAIN_STRING:
		if (c == 0x07)
			p->state = PLAIN_TEXT;
		break;
	case PLAIN_STRING_END:
		p->state = c == '\\' ? PLAIN_TEXT : PLAIN_STRING;
		break;
	case PLAIN_CHARSET:
		p->state = PLAIN_TEXT;
		break;
	}
}

void plain_feed(struct plain *p, struct slice bytes, FILE *out)
{
	for (size_t i = 0; i < bytes.n; i++)
		feed_one(p, (char)bytes.p[i], out);
}
