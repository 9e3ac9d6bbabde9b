/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbxd_link - the keeper's side of lib/os/ipc/keeper_chan.h.
 *
 * How      fd 3 at the start, later connections through keeper.sock. Each gets HELLO and STATE,
 *          then STATE on every change. sbxd going away means nothing to the sandbox.
 * Trust    Same user (checked by SO_PEERCRED); a malformed message drops the connection.
 */
#include "src/keeper/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static void drop(struct keeper *k, struct link *l)
{
	loop_del(&k->loop, l->fd);
	fd_close(&l->fd);
	l->gen++;
	l->is_first = false;
	pool_on_link_end(k);
}

static int send_hello(struct keeper *k, int fd)
{
	struct keeper_hello hello = {.pid = (uint32_t)getpid()};
	int r;

	(void)!str_copy(hello.build, sizeof(hello.build), SBX_VERSION);
	(void)!str_copy(hello.id, sizeof(hello.id), k->spec.id);
	r = keeper_send_hello(fd, &hello);
	if (r == 0)
		r = keeper_send_state(fd, 0, &k->state);
	return r < 0 || k->ports.n == 0 ? r : ports_send(k, fd, 0);
}

static struct link *free_link(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd < 0)
			return &k->links[i];
	/* A client that never goes away must not lock the others out, nor end the link of the
	 * sbxd that started this keeper: while that one lives, nobody else says who the vault
	 * is. */
	drop(k, &k->links[k->links[0].is_first ? 1 : 0]);
	return &k->links[k->links[0].is_first ? 1 : 0];
}

void link_add(struct keeper *k, int fd, bool is_first)
{
	struct link *l = free_link(k);
	struct loop_key key = {
		.kind = EV_LINK, .gen = l->gen & 0xffffff, .idx = (uint32_t)(l - k->links)};

	if (fd_set_nonblock(fd, true) < 0 || send_hello(k, fd) < 0 ||
		loop_add(&k->loop, fd, EPOLLIN, key) < 0) {
		fd_close(&fd);
		return;
	}
	l->fd = fd;
	l->is_first = is_first;
	/* While sbxd was away nobody could give one. */
	if (k->vault.sock < 0 && k->vault.timer.pos)
		vault_start(k);
}

static struct link *first_link(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0 && k->links[i].is_first)
			return &k->links[i];
	return NULL;
}

bool link_want_vault(struct keeper *k)
{
	bool is_asked = false;

	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0 && (k->links[i].is_first || !first_link(k)))
			is_asked = keeper_want_vault(k->links[i].fd) == 0 || is_asked;
	return is_asked;
}

/* As long as the sbxd that started this keeper lives, no other process says who the vault is. */
static int answer_vault(struct keeper *k, struct link *l, struct ipc_msg *msg)
{
	const struct link *first = first_link(k);
	int r = keeper_get_vault(msg);

	if (r == 0 && first && first != l)
		r = -EPERM;
	return r < 0 ? r : vault_take_channel(k, TAKE_FD(msg->fd));
}

static bool is_same_user(int fd)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 && cred.uid == getuid();
}

void link_on_accept(struct keeper *k)
{
	AUTO_CLOSE int fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 && is_same_user(fd))
		link_add(k, TAKE_FD(fd), false);
}

int link_listen(struct keeper *k, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/keeper.sock", k->run_dir);
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "making the keeper's socket");
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return err_set(err, -ENAMETOOLONG,
			"the runtime folder %s is too long for a socket name: set "
			"XDG_RUNTIME_DIR to a shorter one",
			k->run_dir);
	/* The lock says that nobody else is alive here, so what lies there is left over. */
	(void)unlink(sa.sun_path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 4) < 0)
		return err_errno(err, -errno, "listening on %s", sa.sun_path);
	r = loop_add(&k->loop, fd, EPOLLIN, (struct loop_key){.kind = EV_LISTEN});
	if (r < 0)
		return err_errno(err, r, "watching %s", sa.sun_path);
	k->listen_fd = TAKE_FD(fd);
	return 0;
}

void link_push_state(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0 && keeper_send_state(k->links[i].fd, 0, &k->state) < 0)
			drop(k, &k->links[i]);
}

void link_push_ports(struct keeper *k, const struct link *but)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0 && &k->links[i] != but &&
			ports_send(k, k->links[i].fd, 0) < 0)
			drop(k, &k->links[i]);
}

void link_progress(struct keeper *k, unsigned percent, const char *text)
{
	k->state.progress = (uint8_t)percent;
	(void)snprintf(k->state.text, sizeof(k->state.text), "%s", text);
	if (text[0])
		log_info("%s", text);
	link_push_state(k);
}

static struct link *live_link(struct keeper *k, int link, uint32_t gen)
{
	if (link < 0 || k->links[link].fd < 0 || k->links[link].gen != gen)
		return NULL;
	return &k->links[link];
}

