/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_link - the keeper's side of lib/os/ipc/origin_chan.h, and the life of the origin
 * processes.
 *
 * How      Runs one sbx-origin for each requested host and port that is intercepted. It is started
 *          at the first one. It is stopped after KEEPER_ORIGIN_IDLE_MS without use, when another
 *          host needs its slot, or when its binding or the policy changes. Edge and origin get the
 *          ends of one socket pair, the channel; each request is a stream of it, and origin gets
 *          its ticket (OPEN) before edge gets its number. When edge has exited, the next request
 *          makes a new channel, which ends all tickets of the old one. An origin that does not read
 *          delays only its own messages, and gets no further request.
 * Trust    origin parses data of a server and requests of edge and may be compromised by either.
 *          Every message is checked against the phase table. A violation kills the process; after
 *          KEEPER_ORIGIN_VIOLATIONS its host is blocked for the rest of the run. A compromised
 *          origin gets only the credential of its host.
 * Limits   KEEPER_MAX_ORIGINS, ORIGIN_MAX_OPEN exchanges each, KEEPER_ORIGIN_CRASHES.
 */
#include "credential.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define PLACE_BITS 8
/* The number of an exchange is that of its stream: not 0, and at most 24 bits. It is used again
 * after so many other requests that both peers have closed the earlier one. */
#define MAX_GEN (0xffffffU >> PLACE_BITS)
static_assert(ORIGIN_MAX_OPEN <= 1 << PLACE_BITS, "a place fits into its bits");

struct origin *origins_find(struct keeper *k, uint32_t idx, uint32_t gen)
{
	struct origin *o = idx < KEEPER_MAX_ORIGINS ? &k->origins->list[idx] : NULL;

	return o && o->worker.alive && o->worker.gen == gen ? o : NULL;
}

/* Its index in the list: worker.idx. */
static struct origin *origin_of(struct keeper *k, const struct worker *w)
{
	return &k->origins->list[w->idx];
}

/* ---- violations ---- */

static struct blamed *find_blamed(struct keeper *k, const char *host, uint16_t port)
{
	for (size_t i = 0; i < k->origins->n_blamed; i++) {
		struct blamed *b = &k->origins->blamed[i];

		if (b->port == port && strcmp(b->host, host) == 0)
			return b;
	}
	return NULL;
}

/* If the table is full, replaces the entry with the fewest violations. */
static struct blamed *take_blamed(struct keeper *k, const struct origin *o)
{
	struct origins *os = k->origins;
	struct blamed *b = find_blamed(k, o->host, o->port);

	if (b)
		return b;
	b = &os->blamed[0];
	for (size_t i = 1; i < os->n_blamed; i++) {
		if (os->blamed[i].n_violations < b->n_violations)
			b = &os->blamed[i];
	}
	if (os->n_blamed < KEEPER_MAX_BLAMED)
		b = &os->blamed[os->n_blamed++];
	*b = (struct blamed){.port = o->port};
	(void)!str_copy(b->host, sizeof(b->host), o->host);
	return b;
}

static int check_blamed(struct keeper *k, const struct edge_ask *ask, struct err *err)
{
	const struct blamed *b = find_blamed(k, ask->host, ask->port);

	if (b && b->n_violations >= KEEPER_ORIGIN_VIOLATIONS)
		return err_set(err, -EPERM,
			"sbx-origin for %s violated its protocol repeatedly: see keeper.log",
			ask->host);
	if (b && b->n_crashes >= KEEPER_ORIGIN_CRASHES)
		return err_set(err, -EPERM, "sbx-origin for %s exited repeatedly: see keeper.log",
			ask->host);
	return 0;
}

/* ---- exit ---- */

static void drop_exchange(struct origin *o, struct origin_exchange *ex)
{
	free(TAKE(ex->what));
	fd_close(&ex->fd);
	ex->is_due = false;
	ex->gen = ex->gen % MAX_GEN + 1;
	o->n_exchanges--;
}

/* Records the failure of an allowed request without a result. */
static void record_end(
	struct keeper *k, struct origin *o, const struct origin_exchange *ex, const char *why)
{
	static struct edge_ask ask;

	if (ex->has_result)
		return;
	ask_copy_get(ex->what, &ask);
	if (origin_is_bare(o))
		gate_bare_lost(k->gate, &ask, why);
	else
		gate_origin_lost(k->gate, &ask, o->binding.name, o->n_given > 0, why);
}

