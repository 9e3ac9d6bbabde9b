/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "audit_cmd.h"
#include "audit_logs.h"
#include "audit_text.h"
#include "lib/client/cli/when.h"

#define STANDARD_LIMIT 100
#define MAX_LIMIT 100000

struct show {
	bool json, all;
	uint64_t since_ms;
	struct audit_tail tail;
	bool keep;		  /* into the tail; else print immediately */
	struct audit_record *rec; /* for records from the tail */
	uint64_t n;
};

int audit_cmd_limit(const struct opts *o, size_t standard, size_t *ret, struct err *err)
{
	const char *text = opts_value(o, "limit");
	uint64_t v = standard;

	if (text && str_to_u64(text, 0, MAX_LIMIT, &v) < 0)
		return err_set(
			err, -EINVAL, "invalid --limit '%s': expected 0 to %d", text, MAX_LIMIT);
	*ret = (size_t)v;
	return 0;
}

static void print_show(struct show *s, const struct audit_record *rec, struct slice line)
{
	s->n++;
	if (s->json)
		(void)fwrite(line.p, 1, line.n, stdout);
	else
		audit_text_line(rec, stdout);
}

static bool is_wanted(const struct show *s, const struct audit_record *rec)
{
	enum audit_kind kind = rec->ev.kind;

	return rec->time_ms >= s->since_ms &&
	       (s->all || (kind != AUDIT_KIND_HEAD && kind != AUDIT_KIND_SEGMENT &&
				  kind != AUDIT_KIND_FORMAT));
}

static int on_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct show *s = arg;

	if (!is_wanted(s, rec))
		return 0;
	if (s->keep)
		audit_tail_add(&s->tail, rec, line);
	else
		print_show(s, rec, line);
	return ferror(stdout) ? -EPIPE : 0;
}

static void print_tail(struct show *s)
{
	audit_tail_sort(&s->tail);
	for (size_t i = 0; i < s->tail.n; i++) {
		struct slice line = slice_of(s->tail.v[i].text, s->tail.v[i].n);

		if (audit_record_decode(line, s->rec) == 0)
			print_show(s, s->rec, line);
	}
}

static void say_nothing(const char *ref, const struct show *s)
{
	if (s->json)
		return;
	if (ref)
		printf("No audit records found for %s%s\n", ref, s->since_ms ? " since then" : "");
	else
		printf("No audit records found%s\n", s->since_ms ? " since then" : "");
}

static int show_logs(struct opts *o, struct show *s, size_t limit, struct problem *p)
{
	const char *ref = o->args.n ? o->args.v[0] : NULL;
	AUTO_LOGS struct audit_logs *l = NULL;
	bool follow = opts_has(o, "follow");
	int r, bad = 0;

	r = audit_logs_open(ref, AUDIT_LOGS_JOURNAL | (follow ? AUDIT_LOGS_FOLLOW : 0), &l, p);
	if (r < 0)
		return r;
	s->keep = limit > 0;
	r = audit_logs_read(l, on_record, s, p);
	if (r < 0 && r != -EBADMSG)
		return r;
	bad = r;
	print_tail(s);
	if (s->n == 0 && !follow)
		say_nothing(ref, s);
	s->keep = false;
	return follow ? audit_logs_follow(l, on_record, s, p) : bad;
}

int audit_cmd_show(struct opts *o)
{
	AUTO_FREE struct audit_record *rec = xcalloc(1, sizeof(*rec));
	struct show s = {.json = opts_has(o, "json"), .all = opts_has(o, "all"), .rec = rec};
	const char *since = opts_value(o, "since");
	struct problem p = {0};
	size_t limit = 0;
	int r;

	r = audit_cmd_limit(o, since ? 0 : STANDARD_LIMIT, &limit, &p.err);
	if (r == 0 && since)
		r = when_parse(since, clock_wall_ms(), &s.since_ms, &p.err);
	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "audit show"));
	audit_tail_init(&s.tail, limit);
	r = show_logs(o, &s, limit, &p);
	audit_tail_done(&s.tail);
	return r < 0 && r != -EPIPE ? ui_problem(&p, r) : EXIT_OK;
}
