/* SPDX-License-Identifier: Apache-2.0 */
#include "spec.h"

#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/policy/addr.h"
#include "spec_internal.h"

#define DEFAULT_IP "127.0.0.1"
#define DEFAULT_IP6 "::1"

const char *spec_port_protocol(const struct spec_port *port)
{
	return strchr(port->host_ip, ':') ? "tcp6" : "tcp4";
}

static bool is_every(const char *ip)
{
	return strcmp(ip, "0.0.0.0") == 0 || strcmp(ip, "::") == 0;
}

static bool same_family(const struct spec_port *a, const struct spec_port *b)
{
	return !strchr(a->host_ip, ':') == !strchr(b->host_ip, ':');
}

bool spec_port_meets(const struct spec_port *a, const struct spec_port *b)
{
	return a->host_port && a->host_port == b->host_port && same_family(a, b) &&
	       (strcmp(a->host_ip, b->host_ip) == 0 || is_every(a->host_ip) ||
		       is_every(b->host_ip));
}

bool spec_port_eq(const struct spec_port *a, const struct spec_port *b)
{
	return a->host_port == b->host_port && a->port == b->port &&
	       strcmp(a->host_ip, b->host_ip) == 0;
}

/* ---- sockets ---- */

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int address_of(const struct spec_port *p, union address *ret, socklen_t *ret_n)
{
	struct addr a;
	int r = addr_parse(slice_from_str(p->host_ip), &a);

	*ret = (union address){0};
	if (r < 0)
		return r;
	*ret_n = a.n == 4 ? sizeof(ret->v4) : sizeof(ret->v6);
	ret->sa.sa_family = a.n == 4 ? AF_INET : AF_INET6;
	if (a.n == 4)
		memcpy(&ret->v4.sin_addr, a.b, 4);
	else
		memcpy(&ret->v6.sin6_addr, a.b, 16);
	if (a.n == 4)
		ret->v4.sin_port = htons(p->host_port);
	else
		ret->v6.sin6_port = htons(p->host_port);
	return 0;
}

int spec_port_listen(const struct spec_port *p, int backlog)
{
	AUTO_CLOSE int fd = -1;
	const int one = 1;
	union address a;
	socklen_t n = 0;
	int r = address_of(p, &a, &n);

	if (r < 0)
		return r;
	fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* A sandbox that was just stopped has left connections that are still closing. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a.sa.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, &a.sa, n) < 0 || listen(fd, backlog) < 0)
		return -errno;
	return TAKE_FD(fd);
}

bool spec_port_is_at(const struct spec_port *p, int fd)
{
	int listens = 0, protocol = 0;
	socklen_t n_listens = sizeof(listens), n_protocol = sizeof(protocol), n, n_is;
	union address want, is = {0};

	n_is = sizeof(is);
	if (address_of(p, &want, &n) < 0 || getsockname(fd, &is.sa, &n_is) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n_listens) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n_protocol) < 0)
		return false;
	if (!p->host_port)
		want.v4.sin_port = is.v4.sin_port; /* at the same offset in both families */
	return listens && protocol == IPPROTO_TCP && n_is == n && memcmp(&is, &want, n) == 0;
}

static int get_ip(const char *text, struct spec_port *port, struct err *err)
{
	struct addr addr;
	enum addr_class class;

	if (addr_parse(slice_from_str(text), &addr) < 0)
		return err_set(err, -EINVAL, "invalid host_ip '%.60s'", text);
	class = addr_classify(&addr, NULL);
	if (class == ADDR_MULTICAST || class == ADDR_BROADCAST)
		return err_set(err, -EINVAL,
			"invalid host_ip '%.60s': expected the address of one host", text);
	addr_print(&addr, port->host_ip);
	return 0;
}

static int get_protocol(const char *text, struct err *err)
{
	if (str_starts(text, "udp"))
		return err_set(err, -EINVAL, "cannot publish %.8s: only TCP is supported", text);
	if (strcmp(text, "tcp") != 0 && strcmp(text, "tcp4") != 0 && strcmp(text, "tcp6") != 0)
		return err_set(err, -EINVAL, "the protocol of a port must be tcp, tcp4 or tcp6");
	return 0;
}

