/* SPDX-License-Identifier: Apache-2.0 */
#include "top_log.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/cli/when.h"
#include "src/sbx/audit/audit.h"

#define MAX_CELL 320
#define NO_RULE "no applicable policies for op(" /* of a request that no rule allows */

/* ---- reading ---- */

void top_log_done(struct top_log *l)
{
	audit_reader_close(l->reader);
	audit_view_free(l->view);
	*l = (struct top_log){0};
}

static int open_log(struct top_log *l, const char *id, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "audit");
	struct audit_expect expect = {.flags = AUDIT_CHAIN_PLAIN, .fn = audit_view_on_record};

	top_log_done(l);
	(void)snprintf(l->id, sizeof(l->id), "%s", id);
	l->view = audit_view_new(TOP_LOG_ROWS);
	expect.arg = l->view;
	return audit_reader_open(dir, id, &expect, &l->reader, err);
}

void top_log_read(struct top_log *l, const char *id)
{
	struct err err = {0};
	int r = 0;

	if (!l->reader || strcmp(l->id, id) != 0)
		r = open_log(l, id, &err);
	if (r == 0)
		r = audit_reader_pump(l->reader, &err);
	l->fault[0] = '\0';
	if (r == 0)
		return;
	/* Before its first record a sandbox has no log. */
	if (r != -ENOENT)
		(void)snprintf(l->fault, sizeof(l->fault), "%s", err_text(&err, r));
	audit_reader_close(l->reader);
	l->reader = NULL;
}

/* ---- printing ---- */

struct printing {
	FILE *f;
	enum audit_verdict which;
	struct top_log_hosts *hosts;
	size_t n;
};

/* A name or an address, and no pattern or list. */
static bool is_plain_host(struct slice host)
{
	bool is_v6 = host.n && memchr(host.p, ':', host.n);

	for (size_t i = 0; i < host.n; i++)
		if (!(is_v6 ? isxdigit(host.p[i]) || host.p[i] == ':' || host.p[i] == '.'
			    : isalnum(host.p[i]) ||
					    (i > 0 && (host.p[i] == '.' || host.p[i] == '-' ||
							      host.p[i] == '_'))))
			return false;
	return host.n > 0;
}

/* The number of a host, or 0. */
static size_t number_host(struct top_log_hosts *h, const struct audit_view_row *row)
{
	char target[TOP_LOG_HOST];

	if (!is_plain_host(row->text[AUDIT_VIEW_HOST]) || !row->port)
		return 0;
	audit_text_target(row->text[AUDIT_VIEW_HOST], row->port, target, sizeof(target));
	for (size_t i = 0; i < h->n; i++)
		if (strcmp(h->v[i], target) == 0)
			return i + 1;
	if (h->n == TOP_LOG_HOSTS)
		return 0;
	memcpy(h->v[h->n++], target, sizeof(target));
	return h->n;
}

static int print_decision(void *arg, const struct audit_view_row *row)
{
	struct printing *p = arg;
	char target[MAX_CELL + 16], reason[MAX_CELL], seen[WHEN_TEXT], number = ' ';
	size_t at;

	if (row->decision != p->which)
		return 0;
	at = p->which == AUDIT_DENY ? number_host(p->hosts, row) : 0;
	if (at)
		number = (char)('0' + at);
	audit_text_target(row->text[AUDIT_VIEW_HOST], row->port, target, sizeof(target));
	audit_text_cell(row->text[p->which == AUDIT_DENY ? AUDIT_VIEW_REASON : AUDIT_VIEW_RULE],
		reason, sizeof(reason));
	if (str_starts(reason, NO_RULE))
		(void)snprintf(reason, sizeof(reason), "no rule allows it");
	when_print(row->last_seen_ms, false, seen);
	(void)fprintf(p->f, " %c %-34s %.8s %6" PRIu64 "x  %s\n", number, target, seen + 11,
		row->count, reason);
	p->n++;
	return 0;
}

static void print_verdict(FILE *f, const struct top_log *l, enum audit_verdict which,
	const char *title, struct top_log_hosts *hosts)
{
	struct printing p = {.f = f, .which = which, .hosts = hosts};

	(void)fprintf(f, "%s\n", title);
	if (audit_view_each(l->view, 0, print_decision, &p) == 0 && p.n == 0)
		(void)fprintf(f, "   none\n");
}

void top_log_print(FILE *f, const struct top_log *l, struct top_log_hosts *ret)
{
	ret->n = 0;
	if (l->fault[0])
		(void)fprintf(f, "The log cannot be read: %s\n\n", l->fault);
	if (!l->view)
		return;
	print_verdict(f, l, AUDIT_DENY,
		"Denied, last first. A number allows the host for 30 minutes.", ret);
	print_verdict(f, l, AUDIT_ALLOW, "\nAllowed", ret);
}
