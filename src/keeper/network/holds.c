/* SPDX-License-Identifier: Apache-2.0 */
#include "holds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/rules/url/url.h"
#include "network.h"

static_assert(HOLD_MAX <= 64, "a bit for each place");
static_assert(KEEPER_MAX_HELD < EDGE_MAX_ASKS, "a part of them");

void holds_init(struct keeper *k)
{
	uint64_t seed = 0;

	/* Without random bytes the ids are the same in each run: an answer names the digest too. */
	(void)!getrandom(&seed, sizeof(seed), 0);
	hold_init(&k->holds->table, seed);
}

void holds_done(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->holds->timer);
	loop_timer_clear(&k->loop, &k->holds->send_timer);
	hold_done(&k->holds->table);
}

void holds_set_limits(struct keeper *k, uint32_t max_open, uint32_t max_hour)
{
	hold_limits(&k->holds->table, max_open, max_hour);
}

/* ---- to sbxd ---- */

static int send_place(struct keeper *k, int sock, uint32_t place)
{
	static struct hold_msg msg;
	const struct hold *h = &k->holds->table.list[place];
	uint64_t now = clock_mono_ms();

	if (h->state == HOLD_FREE)
		return chan_send_plain(sock, KEEPER_UNHELD, place, -1);
	msg = (struct hold_msg){.kind = (uint8_t)h->text.kind,
		.state = (uint8_t)h->state,
		.age_ms = now - h->since_ms,
		.left_ms = h->until_ms == HOLD_NO_END ? HOLD_NO_END
						      : h->until_ms - MIN(now, h->until_ms),
		.waiting = (uint32_t)(k->net->n_held + clerks_count_held(k))};
	(void)!str_copy(msg.id, sizeof(msg.id), h->id);
	memcpy(msg.digest, h->text.digest, sizeof(msg.digest));
	(void)!str_copy(msg.effects, sizeof(msg.effects), h->text.effects);
	(void)!str_copy(msg.rule, sizeof(msg.rule), h->text.rule);
	(void)!str_copy(msg.preview, sizeof(msg.preview), h->text.preview);
	return hold_send_held(sock, place, &msg);
}

/* Errors of a connection are found when it is read. */
static void send_some(struct keeper *k, size_t link)
{
	uint64_t *unsent = &k->holds->unsent[link];

	if (k->links[link].fd < 0)
		*unsent = 0;
	for (uint32_t i = 0; i < HOLD_MAX; i++) {
		if (!(*unsent & UINT64_C(1) << i))
			continue;
		if (send_place(k, k->links[link].fd, i) == -EAGAIN)
			return;
		*unsent &= ~(UINT64_C(1) << i);
	}
}

void holds_on_send_timer(struct keeper *k)
{
	uint64_t left = 0;

	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++) {
		send_some(k, i);
		left |= k->holds->unsent[i];
	}
	if (left)
		loop_timer_set(&k->loop, &k->holds->send_timer, clock_mono_ms() + HOLDS_SEND_MS,
			(struct loop_key){.kind = EV_TIMER_HOLDS_SEND});
}

static void push_place(struct keeper *k, size_t place)
{
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		k->holds->unsent[i] |= UINT64_C(1) << place;
}

static void push_hold(struct keeper *k, const struct hold *h)
{
	push_place(k, (size_t)(h - k->holds->table.list));
	holds_on_send_timer(k);
}

void holds_on_link(struct keeper *k)
{
	for (size_t i = 0; i < HOLD_MAX; i++)
		if (k->holds->table.list[i].state != HOLD_FREE)
			push_place(k, i);
	holds_on_send_timer(k);
}

/* Removes holds with `remove`, and informs sbxd of the ones that were removed. */
static void sweep_holds(struct keeper *k, void (*remove)(struct holds *t, uint64_t now_ms))
{
	struct holds *t = &k->holds->table;
	uint64_t before = 0;

	for (size_t i = 0; i < HOLD_MAX; i++)
		before |= (uint64_t)(t->list[i].state != HOLD_FREE) << i;
	remove(t, clock_mono_ms());
	for (size_t i = 0; i < HOLD_MAX; i++)
		if (before >> i & 1 && t->list[i].state == HOLD_FREE)
			push_place(k, i);
	holds_on_send_timer(k);
}

