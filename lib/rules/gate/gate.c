/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <sys/random.h>
#include "lib/base/hash/siphash.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "gate_internal.h"
#include "lib/rules/head/head.h"
#include "lib/rules/policy/table.h"

struct gate *gate_new(const char *name, struct audit *audit)
{
	struct gate *g = xcalloc(1, sizeof(*g));

	gate_set_name(g, name);
	gate_set_audit(g, audit, "no audit log is open");
	g->counters = xcalloc(GATE_COUNTERS, sizeof(*g->counters));
	arena_init(&g->arena, HTTP_ARENA_SIZE);
	/* Without random bytes a guest could make two names share a count, no more. */
	(void)!getrandom(g->key, sizeof(g->key), 0);
	return g;
}

void gate_set_name(struct gate *g, const char *name)
{
	(void)snprintf(g->name, sizeof(g->name), "%s", name);
}

void gate_set_audit(struct gate *g, struct audit *audit, const char *why)
{
	free(g->no_audit);
	g->audit = audit;
	g->no_audit = audit ? NULL : xstrdup(why);
}

bool gate_set_locals(struct gate *g, const struct addr_locals *locals)
{
	if (addr_locals_eq(&g->locals, locals))
		return false;
	g->locals = *locals;
	return true;
}

void gate_put_locals(const struct gate *g, struct egress_locals *ret)
{
	static_assert(EGRESS_MAX_LOCALS == ADDR_MAX_LOCALS, "all of them can be sent");
	ret->n = g->locals.n;
	for (size_t i = 0; i < ret->n; i++) {
		const struct addr_local *from = &g->locals.list[i];
		struct egress_local *to = &ret->list[i];

		*to = (struct egress_local){
			.is_own = from->is_own, .n = from->net.addr.n, .prefix = from->net.prefix};
		memcpy(to->addr, from->net.addr.b, from->net.addr.n);
	}
}

void gate_set_policy(struct gate *g, struct policy *policy)
{
	policy_free(g->policy);
	g->policy = policy;
}

const char *gate_fault(const struct gate *g)
{
	return g->policy ? policy_fault(g->policy)
			 : "no network policy is set: all traffic is denied";
}

/* ---- how often ---- */

static uint64_t hash_ask(const struct gate *g, const struct edge_ask *ask)
{
	uint8_t buf[EDGE_MAX_HOST + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, ask->kind == EDGE_ASK_DNS);
	wr_u16(&wr, ask->port);
	wr_cstr(&wr, ask->host);
	return siphash(g->key, slice_of(buf, wr.n));
}

/* The one with this hash; else a free one, else the least recent. */
static struct counter *find_counter(struct gate *g, uint64_t hash)
{
	struct counter *set = &g->counters[hash % (GATE_COUNTERS / GATE_WAYS) * GATE_WAYS];
	struct counter *old = set;

	for (struct counter *c = set; c < set + GATE_WAYS; c++) {
		if (c->n && c->hash == hash)
			return c;
		if (old->n && (!c->n || g->now - c->used > g->now - old->used))
			old = c;
	}
	*old = (struct counter){.hash = hash};
	return old;
}

uint32_t gate_count_refusal(struct gate *g, const struct edge_ask *ask)
{
	struct counter *c = find_counter(g, hash_ask(g, ask));

	c->used = ++g->now;
	if (c->n < UINT32_MAX)
		c->n++;
	return c->n;
}

/* ---- the record ---- */

static const char *type_word(const struct edge_ask *ask)
{
	/* A client that sends CONNECT uses HTTP; the content of the tunnel is not known yet. */
	bool is_connect = ask->kind == EDGE_ASK_TUNNEL && ask->via == EDGE_VIA_FORWARD;
	enum edge_proto proto =
		is_connect && ask->proto == EDGE_PROTO_HTTP ? EDGE_PROTO_UNKNOWN : ask->proto;

	if (ask->kind == EDGE_ASK_DNS)
		return "dns";
	if (ask->kind == EDGE_ASK_HTTP && ask->tls)
		return "https";
	if (ask->kind == EDGE_ASK_HTTP || proto == EDGE_PROTO_HTTP)
		return "http";
	if (proto == EDGE_PROTO_TLS)
		return "https";
	return proto == EDGE_PROTO_UNKNOWN && ask->port == 443 ? "https" : "tcp";
}

