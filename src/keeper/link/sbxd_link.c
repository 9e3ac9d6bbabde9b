/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbxd_link - the keeper's side of lib/os/ipc/keeper_chan.h.
 *
 * How      fd 3 at the start, later connections through keeper.sock. Each gets HELLO and STATE,
 *          then STATE on every change. The sandbox does not depend on sbxd.
 * Trust    Same user (checked by SO_PEERCRED); a malformed message drops the connection.
 */
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

void link_init(struct keeper *k, const struct link_ops *ops)
{
	k->link_ops = ops;
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		k->links[i].fd = -1;
}

bool link_is_live(const struct keeper *k, struct loop_key key)
{
	return k->links[key.idx].fd >= 0 && (k->links[key.idx].gen & 0xffffff) == key.gen;
}

static void drop_link(struct keeper *k, struct link *l)
{
	loop_del(&k->loop, l->fd);
	fd_close(&l->fd);
	l->gen++;
	l->is_first = false;
	k->link_ops->on_closed(k);
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
	return r < 0 ? r : k->link_ops->on_open(k, fd);
}

static struct link *free_link(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd < 0)
			return &k->links[i];
	/* A client that stays connected must not lock others out. The link of the sbxd that started
	 * this keeper stays: while that sbxd lives, only it can pass the vault's channel. */
	drop_link(k, &k->links[k->links[0].is_first ? 1 : 0]);
	return &k->links[k->links[0].is_first ? 1 : 0];
}

void link_add(struct keeper *k, int fd, bool is_first)
{
	struct link *l = free_link(k);
	struct loop_key key = {
		.kind = EV_LINK, .gen = l->gen & 0xffffff, .idx = (uint32_t)(l - k->links)};

	ipc_trace(fd, &keeper_chan, KEEPER_FROM_KEEPER, "");
	if (fd_set_nonblock(fd, true) < 0 || send_hello(k, fd) < 0 ||
		loop_add(&k->loop, fd, EPOLLIN, key) < 0) {
		fd_close(&fd);
		return;
	}
	l->fd = fd;
	l->is_first = is_first;
	k->link_ops->on_opened(k);
}

static struct link *first_link(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0 && k->links[i].is_first)
			return &k->links[i];
	return NULL;
}

bool link_is_up(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0)
			return true;
	return false;
}

bool link_want_vault(struct keeper *k)
{
	bool is_asked = false;

	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0 && (k->links[i].is_first || !first_link(k)))
			is_asked = chan_send_plain(k->links[i].fd, KEEPER_WANT_VAULT, 0, -1) == 0 ||
				   is_asked;
	return is_asked;
}

bool link_may_give_vault(struct keeper *k, const struct link *l)
{
	const struct link *first = first_link(k);

	return !first || first == l;
}

void link_on_accept(struct keeper *k)
{
	AUTO_CLOSE int fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 && fd_is_same_user(fd))
		link_add(k, TAKE_FD(fd), false);
}

int link_listen(struct keeper *k, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/keeper.sock", k->run_dir);
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "cannot create the socket of sbx-keeper");
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return err_set(err, -ENAMETOOLONG,
			"the runtime directory %s is too long for a socket name: set XDG_RUNTIME_DIR to a shorter path",
			k->run_dir);
	/* The lock guarantees that no other keeper is alive, so an existing socket is stale. */
	(void)unlink(sa.sun_path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 4) < 0)
		return err_errno(err, -errno, "cannot listen on %s", sa.sun_path);
	r = loop_add(&k->loop, fd, EPOLLIN, (struct loop_key){.kind = EV_LISTEN});
	if (r < 0)
		return err_errno(err, r, "cannot watch %s", sa.sun_path);
	k->listen_fd = TAKE_FD(fd);
	return 0;
}

void link_push_state(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0 && keeper_send_state(k->links[i].fd, 0, &k->state) < 0)
			drop_link(k, &k->links[i]);
}

void link_push_all(struct keeper *k, const struct link *but,
	int (*send)(struct keeper *k, int sock, uint32_t id))
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0 && &k->links[i] != but && send(k, k->links[i].fd, 0) < 0)
			drop_link(k, &k->links[i]);
}

void link_progress(struct keeper *k, unsigned percent, const char *text)
{
	k->state.progress = (uint8_t)percent;
	(void)snprintf(k->state.text, sizeof(k->state.text), "%s", text);
	if (text[0])
		log_info("%s", text);
	link_push_state(k);
}

struct link *link_find(struct keeper *k, int link, uint32_t gen)
{
	if (link < 0 || k->links[link].fd < 0 || k->links[link].gen != gen)
		return NULL;
	return &k->links[link];
}

void link_answer(
	struct keeper *k, int link, uint32_t link_gen, uint32_t msg, int code, const char *text)
{
	struct link *l = link_find(k, link, link_gen);

	if (l && keeper_send_done(l->fd, msg, code, text) < 0)
		drop_link(k, l);
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
		r = k->link_ops->on_message(k, l, &msg);
		ipc_msg_done(&msg);
		if (r < 0)
			log_warn(
				"rejected a message of sbxd (type %u): %s", msg.type, strerror(-r));
		r = r < 0 ? r : 1;
	}
	if (r <= 0 && l->fd >= 0 && l->gen == gen)
		drop_link(k, l);
}
