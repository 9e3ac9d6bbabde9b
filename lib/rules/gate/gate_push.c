/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes of git and calls of GraphQL, whose content decides, and the texts of what a person must
 * approve. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "gate_internal.h"
#include "lib/rules/policy/table.h"

const struct gate_push *gate_push(const struct gate *g)
{
	return g->is_push ? &g->push : NULL;
}

void gate_put_push(struct gate *g, const struct edge_ask *ask, const struct head_decision *d,
	struct judgement *j, struct edge_verdict *ret)
{
	const struct effect *e = &d->effects.v[d->effects.at_content];

	if (!ask->tls) { /* sbx-egress sends what it gets: nobody reads it */
		if (d->content == HEAD_PUSH)
			gate_refuse(j, ret, "rules are about pushes to this repository: use https");
		return;
	}
	g->is_push = true;
	g->push = (struct gate_push){.is_calls = d->content == HEAD_CALLS,
		.is_advert = d->content == HEAD_ADVERT,
		.paths = d->paths,
		.asks = d->asks};
	/* It is a part of the target, or a name of a pack. */
	(void)snprintf(g->push.repository, sizeof(g->push.repository), "%.*s", (int)e->target.n,
		(const char *)e->target.p);
}

void gate_decide_push(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, const struct gate_pushed *pushed, const char *hold,
	uint64_t now_ms, struct edge_verdict *ret)
{
	g->pushed = pushed;
	if (hold)
		gate_decide_approved(g, ask, binding, hold, now_ms, ret);
	else
		gate_decide_bound(g, ask, binding, now_ms, ret);
	g->pushed = NULL;
}

void gate_refuse_push(struct gate *g, const struct edge_ask *ask, const struct gate_push *push,
	const char *why, struct edge_verdict *ret)
{
	const struct effect e = {.kind = push->is_calls ? EFFECT_API : EFFECT_GIT,
		.is_unknown = true,
		.host = slice_from_str(push->is_calls ? "" : ask->host),
		.port = push->is_calls ? 0 : ask->port,
		.target = slice_from_str(push->repository),
		.why = slice_from_str("body")};
	char text[EFFECT_MAX_TEXT + 1];
	struct hold_text what = {.effects = text, .rule = "", .preview = ""};

	(void)effect_print(&e, text);
	effect_digest(&e, 1, slice_of(NULL, 0), what.digest);
	g->where[0] = '\0';
	gate_refuse_asked(g, ask, &what, why, NULL, ret);
}

/* ---- texts ---- */

/* The effect of the head that the content of a push replaces. */
static bool is_replaced(const struct gate *g, const struct head_decision *d, size_t i)
{
	return g->pushed && d->content != HEAD_NO_CONTENT && i == d->effects.at_content;
}

static void digest_effects(
	const struct gate *g, const struct head_decision *d, uint8_t ret[EFFECT_DIGEST])
{
	struct effect list[HEAD_MAX_EFFECTS];
	size_t n = 0;

	for (size_t i = 0; i < d->effects.n; i++)
		if (!is_replaced(g, d, i))
			list[n++] = d->effects.v[i];
	if (!g->pushed) {
		effect_digest(list, n, slice_of(NULL, 0), ret);
		return;
	}
	effect_digest(
		g->pushed->effect, g->pushed->n, slice_of(g->pushed->commands, SHA256_BYTES), ret);
	/* and of the request that carries it */
	effect_digest(list, n, slice_of(ret, EFFECT_DIGEST), ret);
}

/* -ENOBUFS: there is no room for it. */
static int add_name(struct wr *wr, const struct effect *e)
{
	char text[EFFECT_MAX_TEXT + 1];
	size_t n = effect_print(e, text);

	if (wr->size - wr->n < n + 2)
		return -ENOBUFS;
	wr_printf(wr, "%s%s", wr->n ? "; " : "", text);
	return 0;
}

/* Also effects that are too long for a person to approve. */
void gate_name_effects(struct gate *g, const struct head_decision *d, struct judgement *j)
{
	struct wr wr = wr_init((uint8_t *)g->effects, sizeof(g->effects) - 1);

	(void)snprintf(
		j->where, sizeof(j->where), "%s", policy_is_closed(g->policy) ? "" : d->where);
	if (d->effects.n == 0)
		return;
	for (size_t i = 0; i < d->effects.n; i++)
		if (!is_replaced(g, d, i))
			(void)!add_name(&wr, &d->effects.v[i]);
	/* the record has as many as fit, and the digest of all */
	for (size_t i = 0; g->pushed && i < g->pushed->n; i++)
		if (add_name(&wr, &g->pushed->effect[i]) < 0)
			break;
	g->effects[wr.n] = '\0';
	j->effects = g->effects;
	digest_effects(g, d, j->digest);
}

/* A cut effect cannot be displayed. */
static bool put_effect(struct wr *wr, const struct effect *e)
{
	char text[EFFECT_MAX_TEXT + 1];

	(void)effect_print(e, text);
	wr_printf(wr, "%s\n", text);
	return !strstr(text, " cut=");
}

static bool is_other_ref(const struct effect *a, const struct effect *b)
{
	return !slice_eq(a->verb, b->verb) || !slice_eq(a->object, b->object);
}

/* One line for each ref: the preview has the files. */
static bool put_pushed(struct wr *wr, const struct gate_pushed *pushed)
{
	bool good = true;

	for (size_t i = 0; i < pushed->n; i++) {
		struct effect e = pushed->effect[i];

		if (i > 0 && !is_other_ref(&e, &pushed->effect[i - 1]))
			continue;
		e.path = slice_of(NULL, 0);
		good = put_effect(wr, &e) && good;
	}
	return good && !wr->bad;
}

/* What cannot be displayed is left out, and no hold is made. */
void gate_put_asked(struct gate *g, const struct head_decision *d)
{
	struct wr wr = wr_init((uint8_t *)g->hold_effects, sizeof(g->hold_effects) - 1);
	bool good = true;

	if (g->pushed)
		good = put_pushed(&wr, g->pushed);
	for (size_t i = 0; i < d->effects.n; i++)
		if (!is_replaced(g, d, i))
			good = put_effect(&wr, &d->effects.v[i]) && good;
	g->hold_effects[good ? wr.n : 0] = '\0';
	(void)snprintf(g->hold_rule, sizeof(g->hold_rule), "%s", d->rule);
	(void)snprintf(g->where, sizeof(g->where), "%s", d->where);
	g->hold = (struct hold_text){.effects = g->hold_effects,
		.rule = g->hold_rule,
		.preview = g->pushed ? g->pushed->preview : ""};
	digest_effects(g, d, g->hold.digest);
	g->is_asked = true;
}