/* -EINVAL also for unknown members of a port. */
static int get_number(const char *key, const json_t *v, struct spec_port *port, struct err *err)
{
	bool is_host = strcmp(key, "host_port") == 0;
	json_int_t n = json_integer_value(v);

	if (!is_host && strcmp(key, "sandbox_port") != 0)
		return err_set(err, -EINVAL, "unknown field '%.60s' of a port", key);
	if (!json_is_integer(v) || n < (is_host ? 0 : 1) || n > UINT16_MAX)
		return err_set(err, -EINVAL, "%s must be a whole number from %d to 65535", key,
			is_host ? 0 : 1);
	*(is_host ? &port->host_port : &port->port) = (uint16_t)n;
	return 0;
}

static int get_port(json_t *v, struct spec_port *port, struct err *err)
{
	const char *protocol = json_string_value(json_object_get(v, "protocol"));
	const char *ip = json_string_value(json_object_get(v, "host_ip")), *key;
	json_t *member;
	int r;

	if (!json_is_object(v))
		return err_set(err, -EINVAL, "a port must be an object");
	json_object_foreach (v, key, member) {
		bool is_text = strcmp(key, "protocol") == 0 || strcmp(key, "host_ip") == 0;

		if (is_text && !json_is_string(member))
			return err_set(err, -EINVAL, "%s of a port must be a string", key);
		r = is_text ? 0 : get_number(key, member, port, err);
		if (r < 0)
			return r;
	}
	if (!port->port)
		return err_set(err, -EINVAL, "missing sandbox_port of a port");
	r = protocol ? get_protocol(protocol, err) : 0;
	if (r < 0)
		return r;
	if (!ip)
		ip = protocol && strcmp(protocol, "tcp6") == 0 ? DEFAULT_IP6 : DEFAULT_IP;
	r = get_ip(ip, port, err);
	if (r == 0 && protocol && strcmp(protocol, "tcp") != 0 &&
		strcmp(protocol, spec_port_protocol(port)) != 0)
		return err_set(err, -EINVAL, "invalid address %s for %s", port->host_ip, protocol);
	return r;
}

int spec_ports_decode(const json_t *list, struct spec_port **ret, size_t *ret_n, struct err *err)
{
	AUTO_FREE struct spec_port *ports = NULL;
	size_t n = json_array_size(list);
	int r = 0;

	if (!json_is_array(list))
		return err_set(err, -EINVAL, "ports must be a list");
	if (n > SPEC_MAX_PORTS)
		return err_set(err, -E2BIG, "ports has more than %d entries", SPEC_MAX_PORTS);
	ports = n ? xcalloc(n, sizeof(*ports)) : NULL;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = get_port(json_array_get(list, i), &ports[i], err);
	if (r < 0)
		return r;
	*ret = TAKE(ports);
	*ret_n = n;
	return 0;
}

json_t *spec_port_to_json(const struct spec_port *p)
{
	return json_pack("{s:s,s:i,s:i,s:s}", "host_ip", p->host_ip, "host_port", (int)p->host_port,
		"sandbox_port", (int)p->port, "protocol", spec_port_protocol(p));
}

json_t *spec_ports_to_json(const struct spec *spec)
{
	json_t *list = json_array();

	for (size_t i = 0; i < spec->n_ports; i++)
		json_array_append_new(list, spec_port_to_json(&spec->ports[i]));
	return list;
}

int spec_port_refuse(const struct spec_port *p, const char *what, int r, struct err *err)
{
	if (p->host_port)
		return err_set(err, r, "%sport %s:%u/tcp is already published", what, p->host_ip,
			p->host_port);
	return err_set(err, r, "%sany free port of %s to %u/tcp is already published", what,
		p->host_ip, p->port);
}

int spec_check_ports(const struct spec *spec, struct err *err)
{
	if (spec->n_ports > SPEC_MAX_PORTS)
		return err_set(err, -E2BIG, "ports has more than %d entries", SPEC_MAX_PORTS);
	for (size_t i = 0; i < spec->n_ports; i++)
		for (size_t k = 0; k < i; k++) {
			const struct spec_port *a = &spec->ports[i], *b = &spec->ports[k];

			if (spec_port_meets(a, b) || spec_port_eq(a, b))
				return spec_port_refuse(a, "", -EINVAL, err);
		}
	return 0;
}

bool spec_same_ports(const struct spec *a, const struct spec *b)
{
	if (a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < a->n_ports; i++)
		if (!spec_port_eq(&a->ports[i], &b->ports[i]))
			return false;
	return true;
}
