/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl.h"

#include <errno.h>
#include <string.h>
#include "lib/base/mem.h"

static const struct ctl_route *find_route(const struct ctl *c, const char *path)
{
	for (const struct ctl_route *r = c->routes; r->path; r++)
		if (!strcmp(r->path, path))
			return r;
	return NULL;
}

int ctl_open(struct ctl *c, const char *path, uint32_t *ret_idx)
{
	const struct ctl_route *route = find_route(c, path);

	if (!route)
		return -ENOENT;
	for (uint32_t i = 0; i < CTL_MAX_STREAMS; i++) {
		if (c->streams[i].route)
			continue;
		c->streams[i] =
			(struct ctl_stream){.route = route, .body = xmalloc(GUEST_MAX_BODY)};
		*ret_idx = i;
		return 0;
	}
	return -EBUSY;
}

int ctl_on_data(struct ctl *c, uint32_t id, uint32_t idx, struct slice bytes)
{
	struct ctl_stream *s = &c->streams[idx];

	if (s->answered || bytes.n > GUEST_MAX_BODY - s->n)
		return -EMSGSIZE;
	if (bytes.n)
		memcpy(s->body + s->n, bytes.p, bytes.n);
	s->n += bytes.n;
	wire_consumed(c->wire, id, bytes.n);
	return 0;
}

void ctl_on_end(struct ctl *c, uint32_t id, uint32_t idx)
{
	struct ctl_stream *s = &c->streams[idx];
	uint8_t *answer = xmalloc(GUEST_MAX_BODY);
	struct wr wr = wr_init(answer, GUEST_MAX_BODY);
	unsigned status;

	status = s->route->handle(c->ctx, slice_of(s->body, s->n), &wr);
	free(s->body);
	s->body = answer;
	s->n = wr.n;
	s->at = 0;
	s->answered = true;
	if (status & CTL_HOLD) {
		s->held = status & ~CTL_HOLD;
		s->id = id;
		return;
	}
	if (wire_reply(c->wire, id, status) < 0)
		wire_reset(c->wire, id);
}

void ctl_release(struct ctl *c, const char *path, struct slice body)
{
	for (uint32_t i = 0; i < CTL_MAX_STREAMS; i++) {
		struct ctl_stream *s = &c->streams[i];

		if (!s->held || strcmp(s->route->path, path) != 0)
			continue;
		if (body.n && body.n <= GUEST_MAX_BODY) {
			memcpy(s->body, body.p, body.n);
			s->n = body.n;
		}
		if (wire_reply(c->wire, s->id, s->held) < 0)
			wire_reset(c->wire, s->id);
		s->held = 0;
	}
}

ssize_t ctl_pull(struct ctl *c, uint32_t idx, uint8_t *buf, size_t n)
{
	struct ctl_stream *s = &c->streams[idx];
	size_t k = MIN(n, s->n - s->at);

	if (!s->answered)
		return -EAGAIN;
	memcpy(buf, s->body + s->at, k);
	s->at += k;
	return (ssize_t)k;
}

void ctl_close(struct ctl *c, uint32_t idx)
{
	free(c->streams[idx].body);
	c->streams[idx] = (struct ctl_stream){0};
}

void ctl_drop_all(struct ctl *c)
{
	for (uint32_t i = 0; i < CTL_MAX_STREAMS; i++)
		ctl_close(c, i);
	c->wire = NULL;
}
