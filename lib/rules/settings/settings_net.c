/* SPDX-License-Identifier: Apache-2.0 */
#include "settings_net.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/policy/host.h"

#define MAX_CA_BYTES (4u << 20)
#define COPIED_FROM "# copied by sbx settings from "

static struct slice trim_net(struct slice s)
{
	while (s.n && s.p[0] == ' ')
		s = slice_of(s.p + 1, s.n - 1);
	while (s.n && s.p[s.n - 1] == ' ')
		s.n--;
	return s;
}

/* Cuts at the first `mark`; *ret_rest is empty with a NULL pointer when there is none. */
static struct slice cut_net(struct slice s, char mark, struct slice *ret_rest)
{
	const uint8_t *at = s.n ? memchr(s.p, mark, s.n) : NULL;
	size_t n = at ? (size_t)(at - s.p) : s.n;

	*ret_rest = at ? slice_of(at + 1, s.n - n - 1) : slice_of(NULL, 0);
	return slice_of(s.p, n);
}

/* "host:port", both there. */
static int parse_target(struct slice text, struct host *ret, uint16_t *ret_port, struct err *err)
{
	struct slice name;
	int r = host_split(text, &name, ret_port, err);

	if (r == 0 && *ret_port == 0)
		return err_set(err, -EINVAL, "missing port");
	return r < 0 ? r : host_from_wire(name, ret, err);
}

/* An address may be in brackets, and an IPv6 address before a port must be. */
static struct slice without_brackets(struct slice s)
{
	bool has = s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']' && memchr(s.p, ':', s.n);

	return has ? slice_of(s.p + 1, s.n - 2) : s;
}

static int parse_pin(struct slice entry, struct egress_pin *ret, struct err *err)
{
	struct slice right, left = trim_net(cut_net(entry, '=', &right)), name;
	struct host host;
	struct addr addr;
	int r;

	if (!right.p)
		return err_set(err, -EINVAL, "expected HOST:PORT=ADDR:PORT");
	r = parse_target(left, &host, &ret->port, err);
	if (r < 0)
		return r;
	memcpy(ret->host, host.name, sizeof(ret->host));
	r = host_split(trim_net(right), &name, &ret->addr_port, err);
	if (r < 0)
		return r;
	if (ret->addr_port == 0)
		return err_set(err, -EINVAL, "the address has no port");
	if (addr_parse(without_brackets(name), &addr) < 0)
		return err_set(err, -EINVAL, "invalid IP address after '='");
	addr_print(&addr, ret->addr);
	return 0;
}

static bool is_twice(const struct egress_config *c)
{
	const struct egress_pin *last = &c->pins[c->n_pins];

	for (size_t i = 0; i < c->n_pins; i++)
		if (c->pins[i].port == last->port && strcmp(c->pins[i].host, last->host) == 0)
			return true;
	return false;
}

static int parse_pins(const char *value, struct egress_config *ret, struct err *err)
{
	struct slice rest = slice_from_str(value);
	int r;

	ret->n_pins = 0;
	if (!value[0])
		return 0;
	while (rest.p) {
		struct slice entry = trim_net(cut_net(rest, ',', &rest));

		if (ret->n_pins == EGRESS_MAX_PINS)
			return err_set(err, -E2BIG, "network.connect-to has more than %d entries",
				EGRESS_MAX_PINS);
		r = parse_pin(entry, &ret->pins[ret->n_pins], err);
		if (r == 0 && is_twice(ret))
			r = err_set(err, -EINVAL, "duplicate host and port");
		if (r < 0)
			return err_wrap(err, r, "network.connect-to, entry '%.*s'",
				(int)MIN(entry.n, 100u), (const char *)entry.p);
		ret->n_pins++;
	}
	return 0;
}

static int refuse_scheme(const char *value, struct err *err)
{
	if (str_starts(value, "https://"))
		return err_set(err, -EINVAL,
			"network.proxy must be http:// or socks5://HOST:PORT: TLS to the proxy is "
			"not supported");
	if (str_starts(value, "socks"))
		return err_set(err, -EINVAL,
			"network.proxy must be http:// or socks5://HOST:PORT, not '%.60s': the "
			"proxy resolves the names",
			value);
	if (str_ends(value, ".pac"))
		return err_set(err, -EINVAL,
			"network.proxy must be http:// or socks5://HOST:PORT: PAC files are not "
			"supported");
	return err_set(err, -EINVAL,
		"network.proxy must be http:// or socks5://HOST:PORT, not '%.60s'", value);
}

