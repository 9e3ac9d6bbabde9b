/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "src/sbxd/http/http.h"
#include "src/sbxd/keepers/keepers.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/ipc/vault_sock.h"

#define LOST "the vault exited before it responded: check with 'sbx secret ls'"

void vault_link_init(struct vault_link *v)
{
	*v = (struct vault_link){.listen_fd = -1, .child.pidfd = -1, .sock = -1};
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		v->op[i].fd = -1;
}

/* ---- the channel ---- */

static void back_off(struct vault_link *v)
{
	v->delay_ms = v->delay_ms ? MIN(2 * v->delay_ms, (uint64_t)VAULT_LAST_DELAY_MS)
				  : VAULT_FIRST_DELAY_MS;
	v->next_start_ms = clock_mono_ms() + v->delay_ms;
}

/* After an exit: restarts immediately, unless the vault failed at its start. */
static void delay_next(struct vault_link *v)
{
	uint64_t now = clock_mono_ms();

	if (!v->has_answered && (!v->started_ms || now - v->started_ms < VAULT_LIVED_MS)) {
		back_off(v);
		return;
	}
	v->delay_ms = 0;
	v->next_start_ms = now;
}

static struct loop_key key_of(const struct vault_link *v)
{
	return (struct loop_key){.kind = SBXD_EV_VAULT, .gen = v->gen};
}

static void drop_channel(struct sbxd *d, const char *why)
{
	struct vault_link *v = d->vault;

	if (v->sock < 0)
		return;
	loop_del(&d->loop, v->sock);
	fd_close(&v->sock);
	v->gen++;
	/* The channel cannot be created again: only a new vault accepts one. */
	if (v->is_owner && v->child.pidfd >= 0)
		hands_signal(v->child.pidfd, HANDS_TERM);
	v->is_owner = false;
	if (v->phase == VAULT_PHASE_START) {
		/* the other end is not a working vault: reconnecting in a loop does not help */
		back_off(v);
		v->n_mute++;
	}
	v->phase = VAULT_PHASE_START;
	v->is_blocked = false;
	/* of an earlier vault: its exit is detected only here */
	if (v->child.pidfd < 0)
		delay_next(v);
	vault_ops_lost(d, why);
}

/* The kernel counts the descriptors that all processes of the user have sent and not received.
 * Other processes may have used up the limit: nothing was sent, the vault is healthy, and the timer
 * tries again. */
static bool is_crowded(struct vault_link *v, int r)
{
	v->crowded_ms = 0;
	if (r != -ETOOMANYREFS)
		return false;
	if (!v->is_crowd_said)
		log_warn(
			"cannot pass a descriptor to the vault: this user has too many descriptors in flight");
	v->is_crowd_said = true;
	v->crowded_ms = clock_mono_ms() + VAULT_CROWDED_MS;
	return true;
}

static void send_queued(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	struct vault_op *op;

	v->is_blocked = false;
	v->crowded_ms = 0;
	while ((op = vault_ops_next(v))) {
		struct err err = {0};
		int r = 0;

		if (!op->is_own && !vault_op_asker(d, op->id)) {
			vault_link_forget(d, op); /* the client disconnected: not executed */
			continue;
		}
		if (vault_op_is_change(op) && !op->is_recorded)
			r = vault_op_record(d, op, NULL, &err);
		if (r < 0) {
			vault_op_finish(d, op, -EIO, err.text);
			continue;
		}
		op->is_recorded = true;
		r = vault_op_send(d, op);
		op->state = VAULT_OP_SENT;
		op->sent_ms = clock_mono_ms();
		if (r == -EAGAIN || is_crowded(v, r)) {
			v->is_blocked = r == -EAGAIN;
			op->state = VAULT_OP_QUEUED;
			return;
		}
		if (r < 0) {
			/* The vault has just died and did not get the request: it is sent to the
			 * next vault, once. */
			if (op->was_lost)
				vault_op_finish(d, op, r, "cannot reach the vault");
			else
				op->state = VAULT_OP_QUEUED;
			op->was_lost = true;
			drop_channel(d, LOST);
			return;
		}
		fd_close(&op->fd);
	}
}