static void drop_exchanges(struct keeper *k, struct origin *o, const char *why)
{
	for (size_t i = 0; o->exchanges && i < ORIGIN_MAX_OPEN; i++) {
		if (!o->exchanges[i].what)
			continue;
		record_end(k, o, &o->exchanges[i], why);
		drop_exchange(o, &o->exchanges[i]);
	}
	free(TAKE(o->exchanges));
}

static void drop_origin(struct keeper *k, struct worker *w, const char *why)
{
	struct origin *o = origin_of(k, w);

	vault_forget(k, w->idx, w->gen - 1);
	drop_exchanges(k, o, why);
	origin_drop_channel(o);
	conns_drop(o);
	needs_drop(o);
	creds_drop(&o->binding);
}

static void kill_origin(struct keeper *k, struct origin *o, const char *why)
{
	worker_stop(k, &o->worker, why);
}

static const char *target_text(const struct worker *w)
{
	const struct origin *o = (const struct origin *)w;
	static char text[ORIGIN_MAX_HOST + 32];

	(void)snprintf(text, sizeof(text), "for %s:%u ", o->host, o->port);
	return text;
}

static void count_violation(struct keeper *k, struct worker *w)
{
	take_blamed(k, origin_of(k, w))->n_violations++;
}

void origins_on_exit(struct keeper *k, const struct loop_event *ev)
{
	struct origin *o = &k->origins->list[ev->key.idx];

	take_blamed(k, o)->n_crashes++;
	worker_on_exit(k, &o->worker);
}

void origins_kill_all(struct keeper *k, const char *why)
{
	loop_timer_clear(&k->loop, &k->origins->timer);
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		if (k->origins->list[i].worker.alive)
			kill_origin(k, &k->origins->list[i], why);
	}
}

/* ---- renewal and stop ---- */

/* The process keeps running: a refreshed token must not interrupt open responses. */
static void renew_origin(struct keeper *k, struct origin *o, const struct binding *b)
{
	creds_drop(&o->binding);
	creds_copy(b, &o->binding);
	/* before RUN, CONFIG carries the new values */
	o->is_renew_due = o->worker.phase == ORIGIN_PHASE_RUN;
	origins_push(k, o);
}

void origins_on_creds(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];
		const struct binding *b =
			o->worker.alive ? creds_find(k->creds, o->host, o->port) : NULL;

		if (!o->worker.alive || (b ? creds_is_same(b, &o->binding) : origin_is_bare(o)))
			continue;
		if (b && creds_is_renewal(&o->binding, b)) {
			renew_origin(k, o, b);
			continue;
		}
		log_info("the credential for %s:%u was changed or removed: stopping its sbx-origin",
			o->host, o->port);
		kill_origin(k, o, "the credential was changed or removed");
	}
}

void origins_recheck(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];
		bool host, port;

		if (!o->worker.alive)
			continue;
		gate_look(k->gate, o->host, o->port, clock_wall_ms(), &host, &port);
		if (!port || !conns_all_may_lead(k, o))
			kill_origin(k, o, "the policy no longer allows the host");
	}
}

static bool is_idle(const struct origin *o)
{
	return o->n_exchanges == 0;
}

bool origins_are_busy(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		const struct origin *o = &k->origins->list[i];

		if (o->worker.alive && !is_idle(o))
			return true;
	}
	return false;
}

static void look_at(struct keeper *k, struct origin *o, uint64_t now)
{
	if (o->worker.phase != ORIGIN_PHASE_RUN &&
		now - o->worker.started_ms >= KEEPER_ORIGIN_START_MS) {
		log_error("sbx-origin for %s:%u did not start in time: killed", o->host, o->port);
		take_blamed(k, o)->n_crashes++;
		kill_origin(k, o, "sbx-origin did not start");
	} else if (is_idle(o) && now - o->used_ms >= KEEPER_ORIGIN_IDLE_MS) {
		kill_origin(k, o, "idle");
	}
}

static void set_timer(struct keeper *k)
{
	loop_timer_set(&k->loop, &k->origins->timer, clock_mono_ms() + KEEPER_ORIGIN_LOOK_MS,
		(struct loop_key){.kind = EV_TIMER_ORIGINS});
}

void origins_on_timer(struct keeper *k)
{
	uint64_t now = clock_mono_ms();
	bool any = false;

	origins_recheck(k); /* a rule may have expired */
	conns_on_room(k);   /* for connections that wait for egress */
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		if (k->origins->list[i].worker.alive)
			look_at(k, &k->origins->list[i], now);
		any = any || k->origins->list[i].worker.alive;
	}
	if (any)
		set_timer(k);
}

