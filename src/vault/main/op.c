/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/secret/secret/scan.h"
#include "vault.h"

static struct loop_key key_of(const struct vault *v, const struct op *op, enum vault_ev kind)
{
	return (struct loop_key){
		.kind = (uint8_t)kind, .gen = op->gen, .idx = (uint32_t)(op - v->ops)};
}

static struct peer *peer_of(struct vault *v, const struct op *op)
{
	struct peer *p = &v->peers[op->peer];

	return p->fd >= 0 && p->gen == op->peer_gen ? p : NULL;
}

static bool is_pipe_kind(enum op_kind kind)
{
	return kind == OP_SET || kind == OP_UNLOCK;
}

static bool is_pipe(const struct op *op)
{
	return is_pipe_kind(op->kind);
}

static void end_op(struct vault *v, struct op *op)
{
	struct peer *p = peer_of(v, op);
	uint32_t gen = op->gen;

	loop_timer_clear(&v->loop, &op->timer);
	if (op->fd >= 0 && is_pipe(op))
		loop_del(&v->loop, op->fd);
	fd_close(&op->fd);
	secret_done(&op->bytes);
	scan_free(op->scan);
	if (p)
		p->n_ops--;
	*op = (struct op){.fd = -1, .gen = gen + 1};
}

void op_answer(struct vault *v, struct op *op, int code, uint64_t number, const char *text)
{
	struct peer *p = peer_of(v, op);
	uint32_t id = op->id;

	end_op(v, op);
	if (p)
		peer_answer(v, p, id, code, number, text);
}

void op_answer_scanned(struct vault *v, struct op *op, struct vault_scanned *scanned)
{
	struct peer *p = peer_of(v, op);
	uint32_t id = op->id;

	end_op(v, op);
	if (p)
		peer_answer_scanned(v, p, id, scanned);
	else
		free(scanned);
}

static unsigned count_ops(const struct vault *v, bool (*is)(const struct op *))
{
	unsigned n = 0;

	for (size_t i = 0; i < MAX_OPS; i++)
		n += is(&v->ops[i]);
	return n;
}

static bool is_scan(const struct op *op)
{
	return op->kind == OP_SCAN;
}

static struct op *find_free(struct vault *v, enum op_kind kind)
{
	if (is_pipe_kind(kind) && count_ops(v, is_pipe) >= MAX_PIPES)
		return NULL;
	if (kind == OP_SCAN && count_ops(v, is_scan))
		return NULL;
	for (size_t i = 0; i < MAX_OPS; i++) {
		if (v->ops[i].kind == OP_FREE)
			return &v->ops[i];
	}
	return NULL;
}

/* The memory that a value is read into, and the pipe in the loop. */
static int begin_reading(struct vault *v, struct op *op, struct err *err)
{
	int r = secret_init(&op->bytes, VAULT_MAX_VALUE + 1, err);

	if (r < 0)
		return r;
	vault_note_memory(v, &op->bytes);
	r = loop_add(&v->loop, op->fd, EPOLLIN, key_of(v, op, EV_OP));
	loop_timer_set(&v->loop, &op->timer, clock_mono_ms() + PIPE_TIMEOUT_MS,
		key_of(v, op, EV_OP_TIMER));
	return r < 0 ? err_errno(err, r, "cannot watch the pipe") : 0;
}

struct op *op_new(struct vault *v, struct peer *p, enum op_kind kind, uint32_t id, int fd)
{
	AUTO_CLOSE int own = fd;
	struct op *op = find_free(v, kind);
	struct err err = {0};
	int r = 0;

	if (!op) {
		peer_answer(v, p, id, -EBUSY, 0, "too many concurrent requests: try again");
		return NULL;
	}
	*op = (struct op){.kind = kind,
		.gen = op->gen,
		.peer = (uint32_t)(p - v->peers),
		.peer_gen = p->gen,
		.id = id,
		.fd = TAKE_FD(own)};
	p->n_ops++;
	if (is_pipe(op))
		r = begin_reading(v, op, &err);
	else if (kind == OP_SCAN)
		r = fd_set_nonblock(op->fd, true);
	op->until_ms = clock_mono_ms() + SCAN_TIMEOUT_MS;
	if (r < 0) {
		op_answer(v, op, r, 0, err_text(&err, r));
		return NULL;
	}
	return op;
}

void op_drop_peer(struct vault *v, uint32_t peer)
{
	for (size_t i = 0; i < MAX_OPS; i++) {
		if (v->ops[i].kind != OP_FREE && v->ops[i].peer == peer)
			end_op(v, &v->ops[i]);
	}
}

static void finish_reading(struct vault *v, struct op *op)
{
	struct err err = {0};
	int r;

	if (op->kind == OP_SET) {
		ask_finish_set(v, op);
		return;
	}
	r = open_with_passphrase(v, &op->bytes, &err);
	op_answer(v, op, r, 0, r < 0 ? err_text(&err, r) : "");
}

ssize_t op_read_now(int fd, void *p, size_t n)
{
	ssize_t r = recv(fd, p, n, MSG_DONTWAIT);

	if (r >= 0 || errno != ENOTSOCK)
		return r;
	return fd_set_nonblock(fd, true) < 0 ? -1 : read(fd, p, n);
}

void op_on_event(struct vault *v, const struct loop_event *ev)
{
	struct op *op = &v->ops[ev->key.idx];
	size_t room;
	ssize_t n;

	if (op->gen != ev->key.gen || !is_pipe(op))
		return;
	room = op->bytes.size - op->bytes.n;
	/* one byte more than a value may have was read: the rest does not matter */
	n = room ? op_read_now(op->fd, op->bytes.p + op->bytes.n, room) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		op_answer(v, op, -EIO, 0, "cannot read the value");
	else if (n == 0)
		finish_reading(v, op);
	else
		op->bytes.n += (size_t)n;
}

void op_on_timer(struct vault *v, struct loop_key key)
{
	struct op *op = &v->ops[key.idx];

	if (op->gen != key.gen || op->kind == OP_FREE)
		return;
	if (op->kind == OP_SCAN)
		scan_step(v, op);
	else
		op_answer(v, op, -ETIMEDOUT, 0, "timed out reading the value");
}

void op_on_fetched(struct vault *v, uint64_t serial, int code, const char *why)
{
	struct book_entry *e = book_by_serial(&v->book, serial);

	for (size_t i = 0; i < MAX_OPS; i++) {
		struct op *op = &v->ops[i];
		struct peer *p = peer_of(v, op);
		uint32_t id = op->id;
		int fd;

		if (op->kind != OP_RELEASE || op->serial != serial)
			continue;
		if (code < 0 || !e || !p) {
			op_answer(v, op, code < 0 ? code : -ESTALE, 0, why);
			continue;
		}
		fd = TAKE_FD(op->fd);
		end_op(v, op);
		ask_send_value(v, p, id, e, fd);
	}
}
