/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the keeper, and what the clerk reports to it. */
#include "session_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/wire/http/canon/canon_named.h"

#define MAX_CONFIG (2u << 20)

static void session_init(struct session *s, const struct session_program *program)
{
	*s = (struct session){.program = program, .edge_fd = -1, .line_fd = -1, .given_fd = -1};
	canon_reader_init(&s->edge_frames);
	canon_reader_init(&s->line_frames);
	arena_init(&s->arena, HTTP_ARENA_SIZE);
}

static void session_done(struct session *s)
{
	s->program->close(s);
	line_close(s);
	fd_close(&s->edge_fd);
	fd_close(&s->given_fd);
	canon_reader_done(&s->edge_frames);
	out_done(&s->to_edge);
	arena_done(&s->arena);
	free(s->config);
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

/* ---- what the request does ---- */

void session_want(struct session *s, struct slice body)
{
	free(s->need);
	s->need = xmalloc(body.n);
	memcpy(s->need, body.p, body.n);
	s->n_need = body.n;
	s->is_want_due = true;
}

void session_add(struct session *s, struct slice record)
{
	if (s->n_effects == CLERK_MAX_EFFECTS || record.n == 0 || record.n > IPC_MAX_BODY ||
		record.n > SESSION_MAX_RECORDS - s->n_records) {
		session_fail(s, s->program->too_much);
		return;
	}
	s->records = xrealloc(s->records, s->n_records + record.n);
	memcpy(s->records + s->n_records, record.p, record.n);
	s->n_records += record.n;
	s->n_effects++;
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

void session_judge(struct session *s)
{
	s->is_judged = true;
}

/* Whole records, as many as a message has room for. */
static struct slice next_records(const struct session *s)
{
	struct slice all = slice_of(s->records + s->records_at, s->n_records - s->records_at);
	struct slice rest = all;

	while (rest.n > 0) {
		struct slice before = rest;

		if (s->program->skip(&rest) < 1)
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

	return r < 0 ? r : fd_load(msg->fd, MAX_CONFIG, &s->config, &s->n_config);
}

static int on_open(struct session *s, struct ipc_msg *msg)
{
	int r = clerk_get_open(msg, &s->open);

	if (r == 0)
		r = s->program->open(s, slice_of(s->config, s->n_config));
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

static const struct control_ops session_control = {.chan = &clerk_chan,
	.ev = SESSION_EV_CONTROL,
	.burst = 1,
	.on_message = on_message,
	.on_room = on_room};

/* ---- the program ---- */

static void dispatch_event(struct session *s, const struct loop_event *ev)
{
	switch ((enum session_ev)ev->key.kind) {
	case SESSION_EV_CONTROL:
		control_on_event(&s->control, ev->events);
		break;
	case SESSION_EV_EDGE:
		edge_on_event(s, ev->events);
		break;
	case SESSION_EV_LINE:
		line_on_event(s, ev->events);
		break;
	case SESSION_EV_AGAIN:
		control_flush(&s->control);
		break;
	}
}

static int run_session(const struct session_program *program)
{
	static struct session session;
	struct err err = {0};

	session_init(&session, program);
	control_open(&session.control, &session_control, &session.loop, &session);
	if (jail_seal(program->profile, &err) < 0)
		die("%s", err.text);
	control_hello(&session.control);
	while (!session.control.done) {
		struct loop_event ev;

		loop_next(&session.loop, &ev);
		dispatch_event(&session, &ev);
	}
	session_done(&session);
	return session.control.status;
}

int session_main(int argc, char **argv, const struct session_program *program)
{
	log_init(program->name);
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return program->selftest();
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return printf("%s " SBX_VERSION "\n", program->name) < 0;
	if (argc != 1)
		die("usage: %s (started by sbx-keeper)", program->name);
	return run_session(program);
}
