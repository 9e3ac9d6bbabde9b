/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves names to addresses with c-ares only: no hosts file, no search list, no cache. Queries
 * use ares_send with our own query ids, because c-ares 1.18 seeds its ids from /dev/urandom, which
 * does not exist in the jail, and uses rand() without it.
 */
#define CARES_NO_DEPRECATED
#include "resolve.h"

#include <ares.h>
#include <assert.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define TRY_MS 2000
#define TRIES 2
#define UDP_SIZE 1232
#define MAX_SERVERS 3 /* as libc */

static ares_channel channel;
static bool has_servers;

/* ---- sockets: all that c-ares does with them, in calls that the seal allows ---- */

static ares_socket_t make_socket(int family, int type, int protocol, void *ctx)
{
	return socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int close_socket(ares_socket_t fd, void *ctx)
{
	return close(fd);
}

static int connect_socket(ares_socket_t fd, const struct sockaddr *to, ares_socklen_t n, void *ctx)
{
	return connect(fd, to, n);
}

static ares_ssize_t receive_resolve(ares_socket_t fd, void *buf, size_t n, int flags,
	struct sockaddr *from, ares_socklen_t *n_from, void *ctx)
{
	return recvfrom(fd, buf, n, flags, from, n_from);
}

static ares_ssize_t send_all(ares_socket_t fd, const struct iovec *iov, int n, void *ctx)
{
	struct msghdr mh = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n};

	return sendmsg(fd, &mh, MSG_NOSIGNAL);
}

static const struct ares_socket_functions socket_functions = {
	.asocket = make_socket,
	.aclose = close_socket,
	.aconnect = connect_socket,
	.arecvfrom = receive_resolve,
	.asendv = send_all,
};

static void on_socket_state(void *ctx, ares_socket_t fd, int readable, int writable)
{
	struct egress *e = ctx;
	struct loop_key key = {.kind = EGRESS_EV_RESOLVER, .idx = (uint32_t)fd};
	uint32_t events = (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U);

	if (!events)
		loop_del(&e->loop, fd);
	else if (loop_mod(&e->loop, fd, events, key) < 0)
		(void)!loop_add(&e->loop, fd, events, key);
}

int resolve_init(struct egress *e, struct err *err)
{
	/* c-ares would read files for each option that is not set. */
	struct ares_options o = {.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
		.timeout = TRY_MS,
		.tries = TRIES,
		.ednspsz = UDP_SIZE,
		.lookups = (char *)"b",
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = e};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
		   ARES_OPT_EDNSPSZ | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_SERVERS |
		   ARES_OPT_DOMAINS | ARES_OPT_SORTLIST;
	int r;

#ifdef ARES_OPT_UDP_MAX_QUERIES
	/* A new source port for each query: an off-path attacker must guess it each time. */
	mask |= ARES_OPT_UDP_MAX_QUERIES;
	o.udp_max_queries = 1;
#endif
#ifdef ARES_OPT_QUERY_CACHE
	mask |= ARES_OPT_QUERY_CACHE; /* of 0 seconds */
#endif
	r = ares_library_init(ARES_LIB_INIT_ALL);
	if (r == ARES_SUCCESS)
		r = ares_init_options(&channel, &o, mask);
	if (r != ARES_SUCCESS)
		return err_set(err, -EIO, "c-ares: %s", ares_strerror(r));
	ares_set_socket_functions(channel, &socket_functions, NULL);
	return 0;
}

static void set_timer(struct egress *e)
{
	struct timeval tv;

	loop_timer_clear(&e->loop, &e->resolver_timer);
	if (ares_timeout(channel, NULL, &tv))
		loop_timer_set(&e->loop, &e->resolver_timer,
			clock_mono_ms() + (uint64_t)tv.tv_sec * 1000 + (uint64_t)tv.tv_usec / 1000 +
				1,
			(struct loop_key){.kind = EGRESS_EV_RESOLVER_TIMER});
}