/* USER@ before HOST. A user can have a `@`, a host cannot. */
static int take_user(struct slice *s, struct egress_config *ret, struct err *err)
{
	const uint8_t *at = s->n ? memrchr(s->p, '@', s->n) : NULL;
	size_t n = at ? (size_t)(at - s->p) : 0;

	if (!at)
		return 0;
	if (memchr(s->p, ':', n))
		return err_set(err, -EINVAL,
			"network.proxy cannot have a password: set http://USER@HOST:PORT, then run "
			"sbx secret set --proxy");
	if (n == 0 || n >= sizeof(ret->proxy_user))
		return err_set(err, -EINVAL, "the user of network.proxy must have 1 to %zu bytes",
			sizeof(ret->proxy_user) - 1);
	for (size_t i = 0; i < n; i++) {
		if (s->p[i] <= ' ' || s->p[i] > '~' || s->p[i] == '%' || s->p[i] == '/')
			return err_set(err, -EINVAL,
				"the user of network.proxy must be printable ASCII without blanks, "
				"%% and /");
	}
	memcpy(ret->proxy_user, s->p, n);
	ret->proxy_user[n] = '\0';
	*s = slice_of(at + 1, s->n - n - 1);
	return 0;
}

static int parse_proxy(const char *value, struct egress_config *ret, struct err *err)
{
	static const char *const schemes[EGRESS_N_PROXIES] = {
		[EGRESS_PROXY_HTTP] = "http://", [EGRESS_PROXY_SOCKS] = "socks5://"};
	struct slice s = slice_from_str(value);
	unsigned kind = EGRESS_PROXY_HTTP;
	struct host host;
	int r;

	ret->proxy = EGRESS_PROXY_HTTP;
	ret->proxy_host[0] = ret->proxy_user[0] = '\0';
	ret->proxy_port = 0;
	if (!value[0])
		return 0;
	while (kind < EGRESS_N_PROXIES && !str_starts(value, schemes[kind]))
		kind++;
	if (kind == EGRESS_N_PROXIES || str_ends(value, ".pac"))
		return refuse_scheme(value, err);
	ret->proxy = (enum egress_proxy)kind;
	s = slice_of(s.p + strlen(schemes[kind]), s.n - strlen(schemes[kind]));
	if (s.n && s.p[s.n - 1] == '/')
		s.n--;
	r = take_user(&s, ret, err);
	if (r < 0)
		return r;
	r = parse_target(s, &host, &ret->proxy_port, err);
	if (r < 0)
		return err_wrap(err, r, "network.proxy '%.60s'", value);
	memcpy(ret->proxy_host, host.name, sizeof(ret->proxy_host));
	return 0;
}

/* NETWORK is ADDRESS/PREFIX. */
static int parse_network(
	struct slice addr, struct slice prefix, struct egress_direct *ret, struct err *err)
{
	struct addr_net net;
	struct addr a;
	unsigned bits = 0;

	if (addr_parse(without_brackets(addr), &a) < 0)
		return err_set(err, -EINVAL, "invalid IP address");
	for (size_t i = 0; i < prefix.n; i++) {
		if (prefix.p[i] < '0' || prefix.p[i] > '9' || i == 3)
			return err_set(err, -EINVAL, "invalid prefix length");
		bits = bits * 10 + (prefix.p[i] - '0');
	}
	if (!prefix.p)
		bits = a.n * 8u;
	else if (!prefix.n || bits > a.n * 8u)
		return err_set(err, -EINVAL, "invalid prefix length");
	net = addr_net_of(&a, (uint8_t)bits);
	ret->n = a.n;
	memcpy(ret->addr, net.addr.b, a.n);
	ret->prefix = (uint8_t)bits;
	return 0;
}

static int parse_direct(struct slice entry, struct egress_direct *ret, struct err *err)
{
	struct slice name = entry, prefix;
	struct host host;
	int r;

	*ret = (struct egress_direct){0};
	name = cut_net(entry, '/', &prefix);
	if (prefix.p)
		return parse_network(name, prefix, ret, err);
	r = host_split(entry, &name, &ret->port, err);
	if (r < 0)
		return r;
	if (name.n && name.p[0] == '.') {
		ret->is_below = true;
		name = slice_of(name.p + 1, name.n - 1);
	}
	if (name.n && memchr(name.p, '*', name.n))
		return err_set(err, -EINVAL, "use .DOMAIN for the names below a domain");
	r = host_from_wire(name, &host, err);
	if (r < 0)
		return r;
	if (host.is_addr && ret->is_below)
		return err_set(err, -EINVAL, "an address has no names below it");
	if (host.is_addr)
		return parse_network(host_slice(&host), slice_of(NULL, 0), ret, err);
	memcpy(ret->host, host.name, host.n + 1u);
	return 0;
}