const char *gate_path_word(const struct edge_ask *ask)
{
	if (ask->kind == EDGE_ASK_DNS)
		return "network";
	if (ask->via == EDGE_VIA_TRANSPARENT)
		return "transparent";
	return ask->kind == EDGE_ASK_HTTP ? "forward" : "forward-bypass";
}

void gate_print_op(const struct edge_ask *ask, char *buf)
{
	struct slice path = edge_ask_path(ask);

	buf[0] = '\0';
	if (ask->method[0])
		(void)snprintf(buf, GATE_MAX_OP, "%s %.*s%s", ask->method,
			(int)MIN(path.n, (size_t)GATE_MAX_PATH), ask->target,
			path.n > GATE_MAX_PATH ? " ..." : "");
}

int gate_append(struct gate *g, const struct audit_event *ev, struct err *err)
{
	if (!g->audit)
		return err_set(err, -EIO, "%s", g->no_audit);
	return audit_append(g->audit, ev, NULL, err);
}

static void put_effects(const struct judgement *j, struct audit_event *ev)
{
	if (j->hold)
		ev->hold = slice_from_str(j->hold);
	ev->from = slice_from_str(j->where);
	if (!j->effects || !j->effects[0])
		return;
	ev->effects = slice_from_str(j->effects);
	memcpy(ev->digest, j->digest, sizeof(ev->digest));
}

static int record_gate(struct gate *g, const struct edge_ask *ask, const char *path,
	const struct judgement *j, struct err *err)
{
	char op[GATE_MAX_OP];
	struct audit_event ev = {.kind = AUDIT_KIND_DECISION,
		.decision = j->allowed ? AUDIT_ALLOW : AUDIT_DENY,
		.type = slice_from_str(type_word(ask)),
		.host = slice_from_str(ask->host),
		.port = ask->port,
		.path = slice_from_str(path),
		.rule = slice_from_str(j->rule),
		.reason = slice_from_str(j->reason)};

	gate_print_op(ask, op);
	ev.op = slice_from_str(op);
	put_effects(j, &ev);
	return gate_append(g, &ev, err);
}

/* ---- deciding ---- */

/* The name of the rule in the log and for users: its resources, as `policy rm network --resource`
 * takes them. A list that does not fit is named by its id. */
static void name_rule(
	const struct policy_rule *rule, struct judgement *j, char words[EDGE_MAX_RULE])
{
	struct slice name = rule->id.n ? rule->id : rule->resources;
	struct slice text = rule->resources.n < EDGE_MAX_RULE ? rule->resources : name;

	(void)snprintf(j->rule, sizeof(j->rule), "%.*s", (int)name.n, (const char *)name.p);
	(void)snprintf(words, EDGE_MAX_RULE, "%.*s", (int)text.n, (const char *)text.p);
}

/* The own rules of a closed table are not those of the policy (src/sbxd/policy/closed.h). */
static void place_rule(const struct gate *g, const struct policy_rule *rule, struct judgement *j)
{
	if (!policy_is_closed(g->policy))
		policy_print_where(rule, j->where);
}

/* Sets the reason in the record, and in the verdict if the rule is not enough there. */
static void explain_gate(const struct gate *g, const struct policy_op *op,
	const struct policy_decision *d, struct judgement *j, struct edge_verdict *ret)
{
	j->allowed = d->allowed;
	ret->no_rule_helps = d->why == POLICY_NO_POLICY || d->why == POLICY_FAULT || d->is_managed;
	policy_explain(op, d, j->reason, sizeof(j->reason));
	if (d->why == POLICY_RULE) {
		name_rule(&d->rule, j, ret->rule);
		place_rule(g, &d->rule, j);
	}
	/* The command that would allow it takes a rule away, and this one is every sandbox's. */
	if (d->why == POLICY_RULE && !d->allowed && !d->rule.is_own && !d->is_managed)
		ret->sandbox[0] = '\0';
	else if (d->why != POLICY_NO_RULE || d->is_managed)
		(void)snprintf(
			ret->reason, sizeof(ret->reason), "%.*s", EDGE_MAX_REASON - 1, j->reason);
}