/* ---- its start ---- */

static struct origin *free_place(struct keeper *k)
{
	struct origin *old = NULL;

	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];

		if (!o->worker.alive)
			return o;
		if (is_idle(o) && (!old || o->used_ms < old->used_ms))
			old = o;
	}
	if (old)
		kill_origin(k, old, "evicted");
	return old;
}

static void fill_origin(struct origin *o, const struct edge_ask *ask, const struct binding *b)
{
	(void)!str_copy(o->host, sizeof(o->host), ask->host);
	o->port = ask->port;
	o->used_ms = clock_mono_ms();
	o->n_exchanges = o->next_conn = 0;
	o->n_given = o->n_kept = 0;
	o->is_renew_due = false;
	o->is_policy_due = true;
	o->has_pack = false;
	o->exchanges = xcalloc(ORIGIN_MAX_OPEN, sizeof(*o->exchanges));
	for (size_t i = 0; i < ORIGIN_MAX_OPEN; i++)
		o->exchanges[i] = (struct origin_exchange){.gen = 1, .fd = -1};
	o->channel = 0;
	o->edge_end = o->own_end = -1;
	o->had_channel = false;
	o->conns = xcalloc(KEEPER_ORIGIN_CONNS, sizeof(*o->conns));
	for (size_t i = 0; i < KEEPER_ORIGIN_CONNS; i++)
		o->conns[i].fd = -1;
	for (size_t i = 0; i < ORIGIN_N_WHICH; i++)
		o->values[i] = (struct origin_asked_value){.fd = -1};
	creds_copy(b, &o->binding);
}

static int spawn_origin(
	struct keeper *k, struct worker *w, int sock, struct jail_child *ret, struct err *err)
{
	return k->origins->spawn(k, sock, ret, err);
}

static int start_origin(struct keeper *k, const struct edge_ask *ask, const struct binding *b,
	struct origin **ret, struct err *err)
{
	struct origin *o = free_place(k);
	int r;

	if (!o)
		return err_set(err, -EBUSY, "more than %d intercepted hosts are in use",
			KEEPER_MAX_ORIGINS);
	fill_origin(o, ask, b);
	r = worker_start(k, &o->worker, err);
	if (r < 0) {
		drop_origin(k, &o->worker, "sbx-origin did not start");
		return r;
	}
	set_timer(k);
	*ret = o;
	return 0;
}

/* ---- exchanges ---- */

static struct origin *find_target(struct keeper *k, const struct edge_ask *ask)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];

		if (o->worker.alive && o->port == ask->port && strcmp(o->host, ask->host) == 0)
			return o;
	}
	return NULL;
}

static int add_exchange(
	struct origin *o, const struct edge_ask *ask, struct origin_exchange **ret, struct err *err)
{
	struct origin_exchange *ex = o->exchanges;

	while (ex < o->exchanges + ORIGIN_MAX_OPEN && ex->what)
		ex++;
	if (ex == o->exchanges + ORIGIN_MAX_OPEN)
		return err_set(err, -EMFILE, "%s", origin_outcome_text(ORIGIN_BUSY));
	ex->what = ask_copy_new(ask);
	ex->has_result = false;
	ex->is_due = true;
	edge_ask_ticket(ask, &ex->ticket);
	o->n_exchanges++;
	o->used_ms = clock_mono_ms();
	*ret = ex;
	return 0;
}

static uint32_t id_of(const struct origin *o, const struct origin_exchange *ex)
{
	return ex->gen << PLACE_BITS | (uint32_t)(ex - o->exchanges);
}

/* The origin of the ask's host, started if needed. */
static int find_or_start(
	struct keeper *k, const struct edge_ask *ask, struct origin **ret, struct err *err)
{
	const struct binding *b = origins_binding(k, ask);
	int r = check_blamed(k, ask, err);

	*ret = find_target(k, ask);
	if (r == 0 && k->origins->roots < 0)
		r = err_set(err, -ENOENT, "cannot verify servers: see keeper.log");
	if (r == 0 && !b)
		r = err_set(err, -ENOENT, "the credential for %s was removed", ask->host);
	if (r == 0 && !*ret)
		r = start_origin(k, ask, b, ret, err);
	return r;
}

