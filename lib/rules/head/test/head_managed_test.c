/* SPDX-License-Identifier: Apache-2.0 */
/* Random pairs of a managed policy and a user's policy, with rules of kind git, against each of the
 * two alone: what one of both refuses is refused, and what one of both asks about is held. The
 * argument is the number of pairs. */
#include "lib/rules/head/head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/rules/policy/policy_request.h"
#include "lib/rules/policy/test/policy_text.h"

#define HOST "git.example.com"
#define EFFECTS 4

struct pair {
	char user[1024], managed[1024];
	struct policy *both, *alone[2]; /* user, managed */
};

static struct pair pair;
static struct host host;
static struct arena arena;
static uint64_t rand_x;
static unsigned long seed, n_seen[3][4];

static uint32_t below(uint32_t n)
{
	rand_x = rand_x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((rand_x >> 33) % n);
}

#define PICK(list) list[below(ARRAY_LEN(list))]
#define CHECK(cond)                                                                             \
	do {                                                                                    \
		if (cond)                                                                       \
			break;                                                                  \
		fprintf(stderr, "pair %lu, line %d: %s\nuser:\n%smanaged:\n%s", seed, __LINE__, \
			#cond, pair.user, pair.managed);                                        \
		exit(1);                                                                        \
	} while (0)

/* ---- rules ---- */

/* Without rules about unknown content, and without denials of fetches alone: they refuse a push as
 * long as no rule about pushes has it read. */
static void put_rule(struct wr *wr)
{
	static const char *const effects[] = {"allow", "allow", "deny", "ask"};
	static const char *const repos[] = {HOST "/acme/*", HOST "/acme/app", HOST "/**", "**"};
	static const char *const verbs[] = {"push", "push,create", "create", "delete", "force",
		"force,delete", "tag", "any", "any"};
	static const char *const refs[] = {
		"refs/heads/main", "refs/heads/agent/**", "refs/tags/**"};
	static const char *const paths[] = {"docs/**", ".github/workflows/**"};

	if (below(5) == 0) {
		wr_printf(wr, "allow git %s do fetch\n", PICK(repos));
		return;
	}
	wr_printf(wr, "%s git %s do %s", PICK(effects), PICK(repos), PICK(verbs));
	if (below(3) == 0)
		wr_printf(wr, " ref %s", PICK(refs));
	if (below(4) == 0)
		wr_printf(wr, " path %s", PICK(paths));
	wr_printf(wr, "\n");
}

static void put_other(struct wr *wr)
{
	static const char *const rules[] = {"allow http " HOST "/** method GET\n",
		"allow http " HOST "/**\n", "ask http " HOST "/** method POST\n",
		"deny http " HOST "/** method POST\n", "allow http other.example.com/**\n"};

	wr_printf(wr, "%s", PICK(rules));
}

static void make_policy(char *text, size_t size)
{
	struct wr wr = wr_init(text, size - 1);
	uint32_t n = below(4);

	wr_printf(&wr, "policy 2\nallow network " HOST ":443\n");
	for (uint32_t i = 0; i < n; i++)
		put_rule(&wr);
	if (below(4) == 0)
		put_other(&wr);
	wr_printf(&wr, "end\n");
	text[wr.n] = '\0';
}

/* ---- requests ---- */

struct request {
	const char *method, *path, *query;
	bool is_push; /* its content may be known */
	struct effect effect[EFFECTS];
	struct head_read push;
};

static void decide(
	const struct policy *p, const struct request *r, bool known, struct head_decision *ret)
{
	static const struct http_headers none;
	const struct policy_op op = {.kind = RULE_NETWORK, .host = &host, .port = 443};
	const struct head h = {.method = slice_from_str(r->method),
		.host = slice_from_str(HOST),
		.port = 443,
		.path = slice_from_str(r->path),
		.query = slice_from_str(r->query),
		.has_query = r->query[0],
		.headers = &none,
		.read = known ? &r->push : NULL};

	arena_reset(&arena);
	head_decide(p, &op, NULL, &h, &arena, ret);
}

static void make_push(struct request *r, bool paths)
{
	static const char *const verbs[] = {"push", "create", "delete", "force", "tag"};
	static const char *const refs[] = {
		"refs/heads/main", "refs/heads/agent/x", "refs/heads/other", "refs/tags/v1"};
	static const char *const files[] = {"docs/a", ".github/workflows/ci.yml", "src/b"};

	r->push = (struct head_read){r->effect, 1 + below(EFFECTS)};
	for (size_t i = 0; i < r->push.n; i++) {
		bool has_path = paths && below(4);

		r->effect[i] = (struct effect){.kind = EFFECT_GIT,
			.verb = slice_from_str(PICK(verbs)),
			.host = slice_from_str(HOST),
			.port = 443,
			.target = slice_from_str("acme/app"),
			.object = slice_from_str(PICK(refs)),
			.path = has_path ? slice_from_str(PICK(files)) : slice_of(NULL, 0),
			.no_path = paths && !has_path};
	}
}

/* What is read of the content of a push may be decided by only one of both. */
static enum head_answer worse(enum head_answer a, enum head_answer b)
{
	static const enum head_answer order[] = {HEAD_DENIED, HEAD_READ, HEAD_HELD, HEAD_ALLOWED};

	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (a == order[i] || b == order[i])
			return order[i];
	abort();
}

/* The named effect alone is refused too, with the same texts. */
static void check_named(const struct request *r, const struct head_decision *d)
{
	struct request one = *r;
	struct head_decision alone;

	if (d->which != d->effects.at_content)
		return;
	one.effect[0] = d->effects.v[d->which];
	one.push = (struct head_read){one.effect, 1};
	decide(pair.both, &one, true, &alone);
	CHECK(alone.answer == HEAD_DENIED);
	CHECK(strcmp(alone.rule, d->rule) == 0 && alone.is_managed == d->is_managed);
	CHECK(!d->rule[0] || strstr(d->reason, d->rule) || strstr(d->reason, "denied"));
}

static void compare(const struct request *r, bool known)
{
	static struct head_decision got, want[2];
	enum head_answer answer;

	decide(pair.both, r, known, &got);
	for (size_t i = 0; i < 2; i++)
		decide(pair.alone[i], r, known, &want[i]);
	answer = worse(want[0].answer, want[1].answer);
	/* held by one policy; the other one has it read first */
	if (answer == HEAD_HELD && got.answer == HEAD_READ)
		answer = HEAD_READ;
	if (got.answer != answer)
		fprintf(stderr, "%s %s, %sknown: %d; user alone: %d, managed alone: %d\n%s\n",
			r->method, r->path, known ? "" : "un", got.answer, want[0].answer,
			want[1].answer, got.reason);
	CHECK(got.answer == answer);
	CHECK(got.is_managed == (want[1].answer == HEAD_DENIED));
	n_seen[r->is_push + known][answer]++;
	if (known && answer == HEAD_DENIED)
		check_named(r, &got);
}

/* What sbx-clerk-git must find, and whether it prepares for a person. */
static void compare_git(struct policy_git *ret)
{
	const struct policy_op op = {.kind = RULE_NETWORK, .host = &host, .port = 443};
	struct policy_git alone[2];

	policy_find_git(pair.both, &op, slice_from_str("acme/app"), ret);
	for (size_t i = 0; i < 2; i++)
		policy_find_git(pair.alone[i], &op, slice_from_str("acme/app"), &alone[i]);
	CHECK(ret->is_named == (alone[0].is_named || alone[1].is_named));
	CHECK(ret->paths == (alone[0].paths || alone[1].paths));
	CHECK(ret->asks == (alone[0].asks || alone[1].asks));
}

static struct policy *load(const char *text, const char *managed)
{
	return policy_load_limited(slice_from_str(text),
		managed ? slice_from_str(managed) : slice_of(NULL, 0), "user", "demo");
}

static void run_pair(void)
{
	static const struct request fetch = {.method = "POST",
					    .path = "/acme/app/git-upload-pack",
					    .query = ""},
				    advert = {.method = "GET",
					    .path = "/acme/app/info/refs",
					    .query = "service=git-receive-pack"};
	struct request push = {.method = "POST",
		.path = "/acme/app/git-receive-pack",
		.query = "",
		.is_push = true};
	struct policy_git git;

	make_policy(pair.user, sizeof(pair.user));
	make_policy(pair.managed, sizeof(pair.managed));
	pair.both = load(pair.user, pair.managed);
	pair.alone[0] = load(pair.user, NULL);
	pair.alone[1] = load(pair.managed, NULL);
	compare_git(&git);
	compare(&fetch, false);
	compare(&advert, false);
	compare(&push, false);
	for (unsigned i = 0; i < 8; i++) {
		make_push(&push, git.paths);
		compare(&push, true);
	}
	policy_free(pair.both);
	policy_free(pair.alone[0]);
	policy_free(pair.alone[1]);
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;

	if (host_from_wire(slice_from_str(HOST), &host, NULL) < 0)
		abort();
	arena_init(&arena, HTTP_ARENA_SIZE);
	for (seed = 1; seed <= n; seed++) {
		rand_x = seed;
		run_pair();
	}
	arena_done(&arena);
	for (size_t i = 0; i < 3; i++)
		printf("%lu allowed, %lu denied, %lu held, %lu read\n", n_seen[i][HEAD_ALLOWED],
			n_seen[i][HEAD_DENIED], n_seen[i][HEAD_HELD], n_seen[i][HEAD_READ]);
	/* all answers occur */
	return n >= 1000 &&
	       (!n_seen[2][HEAD_HELD] || !n_seen[2][HEAD_ALLOWED] || !n_seen[1][HEAD_READ]);
}
