/* SPDX-License-Identifier: Apache-2.0 */
#include "http1_internal.h"

#include <errno.h>
#include <sys/types.h>

static int check_start(struct http1 *h, struct slice line);

/* One byte through the gate: only CR LF ends a line, and nothing below 0x20 but TAB is in one. 1 at
 * the end of a line. */
static int pass_byte(struct http1 *h, uint8_t c)
{
	if (h->after_cr) {
		h->after_cr = false;
		return c == '\n' ? 1 : http1_fail(h, 400, "a CR that is not followed by LF");
	}
	if (c == '\r') {
		h->after_cr = true;
		return 0;
	}
	if (c == '\n')
		return http1_fail(h, 400, "a line that ends with LF without CR");
	if ((c < 0x20 && c != '\t') || c == 0x7f)
		return http1_fail(h, 400, "a control character in the head");
	h->n_line++;
	return 0;
}

/* How many bytes belong to these lines, at most to the end of the start line; *ret_end when the
 * empty line is among them. */
static ssize_t scan_head(struct http1 *h, struct slice in, bool *ret_end)
{
	bool in_head = h->state == HTTP1_IN_HEAD;

	for (size_t i = 0; i < in.n; i++) {
		int r = pass_byte(h, in.p[i]);

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (h->n_line == 0) {
			if (in_head && !h->has_start)
				return http1_fail(h, 400, "an empty line before the message");
			*ret_end = true;
			return (ssize_t)i + 1;
		}
		if (in_head && !h->has_start) {
			h->n_start = h->n_line;
			h->n_line = 0;
			return (ssize_t)i + 1;
		}
		h->n_line = 0;
	}
	return (ssize_t)in.n;
}

static int keep_lines(struct http1 *h, struct slice bytes, size_t max)
{
	bool in_head = h->state == HTTP1_IN_HEAD;

	/* Between the head and the trailers others use the arena, so trailers get all at once. */
	if (!h->lines)
		h->lines = arena_alloc(h->arena, in_head ? 0 : max);
	if (!h->lines || (in_head && !arena_extend(h->arena, h->lines, h->n_lines + bytes.n)))
		return http1_fail(h, 431, "the head is too large");
	memcpy(h->lines + h->n_lines, bytes.p, bytes.n);
	h->n_lines += bytes.n;
	return 0;
}

/* The start line is checked before any byte after it: a client of another protocol may never send
 * an empty line, and the result must not depend on how the bytes are split. */
static int check_first(struct http1 *h)
{
	if (h->state != HTTP1_IN_HEAD || h->has_start || h->n_start == 0)
		return 0;
	h->has_start = true;
	return check_start(h, slice_of(h->lines, h->n_start));
}

int http1_collect(struct http1 *h, struct slice *in, size_t max)
{
	bool end = false;

	while (in->n > 0 && !end) {
		struct slice window = canon_text_cut(*in, 0, max - h->n_lines);
		ssize_t n = scan_head(h, window, &end);

		if (n < 0)
			return -EBADMSG;
		if (n == 0)
			return http1_fail(h, 431, "the head or the trailers are too large");
		if (keep_lines(h, http1_take(in, (uint64_t)n), max) < 0 || check_first(h) < 0)
			return -EBADMSG;
	}
	return end ? 1 : 0;
}

/* The next line without its CRLF; the gate has seen to it that there is one. */
static bool next_line(struct slice *text, struct slice *ret)
{
	const uint8_t *cr = text->n ? memchr(text->p, '\r', text->n) : NULL;

	if (!cr || cr == text->p)
		return false;
	*ret = http1_take(text, (uint64_t)(cr - text->p));
	(void)http1_take(text, 2);
	return true;
}

static void lower_in_place(struct http1 *h, struct slice name)
{
	size_t at = (size_t)(name.p - h->lines);

	for (size_t i = 0; i < name.n; i++)
		h->lines[at + i] = canon_text_lower(h->lines[at + i]);
}

