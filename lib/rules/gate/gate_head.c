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

/* Whether it can be a part of a command as it is. */
static bool is_word(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("'*,\\\"$`", s.p[i]))
			return false;
	return s.n > 0 && s.n < 100;
}

/* The command for an effect of a push. */
static void put_git_command(const struct effect *e, const char *sandbox, struct edge_verdict *ret)
{
	char port[8] = "", path[300] = "";

	if (e->is_unknown || !is_word(e->target) || !is_word(e->object) ||
		(e->path.n && !is_word(e->path))) {
		ret->no_rule_helps = true;
		return;
	}
	if (e->port != 443)
		(void)snprintf(port, sizeof(port), ":%u", e->port);
	if (e->path.n)
		(void)snprintf(path, sizeof(path), " --path '%.*s'", (int)e->path.n,
			(const char *)e->path.p);
	(void)snprintf(ret->command, sizeof(ret->command),
		"sbx policy allow git %.*s%s/%.*s --do %.*s --ref '%.*s'%s%s%s", (int)e->host.n,
		(const char *)e->host.p, port, (int)e->target.n, (const char *)e->target.p,
		(int)e->verb.n, (const char *)e->verb.p, (int)e->object.n,
		(const char *)e->object.p, path, sandbox[0] ? " --sandbox " : "", sandbox);
}

/* The command for an effect of calls. */
static void put_api_command(const struct effect *e, const char *sandbox, struct edge_verdict *ret)
{
	if (e->is_unknown || !is_word(e->target) || !is_word(e->verb) || !is_word(e->object)) {
		ret->no_rule_helps = true;
		return;
	}
	(void)snprintf(ret->command, sizeof(ret->command),
		"sbx policy allow api %.*s --do %.*s --on '%.*s'%s%s", (int)e->target.n,
		(const char *)e->target.p, (int)e->verb.n, (const char *)e->verb.p,
		(int)e->object.n, (const char *)e->object.p, sandbox[0] ? " --sandbox " : "",
		sandbox);
}

/* The command for the one request, if no rule speaks against it. */
static void put_command(const struct edge_ask *ask, const struct head_decision *d,
	const char *sandbox, struct edge_verdict *ret)
{
	struct slice path = d->effects.path;
	bool plain = path.n > 0 && path.n < 200 && !memchr(path.p, '\'', path.n) &&
		     !memchr(path.p, '*', path.n);
	char port[8] = "";

	if (d->content != HEAD_NO_CONTENT && d->which == d->effects.at_content && !d->rule[0] &&
		!d->is_managed) {
		if (d->content == HEAD_CALLS)
			put_api_command(&d->effects.v[d->which], sandbox, ret);
		else
			put_git_command(&d->effects.v[d->which], sandbox, ret);
		return;
	}
	if (d->rule[0] || !plain || d->effects.odd || d->is_managed) {
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

/* Why the content could not be understood, behind the reason. */
static void add_unknown(const struct gate *g, struct head_decision *d)
{
	size_t n = strlen(d->reason);

	if (g->pushed && g->pushed->unknown && d->effects.v[d->which].is_unknown)
		(void)snprintf(d->reason + n, sizeof(d->reason) - n, ": %s", g->pushed->unknown);
}

static void put_wants(const char *wants, uint32_t id, struct judgement *j, struct edge_verdict *ret)
{
	gate_refuse(j, ret, "the rules about this host have changed: try again");
	ret->rule[0] = '\0';
	(void)snprintf(ret->wants, sizeof(ret->wants), "%s", wants);
	ret->wants_id = id;
}

/* False: edge must send other headers. */
static bool decide_head(struct gate *g, const struct edge_ask *ask, const struct policy_op *op,
	const struct head_read *push, struct head_decision *ret)
{
	static struct http_header list[CANON_NAMED_HEADERS];
	struct http_headers headers = {list, 0, CANON_NAMED_HEADERS};
	char wants[CANON_NAMED_NAMES];
	struct head h;

	head_get_wants(g->policy, op, pack_of(g, op), wants);
	if (ask->wants_id != wants_id(g, wants))
		return false;
	*ret = (struct head_decision){.answer = HEAD_DENIED, .reason = "malformed request"};
	arena_reset(&g->arena);
	if (read_ask(ask, &headers, &h) < 0)
		return true;
	h.read = push;
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

void gate_judge_head(struct gate *g, const struct edge_ask *ask, const struct policy_op *op,
	struct judgement *j, struct edge_verdict *ret)
{
	const struct head_read push = {
		g->pushed ? g->pushed->effect : NULL, g->pushed ? g->pushed->n : 0};
	char wants[CANON_NAMED_NAMES], sandbox[EDGE_MAX_NAME];
	struct head_decision d;

	if (!head_is_needed(g->policy, op, pack_of(g, op), NULL))
		return;
	if (pack_of(g, op) && !ask->tls) { /* sbx-egress has no packs */
		gate_refuse(j, ret, "rules are about the API of this host: use https");
		return;
	}
	if (!decide_head(g, ask, op, g->pushed ? &push : NULL, &d)) {
		head_get_wants(g->policy, op, pack_of(g, op), wants);
		put_wants(wants, wants_id(g, wants), j, ret);
		return;
	}
	gate_name_effects(g, &d, j);
	if (d.answer == HEAD_HELD && !g->is_approved) {
		gate_put_asked(g, &d);
		return;
	}
	if (d.answer == HEAD_DENIED) {
		add_unknown(g, &d);
		(void)snprintf(sandbox, sizeof(sandbox), "%s", ret->sandbox);
		refuse_head(ask, &d, sandbox, j, ret);
		return;
	}
	(void)snprintf(j->rule, sizeof(j->rule), "%s", d.id[0] ? d.id : d.rule);
	(void)snprintf(j->reason, sizeof(j->reason), "%s%s", d.reason,
		d.answer == HEAD_HELD ? "; approved" : "");
	if (d.content != HEAD_NO_CONTENT && !g->pushed)
		gate_put_push(g, ask, &d, j, ret);
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

uint32_t gate_get_wants(struct gate *g, const struct edge_ask *ask, uint64_t now_ms, char *names)
{
	struct edge_verdict v = {0};

	gate_put_wants(g, ask, now_ms, &v);
	(void)snprintf(names, EDGE_MAX_WANTS, "%s", v.wants);
	return v.wants_id;
}

static bool passes_head(
	struct gate *g, const struct edge_ask *ask, const struct head_read *push, uint64_t now_ms)
{
	struct head_decision d;
	struct host host;
	struct policy_op op = op_of(g, &host, ask->port, now_ms);

	if (host_from_wire(slice_from_str(ask->host), &host, NULL) < 0)
		return false;
	if (!head_is_needed(g->policy, &op, pack_of(g, &op), NULL))
		return true;
	return decide_head(g, ask, &op, push, &d) && d.answer == HEAD_ALLOWED;
}

bool gate_passes_head(struct gate *g, const struct edge_ask *ask, bool is_judged, uint64_t now_ms)
{
	static const struct head_read judged = {0};

	return passes_head(g, ask, is_judged ? &judged : NULL, now_ms);
}

bool gate_passes_push(struct gate *g, const struct edge_ask *ask, const struct gate_pushed *pushed,
	uint64_t now_ms)
{
	const struct head_read push = {pushed->effect, pushed->n};

	return passes_head(g, ask, &push, now_ms);
}
