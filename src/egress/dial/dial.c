/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

static_assert(EGRESS_SLOTS * EGRESS_DIALS <= LOOP_MAX_IDX, "an index for each try");

static void close_try(struct egress *e, struct dial *d, unsigned i)
{
	if (d->fd[i] >= 0)
		loop_del(&e->loop, d->fd[i]);
	fd_close(&d->fd[i]);
}

void dial_free(struct egress *e, struct exchange *x)
{
	struct dial *d = TAKE(x->dial);

	for (unsigned i = 0; d && i < EGRESS_DIALS; i++)
		close_try(e, d, i);
	free(d);
}

/* Whether the current policy denies this address. */
static bool is_refused(const struct egress *e, const struct exchange *x, const struct addr *addr,
	struct policy_decision *ret)
{
	struct policy_op op = exchange_op(e, x);

	if (x->is_free)
		return false;
	policy_decide_address(e->policy, &op, addr, ret);
	return !ret->allowed;
}

static void refuse_address(struct egress *e, struct exchange *x, const struct addr *addr,
	const struct policy_decision *decision)
{
	char text[ADDR_MAX_TEXT];
	struct addr copy = *addr;

	addr_print(addr, text);
	if (decision->why == POLICY_SPECIAL)
		e->ops->fail(e, x, EGRESS_DENIED_ADDRESS, &copy,
			"%s resolves to %s, a %s address that no rule allows", x->host.name, text,
			addr_class_name(decision->addr_class));
	else
		e->ops->fail(e, x, EGRESS_DENIED_ADDRESS, &copy,
			"%s resolves to %s, which a rule denies", x->host.name, text);
}

/* ---- connecting ---- */

static socklen_t to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){0};
	if (a->n == 4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, a->b, 4);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, a->b, 16);
	return sizeof(*v6);
}

static bool from_sockaddr(const struct sockaddr_storage *s, struct addr *ret, uint16_t *ret_port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)s;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)s;

	if (s->ss_family == AF_INET) {
		*ret = addr_from_v4((const uint8_t *)&v4->sin_addr);
		*ret_port = ntohs(v4->sin_port);
	} else if (s->ss_family == AF_INET6) {
		*ret = addr_from_v6(v6->sin6_addr.s6_addr);
		*ret_port = ntohs(v6->sin6_port);
	}
	return s->ss_family == AF_INET || s->ss_family == AF_INET6;
}

static void set_options(int fd)
{
	const int on = 1, idle = 60, interval = 15, count = 4;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static enum egress_outcome outcome_of(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return EGRESS_REFUSED;
	case ETIMEDOUT:
		return EGRESS_TIMEOUT;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case EADDRNOTAVAIL: /* no local port is left */
		return EGRESS_BUSY;
	default:
		return EGRESS_UNREACHABLE;
	}
}

/* A server that refuses is more informative than one that does not exist. */
static void note_failure(struct dial *d, unsigned i, int err)
{
	enum egress_outcome outcome = outcome_of(err);

	if (d->failure == EGRESS_N_OUTCOMES || outcome == EGRESS_REFUSED) {
		d->failure = outcome;
		d->failed = d->addr[i];
	}
}

