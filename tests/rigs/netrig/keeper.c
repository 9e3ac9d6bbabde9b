/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - what the keeper is to edge and egress: starts them, decides, joins the two.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/gate/test/gate_free.h"
#include "lib/rules/policy/host.h"
#include "lib/rules/policy/locals_read.h"
#include "lib/rules/policy/rules.h"
#include "lib/rules/policy/test/policy_text.h"

#define SANDBOX_NAME "rig"
#define SANDBOX_ID "0123456789ab"
#define SEND_MS 5000

#define SOCKS "socks5://"

static void fault(struct rig *r, const char *what)
{
	if (!r->why[0])
		(void)snprintf(r->why, sizeof(r->why), "%s", what);
	r->stopping = true;
}

/* Sends again while the peer does not read; a keeper would queue, here nothing else is to be
 * done. */
#define SEND(sock, call)                                              \
	({                                                            \
		int _r, _tries = 0;                                   \
		struct pollfd _p = {.fd = (sock), .events = POLLOUT}; \
		while ((_r = (call)) == -EAGAIN && _tries++ < 50)     \
			(void)poll(&_p, 1, SEND_MS / 50);             \
		_r;                                                   \
	})

/* --- settings --- */

static int read_target(struct slice text, struct host *host, uint16_t *port, struct err *err)
{
	struct slice name;
	int n = host_split(text, &name, port, err);

	if (n < 0)
		return n;
	if (*port == 0)
		return err_set(err, -EINVAL, "a port is missing");
	return host_from_text(name, host, err);
}

static int read_pin(const char *text, struct egress_pin *ret, struct err *err)
{
	const char *eq = strchr(text, '=');
	struct host host, addr;
	int n;

	if (!eq)
		return err_set(err, -EINVAL, "no '=' in %s", text);
	n = read_target(slice_of(text, (size_t)(eq - text)), &host, &ret->port, err);
	if (n == 0)
		n = read_target(slice_of(eq + 1, strlen(eq + 1)), &addr, &ret->addr_port, err);
	if (n < 0)
		return err_wrap(err, n, "connect-to %s", text);
	if (!addr.is_addr)
		return err_set(err, -EINVAL, "connect-to %s: no address", text);
	(void)!str_copy(ret->host, sizeof(ret->host), host.name);
	(void)!str_copy(ret->addr, sizeof(ret->addr), addr.name);
	return 0;
}

static int read_config(struct rig *r, struct err *err)
{
	AUTO_FREE char *list = xstrdup(r->o.connect_to ? r->o.connect_to : "");
	char *save = NULL;
	struct host proxy;
	int n = 0;

	for (char *pin = strtok_r(list, ",", &save); pin; pin = strtok_r(NULL, ",", &save)) {
		if (r->config.n_pins == EGRESS_MAX_PINS)
			return err_set(err, -E2BIG, "more than %d pins", EGRESS_MAX_PINS);
		n = read_pin(pin, &r->config.pins[r->config.n_pins++], err);
		if (n < 0)
			return n;
	}
	if (!r->o.proxy)
		return 0;
	if (str_starts(r->o.proxy, SOCKS)) {
		r->config.proxy = EGRESS_PROXY_SOCKS;
		r->o.proxy += strlen(SOCKS);
	}
	n = read_target(
		slice_of(r->o.proxy, strlen(r->o.proxy)), &proxy, &r->config.proxy_port, err);
	if (n == 0)
		(void)!str_copy(r->config.proxy_host, sizeof(r->config.proxy_host), proxy.name);
	return n;
}

static int read_policy(struct rig *r, struct err *err)
{
	free(TAKE(r->policy_text));
	r->n_policy_text = 0;
	if (!r->o.policy)
		return 0;
	return file_load(r->o.policy, RULES_MAX_BYTES, &r->policy_text, &r->n_policy_text, err);
}

static void give_gate_policy(struct rig *r)
{
	struct slice text = slice_of(r->policy_text, r->policy_text ? r->n_policy_text : 0);

	gate_set_policy(r->gate, text.p ? policy_load(text, r->o.policy, SANDBOX_NAME) : NULL);
	if (gate_fault(r->gate))
		(void)fprintf(stderr, "netrig: policy: %s\n", gate_fault(r->gate));
}

