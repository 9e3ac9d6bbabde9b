/* SPDX-License-Identifier: Apache-2.0 */
#include "port_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/client/api/api.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/policy/addr.h"
#include "lib/client/cli/ui.h"

#define LOOPBACK4 "127.0.0.1"
#define LOOPBACK6 "::1"
#define FORM "[[HOST_IP:]HOST_PORT:]SANDBOX_PORT[/PROTOCOL]"

static int take_protocol(char *text, struct port_spec *ret, struct err *err)
{
	char *slash = strchr(text, '/');

	if (!slash)
		return 0;
	*slash++ = '\0';
	if (strcmp(slash, "udp") == 0 || strcmp(slash, "udp4") == 0 || strcmp(slash, "udp6") == 0)
		return err_set(err, -EINVAL, "cannot publish %s: only TCP is supported", slash);
	if ((strcmp(slash, "tcp") != 0 && strcmp(slash, "tcp4") != 0 &&
		    strcmp(slash, "tcp6") != 0) ||
		str_copy(ret->protocol, sizeof(ret->protocol), slash) < 0)
		return err_set(
			err, -EINVAL, "unknown protocol '%s': expected tcp, tcp4 or tcp6", slash);
	return 0;
}

static void add_ip(struct port_spec *s, const char *ip)
{
	(void)!str_copy(s->ip[s->n_ips++], PORT_SPEC_MAX_IP, ip);
}

static void add_loopback(struct port_spec *s, bool both)
{
	if (strcmp(s->protocol, "tcp6") != 0)
		add_ip(s, LOOPBACK4);
	if (strcmp(s->protocol, "tcp6") == 0 || (both && strcmp(s->protocol, "tcp4") != 0))
		add_ip(s, LOOPBACK6);
}

static int take_ip(const char *text, struct port_spec *s, struct err *err)
{
	struct addr addr;

	s->has_ip = true;
	if (strcmp(text, "localhost") == 0) {
		add_loopback(s, true);
		return 0;
	}
	if (addr_parse(slice_from_str(text), &addr) < 0)
		return err_set(err, -EINVAL, "invalid host address '%s'", text);
	addr_print(&addr, s->ip[s->n_ips++]);
	if (strcmp(s->protocol, addr.n == 4 ? "tcp6" : "tcp4") == 0)
		return err_set(err, -EINVAL, "invalid host address '%s' for %s", text, s->protocol);
	return 0;
}

static int take_port(const char *text, unsigned *ret, struct err *err)
{
	uint64_t v = 0;

	if (str_to_u64(text, 1, UINT16_MAX, &v) < 0)
		return err_set(err, -EINVAL, "invalid port '%s': expected 1 to 65535", text);
	*ret = (unsigned)v;
	return 0;
}

/* Cuts the address off the front: after its brackets, or before the first of two colons. */
static int cut_ip(char **text, const char **ret_ip, struct err *err)
{
	char *colon, *end;

	*ret_ip = NULL;
	if ((*text)[0] == '[') {
		end = strchr(*text, ']');
		if (!end || end[1] != ':')
			return err_set(err, -EINVAL, "expected ']:' after the host address");
		*end = '\0';
		*ret_ip = *text + 1;
		*text = end + 2;
		return 0;
	}
	colon = strchr(*text, ':');
	if (!colon || !strchr(colon + 1, ':'))
		return 0;
	*colon = '\0';
	*ret_ip = *text;
	*text = colon + 1;
	return 0;
}

static int parse_spec(char *text, struct port_spec *s, struct err *err)
{
	const char *ip = NULL;
	char *colon;
	int r = take_protocol(text, s, err);

	if (r == 0)
		r = cut_ip(&text, &ip, err);
	if (r < 0)
		return r;
	colon = strchr(text, ':');
	if (ip && !colon)
		return err_set(err, -EINVAL, "missing sandbox port");
	if (colon) {
		*colon = '\0';
		/* IP::PORT */
		r = text[0] || !ip ? take_port(text, &s->host_port, err) : 0;
		text = colon + 1;
	}
	if (r == 0)
		r = take_port(text, &s->port, err);
	if (r == 0 && ip)
		return take_ip(ip, s, err);
	if (r == 0)
		add_loopback(s, strcmp(s->protocol, "tcp") == 0);
	return r;
}

int port_spec_parse(const char *text, struct port_spec *ret, struct err *err)
{
	AUTO_FREE char *copy = xstrdup(text);
	int r;

	*ret = (struct port_spec){0};
	r = parse_spec(copy, ret, err);
	return r < 0 ? err_wrap(err, r, "invalid port '%s': expected " FORM, text) : 0;
}

static void warn_reach(const char *ip, unsigned port)
{
	char where[16] = "";

	if (str_starts(ip, "127.") || strcmp(ip, LOOPBACK6) == 0)
		return;
	if (port)
		(void)snprintf(where, sizeof(where), ":%u", port);
	if (strcmp(ip, "0.0.0.0") == 0 || strcmp(ip, "::") == 0)
		ui_warning(
			"any machine that can reach an address of this host can connect to this port%s%s",
			where[0] ? " " : "", where[0] ? where + 1 : "");
	else
		ui_warning("any machine that can reach %s can connect to this port%s%s", ip,
			where[0] ? " " : "", where[0] ? where + 1 : "");
}

int port_spec_list(const struct opt_list *specs, json_t *list, struct err *err)
{
	for (size_t i = 0; i < specs->n; i++) {
		struct port_spec s;
		int r = port_spec_parse(specs->v[i], &s, err);

		if (r < 0)
			return r;
		for (size_t k = 0; k < s.n_ips; k++) {
			warn_reach(s.ip[k], s.host_port);
			(void)json_array_append_new(
				list, json_pack("{s:s,s:i,s:i}", "host_ip", s.ip[k], "host_port",
					      (int)s.host_port, "sandbox_port", (int)s.port));
		}
	}
	return 0;
}

char *port_spec_address(const json_t *port)
{
	const char *ip = api_str(port, "host_ip");
	bool is_v6 = strchr(ip, ':') != NULL;
	long long n = api_int(port, "host_port");
	AUTO_FREE char *number = n ? xasprintf("%lld", n) : xstrdup("any");

	return xasprintf("%s%s%s:%s", is_v6 ? "[" : "", ip, is_v6 ? "]" : "", number);
}

char *port_spec_summary(const json_t *list)
{
	const json_t *first = json_array_get(list, 0);
	AUTO_FREE char *address = first ? port_spec_address(first) : NULL;
	size_t n = json_array_size(list);
	AUTO_FREE char *more = n > 1 ? xasprintf(" (+%zu)", n - 1) : xstrdup("");

	if (!first)
		return xstrdup("-");
	return xasprintf("%s->%lld/%s%s", address, api_int(first, "sandbox_port"),
		api_str(first, "protocol"), more);
}
