/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a token endpoint: held until complete; the tokens are sent to the vault, and
 * placeholders to edge once the vault has them. */
#include "value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/secret/scrub/scrub.h"
#include "lib/secret/scrub/unpack.h"
#include "src/origin/answer/answer.h"

#define FIRST_ROOM 16384 /* for an answer; grows up to OAUTH_MAX_ANSWER */

static void bad_answer(struct origin *o, struct exchange *x, const char *why)
{
	o->ops->fail(o, x, ORIGIN_BAD_ANSWER, "%s: %s", o->config.host, why);
}

/* ---- collecting it ---- */

static int grow_answer(struct secret *s, size_t size)
{
	struct secret larger = {0};
	int r = secret_init(&larger, size, NULL);

	if (r < 0)
		return r;
	if (s->n)
		memcpy(larger.p, s->p, s->n);
	larger.n = s->n;
	secret_done(s);
	*s = larger;
	return 0;
}

static int append_answer(struct secret *s, struct slice data)
{
	size_t size = MAX(s->size, FIRST_ROOM);
	int r = 0;

	if (data.n > OAUTH_MAX_ANSWER - s->n)
		return -EMSGSIZE;
	while (size < s->n + data.n)
		size *= 2;
	if (size > s->size)
		r = grow_answer(s, size);
	if (r < 0)
		return r;
	if (data.n)
		memcpy(s->p + s->n, data.p, data.n);
	s->n += data.n;
	return 0;
}

bool token_on_head(struct origin *o, struct exchange *x, struct http_resp *resp)
{
	struct token *t = x->token;
	size_t size = CANON_MAX_HEAD + CANON_FRAME_HEADER;
	AUTO_FREE uint8_t *buf = NULL;
	struct wr wr;

	if (resp->status == 101) {
		bad_answer(o, x, "websocket response from the token endpoint");
		return false;
	}
	if (resp->status < 200)
		return true;
	buf = xmalloc(size);
	wr = wr_init(buf, size);
	if (t->head || canon_put_resp(&wr, OUT_STREAM, resp) < 0) {
		bad_answer(o, x, "cannot forward the response");
		return false;
	}
	t->n_head = wr.n - CANON_FRAME_HEADER;
	t->head = xmalloc(t->n_head);
	memcpy(t->head, buf + CANON_FRAME_HEADER, t->n_head);
	return true;
}

bool token_on_data(struct origin *o, struct exchange *x, struct slice data)
{
	int r = append_answer(&x->token->answer, data);

	/* it is in a buffer of the line, which others use later */
	explicit_bzero((uint8_t *)data.p, data.n);
	if (r < 0)
		bad_answer(o, x, "the token response is too large");
	return r == 0;
}

/* ---- output to edge ---- */

/* Removes the value sent with the request from its answer, for all receivers: its own exchange,
 * those that wait for the same refresh, and those that follow soon. */
static int scrub_sent(struct origin *o, struct exchange *x)
{
	struct token *t = x->token;
	int r = answer_scrub_kept(o, x, t->clean.p, t->clean.n, &t->n_removed);

	return r < 0 ? r : answer_scrub_kept(o, x, t->head, t->n_head, &t->n_removed);
}

static const char *const dropped[] = {"content-encoding", "content-length", "content-md5", "digest",
	"content-digest", "etag", "accept-ranges"};

/* Takes a head and content that are already clean; they are searched anyway. */
static int put_answer(struct origin *o, struct exchange *x, struct slice head, struct slice body)
{
	struct http_headers none = {0};
	struct http_resp resp = {0};
	int r;

	arena_reset(&o->arena);
	r = canon_get_resp(head, &o->arena, &resp);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
		canon_remove_header(&resp.headers, dropped[i]);
	if (body.n)
		resp.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = body.n};
	else if (!resp.body.absent && resp.body.kind != HTTP_BODY_NONE)
		resp.body = (struct http_body){.kind = HTTP_BODY_LENGTH};
	x->result.status = resp.status;
	r = answer_scrub_head(o, x, &resp);
	if (r == 0 && body.n)
		r = answer_scrub(o, x, body);
	return r < 0 ? r : answer_scrub_end(o, x, &none);
}

