/* SPDX-License-Identifier: Apache-2.0 */
#include "vault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/os/ipc/vault_chan.h"

static struct loop_key key_of(const struct vault *v, const struct peer *p)
{
	return (struct loop_key){.kind = EV_PEER, .gen = p->gen, .idx = (uint32_t)(p - v->peers)};
}

void peer_init(struct vault *v)
{
	for (size_t i = 0; i < MAX_OPS; i++)
		v->ops[i].fd = -1;
	for (size_t i = 0; i < MAX_JOBS; i++)
		v->jobs[i].fd = -1;
}

static void drop_peer(struct vault *v, struct peer *p)
{
	uint32_t gen = p->gen;

	loop_timer_clear(&v->loop, &p->timer);
	loop_del(&v->loop, p->fd);
	op_drop_peer(v, (uint32_t)(p - v->peers));
	fd_close(&p->fd);
	for (unsigned i = 0; i < p->n_due; i++)
		free(p->due[i].scanned);
	*p = (struct peer){.fd = -1, .gen = gen + 1};
}

static unsigned n_pending(const struct peer *p)
{
	return p->n_ops + p->n_due;
}

/* A peer that does not read is not read either, which limits the due answers. */
static void watch_events(struct vault *v, struct peer *p)
{
	bool owes = p->n_due || p->is_listing || p->is_changed_due;
	bool is_heard = !p->is_paused && n_pending(p) < VAULT_MAX_PENDING;
	uint32_t events = owes ? EPOLLOUT : is_heard ? EPOLLIN : 0;

	if (p->fd >= 0 && loop_mod(&v->loop, p->fd, events, key_of(v, p)) < 0)
		(void)shutdown(p->fd, SHUT_RDWR);
}

static bool is_of_sandbox(const struct peer *p)
{
	return p->fd >= 0 && p->phase == VAULT_PHASE_SANDBOX;
}

/* Sandboxes and other peers have separate slots. */
static struct peer *find_place(struct vault *v, bool of_sandbox)
{
	size_t n = 0, most = of_sandbox ? VAULT_MAX_SANDBOXES : MAX_CALLERS;
	struct peer *p = NULL;

	for (size_t i = 0; i < v->n_peers; i++) {
		if (v->peers[i].fd >= 0)
			n += is_of_sandbox(&v->peers[i]) == of_sandbox;
		else if (!p)
			p = &v->peers[i];
	}
	if (n >= most)
		return NULL;
	if (!p) {
		p = &v->peers[v->n_peers++]; /* both limits together are MAX_PEERS */
		p->fd = -1;
	}
	return p;
}

/* Takes fd. `role` is the peer's permission after HELLO. */
static void add_peer(struct vault *v, int fd, enum vault_phase role, const char *sandbox)
{
	struct peer *p = find_place(v, role == VAULT_PHASE_SANDBOX);

	if (!p || fd_set_nonblock(fd, true) < 0) {
		(void)close(fd);
		return;
	}
	*p = (struct peer){.fd = fd, .gen = p->gen};
	(void)snprintf(p->sandbox, sizeof(p->sandbox), "%s", sandbox);
	if (loop_add(&v->loop, fd, EPOLLIN, key_of(v, p)) < 0) {
		fd_close(&p->fd);
		return;
	}
	if (chan_send_hello(fd, SBX_BUILD) < 0)
		drop_peer(v, p);
	else
		p->phase = role;
}

void peer_look_for_owner(struct vault *v)
{
	v->has_owner = fd_is_unix_socket(VAULT_OWNER_FD, SOCK_SEQPACKET);
}

/* A keeper requests a channel only if it has none. */
static void drop_sandbox(struct vault *v, const char *sandbox)
{
	for (size_t i = 0; i < v->n_peers; i++) {
		struct peer *p = &v->peers[i];

		if (is_of_sandbox(p) && strcmp(p->sandbox, sandbox) == 0)
			drop_peer(v, p);
	}
}

