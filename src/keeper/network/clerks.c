/* SPDX-License-Identifier: Apache-2.0 */
#include "clerks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/airlock/autorun.h"
#include "lib/rules/clerk/clerk_call.h"
#include "lib/rules/pack/pack_graphql.h"
#include "network.h"

static const char receive_end[] = "/git-receive-pack", upload_end[] = "/git-upload-pack";

static struct clerk *clerk_of(struct keeper *k, const struct worker *w)
{
	return &k->clerks->list[w->idx];
}

/* ---- start and end ---- */

static void fill_clerk(struct clerk *c, const struct edge_ask *ask, const struct gate_push *push)
{
	const struct worker worker = c->worker;

	*c = (struct clerk){.worker = worker, .push = *push, .edge_fd = -1};
	c->ask = xmalloc(sizeof(*c->ask));
	*c->ask = *ask;
}

/* Nothing was sent, and nothing was recorded as allowed. */
static void record_lost(struct keeper *k, const struct clerk *c, const char *why)
{
	struct edge_verdict v;

	if (!c->push.is_advert && !c->is_decided)
		gate_refuse_push(k->gate, c->ask, &c->push, why, &v);
}

static void drop_clerk(struct keeper *k, struct worker *w, const char *why)
{
	struct clerk *c = clerk_of(k, w);

	if (c->ask)
		record_lost(k, c, why);
	free(TAKE(c->ask));
	free(TAKE(c->records));
	free(TAKE(c->effect));
	free(TAKE(c->verbs));
	fd_close(&c->edge_fd);
	c->held_ms = 0;
}

static int spawn_clerk(
	struct keeper *k, struct worker *w, int sock, struct jail_child *ret, struct err *err)
{
	return k->clerks->spawn ? k->clerks->spawn(k, sock, ret, err)
				: worker_spawn_jailed(k, w->ops, NULL, sock, ret, err);
}

static void set_timer(struct keeper *k)
{
	loop_timer_set(&k->loop, &k->clerks->timer, clock_mono_ms() + KEEPER_CLERK_LOOK_MS,
		(struct loop_key){.kind = EV_TIMER_CLERKS});
}

static struct clerk *free_place(struct keeper *k, bool is_calls)
{
	size_t from = is_calls ? KEEPER_MAX_CLERKS : 0;
	size_t to = is_calls ? KEEPER_N_CLERKS : KEEPER_MAX_CLERKS;

	for (size_t i = from; i < to; i++)
		if (!k->clerks->list[i].worker.alive)
			return &k->clerks->list[i];
	return NULL;
}

static unsigned *violations_of(struct keeper *k, bool is_calls)
{
	return is_calls ? &k->clerks->n_call_violations : &k->clerks->n_violations;
}

int clerks_open(struct keeper *k, const struct edge_ask *ask, const struct gate_push *push,
	int *ret_edge_fd, struct err *err)
{
	struct clerk *c = free_place(k, push->is_calls);
	int fds[2], r;

	if (!c)
		return err_set(err, -EBUSY, "more than %d %s at the same time: try again",
			push->is_calls ? KEEPER_MAX_CALLS : KEEPER_MAX_CLERKS,
			push->is_calls ? "requests to GraphQL" : "pushes");
	if (*violations_of(k, push->is_calls) >= KEEPER_CLERK_VIOLATIONS)
		return err_set(err, -EPERM, "%s violated its protocol repeatedly: see keeper.log",
			c->worker.ops->program);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return err_set(err, -EMFILE, "no file descriptors available on the host");
	fill_clerk(c, ask, push);
	c->edge_fd = fds[1];
	r = worker_start(k, &c->worker, err);
	if (r < 0) {
		fd_close(&fds[0]);
		c->is_decided = true; /* the caller records it */
		drop_clerk(k, &c->worker, "the clerk did not start");
		return r;
	}
	*ret_edge_fd = fds[0];
	set_timer(k);
	return 0;
}

/* ---- the answer to the clerk ---- */

static const char *short_reason(const struct edge_verdict *v, char buf[CLERK_MAX_TEXT])
{
	if (v->approval[0])
		(void)snprintf(buf, CLERK_MAX_TEXT, "needs approval: sbx approve %s", v->approval);
	else if (v->rule[0])
		(void)snprintf(buf, CLERK_MAX_TEXT, "denied by the rule %.250s", v->rule);
	else if (v->effect[0] && v->instead[0])
		(void)snprintf(buf, CLERK_MAX_TEXT, "no rule of sbx allows it");
	else
		(void)snprintf(buf, CLERK_MAX_TEXT, "%.280s", v->reason);
	str_make_printable(buf);
	return buf;
}

