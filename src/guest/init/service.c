/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "stats.h"
#include "src/guest/trust/trust.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* Slots of ctl streams are above those of execs. */
#define CTL_BIT 0x10000u
/* Slots of connections are above those of ctl. */
#define TCP_BIT 0x20000u

static unsigned answer_service(struct wr *wr, int r, const struct err *err)
{
	if (r < 0)
		log_warn("%s", err_text(err, r));
	return guest_put_reply(wr, r == 0, r < 0 ? err_text(err, r) : "") < 0 ? 500 : 200;
}

static unsigned refuse_service(struct wr *wr)
{
	return guest_put_reply(wr, false, "invalid request") < 0 ? 500 : 400;
}

static unsigned on_setup(void *ctx, struct slice body, struct wr *wr)
{
	struct service *s = ctx;
	struct guest_setup setup;
	struct err err = {0};
	int r;

	if (guest_get_setup(body, &setup) < 0)
		return refuse_service(wr);
	r = setup_apply(&s->facts, &s->mounts, &setup, &err);
	guest_setup_done(&setup);
	if (s->net->ready || r < 0)
		return answer_service(wr, r, &err);
	if (!s->net_wait.pos)
		loop_timer_set(s->loop, &s->net_wait, clock_mono_ms() + NETPROC_WAIT_MS,
			(struct loop_key){.kind = GUEST_EV_NET_WAIT});
	return answer_service(wr, r, &err) | CTL_HOLD;
}

static unsigned on_trust(void *ctx, struct slice body, struct wr *wr)
{
	struct service *s = ctx;
	struct guest_trust trust;
	struct err err = {0};
	int r;

	if (guest_get_trust(body, &trust) < 0)
		return refuse_service(wr);
	r = trust_write("", &trust, &err);
	facts_trust(&s->facts, &trust);
	guest_trust_done(&trust);
	return answer_service(wr, r, &err);
}

static void add_sessions(struct keeper_stats *stats, const struct execs *x)
{
	struct exec_shown e;

	static_assert(
		EXEC_MAX_KEPT <= KEEPER_MAX_SESSIONS && EXEC_MAX_SESSION == KEEPER_MAX_SESSION,
		"all of them are shown");
	while (exec_kept(x, stats->n_sessions, &e)) {
		struct keeper_session *s = &stats->sessions[stats->n_sessions++];

		(void)snprintf(s->name, sizeof(s->name), "%s", e.name);
		s->flags = (uint8_t)((e.attached ? KEEPER_SESSION_ATTACHED : 0) |
				     (e.ended ? KEEPER_SESSION_ENDED : 0) |
				     (e.signalled ? KEEPER_SESSION_SIGNALLED : 0));
		s->value = e.value;
	}
}

static unsigned on_stats(void *ctx, struct slice body, struct wr *wr)
{
	const struct service *s = ctx;
	struct keeper_stats stats;

	if (body.n > 0)
		return 400;
	stats_read(&stats);
	add_sessions(&stats, &s->execs);
	return guest_put_stats(wr, &stats) < 0 ? 500 : 200;
}

static unsigned on_power(void *ctx, struct slice body, struct wr *wr)
{
	struct service *s = ctx;
	enum guest_power kind;

	if (guest_get_power(body, &kind) < 0)
		return refuse_service(wr);
	power_begin(&s->power, s->loop);
	return answer_service(wr, 0, NULL);
}

/* Held answers are written when they are available. */
static unsigned answer_later(struct wr *wr, int r, const struct err *err)
{
	return r == -EINPROGRESS ? 200 | CTL_HOLD : answer_service(wr, r, err);
}

static unsigned on_park(void *ctx, struct slice body, struct wr *wr)
{
	struct service *s = ctx;
	struct guest_parking p;
	struct err err = {0};
	int r;

	if (guest_get_park(body, &p) < 0)
		return refuse_service(wr);
	if (p.kind == GUEST_PARK_IMAGE)
		return answer_service(wr, park_image(&s->facts, s->net, &p, &err), &err);
	r = park_begin(&s->park, p.kind, s->net->pid, &err);
	return answer_later(wr, r, &err);
}

static unsigned on_wake(void *ctx, struct slice body, struct wr *wr)
{
	struct service *s = ctx;
	struct guest_wake wake;
	struct err err = {0};
	int r;

	if (guest_get_wake(body, &wake) < 0)
		return refuse_service(wr);
	r = park_wake(&s->park, &wake, &err);
	guest_wake_done(&wake);
	return answer_later(wr, r, &err);
}

void service_on_parked(struct service *s, const struct park_answer *a)
{
	uint8_t buf[GUEST_MAX_TEXT + 64];
	struct wr wr = wr_init(buf, sizeof(buf));

	if (!a->path)
		return;
	if (a->reply.text[0])
		log_warn("%s: %s", a->path, a->reply.text);
	/* Clients are detached when no program can write any more, and may reattach when all
	 * can. */
	if (s->park.state == PARK_PARKED)
		exec_park_all(&s->execs);
	else
		exec_unpark(&s->execs);
	if (guest_put_reply(&wr, a->reply.ok, a->reply.text) == 0)
		ctl_release(&s->ctl, a->path, slice_of(buf, wr.n));
}

