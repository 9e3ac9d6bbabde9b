/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a client in the guest, one after the other. */
#include "ssh_agent.h"

#include <errno.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define LENGTH 4 /* size of the length before each message */

static const uint8_t failure[] = {0, 0, 0, 1, SSHAGENT_FAILURE};

static struct loop_key key_of(
	const struct ssh_agent *a, const struct stream *s, enum ssh_agent_ev kind)
{
	return (struct loop_key){
		.kind = (uint8_t)kind, .gen = s->gen, .idx = (uint32_t)(s - a->streams)};
}

static struct stream *find_stream(struct ssh_agent *a, struct loop_key key)
{
	struct stream *s = &a->streams[key.idx];
	bool is_live = s->state != STREAM_FREE && s->state != STREAM_CLOSED;

	return is_live && s->gen == key.gen ? s : NULL;
}

static size_t length_of(const uint8_t p[LENGTH])
{
	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

static struct slice request_of(const struct stream *s)
{
	return slice_of(s->in + LENGTH, s->n_in - LENGTH);
}

static void close_stream(struct ssh_agent *a, struct stream *s)
{
	host_forget(a, s);
	loop_timer_clear(&a->loop, &s->timer);
	loop_del(&a->loop, s->fd);
	fd_close(&s->fd);
	free(TAKE(s->in));
	free(TAKE(s->out));
	s->state = STREAM_CLOSED;
	s->ask_due = false; /* a late VERDICT for it is ignored */
	s->closed_due = true;
	control_report(a, s);
}

/* Only the input of this state: further requests wait in the socket. A hang-up is always
 * reported. */
static void enter_stream(
	struct ssh_agent *a, struct stream *s, enum stream_state state, uint64_t ms)
{
	uint32_t events = state == STREAM_READ ? EPOLLIN : state == STREAM_WRITE ? EPOLLOUT : 0;

	s->state = state;
	if (ms)
		loop_timer_set(&a->loop, &s->timer, clock_mono_ms() + ms,
			key_of(a, s, SSH_AGENT_EV_TIMER));
	else
		loop_timer_clear(&a->loop, &s->timer);
	if (loop_mod(&a->loop, s->fd, events, key_of(a, s, SSH_AGENT_EV_STREAM)) < 0)
		close_stream(a, s);
}

void stream_open(struct ssh_agent *a, uint32_t id, int fd)
{
	struct stream *s = NULL;

	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN && !s; i++)
		if (a->streams[i].state == STREAM_FREE)
			s = &a->streams[i];
	/* The keeper has the same limit, and opens no more streams than there is room for. */
	if (!s || fd_set_nonblock(fd, true) < 0) {
		fd_close(&fd);
		control_quit(&a->control, CONTROL_EXIT_KEEPER);
		return;
	}
	uint32_t gen = s->gen;

	*s = (struct stream){.state = STREAM_READ, .id = id, .gen = gen, .fd = fd};
	if (loop_add(&a->loop, fd, EPOLLIN, key_of(a, s, SSH_AGENT_EV_STREAM)) < 0)
		close_stream(a, s);
}

static void write_some(struct ssh_agent *a, struct stream *s)
{
	while (s->at_out < s->n_out) {
		ssize_t n = send(s->fd, s->out + s->at_out, s->n_out - s->at_out, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close_stream(a, s);
			return;
		}
		s->at_out += (size_t)n;
	}
	free(TAKE(s->out));
	free(TAKE(s->in));
	s->n_in = s->n_out = s->at_out = 0;
	s->may_sign = false;
	enter_stream(a, s, STREAM_READ, 0);
}

/* Takes `out`, a whole message with its length. */
static void answer_stream(struct ssh_agent *a, struct stream *s, uint8_t *out, size_t n)
{
	s->out = out;
	s->n_out = n;
	s->at_out = 0;
	enter_stream(a, s, STREAM_WRITE, SSH_AGENT_WRITE_MS);
}

static void refuse_stream(struct ssh_agent *a, struct stream *s)
{
	uint8_t *out = xmalloc(sizeof(failure));

	memcpy(out, failure, sizeof(failure));
	answer_stream(a, s, out, sizeof(failure));
}

static void answer_with(struct ssh_agent *a, struct stream *s, struct slice msg)
{
	uint8_t *out = xmalloc(LENGTH + msg.n);

	for (unsigned i = 0; i < LENGTH; i++)
		out[i] = (uint8_t)(msg.n >> (24 - 8 * i));
	memcpy(out + LENGTH, msg.p, msg.n);
	answer_stream(a, s, out, LENGTH + msg.n);
}

