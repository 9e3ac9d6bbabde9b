/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4_rig.h"

#include <errno.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"

void sigv4_rig_init(struct sigv4_rig *rig)
{
	*rig = (struct sigv4_rig){0};
	arena_init(&rig->arena, SIGV4_ARENA_SIZE);
	rig->body = xmalloc(SIGV4_RIG_BODY);
	rig->sent = xmalloc(SIGV4_RIG_BODY);
	rig->req.scheme = HTTP_SCHEME_HTTPS;
	rig->req.port = 443;
	rig->req.method = slice_from_str("GET");
	rig->req.path = slice_from_str("/");
	rig->check.sentinel = slice_from_str("AKIAPROXYMANAGED2222");
	canon_headers_init(&rig->req.headers, &rig->arena, HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS);
}

void sigv4_rig_done(struct sigv4_rig *rig)
{
	arena_done(&rig->arena);
	free(rig->body);
	free(rig->sent);
}

static struct slice cut_word(struct slice *line)
{
	const uint8_t *at = line->n ? memchr(line->p, ' ', line->n) : NULL;
	size_t n = at ? (size_t)(at - line->p) : line->n;
	struct slice word = slice_of(line->p, n);

	*line = canon_text_cut(*line, at ? n + 1 : n, line->n);
	return word;
}

static bool add_header(struct sigv4_rig *rig, struct slice rest)
{
	struct http_headers *h = &rig->req.headers;
	struct slice name = cut_word(&rest);

	if (!h->list || h->n == HTTP_MAX_HEADERS)
		return false;
	h->list[h->n++] = (struct http_header){.name = name, .value = canon_text_trim(rest)};
	return true;
}

static bool read_body(struct sigv4_rig *rig, struct slice hex)
{
	if (hex.n % 2 || hex.n / 2 > SIGV4_RIG_BODY)
		return false;
	for (size_t i = 0; i < hex.n / 2; i++) {
		int a = hex_digit(hex.p[2 * i]), b = hex_digit(hex.p[2 * i + 1]);

		if (a < 0 || b < 0)
			return false;
		rig->body[i] = (uint8_t)(a << 4 | b);
	}
	rig->n_body = hex.n / 2;
	rig->req.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = rig->n_body};
	return true;
}

static bool read_number(struct sigv4_rig *rig, struct slice word, struct slice rest)
{
	uint64_t n;

	if (!canon_text_to_u64(rest, &n))
		return false;
	if (slice_eq_str(word, "now"))
		rig->check.now = (int64_t)(n >> 1 ? n : 0);
	else if (slice_eq_str(word, "port"))
		rig->req.port = (uint16_t)n;
	else if (slice_eq_str(word, "step"))
		rig->step = n;
	else if (slice_eq_str(word, "length"))
		rig->req.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = n};
	else
		return false;
	return true;
}

bool sigv4_rig_line(struct sigv4_rig *rig, struct slice line)
{
	struct slice word = cut_word(&line);
	struct slice *text = slice_eq_str(word, "cred")	      ? &rig->cred
			     : slice_eq_str(word, "sentinel") ? &rig->check.sentinel
			     : slice_eq_str(word, "method")   ? &rig->req.method
			     : slice_eq_str(word, "host")     ? &rig->req.host
			     : slice_eq_str(word, "path")     ? &rig->req.path
			     : slice_eq_str(word, "query")    ? &rig->req.query
							      : NULL;

	if (text) {
		*text = line;
		rig->req.has_query |= text == &rig->req.query;
		return true;
	}
	if (slice_eq_str(word, "header"))
		return add_header(rig, line);
	if (slice_eq_str(word, "body"))
		return read_body(rig, line);
	if (slice_eq_str(word, "chunked")) {
		rig->req.body = (struct http_body){.kind = HTTP_BODY_CHUNKED};
		return true;
	}
	return read_number(rig, word, line);
}

static int send_chunks(struct sigv4_rig *rig, const struct sigv4_chain *chain, struct err *err)
{
	struct slice in = slice_of(rig->body, rig->n_body), out;
	struct sigv4_chunks c;
	size_t used;
	int r = 0;

	sigv4_chunks_init(&c, chain, &rig->s);
	while (in.n > 0) {
		r = sigv4_chunks_put(
			&c, canon_text_cut(in, 0, rig->step ? rig->step : in.n), &used, &out, err);
		if (r < 0)
			break;
		memcpy(rig->sent + rig->n_sent, out.p ? out.p : rig->sent, out.n);
		rig->n_sent += out.n;
		in = canon_text_cut(in, used, in.n);
	}
	if (r == 0 && !sigv4_chunks_is_whole(&c))
		r = err_set(err, -EBADMSG, "the body is cut off");
	sigv4_chunks_done(&c);
	return r;
}

int sigv4_rig_run(struct sigv4_rig *rig, struct err *err)
{
	struct sigv4_chain chain;
	struct sigv4_cred cred;
	uint8_t hash[SIGV4_HASH];
	int r;

	if (!rig->req.headers.list || canon_check_req(&rig->req) < 0 ||
		sigv4_split(rig->cred, &cred, err) < 0)
		return -EINVAL;
	r = sigv4_read(&rig->req, &rig->check, &rig->arena, &rig->s, err);
	if (r < 0)
		return r;
	if (rig->s.body == SIGV4_BODY_WHOLE) {
		r = sigv4_hash(slice_of(rig->body, rig->n_body), hash);
		if (r < 0)
			return r;
	}
	r = sigv4_sign(&rig->req, &rig->s, &cred, rig->s.body == SIGV4_BODY_WHOLE ? hash : NULL,
		&rig->arena, &chain, err);
	if (r == 0 && rig->s.body == SIGV4_BODY_CHUNKS)
		return send_chunks(rig, &chain, err);
	memcpy(rig->sent, rig->body, rig->n_body);
	rig->n_sent = rig->n_body;
	return r;
}