/* Whether the attempt is under way or succeeded. */
static bool start_try(struct egress *e, struct exchange *x, unsigned i)
{
	struct dial *d = x->dial;
	struct sockaddr_storage to;
	socklen_t n = to_sockaddr(&d->addr[i], d->port, &to);
	struct loop_key key = exchange_key(e, x, EGRESS_EV_DIAL);
	int r = 0;

	key.idx = key.idx * EGRESS_DIALS + i;
	d->fd[i] = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd[i] < 0) {
		note_failure(d, i, errno);
		return false;
	}
	set_options(d->fd[i]);
	if (connect(d->fd[i], (const struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS)
		r = -errno;
	if (r == 0)
		r = loop_add(&e->loop, d->fd[i], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, key);
	if (r < 0) {
		fd_close(&d->fd[i]);
		note_failure(d, i, -r);
		return false;
	}
	d->until[i] = clock_mono_ms() + EGRESS_DIAL_MS;
	return true;
}

static void set_timer(struct egress *e, struct exchange *x)
{
	const struct dial *d = x->dial;
	uint64_t at = d->all_until;

	if (d->next < d->n)
		at = MIN(at, d->next_at);
	for (unsigned i = 0; i < EGRESS_DIALS; i++) {
		if (d->fd[i] >= 0)
			at = MIN(at, d->until[i]);
	}
	loop_timer_set(&e->loop, &x->timer, at, exchange_key(e, x, EGRESS_EV_TIMER));
}

static void give_up(struct egress *e, struct exchange *x)
{
	enum egress_outcome outcome = x->dial->failure;
	struct addr addr = x->dial->failed;
	char text[ADDR_MAX_TEXT];

	if (outcome == EGRESS_N_OUTCOMES)
		outcome = EGRESS_TIMEOUT;
	if (addr.n == 0 && x->dial->n)
		addr = x->dial->addr[0];
	addr_print(&addr, text);
	if (x->is_proxied)
		e->ops->fail(e, x, EGRESS_PROXY_DOWN, &addr, "upstream proxy %s, port %u (%s): %s",
			e->proxy.name, x->dial->port, text, egress_outcome_text(outcome));
	else
		e->ops->fail(e, x, outcome, &addr, "%s, port %u (%s): %s", x->host.name,
			x->dial->port, text, egress_outcome_text(outcome));
}

/* Starts the next possible address; fails the exchange if none is left or pending. */
static void go_on(struct egress *e, struct exchange *x)
{
	struct dial *d = x->dial;
	bool is_trying = false;

	while (d->next < d->n && !start_try(e, x, d->next++))
		;
	d->next_at = clock_mono_ms() + EGRESS_DIAL_NEXT_MS;
	for (unsigned i = 0; i < EGRESS_DIALS; i++)
		is_trying = is_trying || d->fd[i] >= 0;
	if (is_trying)
		set_timer(e, x);
	else
		give_up(e, x);
}

/* The families alternate, IPv6 first. */
static void begin_tries(struct egress *e, struct exchange *x)
{
	struct dial *d = x->dial;

	for (unsigned i = 0; i < EGRESS_DIALS; i++) {
		for (unsigned f = 2; f-- > 0;) {
			if (i < d->n_found[f] && d->n < EGRESS_DIALS)
				d->addr[d->n++] = d->found[f][i];
		}
	}
	x->state = EXCHANGE_DIALING;
	d->all_until = clock_mono_ms() + EGRESS_DIAL_ALL_MS;
	go_on(e, x);
}

/* Whether both ends of the socket have the same address: it is this host, even if the list of its
 * addresses lacks it. */
static bool is_own(int fd, const struct addr *peer)
{
	struct sockaddr_storage own;
	socklen_t n = sizeof(own);
	struct addr addr;
	uint16_t port;

	return getsockname(fd, (struct sockaddr *)&own, &n) < 0 ||
	       !from_sockaddr(&own, &addr, &port) || addr_eq(&addr, peer);
}

/* Whether the socket's peer is the dialed address, and still allowed. Returns 0, -ENOTCONN if the
 * server has closed already, -EXDEV, or -EPERM and the decision. */
static int check_peer(struct egress *e, struct exchange *x, unsigned i, struct policy_decision *ret)
{
	const struct dial *d = x->dial;
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);
	struct addr addr;
	uint16_t port;

	if (getpeername(d->fd[i], (struct sockaddr *)&peer, &n) < 0)
		return -ENOTCONN;
	if (!from_sockaddr(&peer, &addr, &port) || !addr_eq(&addr, &d->addr[i]) || port != d->port)
		return -EXDEV;
	x->is_own = is_own(d->fd[i], &addr);
	return is_refused(e, x, &addr, ret) ? -EPERM : 0;
}

/* This address failed: tries the next one. */
static void fail_try(struct egress *e, struct exchange *x, unsigned i, int err)
{
	close_try(e, x->dial, i);
	note_failure(x->dial, i, err);
	go_on(e, x);
}

static void succeed_dial(struct egress *e, struct exchange *x, unsigned i)
{
	struct policy_decision decision;
	struct addr addr = x->dial->addr[i];
	int r = check_peer(e, x, i, &decision);

	if (r == -ENOTCONN) {
		fail_try(e, x, i, ECONNRESET);
		return;
	}
	if (r == -EXDEV) {
		e->ops->fail(e, x, EGRESS_UNREACHABLE, &addr,
			"%s: the peer address differs from the address that was dialed",
			x->host.name);
		return;
	}
	if (r < 0) {
		refuse_address(e, x, &addr, &decision);
		return;
	}
	x->addr = addr;
	x->upstream_fd = TAKE_FD(x->dial->fd[i]);
	dial_free(e, x);
	if (loop_mod(&e->loop, x->upstream_fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		    exchange_key(e, x, EGRESS_EV_UPSTREAM)) < 0)
		e->ops->fail(e, x, EGRESS_BUSY, &addr, "%s", egress_outcome_text(EGRESS_BUSY));
	else
		e->ops->connected(e, x);
}