/* ---- the audit log ---- */

static int record_hold(struct keeper *k, const struct hold *h, const char *action,
	const struct edge_ask *ask, const struct hold_reply *reply)
{
	char reason[100] = "";
	struct audit_event ev = {.kind = AUDIT_KIND_APPROVAL,
		.action = slice_from_str(action),
		.rule = slice_from_str(h->text.rule),
		.effects = slice_from_str(gate_join_effects(k->gate, h->text.effects)),
		.hold = slice_from_str(h->id)};

	memcpy(ev.digest, h->text.digest, sizeof(ev.digest));
	if (reply)
		(void)snprintf(reason, sizeof(reason), "uid %u %s", reply->uid, reply->where);
	ev.reason = slice_from_str(reason);
	if (ask) {
		ev.host = slice_from_str(ask->host);
		ev.port = ask->port;
	}
	return record_approval(k, &ev);
}

/* ---- requests ---- */

static void set_timer(struct keeper *k)
{
	uint64_t asks = MIN(asks_held_until(k->net), clerks_held_until(k));
	uint64_t at = MIN(hold_next_ms(&k->holds->table), asks);

	loop_timer_clear(&k->loop, &k->holds->timer);
	if (at != UINT64_MAX)
		loop_timer_set(
			&k->loop, &k->holds->timer, at, (struct loop_key){.kind = EV_TIMER_HOLDS});
}

static void refuse_ask(struct keeper *k, const struct hold_text *what, const struct edge_ask *ask,
	const char *why, const struct hold *h, struct edge_verdict *ret)
{
	gate_refuse_asked(k->gate, ask, what, why, h ? h->id : NULL, ret);
}

static const char *why_not(enum hold_result result)
{
	switch (result) {
	case HOLD_SPENT:
		return "the approval request was closed, or an equal request has used the approval";
	case HOLD_CROWDED:
		return "needs approval, but too many requests of this sandbox are open or answered";
	case HOLD_OFTEN:
		return "needs approval, but this sandbox has requested too many in the last hour";
	case HOLD_LONG:
		return "needs approval, but its effects are too long to be displayed";
	default:
		return "not approved";
	}
}

static void refuse_by_person(struct keeper *k, const struct hold_text *what,
	const struct edge_ask *ask, const struct hold *h, struct edge_verdict *ret)
{
	char why[HOLD_MAX_REASON + 32];

	(void)snprintf(
		why, sizeof(why), "refused by the user%s%s", h->reason[0] ? ": " : "", h->reason);
	refuse_ask(k, what, ask, why, h, ret);
}

static void refuse_pending(struct keeper *k, const struct hold_text *what,
	const struct edge_ask *ask, const struct hold *h, struct edge_verdict *ret)
{
	char why[64];

	(void)snprintf(why, sizeof(why), "needs approval: request %s is open", h->id);
	refuse_ask(k, what, ask, why, h, ret);
	(void)!str_copy(ret->approval, sizeof(ret->approval), h->id);
}

void holds_refuse_crowd(struct keeper *k, const struct hold_text *what, const struct edge_ask *ask,
	struct edge_verdict *ret)
{
	struct hold *h;

	if (hold_again(&k->holds->table, what->digest, 0, clock_mono_ms(), &h) == HOLD_PENDING)
		refuse_pending(k, what, ask, h, ret);
	else
		refuse_ask(k, what, ask, why_not(HOLD_CROWDED), NULL, ret);
}

#define UNRECORDED "needs approval, but the audit log cannot be written"

static enum holds_next pass_ask(struct keeper *k, const struct hold_text *what,
	const struct edge_ask *ask, struct hold *h, struct edge_verdict *ret)
{
	int r = record_hold(k, h, "use", ask, NULL);

	push_place(k, (size_t)(h - k->holds->table.list));
	(void)!str_copy(k->holds->passed, sizeof(k->holds->passed), h->id);
	if (r == 0)
		hold_use(h);
	else
		hold_close(h);
	holds_on_send_timer(k);
	if (r == 0)
		return HOLDS_PASS;
	refuse_ask(k, what, ask, UNRECORDED, NULL, ret);
	return HOLDS_REFUSE;
}

