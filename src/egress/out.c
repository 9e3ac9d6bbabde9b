#include <errno.h>
#include <sys/socket.h>
#include "egress.h"
#include "lib/base/mem.h"

struct wr out_wr(struct out *o, size_t room)
{
	size_t n = out_len(o);

	room = MIN(room, out_room(o));
	if (o->at && n)
		memmove(o->p, o->p + o->at, n);
	o->at = 0;
	o->n = n;
	if (o->size < n + room) {
		o->size = n + room;
		o->p = xrealloc(o->p, o->size);
	}
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
	free(o->p);
	*o = (struct out){0};
}