void peer_add_sandbox(struct vault *v, const char *sandbox, int fd)
{
	if (!fd_is_unix_socket(fd, SOCK_SEQPACKET)) {
		(void)close(fd);
		return;
	}
	drop_sandbox(v, sandbox);
	add_peer(v, fd, VAULT_PHASE_SANDBOX, sandbox);
}

void peer_on_listen(struct vault *v)
{
	int fd = accept4(VAULT_LISTEN_FD, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (fd_is_same_user(fd)) {
		add_peer(v, fd, VAULT_PHASE_ROLE, "");
	} else {
		log_warn("rejected a connection from another user");
		(void)close(fd);
	}
}

void peer_serve(struct vault *v)
{
	int listens = 0;
	socklen_t n = sizeof(listens);

	if (v->is_served)
		return;
	v->is_served = true;
	if (v->has_owner)
		add_peer(v, VAULT_OWNER_FD, VAULT_PHASE_OWNER, "");
	if (getsockopt(VAULT_LISTEN_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0) {
		log_error("fd %d is not a socket (this program is started by sbx-vault-run)",
			VAULT_LISTEN_FD);
		v->done = true;
		v->status = 1;
	} else if (!listens) {
		add_peer(v, VAULT_LISTEN_FD, VAULT_PHASE_ROLE, "");
	} else if (fd_set_nonblock(VAULT_LISTEN_FD, true) < 0 ||
		   loop_add(&v->loop, VAULT_LISTEN_FD, EPOLLIN,
			   (struct loop_key){.kind = EV_LISTEN}) < 0) {
		v->done = true;
		v->status = 1;
	}
}

/* ---- output to a peer ---- */

static int send_due(struct vault *v, struct peer *p, const struct due *due)
{
	struct vault_status status;

	if (due->scanned)
		return vault_send_scanned(p->fd, due->id, due->scanned);
	if (!due->is_status)
		return vault_send_done(p->fd, due->id, &due->done);
	ask_fill_status(v, &status);
	return vault_send_status(p->fd, due->id, &status);
}

/* Returns -EAGAIN, or an error after which the peer must be dropped. */
static int send_items(struct vault *v, struct peer *p)
{
	static const struct vault_done all;

	while (p->is_listing) {
		struct book_entry *e = book_next(&v->book, p->list_after, p->sandbox);
		struct vault_item item;
		int r;

		if (e) {
			book_item(e, &item);
			r = vault_send_item(p->fd, p->list_id, &item);
		} else {
			r = vault_send_done(p->fd, p->list_id, &all);
		}
		if (r < 0)
			return r;
		if (e)
			p->list_after = e->serial;
		else
			p->is_listing = false;
	}
	return 0;
}

static int flush_answers(struct vault *v, struct peer *p)
{
	int r = 0;

	while (p->n_due && r == 0) {
		r = send_due(v, p, &p->due[0]);
		if (r < 0)
			break;
		free(p->due[0].scanned);
		memmove(&p->due[0], &p->due[1], --p->n_due * sizeof(p->due[0]));
	}
	if (r == 0)
		r = send_items(v, p);
	if (r == 0 && p->is_changed_due) {
		r = vault_send_changed(p->fd, v->safe.head.generation);
		p->is_changed_due = r < 0;
	}
	return r == -EAGAIN ? 0 : r;
}

/* The peer is dropped at its next event: the caller may still use it. */
static void flush_and_watch(struct vault *v, struct peer *p)
{
	if (flush_answers(v, p) < 0)
		(void)shutdown(p->fd, SHUT_RDWR);
	watch_events(v, p);
}

static void push_answer(struct vault *v, struct peer *p, const struct due *due)
{
	/* each request has one answer, and at most this many are pending */
	if (p->fd < 0 || p->n_due == VAULT_MAX_PENDING) {
		free(due->scanned);
		return;
	}
	p->due[p->n_due++] = *due;
	flush_and_watch(v, p);
}

void peer_answer(
	struct vault *v, struct peer *p, uint32_t id, int code, uint64_t number, const char *text)
{
	struct due due = {.id = id, .done = {.code = code, .number = number}};

	(void)snprintf(due.done.text, sizeof(due.done.text), "%s", text ? text : "");
	for (char *c = due.done.text; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
	push_answer(v, p, &due);
}

void peer_answer_status(struct vault *v, struct peer *p, uint32_t id)
{
	const struct due due = {.is_status = true, .id = id};

	push_answer(v, p, &due);
}

void peer_answer_scanned(
	struct vault *v, struct peer *p, uint32_t id, struct vault_scanned *scanned)
{
	const struct due due = {.id = id, .scanned = scanned};

	push_answer(v, p, &due);
}

void peer_list(struct vault *v, struct peer *p, uint32_t id)
{
	p->is_listing = true;
	p->list_id = id;
	p->list_after = 0;
	flush_and_watch(v, p);
}

void peer_tell_changed(struct vault *v, const char *scope)
{
	for (size_t i = 0; i < v->n_peers; i++) {
		struct peer *p = &v->peers[i];

		if (p->fd < 0 || !p->is_watching)
			continue;
		if (scope[0] && p->sandbox[0] && strcmp(scope, p->sandbox) != 0)
			continue;
		p->is_changed_due = true;
		flush_and_watch(v, p);
	}
}

/* ---- input of a peer ---- */

static struct bucket *find_bucket(struct vault *v, const char *sandbox)
{
	struct store_rate *oldest = v->rates;

	for (size_t i = 0; i < ARRAY_LEN(v->rates); i++) {
		if (strcmp(v->rates[i].sandbox, sandbox) == 0)
			return &v->rates[i].bucket;
		if (v->rates[i].bucket.at_ms < oldest->bucket.at_ms)
			oldest = &v->rates[i];
	}
	(void)snprintf(oldest->sandbox, sizeof(oldest->sandbox), "%s", sandbox);
	oldest->bucket = bucket_init(STORE_BURST, VAULT_STORE_PER_S);
	return &oldest->bucket;
}

void peer_count_store(struct vault *v, struct peer *p)
{
	uint64_t now = clock_mono_ms();
	struct bucket *stores = find_bucket(v, p->sandbox);

	if (bucket_take(stores, now) && stores->left)
		return;
	p->is_paused = true;
	loop_timer_set(&v->loop, &p->timer, now + 1000 / VAULT_STORE_PER_S,
		(struct loop_key){
			.kind = EV_PEER_TIMER, .gen = p->gen, .idx = (uint32_t)(p - v->peers)});
}

void peer_on_timer(struct vault *v, struct loop_key key)
{
	struct peer *p = &v->peers[key.idx];

	if (p->gen != key.gen || p->fd < 0)
		return;
	p->is_paused = false;
	watch_events(v, p);
}

static void receive_message(struct vault *v, struct peer *p)
{
	static struct ipc_msg msg;
	int r;

	msg.fd = -1;
	r = ipc_recv(p->fd, &msg);
	if (r == -EAGAIN)
		return;
	if (r > 0)
		r = ask_take(v, p, &msg);
	else if (r == 0)
		r = -EPIPE;
	ipc_msg_done(&msg);
	if (r >= 0) {
		watch_events(v, p);
		return;
	}
	if (r == -EBADMSG)
		log_warn("protocol error: invalid message %u from a peer", msg.type);
	drop_peer(v, p);
}

/* A peer that closed while an answer was due stays writable: only a drop ends its events. */
static void flush_or_drop(struct vault *v, struct peer *p)
{
	if (flush_answers(v, p) < 0)
		drop_peer(v, p);
	else
		watch_events(v, p);
}

void peer_on_event(struct vault *v, const struct loop_event *ev)
{
	struct peer *p = &v->peers[ev->key.idx];

	if (p->gen != ev->key.gen || p->fd < 0)
		return;
	if (ev->events & EPOLLOUT)
		flush_or_drop(v, p);
	else if (ev->events & EPOLLIN)
		receive_message(v, p);
	else
		drop_peer(v, p);
	if (v->peers[ev->key.idx].fd < 0 && !v->done) {
		int listens = 0;
		socklen_t n = sizeof(listens);

		/* the only channel, passed at the start, is closed */
		if (getsockopt(VAULT_LISTEN_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0)
			v->done = true;
	}
}
