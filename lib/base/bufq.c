/* SPDX-License-Identifier: Apache-2.0 */
#include "bufq.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "mem.h"

void bufq_init(struct bufq *q, size_t size)
{
	*q = (struct bufq){.size = size};
}

void bufq_done(struct bufq *q)
{
	free(q->ring);
	*q = (struct bufq){0};
}

void bufq_trim(struct bufq *q)
{
	if (q->n > 0)
		return;
	free(q->ring);
	q->ring = NULL;
	q->head = 0;
}

struct slice bufq_peek(const struct bufq *q)
{
	if (q->n == 0)
		return (struct slice){0};
	return slice_of(q->ring + q->head, MIN(q->n, q->size - q->head));
}

void bufq_consume(struct bufq *q, size_t n)
{
	assert(n <= q->n);
	q->n -= n;
	q->head = q->n == 0 ? 0 : (q->head + n) % q->size;
}

static void need_ring(struct bufq *q)
{
	if (!q->ring)
		q->ring = xmalloc(q->size);
}

/* The contiguous free run after the last unread byte. */
static uint8_t *free_run(struct bufq *q, size_t *ret_n)
{
	size_t tail = (q->head + q->n) % q->size;

	*ret_n = tail >= q->head && q->n < q->size ? q->size - tail : q->head - tail;
	return q->ring + tail;
}

size_t bufq_put(struct bufq *q, struct slice s)
{
	size_t done = 0;

	if (s.n == 0)
		return 0;
	need_ring(q);
	while (done < s.n && q->n < q->size) {
		size_t run, k;
		uint8_t *to = free_run(q, &run);

		k = MIN(run, s.n - done);
		memcpy(to, s.p + done, k);
		q->n += k;
		done += k;
	}
	return done;
}

size_t bufq_take(struct bufq *q, void *p, size_t n)
{
	size_t done = 0;

	while (done < n && q->n > 0) {
		struct slice s = bufq_peek(q);
		size_t k = MIN(s.n, n - done);

		memcpy((uint8_t *)p + done, s.p, k);
		bufq_consume(q, k);
		done += k;
	}
	return done;
}

ssize_t bufq_recv(struct bufq *q, int sock, size_t max)
{
	uint8_t *to;
	size_t run;
	ssize_t r;

	if (q->n == q->size)
		return -ENOBUFS;
	need_ring(q);
	to = free_run(q, &run);
	do {
		r = recv(sock, to, MIN(run, max), MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	q->n += (size_t)r;
	return r;
}

ssize_t bufq_drain(struct bufq *q, int fd)
{
	struct slice s;
	ssize_t r;

	if (q->n == 0)
		return 0;
	s = bufq_peek(q);
	do {
		r = write(fd, s.p, s.n);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	bufq_consume(q, (size_t)r);
	return r;
}
