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

static enum lasting_kind kind_of_use(const struct audit_event *ev)
{
	if (ev->decision != AUDIT_ALLOW)
		return LASTING_NONE;
	if (slice_eq_str(ev->action, "keep"))
		return LASTING_TOKEN;
	return slice_eq_str(ev->action, "use") ? LASTING_CREDENTIAL : LASTING_NONE;
}

/* Records of sbxd's own log. */
static enum lasting_kind kind_of_host(const struct audit_event *ev)
{
	if (slice_eq_str(ev->action, "stage-apply"))
		return LASTING_APPLY;
	if (slice_eq_str(ev->action, "stage-undo"))
		return LASTING_UNDO;
	return slice_eq_str(ev->action, "publish") ? LASTING_PORT : LASTING_NONE;
}

static enum lasting_kind kind_of_event(const struct audit_event *ev)
{
	switch (ev->kind) {
	case AUDIT_KIND_DECISION:
		return kind_of_decision(ev);
	case AUDIT_KIND_SIGNATURE:
		return ev->decision == AUDIT_ALLOW ? LASTING_SIGNATURE : LASTING_NONE;
	case AUDIT_KIND_CREDENTIAL_USE:
		return kind_of_use(ev);
	case AUDIT_KIND_LIFECYCLE:
	case AUDIT_KIND_POLICY_CHANGE:
		return kind_of_host(ev);
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
		[LASTING_APPLY] = "applied files",
		[LASTING_UNDO] = "undone apply",
		[LASTING_PORT] = "published port",
		[LASTING_CREDENTIAL] = "credential use",
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

/* The field of a record that is the operation. */
static struct slice what_of(enum lasting_kind kind, const struct audit_event *ev)
{
	if (kind == LASTING_TOKEN || kind == LASTING_CREDENTIAL)
		return ev->rule;
	if (kind == LASTING_PORT || (kind == LASTING_APPLY && !ev->op.n))
		return ev->reason;
	return ev->op;
}

/* The count of a credential is that of values in a response. */
static uint64_t count_of(enum lasting_kind kind, const struct audit_event *ev)
{
	return ev->count > 1 && kind != LASTING_CREDENTIAL ? ev->count : 1;
}

static struct lasting_row *find_row(
	struct lasting *l, enum lasting_kind kind, const char *target, const char *what)
{
	for (size_t i = 0; i < l->n && kind != LASTING_APPLY; i++) {
		struct lasting_row *r = &l->rows[i];

		if (r->kind == kind && strcmp(r->target, target) == 0 && strcmp(r->what, what) == 0)
			return r;
	}
	return NULL;
}

void lasting_add(struct lasting *l, const struct audit_event *ev)
{
	enum lasting_kind kind = kind_of_event(ev);
	AUTO_FREE char *target = NULL, *what = NULL;
	uint64_t count = count_of(kind, ev);
	struct lasting_row *same;

	if (kind == LASTING_NONE)
		return;
	target = target_of(ev);
	what = text_of(what_of(kind, ev));
	same = find_row(l, kind, target, what);
	if (same) {
		same->count += count;
		return;
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
