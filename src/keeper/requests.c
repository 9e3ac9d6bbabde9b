/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests - the requests of sbxd (lib/os/ipc/keeper_chan.h), and what each of them does.
 *
 * How      link.h receives a message and calls take_request through struct link_ops.
 * Trust    Same user. A message that does not decode is refused and drops the connection.
 */
#include "keeper.h"

#include <errno.h>
#include <string.h>
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/rules/policy/host.h"

static int answer_ping(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	bool stalled = machine_is_stalled(k);
	int r = keeper_get_nothing(msg);

	if (r < 0)
		return r;
	k->state.stalled = stalled;
	return keeper_send_state(l->fd, msg->id, &k->state);
}

static const struct stream_kind callback_stream = {.is_quiet = true};

/* Besides exec, users can open a port that an opened link names; other paths are the keeper's. */
static bool may_open(struct keeper *k, const char *path, const struct stream_kind **ret_kind)
{
	uint16_t port;

	*ret_kind = &session_stream;
	if (strcmp(path, GUEST_PATH_EXEC) == 0)
		return true;
	*ret_kind = &callback_stream;
	return str_starts(path, GUEST_PATH_TCP) &&
	       host_parse_port(slice_from_str(path + strlen(GUEST_PATH_TCP)), &port) == 0 &&
	       holds_use_callback(k, port);
}

static int answer_stream(struct keeper *k, struct link *l, struct ipc_msg *msg)
{
	const struct stream_kind *kind;
	char path[KEEPER_MAX_PATH];
	uint32_t stream;
	int r = keeper_get_stream(msg, path);

	if (r < 0)
		return r;
	if (!may_open(k, path, &kind))
		return keeper_send_done(l->fd, msg->id, -EPERM, "no such stream");
	if (k->state.phase != KEEPER_RUNNING)
		return keeper_send_done(l->fd, msg->id, -EAGAIN, "the sandbox is not running");
	if (k->state.paused)
		return keeper_send_done(l->fd, msg->id, -EAGAIN, "the sandbox is " SPACE_PAUSED);
	if (edge_is_up(k))
		r = edge_open_stream(k, path, TAKE_FD(msg->fd), kind, &stream);
	else if (kind == &callback_stream)
		return keeper_send_done(
			l->fd, msg->id, -EAGAIN, "the connection to the guest is restarting");
	else
		r = waiting_add(k, (int)(l - k->links), msg->id, TAKE_FD(msg->fd));
	if (r < 0)
		return keeper_send_done(l->fd, msg->id, r, "too many streams are open");
	/* A waiting request is answered when edge is up. */
	return edge_is_up(k) ? keeper_send_done(l->fd, msg->id, 0, "") : 0;
}

static int answer_stop(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	uint32_t timeout_ms;
	int r = keeper_get_stop(msg, &timeout_ms);

	if (r < 0)
		return r;
	k->stop_link = (int)(l - k->links);
	k->stop_link_gen = l->gen;
	k->stop_msg = msg->id;
	stop_begin(k, timeout_ms, "");
	return 0;
}

static void send_stats(struct keeper *k, const struct ask *a, struct slice body)
{
	struct link *l = link_find(k, a->link, a->link_gen);
	struct keeper_stats stats = {0};

	if (!l)
		return;
	if (guest_get_stats(body, &stats) < 0)
		link_answer(k, a->link, a->link_gen, a->link_msg, -EBADMSG,
			"invalid response from the guest");
	else if (keeper_send_stats(l->fd, a->link_msg, &stats) < 0)
		log_warn("cannot send the statistics to sbxd");
}

static const struct ask_kind stats_ask = {GUEST_PATH_STATS, .on_body = send_stats};

static int answer_stats(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	int r = keeper_get_nothing(msg);

	if (r < 0)
		return r;
	if (k->state.phase != KEEPER_RUNNING)
		return keeper_send_done(l->fd, msg->id, -EAGAIN, "the sandbox is not running");
	r = ask_guest(
		k, &stats_ask, slice_of(NULL, 0), KEEPER_ASK_MS, (int)(l - k->links), msg->id);
	if (r < 0)
		return keeper_send_done(l->fd, msg->id, r, "cannot send a request to the guest");
	return 0;
}

static int answer_reload(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	char name[KEEPER_MAX_NAME];
	int r = keeper_get_reload(msg, name);

	if (r < 0)
		return r;
	netpolicy_reload(k, (int)(l - k->links), msg->id, name);
	return 0;
}

