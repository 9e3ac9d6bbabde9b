/* SPDX-License-Identifier: Apache-2.0 */
#include "netrule.h"

#include <errno.h>
#include <stdio.h>
#include "glob.h"
#include "lib/base/mem.h"
#include "lib/rules/effect/effect_terms.h"

static struct slice tail_netrule(struct slice s, size_t n)
{
	return slice_of(s.p + n, s.n - n);
}

static bool starts_netrule(struct slice s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

/* Where a port may begin: after the last colon, unless that is in an address without brackets. */
static size_t port_colon(struct slice s)
{
	size_t colons = 0, last = s.n;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == ':') {
			colons++;
			last = i;
		} else if (s.p[i] == ']') {
			colons = 0;
			last = s.n;
		}
	}
	return colons == 1 ? last : s.n;
}

static int parse_ports(struct slice s, struct netrule_ports *ret, struct err *err)
{
	const uint8_t *dash = s.n ? memchr(s.p, '-', s.n) : NULL;
	size_t n = dash ? (size_t)(dash - s.p) : s.n;
	int r = host_parse_port(slice_of(s.p, n), &ret->lo);

	ret->hi = ret->lo;
	if (r == 0 && dash)
		r = host_parse_port(tail_netrule(s, n + 1), &ret->hi);
	if (r < 0)
		return err_set(err, -EINVAL,
			"the port is not a number from 1 to 65535, nor a range such as 8000-9000");
	if (ret->lo > ret->hi)
		return err_set(
			err, -EINVAL, "the last port of the range is smaller than the first");
	return 0;
}

static int parse_prefix(struct slice s, const struct addr *a, struct netrule *ret, struct err *err)
{
	unsigned v = 0;
	char text[ADDR_MAX_TEXT];
	struct addr_net net;

	if (s.n == 0 || s.n > 3 || (s.n > 1 && s.p[0] == '0'))
		return err_set(err, -EINVAL, "the prefix length is not a number");
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return err_set(err, -EINVAL, "the prefix length is not a number");
		v = v * 10 + (unsigned)(s.p[i] - '0');
	}
	if (v > a->n * 8u)
		return err_set(err, -EINVAL, "the prefix length is larger than %u", a->n * 8u);
	net = addr_net_of(a, (uint8_t)v);
	addr_print(&net.addr, text);
	if (!addr_eq(&net.addr, a))
		return err_set(err, -EINVAL, "the network begins at %s: use %s/%u", text, text, v);
	ret->net = net;
	return 0;
}

/* An address or network without brackets. */
static int take_addr(struct slice s, struct netrule *ret, struct err *err)
{
	const uint8_t *slash = memchr(s.p, '/', s.n);
	struct slice head = slice_of(s.p, slash ? (size_t)(slash - s.p) : s.n);
	char text[ADDR_MAX_TEXT];
	struct addr a;

	if (addr_parse(head, &a) < 0)
		return err_set(err, -EINVAL, "not a well-formed address");
	if (a.n == 4 && memchr(head.p, ':', head.n)) {
		addr_print(&a, text);
		return err_set(err, -EINVAL, "an IPv4 address in IPv6 notation: use %s", text);
	}
	ret->form = NETRULE_ADDR;
	if (slash)
		return parse_prefix(tail_netrule(s, head.n + 1), &a, ret, err);
	ret->net = addr_net_of(&a, (uint8_t)(a.n * 8));
	return 0;
}

struct names {
	char text[NETRULE_MAX_TEXT]; /* the name with `x` for each pattern */
	size_t n, n_labels;
	struct slice glob[HOST_MAX_NAME]; /* of a label; empty: it is itself */
};

/* Patterns are ASCII and stay as they are; the rest goes through IDNA as one name. */
static int put_label(struct names *names, struct slice label, struct err *err)
{
	bool glob = glob_is_pattern(label);

	if (names->n_labels == ARRAY_LEN(names->glob))
		return err_set(err, -EINVAL, "too many labels");
	if (glob && glob_check(label, err) < 0)
		return -EINVAL;
	names->glob[names->n_labels++] = glob ? label : slice_of("", 0);
	if (names->n_labels > 1)
		names->text[names->n++] = '.';
	if (glob)
		label = slice_of("x", 1);
	if (label.n)
		memcpy(names->text + names->n, label.p, label.n);
	names->n += label.n;
	return 0;
}