/* A name resolves if any port is allowed; the two usual ports are checked for the texts. */
static void judge_name(
	struct gate *g, struct policy_op *op, struct judgement *j, struct edge_verdict *ret)
{
	static const uint16_t usual[] = {443, 80};
	bool allowed = policy_has_port(g->policy, op);
	struct policy_decision d;

	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		op->port = usual[i];
		policy_decide(g->policy, op, &d);
		if (d.allowed == allowed && d.why == POLICY_RULE)
			break;
	}
	if (d.allowed == allowed)
		explain_gate(g, op, &d, j, ret);
	j->allowed = allowed;
	if (d.allowed != allowed)
		(void)snprintf(j->reason, sizeof(j->reason),
			"allowed: a rule for net:domain:%s names another port", op->host->name);
	else if (d.why == POLICY_NO_RULE)
		(void)snprintf(j->reason, sizeof(j->reason),
			"no applicable policies for op(action=%s, resource=net:domain:%s)",
			rule_action_name(op->kind), op->host->name);
}

void gate_refuse(struct judgement *j, struct edge_verdict *ret, const char *why)
{
	j->allowed = false;
	(void)snprintf(j->reason, sizeof(j->reason), "%s", why);
	(void)snprintf(ret->reason, sizeof(ret->reason), "%s", why);
	ret->no_rule_helps = true;
}

static bool is_loopback(const struct host *h)
{
	return h->is_addr ? addr_classify(&h->addr, NULL) == ADDR_LOOPBACK : host_is_localhost(h);
}

/* A program that does not know no_proxy (busybox's wget, in a health check) means itself. A rule
 * would give it the loopback of the host instead, so none is offered. */
static void refuse_loopback(
	const struct edge_ask *ask, struct judgement *j, struct edge_verdict *ret)
{
	char why[EDGE_MAX_REASON];

	(void)snprintf(why, sizeof(why),
		"loopback address %.64s cannot be reached through the proxy: unset http_proxy for this program (busybox: wget -Y off)",
		ask->host);
	gate_refuse(j, ret, why);
}

/* The program may not know why its connection is read. */
static void refuse_fault(struct gate *g, const struct edge_ask *ask, uint64_t now_ms,
	struct judgement *j, struct edge_verdict *ret)
{
	char rule[HEAD_MAX_RULE], why[EDGE_MAX_REASON];

	if (ask->kind == EDGE_ASK_DNS || !gate_needs_rule(g, ask->host, ask->port, now_ms, rule)) {
		gate_refuse(j, ret, ask->fault);
		return;
	}
	(void)snprintf(why, sizeof(why), "%.160s; requests to %.80s are read for the rule %.160s",
		ask->fault, ask->host, rule);
	gate_refuse(j, ret, why);
}

static void judge_gate(struct gate *g, const struct edge_ask *ask, uint64_t now_ms,
	struct judgement *j, struct edge_verdict *ret)
{
	struct host host;
	struct policy_op op = {.kind = RULE_NETWORK,
		.host = &host,
		.port = ask->port,
		.now_ms = now_ms,
		.locals = &g->locals};
	struct policy_decision d;
	struct err err = {0};
	int r;

	if (ask->fault[0]) {
		refuse_fault(g, ask, now_ms, j, ret);
		return;
	}
	r = host_from_wire(slice_from_str(ask->host), &host, &err);
	if (r < 0) {
		gate_refuse(j, ret, err_text(&err, r));
	} else if (strcmp(host.name, ask->host) != 0) {
		/* The decided target must be, byte by byte, the target that egress gets. */
		gate_refuse(j, ret, "the host is not in its canonical form");
	} else if (ask->kind == EDGE_ASK_DNS) {
		judge_name(g, &op, j, ret);
	} else {
		policy_decide(g->policy, &op, &d);
		explain_gate(g, &op, &d, j, ret);
		if ((d.why == POLICY_SPECIAL || d.why == POLICY_NO_RULE) &&
			ask->via == EDGE_VIA_FORWARD && is_loopback(&host))
			refuse_loopback(ask, j, ret);
		if (j->allowed && ask->kind == EDGE_ASK_HTTP)
			gate_judge_head(g, ask, &op, j, ret);
	}
}

/* ---- credentials ---- */

static void refuse_bound(struct judgement *j, struct edge_verdict *ret, const char *before,
	const struct edge_ask *ask, const char *behind)
{
	char why[EDGE_MAX_REASON];

	(void)snprintf(why, sizeof(why), "%s%s%s", before, ask->host, behind);
	ret->rule[0] = j->rule[0] = '\0';
	gate_refuse(j, ret, why);
}