/* While the sbxd that started this keeper lives, no other process can pass a policy. */
static int answer_policy(struct keeper *k, struct link *l, struct ipc_msg *msg)
{
	if (!link_may_give_vault(k, l))
		return -EPERM;
	return netpolicy_take(k, (int)(l - k->links), msg);
}

static int answer_suspend(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	struct err err = {0};
	int r = keeper_get_nothing(msg);

	if (r < 0)
		return r;
	r = suspend_begin(k, SUSPEND_BY_REQUEST, (int)(l - k->links), msg->id, &err);
	return r < 0 ? keeper_send_done(l->fd, msg->id, r, err_text(&err, r)) : 0;
}

static int answer_suspend_idle(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	int r = keeper_get_nothing(msg);

	if (r == 0)
		idle_begin_stop(k, (int)(l - k->links), msg->id);
	return r;
}

static int answer_ports(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	static struct keeper_ports wanted;
	int r = keeper_get_ports(msg, &wanted);

	if (r == 0)
		r = ports_set(k, &wanted);
	if (r < 0)
		return r;
	link_push_all(k, l, ports_send);
	return ports_send(k, l->fd, msg->id);
}

static int answer_freeze(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	char label[KEEPER_MAX_LABEL];
	int r = keeper_get_freeze(msg, label);

	if (r == 0)
		freeze_begin(k, (int)(l - k->links), msg->id, label, msg->type == KEEPER_MEMORY);
	return r;
}

static int answer_claim(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	int r = keeper_get_nothing(msg);

	if (r == 0)
		pool_claim(k, (int)(l - k->links), msg->id);
	return r;
}

/* While the sbxd that started this keeper lives, no other process can pass the vault's channel. */
static int answer_vault(struct keeper *k, struct link *l, struct ipc_msg *msg)
{
	int r = chan_get_plain(&keeper_chan, msg, KEEPER_VAULT);

	if (r == 0 && !link_may_give_vault(k, l))
		r = -EPERM;
	return r < 0 ? r : vault_take_channel(k, TAKE_FD(msg->fd));
}

static int answer_listener(struct keeper *k, struct link *l, struct ipc_msg *msg)
{
	int r = chan_get_plain(&keeper_chan, msg, KEEPER_LISTENER);

	if (r == 0 && !link_may_give_vault(k, l))
		r = -EPERM;
	if (r == 0)
		ports_give(k, TAKE_FD(msg->fd));
	return r;
}

static int take_request(struct keeper *k, struct link *l, struct ipc_msg *msg)
{
	if (msg->fd >= 0 && !chan_may_have_fd(&keeper_chan, msg->type))
		return -EBADMSG;
	if (k->plan == START_POOL && !pool_knows(msg->type))
		return -EBADMSG;
	switch (msg->type) {
	case KEEPER_PING:
		return answer_ping(k, l, msg);
	case KEEPER_STREAM:
		return answer_stream(k, l, msg);
	case KEEPER_STOP:
		return answer_stop(k, l, msg);
	case KEEPER_STATS:
		return answer_stats(k, l, msg);
	case KEEPER_POLICY:
		return answer_policy(k, l, msg);
	case KEEPER_RELOAD:
		return answer_reload(k, l, msg);
	case KEEPER_SUSPEND:
		return answer_suspend(k, l, msg);
	case KEEPER_SUSPEND_IDLE:
		return answer_suspend_idle(k, l, msg);
	case KEEPER_PORTS:
		return answer_ports(k, l, msg);
	case KEEPER_FREEZE:
	case KEEPER_MEMORY:
		return answer_freeze(k, l, msg);
	case KEEPER_VAULT:
		return answer_vault(k, l, msg);
	case KEEPER_LISTENER:
		return answer_listener(k, l, msg);
	case KEEPER_ANSWER:
		return holds_on_answer(k, l, msg);
	case KEEPER_CLAIM:
		return answer_claim(k, l, msg);
	default:
		return -EBADMSG;
	}
}

/* A new connection of sbxd, after HELLO and STATE. */
static int send_ports(struct keeper *k, int fd)
{
	return k->ports->n ? ports_send(k, fd, 0) : 0;
}

/* While sbxd was down, no channel to the vault could be passed. */
static void greet_sbxd(struct keeper *k)
{
	holds_on_link(k);
	if (k->vault->sock < 0 && k->vault->timer.pos)
		vault_start(k);
}

const struct link_ops requests_ops = {
	.on_open = send_ports,
	.on_opened = greet_sbxd,
	.on_message = take_request,
	.on_closed = pool_on_link_end,
};