/* The exchange has ended after it, except that edge must read it. */
static void say_answer(struct origin *o, struct exchange *x, struct slice head, struct slice body)
{
	AUTO_FREE uint8_t *own = NULL;

	if (!exchange_has_edge(x)) {
		o->ops->tell_done(o, x);
		o->ops->finish(o, x);
		return;
	}
	/* the scrubber works in place, and other exchanges get the same head */
	own = xmalloc(MAX(head.n, 1u));
	memcpy(own, head.p, head.n);
	if (put_answer(o, x, slice_of(own, head.n), body) < 0) {
		bad_answer(o, x, "cannot forward the response");
		return;
	}
	if (x->token)
		x->result.n_removed += x->token->n_removed;
	o->ops->tell_done(o, x);
	(void)!o->ops->flush(o, x);
}

void token_share(struct origin *o, struct exchange *x, const struct token *t)
{
	x->state = EXCHANGE_TALK;
	exchange_set_timer(o, x, ORIGIN_TOKEN_MS);
	say_answer(o, x, slice_of(t->head, t->n_head), secret_slice(&t->clean));
}

bool token_remembers(struct origin *o, struct exchange *x)
{
	struct token_memory *m = &o->memory;

	if (!m->head || clock_mono_ms() >= m->until_ms || !(o->config.has & ORIGIN_HAS_ACCESS))
		return false;
	x->state = EXCHANGE_TALK;
	exchange_set_timer(o, x, ORIGIN_TOKEN_MS);
	say_answer(o, x, slice_of(m->head, m->n_head), slice_of(m->body, m->n_body));
	return true;
}

static void remember_answer(struct origin *o, const struct token *t)
{
	struct token_memory *m = &o->memory;
	uint64_t ms = ORIGIN_REFRESHED_MS;

	free(m->head);
	free(m->body);
	if (t->expires_s)
		ms = MIN(ms, t->expires_s * UINT64_C(1000));
	*m = (struct token_memory){.head = xmalloc(t->n_head),
		.n_head = t->n_head,
		.body = xmalloc(t->clean.n),
		.n_body = t->clean.n,
		.until_ms = clock_mono_ms() + ms};
	memcpy(m->head, t->head, t->n_head);
	memcpy(m->body, t->clean.p, t->clean.n);
}

/* Forwards the answer: first to waiting exchanges, since it is freed afterwards. */
static void pass_on(struct origin *o, struct exchange *x)
{
	struct token *t = x->token;

	t->has_answer = true;
	if (o->flight == x)
		token_land(o, x);
	x->state = EXCHANGE_TALK;
	say_answer(o, x, slice_of(t->head, t->n_head), secret_slice(&t->clean));
}

/* ---- the tokens ---- */

void token_store_drop(struct token *t)
{
	for (size_t i = 0; i < ARRAY_LEN(t->store); i++)
		fd_close(&t->store[i].fd);
}

static void say_tokens(struct origin *o, struct token_store *s)
{
	s->is_due = !o->keeper->tokens(o, s->id, &s->what, s->fd);
	if (!s->is_due)
		fd_close(&s->fd);
}

void token_flush_due(struct origin *o)
{
	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		struct token *t = o->exchanges[i].token;

		for (size_t k = 0; t && k < ARRAY_LEN(t->store) && !o->control.is_due; k++) {
			if (t->store[k].is_due)
				say_tokens(o, &t->store[k]);
		}
	}
}

/* All of it fits into an empty pipe. */
static int write_frame(int fd, const char *name, struct slice token)
{
	uint8_t head[VAULT_FRAME_MAX_HEAD];
	struct wr wr = wr_init(head, sizeof(head));
	struct vault_frame frame = {.serial = 0, .value = token};

	(void)snprintf(frame.name, sizeof(frame.name), "%s", name);
	if (vault_frame_head(&frame, &wr) < 0)
		return -EINVAL;
	if (write(fd, head, wr.n) != (ssize_t)wr.n ||
		write(fd, token.p, token.n) != (ssize_t)token.n)
		return -EIO;
	return 0;
}

