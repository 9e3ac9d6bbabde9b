/* SPDX-License-Identifier: Apache-2.0 */
#include "origin.h"

#include <errno.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"

bool control_want(struct origin *o, uint32_t id)
{
	return control_sent(&o->control, chan_send_plain(CONTROL_FD, ORIGIN_WANT, id, -1));
}

bool control_need(struct origin *o, uint32_t id, const struct origin_need *need)
{
	return control_sent(&o->control, origin_send_need(CONTROL_FD, id, need));
}

bool control_tokens(struct origin *o, uint32_t id, const struct origin_tokens *tokens, int fd)
{
	return control_sent(&o->control, origin_send_tokens(CONTROL_FD, id, tokens, fd));
}

void control_report(struct origin *o, struct exchange *x)
{
	uint32_t gen = x->gen;

	if (x->result_due) {
		if (!control_sent(&o->control, origin_send_result(CONTROL_FD, x->id, &x->result)))
			return;
		x->result_due = false;
	}
	if (!x->closed_due || !control_sent(&o->control,
				      origin_send_closed(CONTROL_FD, x->id, x->n_up, x->n_down)))
		return;
	*x = (struct exchange){.gen = gen + 1};
	o->n_open--;
}

static void flush_due(void *ctx)
{
	struct origin *o = ctx;

	for (size_t i = 0; i < ORIGIN_SLOTS && !o->control.is_due; i++) {
		if (o->exchanges[i].state != EXCHANGE_FREE)
			control_report(o, &o->exchanges[i]);
	}
	if (!o->control.is_due)
		value_flush_due(o);
	if (!o->control.is_due)
		token_flush_due(o);
	o->lines_due = true;
	channel_resume(o);
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
	r = fd_load(msg->fd, SERVICE_MAX_BYTES, &text, &n);
	/* no text: a host without a credential, of which rules need the heads */
	if (r == 0 && n == 0 && o->config.has == 0)
		o->service.name = xstrdup("none");
	else if (r == 0)
		r = service_parse(slice_of(text, n), "service", &o->service, &err);
	if (r < 0)
		log_error("invalid service configuration for %s: %s", o->config.host,
			err_text(&err, r));
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
	r = fd_load(msg->fd, ORIGIN_ROOTS_BYTES, &text, &n);
	if (r == 0)
		r = tls_init(o, slice_of(text, n), &err);
	if (r < 0)
		log_error("cannot load the CA certificates: %s", err_text(&err, r));
	return r;
}

static int answer_open(struct origin *o, struct ipc_msg *msg)
{
	struct ticket ticket;
	int r = origin_get_open(msg, &ticket);

	if (r < 0)
		return r;
	/* only a clerk can have read a push */
	if (msg->id == 0 || msg->id > MUX_MAX_ID || (ticket.is_judged && msg->fd < 0))
		return -EBADMSG;
	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		if (o->exchanges[i].state != EXCHANGE_FREE && o->exchanges[i].id == msg->id)
			return -EBADMSG;
	}
	exchange_open(o, msg->id, &ticket, TAKE_FD(msg->fd));
	return 0;
}

static int answer_channel(struct origin *o, struct ipc_msg *msg)
{
	int r = chan_get_plain(&origin_chan, msg, ORIGIN_CHANNEL);

	if (r == 0)
		channel_take(o, TAKE_FD(msg->fd));
	return r;
}

static int answer_policy(struct origin *o, struct ipc_msg *msg)
{
	uint8_t part;
	int r = origin_get_policy(msg, &part);

	if (r == 0)
		r = policy_inbox_take(&o->inbox, part, msg->id, TAKE_FD(msg->fd), &o->policy);
	return MIN(r, 0);
}

/* No text: no rule is about the API of this host. */
static int answer_pack(struct origin *o, struct ipc_msg *msg)
{
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	size_t n = 0;
	int r = chan_get_plain(&origin_chan, msg, ORIGIN_PACK);

	if (r == 0)
		r = fd_load(msg->fd, PACK_MAX_BYTES, &text, &n);
	if (r < 0)
		return r;
	pack_done(&o->pack);
	o->pack = (struct pack){0};
	if (n)
		r = pack_parse(slice_of(text, n), "pack", &o->pack, &err);
	if (r < 0)
		log_error("invalid API pack for %s: %s", o->config.host, err_text(&err, r));
	return r;
}

static int answer_control(void *ctx, struct ipc_msg *msg)
{
	static int (*const answers[ORIGIN_N_MSGS])(struct origin * o, struct ipc_msg * msg) = {
		[ORIGIN_CONFIG] = answer_config,
		[ORIGIN_ROOTS] = answer_roots,
		[ORIGIN_OPEN] = answer_open,
		[ORIGIN_SOCKET] = line_on_socket,
		[ORIGIN_VALUE] = value_on_message,
		[ORIGIN_STORED] = token_on_stored,
		[ORIGIN_RENEW] = value_on_renew,
		[ORIGIN_POLICY] = answer_policy,
		[ORIGIN_PACK] = answer_pack,
		[ORIGIN_CHANNEL] = answer_channel,
	};

	return msg->type < ORIGIN_N_MSGS && answers[msg->type] ? answers[msg->type](ctx, msg)
							       : -EBADMSG;
}

const struct control_ops origin_control = {.chan = &origin_chan,
	.ev = ORIGIN_EV_CONTROL,
	.burst = 1,
	.ev_again = ORIGIN_EV_AGAIN,
	.passed = "a token",
	.on_message = answer_control,
	.on_room = flush_due};