/* --- egress --- */

static int give_egress_policy(struct rig *r, struct err *err)
{
	struct slice text = slice_of(
		r->policy_text ? r->policy_text : "", r->policy_text ? r->n_policy_text : 0);
	int files[POLICY_N_PARTS], n = 0;

	r->loaded = false;
	policy_text_files(text, "policy", SANDBOX_NAME, files);
	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		if (n == 0)
			n = SEND(r->egress.sock,
				egress_ask_policy(r->egress.sock, 1, (uint8_t)i, files[i]));
		fd_close(&files[i]);
	}
	return n < 0 ? err_errno(err, n, "sending the policy to egress") : 0;
}

static int on_egress_hello(struct rig *r, const struct ipc_msg *msg, struct err *err)
{
	static struct egress_locals locals;
	static struct addr_locals here;
	AUTO_CLOSE int resolver = -1;
	char build[CHAN_MAX_BUILD];
	int n = chan_get_hello(msg, build);

	if (n < 0 || strcmp(build, SBX_BUILD) != 0)
		return err_set(err, -EBADMSG, "egress is of another build");
	n = SEND(r->egress.sock, egress_ask_config(r->egress.sock, &r->config));
	r->egress_phase = chan_after(&egress_chan, r->egress_phase, EGRESS_CONFIG);
	if (n == 0)
		n = locals_read(&here);
	if (n == 0) {
		(void)gate_set_locals(r->gate, &here);
		gate_put_locals(r->gate, &locals);
		n = SEND(r->egress.sock, egress_ask_locals(r->egress.sock, &locals));
	}
	if (n == 0 && r->o.resolver) {
		resolver = open(r->o.resolver, O_RDONLY | O_CLOEXEC);
		n = resolver < 0 ? -errno
				 : SEND(r->egress.sock, chan_send_plain(r->egress.sock,
								EGRESS_RESOLVER, 0, resolver));
	}
	return n < 0 ? err_errno(err, n, "configuring egress") : give_egress_policy(r, err);
}

static struct rig_exchange *find_exchange(struct rig *r, uint32_t id)
{
	struct rig_exchange *x = &r->exchanges[id % EGRESS_MAX_OPEN];

	return x->used && x->gen == id / EGRESS_MAX_OPEN ? x : NULL;
}

static int on_result(struct rig *r, const struct ipc_msg *msg)
{
	struct rig_exchange *x = find_exchange(r, msg->id);
	struct egress_result result;

	if (!x || egress_get_result(msg, &result) < 0)
		return -EBADMSG;
	r->stats.results[result.outcome]++;
	gate_result(r->gate, &x->ask, &result, clock_wall_ms());
	return 0;
}

static int on_closed(struct rig *r, const struct ipc_msg *msg)
{
	struct rig_exchange *x = find_exchange(r, msg->id);
	uint64_t up, down;

	if (!x || egress_get_closed(msg, &up, &down) < 0)
		return -EBADMSG;
	x->used = false;
	r->stats.closed++;
	r->stats.up += up;
	r->stats.down += down;
	return 0;
}

static int on_loaded(struct rig *r, const struct ipc_msg *msg)
{
	char text[EGRESS_MAX_TEXT];
	int n = egress_get_loaded(msg, text);

	if (n < 0)
		return n;
	if (text[0])
		(void)fprintf(stderr, "netrig: egress: %s\n", text);
	r->loaded = true;
	return 0;
}

static int on_egress_message(struct rig *r, const struct ipc_msg *msg, struct err *err)
{
	if (!chan_allows(&egress_chan, r->egress_phase, CHAN_FROM_WORKER, msg->type))
		return err_set(err, -EBADMSG, "egress sent message %u out of phase", msg->type);
	r->egress_phase = chan_after(&egress_chan, r->egress_phase, msg->type);
	switch (msg->type) {
	case EGRESS_HELLO:
		return on_egress_hello(r, msg, err);
	case EGRESS_LOADED:
		return on_loaded(r, msg);
	case EGRESS_RESULT:
		return on_result(r, msg);
	case EGRESS_CLOSED:
		return on_closed(r, msg);
	default:
		return -EBADMSG;
	}
}

