/* SPDX-License-Identifier: Apache-2.0 */
#include "head.h"

#include <assert.h>
#include <stdio.h>
#include "lib/base/str.h"
#include "lib/rules/policy/policy_request.h"
#include "lib/wire/http/canon/canon_named.h"

static_assert(POLICY_MAX_HEADERS <= CANON_NAMED_LIST, "their names fit into a list");

/* Its effect, its kind, and its text. */
static void print_rule(const struct policy_rule *rule, char *ret)
{
	(void)snprintf(ret, HEAD_MAX_RULE, "%s %s %.*s", rule_effect_name(rule->effect),
		rule_kind_name(rule->kind), (int)MIN(rule->resources.n, (size_t)200),
		(const char *)rule->resources.p);
	str_make_printable(ret);
}

static struct slice service_of(const struct pack *pack)
{
	return pack ? slice_from_str(pack->name) : slice_of(NULL, 0);
}

bool head_is_needed(const struct policy *policy, const struct policy_op *op,
	const struct pack *pack, char *ret_rule)
{
	struct policy_rule rule;

	if (!ret_rule)
		return policy_needs_head(policy, op, service_of(pack));
	if (!policy_find_request_rule(policy, op, service_of(pack), false, &rule))
		return false;
	print_rule(&rule, ret_rule);
	return true;
}

/* A name that does not fit is left out: rules that need it then do not allow. */
static void add_name(struct wr *wr, struct slice name)
{
	size_t n = wr->n;

	if (canon_named_has(slice_of(wr->p, wr->n), name))
		return;
	wr_printf(wr, "%s%.*s", n ? "," : "", (int)name.n, (const char *)name.p);
	if (wr->bad) {
		wr->bad = false;
		wr->n = n;
	}
}

static void add_rule_names(const struct policy *policy, struct wr *wr)
{
	struct slice names[POLICY_MAX_HEADERS];
	size_t n = policy_header_names(policy, names);

	for (size_t i = 0; i < n; i++)
		add_name(wr, names[i]);
}

static void add_pack_names(const struct pack *pack, struct wr *wr)
{
	add_name(wr, slice_from_str("content-type"));
	for (size_t i = 0; i < pack->n_rows; i++)
		for (size_t k = 0; k < pack->row[i].n_whens; k++)
			if (pack->row[i].when[k].source == PACK_FROM_HEADER)
				add_name(wr, pack->row[i].when[k].at);
}

void head_get_wants(
	const struct policy *policy, const struct policy_op *op, const struct pack *pack, char *ret)
{
	struct wr wr = wr_init(ret, CANON_NAMED_NAMES - 1);

	if (head_is_needed(policy, op, pack, NULL)) {
		add_rule_names(policy, &wr);
		if (pack)
			add_pack_names(pack, &wr);
	}
	ret[wr.n] = '\0';
}

static void put_outcome(const struct policy *policy, const struct policy_request *req,
	struct slice service, const struct policy_outcome *out, struct head_decision *ret)
{
	struct policy_rule allows;
	static const enum head_answer answers[] = {[POLICY_DENIES] = HEAD_DENIED,
		[POLICY_ALLOWS] = HEAD_ALLOWED,
		[POLICY_ASKS] = HEAD_HELD};

	ret->answer = answers[out->verdict];
	ret->which = out->has_effect ? out->description : 0;
	ret->is_managed = out->by.is_managed;
	if (out->by.why == POLICY_RULE) {
		print_rule(&out->by.rule, ret->rule);
		policy_print_where(&out->by.rule, ret->where);
		(void)snprintf(ret->id, sizeof(ret->id), "%.*s", (int)out->by.rule.id.n,
			(const char *)out->by.rule.id.p);
	}
	policy_explain_request(req, out, ret->reason, sizeof(ret->reason));
	if (ret->answer == HEAD_DENIED && !ret->is_managed &&
		policy_find_request_rule(policy, &req->op, service, true, &allows))
		print_rule(&allows, ret->instead);
}

/* Of calls only whether rules are about the service. */
static void find_rules(const struct policy *policy, const struct policy_op *op,
	const struct head_effects *effects, struct policy_git *ret)
{
	struct slice target = effects->v[effects->at_content].target;

	if (effects->content != HEAD_CALLS) {
		policy_find_git(policy, op, target, ret);
		return;
	}
	*ret = (struct policy_git){.is_named = policy_names_service(policy, op, target),
		.permits = true,
		.permits_managed = true};
}

/* If rules are about the repository of a push, or the service of calls, the content replaces the
 * effect that the head does not show. It becomes the first description: a refusal names an effect
 * of that one. */
static bool put_content(const struct policy *policy, const struct policy_op *op,
	const struct head_read *read, struct policy_description *list, struct head_decision *ret)
{
	size_t at = ret->effects.at_content;
	struct policy_git rules;

	find_rules(policy, op, &ret->effects, &rules);
	if (!rules.is_named)
		return false;
	ret->content = ret->effects.content;
	ret->paths = rules.paths;
	ret->asks = rules.asks;
	list[at] = list[0];
	list[0] = read ? (struct policy_description){read->effect, read->n, read->n == 0,
				 read->n == 0}
		       : (struct policy_description){.is_covered = rules.permits,
				 .is_covered_managed = rules.permits_managed};
	return true;
}

/* The texts name the effect of the content that decided. */
static void name_read(
	const struct head_read *read, const struct policy_outcome *out, struct head_decision *ret)
{
	size_t at = ret->effects.at_content;

	if (ret->content == HEAD_NO_CONTENT)
		return;
	if (read && out->has_effect && out->description == 0)
		ret->effects.v[at] = read->effect[out->effect];
	ret->which = ret->which == 0 ? at : ret->which == at ? 0 : ret->which;
	if (ret->content != HEAD_ADVERT && !read && ret->answer != HEAD_DENIED) {
		ret->answer = HEAD_READ;
		ret->rule[0] = ret->id[0] = '\0';
		(void)snprintf(ret->reason, sizeof(ret->reason), "%s: the content decides",
			ret->content == HEAD_PUSH ? "rules are about pushes to this repository"
						  : "rules are about this API");
	}
}

void head_decide(const struct policy *policy, const struct policy_op *op, const struct pack *pack,
	const struct head *h, struct arena *arena, struct head_decision *ret)
{
	struct policy_description list[HEAD_MAX_EFFECTS];
	struct policy_request req = {.op = *op, .list = list};
	char names[CANON_NAMED_NAMES] = "";
	struct wr wr = wr_init(names, sizeof(names));
	struct policy_outcome out;
	struct head own = *h;

	*ret = (struct head_decision){.answer = HEAD_DENIED};
	add_rule_names(policy, &wr);
	own.names = slice_of(names, wr.n);
	if (head_describe(&own, pack, arena, &ret->effects) < 0) {
		(void)snprintf(ret->reason, sizeof(ret->reason),
			"the request has no canonical form, and rules are about requests to %s",
			op->host->name);
		return;
	}
	for (; req.n < ret->effects.n; req.n++)
		list[req.n] = (struct policy_description){&ret->effects.v[req.n], 1, false, false};
	policy_decide_request(policy, &req, &out);
	/* what is allowed with unknown content needs no reader */
	if (ret->effects.content != HEAD_NO_CONTENT && (h->read || out.verdict != POLICY_ALLOWS) &&
		put_content(policy, op, h->read, list, ret))
		policy_decide_request(policy, &req, &out);
	put_outcome(policy, &req, service_of(pack), &out, ret);
	name_read(h->read, &out, ret);
}