static int store_answer(struct origin *o, struct token_store *s, enum origin_which which,
	struct slice token, uint32_t expires_s)
{
	AUTO_CLOSE int to = -1;
	char name[VAULT_MAX_NAME];
	int fds[2], n;

	n = snprintf(name, sizeof(name), "%s.%s", o->service.name,
		which == ORIGIN_ACCESS ? "access" : "refresh");
	if (n < 0 || (size_t)n >= sizeof(name) || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -EIO;
	s->fd = fds[0];
	to = fds[1];
	s->id = ++o->n_tokens;
	s->what = (struct origin_tokens){.which = which, .expires_s = expires_s};
	if (write_frame(to, name, token) < 0)
		return -EIO;
	fd_close(&to); /* after the report, the receiver finds the end of the frame */
	say_tokens(o, s);
	return 0;
}

static int store_all(struct origin *o, struct exchange *x, const struct oauth_tokens *tokens)
{
	struct token *t = x->token;
	int r = 0;

	/* before they are sent: the state must be set when they are stored */
	x->state = EXCHANGE_STORE;
	exchange_set_timer(o, x, ORIGIN_STORE_MS);
	/* A lost access token can be replaced with the refresh token, but not vice versa. */
	if (tokens->refresh.n)
		r = store_answer(o, &t->store[0], ORIGIN_REFRESH, tokens->refresh, 0);
	if (r == 0 && tokens->access.n)
		r = store_answer(o, &t->store[1], ORIGIN_ACCESS, tokens->access, tokens->expires_s);
	return r;
}

static struct token_store *find_store(struct exchange *x, uint32_t id)
{
	for (size_t i = 0; x->token && i < ARRAY_LEN(x->token->store); i++) {
		if (x->token->store[i].id == id && !x->token->store[i].is_due)
			return &x->token->store[i];
	}
	return NULL;
}

static void on_kept(struct origin *o, struct exchange *x)
{
	struct token *t = x->token;

	if (t->store[0].id || t->store[1].id)
		return;
	if (t->req.grant == OAUTH_REFRESH)
		remember_answer(o, t);
	pass_on(o, x);
}

int token_on_stored(struct origin *o, struct ipc_msg *msg)
{
	struct origin_stored stored;
	int r = origin_get_stored(msg, &stored);

	if (r < 0 || msg->id > o->n_tokens)
		return -EBADMSG;
	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		struct exchange *x = &o->exchanges[i];
		struct token_store *s = find_store(x, msg->id);

		if (!s || x->state != EXCHANGE_STORE)
			continue;
		s->id = 0;
		if (stored.kept)
			on_kept(o, x);
		else
			o->ops->fail(o, x, ORIGIN_NO_VALUE, "%s: cannot store the tokens: %s",
				o->config.host, stored.text);
		return 0;
	}
	return 0; /* dropped meanwhile */
}

/* ---- the whole answer ---- */

/* Undoes an unrequested content-encoding. */
static int decode_answer(struct token *t, struct http_resp *resp)
{
	enum unpack_coding coding = UNPACK_IDENTITY;
	AUTO_SECRET struct secret plain = {0};
	struct slice in = secret_slice(&t->answer);
	struct unpack *u;
	size_t at, n = 1;
	int r = canon_find_header(&resp->headers, "content-encoding", &at);

	if (r == -ENOENT || t->answer.n == 0)
		return 0;
	if (r < 0 || unpack_parse(resp->headers.list[at].value, &coding, NULL) < 0)
		return -EBADMSG;
	if (coding == UNPACK_IDENTITY)
		return 0;
	r = secret_init(&plain, OAUTH_MAX_ANSWER + 1, NULL);
	u = r == 0 ? unpack_new(coding) : NULL;
	if (!u)
		return -EBADMSG;
	while (r == 0 && (n > 0 || in.n > 0) && plain.n < plain.size) {
		r = unpack_feed(u, &in, plain.p + plain.n, plain.size - plain.n, &n, NULL);
		plain.n += n;
	}
	if (r == 0)
		r = plain.n > OAUTH_MAX_ANSWER ? -EMSGSIZE : unpack_end(u, NULL);
	unpack_free(u);
	if (r < 0)
		return r;
	secret_done(&t->answer);
	t->answer = secret_take(&plain);
	return 0;
}

