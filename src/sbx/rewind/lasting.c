/* SPDX-License-Identifier: Apache-2.0 */
#include "lasting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/mem.h"
#include "src/sbx/audit/audit.h"

#define MAX_CELL 320
#define PUSH_PATH "/git-receive-pack"

/* Methods that do not change a server that follows HTTP. */
static bool is_reading(struct slice op)
{
	static const char *const methods[] = {"GET ", "HEAD ", "OPTIONS "};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		size_t n = strlen(methods[i]);

		if (op.n >= n && memcmp(op.p, methods[i], n) == 0)
			return true;
	}
	return false;
}

static bool ends_in(struct slice s, const char *end)
{
	size_t n = strlen(end);

	return s.n >= n && memcmp(s.p + s.n - n, end, n) == 0;
}

static enum lasting_kind kind_of_decision(const struct audit_event *ev)
{
	if (ev->decision != AUDIT_ALLOW)
		return LASTING_NONE;
	if (slice_eq_str(ev->action, AUDIT_ACTION_GUARD))
		return LASTING_FILE;
	if (slice_eq_str(ev->type, "dns"))
		return LASTING_NONE;
	/* "forward" without a request: intercepted, and its requests have records. */
	if (!ev->op.n)
		return slice_eq_str(ev->path, "forward") ? LASTING_NONE : LASTING_CONNECTION;
	if (is_reading(ev->op))
		return LASTING_NONE;
	return ends_in(ev->op, PUSH_PATH) ? LASTING_PUSH : LASTING_REQUEST;
}

static enum lasting_kind kind_of_event(const struct audit_event *ev)
{
	switch (ev->kind) {
	case AUDIT_KIND_DECISION:
		return kind_of_decision(ev);
	case AUDIT_KIND_SIGNATURE:
		return ev->decision == AUDIT_ALLOW ? LASTING_SIGNATURE : LASTING_NONE;
	case AUDIT_KIND_CREDENTIAL_USE:
		return ev->decision == AUDIT_ALLOW && slice_eq_str(ev->action, "keep")
			       ? LASTING_TOKEN
			       : LASTING_NONE;
	default:
		return LASTING_NONE;
	}
}

const char *lasting_word(enum lasting_kind kind)
{
	static const char *const words[LASTING_N_KINDS] = {
		[LASTING_NONE] = "",
		[LASTING_PUSH] = "git push",
		[LASTING_REQUEST] = "request",
		[LASTING_CONNECTION] = "connection",
		[LASTING_SIGNATURE] = "signature",
		[LASTING_TOKEN] = "stored token",
		[LASTING_FILE] = "workspace file",
	};

	return kind < LASTING_N_KINDS ? words[kind] : "";
}

static char *text_of(struct slice s)
{
	char cell[MAX_CELL];

	if (!s.n)
		return xstrdup("");
	audit_text_cell(s, cell, sizeof(cell));
	return xstrdup(cell);
}

static char *target_of(const struct audit_event *ev)
{
	char text[MAX_CELL + 16];

	if (!ev->host.n)
		return xstrdup("");
	audit_text_target(ev->host, ev->port, text, sizeof(text));
	return xstrdup(text);
}

void lasting_add(struct lasting *l, const struct audit_event *ev)
{
	enum lasting_kind kind = kind_of_event(ev);
	AUTO_FREE char *target = NULL, *what = NULL;
	uint64_t count = ev->count > 1 ? ev->count : 1;

	if (kind == LASTING_NONE)
		return;
	target = target_of(ev);
	what = text_of(kind == LASTING_TOKEN ? ev->rule : ev->op);
	for (size_t i = 0; i < l->n; i++) {
		struct lasting_row *r = &l->rows[i];

		if (r->kind == kind && strcmp(r->target, target) == 0 &&
			strcmp(r->what, what) == 0) {
			r->count += count;
			return;
		}
	}
	if (l->n == LASTING_MAX) {
		l->more += count;
		return;
	}
	l->rows = xrealloc(l->rows, (l->n + 1) * sizeof(*l->rows));
	l->rows[l->n++] = (struct lasting_row){
		.kind = kind, .target = TAKE(target), .what = TAKE(what), .count = count};
}

void lasting_done(struct lasting *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->rows[i].target);
		free(l->rows[i].what);
	}
	free(l->rows);
	*l = (struct lasting){0};
}
