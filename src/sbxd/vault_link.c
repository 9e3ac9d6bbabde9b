#include "vault_link.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "lib/ipc/vault_sock.h"
#include "sbxd.h"

void vault_link_init(struct vault_link *v)
{
	*v = (struct vault_link){.listen_fd = -1, .pidfd = -1, .sock = -1};
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		v->op[i].fd = -1;
}

/* ---- questions ---- */

struct vault_op *vault_link_ask(struct sbxd *d, enum vault_msg ask)
{
	struct vault_link *v = &d->vault;

	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &v->op[i];

		if (op->state != VAULT_OP_FREE)
			continue;
		if (++v->last_id == 0)
			v->last_id = 1;
		*op = (struct vault_op){
			.state = VAULT_OP_QUEUED, .ask = ask, .id = v->last_id, .fd = -1};
		return op;
	}
	return NULL;
}

struct vault_op *vault_link_find(struct sbxd *d, uint32_t id)
{
	for (size_t i = 0; id && i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &d->vault.op[i];

		if (op->state != VAULT_OP_FREE && op->id == id)
			return op;
	}
	return NULL;
}

void vault_link_forget(struct sbxd *d, struct vault_op *op)
{
	fd_close(&op->fd);
	free(op->meta);
	free(op->ref);
	free(op->items);
	*op = (struct vault_op){.fd = -1};
}

static bool is_change(const struct vault_op *op)
{
	return op->ask == VAULT_SET || op->ask == VAULT_SET_REF || op->ask == VAULT_REMOVE;
}

/* Before it is asked for; and again when it was not done after all. */
static int record(struct sbxd *d, const struct vault_op *op, const char *why, struct err *err)
{
	AUTO_FREE char *reason = xasprintf("%s, %s%s%s%s", op->meta->name,
		!op->meta->scope[0] ? "all sandboxes"
		: op->sandbox[0]    ? "sandbox "
				    : "removed sandbox ",
		!op->meta->scope[0] ? ""
		: op->sandbox[0]    ? op->sandbox
				    : op->meta->scope,
		why ? ": not done: " : "", why ? why : "");
	struct journal_entry e = {.kind = AUDIT_KIND_POLICY_CHANGE,
		.action = why				  ? "secret-failed"
			  : op->ask == VAULT_REMOVE ? "secret-rm"
						    : "secret-set",
		.sandbox = op->sandbox[0] ? op->sandbox : NULL,
		.reason = reason};

	return journal_append(d, &e, err);
}

static void finish(struct sbxd *d, struct vault_op *op, int code, const char *text)
{
	bool was_sent = op->state == VAULT_OP_SENT;
	struct err err = {0};

	op->state = VAULT_OP_FINISHED;
	op->done.code = code;
	(void)snprintf(op->done.text, sizeof(op->done.text), "%.*s", VAULT_MAX_TEXT - 1, text);
	fd_close(&op->fd);
	if (code < 0 && was_sent && is_change(op) && record(d, op, op->done.text, &err) < 0)
		log_error("%s", err.text);
}

static struct conn *find_asker(struct sbxd *d, uint32_t id)
{
	for (size_t i = 0; i < CONN_MAX; i++) {
		struct conn *c = &d->conns.slot[i];

		if (c->state == CONN_WAITING && c->vault_op == id)
			return c;
	}
	return NULL;
}

/* ---- what a removed sandbox leaves ---- */

void vault_link_sweep(struct sbxd *d)
{
	if (!vault_link_has_vault(d))
		return;
	d->vault.sweep_due = true;
	d->vault.sweep_until_ms = clock_mono_ms() + VAULT_SWEEP_MS;
	vault_link_step(d);
}

static bool has_own(const struct vault_link *v)
{
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (v->op[i].state != VAULT_OP_FREE && v->op[i].is_own)
			return true;
	return false;
}

bool vault_link_is_sweeping(struct sbxd *d)
{
	const struct vault_link *v = &d->vault;

	return clock_mono_ms() < v->sweep_until_ms && (v->sweep_due || has_own(v));
}

static void begin_sweep(struct sbxd *d)
{
	struct vault_op *op = has_own(&d->vault) ? NULL : vault_link_ask(d, VAULT_LIST);

	if (!op)
		return;
	op->is_own = true;
	d->vault.sweep_due = false;
}