static int make_tail(char tail[OAUTH_TAIL + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint8_t bytes[OAUTH_TAIL];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < OAUTH_TAIL; i++)
		tail[i] = letters[bytes[i] % (sizeof(letters) - 1)];
	tail[OAUTH_TAIL] = '\0';
	return 0;
}

/* A server may repeat its tokens elsewhere: in headers, in fields of another name. */
static int scrub_new(struct token *t, const struct oauth_tokens *tokens)
{
	const struct slice list[] = {tokens->access, tokens->refresh};
	struct scrub_set *set = scrub_set_new(list, ARRAY_LEN(list), NULL);

	if (!set)
		return -EMSGSIZE;
	t->n_removed += (uint32_t)scrub_text(set, t->clean.p, t->clean.n);
	t->n_removed += (uint32_t)scrub_text(set, t->head, t->n_head);
	scrub_set_free(set);
	return 0;
}

/* Creates t->clean from t->answer. Returns 1 if there are tokens, else 0. */
static int clean_answer(
	struct origin *o, struct exchange *x, struct secret *room, struct oauth_tokens *ret)
{
	struct token *t = x->token;
	char tail[OAUTH_TAIL + 1];
	struct wr wr, wr_room;
	int r = secret_init(&t->clean, OAUTH_MAX_REWRITTEN, NULL);

	if (r == 0)
		r = secret_init(room, 2 * OAUTH_MAX_TOKEN, NULL);
	if (r == 0)
		r = make_tail(tail);
	if (r < 0)
		return -EPROTO;
	wr = wr_init(t->clean.p, t->clean.size);
	wr_room = wr_init(room->p, room->size);
	r = oauth_rewrite(&o->service, secret_slice(&t->answer), tail, &wr, &wr_room, ret);
	if (r < 0)
		return r;
	t->clean.n = wr.n;
	t->expires_s = ret->expires_s;
	r = scrub_new(t, ret);
	if (r == 0)
		r = scrub_sent(o, x);
	return r < 0 ? r : ret->access.n || ret->refresh.n;
}

/* Not JSON, or empty: an error page. */
static void pass_as_it_is(struct origin *o, struct exchange *x)
{
	struct token *t = x->token;

	secret_done(&t->clean);
	t->clean = secret_take(&t->answer);
	if (scrub_sent(o, x) < 0)
		bad_answer(o, x, "cannot forward the response");
	else
		pass_on(o, x);
}

void token_on_end(struct origin *o, struct exchange *x)
{
	AUTO_SECRET struct secret room = {0};
	struct oauth_tokens tokens = {0};
	struct token *t = x->token;
	struct http_resp resp = {0};
	bool is_good;
	int r = -EBADMSG;

	arena_reset(&o->arena);
	if (!t->head || canon_get_resp(slice_of(t->head, t->n_head), &o->arena, &resp) < 0 ||
		decode_answer(t, &resp) < 0) {
		bad_answer(o, x, "cannot parse the token response");
		return;
	}
	is_good = resp.status >= 200 && resp.status < 300;
	if (t->answer.n)
		r = clean_answer(o, x, &room, &tokens);
	if (r == 1 && is_good) {
		secret_done(&t->answer);
		if (store_all(o, x, &tokens) < 0)
			bad_answer(o, x, "cannot store the tokens");
	} else if (r == 0) {
		pass_on(o, x);
	} else if (r == -EBADMSG && (!is_good || t->answer.n == 0)) {
		pass_as_it_is(o, x);
	} else {
		bad_answer(o, x, "unknown kind of token response");
	}
}