/* Messages to a clerk are few and small: one that does not take them has failed. */
static void answer_clerk(struct keeper *k, struct clerk *c, const struct clerk_decided *d, int fd)
{
	int r = clerk_answer_judged(c->worker.sock, d, fd);

	c->is_decided = true;
	if (r == 0)
		c->worker.phase = chan_after(&clerk_chan, c->worker.phase, CLERK_DECIDED);
	else
		worker_stop(k, &c->worker, "the clerk did not take the decision");
}

static void refuse_clerk(struct keeper *k, struct clerk *c, const struct edge_verdict *v)
{
	static struct clerk_decided d;

	d = (struct clerk_decided){0};
	(void)short_reason(v, d.why);
	if (!denied_print(c->ask, v, d.report, sizeof(d.report)))
		(void)snprintf(d.report, sizeof(d.report), "%s\n", v->reason);
	denied_note(k, c->ask, v);
	answer_clerk(k, c, &d, -1);
}

/* The gate has allowed and recorded it. */
static void pass_clerk(struct keeper *k, struct clerk *c)
{
	static struct clerk_decided d;
	struct edge_verdict v = {.no_rule_helps = true, .count = 1};
	struct err err = {0};
	AUTO_CLOSE int fd = -1;
	int r;

	d = (struct clerk_decided){.allowed = true};
	if (k->netpolicy->fault[0])
		r = err_set(&err, -EIO, "%s", k->netpolicy->fault);
	else
		r = origins_open_socket(k, c->ask, true, &fd, &err);
	if (r == 0) {
		c->is_sent = true;
		answer_clerk(k, c, &d, fd);
		return;
	}
	(void)snprintf(v.reason, sizeof(v.reason), "%s", err_text(&err, r));
	c->is_decided = true;
	gate_refuse_push(k->gate, c->ask, &c->push, err_text(&err, r), &v);
	refuse_clerk(k, c, &v);
}

/* ---- the decision ---- */

static struct gate_pushed pushed_of(const struct clerk *c)
{
	struct gate_pushed p = {
		.effect = c->effect, .n = c->n_effects, .preview = c->judged.preview};

	if (c->push.is_calls && c->judged.text[0])
		p.unknown = c->judged.text;

	memcpy(p.commands, c->judged.commands, sizeof(p.commands));
	return p;
}

/* Sets the verdict. False: it waits for a person. */
static bool decide_clerk(struct keeper *k, struct clerk *c, struct edge_verdict *v)
{
	struct gate_pushed pushed = pushed_of(c);
	struct gate_binding binding = vault_look(k, c->ask);
	const struct hold_text *what;

	record_check(k);
	gate_decide_push(k->gate, c->ask, &binding, &pushed, NULL, clock_wall_ms(), v);
	what = gate_asked(k->gate);
	if (!what)
		return true;
	switch (holds_take(k, what, c->ask, c->held_ms, v)) {
	case HOLDS_WAIT:
		if (!c->held_ms)
			c->held_ms = clock_mono_ms();
		holds_arm(k);
		return false;
	case HOLDS_PASS:
		gate_decide_push(
			k->gate, c->ask, &binding, &pushed, k->holds->passed, clock_wall_ms(), v);
		return true;
	default:
		return true;
	}
}

static void run_clerk(struct keeper *k, struct clerk *c)
{
	static struct edge_verdict v;

	if (!decide_clerk(k, c, &v))
		return;
	c->held_ms = 0;
	if (v.allowed)
		pass_clerk(k, c);
	else
		refuse_clerk(k, c, &v);
}

void clerks_resume(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_N_CLERKS; i++) {
		struct clerk *c = &k->clerks->list[i];

		if (c->worker.alive && c->held_ms)
			run_clerk(k, c);
	}
}

uint64_t clerks_held_until(const struct keeper *k)
{
	uint64_t until = UINT64_MAX;

	for (size_t i = 0; i < KEEPER_N_CLERKS; i++) {
		const struct clerk *c = &k->clerks->list[i];

		if (c->worker.alive && c->held_ms)
			until = MIN(until, c->held_ms + HOLD_INLINE_MS);
	}
	return until;
}