/* Whether it is for a sandbox that is no more. A registry that cannot be read says nothing. */
static bool is_left_over(struct sbxd *d, const struct vault_item *item)
{
	AUTO_ROW struct store_row row = {0};

	return item->meta.scope[0] && store_get(d->store, item->meta.scope, &row, NULL) == -ENOENT;
}

static void go_on_sweeping(struct sbxd *d, const struct vault_op *list)
{
	if (list->done.code < 0) {
		d->vault.sweep_missed = true;
		return;
	}
	for (size_t i = 0; i < list->n_items; i++) {
		struct vault_op *op;

		if (!is_left_over(d, &list->items[i]))
			continue;
		op = vault_link_ask(d, VAULT_REMOVE);
		if (!op) {
			d->vault.sweep_due = true;
			return;
		}
		op->is_own = true;
		op->meta = xmalloc(sizeof(*op->meta));
		*op->meta = list->items[i].meta;
	}
}

/* ---- who hears of an answer ---- */

/* True when one of our own was among them: there may be more to ask. */
static bool hand_out(struct sbxd *d)
{
	bool own = false;

	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &d->vault.op[i];
		struct conn *c;

		if (op->state != VAULT_OP_FINISHED)
			continue;
		if (op->is_own) {
			own = true;
			op->is_own = false;
			if (op->ask == VAULT_LIST)
				go_on_sweeping(d, op);
			vault_link_forget(d, op);
			continue;
		}
		c = find_asker(d, op->id);
		if (c)
			c->wait(d, c, false);
		else
			vault_link_forget(d, op);
	}
	if (own && !vault_link_is_sweeping(d))
		conns_wake(d, NULL);
	return own;
}

/* ---- the channel ---- */

static struct loop_key key_of(const struct vault_link *v)
{
	return (struct loop_key){.kind = SBXD_EV_VAULT, .gen = v->gen};
}

/* The link is over: what was asked and only asks is asked again, once. */
static void drop(struct sbxd *d, const char *why)
{
	struct vault_link *v = &d->vault;

	if (v->sock < 0)
		return;
	loop_del(&d->loop, v->sock);
	fd_close(&v->sock);
	v->gen++;
	v->phase = VAULT_PHASE_START;
	v->is_blocked = false;
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &v->op[i];

		if (op->state != VAULT_OP_SENT)
			continue;
		if ((op->ask == VAULT_LIST || op->ask == VAULT_STATUS) && !op->was_lost) {
			op->state = VAULT_OP_QUEUED;
			op->was_lost = true;
			op->n_items = 0;
			continue;
		}
		finish(d, op, -EIO, why);
	}
}

static void fail_queued(struct sbxd *d, int code, const char *why)
{
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (d->vault.op[i].state == VAULT_OP_QUEUED)
			finish(d, &d->vault.op[i], code, why);
	d->vault.sweep_missed = d->vault.sweep_missed || d->vault.sweep_due;
	d->vault.sweep_due = false;
}

static int send_one(struct sbxd *d, struct vault_op *op)
{
	int sock = d->vault.sock;

	switch (op->ask) {
	case VAULT_SET:
		return vault_ask_set(sock, op->id, op->meta, op->fd);
	case VAULT_SET_REF:
		return vault_ask_set_ref(sock, op->id, op->meta, op->ref);
	case VAULT_REMOVE:
		return vault_ask_remove(sock, op->id, op->meta->name, op->meta->scope);
	default:
		return vault_ask_plain(sock, op->ask, op->id, op->fd);
	}
}

static bool is_pipe(const struct vault_op *op)
{
	return op->ask == VAULT_SET || op->ask == VAULT_UNLOCK;
}

/* The oldest that may be sent now. */
static struct vault_op *next_queued(struct vault_link *v)
{
	struct vault_op *best = NULL;
	unsigned n_sent = 0, n_pipes = 0;

	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		n_sent += v->op[i].state == VAULT_OP_SENT;
		n_pipes += v->op[i].state == VAULT_OP_SENT && is_pipe(&v->op[i]);
	}
	if (n_sent >= VAULT_LINK_MAX_SENT)
		return NULL;
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++) {
		struct vault_op *op = &v->op[i];

		if (op->state != VAULT_OP_QUEUED ||
			(is_pipe(op) && n_pipes >= VAULT_LINK_MAX_PIPES))
			continue;
		if (!best || op->id - best->id > UINT32_MAX / 2)
			best = op;
	}
	return best;
}