static bool egress_is_up(const struct rig *r)
{
	return r->egress.pid > 0 && r->egress_phase == EGRESS_PHASE_RUN && r->loaded;
}

static int start_egress(struct rig *r, struct err *err)
{
	r->egress_phase = EGRESS_PHASE_START;
	r->loaded = false;
	for (size_t i = 0; i < EGRESS_MAX_OPEN; i++)
		r->exchanges[i].used = false;
	return rig_spawn(r, true, &r->egress, err);
}

/* --- edge --- */

static int stream_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 ? -errno
											   : 0;
}

static int give_net(struct rig *r, struct err *err)
{
	AUTO_CLOSE int theirs = -1;
	int fds[2], n = 0;

	if (r->o.raw) {
		theirs = TAKE_FD(r->raw_fd);
		if (theirs < 0)
			return 0;
	} else {
		n = stream_pair(fds);
		if (n < 0)
			return err_errno(err, n, "making a wire");
		theirs = fds[1];
		n = rig_wire_start(r, &r->net, true, fds[0]);
	}
	if (n == 0)
		n = SEND(r->edge.sock, chan_send_plain(r->edge.sock, EDGE_NET, 0, theirs));
	return n < 0 ? err_errno(err, n, "giving edge its wire") : 0;
}

static int on_edge_hello(struct rig *r, const struct ipc_msg *msg, struct err *err)
{
	struct edge_config config = {.sandbox = SANDBOX_ID, .ready_ms = 10000};
	AUTO_CLOSE int theirs = -1;
	char build[CHAN_MAX_BUILD];
	int fds[2], n = chan_get_hello(msg, build);

	if (n < 0 || strcmp(build, SBX_BUILD) != 0)
		return err_set(err, -EBADMSG, "edge is of another build");
	n = stream_pair(fds);
	if (n < 0)
		return err_errno(err, n, "making a wire");
	theirs = fds[1];
	config.n_saved = r->ca.n_saved;
	memcpy(config.saved, r->ca.saved, r->ca.n_saved);
	n = rig_wire_start(r, &r->ctl, false, fds[0]);
	if (n == 0)
		n = SEND(r->edge.sock, edge_ask_config(r->edge.sock, &config, theirs));
	if (n < 0)
		return err_errno(err, n, "configuring edge");
	r->edge_phase = chan_after(&edge_chan, r->edge_phase, EDGE_CONFIG);
	return give_net(r, err);
}

/* An OPEN to egress; ret_fd is edge's end. */
static int open_exchange(struct rig *r, const struct edge_ask *ask, int *ret_fd)
{
	struct egress_open open = {.kind = ask->kind == EDGE_ASK_HTTP ? EGRESS_HTTP : EGRESS_TUNNEL,
		.port = ask->port};
	AUTO_CLOSE int edge_end = -1, egress_end = -1;
	struct rig_exchange *x = NULL;
	uint32_t slot = 0, id;
	int fds[2], n;

	for (uint32_t i = 0; i < EGRESS_MAX_OPEN && !x; i++) {
		slot = (r->next_exchange + i) % EGRESS_MAX_OPEN;
		x = r->exchanges[slot].used ? NULL : &r->exchanges[slot];
	}
	if (!x || !egress_is_up(r))
		return -EBUSY;
	n = stream_pair(fds);
	if (n < 0)
		return n;
	edge_end = fds[0];
	egress_end = fds[1];
	r->next_exchange = slot + 1;
	x->gen = (x->gen + 1) & 0xfffff;
	id = x->gen * EGRESS_MAX_OPEN + slot;
	(void)!str_copy(open.host, sizeof(open.host), ask->host);
	edge_ask_ticket(ask, &open.ticket);
	n = SEND(r->egress.sock, egress_ask_open(r->egress.sock, id, &open, egress_end));
	if (n < 0)
		return n;
	x->used = true;
	x->ask = *ask;
	r->stats.opens++;
	*ret_fd = TAKE_FD(edge_end);
	return 0;
}