size_t clerks_count_held(const struct keeper *k)
{
	size_t n = 0;

	for (size_t i = 0; i < KEEPER_N_CLERKS; i++)
		n += k->clerks->list[i].worker.alive && k->clerks->list[i].held_ms;
	return n;
}

/* ---- messages of the clerk ---- */

/* Text of data/airlock/autorun.list; without it nothing is marked in a preview. */
static int make_list(void)
{
	AUTO_FREE char *path = paths_get(PATHS_SHARE, "airlock/autorun.list");
	AUTO_FREE char *text = NULL;
	AUTO_CLOSE int file = -1;
	struct err err = {0};
	size_t n = 0;

	if (file_load(path, AUTORUN_MAX_TEXT, &text, &n, &err) < 0)
		log_warn("previews of pushes have no marks: %s", err.text);
	file = sealed_file_make("autorun", slice_of(text ? text : "", n));
	return file < 0 ? -EIO : sealed_file_open(file);
}

/* -ENOENT: the rules are no longer about an API. */
static int make_pack(const struct keeper *k, const struct clerk *c)
{
	const struct pack *pack = gate_pack(k->gate, c->ask->host, c->ask->port);
	AUTO_CLOSE int file = pack ? sealed_file_make("pack", slice_from_str(pack->text)) : -1;

	if (!pack)
		return -ENOENT;
	return file < 0 ? -EIO : sealed_file_open(file);
}

static int send_open(struct keeper *k, struct clerk *c)
{
	struct clerk_open open = {.is_advert = c->push.is_advert,
		.paths = c->push.paths,
		.files = c->push.asks,
		.max_bytes = c->push.is_calls ? KEEPER_CALL_BYTES : KEEPER_PUSH_BYTES};
	AUTO_CLOSE int list = c->push.is_calls ? make_pack(k, c) : make_list();
	int r = list < 0 ? list : chan_send_plain(c->worker.sock, CLERK_CONFIG, 0, list);

	(void)gate_get_wants(k->gate, c->ask, clock_wall_ms(), open.wants);
	if (r == 0)
		r = clerk_ask_open(c->worker.sock, &open, c->edge_fd);
	if (r == 0)
		c->worker.phase = CLERK_PHASE_READ;
	fd_close(&c->edge_fd);
	return r;
}

static int begin_clerk(struct keeper *k, struct worker *w, struct err *err)
{
	struct clerk *c = clerk_of(k, w);

	if (send_open(k, c) < 0) /* not a fault of the clerk */
		worker_stop(k, w, "cannot configure the clerk");
	else if (c->push.is_advert)
		pass_clerk(k, c);
	return 0;
}

/* The request of the clerk, as if edge had asked. -EINVAL: the push has another path. */
static int make_fetch(struct keeper *k, const struct clerk *c, struct edge_ask *ret)
{
	char names[EDGE_MAX_WANTS];
	size_t n = strlen(c->ask->target), end = sizeof(receive_end) - 1;

	*ret = *c->ask;
	if (n < end || strcmp(ret->target + n - end, receive_end) != 0)
		return -EINVAL;
	(void)snprintf(ret->target + n - end, sizeof(upload_end), "%s", upload_end);
	ret->wants_id = gate_get_wants(k->gate, ret, clock_wall_ms(), names);
	return 0;
}

static int open_fetch(struct keeper *k, const struct edge_ask *ask, int *ret_fd, struct err *err)
{
	static struct edge_verdict v;
	struct gate_binding binding = vault_look(k, ask);
	const struct hold_text *what;

	record_check(k);
	gate_decide_bound(k->gate, ask, &binding, clock_wall_ms(), &v);
	what = gate_asked(k->gate);
	if (what)
		gate_refuse_asked(
			k->gate, ask, what, "a push does not wait for approval to read", NULL, &v);
	if (!v.allowed)
		return err_set(err, -EACCES, "%s",
			v.reason[0] ? v.reason : "the repository cannot be read");
	return origins_open_socket(k, ask, false, ret_fd, err);
}