/* The rest of a reason may be cut off: the name stands first. */
static void name_credential(struct judgement *j, const char *credential)
{
	char rest[POLICY_MAX_EXPLAIN];

	(void)snprintf(rest, sizeof(rest), "%s", j->reason);
	(void)snprintf(j->reason, sizeof(j->reason), "with the credential %.64s: %.900s",
		credential, rest);
}

static bool may_carry(const struct edge_ask *ask)
{
	return strcasecmp(ask->method, "TRACE") != 0 && strcasecmp(ask->method, "CONNECT") != 0;
}

/* Plain text, or what will be: edge sees HTTP in a caught connection, and port 80 is nothing
 * else. Other ports of such a host (ssh) are none of this. */
static bool is_plain(const struct edge_ask *ask)
{
	if (ask->kind == EDGE_ASK_HTTP)
		return !ask->tls;
	return ask->port == 80 ||
	       (ask->via == EDGE_VIA_TRANSPARENT && ask->proto == EDGE_PROTO_HTTP);
}

/* Rules are about requests to a host without a credential: edge reads them. */
static void open_bare(struct judgement *j, struct edge_verdict *ret, const char *rule)
{
	char rest[POLICY_MAX_EXPLAIN];

	ret->opened = true;
	(void)snprintf(rest, sizeof(rest), "%s", j->reason);
	(void)snprintf(
		j->reason, sizeof(j->reason), "intercepted for the rule %s: %.600s", rule, rest);
}

/* What a rule allows, with a check of credentials. head: not NULL if some rule needs the head of
 * requests to this host. */
static void judge_bound(const struct edge_ask *ask, const struct gate_binding *b, const char *head,
	struct judgement *j, struct edge_verdict *ret)
{
	bool is_bound = b && b->credential;

	if (is_plain(ask) && (is_bound || (b && b->has_host))) {
		refuse_bound(j, ret, "", ask, " is intercepted in this sandbox: use https");
	} else if (!is_bound && b && b->is_guarded && ask->kind == EDGE_ASK_TUNNEL) {
		refuse_bound(j, ret, "", ask,
			" is intercepted in this sandbox, and cannot be on this port");
	} else if (!is_bound && !head && ask->kind == EDGE_ASK_HTTP && ask->tls) {
		refuse_bound(j, ret, "the credential for ", ask, " was removed: reconnect");
	} else if (is_bound && b->fault) {
		ret->rule[0] = j->rule[0] = '\0';
		gate_refuse(j, ret, b->fault);
	} else if ((is_bound || head) && ask->kind == EDGE_ASK_HTTP && !may_carry(ask)) {
		refuse_bound(j, ret, "", ask,
			" is intercepted in this sandbox: no TRACE and no CONNECT");
	} else if (is_bound) {
		ret->opened = ask->kind == EDGE_ASK_TUNNEL;
		name_credential(j, b->credential);
	} else if (head && ask->kind == EDGE_ASK_TUNNEL) {
		open_bare(j, ret, head);
	}
}

/* One line: an error may have a hint on a second one. */
static void refuse_unrecorded(struct edge_verdict *ret, const struct err *err, int r)
{
	const char *text = err_text(err, r);

	ret->allowed = ret->opened = false;
	ret->wants[0] = '\0';
	ret->wants_id = 0;
	ret->no_rule_helps = true;
	ret->rule[0] = '\0';
	(void)snprintf(ret->reason, sizeof(ret->reason),
		"all traffic is denied: cannot write the audit log: %.*s", (int)strcspn(text, "\n"),
		text);
}

