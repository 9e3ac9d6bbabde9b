/* SPDX-License-Identifier: Apache-2.0 */
/* Responses with new credentials in fields that the service's `capture` rules name. Runs in
 * sbx-origin; input: a server's content with those credentials. Head and content are held until the
 * content is complete. Then the values become '*', the rest is sent to edge unchanged, and later
 * responses are searched for the last values. */
#include "capture.h"

#include <errno.h>
#include "lib/base/mem.h"
#include "lib/secret/oauth/capture.h"
#include "sweep.h"

#define FIRST_ROOM 16384

struct capture {
	uint8_t *head; /* of the response: payload of a frame */
	size_t n_head;
	uint8_t *text;
	size_t n, size, at; /* from `at` on it is still to be sent */
	uint16_t status;
	bool is_open; /* whole and clean */
	const char *why;
};

static int refuse_capture(struct capture *c, const char *why)
{
	c->why = why;
	return -EBADMSG;
}

const char *capture_why(const struct exchange *x, const char *otherwise)
{
	return x->capture && x->capture->why ? x->capture->why : otherwise;
}

bool capture_is_open(const struct exchange *x)
{
	return x->capture && x->capture->is_open;
}

int capture_begin(struct exchange *x, const struct http_resp *resp)
{
	size_t size = CANON_MAX_HEAD + CANON_FRAME_HEADER;
	AUTO_FREE uint8_t *buf = NULL;
	struct capture *c;
	struct wr wr;

	if (!x->captures || (resp->status < 200 && resp->status != 101))
		return 0;
	if (resp->status != 101 && (resp->body.kind == HTTP_BODY_NONE || resp->body.absent))
		return 0;
	c = x->capture = xcalloc(1, sizeof(*c));
	c->status = resp->status;
	if (resp->status == 101 || resp->status == 206)
		return refuse_capture(c, "cannot search a partial response for captured fields");
	buf = xmalloc(size);
	wr = wr_init(buf, size);
	if (canon_put_resp(&wr, OUT_STREAM, resp) < 0)
		return refuse_capture(c, "the response head is too large");
	c->n_head = wr.n - CANON_FRAME_HEADER;
	c->head = xmalloc(c->n_head);
	memcpy(c->head, buf + CANON_FRAME_HEADER, c->n_head);
	return 1;
}

/* realloc would leave a copy of the secret. */
static int grow_capture(struct origin *o, struct capture *c, size_t n)
{
	size_t size = MAX(c->size, FIRST_ROOM);
	uint8_t *text;

	while (size < n)
		size *= 2;
	if (size == c->size)
		return 0;
	if (o->n_captured + size - c->size > CAPTURE_MAX_KEPT)
		return refuse_capture(
			c, "too many responses are waiting for the search for captured fields");
	text = xmalloc(size);
	if (c->n)
		memcpy(text, c->text, c->n);
	if (c->text)
		explicit_bzero(c->text, c->n);
	free(c->text);
	o->n_captured += size - c->size;
	c->text = text;
	c->size = size;
	return 0;
}

int capture_keep(struct origin *o, struct exchange *x, struct slice data)
{
	struct capture *c = x->capture;
	int r;

	if (data.n == 0)
		return 0;
	if (data.n > CAPTURE_MAX_ANSWER - c->n)
		return refuse_capture(
			c, "the response is too large to be searched for captured fields");
	r = grow_capture(o, c, c->n + data.n);
	if (r < 0)
		return r;
	memcpy(c->text + c->n, data.p, data.n);
	c->n += data.n;
	return 0;
}

static void on_value(void *user, struct slice value)
{
	sweep_capture(user, value);
}

int capture_open(struct origin *o, struct exchange *x, struct http_resp *ret_head, size_t *ret_n)
{
	struct capture *c = x->capture;
	AUTO_SECRET struct secret value = {0};
	struct capture_to to = {.found = on_value, .user = o};
	int r = secret_init(&value, OAUTH_MAX_TOKEN, NULL);

	if (r < 0)
		return refuse_capture(c, "out of memory for captured fields");
	to.buf = value.p;
	to.size = value.size;
	if (c->n)
		r = capture_clean(&o->service, x->captures, c->text, c->n, &to);
	/* an error page has no fields */
	if (r == -EPROTO || (r < 0 && c->status >= 200 && c->status < 300))
		return refuse_capture(c,
			r == -EPROTO ? "a captured field of the response is not a string"
				     : "the response is not JSON and can contain a captured field");
	arena_reset(&o->arena);
	if (canon_get_resp(slice_of(c->head, c->n_head), &o->arena, ret_head) < 0)
		return refuse_capture(c, "cannot forward the response head");
	*ret_n = to.n;
	c->is_open = true;
	return 0;
}

struct slice capture_next(const struct exchange *x, size_t max)
{
	const struct capture *c = x->capture;

	/* an empty one has no text */
	return c->at < c->n ? slice_of(c->text + c->at, MIN(c->n - c->at, max)) : slice_of(NULL, 0);
}

void capture_passed(struct exchange *x, size_t n)
{
	x->capture->at += n;
}

void capture_free(struct origin *o, struct exchange *x)
{
	struct capture *c = TAKE(x->capture);

	if (!c)
		return;
	if (c->text)
		explicit_bzero(c->text, c->n);
	o->n_captured -= c->size;
	free(c->text);
	free(c->head);
	free(c);
}
