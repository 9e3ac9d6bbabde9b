/* SPDX-License-Identifier: Apache-2.0 */
#include "vault.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"

/* A frame and its end take two reads. */
#define MAX_FRAME_READS 8

/* ---- the state ---- */

static enum vault_memory memory_of(enum secret_kind kind)
{
	return kind == SECRET_HIDDEN   ? VAULT_MEMORY_HIDDEN
	       : kind == SECRET_LOCKED ? VAULT_MEMORY_LOCKED
				       : VAULT_MEMORY_PLAIN;
}

void ask_fill_status(const struct vault *v, struct vault_status *ret)
{
	*ret = (struct vault_status){.state = v->state,
		.key = v->has_safe ? v->safe.head.source : VAULT_KEY_NONE,
		.memory = memory_of(v->weakest),
		.n_items = (uint16_t)v->book.n,
		.generation = v->has_safe ? v->safe.head.generation : 0};
	if (v->state == VAULT_READY)
		(void)snprintf(ret->text, sizeof(ret->text), "Key source: %s. Memory: %s.",
			vault_key_text(ret->key), vault_memory_text(ret->memory));
	else
		(void)snprintf(ret->text, sizeof(ret->text), "%.255s", v->why.text);
	for (char *c = ret->text; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

/* Returns true if the vault is open; else it has answered the request. */
static bool is_ready(struct vault *v, struct peer *p, uint32_t id)
{
	if (v->state == VAULT_READY)
		return true;
	open_again(v);
	peer_answer(v, p, id, v->state == VAULT_LOCKED ? -ENOKEY : -EAGAIN, 0, v->why.text);
	return false;
}

/* ---- changes ---- */

static void tell_saved(struct vault *v, const char *scope)
{
	open_remember(v);
	peer_tell_changed(v, scope);
}

/* Takes the entry. */
static int put_entry(struct vault *v, struct book_entry *e, uint64_t *ret_serial, struct err *err)
{
	struct book_entry *old = NULL;
	int r;

	e->created_ms = e->changed_ms = clock_wall_ms();
	vault_note_memory(v, &e->value);
	r = book_put(&v->book, e, &old, err);
	if (r == 0) {
		r = safe_save(&v->safe, &v->book, err);
		if (r < 0)
			book_undo(&v->book, e, old);
	}
	if (r < 0) {
		book_entry_free(e);
		return r;
	}
	*ret_serial = e->serial;
	if (old)
		op_on_fetched(v, old->serial, -ECANCELED, "the credential was replaced");
	book_entry_free(old);
	tell_saved(v, e->meta.scope);
	return 0;
}

void ask_finish_set(struct vault *v, struct op *op)
{
	struct book_entry *e = NULL;
	struct err err = {0};
	uint64_t serial = 0;
	int r = 0;

	if (v->state != VAULT_READY)
		r = err_set(&err, -EAGAIN, "%s", v->why.text);
	else if (op->bytes.n == 0)
		r = err_set(&err, -EINVAL, "the value is empty");
	else if (op->bytes.n > VAULT_MAX_VALUE)
		r = err_set(&err, -EMSGSIZE, "the value is longer than %d bytes", VAULT_MAX_VALUE);
	if (r == 0) {
		e = xcalloc(1, sizeof(*e));
		e->meta = op->meta;
		r = secret_copy(&e->value, secret_slice(&op->bytes), &err);
		if (r < 0)
			book_entry_free(TAKE(e));
		else
			r = put_entry(v, e, &serial, &err);
	}
	op_answer(v, op, r, serial, r < 0 ? err_text(&err, r) : "");
}

/* ---- tokens ---- */

static bool has_room_for_token(const struct vault *v, const struct vault_meta *token)
{
	unsigned n = 0;

	for (size_t i = 0; i < v->book.n; i++) {
		const struct vault_meta *meta = &v->book.list[i]->meta;

		if (strcmp(meta->scope, token->scope) != 0)
			continue;
		if (strcmp(meta->name, token->name) == 0)
			return true;
		n += vault_name_is_token(meta->name);
	}
	return n < VAULT_MAX_TOKENS;
}

/* A frame repeats its metadata: its writer and its sender must agree. */
static int check_frame(struct vault *v, const struct vault_meta *meta,
	const struct vault_frame *frame, struct err *err)
{
	const struct book_entry *old = book_find(&v->book, meta->name, meta->scope);

	if (strcmp(frame->name, meta->name) != 0 || frame->serial || frame->header[0] ||
		frame->format[0] || frame->user[0])
		return err_set(err, -EINVAL, "the frame does not match the request");
	if (frame->value.n == 0 || frame->value.n > VAULT_MAX_TOKEN)
		return err_set(err, -EMSGSIZE, "token must have 1 to %d bytes", VAULT_MAX_TOKEN);
	if (old && old->ref.kind != VAULT_REF_NONE)
		return err_set(err, -EEXIST, "the credential is configured to come from a program");
	if (!has_room_for_token(v, meta))
		return err_set(err, -ENOSPC, "the sandbox already has %d tokens", VAULT_MAX_TOKENS);
	return 0;
}

/* No writer is left: then a read of a pipe returns data or its end, and never blocks, whatever else
 * is done to the pipe. */
static bool is_finished(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* The frame and its end are in the pipe or stream before STORE is sent: the vault never waits for
 * them, so no sandbox takes a slot that another one needs. */
static int read_frame(struct vault *v, int fd, struct secret *ret, struct err *err)
{
	ssize_t n = 1;
	int r = 0;

	if (!is_finished(fd))
		return err_set(err, -EINVAL, "incomplete token: the stream is still open");
	r = secret_init(ret, VAULT_FRAME_MAX_HEAD + VAULT_MAX_TOKEN + 1, err);

	if (r < 0)
		return r;
	vault_note_memory(v, ret);
	for (unsigned i = 0; i < MAX_FRAME_READS && n > 0 && ret->n < ret->size; i++) {
		n = op_read_now(fd, ret->p + ret->n, ret->size - ret->n);
		ret->n += n > 0 ? (size_t)n : 0;
	}
	if (n != 0 && ret->n < ret->size)
		return err_set(err, -EINVAL, "incomplete token: the stream is still open");
	return 0;
}

/* The same value again changes nothing and sends no CHANGED. */
static struct book_entry *find_same(
	struct vault *v, const struct vault_meta *meta, struct slice value)
{
	struct book_entry *e = book_find(&v->book, meta->name, meta->scope);

	if (!e || e->ref.kind != VAULT_REF_NONE || e->meta.kind != meta->kind)
		return NULL;
	if (e->value.n != value.n || CRYPTO_memcmp(e->value.p, value.p, value.n) != 0)
		return NULL;
	return e;
}

static int store_token(struct vault *v, struct peer *p, const struct vault_meta *meta, int fd,
	uint64_t *ret_serial, struct err *err)
{
	AUTO_SECRET struct secret bytes = {0};
	struct vault_frame frame = {0};
	struct book_entry *e;
	int r = read_frame(v, fd, &bytes, err);

	if (r == 0 && vault_frame_split(secret_slice(&bytes), &frame) < 0)
		r = err_set(err, -EINVAL, "the token is truncated or too long");
	if (r == 0)
		r = check_frame(v, meta, &frame, err);
	e = r == 0 ? find_same(v, meta, frame.value) : NULL;
	if (e) {
		*ret_serial = e->serial;
		return 0;
	}
	peer_count_store(v, p);
	if (r < 0)
		return r;
	e = xcalloc(1, sizeof(*e));
	e->meta = *meta;
	r = secret_copy(&e->value, frame.value, err);
	if (r < 0)
		book_entry_free(e);
	return r < 0 ? r : put_entry(v, e, ret_serial, err);
}

/* Only data that op_read_now reads without blocking. */
static bool is_pipe_or_stream(int fd)
{
	struct stat st;

	return fd_is_unix_socket(fd, SOCK_STREAM) || (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode));
}

static bool is_source(struct vault *v, struct peer *p, const struct ipc_msg *msg)
{
	if (is_pipe_or_stream(msg->fd))
		return true;
	peer_answer(v, p, msg->id, -EINVAL, 0, "expected a pipe or a Unix stream socket");
	return false;
}

static int read_from(struct vault *v, struct peer *p, enum op_kind kind, struct ipc_msg *msg,
	const struct vault_meta *meta)
{
	struct op *op;

	if (!is_source(v, p, msg))
		return 0;
	op = op_new(v, p, kind, msg->id, TAKE_FD(msg->fd));
	if (op && meta)
		op->meta = *meta;
	return 0;
}

static int ask_set(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	struct vault_meta meta;
	int r = vault_get_set(msg, &meta);

	if (r < 0 || !is_ready(v, p, msg->id))
		return r;
	return read_from(v, p, OP_SET, msg, &meta);
}

/* The scope is always the peer's own sandbox. */
static int ask_store(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	struct vault_meta meta = {.kind = VAULT_SERVICE};
	struct err err = {0};
	uint64_t serial = 0;
	int r = vault_get_store(msg, meta.name);

	if (r < 0 || !is_ready(v, p, msg->id) || !is_source(v, p, msg))
		return r;
	memcpy(meta.scope, p->sandbox, sizeof(meta.scope));
	r = store_token(v, p, &meta, msg->fd, &serial, &err);
	peer_answer(v, p, msg->id, r, serial, r < 0 ? err_text(&err, r) : "");
	return 0;
}

static int ask_set_ref(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	static struct vault_ref ref; /* large */
	struct vault_meta meta;
	struct book_entry *e;
	struct err err = {0};
	uint64_t serial = 0;
	int r = vault_get_set_ref(msg, &meta, &ref);

	if (r < 0 || !is_ready(v, p, msg->id))
		return r;
	e = xcalloc(1, sizeof(*e));
	e->meta = meta;
	e->ref = ref;
	r = put_entry(v, e, &serial, &err);
	peer_answer(v, p, msg->id, r, serial, r < 0 ? err_text(&err, r) : "");
	return 0;
}

static int ask_remove(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	char name[VAULT_MAX_NAME], scope[VAULT_MAX_SCOPE];
	struct book_entry *e;
	struct err err = {0};
	int r = vault_get_remove(msg, name, scope);

	if (r < 0 || !is_ready(v, p, msg->id))
		return r;
	e = book_find(&v->book, name, scope);
	if (!e) {
		peer_answer(v, p, msg->id, -ENOENT, 0, "credential not found");
		return 0;
	}
	(void)book_remove(&v->book, e);
	r = safe_save(&v->safe, &v->book, &err);
	if (r < 0) {
		v->book.list[v->book.n++] = e;
		peer_answer(v, p, msg->id, r, 0, err_text(&err, r));
		return 0;
	}
	op_on_fetched(v, e->serial, -ECANCELED, "the credential was removed");
	book_entry_free(e);
	tell_saved(v, scope);
	peer_answer(v, p, msg->id, 0, 0, "");
	return 0;
}

static int ask_unlock(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	int r = chan_get_plain(&vault_chan, msg, VAULT_UNLOCK);

	if (r < 0)
		return r;
	if (v->state != VAULT_LOCKED) {
		peer_answer(v, p, msg->id, -EINVAL, 0, "the vault is not waiting for a passphrase");
		return 0;
	}
	return read_from(v, p, OP_UNLOCK, msg, NULL);
}

/* ---- release ---- */

static bool is_fresh(const struct book_entry *e)
{
	if (e->ref.kind == VAULT_REF_NONE)
		return true;
	return e->value.n && e->ref.refresh_s && e->fetched_ms &&
	       clock_mono_ms() - e->fetched_ms < UINT64_C(1000) * e->ref.refresh_s;
}

/* The whole frame in one call, or nothing usable: the socket is new and empty, and has room for the
 * largest frame. The value is sent from its own memory directly. */
static int send_frame(const struct book_entry *e, int fd)
{
	uint8_t head[VAULT_FRAME_MAX_HEAD];
	struct wr wr = wr_init(head, sizeof(head));
	struct vault_frame frame = {.serial = e->serial, .value = secret_slice(&e->value)};
	struct iovec iov[2];
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n;
	int r;

	memcpy(frame.name, e->meta.name, sizeof(frame.name));
	memcpy(frame.header, e->meta.header, sizeof(frame.header));
	memcpy(frame.format, e->meta.format, sizeof(frame.format));
	memcpy(frame.user, e->user, sizeof(frame.user));
	r = vault_frame_head(&frame, &wr);
	if (r < 0)
		return r;
	iov[0] = (struct iovec){.iov_base = head, .iov_len = wr.n};
	iov[1] = (struct iovec){.iov_base = e->value.p, .iov_len = e->value.n};
	n = sendmsg(fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return (size_t)n == wr.n + e->value.n ? 0 : -EMSGSIZE;
}

/* Closes the fd. */
void ask_send_value(struct vault *v, struct peer *p, uint32_t id, struct book_entry *e, int fd)
{
	AUTO_CLOSE int stream = fd;
	struct err err = {.text = "cannot send the value on the stream"};
	int r = e->meta.kind == VAULT_PROXY ? login_send(e, stream, &err) : send_frame(e, stream);

	if (r == 0)
		e->used_ms = clock_wall_ms();
	fd_close(&stream); /* before the answer: after DONE the peer finds the end of the frame */
	peer_answer(v, p, id, r, e->serial, r < 0 ? err.text : "");
}

/* A value goes into a Unix socket for sbx-origin. A login goes to the proxy, and nowhere else. */
static const char *refuse_stream(const struct book_entry *e, int fd)
{
	if (e && e->meta.kind == VAULT_PROXY)
		return fd_is_tcp(fd) ? NULL : "expected a TCP connection";
	return fd_is_unix_socket(fd, SOCK_STREAM) ? NULL : "expected a Unix stream socket";
}

static int ask_release(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	char name[VAULT_MAX_NAME];
	struct book_entry *e;
	struct err err = {0};
	uint64_t serial;
	struct op *op;
	int r = vault_get_release(msg, name, &serial);

	if (r < 0 || !is_ready(v, p, msg->id))
		return r;
	e = book_fit(&v->book, name, p->sandbox);
	if (refuse_stream(e, msg->fd)) {
		peer_answer(v, p, msg->id, -EINVAL, 0, refuse_stream(e, msg->fd));
	} else if (!e) {
		peer_answer(v, p, msg->id, -ENOENT, 0, "the sandbox has no such credential");
	} else if (e->serial != serial) {
		peer_answer(v, p, msg->id, -ESTALE, e->serial,
			"the credential was changed after the request was allowed");
	} else if (is_fresh(e)) {
		ask_send_value(v, p, msg->id, e, TAKE_FD(msg->fd));
	} else {
		r = job_is_fetching(v, serial) ? 0 : job_fetch(v, e, &err);
		if (r < 0) {
			peer_answer(v, p, msg->id, r, 0, err_text(&err, r));
			return 0;
		}
		op = op_new(v, p, OP_RELEASE, msg->id, TAKE_FD(msg->fd));
		if (op)
			op->serial = serial;
	}
	return 0;
}

/* ---- which question ---- */

static int ask_scan(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	char control[VAULT_MAX_CONTROL + 1];
	int r = vault_get_scan(msg, control);
	struct op *op;

	if (r < 0 || !is_ready(v, p, msg->id))
		return r;
	op = op_new(v, p, OP_SCAN, msg->id, TAKE_FD(msg->fd));
	if (!op)
		return 0;
	memcpy(op->control, control, sizeof(op->control));
	scan_step(v, op);
	return 0;
}

static int ask_channel(struct vault *v, struct ipc_msg *msg)
{
	char sandbox[VAULT_MAX_SCOPE];
	int r = vault_get_channel(msg, sandbox);

	if (r == 0)
		peer_add_sandbox(v, sandbox, TAKE_FD(msg->fd));
	return r;
}

static int ask_plain(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	int r = chan_get_plain(&vault_chan, msg, msg->type);

	if (r < 0)
		return r;
	switch (msg->type) {
	case VAULT_LIST:
		if (is_ready(v, p, msg->id))
			peer_list(v, p, msg->id);
		break;
	case VAULT_WATCH:
		p->is_watching = true;
		peer_answer(v, p, msg->id, 0, v->safe.head.generation, "");
		break;
	case VAULT_STATUS:
		if (v->state != VAULT_READY)
			open_again(v);
		peer_answer_status(v, p, msg->id);
		break;
	case VAULT_STOP:
		v->done = true;
		break;
	default:
		break; /* ADMIN: only the phase changes */
	}
	return 0;
}

int ask_take(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	if (!chan_allows(&vault_chan, p->phase, VAULT_FROM_PEER, msg->type))
		return -EBADMSG;
	p->phase = chan_after(&vault_chan, p->phase, msg->type);
	switch (msg->type) {
	case VAULT_CHANNEL:
		return ask_channel(v, msg);
	case VAULT_SET:
		return ask_set(v, p, msg);
	case VAULT_SET_REF:
		return ask_set_ref(v, p, msg);
	case VAULT_REMOVE:
		return ask_remove(v, p, msg);
	case VAULT_UNLOCK:
		return ask_unlock(v, p, msg);
	case VAULT_RELEASE:
		return ask_release(v, p, msg);
	case VAULT_STORE:
		return ask_store(v, p, msg);
	case VAULT_SCAN:
		return ask_scan(v, p, msg);
	default:
		return ask_plain(v, p, msg);
	}
}
