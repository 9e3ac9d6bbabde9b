/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about requests: what the keeper decides on the head that edge reports. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/hash/siphash.h"
#include "lib/rules/head/head.h"
#include "lib/rules/policy/policy_request.h"
#include "lib/rules/policy/table.h"
#include "lib/wire/http/canon/canon_named.h"
#include "gate_internal.h"

static_assert(EDGE_MAX_WANTS >= CANON_NAMED_NAMES, "all names can be sent");
static_assert(EDGE_MAX_EFFECT > EFFECT_MAX_TEXT && EDGE_MAX_INSTEAD >= HEAD_MAX_RULE,
	"the texts of a refusal can be sent");

static struct policy_op op_of(
	const struct gate *g, const struct host *host, uint16_t port, uint64_t now_ms)
{
	return (struct policy_op){.kind = RULE_NETWORK,
		.host = host,
		.port = port,
		.now_ms = now_ms,
		.locals = &g->locals};
}

static const struct pack *pack_of(const struct gate *g, const struct policy_op *op)
{
	return g->packs ? packs_of_host(g->packs, host_slice(op->host), op->port) : NULL;
}

void gate_set_packs(struct gate *g, const struct packs *packs)
{
	g->packs = packs;
}

bool gate_has_api(const struct gate *g)
{
	return policy_has_api(g->policy);
}

const struct pack *gate_pack(const struct gate *g, const char *host, uint16_t port)
{
	struct host h;
	struct policy_op op = op_of(g, &h, port, 0);

	return host_from_wire(slice_from_str(host), &h, NULL) == 0 ? pack_of(g, &op) : NULL;
}

bool gate_needs_rule(
	const struct gate *g, const char *host, uint16_t port, uint64_t now_ms, char *ret_rule)
{
	struct host h;
	struct policy_op op = op_of(g, &h, port, now_ms);

	return host_from_wire(slice_from_str(host), &h, NULL) == 0 &&
	       head_is_needed(g->policy, &op, pack_of(g, &op), ret_rule);
}

bool gate_needs_head(const struct gate *g, const char *host, uint16_t port, uint64_t now_ms)
{
	return gate_needs_rule(g, host, port, now_ms, NULL);
}

/* Not 0, and another one for other names. */
static uint32_t wants_id(const struct gate *g, const char *wants)
{
	return wants[0] ? (uint32_t)siphash(g->key, slice_from_str(wants)) | 1 : 0;
}

/* What the ask says, in the form of a request. -EBADMSG: edge did not make these headers. */
static int read_ask(const struct edge_ask *ask, struct http_headers *headers, struct head *ret)
{
	struct slice path = edge_ask_path(ask);
	const char *query = ask->target + path.n;

	*ret = (struct head){.method = slice_from_str(ask->method),
		.host = slice_from_str(ask->host),
		.port = ask->port,
		.path = path,
		.query = slice_from_str(*query == '?' ? query + 1 : query),
		.has_query = *query == '?',
		.headers = headers};
	return canon_named_read(slice_from_str(ask->named), headers);
}

/* The command for the one request, if no rule speaks against it. */
static void put_command(const struct edge_ask *ask, const struct head_decision *d,
	const char *sandbox, struct edge_verdict *ret)
{
	struct slice path = d->effects.path;
	bool plain = path.n > 0 && path.n < 200 && !memchr(path.p, '\'', path.n) &&
		     !memchr(path.p, '*', path.n);
	char port[8] = "";

	if (d->rule[0] || !plain || d->effects.odd) {
		ret->no_rule_helps = true;
		return;
	}
	if (ask->port != 443)
		(void)snprintf(port, sizeof(port), ":%u", ask->port);
	(void)snprintf(ret->command, sizeof(ret->command),
		"sbx policy allow http '%s%s%.*s' --method %s%s%s", ask->host, port, (int)path.n,
		(const char *)path.p, ask->method, sandbox[0] ? " --sandbox " : "", sandbox);
}

static void refuse_head(const struct edge_ask *ask, const struct head_decision *d,
	const char *sandbox, struct judgement *j, struct edge_verdict *ret)
{
	char effect[EFFECT_MAX_TEXT + 1];

	gate_refuse(j, ret, d->reason);
	ret->no_rule_helps = false;
	ret->sandbox[0] = '\0';
	(void)snprintf(j->rule, sizeof(j->rule), "%s", d->id[0] ? d->id : d->rule);
	(void)snprintf(ret->rule, sizeof(ret->rule), "%s", d->rule);
	(void)snprintf(ret->instead, sizeof(ret->instead), "%s", d->instead);
	if (d->effects.n) {
		(void)effect_print(&d->effects.v[d->which], effect);
		(void)snprintf(ret->effect, sizeof(ret->effect), "%s", effect);
	}
	put_command(ask, d, sandbox, ret);
}

static void put_wants(const char *wants, uint32_t id, struct judgement *j, struct edge_verdict *ret)
{
	gate_refuse(j, ret, "the rules about this host have changed: try again");
	ret->rule[0] = '\0';
	(void)snprintf(ret->wants, sizeof(ret->wants), "%s", wants);
	ret->wants_id = id;
}