static int cut_labels(struct slice s, struct names *names, struct err *err)
{
	for (;;) {
		const uint8_t *dot = s.n ? memchr(s.p, '.', s.n) : NULL;
		size_t n = dot ? (size_t)(dot - s.p) : s.n;

		if (put_label(names, slice_of(s.p, n), err) < 0)
			return -EINVAL;
		if (!dot)
			break;
		s = tail_netrule(s, n + 1);
	}
	if (names->glob[names->n_labels - 1].n)
		return err_set(err, -EINVAL, "the last label must be written out");
	return 0;
}

/* The canonical name again, with the patterns back in their places. */
static int join_labels(
	const struct names *names, const struct host *h, struct netrule *ret, struct err *err)
{
	char buf[HOST_MAX_NAME + 1];
	struct slice rest = host_slice(h);
	size_t n = 0, n_glob = 0, i = 0;

	for (; rest.n && i < names->n_labels; i++) {
		const uint8_t *dot = memchr(rest.p, '.', rest.n);
		size_t k = dot ? (size_t)(dot - rest.p) : rest.n;
		struct slice label = names->glob[i].n ? names->glob[i] : slice_of(rest.p, k);

		if (n + label.n + 1 > HOST_MAX_NAME)
			return err_set(
				err, -EINVAL, "the host has more than %d bytes", HOST_MAX_NAME);
		memcpy(buf + n, label.p, label.n);
		n += label.n;
		rest = tail_netrule(rest, dot ? k + 1 : k);
		if (dot)
			buf[n++] = '.';
		if (names->glob[i].n)
			n_glob = n;
	}
	if (rest.n || i != names->n_labels)
		return err_set(err, -EINVAL, "a character of the host represents a dot");
	ret->name = xstrndup(buf, n);
	ret->n_name = (uint8_t)n;
	ret->n_glob = (uint8_t)n_glob;
	return 0;
}

static int take_name(struct slice s, struct netrule *ret, struct err *err)
{
	struct names names = {.n = 0};
	struct host h;
	int r;

	if (s.n == 1 && s.p[0] == '*')
		return err_set(err, -EINVAL, "'*' alone is not a host: every host is '**'");
	if (starts_netrule(s, "**.")) {
		ret->deep = true;
		s = tail_netrule(s, 3);
	}
	if (s.n > 1 && s.p[s.n - 1] == '.')
		s.n--;
	r = cut_labels(s, &names, err);
	if (r == 0)
		r = host_from_text(slice_of(names.text, names.n), &h, err);
	if (r < 0)
		return r;
	ret->form = NETRULE_NAME;
	if (!h.is_addr)
		return join_labels(&names, &h, ret, err);
	if (ret->deep || !slice_eq(s, host_slice(&h)))
		return err_set(
			err, -EINVAL, "a number is not a host name: use the address %s", h.name);
	return take_addr(s, ret, err);
}

static bool is_v4_net(struct slice s)
{
	return memchr(s.p, '/', s.n) != NULL;
}

int netrule_parse(struct slice text, struct netrule *ret, struct err *err)
{
	struct netrule nr = {.form = NETRULE_EVERY};
	size_t at = port_colon(text);
	struct slice host = slice_of(text.p, at);
	int r = 0;

	if (text.n == 0 || text.n >= NETRULE_MAX_TEXT || host.n == 0)
		return err_set(err, -EINVAL, host.n ? "longer than 1199 bytes" : "missing host");
	if (memchr(host.p, '\\', host.n))
		return err_set(err, -EINVAL, "'\\' is not allowed: there are no escapes");
	if (at < text.n)
		r = parse_ports(tail_netrule(text, at + 1), &nr.ports, err);
	if (r < 0)
		return r;
	if (host.p[0] == '[' && memchr(host.p, ':', host.n)) {
		if (host.p[host.n - 1] != ']')
			return err_set(err, -EINVAL, "missing ']' after the address");
		r = take_addr(slice_of(host.p + 1, host.n - 2), &nr, err);
	} else if (memchr(host.p, ':', host.n) || is_v4_net(host)) {
		r = take_addr(host, &nr, err);
	} else if (!slice_eq_str(host, "**")) {
		r = take_name(host, &nr, err);
	}
	if (r == 0)
		*ret = nr;
	return r;
}

