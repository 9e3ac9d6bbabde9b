/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are signed again (lib/secret/sigv4): the guest's signature is parsed before its
 * placeholders are removed, and replaced when the value is available. A body that must be hashed is
 * kept until it is complete; one in signed chunks is signed while it is sent. Either waits in `due`
 * for the line. */
#include "sign.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/secret/sigv4/sigv4_chunks.h"

#define READ_ARENA 32768

struct sign {
	struct sigv4 s;
	struct arena read; /* memory that s points into */
	struct arena out;  /* data derived from the credential */
	struct slice query;
	bool had_query;
	struct sigv4_chunks chunks;
	bool has_chunks;
	uint8_t *due; /* content for the line */
	size_t due_n, due_at, due_size;
	bool is_kept;  /* due is the complete content */
	bool is_ended; /* no data follows */
	struct err why;
};

static bool can_sign(const struct service *s)
{
	for (size_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].how == SERVICE_SIGV4)
			return true;
	return false;
}

/* The text of the request is changed in place before it is signed. */
static void copy_texts(struct sign *g)
{
	struct slice *text[] = {
		&g->s.stamp, &g->s.region, &g->s.service, &g->s.signed_headers, &g->s.payload};

	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		if (text[i]->n)
			*text[i] = arena_dup(&g->read, *text[i]);
	if (arena_is_full(&g->read))
		(void)err_set(&g->why, -EBADMSG, "the request is too large to sign again");
}

void sign_read(struct origin *o, struct exchange *x)
{
	struct sigv4_check check = {.now = (int64_t)(clock_wall_ms() / 1000)};
	struct sign *g;
	int r = -EBADMSG;

	if (!can_sign(&o->service))
		return;
	g = x->talk->sign = xcalloc(1, sizeof(*g));
	arena_init(&g->read, READ_ARENA);
	arena_init(&g->out, SIGV4_ARENA_SIZE);
	/* One of them is the key's ID; the error of the first is reported. */
	for (size_t i = 0; i < o->service.n_envs && r < 0; i++) {
		struct err err = {0};

		check.sentinel = slice_from_str(o->service.env[i].sentinel);
		arena_reset(&g->out);
		r = sigv4_read(&x->talk->req, &check, &g->out, &g->s, &err);
		if (r < 0 && i == 0)
			g->why = err;
	}
	if (r < 0)
		return;
	g->why.text[0] = '\0';
	copy_texts(g);
	arena_reset(&g->out);
}

const char *sign_refusal(struct exchange *x)
{
	struct sign *g = x->talk->sign;

	if (!x->slot || x->slot->how != SERVICE_SIGV4)
		return NULL;
	if (g->why.text[0])
		return g->why.text;
	if (g->s.form == SIGV4_UNSIGNED)
		x->slot = NULL; /* an unsigned request gets no credential */
	return NULL;
}

static bool is_signed(const struct exchange *x)
{
	return x->talk->sign && x->slot && x->slot->how == SERVICE_SIGV4;
}

bool sign_keeps_body(const struct exchange *x)
{
	const struct http_body *body = &x->talk->req.body;

	return is_signed(x) && x->talk->sign->s.body == SIGV4_BODY_WHOLE &&
	       (body->kind == HTTP_BODY_CHUNKED || body->length > 0);
}

/* ---- content ---- */

static int put_due(struct origin *o, struct sign *g, struct slice data)
{
	size_t want = g->due_n + data.n, size = g->due_size ? g->due_size : OUT_READ;

	while (size < want)
		size *= 2;
	if (size > g->due_size) {
		if (o->n_kept + (size - g->due_size) > SIGN_MAX_KEPT)
			return -ENOBUFS;
		o->n_kept += size - g->due_size;
		g->due = xrealloc(g->due, size);
		g->due_size = size;
	}
	memcpy(g->due + g->due_n, data.p, data.n);
	g->due_n += data.n;
	return 0;
}

int sign_keep(struct origin *o, struct exchange *x, struct slice data)
{
	struct sign *g = x->talk->sign;
	int r = g->due_n + data.n > SIGV4_MAX_BODY ? -EFBIG : put_due(o, g, data);

	if (r == -EFBIG)
		(void)err_set(&g->why, r,
			"cannot sign the request again: the body is larger than %u MiB and its "
			"hash is missing",
			SIGV4_MAX_BODY >> 20);
	else if (r < 0)
		(void)err_set(&g->why, -EBADMSG, "too many requests are waiting to be signed");
	return r;
}

