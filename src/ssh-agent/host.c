/* SPDX-License-Identifier: Apache-2.0 */
/* The host's agent: one request at a time. If it violates the protocol or does not answer, this
 * process exits, and the keeper starts another one with a new connection. */
#include "ssh_agent.h"

#include <errno.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define LENGTH 4

static const uint8_t ask_list[] = {0, 0, 0, 1, SSHAGENT_REQUEST_IDENTITIES};

static void watch_host(struct ssh_agent *a)
{
	uint32_t events = EPOLLIN | (a->at_out < a->n_out ? EPOLLOUT : 0);

	if (loop_mod(&a->loop, a->host_fd, events, (struct loop_key){.kind = SSH_AGENT_EV_HOST}) <
		0)
		control_quit(&a->control, SSH_AGENT_EXIT_HOST);
}

int host_begin(struct ssh_agent *a, int fd)
{
	int r = fd_set_nonblock(fd, true);

	a->host_fd = fd;
	a->in = xmalloc(LENGTH + SSHAGENT_MAX_ANSWER);
	return r < 0 ? r
		     : loop_add(
			       &a->loop, fd, EPOLLIN, (struct loop_key){.kind = SSH_AGENT_EV_HOST});
}

static struct stream *first_waiting(struct ssh_agent *a)
{
	struct stream *first = NULL;

	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++) {
		struct stream *s = &a->streams[i];

		if (s->state == STREAM_WAIT && (!first || s->order < first->order))
			first = s;
	}
	return first;
}

static void lost_host(struct ssh_agent *a, const char *why)
{
	log_error("SSH agent of the host: %s", why);
	control_quit(&a->control, SSH_AGENT_EXIT_HOST);
}

static void send_some(struct ssh_agent *a)
{
	while (a->at_out < a->n_out) {
		ssize_t n =
			send(a->host_fd, a->out + a->at_out, a->n_out - a->at_out, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			lost_host(a, "connection closed");
			return;
		}
		a->at_out += (size_t)n;
	}
	watch_host(a);
}

void host_serve(struct ssh_agent *a)
{
	struct stream *s = a->is_busy || a->control.done ? NULL : first_waiting(a);

	if (!s)
		return;
	s->state = STREAM_HOST;
	a->is_busy = true;
	a->asker = s;
	a->out = s->may_sign ? s->in : ask_list;
	a->n_out = s->may_sign ? s->n_in : sizeof(ask_list);
	a->at_out = 0;
	loop_timer_set(&a->loop, &a->host_timer, clock_mono_ms() + SSH_AGENT_HOST_MS,
		(struct loop_key){.kind = SSH_AGENT_EV_HOST_TIMER});
	send_some(a);
}

void host_forget(struct ssh_agent *a, const struct stream *s)
{
	if (a->asker != s)
		return;
	a->asker = NULL;
	/* A partly sent request cannot be withdrawn. */
	if (a->at_out < a->n_out && a->at_out > 0 && a->out != ask_list)
		lost_host(a, "request canceled while it was sent");
	bool is_unsent = a->at_out == 0 && a->out != ask_list;

	if (a->out != ask_list) /* it was the stream's own memory */
		a->n_out = a->at_out = 0;
	if (!is_unsent)
		return;
	a->is_busy = false;
	loop_timer_clear(&a->loop, &a->host_timer);
	host_serve(a);
}

static void on_answer(struct ssh_agent *a)
{
	struct stream *s = a->asker;
	size_t n = a->n_in;

	loop_timer_clear(&a->loop, &a->host_timer);
	a->asker = NULL;
	a->is_busy = false;
	a->n_in = 0;
	if (s)
		stream_on_host(a, s, slice_of(a->in + LENGTH, n - LENGTH));
	host_serve(a);
}

static void read_some(struct ssh_agent *a)
{
	while (!a->control.done) {
		size_t want = LENGTH;

		if (a->n_in >= LENGTH) {
			size_t n = (size_t)a->in[0] << 24 | (size_t)a->in[1] << 16 |
				   (size_t)a->in[2] << 8 | a->in[3];

			if (n == 0 || n > SSHAGENT_MAX_ANSWER) {
				lost_host(a, "invalid response length");
				return;
			}
			want += n;
		}
		if (a->n_in == want) {
			on_answer(a);
			return;
		}
		ssize_t n = recv(a->host_fd, a->in + a->n_in, want - a->n_in, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || !a->is_busy) {
			lost_host(a, n <= 0 ? "connection closed" : "unexpected data");
			return;
		}
		a->n_in += (size_t)n;
	}
}

void host_on_event(struct ssh_agent *a, uint32_t events)
{
	if (events & EPOLLOUT)
		send_some(a);
	if (events & ~(uint32_t)EPOLLOUT && !a->control.done)
		read_some(a);
}
