/* SPDX-License-Identifier: Apache-2.0 */
#include "egress.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/policy/table.h"

#define MAX_RESOLV_CONF 65536

void control_report(struct egress *e, struct exchange *x)
{
	uint32_t gen = x->gen;

	if (x->login_due) {
		if (!control_sent(
			    &e->control, egress_send_login(CONTROL_FD, x->id, x->upstream_fd)))
			return;
		x->login_due = false;
	}
	if (x->result_due) {
		if (!control_sent(&e->control,
			    egress_send_result(CONTROL_FD, x->id, x->result_due, x->given_fd)))
			return;
		free(TAKE(x->result_due));
		fd_close(&x->given_fd);
	}
	if (!x->closed_due ||
		!control_sent(&e->control, egress_send_closed(CONTROL_FD, x->id, x->n_bytes[WAY_UP],
						   x->n_bytes[WAY_DOWN])))
		return;
	*x = (struct exchange){.gen = gen + 1};
	e->n_open--;
}

static void report_loaded(struct egress *e)
{
	e->loaded_due = !control_sent(
		&e->control, egress_send_loaded(CONTROL_FD, e->loaded_id, e->loaded_text));
}

static void flush_due(void *ctx)
{
	struct egress *e = ctx;

	if (e->loaded_due)
		report_loaded(e);
	for (size_t i = 0; i < EGRESS_SLOTS && !e->control.is_due; i++) {
		if (e->exchanges[i].state != EXCHANGE_FREE)
			control_report(e, &e->exchanges[i]);
	}
}

/* Only this exchange fails. */
static void keep_given(struct exchange *x)
{
	fd_close(&x->given_fd);
	x->result_due->outcome = EGRESS_BUSY;
	(void)snprintf(x->result_due->text, sizeof(x->result_due->text),
		"cannot pass the connection to sbx-edge: too many descriptors in flight");
}

void control_again(struct egress *e)
{
	uint64_t now = clock_mono_ms();

	for (size_t i = 0; i < EGRESS_SLOTS; i++) {
		struct exchange *x = &e->exchanges[i];

		if (x->state != EXCHANGE_FREE && x->result_due && x->given_fd >= 0 &&
			x->give_until && now >= x->give_until)
			keep_given(x);
	}
	control_flush(&e->control);
}

void control_recheck(struct egress *e)
{
	for (size_t i = 0; i < EGRESS_SLOTS; i++)
		exchange_recheck(e, &e->exchanges[i]);
	if (e->n_open)
		loop_timer_set(&e->loop, &e->recheck, clock_mono_ms() + EGRESS_RECHECK_MS,
			(struct loop_key){.kind = EGRESS_EV_RECHECK});
}

static int answer_config(struct egress *e, struct ipc_msg *msg)
{
	static struct egress_config config;
	struct host proxy = {0};
	struct addr pins[EGRESS_MAX_PINS];
	int r = egress_get_config(msg, &config);

	if (r < 0)
		return r;
	if (config.proxy_host[0] &&
		host_from_wire(slice_from_str(config.proxy_host), &proxy, NULL) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < config.n_pins; i++) {
		if (addr_parse(slice_from_str(config.pins[i].addr), &pins[i]) < 0)
			return -EBADMSG;
	}
	e->config = config;
	e->proxy = proxy;
	memcpy(e->pins, pins, sizeof(pins));
	return 0;
}

static int answer_direct(struct egress *e, struct ipc_msg *msg)
{
	return egress_get_direct(msg, &e->config);
}

static int answer_locals(struct egress *e, struct ipc_msg *msg)
{
	static struct egress_locals locals;
	int r = egress_get_locals(msg, &locals);

	if (r < 0)
		return r;
	e->locals.n = 0;
	for (size_t i = 0; i < locals.n; i++) {
		const struct egress_local *l = &locals.list[i];
		struct addr addr = l->n == 4 ? addr_from_v4(l->addr) : addr_from_v6(l->addr);
		struct addr_net net = addr_net_of(&addr, l->prefix);

		if (addr.n != l->n)
			return -EBADMSG;
		(void)addr_locals_add(&e->locals, &net, l->is_own);
	}
	return 0;
}

static int answer_resolver(struct egress *e, struct ipc_msg *msg)
{
	AUTO_FREE char *text = NULL;
	size_t n;
	int r = chan_get_plain(&egress_chan, msg, EGRESS_RESOLVER);

	if (r < 0)
		return r;
	r = fd_load(msg->fd, MAX_RESOLV_CONF, &text, &n);
	if (r < 0)
		log_warn("cannot read the list of DNS servers: %s", err_text(NULL, r));
	resolve_set_servers(e, r < 0 ? "" : text);
	return 0;
}

static void set_loaded(struct egress *e, uint32_t id, const char *fault)
{
	(void)snprintf(e->loaded_text, sizeof(e->loaded_text), "%s", fault ? fault : "");
	str_make_printable(e->loaded_text);
	e->loaded_id = id;
}

static int answer_policy(struct egress *e, struct ipc_msg *msg)
{
	uint8_t part;
	int r = egress_get_policy(msg, &part);

	if (r == 0)
		r = policy_inbox_take(&e->inbox, part, msg->id, TAKE_FD(msg->fd), &e->policy);
	if (r <= 0)
		return r;
	set_loaded(e, msg->id, policy_fault(e->policy));
	/* In this order: after LOADED, no forbidden connection is left. */
	control_recheck(e);
	report_loaded(e);
	return 0;
}

static int answer_open(struct egress *e, struct ipc_msg *msg)
{
	struct egress_open open;
	int r = egress_get_open(msg, &open);

	if (r < 0)
		return r;
	for (size_t i = 0; i < EGRESS_SLOTS; i++) {
		if (e->exchanges[i].state != EXCHANGE_FREE && e->exchanges[i].id == msg->id)
			return -EBADMSG;
	}
	exchange_open(e, msg->id, &open, TAKE_FD(msg->fd));
	return 0;
}

/* The exchange may have ended meanwhile. */
static int answer_logged(struct egress *e, struct ipc_msg *msg)
{
	char why[EGRESS_MAX_TEXT];
	int r = egress_get_logged(msg, why);

	for (size_t i = 0; i < EGRESS_SLOTS && r == 0; i++) {
		struct exchange *x = &e->exchanges[i];

		if (x->state == EXCHANGE_FREE || x->id != msg->id || !x->login)
			continue;
		if (!x->login->is_asked || x->login_due)
			return -EBADMSG;
		login_on_logged(e, x, why);
		break;
	}
	return r;
}

static int answer_control(void *ctx, struct ipc_msg *msg)
{
	static int (*const answers[EGRESS_N_MSGS])(struct egress * e, struct ipc_msg * msg) = {
		[EGRESS_CONFIG] = answer_config,
		[EGRESS_RESOLVER] = answer_resolver,
		[EGRESS_DIRECT] = answer_direct,
		[EGRESS_LOCALS] = answer_locals,
		[EGRESS_LOGGED] = answer_logged,
		[EGRESS_POLICY] = answer_policy,
		[EGRESS_OPEN] = answer_open,
	};

	return msg->type < EGRESS_N_MSGS && answers[msg->type] ? answers[msg->type](ctx, msg)
							       : -EBADMSG;
}

const struct control_ops egress_control = {.chan = &egress_chan,
	.ev = EGRESS_EV_CONTROL,
	.burst = 1,
	.ev_again = EGRESS_EV_AGAIN,
	.passed = "a connection",
	.on_message = answer_control,
	.on_room = flush_due};