void resolve_on_event(struct egress *e, const struct loop_event *ev)
{
	ares_socket_t fd = (ares_socket_t)ev->key.idx;

	ares_process_fd(channel, ev->events & ~(uint32_t)EPOLLOUT ? fd : ARES_SOCKET_BAD,
		ev->events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
	set_timer(e);
}

void resolve_on_timer(struct egress *e)
{
	ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timer(e);
}

/* Parses one line of resolv.conf; an address with a zone cannot be used here and is skipped. */
static bool take_server(struct slice line, struct ares_addr_port_node *ret)
{
	static const char word[] = "nameserver";
	const size_t n = sizeof(word) - 1;
	struct addr addr;
	size_t end;

	if (line.n <= n || memcmp(line.p, word, n) != 0 || (line.p[n] != ' ' && line.p[n] != '\t'))
		return false;
	line = canon_text_trim(canon_text_cut(line, n, line.n));
	for (end = 0; end < line.n && line.p[end] > ' ' && line.p[end] != '#'; end++)
		;
	line.n = end;
	if (addr_parse(line, &addr) < 0)
		return false;
	ret->family = addr.n == 4 ? AF_INET : AF_INET6;
	memcpy(&ret->addr, addr.b, addr.n);
	return true;
}

void resolve_set_servers(struct egress *e, const char *text)
{
	struct ares_addr_port_node nodes[MAX_SERVERS] = {0};
	size_t n = 0;
	int r;

	while (*text && n < MAX_SERVERS) {
		size_t len = strcspn(text, "\r\n");

		if (take_server(slice_of(text, len), &nodes[n]))
			n++;
		text += len + (text[len] != '\0');
	}
	for (size_t i = 1; i < n; i++)
		nodes[i - 1].next = &nodes[i];
	/* Pending queries fail: their servers must not change. */
	ares_cancel(channel);
	r = n ? ares_set_servers_ports(channel, nodes) : ARES_SUCCESS;
	has_servers = n && r == ARES_SUCCESS;
	if (!has_servers)
		log_warn("no DNS server: %s", n ? ares_strerror(r) : "none configured");
	set_timer(e);
}

/* Identifies the exchange, without a pointer that could outlive its slot. */
union asker {
	void *p;
	struct {
		uint32_t gen;
		uint16_t idx;
		uint16_t family;
	} who;
};

static struct egress *owner;

static enum dial_answer read_answer(
	unsigned family, const unsigned char *buf, int n, struct hostent **ret)
{
	unsigned rcode;
	int r;

	if (n < HFIXEDSZ)
		return DIAL_BROKEN;
	rcode = buf[3] & 0xf;
	if (rcode == ns_r_nxdomain)
		return DIAL_NONE;
	if (rcode != ns_r_noerror)
		return DIAL_BROKEN;
	r = family ? ares_parse_aaaa_reply(buf, n, ret, NULL, NULL)
		   : ares_parse_a_reply(buf, n, ret, NULL, NULL);
	if (r == ARES_ENODATA)
		return DIAL_NONE;
	return r == ARES_SUCCESS && *ret ? DIAL_FOUND : DIAL_BROKEN;
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *buf, int n)
{
	union asker asker = {.p = arg};
	struct exchange *x =
		exchange_find(owner, (struct loop_key){.gen = asker.who.gen, .idx = asker.who.idx});
	struct hostent *host = NULL;
	enum dial_answer answer = DIAL_BROKEN;

	if (!x || x->state != EXCHANGE_RESOLVING)
		return;
	if (status == ARES_SUCCESS)
		answer = read_answer(asker.who.family, buf, n, &host);
	else if (status == ARES_ENOTFOUND || status == ARES_ENODATA)
		answer = DIAL_NONE;
	dial_on_answer(owner, x, asker.who.family, answer, host);
	if (host)
		ares_free_hostent(host);
}

static bool ask_one(const char *name, union asker asker)
{
	unsigned char *query = NULL;
	uint16_t id;
	int n;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return false;
	if (ares_create_query(name, C_IN, asker.who.family ? T_AAAA : T_A, id, 1, &query, &n,
		    UDP_SIZE) != ARES_SUCCESS)
		return false;
	ares_send(channel, query, n, on_answer, asker.p);
	ares_free_string(query);
	return true;
}

void resolve_ask(struct egress *e, const struct exchange *x, const char *name)
{
	static_assert(sizeof(union asker) == sizeof(void *), "fits into the argument");
	uint32_t gen = x->gen;
	uint16_t idx = (uint16_t)(x - e->exchanges);

	owner = e;
	for (uint16_t family = 0; family < 2; family++) {
		union asker asker = {.who = {.gen = gen, .idx = idx, .family = family}};

		/* AAAA is not queried if the answer to A has ended the exchange */
		if (x->state != EXCHANGE_RESOLVING || x->gen != gen)
			break;
		if (!has_servers || !ask_one(name, asker))
			on_answer(asker.p, ARES_ECONNREFUSED, 0, NULL, 0);
	}
	set_timer(e);
}
