/* SPDX-License-Identifier: Apache-2.0 */
#include "api_http_internal.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "lib/base/hex.h"
#include "lib/base/str.h"

static const char *const method_names[] = {
	[API_HTTP_GET] = "GET",
	[API_HTTP_POST] = "POST",
	[API_HTTP_PUT] = "PUT",
	[API_HTTP_PATCH] = "PATCH",
	[API_HTTP_DELETE] = "DELETE",
};

const char *api_http_method_name(enum api_http_method m)
{
	return method_names[m];
}

static bool is_token_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* Cuts the line that starts at *p off the head: the CRLF becomes NUL, *p points after it. The head
 * ends in CRLF CRLF, so there always is one. */
static char *cut_line(char **p)
{
	char *line = *p, *end = strstr(line, "\r\n");

	*end = '\0';
	*p = end + 2;
	return line;
}

/* Splits "Name: value" in place; the value is trimmed. */
static int split_header(struct api_http *h, char *line, char **ret_value)
{
	char *colon = strchr(line, ':'), *v, *end;

	if (line[0] == ' ' || line[0] == '\t')
		return api_http_refuse(h, 400, "a folded header line");
	if (!colon || colon == line)
		return api_http_refuse(h, 400, "a header line without a name");
	*colon = '\0';
	for (const char *c = line; *c; c++)
		if (!is_token_char(*c))
			return api_http_refuse(h, 400, "a header name with an invalid character");
	v = colon + 1 + strspn(colon + 1, " \t");
	end = v + strlen(v);
	while (end > v && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	for (const char *c = v; *c; c++)
		if ((*c < 0x20 && *c != '\t') || *c == 0x7f)
			return api_http_refuse(h, 400, "a header value that is not plain ASCII");
	*ret_value = v;
	return 0;
}

static int take_length(struct api_http *h, const char *value)
{
	uint64_t n;
	int r;

	if (h->has_length)
		return api_http_refuse(h, 400, "more than one Content-Length");
	r = str_to_u64(value, 0, UINT64_MAX, &n);
	if (r < 0)
		return api_http_refuse(h, 400, "Content-Length is not a number");
	if (n > API_HTTP_MAX_BODY)
		return api_http_refuse(h, 413, "the body is larger than 1 MiB");
	h->has_length = true;
	h->body_len = n;
	return 0;
}

static int take_connection(struct api_http *h, char *value)
{
	char *save = NULL;

	for (char *t = strtok_r(value, ", \t", &save); t; t = strtok_r(NULL, ", \t", &save)) {
		if (strcasecmp(t, "close") == 0)
			h->keep = false;
		else if (strcasecmp(t, "upgrade") == 0)
			h->upgrade = true;
		else if (strcasecmp(t, "keep-alive") != 0)
			return api_http_refuse(h, 400, "unknown value of Connection");
	}
	return 0;
}

static int take_header(struct api_http *h, const char *name, char *value)
{
	if (strcasecmp(name, "connection") == 0)
		return take_connection(h, value);
	if (strcasecmp(name, "upgrade") == 0) {
		if (strcmp(value, "sbx-stream") != 0)
			return api_http_refuse(h, 400, "Upgrade must be sbx-stream");
		h->has_upgrade_token = true;
	}
	if (strcasecmp(name, "expect") == 0)
		return api_http_refuse(h, 417, "Expect is not supported");
	return 0;
}

/* One walk over the head that changes nothing in it, for what decides how many bytes follow. */
int api_http_parse_length(struct api_http *h)
{
	const char *p = h->buf, *end = h->buf + h->n_head - 2;
	bool chunked = false;
	int r;

	while (p < end) {
		const char *nl = memmem(p, (size_t)(end + 2 - p), "\r\n", 2);
		size_t n = (size_t)(nl - p);
		char value[32];

		if (n >= 18 && strncasecmp(p, "transfer-encoding:", 18) == 0)
			chunked = true;
		if (n >= 15 && strncasecmp(p, "content-length:", 15) == 0) {
			const char *v = p + 15 + strspn(p + 15, " \t");
			size_t k = (size_t)(nl - MIN(v, nl));

			while (k && (v[k - 1] == ' ' || v[k - 1] == '\t'))
				k--;
			if (slice_to_cstr(slice_of(v, k), value, sizeof(value)) < 0)
				return api_http_refuse(h, 400, "Content-Length is not a number");
			r = take_length(h, value);
			if (r < 0)
				return r;
		}
		p = nl + 2;
	}
	if (chunked && h->has_length)
		return api_http_refuse(h, 400, "both Content-Length and Transfer-Encoding");
	return chunked ? api_http_refuse(h, 411,
				 "chunked requests are not supported: send a Content-Length")
		       : 0;
}

/* In place. No control character may come out, nor a slash in a segment: it would not be one. */
static int decode_percent(struct api_http *h, char *s, bool is_segment)
{
	char *to = s;

	for (; *s; s++) {
		int c = (unsigned char)*s;

		if (c == '%') {
			int hi = hex_digit((uint8_t)s[1]),
			    lo = hi < 0 ? -1 : hex_digit((uint8_t)s[2]);

			if (lo < 0)
				return api_http_refuse(h, 400, "an invalid percent escape");
			c = hi << 4 | lo;
			s += 2;
		}
		if (c < 0x20 || c == 0x7f || (c == '/' && is_segment))
			return api_http_refuse(h, 400, "a forbidden character in the path");
		*to++ = (char)c;
	}
	*to = '\0';
	return 0;
}

static int split_path(struct api_http *h, char *path)
{
	char *p = path;

	while (p) {
		char *part = ++p;

		p = strchr(part, '/');
		if (p)
			*p = '\0';
		if (!*part || h->n_parts == API_HTTP_MAX_PARTS)
			return api_http_refuse(h, 400, "an empty path segment, or too many");
		if (decode_percent(h, part, true) < 0)
			return -EBADMSG;
		h->part[h->n_parts++] = part;
	}
	return 0;
}

static int split_query(struct api_http *h, char *query)
{
	char *next = query;

	while (next) {
		char *pair = next, *eq;

		next = strchr(pair, '&');
		if (next)
			*next++ = '\0';
		eq = strchr(pair, '=');
		if (!eq || eq == pair || h->n_query == API_HTTP_MAX_PARTS)
			return api_http_refuse(h, 400, "the query is not key=value, or too long");
		*eq = '\0';
		if (api_http_query(h, pair))
			return api_http_refuse(h, 400, "a duplicate query key");
		if (decode_percent(h, pair, true) < 0 || decode_percent(h, eq + 1, false) < 0)
			return -EBADMSG;
		h->query[h->n_query].key = pair;
		h->query[h->n_query++].value = eq + 1;
	}
	return 0;
}

static int take_target(struct api_http *h, char *target)
{
	char *query = strchr(target, '?');

	if (target[0] != '/')
		return api_http_refuse(h, 400, "the target must begin with /");
	for (const char *c = target; *c; c++)
		if (*c <= 0x20 || *c == 0x7f || *c == '#')
			return api_http_refuse(h, 400, "a forbidden character in the target");
	if (query)
		*query++ = '\0';
	if (split_path(h, target) < 0)
		return -EBADMSG;
	return query ? split_query(h, query) : 0;
}

static int take_request_line(struct api_http *h, char *line)
{
	char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;

	if (!version)
		return api_http_refuse(h, 400, "the first line is not a request");
	*target++ = *version++ = '\0';
	if (strcmp(version, "HTTP/1.1") != 0)
		return str_starts(version, "HTTP/")
			       ? api_http_refuse(h, 505, "only HTTP/1.1 is supported")
			       : api_http_refuse(h, 400, "the first line is not a request");
	h->method = API_HTTP_N_METHODS;
	for (size_t i = 0; i < ARRAY_LEN(method_names); i++)
		if (strcmp(line, method_names[i]) == 0)
			h->method = (enum api_http_method)i;
	if (h->method == API_HTTP_N_METHODS)
		return api_http_refuse(h, 501, "unknown method");
	return take_target(h, target);
}

int api_http_parse_head(struct api_http *h)
{
	char *p = h->buf, *value = NULL;
	size_t n = 0;

	/* The last CRLF ends the head; from here on it is a string of lines. */
	h->buf[h->n_head - 2] = '\0';
	h->keep = true;
	if (take_request_line(h, cut_line(&p)) < 0)
		return -EBADMSG;
	for (; *p; n++) {
		char *line = cut_line(&p);

		if (n == API_HTTP_MAX_HEADERS)
			return api_http_refuse(h, 431, "more than 64 header lines");
		if (split_header(h, line, &value) < 0 || take_header(h, line, value) < 0)
			return -EBADMSG;
	}
	if (h->upgrade != h->has_upgrade_token)
		return api_http_refuse(h, 400, "Connection and Upgrade do not match");
	return 0;
}