void dial_on_event(struct egress *e, struct loop_event ev)
{
	unsigned i = ev.key.idx % EGRESS_DIALS;
	struct exchange *x;
	socklen_t n = sizeof(int);
	int err = 0;

	ev.key.idx /= EGRESS_DIALS;
	x = exchange_find(e, ev.key);
	if (!x || x->state != EXCHANGE_DIALING || x->dial->fd[i] < 0)
		return;
	if (getsockopt(x->dial->fd[i], SOL_SOCKET, SO_ERROR, &err, &n) < 0)
		err = errno;
	if (err == 0 && ev.events & EPOLLOUT) {
		succeed_dial(e, x, i);
		return;
	}
	if (err == 0 && !(ev.events & (EPOLLHUP | EPOLLERR)))
		return;
	fail_try(e, x, i, err ? err : ECONNRESET);
}

/* ---- resolving ---- */

/* Keeps the first few. One denied address denies the name: with a mixed answer, an attacker's name
 * would resolve to an internal address. */
static bool take_address(
	struct egress *e, struct exchange *x, unsigned family, const struct addr *addr)
{
	struct policy_decision decision;
	struct dial *d = x->dial;

	if (d->is_checked && is_refused(e, x, addr, &decision)) {
		refuse_address(e, x, addr, &decision);
		return false;
	}
	if (d->n_found[family] < EGRESS_DIALS)
		d->found[family][d->n_found[family]++] = *addr;
	return true;
}

static bool take_host(
	struct egress *e, struct exchange *x, unsigned family, const struct hostent *host)
{
	for (char *const *p = host->h_addr_list; *p; p++) {
		struct addr addr = family ? addr_from_v6((const uint8_t *)*p)
					  : addr_from_v4((const uint8_t *)*p);

		if (!take_address(e, x, family, &addr))
			return false;
	}
	return true;
}

static void resolved_dial(struct egress *e, struct exchange *x)
{
	const struct dial *d = x->dial;
	enum egress_outcome outcome =
		d->none[0] && d->none[1] ? EGRESS_NO_NAME : EGRESS_NO_RESOLVER;

	if (d->n_found[0] || d->n_found[1])
		begin_tries(e, x);
	else if (x->is_proxied)
		e->ops->fail(e, x, EGRESS_PROXY_DOWN, NULL, "upstream proxy %s: %s", e->proxy.name,
			egress_outcome_text(outcome));
	else
		e->ops->fail(
			e, x, outcome, NULL, "%s: %s", x->host.name, egress_outcome_text(outcome));
}

void dial_on_answer(struct egress *e, struct exchange *x, unsigned family, enum dial_answer answer,
	const struct hostent *host)
{
	struct dial *d = x->dial;

	d->waits[family] = false;
	d->none[family] = answer == DIAL_NONE;
	if (host && !take_host(e, x, family, host))
		return;
	if (!d->waits[!family])
		resolved_dial(e, x);
	else if (d->n_found[family])
		exchange_set_timer(e, x, EGRESS_FAMILY_MS);
}

void dial_on_timer(struct egress *e, struct exchange *x)
{
	struct dial *d = x->dial;
	uint64_t now = clock_mono_ms();

	if (x->state == EXCHANGE_RESOLVING) {
		resolved_dial(e, x);
		return;
	}
	if (now >= d->all_until) {
		give_up(e, x);
		return;
	}
	for (unsigned i = 0; i < EGRESS_DIALS; i++) {
		if (d->fd[i] >= 0 && now >= d->until[i]) {
			close_try(e, d, i);
			note_failure(d, i, ETIMEDOUT);
		}
	}
	go_on(e, x);
}

/* ---- where to ---- */

static const struct egress_pin *find_pin(const struct egress *e, const struct exchange *x)
{
	for (size_t i = 0; i < e->config.n_pins; i++) {
		if (e->config.pins[i].port == x->port &&
			slice_eq_str(host_slice(&x->host), e->config.pins[i].host))
			return &e->config.pins[i];
	}
	return NULL;
}