/* ---- requests ---- */

/* Where the host ends: at the first slash that is not in brackets. */
static size_t host_end(struct slice s)
{
	const uint8_t *close = s.n && s.p[0] == '[' ? memchr(s.p, ']', s.n) : NULL;
	size_t i = close ? (size_t)(close - s.p) : 0;

	while (i < s.n && s.p[i] != '/')
		i++;
	return i;
}

static int take_pattern(
	enum effect_kind kind, struct slice pattern, struct netrule *ret, struct err *err)
{
	int r = effect_pattern_check(kind, pattern, err);

	if (r < 0)
		return r;
	ret->path = xstrndup((const char *)pattern.p, pattern.n);
	return 0;
}

/* The name of a pack: lower-case letters, digits and hyphens. */
static int take_service(struct slice text, struct netrule *ret, struct err *err)
{
	bool good = text.n > 0 && text.n <= NETRULE_MAX_SERVICE;

	for (size_t i = 0; i < text.n; i++)
		good = good && ((text.p[i] >= 'a' && text.p[i] <= 'z') || text.p[i] == '-' ||
				       (text.p[i] >= '0' && text.p[i] <= '9'));
	if (!good && !slice_eq_str(text, "**"))
		return err_set(err, -EINVAL, "expected the name of a service, or '**'");
	ret->form = NETRULE_NO_HOST;
	ret->path = xstrndup((const char *)text.p, text.n);
	return 0;
}

/* One address, not a network: a request has one host. */
static int take_request_host(struct slice host, struct netrule *ret, struct err *err)
{
	int r = netrule_parse(host, ret, err);

	if (r == 0 && ret->form == NETRULE_ADDR && ret->net.prefix != ret->net.addr.n * 8)
		r = err_set(err, -EINVAL,
			"a network: a rule about requests names a host or one address");
	return r;
}

static int check_repo(struct slice repo, struct err *err)
{
	static const char end[] = ".git";
	size_t n = sizeof(end) - 1;

	if (repo.n > n && memcmp(repo.p + repo.n - n, end, n) == 0)
		return err_set(err, -EINVAL, "the name of a repository is without '.git'");
	return 0;
}

static int parse_target(
	enum effect_kind kind, struct slice text, struct netrule *ret, struct err *err)
{
	size_t at = host_end(text);
	struct slice path = tail_netrule(text, at);
	int r;

	if (kind == EFFECT_API)
		return take_service(text, ret, err);
	if (slice_eq_str(text, "**"))
		path = slice_from_str("/**");
	else if (path.n == 0)
		return err_set(err, -EINVAL, "missing %s: for all of them use %.*s/**",
			kind == EFFECT_HTTP ? "path" : "repository", (int)MIN(text.n, (size_t)60),
			text.n ? (const char *)text.p : "");
	r = take_request_host(slice_of(text.p, at), ret, err);
	if (r == 0 && kind == EFFECT_GIT)
		path = tail_netrule(path, 1);
	if (r == 0 && kind == EFFECT_GIT)
		r = check_repo(path, err);
	return r < 0 ? r : take_pattern(kind, path, ret, err);
}

int netrule_parse_target(
	enum effect_kind kind, struct slice text, struct netrule *ret, struct err *err)
{
	struct netrule nr = {0};
	int r = text.n < NETRULE_MAX_TEXT ? parse_target(kind, text, &nr, err)
					  : err_set(err, -EINVAL, "longer than 1199 bytes");

	if (r < 0)
		netrule_done(&nr);
	else
		*ret = nr;
	return r;
}

void netrule_done(struct netrule *nr)
{
	free(nr->name);
	free(nr->path);
	*nr = (struct netrule){0};
}

