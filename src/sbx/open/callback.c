/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of HTTP/1.1, of browsers and of the guest. */
#include "callback.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

int callback_of(const struct url *u, struct callback *ret, struct err *err)
{
	int r = url_callback(u, &ret->at, err);

	if (r <= 0)
		return r;
	r = url_field(url_query(u), "state", ret->state, sizeof(ret->state));
	ret->has_state = r == 1;
	return r < 0 ? err_set(err, -EINVAL, "the state of the link is not one plain text") : 1;
}

/* ---- lines ---- */

/* The head with its last empty line; n is 0 if it is not complete. */
static struct slice find_head(struct slice bytes)
{
	const void *end = memmem(bytes.p, bytes.n, "\r\n\r\n", 4);

	return slice_of(bytes.p, end ? (size_t)((const uint8_t *)end - bytes.p) + 4 : 0);
}

/* Removes a line with its CRLF. -EBADMSG: it has another control character. */
static int take_line(struct slice *head, struct slice *ret)
{
	const uint8_t *end = memmem(head->p, head->n, "\r\n", 2);

	if (!end)
		return -EBADMSG;
	*ret = slice_take(head, (size_t)(end - head->p));
	(void)slice_take(head, 2);
	for (size_t i = 0; i < ret->n; i++)
		if (ret->p[i] < ' ' || ret->p[i] == 0x7f)
			return -EBADMSG;
	return 0;
}

/* Cuts "Name: value". -EBADMSG: no name, or a blank in it. */
static int cut_field(struct slice line, struct slice *ret_name, struct slice *ret_value)
{
	const uint8_t *colon = memchr(line.p, ':', line.n);

	if (!colon || colon == line.p)
		return -EBADMSG;
	*ret_name = slice_take(&line, (size_t)(colon - line.p));
	(void)slice_take(&line, 1);
	*ret_value = slice_trim(line);
	return memchr(ret_name->p, ' ', ret_name->n) ? -EBADMSG : 0;
}

static bool is_name(struct slice s, const char *name)
{
	return s.n == strlen(name) && strncasecmp((const char *)s.p, name, s.n) == 0;
}

/* ---- requests ---- */

/* Fields that decide about a request. */
struct fields {
	size_t n_host;
	struct slice host;
	bool has_body, has_origin, is_fetch;
};

static void take_field(struct slice name, struct slice value, struct fields *f)
{
	if (is_name(name, "host")) {
		f->n_host++;
		f->host = value;
	}
	f->has_body = f->has_body || is_name(name, "transfer-encoding") ||
		      (is_name(name, "content-length") && !slice_eq_str(value, "0"));
	f->has_origin = f->has_origin || is_name(name, "origin");
	/* What a browser sends for a page that the user sees, unlike for images and scripts. */
	f->is_fetch = f->is_fetch ||
		      (is_name(name, "sec-fetch-mode") && !slice_eq_str(value, "navigate")) ||
		      (is_name(name, "sec-fetch-dest") && !slice_eq_str(value, "document"));
}

static int read_fields(struct slice head, struct fields *f)
{
	struct slice line, name, value;

	while (head.n > 2) {
		if (take_line(&head, &line) < 0 || cut_field(line, &name, &value) < 0)
			return -EBADMSG;
		take_field(name, value, f);
	}
	return 0;
}

static bool is_own_host(const struct callback *cb, struct slice host)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "localhost:%u", cb->at.port);
	if (slice_eq_str(host, text))
		return true;
	(void)snprintf(text, sizeof(text), "127.0.0.1:%u", cb->at.port);
	return slice_eq_str(host, text);
}

/* "METHOD TARGET HTTP/1.1" */
static int cut_request(struct slice line, struct slice *ret_method, struct slice *ret_target)
{
	const uint8_t *first = memchr(line.p, ' ', line.n), *last;

	if (!first)
		return -EBADMSG;
	*ret_method = slice_take(&line, (size_t)(first - line.p));
	(void)slice_take(&line, 1);
	last = memchr(line.p, ' ', line.n);
	if (!last)
		return -EBADMSG;
	*ret_target = slice_take(&line, (size_t)(last - line.p));
	return slice_eq_str(line, " HTTP/1.1") ? 0 : -EBADMSG;
}