void link_answer(
	struct keeper *k, int link, uint32_t link_gen, uint32_t msg, int code, const char *text)
{
	struct link *l = live_link(k, link, link_gen);

	if (l && keeper_send_done(l->fd, msg, code, text) < 0)
		drop(k, l);
}

static int answer_ping(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	bool stalled = machine_is_stalled(k);
	int r = keeper_get_nothing(msg);

	if (r < 0)
		return r;
	k->state.stalled = stalled;
	return keeper_send_state(l->fd, msg->id, &k->state);
}

static int answer_stream(struct keeper *k, struct link *l, struct ipc_msg *msg)
{
	char path[KEEPER_MAX_PATH];
	uint32_t stream;
	int r = keeper_get_stream(msg, path);

	if (r < 0)
		return r;
	/* The user's way into the guest is exec; the other paths are the keeper's own. */
	if (strcmp(path, GUEST_PATH_EXEC) != 0)
		return keeper_send_done(l->fd, msg->id, -EPERM, "no such stream");
	if (k->state.phase != KEEPER_RUNNING)
		return keeper_send_done(l->fd, msg->id, -EAGAIN, "the sandbox is not running");
	if (k->state.paused)
		return keeper_send_done(l->fd, msg->id, -EAGAIN, "the sandbox is " SPACE_PAUSED);
	if (edge_is_up(k))
		r = edge_open_stream(k, path, TAKE_FD(msg->fd), &session_stream, &stream);
	else
		r = waiting_add(k, (int)(l - k->links), msg->id, TAKE_FD(msg->fd));
	if (r < 0)
		return keeper_send_done(l->fd, msg->id, r, "too many streams are open");
	/* One that waits is answered when edge is there. */
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

static void on_stats(struct keeper *k, const struct ask *a, struct slice body)
{
	struct link *l = live_link(k, a->link, a->link_gen);
	struct keeper_stats stats = {0};

	if (!l)
		return;
	if (guest_get_stats(body, &stats) < 0)
		link_answer(k, a->link, a->link_gen, a->link_msg, -EBADMSG,
			"the guest's answer does not decode");
	else if (keeper_send_stats(l->fd, a->link_msg, &stats) < 0)
		log_warn("sbxd does not take the statistics");
}

static const struct ask_kind stats_ask = {GUEST_PATH_STATS, .on_body = on_stats};

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
		return keeper_send_done(l->fd, msg->id, r, "the guest cannot be asked now");
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

static int answer_suspend(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	struct err err = {0};
	int r = keeper_get_nothing(msg);

	if (r < 0)
		return r;
	r = suspend_begin(k, (int)(l - k->links), msg->id, &err);
	return r < 0 ? keeper_send_done(l->fd, msg->id, r, err_text(&err, r)) : 0;
}

static int answer_ports(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	static struct keeper_ports wanted;
	int r = keeper_get_ports(msg, &wanted);

	if (r == 0)
		r = ports_set(k, &wanted);
	if (r < 0)
		return r;
	link_push_ports(k, l);
	return ports_send(k, l->fd, msg->id);
}

static int answer_freeze(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	int r = keeper_get_nothing(msg);

	if (r == 0)
		freeze_begin(k, (int)(l - k->links), msg->id);
	return r;
}

static int answer_claim(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	int r = keeper_get_nothing(msg);

	if (r == 0)
		pool_claim(k, (int)(l - k->links), msg->id);
	return r;
}

static int answer(struct keeper *k, struct link *l, struct ipc_msg *msg)
{
	if (msg->fd >= 0 && msg->type != KEEPER_STREAM && msg->type != KEEPER_VAULT)
		return -EBADMSG;
	if (pool_waits(k) && !pool_knows(msg->type))
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
	case KEEPER_RELOAD:
		return answer_reload(k, l, msg);
	case KEEPER_SUSPEND:
		return answer_suspend(k, l, msg);
	case KEEPER_PORTS:
		return answer_ports(k, l, msg);
	case KEEPER_FREEZE:
		return answer_freeze(k, l, msg);
	case KEEPER_VAULT:
		return answer_vault(k, l, msg);
	case KEEPER_CLAIM:
		return answer_claim(k, l, msg);
	default:
		return -EBADMSG;
	}
}

void link_on_readable(struct keeper *k, const struct loop_event *ev)
{
	struct link *l = &k->links[ev->key.idx];
	static struct ipc_msg msg; /* 16 KiB: not on the stack of every event */
	uint32_t gen = l->gen;
	int r = ipc_recv(l->fd, &msg);

	if (r == -EAGAIN)
		return;
	if (r > 0) {
		r = answer(k, l, &msg);
		ipc_msg_done(&msg);
		if (r < 0)
			log_warn("a message of sbxd (type %u) was refused: %s", msg.type,
				strerror(-r));
		r = r < 0 ? r : 1;
	}
	if (r <= 0 && l->fd >= 0 && l->gen == gen)
		drop(k, l);
}
