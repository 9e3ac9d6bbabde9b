/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_text.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/client/cli/when.h"

#define MAX_CELL 320

void audit_text_cell(struct slice text, char *ret, size_t size)
{
	size_t n = MIN(text.n, size - 1);

	for (size_t i = 0; i < n; i++)
		ret[i] = (char)(text.p[i] >= 0x20 && text.p[i] < 0x7f ? text.p[i] : '?');
	ret[n] = '\0';
	if (!n)
		(void)snprintf(ret, size, "-");
}

void audit_text_target(struct slice host, uint64_t port, char *ret, size_t size)
{
	char cell[MAX_CELL];
	bool is_v6 = host.n && memchr(host.p, ':', host.n);

	audit_text_cell(host, cell, sizeof(cell));
	if (!port)
		(void)snprintf(ret, size, "%s", cell);
	else
		(void)snprintf(ret, size, "%s%s%s:%" PRIu64, is_v6 ? "[" : "", cell,
			is_v6 ? "]" : "", port);
}

/* Each byte is the character with that number, as in the log's own \u00xx. */
json_t *audit_text_json(struct slice text)
{
	AUTO_FREE char *utf8 = xmalloc(2 * text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		uint8_t c = text.p[i];

		if (c >= 0x80)
			utf8[n++] = (char)(0xc0 | c >> 6);
		utf8[n++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
	}
	return json_stringn(utf8, n);
}

static void put_text(FILE *out, const char *before, struct slice text, const char *after)
{
	char cell[MAX_CELL];

	if (!text.n)
		return;
	audit_text_cell(text, cell, sizeof(cell));
	(void)fprintf(out, "%s%s%s", before, cell, after);
}

/* Effects are printable ASCII, unless the log was changed. */
static void put_effects(const struct audit_event *ev, FILE *out)
{
	char text[AUDIT_MAX_EFFECTS + 1], hex[2 * AUDIT_DIGEST_LEN + 1] = "";

	put_text(out, " ", ev->hold, "");
	if (!ev->effects.n)
		return;
	audit_text_cell(ev->effects, text, sizeof(text));
	(void)fprintf(out, " does %s", text);
	hex_encode(ev->digest, AUDIT_DIGEST_LEN, hex);
	if (ev->kind == AUDIT_KIND_APPROVAL)
		(void)fprintf(out, " sha256 %s", hex);
}

static void put_event(const struct audit_record *rec, FILE *out)
{
	const struct audit_event *ev = &rec->ev;
	char target[MAX_CELL + 16];

	put_text(out, " ", ev->action, "");
	put_text(out, " ", ev->type, "");
	if (ev->host.n || ev->port) {
		audit_text_target(ev->host, ev->port, target, sizeof(target));
		(void)fprintf(out, " %s", target);
	}
	put_text(out, " ", ev->path, "");
	put_text(out, " ", ev->op, "");
	put_effects(ev, out);
	put_text(out, " rule ", ev->rule, "");
	put_text(out, " (", ev->from, ")");
	put_text(out, ": ", ev->reason, "");
	if (ev->count && ev->kind == AUDIT_KIND_RECOVERED)
		(void)fprintf(out, " (%" PRIu64 " bytes truncated)", ev->count);
	else if (ev->count > 1)
		(void)fprintf(out, " (%" PRIu64 " times)", ev->count);
}

static const char *what_of(const struct audit_event *ev)
{
	return ev->kind == AUDIT_KIND_DECISION ? audit_verdict_name(ev->decision)
					       : audit_kind_name(ev->kind);
}

void audit_text_line(const struct audit_record *rec, FILE *out)
{
	char time[WHEN_TEXT], name[AUDIT_MAX_NAME + 1], hex[2 * AUDIT_KEY_LEN + 1] = "";

	when_print(rec->time_ms, true, time);
	audit_text_cell(rec->name.n ? rec->name : rec->sandbox, name, sizeof(name));
	(void)fprintf(out, "%s %s %s", time, name, what_of(&rec->ev));
	if (rec->ev.kind == AUDIT_KIND_OPEN) {
		hex_encode(rec->key, AUDIT_KEY_LEN, hex);
		(void)fprintf(out, " log of %.*s, key %s", (int)rec->sandbox.n,
			(const char *)rec->sandbox.p, hex);
	} else if (rec->ev.kind == AUDIT_KIND_SEGMENT) {
		(void)fprintf(out, " %" PRIu64, rec->segment);
	} else if (rec->ev.kind == AUDIT_KIND_FORMAT) {
		(void)fprintf(out, " %" PRIu64, rec->version);
	} else if (rec->ev.kind == AUDIT_KIND_HEAD) {
		(void)fprintf(out, " signs the records up to %" PRIu64, rec->seq - 1);
	} else {
		put_event(rec, out);
	}
	(void)fputc('\n', out);
}

void audit_tail_init(struct audit_tail *t, size_t max)
{
	*t = (struct audit_tail){.max = max};
	t->v = xcalloc(max + 1, sizeof(*t->v));
}

void audit_tail_done(struct audit_tail *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].text);
	free(t->v);
	*t = (struct audit_tail){0};
}

static bool is_older(const struct audit_tail_line *a, const struct audit_tail_line *b)
{
	return a->time_ms != b->time_ms ? a->time_ms < b->time_ms : a->order < b->order;
}

static void swap_text(struct audit_tail_line *a, struct audit_tail_line *b)
{
	struct audit_tail_line x = *a;

	*a = *b;
	*b = x;
}

static void sift_down(struct audit_tail *t)
{
	size_t at = 0;

	for (;;) {
		size_t least = at;

		for (size_t c = 2 * at + 1; c <= 2 * at + 2 && c < t->n; c++)
			if (is_older(&t->v[c], &t->v[least]))
				least = c;
		if (least == at)
			return;
		swap_text(&t->v[at], &t->v[least]);
		at = least;
	}
}

static void sift_up(struct audit_tail *t, size_t at)
{
	for (; at > 0 && is_older(&t->v[at], &t->v[(at - 1) / 2]); at = (at - 1) / 2)
		swap_text(&t->v[at], &t->v[(at - 1) / 2]);
}

void audit_tail_add(struct audit_tail *t, const struct audit_record *rec, struct slice line)
{
	struct audit_tail_line new = {.order = t->n_seen++, .n = line.n};

	if (!slice_eq_str(rec->sandbox, t->log)) {
		(void)snprintf(t->log, sizeof(t->log), "%.*s", (int)rec->sandbox.n,
			(const char *)rec->sandbox.p);
		t->latest_ms = 0;
	}
	t->latest_ms = MAX(t->latest_ms, rec->time_ms);
	new.time_ms = t->latest_ms;
	if (t->max == 0 || (t->n == t->max && !is_older(&t->v[0], &new)))
		return;
	if (t->n == t->max) {
		new.text = xrealloc(t->v[0].text, line.n);
		memcpy(new.text, line.p, line.n);
		t->v[0] = new;
		sift_down(t);
		return;
	}
	new.text = xmalloc(line.n);
	memcpy(new.text, line.p, line.n);
	t->v[t->n++] = new;
	sift_up(t, t->n - 1);
}

static int by_age(const void *a, const void *b)
{
	return is_older(a, b) ? -1 : is_older(b, a);
}

void audit_tail_sort(struct audit_tail *t)
{
	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), by_age);
}
