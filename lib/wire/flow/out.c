/* SPDX-License-Identifier: Apache-2.0 */
#include "out.h"

#include <errno.h>
#include <sys/socket.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/wire/http/canon/canon_named.h"

#define ANSWER_ROOM 1024

/* realloc would leave what is secret behind. */
static void grow_out(struct out *o, size_t size)
{
	uint8_t *p;

	if (!o->is_secret) {
		o->p = xrealloc(o->p, size);
	} else {
		p = xmalloc(size);
		if (o->n)
			memcpy(p, o->p, o->n);
		if (o->p)
			explicit_bzero(o->p, o->size);
		free(o->p);
		o->p = p;
	}
	o->size = size;
}

struct wr out_wr(struct out *o, size_t room)
{
	size_t n = out_len(o);

	room = MIN(room, out_room(o));
	if (o->at && n)
		memmove(o->p, o->p + o->at, n);
	o->at = 0;
	o->n = n;
	if (o->size < n + room)
		grow_out(o, n + room);
	/* nothing was requested, and nothing is queued */
	if (!o->p)
		return wr_init(NULL, 0);
	return wr_init(o->p + n, MIN(o->size - n, room));
}

void out_put_wr(struct out *o, const struct wr *wr)
{
	o->n += wr->n;
}

int out_put(struct out *o, struct slice bytes)
{
	struct wr wr = out_wr(o, bytes.n);
	int r;

	wr_bytes(&wr, bytes);
	r = wr_finish(&wr);
	if (r == 0)
		out_put_wr(o, &wr);
	return r;
}

void out_consume(struct out *o, size_t n)
{
	o->at += n;
	if (out_len(o) == 0)
		out_done(o);
}

int out_flush(struct out *o, int fd, uint64_t *n_sent)
{
	while (out_len(o)) {
		ssize_t r = send(fd, o->p + o->at, out_len(o), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		o->at += (size_t)r;
		*n_sent += (uint64_t)r;
	}
	out_done(o);
	return 0;
}

void out_done(struct out *o)
{
	if (o->is_secret && o->p)
		explicit_bzero(o->p, o->size);
	free(o->p);
	*o = (struct out){0};
}

/* ---- the socket to edge ---- */

int out_read_request(int fd, struct canon_reader *rd, struct canon_frame *ret)
{
	static uint8_t buf[4096];
	int r = 0;

	while (r == 0) {
		size_t want = rd->n_head < CANON_FRAME_HEADER ? CANON_FRAME_HEADER - rd->n_head
							      : rd->want;
		ssize_t n = recv(fd, buf, MIN(want, sizeof(buf)), MSG_DONTWAIT);
		struct slice in = slice_of(buf, n > 0 ? (size_t)n : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return -EPIPE;
		r = canon_reader_feed(rd, &in, ret);
	}
	if (r < 0)
		ret->kind = CANON_N_KINDS;
	return 1;
}

bool out_is_decided(const struct ticket *ticket, const struct http_req *req, struct slice names)
{
	UNINITIALIZED uint8_t named[CANON_NAMED_MAX];
	struct wr wr = wr_init(named, sizeof(named));
	int r = canon_named_write(&wr, &req->headers, names);
	const struct ticket_request own = {.tls = req->scheme == HTTP_SCHEME_HTTPS,
		.method = req->method,
		.host = req->host,
		.port = req->port,
		.path = req->path,
		.query = req->query,
		.has_query = req->has_query,
		.named = slice_of(named, wr.n)};

	return r == 0 && ticket_is_for(ticket, &own);
}

int out_end(struct out *o, int fd, bool *is_shut)
{
	UNINITIALIZED uint8_t buf[4096];
	uint64_t n = 0;
	ssize_t r = out_flush(o, fd, &n);

	if (r < 0)
		return r == -EAGAIN ? -EAGAIN : 0;
	if (!*is_shut)
		(void)shutdown(fd, SHUT_WR);
	*is_shut = true;
	for (unsigned i = 0; i < 64; i++) {
		r = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (r <= 0)
			return r < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : 0;
	}
	return 1;
}

/* ---- messages to edge ---- */

void out_put_refusal(struct out *o, uint16_t status, const char *text)
{
	struct http_header header = {slice_from_str("sbx-reason"), slice_from_str(text)};
	struct http_resp resp = {.status = status,
		.keep_alive = true,
		.headers = {.list = &header, .n = 1, .max = 1}};
	struct wr wr;

	if (out_room(o) < ANSWER_ROOM)
		return;
	wr = out_wr(o, ANSWER_ROOM);
	if (canon_put_resp(&wr, OUT_STREAM, &resp) == 0 &&
		canon_put_end(&wr, OUT_STREAM, NULL) == 0)
		out_put_wr(o, &wr);
}

void out_put_reset(struct out *o)
{
	struct wr wr;

	if (out_room(o) < ANSWER_ROOM)
		return;
	wr = out_wr(o, ANSWER_ROOM);
	if (canon_put_reset(&wr, OUT_STREAM, 1) == 0)
		out_put_wr(o, &wr);
}

void out_drop_ours(struct http_headers *headers)
{
	size_t n = 0;

	for (size_t i = 0; i < headers->n; i++) {
		struct slice name = headers->list[i].name;

		if (name.n < 4 || memcmp(name.p, "sbx-", 4) != 0)
			headers->list[n++] = headers->list[i];
	}
	headers->n = n;
}

void out_clean_text(char *text)
{
	size_t n = strlen(text);

	str_make_printable(text);
	while (n > 0 && text[n - 1] == ' ')
		text[--n] = '\0';
}
