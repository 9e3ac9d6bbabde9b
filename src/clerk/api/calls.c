/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/clerk/clerk_call.h"
#include "selftest.h"

static struct calls *calls_of(const struct session *s)
{
	return s->own;
}

/* ---- effects ---- */

size_t calls_record(const struct pack_effect *e, uint8_t *buf)
{
	struct clerk_call call = {.type = CLERK_UNKNOWN};
	struct wr wr = wr_init(buf, CALLS_RECORD);

	if (e->row) {
		call.type = CLERK_QUERY;
		while (call.type < CLERK_UNKNOWN &&
			!slice_eq_str(e->row->method, clerk_call_name(call.type)))
			call.type++;
		call.field = e->row->field;
		call.object = slice_from_str(e->object);
	}
	/* such a row or object is not understood */
	if (call.type == CLERK_UNKNOWN || call.field.n > CLERK_MAX_FIELD || call.object.n == 0)
		call = (struct clerk_call){.type = CLERK_UNKNOWN};
	clerk_put_call(&wr, &call);
	return wr.bad ? 0 : wr.n;
}

void calls_preview(const struct pack_effects *effects, char *ret)
{
	struct wr wr = wr_init(ret, CLERK_MAX_PREVIEW);

	for (size_t i = 0; i < effects->n && !wr.bad; i++) {
		const struct pack_effect *e = &effects->v[i];
		size_t before = wr.n;

		if (e->row)
			wr_printf(&wr, "%s\n", e->say[0] ? e->say : e->object);
		else
			wr_printf(&wr, "unknown: %s\n", e->why);
		if (wr.bad)
			wr.n = before;
	}
	ret[wr.n] = '\0';
}

static void put_effects(struct session *s, const struct pack_effects *effects)
{
	uint8_t buf[CALLS_RECORD];

	for (size_t i = 0; i < effects->n; i++) {
		const struct pack_effect *e = &effects->v[i];

		session_add(s, slice_of(buf, calls_record(e, buf)));
		if (!e->row && !s->judged.text[0])
			(void)snprintf(s->judged.text, sizeof(s->judged.text), "%s", e->why);
	}
	calls_preview(effects, s->judged.preview);
}

/* The head is that of the request which is sent. */
static void judge_calls(struct session *s)
{
	static struct pack_effects effects;
	struct calls *c = calls_of(s);
	struct pack_request req = {.method = s->req.method,
		.query = s->req.query,
		.headers = &s->req.headers,
		.body = c->body,
		.has_body = true};

	sha256(c->body, s->judged.commands);
	if (c->is_long) {
		session_fail(s, "the body is too long to be read");
	} else if (canon_normal_path(s->req.path, &s->arena, &req.path, &req.odd) < 0) {
		session_fail(s, "the path has no canonical form");
	} else {
		pack_match_all(&c->pack, &req, &effects);
		put_effects(s, &effects);
	}
	session_judge(s);
}

/* ---- the request ---- */

static int open_calls(struct session *s, struct slice pack)
{
	struct calls *c = xcalloc(1, sizeof(*c));
	struct err err = {0};

	s->own = c;
	c->max = s->open.max_bytes;
	return pack_parse_calls(pack, "pack", &c->pack, &err);
}

static void close_calls(struct session *s)
{
	struct calls *c = TAKE(s->own);

	if (!c)
		return;
	pack_done(&c->pack);
	free((void *)c->body.p);
	free(c);
}

static void ignore_head(struct session *s)
{
}

static void take_body(struct session *s, struct slice data)
{
	struct calls *c = calls_of(s);
	uint8_t *p = (uint8_t *)c->body.p;

	c->is_long = c->is_long || data.n > c->max - c->body.n;
	if (c->is_long || data.n == 0)
		return;
	if (data.n > c->room - c->body.n) {
		c->room = MIN(c->max, MAX(2 * c->room, c->body.n + data.n));
		p = xrealloc(p, c->room);
	}
	memcpy(p + c->body.n, data.p, data.n);
	c->body = slice_of(p, c->body.n + data.n);
}

static void get_body(struct session *s, struct slice ret[2])
{
	ret[0] = calls_of(s)->body;
	ret[1] = slice_of(NULL, 0);
}

static int skip_call(struct slice *records)
{
	struct clerk_call call;

	return clerk_next_call(records, &call);
}

/* ---- the refusal ---- */

/* In quotes; the text of the keeper is printable, with line ends. */
static void put_string(const char *text, session_out *out, void *arg)
{
	uint8_t buf[CLERK_MAX_REPORT * 2];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct slice rest = slice_trim(slice_from_str(text));

	for (size_t i = 0; i < rest.n; i++) {
		if (rest.p[i] == '\n')
			wr_printf(&wr, "\\n");
		else if (rest.p[i] == '"' || rest.p[i] == '\\')
			wr_printf(&wr, "\\%c", rest.p[i]);
		else
			wr_u8(&wr, rest.p[i] >= ' ' && rest.p[i] <= '~' ? rest.p[i] : '?');
	}
	out(arg, slice_of(buf, wr.n));
}

void calls_refusal(const char *text, const char *why, session_out *out, void *arg)
{
	static const char
		begin[] = "{\"data\":null,\"errors\":[{\"message\":\"",
		middle[] = "\",\"extensions\":{\"code\":\"FORBIDDEN\",\"sbx\":{\"reason\":\"",
		end[] = "\"}}}]}\n";

	out(arg, slice_from_str(begin));
	put_string(text, out, arg);
	out(arg, slice_from_str(middle));
	put_string(why, out, arg);
	out(arg, slice_from_str(end));
}

static const char *refuse_calls(struct session *s, const struct clerk_decided *why)
{
	calls_refusal(why->report[0] ? why->report : why->why, why->why, session_answer, s);
	return "application/json";
}

const struct session_program calls_program = {.name = "sbx-clerk",
	.too_much = "the request has too many effects",
	.profile = JAIL_CLERK,
	.selftest = calls_selftest,
	.open = open_calls,
	.close = close_calls,
	.head = ignore_head,
	.body = take_body,
	.end = judge_calls,
	.get_body = get_body,
	.refuse = refuse_calls,
	.skip = skip_call};