/* Its length is known now, and AWS servers require it. */
void sign_keep_end(struct exchange *x)
{
	struct sign *g = x->talk->sign;

	g->is_kept = g->is_ended = true;
	x->talk->req.expect_continue = false;
	x->talk->req.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = g->due_n};
}

const char *sign_why(const struct exchange *x)
{
	return x->talk->sign->why.text;
}

bool sign_has_chunks(const struct exchange *x)
{
	return x->talk->sign && x->talk->sign->has_chunks;
}

int sign_put_chunks(struct origin *o, struct exchange *x, struct slice data)
{
	struct sign *g = x->talk->sign;

	while (data.n > 0) {
		struct err err = {0};
		struct slice piece;
		size_t used;
		int r = sigv4_chunks_put(&g->chunks, data, &used, &piece, &err);

		if (r == 0 && piece.n)
			r = put_due(o, g, piece);
		if (r < 0) {
			if (!err.text[0])
				(void)err_set(
					&err, r, "too many requests are waiting to be signed");
			g->why = err;
			return -EPROTO;
		}
		data = canon_text_cut(data, used, data.n);
	}
	return 0;
}

int sign_end_chunks(struct exchange *x)
{
	struct sign *g = x->talk->sign;

	if (!sigv4_chunks_is_whole(&g->chunks)) {
		(void)err_set(&g->why, -EBADMSG, "the body is truncated: no last signed chunk");
		return -EPROTO;
	}
	g->is_ended = true;
	return 0;
}

bool sign_has_due(const struct exchange *x)
{
	const struct sign *g = x->talk->sign;

	return g && (g->due_at < g->due_n || g->is_ended);
}

struct slice sign_due(const struct exchange *x, size_t max)
{
	const struct sign *g = x->talk->sign;

	if (g->due_at == g->due_n)
		return slice_of(NULL, 0);
	return slice_of(g->due + g->due_at, MIN(g->due_n - g->due_at, max));
}

bool sign_due_sent(struct exchange *x, size_t n)
{
	struct sign *g = x->talk->sign;
	bool was_end;

	g->due_at += n;
	if (g->due_at < g->due_n)
		return false;
	g->due_at = g->due_n = 0;
	was_end = g->is_ended;
	g->is_ended = false;
	return was_end;
}

/* ---- the signature ---- */

int slot_sign(struct origin *o, struct exchange *x, const struct value *v, const char **ret_why)
{
	struct sign *g = x->talk->sign;
	struct http_req *req = &x->talk->req;
	struct sigv4_chain chain = {0};
	struct sigv4_cred cred;
	uint8_t hash[SIGV4_HASH];
	struct err err = {0};
	int r = sigv4_split(v->frame.value, &cred, &err);

	if (r == 0 && g->s.body == SIGV4_BODY_WHOLE)
		r = sigv4_hash(slice_of(g->due, g->is_kept ? g->due_n : 0), hash);
	g->query = req->query;
	g->had_query = req->has_query;
	if (r == 0)
		r = sigv4_sign(req, &g->s, &cred, hash, &g->out, &chain, &err);
	if (r == 0 && g->s.body == SIGV4_BODY_CHUNKS) {
		sigv4_chunks_init(&g->chunks, &chain, &g->s);
		g->has_chunks = true;
	}
	sigv4_chain_wipe(&chain);
	if (r < 0) {
		g->why = err;
		*ret_why = err_text(&g->why, r);
	}
	return r;
}

bool sign_can_repeat(const struct exchange *x)
{
	return !sign_has_chunks(x);
}

void sign_wipe(struct exchange *x)
{
	struct sign *g = x->talk->sign;

	if (!is_signed(x))
		return;
	canon_remove_header(&x->talk->req.headers, "authorization");
	canon_remove_header(&x->talk->req.headers, "x-amz-security-token");
	x->talk->req.query = g->query;
	x->talk->req.has_query = g->had_query;
	if (g->out.block)
		explicit_bzero(g->out.block, g->out.n);
	arena_done(&g->out);
	arena_init(&g->out, SIGV4_ARENA_SIZE);
}

void sign_free(struct origin *o, struct talk *t)
{
	struct sign *g = t ? TAKE(t->sign) : NULL;

	if (!g)
		return;
	o->n_kept -= g->due_size;
	if (g->has_chunks)
		sigv4_chunks_done(&g->chunks);
	arena_done(&g->read);
	if (g->out.block)
		explicit_bzero(g->out.block, g->out.n);
	arena_done(&g->out);
	free(g->due);
	free(g);
}
