/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a decision costs, as one line of JSON: the sizes of policy in turn, so that a noisy moment
 * hits all of them. `ns_*` goes round HOT targets, as a busy sandbox does; `cold_*` round COLD
 * ones, so many that hardly anything is still in the caches when it comes round again. `request_*`
 * is policy_decide_request with 100,000 rules of all kinds and two effects; `cold` goes round
 * COLD_REQUESTS of them.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "random_requests.h"

#define HOT 1024u
#define COLD 32768u
#define COLD_REQUESTS 8192u
#define ROUNDS 31

static const size_t sizes[] = {10, 1000, 100000};

struct arm {
	struct policy *p;
	struct host *host;
	struct policy_op *op;
	double hot[ROUNDS], cold[ROUNDS];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void set_up(struct arm *arm, size_t n)
{
	struct random_state rs = {n};
	struct rules rules = {0};

	random_rules_wide(&rs, n, &rules);
	arm->p = policy_new(&rules, "bench");
	rules_done(&rules);
	arm->host = calloc(COLD, sizeof(*arm->host));
	arm->op = calloc(COLD, sizeof(*arm->op));
	if (policy_fault(arm->p) || !arm->host || !arm->op)
		abort();
	for (size_t i = 0; i < COLD; i++)
		random_op_wide(&rs, n, &arm->host[i], &arm->op[i]);
}

/* Nanoseconds a decision, over COLD decisions in all. */
static double measure(const struct arm *arm, size_t targets, size_t *allowed)
{
	uint64_t begin = now_ns();

	for (size_t i = 0; i < COLD; i++) {
		struct policy_decision d;

		policy_decide(arm->p, &arm->op[i % targets], &d);
		*allowed += d.allowed;
	}
	return (double)(now_ns() - begin) / COLD;
}

/* ---- requests ---- */

struct requests {
	struct policy *p;
	struct random_request *list;
	double hot[ROUNDS], cold[ROUNDS];
};

static void set_up_requests(struct requests *q, size_t n)
{
	struct random_state rs = {n};
	struct rules rules = {0};

	random_requests_wide(&rs, n, &rules);
	q->p = policy_new(&rules, "bench");
	rules_done(&rules);
	q->list = calloc(COLD_REQUESTS, sizeof(*q->list));
	if (policy_fault(q->p) || !q->list)
		abort();
	for (size_t i = 0; i < COLD_REQUESTS; i++)
		random_request_wide(&rs, n, &q->list[i]);
}

/* Nanoseconds an effect: a request has two. */
static double measure_requests(const struct requests *q, size_t targets, size_t *permitted)
{
	uint64_t begin = now_ns();

	for (size_t i = 0; i < COLD_REQUESTS; i++) {
		struct policy_outcome out;

		policy_decide_request(q->p, &q->list[i % targets].req, &out);
		*permitted += out.is_governed && out.verdict != POLICY_DENIES;
	}
	return (double)(now_ns() - begin) / COLD_REQUESTS / 2;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list)
{
	qsort(list, ROUNDS, sizeof(*list), compare);
	return list[ROUNDS / 2];
}

int main(void)
{
	struct arm arm[ARRAY_LEN(sizes)] = {0};
	struct requests q = {0};
	size_t allowed = 0, permitted = 0, before, n = 0;
	double ratio[ROUNDS], cold_ratio[ROUNDS];

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		set_up(&arm[i], sizes[i]);
	set_up_requests(&q, sizes[2]);
	before = mallinfo2().uordblks;
	for (size_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			arm[i].cold[round] = measure(&arm[i], COLD, &allowed);
			arm[i].hot[round] = measure(&arm[i], HOT, &allowed);
			n += 2 * COLD;
		}
		q.cold[round] = measure_requests(&q, COLD_REQUESTS, &permitted);
		q.hot[round] = measure_requests(&q, HOT, &permitted);
		ratio[round] = arm[2].hot[round] / arm[0].hot[round];
		cold_ratio[round] = arm[2].cold[round] / arm[0].cold[round];
	}
	before = mallinfo2().uordblks - before;
	printf("{\"ns_10\": %.1f, \"ns_1000\": %.1f, \"ns_100000\": %.1f, \"ratio\": %.3f, ",
		median(arm[0].hot), median(arm[1].hot), median(arm[2].hot), median(ratio));
	printf("\"cold_10\": %.1f, \"cold_100000\": %.1f, \"cold_ratio\": %.3f, ",
		median(arm[0].cold), median(arm[2].cold), median(cold_ratio));
	printf("\"request_ns\": %.1f, \"request_cold\": %.1f, \"permitted_share\": %.2f, ",
		median(q.hot), median(q.cold), (double)permitted / (2.0 * ROUNDS * COLD_REQUESTS));
	printf("\"allowed_share\": %.2f, \"heap_growth\": %zu}\n", (double)allowed / (double)n,
		before);
	return 0;
}