static int on_ask(struct rig *r, const struct ipc_msg *msg)
{
	static struct edge_ask ask;
	static struct edge_verdict verdict;
	AUTO_CLOSE int fd = -1;
	int n = edge_get_ask(msg, &ask);

	if (n < 0)
		return n;
	r->stats.asks[ask.kind]++;
	r->stats.faults += ask.fault[0] != '\0';
	gate_decide_bound(r->gate, &ask, NULL, clock_wall_ms(), &verdict);
	if (verdict.allowed && edge_ask_has_socket(ask.kind) && open_exchange(r, &ask, &fd) < 0) {
		verdict.allowed = false;
		(void)!str_copy(
			verdict.reason, sizeof(verdict.reason), "the rig has no egress now");
	}
	r->stats.allowed += verdict.allowed;
	r->stats.refused += !verdict.allowed;
	if (!r->audit_timer.pos && audit_due_ms(r->audit) >= 0)
		loop_timer_set(&r->loop, &r->audit_timer,
			clock_mono_ms() + (uint64_t)audit_due_ms(r->audit),
			(struct loop_key){.kind = RIG_EV_AUDIT});
	return SEND(r->edge.sock, edge_answer_ask(r->edge.sock, msg->id, &verdict, fd));
}

static int on_edge_message(struct rig *r, const struct ipc_msg *msg, struct err *err)
{
	char text[EDGE_MAX_TEXT];

	if (!chan_allows(&edge_chan, r->edge_phase, CHAN_FROM_WORKER, msg->type))
		return err_set(err, -EBADMSG, "edge sent message %u out of phase", msg->type);
	r->edge_phase = chan_after(&edge_chan, r->edge_phase, msg->type);
	switch (msg->type) {
	case EDGE_HELLO:
		return on_edge_hello(r, msg, err);
	case EDGE_READY:
		return chan_get_plain(&edge_chan, msg, EDGE_READY);
	case EDGE_CA:
		return edge_get_ca(msg, &r->ca);
	case EDGE_ASK:
		return on_ask(r, msg);
	case EDGE_GONE: /* each ASK is answered at once */
	case EDGE_ENDED:
		return chan_get_plain(&edge_chan, msg, msg->type);
	case EDGE_LOST:
		r->stats.lost++;
		if (edge_get_lost(msg, text) == 0)
			(void)fprintf(stderr, "netrig: edge lost the guest: %s\n", text);
		return 0;
	default:
		return -EBADMSG;
	}
}

static int start_edge(struct rig *r, struct err *err)
{
	r->edge_phase = EDGE_PHASE_START;
	return rig_spawn(r, false, &r->edge, err);
}

static void drop_edge(struct rig *r)
{
	rig_wire_stop(r, &r->ctl);
	rig_wire_stop(r, &r->net);
	rig_kill(r, &r->edge);
}

int rig_give_wire(struct rig *r, int fd, struct err *err)
{
	fd_close(&r->raw_fd);
	r->raw_fd = fd;
	drop_edge(r);
	return start_edge(r, err);
}

/* --- both --- */

static void on_readable(struct rig *r, bool egress)
{
	struct rig_worker *w = egress ? &r->egress : &r->edge;
	static struct ipc_msg msg;
	struct err err = {0};
	int n = 1;

	for (unsigned i = 0; i < 64 && n == 1 && w->sock >= 0; i++) {
		n = ipc_recv(w->sock, &msg);
		if (n == 0) { /* the pidfd tells the rest */
			loop_del(&r->loop, w->sock);
			fd_close(&w->sock);
		} else if (n == 1) {
			int e = msg.fd >= 0 ? -EBADMSG
				: egress    ? on_egress_message(r, &msg, &err)
					    : on_edge_message(r, &msg, &err);

			ipc_msg_done(&msg);
			/* One that is ending cannot be told anything: with EPIPE, or with
			 * ECONNRESET when it left something unread. */
			if (e < 0 && e != -EPIPE && e != -ECONNRESET) {
				r->stats.violations++;
				fault(r, err.text[0] ? err.text
					 : egress    ? "egress broke its protocol"
						     : "edge broke its protocol");
			}
		}
	}
}