/* Before origin has its first channel, OPENs wait here. From then on edge can be faster. */
int origins_open(
	struct keeper *k, const struct edge_ask *ask, struct origin_stream *ret, struct err *err)
{
	struct origin_exchange *ex = NULL;
	struct origin *o;
	int r = find_or_start(k, ask, &o, err);

	if (r == 0)
		r = origin_make_channel(k, o, err);
	if (r == 0)
		r = add_exchange(o, ask, &ex, err);
	if (r < 0)
		return r;
	origins_push(k, o);
	if (o->had_channel && ex->is_due) {
		drop_exchange(o, ex);
		return err_set(err, -EBUSY, "%s", origin_outcome_text(ORIGIN_BUSY));
	}
	*ret = (struct origin_stream){o->channel, id_of(o, ex), TAKE_FD(o->edge_end)};
	return 0;
}

int origins_open_socket(
	struct keeper *k, const struct edge_ask *ask, bool is_judged, int *ret_fd, struct err *err)
{
	struct origin_exchange *ex = NULL;
	struct origin *o;
	int fds[2] = {-1, -1};
	int r = find_or_start(k, ask, &o, err);

	if (r == 0)
		r = origin_make_pair(fds, err);
	if (r == 0)
		r = add_exchange(o, ask, &ex, err);
	if (r < 0) {
		fd_close(&fds[0]);
		fd_close(&fds[1]);
		return r;
	}
	ex->ticket.is_judged = is_judged;
	ex->fd = fds[1];
	*ret_fd = fds[0];
	origins_push(k, o);
	return 0;
}

const struct origin_exchange *origins_first_waiting(const struct origin *o)
{
	for (size_t i = 0; i < ORIGIN_MAX_OPEN; i++) {
		if (o->exchanges[i].what && !o->exchanges[i].has_result)
			return &o->exchanges[i];
	}
	return NULL;
}

static int push_opens(struct origin *o)
{
	for (struct origin_exchange *ex = o->exchanges; ex < o->exchanges + ORIGIN_MAX_OPEN; ex++) {
		int r;

		if (!ex->is_due)
			continue;
		r = origin_ask_open(o->worker.sock, id_of(o, ex), &ex->ticket, ex->fd);
		if (r < 0)
			return r;
		fd_close(&ex->fd);
		ex->is_due = false;
	}
	return 0;
}

/* The first channel comes after the requests that wait for it, another one before its own: it ends
 * those that origin has. */
static int push_requests(struct origin *o)
{
	bool is_first = !o->had_channel;
	int r = is_first ? push_opens(o) : origin_push_channel(o);

	if (r == 0)
		r = is_first ? origin_push_channel(o) : push_opens(o);
	return r;
}

void origins_push(struct keeper *k, struct origin *o)
{
	int r;

	if (o->worker.phase != ORIGIN_PHASE_RUN)
		return;
	r = origin_push_policy(k, o);
	if (r == 0)
		r = push_requests(o);
	if (r == 0)
		r = conns_push(o);
	if (r == 0)
		r = tokens_push(o);
	if (r == 0)
		r = needs_push(o);
	/* On any other error the process is exiting, and its pidfd reports that. */
	if (r == -EAGAIN)
		worker_want_room(k, &o->worker);
}

/* ---- messages of origin ---- */

static int send_config(struct keeper *k, struct origin *o)
{
	struct origin_config config = {.port = o->port, .has = o->binding.has};
	AUTO_CLOSE int text = -1, again = -1, roots = sealed_file_open(k->origins->roots);
	int r;

	(void)!str_copy(config.sandbox, sizeof(config.sandbox), k->spec.name);
	(void)!str_copy(config.host, sizeof(config.host), o->host);
	text = sealed_file_make("service", slice_from_str(o->binding.text));
	again = sealed_file_open(text);
	if (roots < 0 || again < 0)
		return -EIO;
	r = origin_ask_config(o->worker.sock, &config, again);
	if (r < 0)
		return r;
	o->worker.phase = chan_after(&origin_chan, o->worker.phase, ORIGIN_CONFIG);
	r = chan_send_plain(o->worker.sock, ORIGIN_ROOTS, 0, roots);
	if (r == 0)
		o->worker.phase = chan_after(&origin_chan, o->worker.phase, ORIGIN_ROOTS);
	return r;
}