static int on_want(struct keeper *k, struct clerk *c, const struct ipc_msg *msg, struct err *err)
{
	static struct edge_ask ask;
	struct clerk_line line = {.given = true};
	struct err why = {0};
	char named[EDGE_MAX_NAMED];
	AUTO_CLOSE int fd = -1;
	int r = clerk_get_want(msg, named);

	if (r < 0 || c->push.is_advert || c->push.is_calls || c->n_wants++ == CLERK_MAX_WANTS)
		return err_set(err, -EBADMSG, "sent a WANT that is not permitted");
	r = make_fetch(k, c, &ask);
	if (r == 0)
		(void)!str_copy(ask.named, sizeof(ask.named), named);
	if (r == 0)
		r = open_fetch(k, &ask, &fd, &why);
	if (r < 0) {
		line.given = false;
		(void)snprintf(line.text, sizeof(line.text), "%.300s", err_text(&why, r));
		str_make_printable(line.text);
	}
	if (clerk_answer_want(c->worker.sock, &line, fd) < 0)
		worker_stop(k, &c->worker, "the clerk did not take a message");
	return 0;
}

static int on_effects(struct clerk *c, const struct ipc_msg *msg, struct err *err)
{
	struct slice records;
	size_t n;
	int r = c->push.is_calls ? clerk_get_calls(msg, &records, &n)
				 : clerk_get_effects(msg, &records, &n);

	if (r < 0 || c->push.is_advert || n > CLERK_MAX_EFFECTS - c->n_effects ||
		records.n > CLERKS_MAX_RECORDS - c->n_records)
		return err_set(err, -EBADMSG, "sent effects that are not permitted");
	c->records = xrealloc(c->records, c->n_records + records.n);
	memcpy(c->records + c->n_records, records.p, records.n);
	c->n_records += records.n;
	c->n_effects += n;
	return 0;
}

/* The verb and the risk are those of the pack that applies now. */
static void make_call(
	const struct pack *pack, struct clerk *c, const struct clerk_call *call, size_t i)
{
	const struct pack_row *row =
		pack && call->type != CLERK_UNKNOWN
			? pack_find_field(
				  pack, slice_from_str(clerk_call_name(call->type)), call->field)
			: NULL;
	char *verb = c->verbs + i * (PACK_MAX_WORD + 1);

	c->effect[i] =
		(struct effect){.kind = EFFECT_API, .target = slice_from_str(c->push.repository)};
	if (!row || row->verb.n > PACK_MAX_WORD) {
		c->effect[i].is_unknown = true;
		c->effect[i].why = slice_from_str("body");
		return;
	}
	memcpy(verb, row->verb.p, row->verb.n);
	c->effect[i].verb = slice_of(verb, row->verb.n);
	c->effect[i].object = call->object;
	c->effect[i].risk = slice_from_str(pack_risk_name(row->risk));
}

/* A request without an effect is one that is not known. */
static void make_calls(const struct keeper *k, struct clerk *c)
{
	const struct pack *pack = gate_pack(k->gate, c->ask->host, c->ask->port);
	struct slice rest = slice_of(c->records, c->n_records);
	struct clerk_call call = {.type = CLERK_UNKNOWN};
	size_t n = MAX(c->n_effects, (size_t)1);

	c->effect = xcalloc(n, sizeof(*c->effect));
	c->verbs = xcalloc(n, PACK_MAX_WORD + 1);
	for (size_t i = 0; i < n; i++) {
		if (clerk_next_call(&rest, &call) < 1)
			call = (struct clerk_call){.type = CLERK_UNKNOWN};
		make_call(pack, c, &call, i);
	}
	c->n_effects = n;
}

/* The records do not move any more. */
static void make_effects(struct clerk *c)
{
	struct slice rest = slice_of(c->records, c->n_records);
	struct clerk_effect e;

	c->effect = xcalloc(c->n_effects + 1, sizeof(*c->effect));
	for (size_t i = 0; i < c->n_effects && clerk_next_effect(&rest, &e) == 1; i++)
		c->effect[i] = (struct effect){.kind = EFFECT_GIT,
			.verb = slice_from_str(clerk_verb_name(e.verb)),
			.host = slice_from_str(c->ask->host),
			.port = c->ask->port,
			.target = slice_from_str(c->push.repository),
			.object = e.ref,
			.path = e.path,
			.no_path = e.no_path};
}

static int on_judged(struct keeper *k, struct clerk *c, const struct ipc_msg *msg, struct err *err)
{
	static struct edge_verdict v;

	if (clerk_get_judged(msg, &c->judged) < 0 || c->push.is_advert)
		return err_set(err, -EBADMSG, "sent a judgement that is not permitted");
	c->is_judged = true;
	if (!c->judged.is_unknown) {
		if (c->push.is_calls)
			make_calls(k, c);
		else
			make_effects(c);
		run_clerk(k, c);
		return 0;
	}
	c->is_decided = true;
	gate_refuse_push(k->gate, c->ask, &c->push, c->judged.text, &v);
	refuse_clerk(k, c, &v);
	return 0;
}