static int add_header(struct http1 *h, struct slice line, struct http_headers *headers)
{
	const uint8_t *colon = memchr(line.p, ':', line.n);
	struct slice name = canon_text_cut(line, 0, colon ? (size_t)(colon - line.p) : 0);
	struct slice value = canon_text_trim(canon_text_cut(line, name.n + 1, line.n));

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return http1_fail(h, 400, "a folded header line");
	if (!colon || name.n == 0)
		return http1_fail(h, 400, "a header line without a name");
	if (!canon_text_is_token(name))
		return http1_fail(h, 400, "a header name with an invalid character");
	if (!canon_text_is_value(value))
		return http1_fail(h, 400, "a control character in a header value");
	lower_in_place(h, name);
	headers->list[headers->n++] = (struct http_header){.name = name, .value = value};
	return 0;
}

static int parse_headers(
	struct http1 *h, struct slice text, struct http_headers *headers, size_t max, size_t spare)
{
	struct slice line;

	canon_headers_init(headers, h->arena, max + spare);
	if (arena_is_full(h->arena))
		return http1_fail(h, 431, "the head is too large");
	while (next_line(&text, &line)) {
		if (headers->n == max)
			return http1_fail(h, 431, "too many header lines");
		if (add_header(h, line, headers) < 0)
			return -EBADMSG;
	}
	return 0;
}

/* Cuts the text before the first space off. */
static bool cut_word(struct slice *line, struct slice *ret)
{
	const uint8_t *space = line->n ? memchr(line->p, ' ', line->n) : NULL;

	if (!space || space == line->p)
		return false;
	*ret = http1_take(line, (uint64_t)(space - line->p));
	(void)http1_take(line, 1);
	return true;
}