static int configure_origin(struct keeper *k, struct worker *w, struct err *err)
{
	struct origin *o = origin_of(k, w);
	int r = send_config(k, o);

	if (r < 0) { /* not a fault of origin */
		log_error("cannot configure sbx-origin for %s: %s", o->host, strerror(-r));
		kill_origin(k, o, "cannot configure sbx-origin");
		return 0;
	}
	origins_push(k, o);
	return 0;
}

static struct origin_exchange *find_exchange(struct origin *o, uint32_t id)
{
	struct origin_exchange *ex = &o->exchanges[id & ((1u << PLACE_BITS) - 1)];

	/* An exchange that was not sent yet cannot have a result. */
	return ex->what && !ex->is_due && ex->gen == id >> PLACE_BITS ? ex : NULL;
}

/* A result with a used credential is valid only if the value was released to this origin. */
static bool is_believable(const struct origin *o, const struct origin_result *result)
{
	for (size_t i = 0; i < MIN(o->n_given, (size_t)KEEPER_MAX_GIVEN); i++) {
		if (o->given[i] == result->serial)
			return true;
	}
	return !result->used;
}

static int on_result(struct keeper *k, struct origin *o, const struct ipc_msg *msg, struct err *err)
{
	struct origin_exchange *ex = find_exchange(o, msg->id);
	struct origin_result result;
	static struct edge_ask ask;
	int r = origin_get_result(msg, &result);

	if (r < 0 || !ex || ex->has_result)
		return err_set(err, -EBADMSG, "sent a result of nothing");
	if (!is_believable(o, &result))
		return err_set(err, -EBADMSG, "used a credential that it was not given");
	ex->has_result = true;
	ask_copy_get(ex->what, &ask);
	if (origin_is_bare(o))
		gate_bare_result(k->gate, &ask, &result);
	else
		gate_origin_result(k->gate, &ask, o->binding.name, &result);
	return 0;
}

static int on_closed(struct keeper *k, struct origin *o, const struct ipc_msg *msg, struct err *err)
{
	struct origin_exchange *ex = find_exchange(o, msg->id);
	uint64_t up, down;
	int r = origin_get_closed(msg, &up, &down);

	if (r < 0 || !ex)
		return err_set(err, -EBADMSG, "closed what is not open");
	k->state.net_up += up;
	k->state.net_down += down;
	record_end(k, o, ex, "closed without a result");
	drop_exchange(o, ex);
	o->used_ms = clock_mono_ms();
	return 0;
}

static int take_message(struct keeper *k, struct worker *w, struct ipc_msg *msg, struct err *err)
{
	struct origin *o = origin_of(k, w);

	switch (msg->type) {
	case ORIGIN_RESULT:
		return on_result(k, o, msg, err);
	case ORIGIN_CLOSED:
		return on_closed(k, o, msg, err);
	case ORIGIN_WANT:
		return conns_on_want(k, o, msg);
	case ORIGIN_NEED:
		return needs_on_need(k, o, msg);
	case ORIGIN_TOKENS:
		return tokens_on_tokens(k, o, msg, err);
	default:
		return -EBADMSG;
	}
}

static void push_again(struct keeper *k, struct worker *w)
{
	origins_push(k, origin_of(k, w));
}

static const struct worker_ops origin_worker = {
	.program = "sbx-origin",
	.ev_message = EV_ORIGIN,
	.ev_end = EV_ORIGIN_END,
	.chan = &origin_chan,
	.spawn = spawn_origin,
	.on_hello = configure_origin,
	.on_message = take_message,
	.on_room = push_again,
	.on_end = drop_origin,
	.on_violation = count_violation,
	.get_target = target_text,
};

void origins_init(struct keeper *k,
	int (*open_socket)(
		struct keeper *k, const struct origin *o, uint32_t want, uint32_t *ret_exchange),
	int (*send_tables)(struct keeper *k, int sock, uint32_t id, ask_policy_fn *ask))
{
	k->origins->open_socket = open_socket;
	k->origins->send_tables = send_tables;
	k->origins->roots = -1;
	k->origins->spawn = hands_origin;
	for (uint32_t i = 0; i < KEEPER_MAX_ORIGINS; i++)
		worker_init(&k->origins->list[i].worker, &origin_worker, i);
}

bool origins_is_live(const struct keeper *k, struct loop_key key)
{
	return worker_is_current(&k->origins->list[key.idx].worker, key);
}

void origins_on_event(struct keeper *k, const struct loop_event *ev)
{
	worker_on_event(k, &k->origins->list[ev->key.idx].worker, ev);
}