/* ---- messages of the vault ---- */

/* Another vault is started when the next request needs one. */
static int replace_vault(struct vault_link *v, const char *why)
{
	log_info("replacing the vault: %s", why);
	v->phase = VAULT_PHASE_END;
	v->connected_ms = clock_mono_ms(); /* its exit is awaited from now on */
	return chan_send_plain(v->sock, VAULT_STOP, 0, -1);
}

static int on_hello(struct sbxd *d, const struct ipc_msg *msg)
{
	struct vault_link *v = d->vault;
	char build[CHAN_MAX_BUILD];
	int r = chan_get_hello(msg, build);

	if (r == 0 && !v->is_owner)
		r = chan_send_plain(v->sock, VAULT_ADMIN, 0, -1);
	if (r < 0)
		return r;
	v->has_said = true;
	v->n_mute = 0;
	v->why.text[0] = '\0';
	v->phase = v->is_owner ? VAULT_PHASE_OWNER : VAULT_PHASE_ADMIN;
	if (strcmp(build, SBX_BUILD) != 0 && !v->was_replaced) {
		v->was_replaced = true;
		return replace_vault(v, "the vault has a different build");
	}
	v->sweep_due = true;
	return 0;
}

/* The vault accepts requests. */
static bool is_up(const struct vault_link *v)
{
	return v->sock >= 0 && (v->phase == VAULT_PHASE_ADMIN || v->phase == VAULT_PHASE_OWNER);
}

static int on_item(struct vault_op *op, const struct ipc_msg *msg)
{
	if (op->ask != VAULT_LIST || op->n_items == VAULT_LINK_MAX_ITEMS)
		return -EBADMSG;
	if (op->n_items == op->room) {
		op->room = op->room ? 2 * op->room : 8;
		op->items = xrealloc(op->items, op->room * sizeof(*op->items));
	}
	return vault_get_item(msg, &op->items[op->n_items++]);
}

static int on_done(struct sbxd *d, struct vault_op *op, const struct ipc_msg *msg)
{
	struct vault_link *v = d->vault;
	struct vault_done done;
	int r = vault_get_done(msg, &done);

	if (r < 0 || done.code > 0)
		return -EBADMSG;
	v->has_answered = true;
	op->done = done;
	if (op->ask == VAULT_SET_REF && done.code == 0)
		done.code = vault_op_register(d, op, done.text);
	vault_op_finish(d, op, done.code, done.text);
	if (done.code == 0 && op->ask == VAULT_REMOVE && !op->is_own)
		v->sweep_due = true;
	if (done.code == 0 && !op->is_own && v->sweep_missed) {
		v->sweep_missed = false;
		v->sweep_due = true;
	}
	return 0;
}

static int take_message(struct sbxd *d, const struct ipc_msg *msg)
{
	struct vault_link *v = d->vault;
	struct vault_op *op;
	int r;

	if (v->phase == VAULT_PHASE_START)
		return on_hello(d, msg);
	if (!chan_allows(&vault_chan, v->phase, VAULT_FROM_VAULT, msg->type))
		return -EBADMSG;
	op = vault_link_find(d, msg->id);
	if (!op || op->state != VAULT_OP_SENT)
		return -EBADMSG;
	switch (msg->type) {
	case VAULT_ITEM:
		return on_item(op, msg);
	case VAULT_STATUS_IS:
		r = op->ask == VAULT_STATUS ? vault_get_status(msg, &op->status) : -EBADMSG;
		if (r == 0) {
			v->has_answered = true;
			vault_op_finish(d, op, 0, "");
		}
		return r;
	case VAULT_SCANNED:
		r = op->ask == VAULT_SCAN ? vault_get_scanned(msg, op->scanned) : -EBADMSG;
		if (r == 0) {
			v->has_answered = true;
			vault_op_finish(d, op, 0, "");
		}
		return r;
	case VAULT_DONE:
		return on_done(d, op, msg);
	default:
		return -EBADMSG;
	}
}

