/* SPDX-License-Identifier: Apache-2.0 */
/* Random orders of requests, answers, uses, policies and time against a model that keeps every hold
 * and computes its state from what happened to it. The argument is the number of orders. */
#include "lib/rules/hold/hold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/mem.h"

#define STEPS 60
#define DIGESTS 6
#define WAITERS 16

/* Everything that ever happened to one hold. */
struct past {
	uint8_t number;
	char id[HOLD_ID];
	uint64_t opened, asked, answered, valid; /* valid: of the answer */
	bool has_answer, yes, many, always, used, dropped, withdrawn;
};

struct waiter {
	bool used;
	uint8_t number;
	uint64_t since;
};

static struct past all[STEPS];
static size_t n_all;
static struct waiter waiters[WAITERS];
static struct holds holds;
static uint64_t now, rand_x, seed;
static uint32_t max_open, max_hour;

static uint32_t below(uint32_t n)
{
	rand_x = rand_x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((rand_x >> 33) % n);
}

#define CHECK(cond)                                                                              \
	do {                                                                                     \
		if (cond)                                                                        \
			break;                                                                   \
		fprintf(stderr, "order %llu, line %d: %s\n", (unsigned long long)seed, __LINE__, \
			#cond);                                                                  \
		exit(1);                                                                         \
	} while (0)

/* ---- the model ---- */

static uint64_t end_of(const struct past *p)
{
	if (p->always)
		return UINT64_MAX;
	return p->has_answer ? p->answered + p->valid : p->asked + 15 * 60000;
}

static bool lives(const struct past *p)
{
	return !p->used && !p->dropped && now < end_of(p);
}

static struct past *past_of(uint8_t number)
{
	for (size_t i = 0; i < n_all; i++)
		if (all[i].number == number && lives(&all[i]) && !all[i].withdrawn)
			return &all[i];
	return NULL;
}

static enum hold_result expected(const struct past *p)
{
	return !p->has_answer ? HOLD_WAIT : p->yes ? HOLD_PASS : HOLD_NO;
}

static enum hold_result expect_new(void)
{
	uint32_t open = 0, hour = 0;

	for (size_t i = 0; i < n_all; i++) {
		open += lives(&all[i]) && !all[i].has_answer;
		hour += now - all[i].opened < 60 * 60000;
	}
	return open >= max_open ? HOLD_CROWDED : hour >= max_hour ? HOLD_OFTEN : HOLD_WAIT;
}

/* ---- the steps ---- */

static struct hold_text request(uint8_t number)
{
	struct hold_text t = {.effects = "http:get a /\n", .rule = "ask", .preview = ""};

	memset(t.digest, number, sizeof(t.digest));
	return t;
}

static void use(struct hold *h, struct past *p)
{
	CHECK(p && p->has_answer && p->yes && !p->used && !p->dropped);
	CHECK(now < end_of(p));
	p->used = !p->many;
	hold_use(h);
}

static void start_waiting(uint8_t number)
{
	for (size_t i = 0; i < WAITERS; i++) {
		if (waiters[i].used)
			continue;
		waiters[i] = (struct waiter){true, number, now};
		return;
	}
}

static void step_ask(void)
{
	uint8_t number = (uint8_t)below(DIGESTS);
	struct hold_text t = request(number);
	struct past *p = past_of(number);
	enum hold_result want = p ? expected(p) : expect_new();
	struct hold *h;
	bool is_new;

	CHECK(hold_ask(&holds, &t, now, &h, &is_new) == want);
	CHECK(is_new == (!p && want == HOLD_WAIT));
	if (is_new) {
		for (size_t i = 0; i < n_all; i++)
			CHECK(!lives(&all[i]) || strcmp(all[i].id, h->id) != 0);
		p = &all[n_all++];
		*p = (struct past){.number = number, .opened = now};
		memcpy(p->id, h->id, sizeof(p->id));
	}
	if (!p)
		return;
	CHECK(strcmp(h->id, p->id) == 0);
	if (!p->has_answer)
		p->asked = now;
	if (want == HOLD_PASS && below(4))
		use(h, p);
	if (want == HOLD_WAIT)
		start_waiting(number);
}

static void wake(struct waiter *w)
{
	struct hold_text t = request(w->number);
	struct past *p = past_of(w->number);
	bool late = now - w->since >= 55000;
	enum hold_result want = !p ? HOLD_SPENT : expected(p);
	struct hold *h;

	if (want == HOLD_WAIT && late)
		want = HOLD_PENDING;
	CHECK(hold_again(&holds, t.digest, w->since, now, &h) == want);
	if (p)
		CHECK(strcmp(h->id, p->id) == 0);
	if (want == HOLD_PASS)
		use(h, p);
	w->used = want == HOLD_WAIT;
}

static void step_wake(bool every)
{
	struct waiter *w = &waiters[below(WAITERS)];

	for (size_t i = 0; every && i < WAITERS; i++)
		if (waiters[i].used)
			wake(&waiters[i]);
	if (!every && w->used)
		wake(w);
}

/* Also ids of holds that no longer exist, and other digests. */
static void step_answer(void)
{
	struct past *p = n_all ? &all[below((uint32_t)n_all)] : NULL;
	uint8_t number = p && below(4) ? p->number : (uint8_t)below(DIGESTS);
	struct hold_text t = request(number);
	static const uint64_t times[] = {0, 0, 0, 2000000, HOLD_NO_END};
	struct hold_decision what = {
		.yes = below(3) != 0, .for_ms = times[below(ARRAY_LEN(times))]};
	const struct hold_decision other = {.yes = !what.yes};
	bool is_other;
	int want;

	if (!p) {
		CHECK(hold_answer(&holds, "ZZZZ", t.digest, &what, now) == -ENOENT);
		return;
	}
	/* Another hold may have got the id later. */
	for (size_t i = 0; i < n_all; i++)
		if (strcmp(all[i].id, p->id) == 0 && lives(&all[i]))
			p = &all[i];
	is_other = number != p->number;
	want = !lives(p)       ? -ENOENT
	       : is_other      ? -ESTALE
	       : p->withdrawn  ? -ECANCELED
	       : p->has_answer ? -EALREADY
			       : 0;
	CHECK(hold_answer(&holds, p->id, t.digest, &what, now) == want);
	if (want)
		return;
	p->has_answer = true;
	p->yes = what.yes;
	p->many = what.yes && what.for_ms;
	p->always = p->many && what.for_ms == HOLD_NO_END;
	p->valid = p->many ? what.for_ms : 15 * 60000;
	p->answered = now;
	/* A second person at the same moment. */
	if (below(2))
		CHECK(hold_answer(&holds, p->id, t.digest, &other, now) == -EALREADY);
}

/* The connection of one that waits closes. */
static void step_leave(void)
{
	struct waiter *w = &waiters[below(WAITERS)];
	struct hold_text t = request(w->number);
	struct past *p = past_of(w->number);
	bool others = false, open = p && !p->has_answer;
	struct hold *h;

	if (!w->used)
		return;
	w->used = false;
	for (size_t i = 0; i < WAITERS; i++)
		others = others || (waiters[i].used && waiters[i].number == w->number);
	if (others)
		return;
	h = hold_withdraw(&holds, t.digest, now);
	CHECK(!h == !open);
	if (!open)
		return;
	CHECK(strcmp(h->id, p->id) == 0);
	p->withdrawn = p->has_answer = true;
	p->answered = now;
	p->valid = 15 * 60000;
}

static void step_policy(void)
{
	hold_on_policy(&holds);
	for (size_t i = 0; i < n_all; i++)
		all[i].dropped = all[i].dropped || (all[i].has_answer && lives(&all[i]));
}

static void step_time(void)
{
	static const uint32_t jumps[] = {1, 1000, 20000, 54999, 55000, 300000, 899999, 900000};
	uint64_t next = UINT64_MAX;

	now += jumps[below(ARRAY_LEN(jumps))];
	if (below(2)) /* expired ones must not count either */
		return;
	for (size_t i = 0; i < n_all; i++)
		if (lives(&all[i]))
			next = MIN(next, end_of(&all[i]));
	(void)hold_expire(&holds, now);
	CHECK(hold_next_ms(&holds) == next);
}

static void step(void)
{
	switch (below(16)) {
	case 0:
		step_policy();
		break;
	case 1:
	case 2:
	case 3:
		step_time();
		break;
	case 4:
		step_leave();
		break;
	case 5:
		step_wake(true);
		break;
	case 6:
	case 7:
	case 8:
		step_wake(false);
		break;
	case 9:
	case 10:
	case 11:
		step_answer();
		break;
	default:
		step_ask();
	}
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;

	for (seed = 1; seed <= n; seed++) {
		rand_x = seed;
		now = seed * 1000;
		n_all = 0;
		memset(waiters, 0, sizeof(waiters));
		hold_init(&holds, seed);
		max_open = 1 + below(5);
		max_hour = 1 + below(20);
		hold_limits(&holds, max_open, max_hour);
		for (unsigned i = 0; i < STEPS; i++)
			step();
		hold_done(&holds);
	}
	printf("%lu random orders of %d steps: as the model\n", n, STEPS);
	return 0;
}