/* Of the bytes that a link may have; a fragment is never sent. */
static bool is_plain_target(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("\"#<>\\^`{|}", s.p[i]))
			return false;
	return s.n > 0 && s.p[0] == '/' && s.n <= URL_MAX;
}

static bool has_state(const struct callback *cb, struct slice query)
{
	char state[URL_MAX + 1];
	int r = url_field(query, "state", state, sizeof(state));

	return !cb->has_state || (r == 1 && strcmp(state, cb->state) == 0);
}

static int judge_target(const struct callback *cb, struct slice target, const char **why)
{
	const uint8_t *mark = memchr(target.p, '?', target.n);
	struct slice path = slice_of(target.p, mark ? (size_t)(mark - target.p) : target.n);
	struct slice query = slice_of(target.p + path.n, target.n - path.n);

	if (query.n)
		(void)slice_take(&query, 1);
	*why = "not the path of the callback";
	if (!is_plain_target(target) || !slice_eq_str(path, cb->at.path))
		return 404;
	*why = "not the state of the link";
	return has_state(cb, query) ? 200 : 403;
}

static int judge_fields(const struct callback *cb, const struct fields *f, const char **why)
{
	*why = "another Host";
	if (f->n_host != 1 || !is_own_host(cb, f->host))
		return 421;
	*why = "not a page that the user sees";
	if (f->has_origin || f->is_fetch)
		return 403;
	*why = "a body";
	return f->has_body ? 400 : 200;
}

int callback_read(const struct callback *cb, struct slice bytes, char *target, const char **why)
{
	struct slice head = find_head(bytes), line, method, at;
	struct fields f = {0};
	int status;

	*why = "not a request of HTTP/1.1";
	if (head.n == 0)
		return bytes.n < CALLBACK_HEAD ? 0 : 431;
	if (take_line(&head, &line) < 0 || cut_request(line, &method, &at) < 0 ||
		read_fields(head, &f) < 0)
		return 400;
	*why = "not a GET";
	if (!slice_eq_str(method, "GET"))
		return 405;
	status = judge_fields(cb, &f, why);
	if (status == 200)
		status = judge_target(cb, at, why);
	if (status == 200 && slice_to_cstr(at, target, CALLBACK_HEAD) < 0)
		status = 400;
	return status;
}

/* ---- responses ---- */

/* A redirection of the guest to its own port. */
static void take_location(const struct callback *cb, struct slice value, char next[URL_MAX + 1])
{
	static const char *const hosts[] = {"localhost", "127.0.0.1"};

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		char origin[48];
		int n = snprintf(origin, sizeof(origin), "http://%s:%u", hosts[i], cb->at.port);

		if (value.n > (size_t)n && memcmp(value.p, origin, (size_t)n) == 0 &&
			value.p[n] == '/')
			(void)slice_take(&value, (size_t)n);
	}
	if (!is_plain_target(value) || (value.n > 1 && value.p[1] == '/') ||
		slice_to_cstr(value, next, URL_MAX + 1) < 0)
		next[0] = '\0';
}

int callback_response(const struct callback *cb, struct slice bytes, char next[URL_MAX + 1])
{
	struct slice head = find_head(bytes), line, name, value;
	int status = 0;

	next[0] = '\0';
	if (head.n == 0)
		return bytes.n < CALLBACK_HEAD ? 0 : -EBADMSG;
	if (take_line(&head, &line) < 0 || line.n < 12 || memcmp(line.p, "HTTP/1.", 7) != 0)
		return -EBADMSG;
	for (size_t i = 9; i < 12; i++) {
		if (line.p[i] < '0' || line.p[i] > '9')
			return -EBADMSG;
		status = status * 10 + (line.p[i] - '0');
	}
	while (head.n > 2) {
		if (take_line(&head, &line) < 0 || cut_field(line, &name, &value) < 0)
			return -EBADMSG;
		if (status >= 300 && status < 400 && is_name(name, "location"))
			take_location(cb, value, next);
	}
	return status >= 100 ? status : -EBADMSG;
}