/* 0 for HTTP/1.1 and HTTP/1.0. */
static int check_version(struct http1 *h, struct slice text, bool *ret_http10)
{
	*ret_http10 = slice_eq_str(text, "HTTP/1.0");
	if (*ret_http10 || slice_eq_str(text, "HTTP/1.1"))
		return 0;
	if (text.n == 8 && memcmp(text.p, "HTTP/", 5) == 0 && text.p[6] == '.' &&
		text.p[5] >= '0' && text.p[5] <= '9' && text.p[7] >= '0' && text.p[7] <= '9')
		return http1_fail(h, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
	return http1_fail(h, 400, "the first line has no HTTP version");
}

/* "http://" or "https://", then the authority, then the rest, which may be empty. */
static int split_absolute(struct http1 *h, struct slice *target)
{
	struct slice rest;
	size_t n = 0, skip;

	if (target->n > 8 && canon_text_eq_fold(canon_text_cut(*target, 0, 8), "https://")) {
		h->req.scheme = HTTP_SCHEME_HTTPS;
		skip = 8;
	} else if (target->n > 7 && canon_text_eq_fold(canon_text_cut(*target, 0, 7), "http://")) {
		h->req.scheme = HTTP_SCHEME_HTTP;
		skip = 7;
	} else {
		return http1_fail(h, 400, "the target is neither a path nor an http URL");
	}
	rest = canon_text_cut(*target, skip, target->n);
	while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	h->req.authority = canon_text_cut(rest, 0, n);
	if (n == 0 || memchr(rest.p, '@', n))
		return http1_fail(h, 400, "the target has no host, or contains a user");
	h->req.form = HTTP_FORM_ABSOLUTE;
	*target = canon_text_cut(rest, n, rest.n);
	return 0;
}

static int split_path(struct http1 *h, struct slice target)
{
	const uint8_t *mark = target.n ? memchr(target.p, '?', target.n) : NULL;
	size_t n = mark ? (size_t)(mark - target.p) : target.n;

	h->req.has_query = mark != NULL;
	if (mark)
		h->req.query = canon_text_cut(target, n + 1, target.n);
	h->req.path = n ? canon_text_cut(target, 0, n) : slice_from_str("/");
	if (canon_check_path(h->req.path) < 0 || canon_check_query(h->req.query) < 0)
		return http1_fail(
			h, 400, "a path or query with an invalid character, escape or ..");
	return 0;
}

/* The form of the target must be one that the method has. */
static int take_target(struct http1 *h, struct slice target)
{
	struct http_req *req = &h->req;

	if (slice_eq_str(req->method, "CONNECT")) {
		req->form = HTTP_FORM_AUTHORITY;
		req->authority = target;
		for (size_t i = 0; i < target.n; i++)
			if (target.p[i] == '/' || target.p[i] == '@' || target.p[i] == '?')
				return http1_fail(h, 400, "CONNECT requires host:port");
		return 0;
	}
	if (slice_eq_str(target, "*")) {
		req->form = HTTP_FORM_ASTERISK;
		req->path = target;
		if (!slice_eq_str(req->method, "OPTIONS"))
			return http1_fail(h, 400, "the target * is for OPTIONS only");
		return 0;
	}
	if (target.p[0] != '/' && split_absolute(h, &target) < 0)
		return -EBADMSG;
	/* Without a path, OPTIONS of an absolute target is OPTIONS * (RFC 9112, 3.2.4). */
	if (target.n == 0 && slice_eq_str(req->method, "OPTIONS")) {
		req->form = HTTP_FORM_ASTERISK;
		req->path = slice_from_str("*");
		return 0;
	}
	return split_path(h, target);
}

static int check_req_start(struct http1 *h, struct slice line)
{
	struct slice target;

	if (!cut_word(&line, &h->req.method) || !cut_word(&line, &target))
		return http1_fail(h, 400, "the first line is not a request");
	if (!canon_text_is_token(h->req.method) || h->req.method.n > HTTP_MAX_METHOD)
		return http1_fail(h, 400, "the first line has no method");
	for (size_t i = 0; i < target.n; i++)
		if (target.p[i] <= 0x20 || target.p[i] >= 0x7f || target.p[i] == '#')
			return http1_fail(h, 400, "an invalid character in the target");
	if (check_version(h, line, &h->req.http10) < 0)
		return -EBADMSG;
	return take_target(h, target);
}

/* "HTTP/1.1 200 any text"; the text is not kept. */
static int check_resp_start(struct http1 *h, struct slice line)
{
	struct slice version, code;
	uint64_t status;

	if (!cut_word(&line, &version))
		return http1_fail(h, 502, "the first line is not a response");
	if (check_version(h, version, &h->resp.http10) < 0)
		return -EBADMSG;
	code = canon_text_cut(line, 0, 3);
	if (code.n != 3 || !canon_text_to_u64(code, &status) || status < 100 || status > 599)
		return http1_fail(h, 502, "the first line has no status");
	if (line.n > 3 && line.p[3] != ' ')
		return http1_fail(h, 502, "the first line has no status");
	h->resp.status = (uint16_t)status;
	return 0;
}

static int check_start(struct http1 *h, struct slice line)
{
	return h->side == HTTP1_REQUESTS ? check_req_start(h, line) : check_resp_start(h, line);
}

int http1_parse_head(struct http1 *h)
{
	struct slice text = slice_of(h->lines, h->n_lines);
	struct http_headers *headers =
		h->side == HTTP1_REQUESTS ? &h->req.headers : &h->resp.headers;

	(void)http1_take(&text, h->n_start + 2);
	/* The lines have moved to no other place since the start line was cut: the arena is one
	 * block. */
	if (parse_headers(h, text, headers, HTTP_MAX_HEADERS, HTTP_SPARE_HEADERS) < 0)
		return -EBADMSG;
	return h->side == HTTP1_REQUESTS ? http1_frame_req(h) : http1_frame_resp(h);
}

int http1_parse_trailers(struct http1 *h)
{
	struct slice text = slice_of(h->lines, h->n_lines);

	if (parse_headers(h, text, &h->trailers, HTTP_MAX_TRAILERS, 0) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < h->trailers.n; i++)
		if (canon_is_forbidden_trailer(h->trailers.list[i].name))
			return http1_fail(h, 400, "a header that is not allowed as a trailer");
	return 0;
}