static enum holds_next begin_hold(struct keeper *k, const struct hold_text *what,
	const struct edge_ask *ask, struct hold *h, struct edge_verdict *ret)
{
	if (record_hold(k, h, "ask", ask, NULL) == 0) {
		push_hold(k, h);
		return HOLDS_WAIT;
	}
	hold_close(h);
	refuse_ask(k, what, ask, UNRECORDED, NULL, ret);
	return HOLDS_REFUSE;
}

enum holds_next holds_take(struct keeper *k, const struct hold_text *what,
	const struct edge_ask *ask, uint64_t since_ms, struct edge_verdict *ret)
{
	struct holds *t = &k->holds->table;
	uint64_t now = clock_mono_ms();
	enum hold_result result;
	bool is_new = false;
	struct hold *h;

	if (since_ms)
		result = hold_again(t, what->digest, since_ms, now, &h);
	else
		result = hold_ask(t, what, now, &h, &is_new);
	if (is_new)
		return begin_hold(k, what, ask, h, ret);
	if (result == HOLD_PASS)
		return pass_ask(k, what, ask, h, ret);
	if (result == HOLD_WAIT)
		return HOLDS_WAIT;
	if (result == HOLD_NO)
		refuse_by_person(k, what, ask, h, ret);
	else if (result == HOLD_PENDING)
		refuse_pending(k, what, ask, h, ret);
	else
		refuse_ask(k, what, ask, why_not(result), NULL, ret);
	return HOLDS_REFUSE;
}

bool holds_passes(struct keeper *k, const struct hold_text *what)
{
	uint64_t now = clock_mono_ms();
	struct hold *h;

	return hold_again(&k->holds->table, what->digest, now, now, &h) == HOLD_PASS;
}

/* Without a record it is withdrawn too: that permits nothing. */
void holds_leave(struct keeper *k, const uint8_t digest[SHA256_BYTES])
{
	struct hold *h;

	if (asks_wait_for(k->net, digest) || clerks_wait_for(k, digest))
		return;
	h = hold_withdraw(&k->holds->table, digest, clock_mono_ms());
	if (!h)
		return;
	(void)!record_hold(k, h, "withdraw", NULL, NULL);
	push_hold(k, h);
	set_timer(k);
}

/* ---- links ---- */

/* sbx-edge has parsed it; the keeper does so again. */
static int read_link(const struct edge_ask *ask, struct hold_text *ret, struct err *err)
{
	struct url url;
	int r = url_parse(slice_from_str(ask->target), &url, err);

	if (r == 0 && strcmp(url.text, ask->target) != 0)
		r = err_set(err, -EINVAL, "the link is not in its one form");
	if (r < 0)
		return r;
	*ret = (struct hold_text){
		.kind = HOLD_LINK, .effects = ask->target, .rule = "", .preview = ""};
	sha256(slice_from_str(ask->target), ret->digest);
	return 0;
}

static void answer_link(struct edge_verdict *ret, bool shown, const char *text)
{
	*ret = (struct edge_verdict){.allowed = shown, .no_rule_helps = !shown};
	(void)!str_copy(ret->reason, sizeof(ret->reason), text);
}

static const char *why_no_link(enum hold_result result)
{
	switch (result) {
	case HOLD_NO:
		return "refused by the user";
	case HOLD_CROWDED:
		return "too many links or requests of the sandbox wait for the user";
	case HOLD_OFTEN:
		return "too many links or requests of the sandbox in the last hour";
	default:
		return "the link cannot be shown";
	}
}

static void show_link(struct keeper *k, const struct hold *h, struct edge_verdict *ret)
{
	char text[64];

	push_hold(k, h);
	set_timer(k);
	(void)snprintf(
		text, sizeof(text), "shown to the user, who opens it with: sbx open %s", h->id);
	answer_link(ret, true, text);
}

void holds_take_link(struct keeper *k, const struct edge_ask *ask, struct edge_verdict *ret)
{
	struct hold_text what;
	enum hold_result result;
	struct err err = {0};
	struct hold *h;
	bool is_new;

	if (read_link(ask, &what, &err) < 0) {
		answer_link(ret, false, err.text);
		return;
	}
	result = hold_ask(&k->holds->table, &what, clock_mono_ms(), &h, &is_new);
	if (result != HOLD_WAIT) {
		answer_link(ret, false, why_no_link(result));
	} else if (is_new && record_hold(k, h, "ask", ask, NULL) < 0) {
		hold_close(h);
		answer_link(ret, false, "the audit log cannot be written");
	} else {
		show_link(k, h, ret);
	}
}