static void wait_for_host(struct ssh_agent *a, struct stream *s)
{
	s->order = ++a->n_orders;
	enter_stream(a, s, STREAM_WAIT, SSH_AGENT_HOST_MS);
	host_serve(a);
}

static void on_request(struct ssh_agent *a, struct stream *s)
{
	if (sshagent_parse(request_of(s)).kind == SSHAGENT_OTHER)
		refuse_stream(a, s);
	else
		wait_for_host(a, s);
}

static void read_some(struct ssh_agent *a, struct stream *s)
{
	for (;;) {
		size_t want = LENGTH;

		if (!s->in)
			s->in = xmalloc(LENGTH + SSHAGENT_MAX_REQUEST);
		if (s->n_in >= LENGTH) {
			size_t n = length_of(s->in);

			if (n == 0 || n > SSHAGENT_MAX_REQUEST) {
				close_stream(a, s);
				return;
			}
			want += n;
		}
		if (s->n_in == want) {
			on_request(a, s);
			return;
		}
		ssize_t n = recv(s->fd, s->in + s->n_in, want - s->n_in, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			close_stream(a, s);
			return;
		}
		s->n_in += (size_t)n;
	}
	if (s->n_in == 0) /* an idle client costs no memory */
		free(TAKE(s->in));
}

void stream_on_event(struct ssh_agent *a, struct loop_key key, uint32_t events)
{
	struct stream *s = find_stream(a, key);

	if (!s)
		return;
	if (s->state == STREAM_READ)
		read_some(a, s);
	else if (s->state == STREAM_WRITE)
		write_some(a, s);
	else if (events & (EPOLLHUP | EPOLLERR))
		close_stream(a, s);
}

void stream_on_timer(struct ssh_agent *a, struct loop_key key)
{
	struct stream *s = find_stream(a, key);

	if (!s)
		return;
	if (s->state == STREAM_WRITE) {
		close_stream(a, s);
		return;
	}
	host_forget(a, s);
	s->ask_id = 0;
	refuse_stream(a, s);
}

static void ask_keeper(struct ssh_agent *a, struct stream *s, const struct sshagent_key *key,
	const struct sshagent_request *req)
{
	static const enum ssh_agent_what whats[SSHAGENT_N_WHATS] = {
		[SSHAGENT_SIGNS_LOGIN] = SSH_AGENT_LOGIN,
		[SSHAGENT_SIGNS_FILE] = SSH_AGENT_FILE,
		[SSHAGENT_SIGNS_OTHER] = SSH_AGENT_OTHER};

	s->ask = (struct ssh_agent_ask){0};
	s->ask.what = whats[sshagent_describe(req->data, key->blob, s->ask.text)];
	memcpy(s->ask.fingerprint, key->fingerprint, sizeof(key->fingerprint));
	sshagent_show(key->comment, s->ask.comment, sizeof(s->ask.comment));
	s->ask_id = ++a->n_asks;
	s->ask_due = true;
	enter_stream(a, s, STREAM_ASK, SSH_AGENT_ASK_MS);
	control_report(a, s);
}

static void on_list(struct ssh_agent *a, struct stream *s, struct slice list)
{
	struct sshagent_request req = sshagent_parse(request_of(s));
	struct sshagent_key key;

	if (req.kind == SSHAGENT_SIGN) {
		if (sshagent_find(&a->filter, list, req.key, &key) == 0)
			ask_keeper(a, s, &key, &req);
		else
			refuse_stream(a, s);
		return;
	}
	/* The filtered list is not longer than the original. */
	AUTO_FREE uint8_t *kept = xmalloc(list.n + LENGTH + 1);
	struct wr wr = wr_init(kept, list.n + LENGTH + 1);

	if (sshagent_filter_list(&a->filter, list, &wr) < 0)
		refuse_stream(a, s);
	else
		answer_with(a, s, slice_of(wr.p, wr.n));
}

void stream_on_host(struct ssh_agent *a, struct stream *s, struct slice msg)
{
	if (!s->may_sign)
		on_list(a, s, msg);
	else if (sshagent_is_signed(msg))
		answer_with(a, s, msg);
	else
		refuse_stream(a, s);
}

int stream_on_verdict(struct ssh_agent *a, uint32_t ask_id, bool allowed)
{
	/* Arrived after the timeout, or its stream was closed: not a violation. */
	if (ask_id == 0 || ask_id > a->n_asks)
		return -EBADMSG;
	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++) {
		struct stream *s = &a->streams[i];

		if (s->state != STREAM_ASK || s->ask_id != ask_id || s->ask_due)
			continue;
		s->ask_id = 0;
		s->may_sign = allowed;
		if (allowed)
			wait_for_host(a, s);
		else
			refuse_stream(a, s);
		return 0;
	}
	return 0;
}