void gate_decide_bound(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, uint64_t now_ms, struct edge_verdict *ret)
{
	struct judgement j = {0};
	char rule[HEAD_MAX_RULE];
	struct err err = {0};
	const char *path;
	int r;

	*ret = (struct edge_verdict){0};
	g->is_asked = g->is_push = false;
	(void)!str_copy(ret->sandbox, sizeof(ret->sandbox), g->name);
	judge_gate(g, ask, now_ms, &j, ret);
	/* Nothing is opened by this yes: the TUNNEL or the requests that follow are recorded. */
	if (j.allowed && ask->kind == EDGE_ASK_CONNECT) {
		ret->allowed = true;
		return;
	}
	if (ret->wants_id) /* not decided yet: edge asks again */
		return;
	if (j.allowed && ask->kind != EDGE_ASK_DNS)
		judge_bound(ask, binding,
			gate_needs_rule(g, ask->host, ask->port, now_ms, rule) ? rule : NULL, &j,
			ret);
	g->is_asked = g->is_asked && j.allowed;
	g->is_push = g->is_push && j.allowed;
	if (g->is_asked) /* not decided yet: a person does */
		return;
	if (g->is_push && !g->push.is_advert) { /* its content does */
		ret->allowed = true;
		return;
	}
	if (ret->opened)
		gate_put_wants(g, ask, now_ms, ret);
	/* What is opened does not pass unseen. */
	path = ret->opened && ask->via != EDGE_VIA_TRANSPARENT ? "forward" : gate_path_word(ask);
	j.hold = g->is_approved ? g->approved : NULL;
	r = record_gate(g, ask, path, &j, &err);
	if (r < 0)
		refuse_unrecorded(ret, &err, r);
	else
		ret->allowed = j.allowed;
	if (!ret->allowed)
		ret->count = gate_count_refusal(g, ask);
}

void gate_record_late(struct gate *g, const struct edge_ask *ask, bool allowed, const char *reason)
{
	struct judgement j = {.allowed = allowed};

	(void)snprintf(j.rule, sizeof(j.rule), "%s", allowed ? "<dial failed>" : "");
	(void)snprintf(j.reason, sizeof(j.reason), "%s", reason);
	/* Nothing is left to refuse when this one cannot be written. */
	(void)!record_gate(g, ask, gate_path_word(ask), &j, NULL);
}

const struct hold_text *gate_asked(const struct gate *g)
{
	return g->is_asked ? &g->hold : NULL;
}

void gate_decide_approved(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, const char *hold, uint64_t now_ms,
	struct edge_verdict *ret)
{
	g->is_approved = true;
	(void)snprintf(g->approved, sizeof(g->approved), "%s", hold);
	gate_decide_bound(g, ask, binding, now_ms, ret);
	g->is_approved = false;
}

void gate_refuse_asked(struct gate *g, const struct edge_ask *ask, const struct hold_text *what,
	const char *why, const char *hold, struct edge_verdict *ret)
{
	struct judgement j = {.effects = gate_join_effects(g, what->effects), .hold = hold};
	struct err err = {0};
	int r;

	*ret = (struct edge_verdict){0};
	(void)!str_copy(ret->sandbox, sizeof(ret->sandbox), g->name);
	gate_refuse(&j, ret, why);
	(void)snprintf(ret->effect, sizeof(ret->effect), "%.*s", (int)strcspn(what->effects, "\n"),
		what->effects);
	(void)snprintf(j.rule, sizeof(j.rule), "%s", what->rule);
	(void)snprintf(j.where, sizeof(j.where), "%s", g->where);
	memcpy(j.digest, what->digest, sizeof(j.digest));
	r = record_gate(g, ask, gate_path_word(ask), &j, &err);
	if (r < 0)
		refuse_unrecorded(ret, &err, r);
	ret->count = gate_count_refusal(g, ask);
}

/* Whether the policy or an equivalent check denied it. */
static bool is_refusal(enum egress_outcome outcome)
{
	return outcome == EGRESS_DENIED_POLICY || outcome == EGRESS_DENIED_ADDRESS ||
	       outcome == EGRESS_BAD_REQUEST;
}

void gate_result(struct gate *g, const struct edge_ask *ask, const struct egress_result *result,
	uint64_t now_ms)
{
	char reason[EGRESS_MAX_TEXT + EGRESS_MAX_ADDR + 8];
	const char *text = result->text[0] ? result->text : egress_outcome_text(result->outcome);
	bool refused = is_refusal(result->outcome);

	(void)now_ms; /* the log has its own clock */
	/* Who gave up himself met nothing. */
	if (result->outcome == EGRESS_CONNECTED || result->outcome == EGRESS_GONE)
		return;
	if (result->addr[0] && !strstr(text, result->addr))
		(void)snprintf(reason, sizeof(reason), "%s: %s", result->addr, text);
	else
		(void)snprintf(reason, sizeof(reason), "%s", text);
	if (refused)
		(void)gate_count_refusal(g, ask);
	gate_record_late(g, ask, !refused, reason);
}
