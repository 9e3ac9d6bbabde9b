/* SPDX-License-Identifier: Apache-2.0 */
#include "origin.h"

#include <errno.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static void quit_control(struct origin *o, enum origin_exit status)
{
	if (!o->done)
		o->status = status;
	o->done = true;
}

static void watch_control(struct origin *o)
{
	/* While something is due nothing more is read: a keeper that does not listen is not
	 * served either, so what is due stays bounded. */
	uint32_t events = o->reports_due ? EPOLLOUT : EPOLLIN;

	if (loop_mod(&o->loop, ORIGIN_CONTROL_FD, events,
		    (struct loop_key){.kind = ORIGIN_EV_CONTROL}) < 0)
		quit_control(o, ORIGIN_EXIT_KEEPER);
}

/* The kernel counts the descriptors that all processes of the user have sent and nobody has
 * received. Others may have used them up for a while, and no event tells when that is over. What
 * has no descriptor does not wait. */
static void try_again(struct origin *o)
{
	if (!o->is_crowded)
		log_warn("a token cannot be passed on yet: processes of this user have too many "
			 "descriptors in flight");
	o->is_crowded = true;
	loop_timer_set(&o->loop, &o->again, clock_mono_ms() + ORIGIN_AGAIN_MS,
		(struct loop_key){.kind = ORIGIN_EV_AGAIN});
}

/* Whether it went out; when not, it is tried again later, or the keeper is gone. */
static bool sent_control(struct origin *o, int r)
{
	if (r == 0)
		return true;
	if (r == -ETOOMANYREFS) {
		try_again(o);
	} else if (r != -EAGAIN) {
		quit_control(o, ORIGIN_EXIT_OK);
	} else if (!o->reports_due) {
		o->reports_due = true;
		watch_control(o);
	}
	return false;
}

bool control_want(struct origin *o, uint32_t id)
{
	return sent_control(o, origin_send_want(ORIGIN_CONTROL_FD, id));
}

bool control_need(struct origin *o, uint32_t id, const struct origin_need *need)
{
	return sent_control(o, origin_send_need(ORIGIN_CONTROL_FD, id, need));
}

bool control_tokens(struct origin *o, uint32_t id, const struct origin_tokens *tokens, int fd)
{
	return sent_control(o, origin_send_tokens(ORIGIN_CONTROL_FD, id, tokens, fd));
}

void control_report(struct origin *o, struct exchange *x)
{
	uint32_t gen = x->gen;

	if (x->result_due) {
		if (!sent_control(o, origin_send_result(ORIGIN_CONTROL_FD, x->id, &x->result)))
			return;
		x->result_due = false;
	}
	if (!x->closed_due ||
		!sent_control(o, origin_send_closed(ORIGIN_CONTROL_FD, x->id, x->n_up, x->n_down)))
		return;
	*x = (struct exchange){.gen = gen + 1};
	o->n_open--;
}

static void flush_due(struct origin *o)
{
	o->reports_due = false;
	for (size_t i = 0; i < ORIGIN_SLOTS && !o->reports_due; i++) {
		if (o->exchanges[i].state != EXCHANGE_FREE)
			control_report(o, &o->exchanges[i]);
	}
	if (!o->reports_due)
		value_flush_due(o);
	if (!o->reports_due)
		token_flush_due(o);
	o->lines_due = true;
	if (!o->reports_due)
		watch_control(o);
}

void control_again(struct origin *o)
{
	flush_due(o);
}

/* ---- what the keeper says ---- */

/* By position, because the keeper may have read the same open file. */
static int read_text(int fd, size_t max, char **ret, size_t *ret_n)
{
	size_t n = 0, size = 65536;
	AUTO_FREE char *text = xmalloc(size);

	for (;;) {
		ssize_t r = pread(fd, text + n, size - n, (off_t)n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		n += (size_t)r;
		if (n > max)
			return -EFBIG;
		if (n == size)
			text = xrealloc(text, size *= 2);
	}
	*ret = TAKE(text);
	*ret_n = n;
	return 0;
}

static int answer_config(struct origin *o, struct ipc_msg *msg)
{
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	size_t n = 0;
	int r = origin_get_config(msg, &o->config);

	if (r < 0)
		return r;
	if (host_from_wire(slice_from_str(o->config.host), &o->host, NULL) < 0 ||
		!slice_eq_str(host_slice(&o->host), o->config.host))
		return -EBADMSG;
	r = read_text(msg->fd, SERVICE_MAX_BYTES, &text, &n);
	if (r == 0)
		r = service_parse(slice_of(text, n), "service", &o->service, &err);
	if (r < 0)
		log_error("the service of %s: %s", o->config.host, err_text(&err, r));
	return r;
}

static int answer_roots(struct origin *o, struct ipc_msg *msg)
{
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	size_t n = 0;
	int r = chan_get_plain(&origin_chan, msg, ORIGIN_ROOTS);

	if (r < 0)
		return r;
	r = read_text(msg->fd, ORIGIN_ROOTS_BYTES, &text, &n);
	if (r == 0)
		r = tls_init(o, slice_of(text, n), &err);
	if (r < 0)
		log_error("the roots: %s", err_text(&err, r));
	return r;
}

static int answer_open(struct origin *o, struct ipc_msg *msg)
{
	int r = chan_get_plain(&origin_chan, msg, ORIGIN_OPEN);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		if (o->exchanges[i].state != EXCHANGE_FREE && o->exchanges[i].id == msg->id)
			return -EBADMSG;
	}
	exchange_open(o, msg->id, TAKE_FD(msg->fd));
	return 0;
}

static int answer_control(struct origin *o, struct ipc_msg *msg)
{
	if (!chan_allows(&origin_chan, o->phase, CHAN_FROM_KEEPER, msg->type))
		return -EBADMSG;
	o->phase = chan_after(&origin_chan, o->phase, msg->type);
	switch (msg->type) {
	case ORIGIN_CONFIG:
		return answer_config(o, msg);
	case ORIGIN_ROOTS:
		return answer_roots(o, msg);
	case ORIGIN_OPEN:
		return answer_open(o, msg);
	case ORIGIN_SOCKET:
		return line_on_socket(o, msg);
	case ORIGIN_VALUE:
		return value_on_message(o, msg);
	case ORIGIN_STORED:
		return token_on_stored(o, msg);
	case ORIGIN_RENEW:
		return value_on_renew(o, msg);
	default:
		return -EBADMSG;
	}
}

static void receive_one(struct origin *o)
{
	static struct ipc_msg msg;
	int r;

	msg.fd = -1;
	r = ipc_recv(ORIGIN_CONTROL_FD, &msg);
	if (r == -EAGAIN)
		return;
	if (r == 0) {
		quit_control(o, ORIGIN_EXIT_OK);
		return;
	}
	if (r > 0)
		r = answer_control(o, &msg);
	ipc_msg_done(&msg);
	if (r < 0) {
		log_error("message %u of the keeper against the protocol", msg.type);
		quit_control(o, ORIGIN_EXIT_KEEPER);
	}
}

void control_on_event(struct origin *o, uint32_t events)
{
	if (o->reports_due && events & EPOLLOUT)
		flush_due(o);
	else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive_one(o);
}