/* The oldest one is replaced. */
static void add_callback(struct keeper *k, const struct hold *h)
{
	struct callback *at = k->holds->callbacks;
	struct url_callback cb;
	struct url url;

	if (url_parse(slice_from_str(h->text.effects), &url, NULL) < 0 ||
		url_callback(&url, &cb, NULL) != 1)
		return;
	for (size_t i = 1; i < HOLD_MAX_LINKS; i++)
		if (k->holds->callbacks[i].until_ms < at->until_ms)
			at = &k->holds->callbacks[i];
	*at = (struct callback){cb.port, HOLDS_CALLBACK_CONNS, clock_mono_ms() + HOLDS_CALLBACK_MS};
}

bool holds_use_callback(struct keeper *k, uint16_t port)
{
	for (struct callback *c = k->holds->callbacks; c < k->holds->callbacks + HOLD_MAX_LINKS;
		c++)
		if (c->port == port && c->n_left && clock_mono_ms() < c->until_ms) {
			c->n_left--;
			return true;
		}
	return false;
}

void holds_arm(struct keeper *k)
{
	set_timer(k);
}

/* ---- changes ---- */

/* All that wait are decided again; those for which nothing has changed go on waiting. */
static void resume_asks(struct keeper *k)
{
	asks_resume(k->net);
	clerks_resume(k);
	set_timer(k);
	if (k->edge->worker.alive)
		net_run(k);
}

static void remove_expired(struct holds *t, uint64_t now_ms)
{
	(void)hold_expire(t, now_ms);
}

void holds_on_timer(struct keeper *k)
{
	sweep_holds(k, remove_expired);
	resume_asks(k);
}

static void remove_answered(struct holds *t, uint64_t now_ms)
{
	(void)now_ms;
	hold_on_policy(t);
}

void holds_on_policy(struct keeper *k)
{
	sweep_holds(k, remove_answered);
	resume_asks(k);
}

/* A link is opened or refused, a request is not opened. */
static bool is_answer_to(const struct hold *h, enum hold_choice choice)
{
	return choice == HOLD_CHOICE_NO ||
	       (choice == HOLD_CHOICE_OPEN) == (h->text.kind == HOLD_LINK);
}

static int take_reply(struct keeper *k, const struct hold_reply *reply)
{
	struct holds *t = &k->holds->table;
	uint64_t now = clock_mono_ms();
	struct hold *h = hold_find(t, reply->id, now);
	const struct hold_decision what = {.yes = reply->choice != HOLD_CHOICE_NO,
		.for_ms = reply->choice == HOLD_CHOICE_ALWAYS ? HOLD_NO_END
							      : (uint64_t)reply->seconds * 1000,
		.reason = reply->reason};
	int r = h && !is_answer_to(h, reply->choice)
			? -EINVAL
			: hold_answer(t, reply->id, reply->digest, &what, now);

	if (r < 0)
		return r;
	r = record_hold(k, h, hold_choice_name(reply->choice), NULL, reply);
	if (r == 0 && reply->choice == HOLD_CHOICE_OPEN)
		add_callback(k, h);
	if (r < 0 || reply->choice == HOLD_CHOICE_OPEN)
		hold_close(h);
	push_hold(k, h);
	return r;
}

int holds_on_answer(struct keeper *k, struct link *l, const struct ipc_msg *msg)
{
	struct hold_reply reply;
	int r = hold_get_reply(msg, &reply);

	if (r == 0 && !link_may_give_vault(k, l))
		r = -EPERM;
	if (r < 0)
		return r;
	r = take_reply(k, &reply);
	r = keeper_send_done(l->fd, msg->id, r,
		r == -ENOENT	  ? "no such request waits for approval"
		: r == -ESTALE	  ? "the request has changed since it was displayed"
		: r == -EALREADY  ? "the request was already answered"
		: r == -ECANCELED ? "the request was withdrawn: the client has left"
		: r == -EINVAL	  ? "a link can be opened or refused, a request approved or refused"
		: r < 0		  ? "the answer cannot be written to the audit log"
				  : "");
	resume_asks(k);
	return r;
}
