/* SPDX-License-Identifier: Apache-2.0 */
#include "url.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

/* Letters, digits, and what RFC 3986 permits besides. */
static bool is_url_byte(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("-._~:/?#[]@!$&'()*+,;=%", c));
}

static int check_bytes(struct slice s, struct err *err)
{
	if (s.n == 0)
		return err_set(err, -EINVAL, "the link is empty");
	if (s.n > URL_MAX)
		return err_set(err, -EINVAL, "the link has more than %d bytes", URL_MAX);
	for (size_t i = 0; i < s.n; i++) {
		if (!is_url_byte(s.p[i]))
			return err_set(err, -EINVAL,
				"the link has the byte 0x%02x at %zu, which must be encoded",
				s.p[i], i + 1);
		if (s.p[i] == '%' &&
			(s.n - i < 3 || hex_digit(s.p[i + 1]) < 0 || hex_digit(s.p[i + 2]) < 0))
			return err_set(
				err, -EINVAL, "the link has a '%%' without two hexadecimal digits");
	}
	return 0;
}

/* Removes "http://" or "https://" in any case. */
static int take_scheme(struct slice *s, bool *ret_tls, struct err *err)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = strlen(schemes[i]);

		if (s->n < n || strncasecmp((const char *)s->p, schemes[i], n) != 0)
			continue;
		*ret_tls = i == 1;
		*s = slice_of(s->p + n, s->n - n);
		return 0;
	}
	return err_set(err, -EINVAL, "only links with http:// or https:// can be opened");
}

/* Removes the authority. */
static struct slice take_authority(struct slice *s)
{
	size_t n = 0;

	while (n < s->n && !strchr("/?#", s->p[n]))
		n++;
	return slice_take(s, n);
}

static bool ends_with(const struct host *h, const char *domain)
{
	size_t n = strlen(domain);

	return h->n > n && h->name[h->n - n - 1] == '.' && strcmp(h->name + h->n - n, domain) == 0;
}

/* RFC 6761, 6762, 8375, and names that are not in the public DNS but in many local networks. */
static bool is_local_name(const struct host *h)
{
	static const char *const domains[] = {"localhost", "local", "internal", "home.arpa", "lan",
		"localdomain", "intranet", "private", "home", "corp"};

	if (!strchr(h->name, '.') || host_is_localhost(h) || host_is_here(h))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(domains); i++)
		if (ends_with(h, domains[i]))
			return true;
	return false;
}

static int check_host(const struct host *h, struct err *err)
{
	enum addr_class class = h->is_addr ? addr_classify(&h->addr, NULL) : ADDR_PUBLIC;

	if (class != ADDR_PUBLIC)
		return err_set(err, -EINVAL, "the host of the link is a %s address",
			addr_class_name(class));
	if (!h->is_addr && is_local_name(h))
		return err_set(err, -EINVAL, "the host of the link is a name of a local network");
	return 0;
}

static bool has_two_colons(struct slice s)
{
	const uint8_t *colon = memchr(s.p, ':', s.n);

	return colon && memchr(colon + 1, ':', s.n - (size_t)(colon + 1 - s.p));
}

static int take_host(struct slice authority, struct url *u, struct err *err)
{
	struct slice host;
	int r;

	if (memchr(authority.p, '@', authority.n))
		return err_set(err, -EINVAL, "the link has a user name before its host");
	if (authority.n && authority.p[0] != '[' && has_two_colons(authority))
		return err_set(err, -EINVAL, "an IPv6 address in a link has brackets");
	if (authority.n && authority.p[authority.n - 1] == ':')
		return err_set(err, -EINVAL, "the link has no port after ':'");
	r = host_split(authority, &host, &u->port, err);
	if (r == 0)
		r = host_from_wire(host, &u->host, err);
	if (r < 0)
		return r;
	if (!u->port)
		u->port = u->tls ? 443 : 80;
	return check_host(&u->host, err);
}

static int print_url(struct url *u, struct slice rest, struct err *err)
{
	bool is_v6 = strchr(u->host.name, ':') != NULL;
	char port[8] = "";
	int n;

	if (u->port != (u->tls ? 443 : 80))
		(void)snprintf(port, sizeof(port), ":%u", u->port);
	n = snprintf(u->text, sizeof(u->text), "%s://%s%s%s%s", u->tls ? "https" : "http",
		is_v6 ? "[" : "", u->host.name, is_v6 ? "]" : "", port);
	u->path = (size_t)n;
	n = snprintf(u->text + u->path, sizeof(u->text) - u->path, "%s%.*s",
		rest.n && rest.p[0] == '/' ? "" : "/", (int)rest.n, (const char *)rest.p);
	u->n = u->path + (size_t)n;
	return u->n < sizeof(u->text)
		       ? 0
		       : err_set(err, -EINVAL, "the link has more than %d bytes", URL_MAX);
}