static bool is_direct(const struct egress *e, const struct exchange *x)
{
	const struct addr *a = &x->host.addr;

	return egress_is_direct(
		&e->config, x->host.name, slice_of(a->b, x->host.is_addr ? a->n : 0), x->port);
}

static const uint8_t loopback_v4[4] = {127, 0, 0, 1};

/* The proxy resolves; an address from the guest is checked anyway, and so is localhost: many
 * proxies run on this host. */
static bool is_named_refused(const struct egress *e, const struct exchange *x, struct addr *ret,
	struct policy_decision *decision)
{
	struct policy_op op = exchange_op(e, x);

	if (!x->host.is_addr && !host_is_localhost(&x->host))
		return false;
	op.is_own = false; /* that is the connection to the proxy */
	*ret = x->host.is_addr ? x->host.addr : addr_from_v4(loopback_v4);
	policy_decide_address(e->policy, &op, ret, decision);
	return !decision->allowed;
}

static bool is_pinned(const struct egress *e, const struct exchange *x, const struct addr *addr)
{
	const struct egress_pin *pin = find_pin(e, x);

	return pin && pin->addr_port == x->pin_port &&
	       addr_eq(&e->pins[pin - e->config.pins], addr);
}

bool dial_is_over(const struct egress *e, const struct exchange *x, struct addr *ret)
{
	/* every candidate address, or the connected one */
	const struct addr *addrs = x->dial ? x->dial->addr : &x->addr;
	unsigned n = x->dial ? x->dial->n : 1;
	struct policy_decision decision;

	if (x->is_proxied)
		return is_named_refused(e, x, ret, &decision);
	for (unsigned i = 0; i < n; i++) {
		*ret = addrs[i];
		if (x->pin_port ? !is_pinned(e, x, ret) : is_refused(e, x, ret, &decision))
			return true;
	}
	return false;
}

/* This host: its loopback, IPv4 first. */
static void dial_here(struct egress *e, struct exchange *x)
{
	static const uint8_t v6[16] = {[15] = 1};
	const struct addr here[] = {addr_from_v4(loopback_v4), addr_from_v6(v6)};
	struct policy_decision decision;
	struct dial *d = x->dial;

	for (size_t i = 0; i < ARRAY_LEN(here); i++) {
		if (is_refused(e, x, &here[i], &decision)) {
			refuse_address(e, x, &here[i], &decision);
			return;
		}
		d->addr[d->n++] = here[i];
	}
	begin_tries(e, x);
}

static void look_up(struct egress *e, struct exchange *x, const struct host *host)
{
	struct dial *d = x->dial;

	if (host->is_addr) {
		if (take_address(e, x, host->addr.n == 16, &host->addr))
			begin_tries(e, x);
		return;
	}
	x->state = EXCHANGE_RESOLVING;
	d->waits[0] = d->waits[1] = true;
	exchange_set_timer(e, x, EGRESS_RESOLVE_MS);
	resolve_ask(e, x, host->name);
}

void dial_begin(struct egress *e, struct exchange *x)
{
	const struct egress_pin *pin = find_pin(e, x);
	struct dial *d = x->dial = xcalloc(1, sizeof(*d));
	struct policy_decision decision;
	struct addr named;

	d->failure = EGRESS_N_OUTCOMES;
	for (unsigned i = 0; i < EGRESS_DIALS; i++)
		d->fd[i] = -1;
	d->port = x->port;
	if (pin) {
		struct addr *addr = &e->pins[pin - e->config.pins];

		x->is_free = true;
		x->pin_port = d->port = pin->addr_port;
		if (take_address(e, x, addr->n == 16, addr))
			begin_tries(e, x);
		return;
	}
	if (host_is_here(&x->host)) { /* the proxy is not used for this host */
		dial_here(e, x);
		return;
	}
	if (e->proxy.n == 0 || is_direct(e, x)) {
		d->is_checked = true;
		look_up(e, x, &x->host);
		return;
	}
	if (is_named_refused(e, x, &named, &decision)) {
		refuse_address(e, x, &named, &decision);
		return;
	}
	x->is_free = x->is_proxied = true;
	d->port = e->config.proxy_port;
	look_up(e, x, &e->proxy);
}