/* While programs are frozen and the share is released there is nothing to forget. */
static unsigned on_forget(void *ctx, struct slice body, struct wr *wr)
{
	struct service *s = ctx;
	struct err err = {0};
	int r = 0;

	if (body.n > 0)
		return refuse_service(wr);
	if (s->park.state == PARK_AWAKE)
		r = forget_begin(&s->forget, &err);
	return answer_later(wr, r, &err);
}

void service_on_forgotten(struct service *s)
{
	uint8_t buf[64];
	struct wr wr = wr_init(buf, sizeof(buf));

	if (guest_put_reply(&wr, true, "") == 0)
		ctl_release(&s->ctl, GUEST_PATH_FORGET, slice_of(buf, wr.n));
}

static bool is_text(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != '\n' && (s.p[i] < ' ' || s.p[i] > '~'))
			return false;
	return true;
}

static unsigned on_denied(void *ctx, struct slice body, struct wr *wr)
{
	struct err err = {0};

	if (!is_text(body))
		return refuse_service(wr);
	return answer_service(wr, why_write("", body, &err), &err);
}

static const struct ctl_route routes[] = {
	{GUEST_PATH_SETUP, on_setup},
	{GUEST_PATH_TRUST, on_trust},
	{GUEST_PATH_STATS, on_stats},
	{GUEST_PATH_POWER, on_power},
	{GUEST_PATH_PARK, on_park},
	{GUEST_PATH_WAKE, on_wake},
	{GUEST_PATH_FORGET, on_forget},
	{GUEST_PATH_DENIED, on_denied},
	{NULL, NULL},
};

static int on_open(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot)
{
	struct service *s = ctx;
	uint16_t port;
	int r;

	if (!strcmp(path, GUEST_PATH_EXEC))
		return exec_open(&s->execs, id, ret_slot);
	if (tcp_is_path(path, &port)) {
		r = tcp_open(&s->tcps, id, port, ret_slot);
		*ret_slot |= TCP_BIT;
		return r;
	}
	r = ctl_open(&s->ctl, path, ret_slot);
	*ret_slot |= CTL_BIT;
	return r;
}

static void on_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct service *s = ctx;

	if (slot & TCP_BIT) {
		net_conn_on_data(&s->tcps, slot & ~TCP_BIT, bytes);
	} else if (!(slot & CTL_BIT)) {
		exec_on_data(&s->execs, slot, bytes);
	} else if (ctl_on_data(&s->ctl, id, slot & ~CTL_BIT, bytes) < 0) {
		ctl_close(&s->ctl, slot & ~CTL_BIT);
		wire_reset(s->wire, id);
	}
}

static void on_end(void *ctx, uint32_t id, uint32_t slot)
{
	struct service *s = ctx;

	if (slot & CTL_BIT)
		ctl_on_end(&s->ctl, id, slot & ~CTL_BIT);
	else if (slot & TCP_BIT)
		net_conn_on_end(&s->tcps, slot & ~TCP_BIT);
	else
		exec_on_end(&s->execs, slot);
}

static void on_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	struct service *s = ctx;

	if (slot & CTL_BIT)
		ctl_close(&s->ctl, slot & ~CTL_BIT);
	else if (slot & TCP_BIT)
		net_conn_on_close(&s->tcps, slot & ~TCP_BIT, error);
	else
		exec_on_close(&s->execs, slot);
}

static ssize_t pull_service(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	struct service *s = ctx;

	if (slot & CTL_BIT)
		return ctl_pull(&s->ctl, slot & ~CTL_BIT, buf, n);
	if (slot & TCP_BIT)
		return net_conn_pull(&s->tcps, slot & ~TCP_BIT, buf, n);
	return exec_pull(&s->execs, slot, buf, n);
}

static void on_session(void *ctx, struct wire *w)
{
	struct service *s = ctx;

	if (!w) {
		ctl_drop_all(&s->ctl);
		exec_drop_all(&s->execs);
		net_conn_drop_all(&s->tcps);
	}
	s->wire = s->ctl.wire = s->execs.wire = s->tcps.wire = w;
}

static const struct wire_ops ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull_service,
};

void service_on_net(struct service *s, bool ready)
{
	if (!ready)
		log_warn("the network is not ready: the sandbox starts without network");
	loop_timer_clear(s->loop, &s->net_wait);
	ctl_release(&s->ctl, GUEST_PATH_SETUP, slice_of(NULL, 0));
}

void service_init(
	struct service *s, struct loop *loop, struct port *port, const struct netproc *net)
{
	s->loop = loop;
	s->net = net;
	s->execs.loop = loop;
	s->tcps.loop = loop;
	s->tcps.kind = GUEST_EV_TCP;
	s->tcps.max = TCP_MAX;
	s->execs.facts = &s->facts;
	park_init(&s->park, loop, &s->mounts);
	s->ctl.routes = routes;
	s->ctl.ctx = s;
	port->name = GUEST_PORT;
	port->role = WIRE_SERVER;
	port->kind = WIRE_CTL;
	port->key = (struct loop_key){.kind = GUEST_EV_PORT};
	port->probe_key = (struct loop_key){.kind = GUEST_EV_PORT_PROBE};
	port->ops = &ops;
	port->ctx = s;
	port->on_session = on_session;
}