static int take_message(struct keeper *k, struct worker *w, struct ipc_msg *msg, struct err *err)
{
	struct clerk *c = clerk_of(k, w);

	switch (msg->type) {
	case CLERK_WANT:
		return on_want(k, c, msg, err);
	case CLERK_EFFECTS:
		return on_effects(c, msg, err);
	case CLERK_JUDGED:
		return on_judged(k, c, msg, err);
	case CLERK_DONE:
		if (chan_get_plain(&clerk_chan, msg, CLERK_DONE) < 0)
			return -EBADMSG;
		worker_stop(k, w, "the client has left");
		return 0;
	default:
		return -EBADMSG;
	}
}

static void count_violation(struct keeper *k, struct worker *w)
{
	++*violations_of(k, clerk_of(k, w)->push.is_calls);
}

static const char *target_text(const struct worker *w)
{
	const struct clerk *c = (const struct clerk *)w;
	static char text[EDGE_MAX_HOST + 32];

	(void)snprintf(text, sizeof(text), "for %s:%u ", c->ask ? c->ask->host : "",
		c->ask ? (unsigned)c->ask->port : 0U);
	return text;
}

static const struct worker_ops clerk_worker = {
	.program = "sbx-clerk-git",
	.profile = JAIL_CLERK_GIT,
	.ev_message = EV_CLERK,
	.ev_end = EV_CLERK_END,
	.chan = &clerk_chan,
	.spawn = spawn_clerk,
	.on_hello = begin_clerk,
	.on_message = take_message,
	.on_end = drop_clerk,
	.on_violation = count_violation,
	.get_target = target_text,
};

static const struct worker_ops call_worker = {
	.program = "sbx-clerk",
	.profile = JAIL_CLERK,
	.ev_message = EV_CLERK,
	.ev_end = EV_CLERK_END,
	.chan = &clerk_chan,
	.spawn = spawn_clerk,
	.on_hello = begin_clerk,
	.on_message = take_message,
	.on_end = drop_clerk,
	.on_violation = count_violation,
	.get_target = target_text,
};

/* ---- events ---- */

void clerks_init(struct keeper *k)
{
	for (uint32_t i = 0; i < KEEPER_N_CLERKS; i++) {
		k->clerks->list[i].edge_fd = -1;
		worker_init(&k->clerks->list[i].worker,
			i < KEEPER_MAX_CLERKS ? &clerk_worker : &call_worker, i);
	}
}

bool clerks_is_live(const struct keeper *k, struct loop_key key)
{
	return worker_is_current(&k->clerks->list[key.idx].worker, key);
}

void clerks_on_event(struct keeper *k, const struct loop_event *ev)
{
	worker_on_event(k, &k->clerks->list[ev->key.idx].worker, ev);
}

void clerks_on_exit(struct keeper *k, const struct loop_event *ev)
{
	worker_on_exit(k, &k->clerks->list[ev->key.idx].worker);
}

void clerks_on_timer(struct keeper *k)
{
	uint64_t now = clock_mono_ms();

	for (size_t i = 0; i < KEEPER_N_CLERKS; i++) {
		struct clerk *c = &k->clerks->list[i];

		if (c->worker.alive && !c->is_judged && !c->is_decided &&
			now - c->worker.started_ms >= KEEPER_CLERK_MS)
			worker_stop(k, &c->worker, "the request was not complete in time");
	}
	if (clerks_are_busy(k))
		set_timer(k);
}

void clerks_on_policy(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_N_CLERKS; i++) {
		struct clerk *c = &k->clerks->list[i];
		struct gate_pushed pushed = pushed_of(c);

		if (c->worker.alive && c->is_sent && !c->push.is_advert &&
			!gate_passes_push(k->gate, c->ask, &pushed, clock_wall_ms()))
			worker_stop(k, &c->worker, "the policy no longer allows the request");
	}
}

bool clerks_are_busy(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_N_CLERKS; i++)
		if (k->clerks->list[i].worker.alive)
			return true;
	return false;
}

void clerks_kill_all(struct keeper *k, const char *why)
{
	loop_timer_clear(&k->loop, &k->clerks->timer);
	for (size_t i = 0; i < KEEPER_N_CLERKS; i++)
		worker_stop(k, &k->clerks->list[i].worker, why);
}