static void on_worker_end(struct rig *r, bool egress)
{
	struct err err = {0};
	int n;

	if (egress)
		rig_kill(r, &r->egress);
	else
		drop_edge(r);
	if (r->stopping)
		return;
	n = egress ? start_egress(r, &err) : start_edge(r, &err);
	if (n < 0)
		fault(r, err_text(&err, n));
}

bool rig_on_event(struct rig *r, const struct loop_event *ev)
{
	struct err err = {0};

	switch (ev->key.kind) {
	case RIG_EV_EDGE:
		if (ev->key.gen == r->edge.gen)
			on_readable(r, false);
		return true;
	case RIG_EV_EGRESS:
		if (ev->key.gen == r->egress.gen)
			on_readable(r, true);
		return true;
	case RIG_EV_EDGE_END:
		if (ev->key.gen == r->edge.gen)
			on_worker_end(r, false);
		return true;
	case RIG_EV_EGRESS_END:
		if (ev->key.gen == r->egress.gen)
			on_worker_end(r, true);
		return true;
	case RIG_EV_CTL:
		if (ev->key.gen == r->edge.gen)
			rig_wire_event(r, &r->ctl, ev->events);
		return true;
	case RIG_EV_NET:
		if (ev->key.gen == r->edge.gen)
			rig_wire_event(r, &r->net, ev->events);
		return true;
	case RIG_EV_AUDIT:
		if (audit_sync(r->audit, &err) < 0)
			fault(r, err.text);
		return true;
	default:
		return false;
	}
}

void rig_flush(struct rig *r)
{
	rig_wire_flush(r, &r->ctl);
	rig_wire_flush(r, &r->net);
}

bool rig_is_up(const struct rig *r)
{
	return r->edge.pid > 0 && r->edge_phase == EDGE_PHASE_RUN && egress_is_up(r) &&
	       (r->o.raw || r->net.ready);
}

int rig_reload(struct rig *r, struct err *err)
{
	int n = read_policy(r, err);

	if (n < 0)
		return n;
	give_gate_policy(r);
	return egress_is_up(r) ? give_egress_policy(r, err) : 0;
}

static int open_audit(struct rig *r, struct err *err)
{
	AUTO_FREE char *dir = xasprintf("%s/audit", r->o.folder);
	struct audit_options o = {.dir = dir, .sandbox = SANDBOX_ID, .name = SANDBOX_NAME};
	int n = audit_key_load(dir, &r->key, err);

	o.key = r->key;
	return n < 0 ? n : audit_open(&o, &r->audit, err);
}

struct rig *rig_new(const struct rig_options *o, struct err *err)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	int n;

	r->o = *o;
	r->raw_fd = r->ctl.fd = r->net.fd = -1;
	r->edge.sock = r->edge.pidfd = r->egress.sock = r->egress.pidfd = -1;
	n = loop_init(&r->loop);
	if (n == 0)
		n = read_config(r, err);
	if (n == 0)
		n = read_policy(r, err);
	if (n == 0)
		n = open_audit(r, err);
	if (n == 0) {
		r->gate = gate_new(SANDBOX_NAME, r->audit);
		give_gate_policy(r);
		n = start_egress(r, err);
	}
	if (n == 0)
		n = start_edge(r, err);
	if (n == 0)
		return r;
	if (!err->text[0])
		(void)err_errno(err, n, "starting");
	rig_free(r);
	return NULL;
}

void rig_free(struct rig *r)
{
	struct err err = {0};

	r->stopping = true;
	if (r->loop.epfd > 0) {
		drop_edge(r);
		rig_kill(r, &r->egress);
		loop_timer_clear(&r->loop, &r->audit_timer);
	}
	fd_close(&r->raw_fd);
	if (r->gate)
		gate_free(r->gate);
	(void)audit_close(r->audit, &err);
	if (r->key)
		audit_key_free(r->key);
	free(r->policy_text);
	loop_done(&r->loop);
	free(r);
}