static int parse_no_proxy(const char *value, struct egress_config *ret, struct err *err)
{
	struct slice rest = slice_from_str(value);
	int r;

	ret->n_direct = 0;
	if (!value[0])
		return 0;
	while (rest.p) {
		struct slice entry = trim_net(cut_net(rest, ',', &rest));

		if (ret->n_direct == EGRESS_MAX_DIRECT)
			return err_set(err, -E2BIG, "network.no-proxy has more than %d entries",
				EGRESS_MAX_DIRECT);
		r = parse_direct(entry, &ret->direct[ret->n_direct], err);
		if (r < 0)
			return err_wrap(err, r, "network.no-proxy, entry '%.*s'",
				(int)MIN(entry.n, 100u), (const char *)entry.p);
		ret->n_direct++;
	}
	return 0;
}

int settings_net_check_no_proxy(const char *value, struct err *err)
{
	struct egress_config c;

	return parse_no_proxy(value, &c, err);
}

int settings_net_check_pins(const char *value, struct err *err)
{
	struct egress_config c;

	return parse_pins(value, &c, err);
}

int settings_net_check_proxy(const char *value, struct err *err)
{
	struct egress_config c;

	return parse_proxy(value, &c, err);
}

int settings_net_check_ca(const char *value, struct err *err)
{
	size_t n = strlen(value);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return err_set(
				err, -EINVAL, "network.extra-ca contains a control character");
	if (n && (value[0] != '/' || value[n - 1] == ' '))
		return err_set(err, -EINVAL,
			"network.extra-ca must be the absolute path of a file, not '%.60s'", value);
	return n < 4096 ? 0 : err_set(err, -EINVAL, "network.extra-ca is too long");
}

char *settings_net_ca_copy(void)
{
	return paths_get(PATHS_CONFIG, "extra-ca.pem");
}

int settings_net_open_ca(const char *path, struct err *err)
{
	int fd = file_open(path, err);

	if (fd == -ENOENT)
		return err_set(err, fd, "network.extra-ca: %s does not exist", path);
	return fd < 0 ? err_wrap(err, fd, "network.extra-ca") : fd;
}

int settings_net_copy_ca(const char *path, int fd, struct err *err)
{
	AUTO_FREE char *text = NULL, *copy = NULL, *to = settings_net_ca_copy();
	size_t n;
	int r;

	if (!path[0])
		return unlink(to) < 0 && errno != ENOENT
			       ? err_errno(err, -errno, "cannot remove %s", to)
			       : 0;
	r = file_read(fd, path, MAX_CA_BYTES, &text, &n, err);
	if (r < 0)
		return err_wrap(err, r, "network.extra-ca");
	if (!strstr(text, "-----BEGIN CERTIFICATE-----"))
		return err_set(err, -EINVAL,
			"network.extra-ca: %s has no certificate (PEM, BEGIN CERTIFICATE)", path);
	copy = xasprintf(COPIED_FROM "%s\n%s", path, text);
	return file_save(to, slice_from_str(copy), err);
}

int settings_net_load_ca(const char *path, char **ret, size_t *ret_n, struct err *err)
{
	AUTO_FREE char *from = settings_net_ca_copy(), *text = NULL;
	AUTO_FREE char *head = xasprintf(COPIED_FROM "%s\n", path);
	size_t n = 0;
	int r = file_load(from, MAX_CA_BYTES + PATHS_MAX + sizeof(COPIED_FROM), &text, &n, err);

	if (r < 0 && r != -ENOENT)
		return err_wrap(err, r, "network.extra-ca");
	if (r < 0 || !str_starts(text, head))
		return err_set(err, -ESTALE,
			"network.extra-ca: %s was not copied when it was set; run 'sbx settings "
			"set network.extra-ca %s'",
			path, path);
	*ret_n = n - strlen(head);
	*ret = xstrndup(text + strlen(head), *ret_n);
	return 0;
}

int settings_net_config(const struct settings *s, struct egress_config *ret, struct err *err)
{
	int r = parse_pins(settings_get(s, SETTINGS_NETWORK_CONNECT_TO), ret, err);

	if (r == 0)
		r = parse_proxy(settings_get(s, SETTINGS_NETWORK_PROXY), ret, err);
	return r < 0 ? r : parse_no_proxy(settings_get(s, SETTINGS_NETWORK_NO_PROXY), ret, err);
}