static void send_queued(struct sbxd *d)
{
	struct vault_link *v = &d->vault;
	struct vault_op *op;

	v->is_blocked = false;
	while ((op = next_queued(v))) {
		struct err err = {0};
		int r = 0;

		if (!op->is_own && !find_asker(d, op->id)) {
			vault_link_forget(d, op); /* who asked has gone: it is not done */
			continue;
		}
		if (is_change(op))
			r = record(d, op, NULL, &err);
		if (r < 0) {
			finish(d, op, -EIO, err.text);
			continue;
		}
		r = send_one(d, op);
		op->state = VAULT_OP_SENT;
		op->sent_ms = clock_mono_ms();
		if (r == -EAGAIN) {
			v->is_blocked = true;
			op->state = VAULT_OP_QUEUED;
			return;
		}
		if (r < 0) {
			finish(d, op, r, "the vault could not be asked");
			drop(d, "the vault ended before it answered");
			return;
		}
		fd_close(&op->fd);
	}
}

/* ---- what the vault says ---- */

static int on_hello(struct sbxd *d, const struct ipc_msg *msg)
{
	struct vault_link *v = &d->vault;
	char build[VAULT_MAX_BUILD];
	int r = vault_get_hello(msg, build);

	if (r == 0)
		r = vault_ask_admin(v->sock);
	if (r < 0)
		return r;
	v->has_said = true;
	v->phase = VAULT_PHASE_ADMIN;
	if (strcmp(build, VAULT_BUILD) != 0 && !v->was_replaced) {
		log_info("the vault is of build %s: another takes its place", build);
		v->was_replaced = true;
		v->phase = VAULT_PHASE_END;
		return vault_ask_plain(v->sock, VAULT_STOP, 0, -1);
	}
	v->sweep_due = true;
	return 0;
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
	struct vault_link *v = &d->vault;
	struct vault_done done;
	int r = vault_get_done(msg, &done);

	if (r < 0 || done.code > 0)
		return -EBADMSG;
	v->has_answered = true;
	op->done = done;
	finish(d, op, done.code, done.text);
	if (done.code == 0 && !op->is_own && v->sweep_missed) {
		v->sweep_missed = false;
		v->sweep_due = true;
	}
	return 0;
}

static int take(struct sbxd *d, const struct ipc_msg *msg)
{
	struct vault_link *v = &d->vault;
	struct vault_op *op;
	int r;

	if (v->phase == VAULT_PHASE_START)
		return on_hello(d, msg);
	if (!vault_phase_allows(VAULT_PHASE_ADMIN, VAULT_FROM_VAULT, msg->type))
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
			finish(d, op, 0, "");
		}
		return r;
	case VAULT_DONE:
		return on_done(d, op, msg);
	default:
		return -EBADMSG;
	}
}

void vault_link_on_event(struct sbxd *d, uint32_t gen, uint32_t events)
{
	struct vault_link *v = &d->vault;
	static struct ipc_msg msg;

	for (unsigned i = 0; i < VAULT_LINK_BURST && v->gen == gen && v->sock >= 0; i++) {
		int r;

		msg.fd = -1;
		r = ipc_recv(v->sock, &msg);
		if (r == -EAGAIN)
			break;
		if (r > 0 && v->phase != VAULT_PHASE_END) {
			r = take(d, &msg);
			if (r < 0)
				log_error("the vault broke the rules of its channel");
			r = r < 0 ? r : 1;
		}
		ipc_msg_done(&msg);
		if (r <= 0)
			drop(d, "the vault ended before it answered; sbx secret ls shows what is "
				"kept");
	}
	vault_link_step(d);
}

/* ---- the process ---- */

bool vault_link_has_vault(struct sbxd *d)
{
	AUTO_FREE char *sealed = paths_get(PATHS_STATE, "vault/sealed");

	return d->vault.sock >= 0 || d->vault.pidfd >= 0 || access(sealed, F_OK) == 0;
}

