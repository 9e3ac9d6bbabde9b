/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/api/policy_file.h"
#include "lib/client/cli/when.h"
#include "ceiling.h"
#include "policy_verbs.h"

const struct opt_def policy_diff_opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

/* Which policy allows something that the other one denies. */
struct side {
	const char *name, *other;
	enum contain_result result;
	struct contain_witness w;
};

/* NULL: the policy of this installation. */
static int load_policy(const char *path, struct rules *ret, struct problem *p)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r;

	if (!path)
		return policy_file_load(ret, p);
	r = policy_file_read(path, &text, &n, p);
	return r < 0 ? r : rules_decode(slice_of(text, n), path, ret, &p->err);
}

static char *target_text(const struct contain_witness *w)
{
	bool is_v6 = w->host.is_addr && w->host.addr.n == 16;

	return xasprintf("%s%s%s:%u", is_v6 ? "[" : "", w->host.name, is_v6 ? "]" : "", w->port);
}

static void print_witness(const struct side *s, uint64_t now_ms)
{
	AUTO_FREE char *target = target_text(&s->w);
	char at[WHEN_TEXT];

	printf("%s allows %s, which %s denies", s->name, target, s->other);
	if (s->w.sandbox[0])
		printf(", in sandbox %s", s->w.sandbox);
	when_print(s->w.at_ms, false, at);
	if (s->w.at_ms > now_ms)
		printf(", from %s on", at);
	(void)putchar('\n');
}

static void print_side(const struct side *s, uint64_t now_ms)
{
	if (s->result == CONTAIN_NO)
		print_witness(s, now_ms);
	else if (s->result == CONTAIN_YES)
		printf("%s allows nothing that %s denies\n", s->name, s->other);
	else
		printf("%s: not proven whether it allows more than %s: %s\n", s->name, s->other,
			s->w.why);
}

static json_t *describe_side(const struct side *s)
{
	static const char *const words[] = {[CONTAIN_YES] = "contained",
		[CONTAIN_NO] = "wider",
		[CONTAIN_UNPROVEN] = "not-proven"};
	bool is_wider = s->result == CONTAIN_NO;
	json_t *witness = json_null();
	char at[WHEN_TEXT];

	when_print(s->w.at_ms, false, at);
	if (is_wider)
		witness = json_pack("{s:s, s:i, s:s?, s:s}", "host", s->w.host.name, "port",
			(int)s->w.port, "sandbox", s->w.sandbox[0] ? s->w.sandbox : NULL, "at", at);
	return json_pack("{s:s, s:o, s:s?}", "result", words[s->result], "witness", witness, "why",
		s->result == CONTAIN_UNPROVEN ? s->w.why : NULL);
}

static void print_sides(const struct side sides[2], uint64_t now_ms, bool json)
{
	AUTO_JSON json_t *whole = NULL;

	if (json) {
		whole = json_pack("{s:o, s:o}", "new", describe_side(&sides[0]), "old",
			describe_side(&sides[1]));
		api_print(whole);
		return;
	}
	print_side(&sides[0], now_ms);
	print_side(&sides[1], now_ms);
}

int policy_diff_run(struct opts *o)
{
	const char *old_path = o->args.n == 2 ? o->args.v[0] : NULL,
		   *new_path = o->args.v[o->args.n - 1];
	AUTO_RULES struct rules old = {0}, new = {0};
	AUTO_CEILING struct ceiling ceiling = {0};
	const struct contain_limit *limit;
	uint64_t now_ms = clock_wall_ms();
	struct side sides[] = {{.name = new_path, .other = old_path ? old_path : "the policy"},
		{.name = old_path ? old_path : "the policy", .other = new_path}};
	struct problem p = {0};
	int r = load_policy(old_path, &old, &p);

	if (r == 0)
		r = load_policy(new_path, &new, &p);
	if (r < 0)
		return ui_problem(&p, r);
	limit = ceiling_load(&ceiling);
	sides[0].result = contain_check_limited(&new, &old, limit, now_ms, &sides[0].w);
	sides[1].result = contain_check_limited(&old, &new, limit, now_ms, &sides[1].w);
	print_sides(sides, now_ms, opts_has(o, "json"));
	return sides[0].result == CONTAIN_YES ? EXIT_OK : EXIT_FAILED;
}