/* ---- the process ---- */

bool vault_link_has_vault(struct sbxd *d)
{
	AUTO_FREE char *sealed = paths_get(PATHS_STATE, "vault/sealed");

	return d->vault->sock >= 0 || d->vault->child.pidfd >= 0 || access(sealed, F_OK) == 0;
}

/* Clients in the backlog must not wait forever for a vault that cannot be started. */
static void turn_away(struct vault_link *v)
{
	/* the vault shares the listener and may have made it blocking */
	if (v->listen_fd >= 0 && fd_set_nonblock(v->listen_fd, true) < 0)
		return;
	for (unsigned i = 0; i < VAULT_SOCK_BACKLOG && v->listen_fd >= 0; i++) {
		int fd = accept4(v->listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return;
		(void)close(fd);
	}
}

static void start_failed(struct sbxd *d, int r, const struct err *err)
{
	struct vault_link *v = d->vault;

	/* log a repeated error once */
	if (strcmp(v->why.text, err_text(err, r)) != 0)
		log_error("%s", err_text(err, r));
	(void)err_set(&v->why, r, "%s", err_text(err, r));
	v->has_answered = false;
	v->started_ms = 0;
	delay_next(v);
	v->has_callers = false;
	turn_away(v);
	vault_ops_fail_queued(d, -EAGAIN, v->why.text);
}

static int watch_socket(struct sbxd *d, int fd, bool is_owner, struct err *err)
{
	struct vault_link *v = d->vault;
	int r = loop_add(&d->loop, fd, EPOLLIN, key_of(v));

	if (r < 0) {
		(void)close(fd);
		return err_errno(err, r, "cannot watch the vault");
	}
	v->sock = fd;
	ipc_trace(fd, &vault_chan, VAULT_FROM_PEER, "");
	v->is_owner = is_owner;
	v->armed = EPOLLIN;
	v->phase = VAULT_PHASE_START;
	v->connected_ms = clock_mono_ms();
	return 0;
}

/* The channel passed at its start makes this sbxd the owner: a client cannot get such a channel by
 * connecting. */
static int start_vault(struct sbxd *d, struct err *err)
{
	struct vault_link *v = d->vault;
	AUTO_CLOSE int theirs = -1;
	AUTO_CLOSE int ours = -1;
	int pair[2], r = ipc_pair(pair);

	if (r < 0)
		return err_errno(err, r, "cannot create a channel");
	ours = pair[0];
	theirs = pair[1];
	r = vault_spawn(v->listen_fd, theirs, &v->child, err);
	if (r < 0)
		return r;
	v->has_callers = v->has_said = v->has_answered = false;
	v->started_ms = clock_mono_ms();
	r = loop_add(
		&d->loop, v->child.pidfd, EPOLLIN, (struct loop_key){.kind = SBXD_EV_VAULT_EXIT});
	return r < 0 ? err_errno(err, r, "cannot watch the vault")
		     : watch_socket(d, TAKE_FD(ours), true, err);
}

static void describe_exit(const struct hands_end *end, struct err *err)
{
	AUTO_FREE char *log = paths_get(PATHS_STATE, "vault.log");

	(void)err_set(err, -EIO, "the vault exited immediately (%s %d): see %s",
		end->was_killed ? "signal" : "status", end->status, log);
}

void vault_link_on_exit(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	struct hands_end end;

	if (v->child.pidfd < 0 || hands_reap(v->child.pid, &end) < 0)
		return;
	drop_channel(d, LOST);
	loop_del(&d->loop, v->child.pidfd);
	fd_close(&v->child.pidfd);
	if (v->has_said) {
		log_info("the vault exited");
		delay_next(v);
	} else {
		struct err err = {0};

		describe_exit(&end, &err);
		start_failed(d, -EIO, &err);
	}
	vault_link_step(d);
}

static int connect_to(struct sbxd *d, struct err *err)
{
	int fd = hands_to_vault(err);

	return fd < 0 ? fd : watch_socket(d, fd, false, err);
}

/* If no process answers there is no vault, and the name is free. */
static int find_or_listen(struct sbxd *d, struct err *err)
{
	int r = connect_to(d, err);

	if (r != -ECONNREFUSED)
		return r;
	r = vault_sock_listen(err);
	if (r < 0)
		return r;
	d->vault->listen_fd = r;
	return 0;
}

static bool is_wanted(struct sbxd *d)
{
	const struct vault_link *v = d->vault;

	if (v->has_callers || v->sweep_due || vault_channels_wanted(d))
		return true;
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (v->op[i].state == VAULT_OP_QUEUED)
			return true;
	return false;
}

static void go_up(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	struct err err = {0};
	int r = 0;

	if (clock_mono_ms() < v->next_start_ms)
		return;
	if (v->listen_fd < 0)
		r = find_or_listen(d, &err);
	if (r == 0 && v->sock < 0 && !is_wanted(d))
		return;
	if (r == 0 && v->sock < 0 && v->child.pidfd < 0)
		r = start_vault(d, &err);
	if (r < 0)
		start_failed(d, r, &err);
}

/* ---- due work ---- */

/* Deadline for the next message of the vault; UINT64_MAX if none is expected. */
static uint64_t owed_until(const struct vault_link *v)
{
	uint64_t until = UINT64_MAX;

	if (v->sock >= 0 && !is_up(v))
		until = v->connected_ms + VAULT_HELLO_MS;
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (v->op[i].state == VAULT_OP_SENT)
			until = MIN(until,
				v->op[i].sent_ms + (v->op[i].ask == VAULT_SCAN ? VAULT_SCAN_MS
									       : VAULT_ANSWER_MS));
	return until;
}

/* A vault that is silent or violates the protocol is useless. */
static void give_up(struct sbxd *d, int r, const char *why)
{
	struct vault_link *v = d->vault;
	struct err err = {0};

	if (v->child.pidfd >= 0)
		hands_signal(v->child.pidfd, HANDS_KILL);
	(void)err_set(&err, r, "%s", why);
	drop_channel(d, why);
	v->n_mute = 0;
	start_failed(d, r, &err);
}

/* Returns 1 with a valid message, 0 at end-of-file, -EAGAIN, or the error that ends the channel. */
static int receive_message(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	static struct ipc_msg msg;
	int r;

	msg.fd = -1;
	r = ipc_recv(v->sock, &msg);
	if (r > 0 && v->phase != VAULT_PHASE_END)
		r = take_message(d, &msg) < 0 ? -EBADMSG : 1;
	ipc_msg_done(&msg);
	return r;
}

void vault_link_on_event(struct sbxd *d, const struct loop_event *ev)
{
	struct vault_link *v = d->vault;

	for (unsigned i = 0; i < VAULT_LINK_BURST && v->gen == ev->key.gen && v->sock >= 0; i++) {
		int r = receive_message(d);

		if (r == -EAGAIN)
			break;
		if (r < 0)
			give_up(d, -EPROTO, "the vault violated its protocol");
		else if (r == 0)
			drop_channel(d, LOST);
	}
	if (v->n_mute >= VAULT_MAX_MUTE)
		give_up(d, -EIO, "the vault closes every connection");
	vault_link_step(d);
}

static void watch_listener(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	bool want = v->listen_fd >= 0 && v->child.pidfd < 0 && clock_mono_ms() >= v->next_start_ms;

	if (want == v->is_listening || v->listen_fd < 0)
		return;
	if (!want)
		loop_del(&d->loop, v->listen_fd);
	else if (loop_add(&d->loop, v->listen_fd, EPOLLIN,
			 (struct loop_key){.kind = SBXD_EV_VAULT_LISTEN}) < 0)
		return;
	v->is_listening = want;
}

static void watch_channel(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	uint32_t events = EPOLLIN | (v->is_blocked ? EPOLLOUT : 0);

	if (v->sock < 0 || v->armed == events)
		return;
	if (loop_mod(&d->loop, v->sock, events, key_of(v)) == 0)
		v->armed = events;
}

static void set_timer(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	uint64_t now = clock_mono_ms(), at = owed_until(v);

	if (v->sock < 0 && v->next_start_ms > now)
		at = MIN(at, v->next_start_ms);
	if (v->sweep_until_ms > now)
		at = MIN(at, v->sweep_until_ms);
	if (v->sock >= 0 && v->crowded_ms)
		at = MIN(at, v->crowded_ms);
	if (at == UINT64_MAX)
		loop_timer_clear(&d->loop, &v->timer);
	else
		loop_timer_set(&d->loop, &v->timer, MAX(at, now + 1),
			(struct loop_key){.kind = SBXD_EV_VAULT_TIMER});
}

/* A vault that an earlier sbxd started accepts no channels from this one: it is replaced, but only
 * after it has answered its requests. */
static void give_channels(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	int r = 0;

	if (!is_up(v) || !vault_channels_wanted(d))
		return;
	if (v->is_owner)
		r = vault_channels_give(d);
	else if (!vault_ops_sent(v))
		r = replace_vault(v,
			"an earlier sbxd started the vault, and a sandbox needs a channel to it");
	if (r == -EAGAIN)
		v->is_blocked = true;
	else if (!is_crowded(v, r) && r < 0)
		drop_channel(d, LOST);
	if (r == 0 && is_up(v))
		send_queued(d);
}

void vault_link_step(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	bool more = true;

	/* At most twice for each request of the sweep, which sends requests from answers. */
	for (unsigned i = 0; more && i < VAULT_LINK_MAX_OPS; i++) {
		if (clock_mono_ms() >= owed_until(v))
			give_up(d, -ETIMEDOUT, "the vault is not responding");
		if (v->sock < 0 && (v->listen_fd < 0 || is_wanted(d)))
			go_up(d);
		if (is_up(v)) {
			if (v->sweep_due)
				vault_ops_sweep(d);
			send_queued(d);
		}
		give_channels(d);
		more = vault_ops_hand_out(d);
	}
	watch_listener(d);
	watch_channel(d);
	set_timer(d);
}

void vault_link_sweep(struct sbxd *d)
{
	if (!vault_link_has_vault(d))
		return;
	d->vault->sweep_due = true;
	d->vault->sweep_until_ms = clock_mono_ms() + VAULT_SWEEP_MS;
	vault_link_step(d);
}

void vault_link_on_want(struct sbxd *d, struct keeper *k)
{
	uint64_t now = clock_mono_ms();

	/* A keeper without a channel requests it again; a well-behaved one waits longer. */
	if (k->vault_given_ms && now - k->vault_given_ms < VAULT_WANT_GAP_MS)
		return;
	k->wants_vault = true;
	vault_link_step(d);
}

void vault_link_on_listen(struct sbxd *d)
{
	d->vault->has_callers = true;
	vault_link_step(d);
}

void vault_link_on_timer(struct sbxd *d)
{
	uint64_t until = d->vault->sweep_until_ms;

	if (until && clock_mono_ms() >= until) {
		d->vault->sweep_until_ms = 0;
		conns_wake(d, NULL);
	}
	vault_link_step(d);
}

static bool is_needed(struct sbxd *d)
{
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		if (d->keepers->slot[i]->used)
			return true;
	return false;
}

void vault_link_done(struct sbxd *d)
{
	struct vault_link *v = d->vault;
	AUTO_FREE char *path = vault_sock_path();

	if (!is_needed(d)) {
		if (is_up(v))
			(void)!chan_send_plain(v->sock, VAULT_STOP, 0, -1);
		else if (v->child.pidfd >= 0)
			hands_signal(v->child.pidfd, HANDS_TERM);
		if (v->listen_fd >= 0 || is_up(v))
			(void)unlink(path);
	}
	loop_timer_clear(&d->loop, &v->timer);
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		vault_link_forget(d, &v->op[i]);
	fd_close(&v->sock);
	fd_close(&v->child.pidfd);
	fd_close(&v->listen_fd);
}