/* Those that wait in the listener for a vault that cannot be started must not wait for ever. */
static void turn_away(struct vault_link *v)
{
	for (unsigned i = 0; i < VAULT_SOCK_BACKLOG && v->listen_fd >= 0; i++) {
		int fd = accept4(v->listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return;
		(void)close(fd);
	}
}

static void delay_next(struct vault_link *v)
{
	uint64_t now = clock_mono_ms();

	if (v->has_answered || (v->started_ms && now - v->started_ms >= VAULT_LIVED_MS)) {
		v->delay_ms = 0;
		v->next_start_ms = now;
		return;
	}
	v->delay_ms = v->delay_ms ? MIN(2 * v->delay_ms, (uint64_t)VAULT_LAST_DELAY_MS)
				  : VAULT_FIRST_DELAY_MS;
	v->next_start_ms = now + v->delay_ms;
}

static void start_failed(struct sbxd *d, int r, const struct err *err)
{
	struct vault_link *v = &d->vault;

	(void)err_set(&v->why, r, "%s", err_text(err, r));
	log_error("%s", v->why.text);
	v->has_answered = false;
	v->started_ms = 0;
	delay_next(v);
	v->has_callers = false;
	turn_away(v);
	fail_queued(d, -EAGAIN, v->why.text);
}

static int start(struct sbxd *d, struct err *err)
{
	struct vault_link *v = &d->vault;
	int r = vault_spawn(v->listen_fd, err);

	if (r < 0)
		return r;
	v->pidfd = r;
	v->has_callers = v->has_said = v->has_answered = false;
	v->started_ms = clock_mono_ms();
	r = loop_add(
		&d->loop, v->pidfd, EPOLLIN, (struct loop_key){.kind = SBXD_EV_VAULT_EXIT});
	return r < 0 ? err_errno(err, r, "watching the vault") : 0;
}

static void describe_exit(const siginfo_t *si, struct err *err)
{
	AUTO_FREE char *log = paths_get(PATHS_STATE, "vault.log");

	(void)err_set(err, -EIO, "the vault ended as soon as it was started (%s %d); %s says why",
		si->si_code == CLD_EXITED ? "status" : "signal", si->si_status, log);
}

void vault_link_on_exit(struct sbxd *d)
{
	struct vault_link *v = &d->vault;
	siginfo_t si = {0};

	if (v->pidfd < 0 || waitid(P_PIDFD, (id_t)v->pidfd, &si, WEXITED | WNOHANG) < 0 ||
		!si.si_pid)
		return;
	loop_del(&d->loop, v->pidfd);
	fd_close(&v->pidfd);
	drop(d, "the vault ended before it answered; sbx secret ls shows what is kept");
	if (v->has_said) {
		log_info("the vault ended");
		delay_next(v);
	} else {
		struct err err = {0};

		describe_exit(&si, &err);
		start_failed(d, -EIO, &err);
	}
	vault_link_step(d);
}

static int connect_to(struct sbxd *d, struct err *err)
{
	struct vault_link *v = &d->vault;
	int fd = vault_sock_connect(err), r;

	if (fd < 0)
		return fd;
	r = loop_add(&d->loop, fd, EPOLLIN, key_of(v));
	if (r < 0) {
		(void)close(fd);
		return err_errno(err, r, "watching the vault");
	}
	v->sock = fd;
	v->armed = EPOLLIN;
	v->phase = VAULT_PHASE_START;
	v->connected_ms = clock_mono_ms();
	return 0;
}

/* Where nobody answers there is no vault, and the name is ours. */
static int find_or_listen(struct sbxd *d, struct err *err)
{
	int r = connect_to(d, err);

	if (r != -ECONNREFUSED)
		return r;
	r = vault_sock_listen(err);
	if (r < 0)
		return r;
	d->vault.listen_fd = r;
	return 0;
}

static void go_up(struct sbxd *d)
{
	struct vault_link *v = &d->vault;
	struct err err = {0};
	int r = 0;

	if (v->listen_fd < 0)
		r = find_or_listen(d, &err);
	if (r == 0 && v->sock < 0 && v->pidfd < 0) {
		if (clock_mono_ms() < v->next_start_ms)
			return;
		r = start(d, &err);
	}
	if (r == 0 && v->sock < 0)
		r = connect_to(d, &err);
	if (r < 0)
		start_failed(d, r, &err);
}

/* ---- what is due ---- */

static bool is_wanted(const struct vault_link *v)
{
	if (v->has_callers || v->sweep_due)
		return true;
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (v->op[i].state == VAULT_OP_QUEUED)
			return true;
	return false;
}

/* When the vault must have said something at the latest; UINT64_MAX when nothing is owed. */
static uint64_t owed_until(const struct vault_link *v)
{
	uint64_t until = UINT64_MAX;

	if (v->sock >= 0 && v->phase != VAULT_PHASE_ADMIN)
		until = v->connected_ms + VAULT_HELLO_MS;
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		if (v->op[i].state == VAULT_OP_SENT)
			until = MIN(until, v->op[i].sent_ms + VAULT_ANSWER_MS);
	return until;
}

/* One that says nothing is of no use to anybody. */
static void give_up(struct sbxd *d)
{
	static const char why[] = "the vault does not answer";
	struct vault_link *v = &d->vault;
	struct err err = {0};

	if (v->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, v->pidfd, SIGKILL, NULL, 0);
	(void)err_set(&err, -ETIMEDOUT, "%s", why);
	drop(d, why);
	start_failed(d, -ETIMEDOUT, &err);
}

static void watch_listener(struct sbxd *d)
{
	struct vault_link *v = &d->vault;
	bool want = v->listen_fd >= 0 && v->pidfd < 0 && clock_mono_ms() >= v->next_start_ms;

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
	struct vault_link *v = &d->vault;
	uint32_t events = EPOLLIN | (v->is_blocked ? EPOLLOUT : 0);

	if (v->sock < 0 || v->armed == events)
		return;
	if (loop_mod(&d->loop, v->sock, events, key_of(v)) == 0)
		v->armed = events;
}

static void set_timer(struct sbxd *d)
{
	struct vault_link *v = &d->vault;
	uint64_t now = clock_mono_ms(), at = owed_until(v);

	if (v->pidfd < 0 && v->next_start_ms > now)
		at = MIN(at, v->next_start_ms);
	if (v->sweep_until_ms > now)
		at = MIN(at, v->sweep_until_ms);
	if (at == UINT64_MAX)
		loop_timer_clear(&d->loop, &v->timer);
	else
		loop_timer_set(&d->loop, &v->timer, MAX(at, now + 1),
			(struct loop_key){.kind = SBXD_EV_VAULT_TIMER});
}

void vault_link_step(struct sbxd *d)
{
	struct vault_link *v = &d->vault;
	bool more = true;

	/* Twice at most for each question of the sweep, which asks what it was answered. */
	for (unsigned i = 0; more && i < VAULT_LINK_MAX_OPS; i++) {
		if (clock_mono_ms() >= owed_until(v))
			give_up(d);
		if (v->sock < 0 && is_wanted(v))
			go_up(d);
		if (v->sock >= 0 && v->phase == VAULT_PHASE_ADMIN) {
			if (v->sweep_due)
				begin_sweep(d);
			send_queued(d);
		}
		more = hand_out(d);
	}
	watch_listener(d);
	watch_channel(d);
	set_timer(d);
}

void vault_link_on_listen(struct sbxd *d)
{
	d->vault.has_callers = true;
	vault_link_step(d);
}

void vault_link_on_timer(struct sbxd *d)
{
	uint64_t until = d->vault.sweep_until_ms;

	if (until && clock_mono_ms() >= until) {
		d->vault.sweep_until_ms = 0;
		conns_wake(d, NULL);
	}
	vault_link_step(d);
}

int vault_link_open(struct sbxd *d, struct err *err)
{
	int r = find_or_listen(d, err);

	if (r == 0)
		vault_link_step(d);
	return r;
}

static bool is_needed(struct sbxd *d)
{
	for (size_t i = 0; i < KEEPER_MAX; i++)
		if (d->keepers.slot[i].used)
			return true;
	return false;
}

void vault_link_done(struct sbxd *d)
{
	struct vault_link *v = &d->vault;
	AUTO_FREE char *path = vault_sock_path();

	if (!is_needed(d)) {
		if (v->sock >= 0 && v->phase == VAULT_PHASE_ADMIN)
			(void)!vault_ask_plain(v->sock, VAULT_STOP, 0, -1);
		else if (v->pidfd >= 0)
			(void)syscall(SYS_pidfd_send_signal, v->pidfd, SIGTERM, NULL, 0);
		if (v->listen_fd >= 0 || v->phase == VAULT_PHASE_ADMIN)
			(void)unlink(path);
	}
	loop_timer_clear(&d->loop, &v->timer);
	for (size_t i = 0; i < VAULT_LINK_MAX_OPS; i++)
		vault_link_forget(d, &v->op[i]);
	fd_close(&v->sock);
	fd_close(&v->pidfd);
	fd_close(&v->listen_fd);
}