/* False: edge must send other headers. */
static bool decide_ask(struct gate *g, const struct edge_ask *ask, const struct policy_op *op,
	const char *wants, struct head_decision *ret)
{
	static struct http_header list[CANON_NAMED_HEADERS];
	struct http_headers headers = {list, 0, CANON_NAMED_HEADERS};
	struct head h;

	if (ask->wants_id != wants_id(g, wants))
		return false;
	*ret = (struct head_decision){.answer = HEAD_DENIED, .reason = "malformed request"};
	arena_reset(&g->arena);
	if (read_ask(ask, &headers, &h) == 0)
		head_decide(g->policy, op, pack_of(g, op), &h, &g->arena, ret);
	return true;
}

const char *gate_join_effects(struct gate *g, const char *lines)
{
	struct wr wr = wr_init((uint8_t *)g->effects, sizeof(g->effects) - 1);

	while (*lines) {
		size_t n = strcspn(lines, "\n");

		wr_printf(&wr, "%s%.*s", wr.n ? "; " : "", (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
	g->effects[wr.n] = '\0';
	return g->effects;
}

/* What the record names: also effects that are too long for a person to approve. */
static void name_effects(struct gate *g, const struct head_decision *d, struct judgement *j)
{
	struct wr wr = wr_init((uint8_t *)g->effects, sizeof(g->effects) - 1);
	char text[EFFECT_MAX_TEXT + 1];

	(void)snprintf(
		j->where, sizeof(j->where), "%s", policy_is_closed(g->policy) ? "" : d->where);
	if (d->effects.n == 0)
		return;
	for (size_t i = 0; i < d->effects.n; i++) {
		(void)effect_print(&d->effects.v[i], text);
		wr_printf(&wr, "%s%s", i ? "; " : "", text);
	}
	g->effects[wr.n] = '\0';
	j->effects = g->effects;
	effect_digest(d->effects.v, d->effects.n, slice_of(NULL, 0), j->digest);
}

/* The texts for a person. A cut effect cannot be displayed: it is left out, and no hold is made. */
static void put_asked(struct gate *g, const struct head_decision *d)
{
	struct wr wr = wr_init((uint8_t *)g->hold_effects, sizeof(g->hold_effects) - 1);
	char text[EFFECT_MAX_TEXT + 1];
	bool is_cut = false;

	for (size_t i = 0; i < d->effects.n; i++) {
		(void)effect_print(&d->effects.v[i], text);
		wr_printf(&wr, "%s\n", text);
		is_cut = is_cut || strstr(text, " cut=");
	}
	g->hold_effects[is_cut ? 0 : wr.n] = '\0';
	(void)snprintf(g->hold_rule, sizeof(g->hold_rule), "%s", d->rule);
	(void)snprintf(g->where, sizeof(g->where), "%s", d->where);
	g->hold =
		(struct hold_text){.effects = g->hold_effects, .rule = g->hold_rule, .preview = ""};
	effect_digest(d->effects.v, d->effects.n, slice_of(NULL, 0), g->hold.digest);
	g->is_asked = true;
}

void gate_judge_head(struct gate *g, const struct edge_ask *ask, const struct policy_op *op,
	struct judgement *j, struct edge_verdict *ret)
{
	char wants[CANON_NAMED_NAMES], sandbox[EDGE_MAX_NAME];
	struct head_decision d;

	if (!head_is_needed(g->policy, op, pack_of(g, op), NULL))
		return;
	if (pack_of(g, op) && !ask->tls) { /* sbx-egress has no packs */
		gate_refuse(j, ret, "rules are about the API of this host: use https");
		return;
	}
	head_get_wants(g->policy, op, pack_of(g, op), wants);
	if (!decide_ask(g, ask, op, wants, &d)) {
		put_wants(wants, wants_id(g, wants), j, ret);
		return;
	}
	name_effects(g, &d, j);
	if (d.answer == HEAD_HELD && !g->is_approved) {
		put_asked(g, &d);
		return;
	}
	if (d.answer == HEAD_DENIED) {
		(void)snprintf(sandbox, sizeof(sandbox), "%s", ret->sandbox);
		refuse_head(ask, &d, sandbox, j, ret);
		return;
	}
	(void)snprintf(j->rule, sizeof(j->rule), "%s", d.id[0] ? d.id : d.rule);
	(void)snprintf(j->reason, sizeof(j->reason), "%s%s", d.reason,
		d.answer == HEAD_HELD ? "; approved" : "");
}

void gate_put_wants(
	struct gate *g, const struct edge_ask *ask, uint64_t now_ms, struct edge_verdict *ret)
{
	struct host host;
	struct policy_op op = op_of(g, &host, ask->port, now_ms);

	if (host_from_wire(slice_from_str(ask->host), &host, NULL) < 0)
		return;
	head_get_wants(g->policy, &op, pack_of(g, &op), ret->wants);
	ret->wants_id = wants_id(g, ret->wants);
}

bool gate_passes_head(struct gate *g, const struct edge_ask *ask, uint64_t now_ms)
{
	char wants[CANON_NAMED_NAMES];
	struct head_decision d;
	struct host host;
	struct policy_op op = op_of(g, &host, ask->port, now_ms);

	if (host_from_wire(slice_from_str(ask->host), &host, NULL) < 0)
		return false;
	if (!head_is_needed(g->policy, &op, pack_of(g, &op), NULL))
		return true;
	head_get_wants(g->policy, &op, pack_of(g, &op), wants);
	return decide_ask(g, ask, &op, wants, &d) && d.answer == HEAD_ALLOWED;
}
