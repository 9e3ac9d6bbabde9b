/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the keeper, and what the clerk reports to it. */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

void session_init(struct session *s)
{
	*s = (struct session){.edge_fd = -1, .line_fd = -1, .given_fd = -1};
	canon_reader_init(&s->edge_frames);
	canon_reader_init(&s->line_frames);
	arena_init(&s->arena, HTTP_ARENA_SIZE);
	gitadvert_init(&s->advert);
}

void session_done(struct session *s)
{
	clerk_free(&s->clerk);
	line_close(s);
	fd_close(&s->edge_fd);
	fd_close(&s->given_fd);
	canon_reader_done(&s->edge_frames);
	out_done(&s->to_edge);
	arena_done(&s->arena);
	free(s->list);
	free(s->head);
	free(s->answer);
	free(s->need);
	free(s->records);
	loop_done(&s->loop);
}

void session_end(struct session *s)
{
	if (s->control.done)
		return;
	/* without room the keeper sees that the process has exited */
	(void)!chan_send_plain(CONTROL_FD, CLERK_DONE, 0, -1);
	control_quit(&s->control, CONTROL_EXIT_OK);
}

/* ---- what the push does ---- */

static void on_request(void *arg, struct slice body)
{
	struct session *s = arg;

	line_need(s, body);
	s->is_want_due = true;
}

static void on_effect(void *arg, const struct clerk_effect *e)
{
	struct session *s = arg;
	uint8_t buf[CLERK_MAX_REF + CLERK_MAX_PATH + 16];
	struct wr wr = wr_init(buf, sizeof(buf));

	clerk_put_effect(&wr, e);
	if (wr.bad || s->n_effects == CLERK_MAX_EFFECTS ||
		wr.n > SESSION_MAX_RECORDS - s->n_records) {
		session_fail(s, "the push changes too many files");
		return;
	}
	s->records = xrealloc(s->records, s->n_records + wr.n);
	memcpy(s->records + s->n_records, buf, wr.n);
	s->n_records += wr.n;
	s->n_effects++;
}

static void on_preview(void *arg, struct slice text)
{
	struct session *s = arg;

	(void)snprintf(s->judged.preview, sizeof(s->judged.preview), "%.*s", (int)text.n,
		(const char *)text.p);
}

void session_fail(struct session *s, const char *why)
{
	if (s->judged.is_unknown)
		return;
	s->judged.is_unknown = true;
	(void)snprintf(s->judged.text, sizeof(s->judged.text), "%.120s%s%.240s", why,
		s->why_not[0] ? ": " : "", s->why_not);
	str_make_printable(s->judged.text);
}

static void on_unknown(void *arg, const char *why)
{
	session_fail(arg, why);
}

static void on_judged(void *arg)
{
	struct session *s = arg;

	s->is_judged = true;
}

static const struct clerk_sink sink = {.request = on_request,
	.effect = on_effect,
	.preview = on_preview,
	.unknown = on_unknown,
	.judged = on_judged};

/* Whole records, as many as a message has room for. */
static struct slice next_records(const struct session *s)
{
	struct slice all = slice_of(s->records + s->records_at, s->n_records - s->records_at);
	struct slice rest = all;
	struct clerk_effect e;

	while (rest.n > 0) {
		struct slice before = rest;

		if (clerk_next_effect(&rest, &e) < 1)
			break;
		if (all.n - rest.n > IPC_MAX_BODY) {
			rest = before;
			break;
		}
	}
	return slice_of(all.p, all.n - rest.n);
}

static void report_judged(struct session *s)
{
	while (!s->judged.is_unknown && s->records_at < s->n_records) {
		struct slice some = next_records(s);

		if (!control_sent(&s->control, clerk_send_effects(CONTROL_FD, some)))
			return;
		s->records_at += some.n;
	}
	clerk_hash(s->clerk, s->judged.commands);
	if (control_sent(&s->control, clerk_send_judged(CONTROL_FD, &s->judged)))
		s->is_report_due = false;
}

static void report_want(struct session *s)
{
	char named[CANON_NAMED_MAX + 1];

	if (line_get_named(s, named) < 0) {
		s->is_want_due = false;
		line_not_given(s);
		return;
	}
	if (control_sent(&s->control, clerk_send_want(CONTROL_FD, named)))
		s->is_want_due = false;
}

void session_report(struct session *s)
{
	if (s->is_judged && s->is_ended) {
		s->is_judged = false;
		s->is_report_due = true;
	}
	if (s->is_want_due)
		report_want(s);
	if (s->is_report_due)
		report_judged(s);
}

/* ---- messages ---- */

static int on_config(struct session *s, struct ipc_msg *msg)
{
	int r = chan_get_plain(&clerk_chan, msg, CLERK_CONFIG);

	return r < 0 ? r : fd_load(msg->fd, AUTORUN_MAX_TEXT, &s->list, &s->n_list);
}

static int on_open(struct session *s, struct ipc_msg *msg)
{
	struct clerk_sink to = sink;
	struct clerk_config config;
	struct err err = {0};
	int r = clerk_get_open(msg, &s->open);

	if (r < 0)
		return r;
	to.arg = s;
	config = (struct clerk_config){
		.paths = s->open.paths, .files = s->open.files, .max_bytes = s->open.max_bytes};
	s->clerk = clerk_new(&config, &to);
	if (s->n_list > 0)
		r = clerk_set_list(s->clerk, slice_of(s->list, s->n_list), &err);
	return r < 0 ? r : edge_open(s, TAKE_FD(msg->fd));
}

static int on_line(struct session *s, struct ipc_msg *msg)
{
	struct clerk_line line;
	int r = clerk_get_line(msg, &line);

	if (r < 0 || !s->need || s->line_fd >= 0)
		return -EBADMSG;
	if (line.given) {
		line_on_given(s, TAKE_FD(msg->fd));
		return 0;
	}
	(void)snprintf(s->why_not, sizeof(s->why_not), "%s", line.text);
	line_not_given(s);
	return 0;
}

static int on_decided(struct session *s, struct ipc_msg *msg)
{
	static struct clerk_decided decided;
	int r = clerk_get_decided(msg, &decided);

	if (r < 0 || s->line_fd >= 0)
		return -EBADMSG;
	if (!decided.allowed)
		edge_refuse(s, &decided);
	else if (!s->is_ended)
		s->given_fd = TAKE_FD(msg->fd);
	else
		line_send(s, TAKE_FD(msg->fd));
	return 0;
}

static int on_message(void *ctx, struct ipc_msg *msg)
{
	static int (*const answers[CLERK_N_MSGS])(struct session * s, struct ipc_msg * msg) = {
		[CLERK_CONFIG] = on_config,
		[CLERK_OPEN] = on_open,
		[CLERK_LINE] = on_line,
		[CLERK_DECIDED] = on_decided,
	};

	return msg->type < CLERK_N_MSGS && answers[msg->type] ? answers[msg->type](ctx, msg)
							      : -EBADMSG;
}

static void on_room(void *ctx)
{
	session_report(ctx);
}

const struct control_ops session_control = {.chan = &clerk_chan,
	.ev = SESSION_EV_CONTROL,
	.burst = 1,
	.on_message = on_message,
	.on_room = on_room};