int url_parse(struct slice text, struct url *ret, struct err *err)
{
	struct slice rest = text;
	int r = check_bytes(text, err);

	ret->port = 0;
	if (r == 0)
		r = take_scheme(&rest, &ret->tls, err);
	if (r == 0)
		r = take_host(take_authority(&rest), ret, err);
	return r < 0 ? r : print_url(ret, rest, err);
}

bool url_has_punycode(const struct url *u)
{
	return str_starts(u->host.name, "xn--") || strstr(u->host.name, ".xn--");
}

/* ---- the callback ---- */

struct slice url_query(const struct url *u)
{
	const char *from = u->text + u->path, *end = from + strcspn(from, "#");
	const char *mark = memchr(from, '?', (size_t)(end - from));

	return mark ? slice_of(mark + 1, (size_t)(end - mark - 1)) : slice_of(from, 0);
}

/* The next NAME=VALUE of a query. */
static struct slice next_pair(struct slice *query)
{
	const uint8_t *end = memchr(query->p, '&', query->n);
	struct slice pair = slice_take(query, end ? (size_t)(end - query->p) : query->n);

	if (query->n)
		(void)slice_take(query, 1);
	return pair;
}

/* Without the %XX. -EINVAL if it has a byte that is not printable ASCII. */
static int decode_value(struct slice s, char *buf, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++, n++) {
		int c = s.p[i];

		if (c == '%' && s.n - i >= 3) {
			c = hex_digit(s.p[i + 1]) << 4 | hex_digit(s.p[i + 2]);
			i += 2;
		}
		if (c < ' ' || c > '~' || n + 1 >= size)
			return -EINVAL;
		buf[n] = (char)c;
	}
	buf[n] = '\0';
	return 0;
}

int url_field(struct slice query, const char *name, char *buf, size_t size)
{
	size_t found = 0, n = strlen(name);
	int r = 0;

	while (query.n && r == 0) {
		struct slice pair = next_pair(&query);

		if (pair.n <= n || memcmp(pair.p, name, n) != 0 || pair.p[n] != '=')
			continue;
		r = found++ ? -ENOTUNIQ
			    : decode_value(slice_of(pair.p + n + 1, pair.n - n - 1), buf, size);
	}
	return r < 0 ? r : (int)found;
}

/* A path that no program reads in two ways: no empty part, no dots alone, no query. */
static bool is_plain_path(const char *path)
{
	size_t part = 0, dots = 0;

	for (const char *c = path + 1; *path == '/'; c++) {
		if (*c && *c != '/') {
			if (!strchr("-._~", *c) && !(*c >= '0' && *c <= '9') &&
				!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z'))
				return false;
			part++;
			dots += *c == '.';
			continue;
		}
		if ((part > 0 && part == dots) || (*c && part == 0))
			return false;
		if (!*c)
			return true;
		part = dots = 0;
	}
	return false;
}

static int read_callback(const char *uri, struct url_callback *ret, struct err *err)
{
	static const char *const begins[] = {"http://localhost:", "http://127.0.0.1:"};
	const char *rest = NULL;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (str_starts(uri, begins[i]))
			rest = uri + strlen(begins[i]);
	if (!rest)
		return err_set(err, -EINVAL,
			"the redirect_uri is not http://localhost:PORT/ or http://127.0.0.1:PORT/");
	n = strcspn(rest, "/?#");
	if (host_parse_port(slice_of(rest, n), &ret->port) < 0)
		return err_set(err, -EINVAL, "the redirect_uri has no valid port");
	if (ret->port < URL_MIN_PORT)
		return err_set(err, -EINVAL, "the redirect_uri has a port below %d", URL_MIN_PORT);
	if (!is_plain_path(rest[n] ? rest + n : "/") ||
		str_copy(ret->path, sizeof(ret->path), rest[n] ? rest + n : "/") < 0)
		return err_set(err, -EINVAL, "the redirect_uri has no plain path");
	return 0;
}

/* Another server receives the browser: nothing to do here. */
static bool is_elsewhere(const char *uri)
{
	struct url u;

	return url_parse(slice_from_str(uri), &u, NULL) == 0 || !strchr(uri, '/');
}

int url_callback(const struct url *u, struct url_callback *ret, struct err *err)
{
	char uri[URL_MAX + 1];
	int r = url_field(url_query(u), "redirect_uri", uri, sizeof(uri));

	if (r == -ENOTUNIQ)
		return err_set(err, -EINVAL, "the link has more than one redirect_uri");
	if (r < 0)
		return err_set(err, -EINVAL, "the redirect_uri is not a plain URL");
	if (r == 0 || is_elsewhere(uri))
		return 0;
	r = read_callback(uri, ret, err);
	return r < 0 ? r : 1;
}