static void print_addr(const struct netrule *nr, char *buf)
{
	const struct addr *a = &nr->net.addr;
	bool whole = nr->net.prefix == a->n * 8, bracket = a->n == 16;
	char text[ADDR_MAX_TEXT], prefix[8] = "";

	addr_print(a, text);
	if (!whole)
		(void)snprintf(prefix, sizeof(prefix), "/%u", nr->net.prefix);
	(void)snprintf(buf, NETRULE_MAX_TEXT, "%s%s%s%s", bracket ? "[" : "", text, prefix,
		bracket ? "]" : "");
}

void netrule_print(const struct netrule *nr, char *buf)
{
	size_t n;

	if (nr->form == NETRULE_ADDR)
		print_addr(nr, buf);
	else if (nr->form == NETRULE_EVERY)
		(void)snprintf(buf, NETRULE_MAX_TEXT, "**");
	else if (nr->form == NETRULE_NO_HOST)
		buf[0] = '\0';
	else
		(void)snprintf(buf, NETRULE_MAX_TEXT, "%s%s", nr->deep ? "**." : "", nr->name);
	n = strlen(buf);
	if (nr->ports.lo)
		(void)snprintf(buf + n, NETRULE_MAX_TEXT - n, ":%u", nr->ports.lo);
	n = strlen(buf);
	if (nr->ports.hi != nr->ports.lo)
		(void)snprintf(buf + n, NETRULE_MAX_TEXT - n, "-%u", nr->ports.hi);
	n = strlen(buf);
	if (nr->path)
		(void)snprintf(buf + n, NETRULE_MAX_TEXT - n, "%s%s",
			nr->path[0] == '/' || nr->form == NETRULE_NO_HOST ? "" : "/", nr->path);
}

size_t netrule_get_ports(const struct netrule *nr, bool every, struct netrule_ports *ret)
{
	if (nr->ports.lo) {
		ret[0] = nr->ports;
		return 1;
	}
	if (every) {
		ret[0] = (struct netrule_ports){1, UINT16_MAX};
		return 1;
	}
	ret[0] = (struct netrule_ports){80, 80};
	ret[1] = (struct netrule_ports){443, 443};
	return 2;
}

/* Cuts the last label off *s. */
static struct slice pop_label(struct slice *s)
{
	size_t at = s->n;
	struct slice label;

	while (at > 0 && s->p[at - 1] != '.')
		at--;
	label = slice_of(s->p + at, s->n - at);
	s->n = at ? at - 1 : 0;
	return label;
}

static bool names_may_meet(const struct netrule *a, const struct netrule *b)
{
	struct slice x = slice_of(a->name, a->n_name), y = slice_of(b->name, b->n_name);

	while (x.n && y.n)
		if (!glob_may_meet(pop_label(&x), pop_label(&y)))
			return false;
	/* The remaining labels of one must match the other's `**.`, which needs at least one. */
	if (x.n)
		return b->deep;
	if (y.n)
		return a->deep;
	return a->deep == b->deep;
}

/* What is written out at the beginning of both must agree. */
static bool paths_may_meet(const char *a, const char *b)
{
	while (*a && *a == *b && *a != '*') {
		a++;
		b++;
	}
	return *a == *b || *a == '*' || *b == '*';
}

bool netrule_may_meet(const struct netrule *a, const struct netrule *b)
{
	if (a->path && b->path && !paths_may_meet(a->path, b->path))
		return false;
	if (a->form == NETRULE_EVERY || b->form == NETRULE_EVERY)
		return true;
	if (a->form != b->form)
		return false;
	if (a->form == NETRULE_NO_HOST)
		return true;
	if (a->form == NETRULE_ADDR)
		return addr_net_covers(&a->net, &b->net) || addr_net_covers(&b->net, &a->net);
	return names_may_meet(a, b);
}

bool netrule_is_here(const struct netrule *nr)
{
	struct host h;

	return nr->form == NETRULE_NAME && !nr->deep && nr->n_glob == 0 &&
	       host_from_wire(slice_of(nr->name, nr->n_name), &h, NULL) == 0 && host_is_here(&h);
}
