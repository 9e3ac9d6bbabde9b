# SPDX-License-Identifier: Apache-2.0
"""Holes in rules about requests and in approvals: a rule that permits everything, and gaps in the
code that describes a request, compares it with rules and holds it."""
import json

from holes import HOLES
from mutation import Hole, Mutation

A = "authority/"


def ids(*names):
    return tuple(A + n for n in names)


HOLES += [
    Hole("rule-deny-last", "lib/rules/policy/policy_request.c",
         "\tif (rule->effect == RULE_DENY && !l->deny.rule)\n\t\tl->deny = hit;\n",
         "\tif (rule->effect == RULE_DENY && !l->deny.rule && l->service.n)\n\t\tl->deny = hit;\n"),
    Hole("rule-odd-path", "lib/rules/head/head_describe.c", ".is_odd = ret->odd != 0,",
         ".is_odd = false,"),
    Hole("rule-query-first", "lib/rules/effect/effect_query.c",
         "\tif (query.n && memchr(query.p, ';', query.n))\n\t\treturn EFFECT_UNKNOWN;\n", "",
         also=(("lib/rules/effect/effect_query.c",
                "\t\tif (is_written_oddly(name) || effect_query_is_other_case(name, at))\n"
                "\t\t\treturn EFFECT_UNKNOWN;\n",
                "\t\tif (is_written_oddly(name) && name.n > 99)\n\t\t\treturn EFFECT_UNKNOWN;\n"),
               ("lib/rules/effect/effect_query.c",
                "\t\tif (found != EFFECT_ABSENT)\n\t\t\treturn EFFECT_UNKNOWN;\n",
                "\t\tif (found != EFFECT_ABSENT)\n\t\t\tcontinue;\n"))),
    Hole("rule-header-last", "lib/rules/effect/effect_match.c",
         "\t\tfound = n++ ? EFFECT_UNKNOWN : EFFECT_KNOWN;\n",
         "\t\tfound = n++ > 99 ? EFFECT_UNKNOWN : EFFECT_KNOWN;\n"),
    Hole("rule-override", "lib/rules/head/head_send.c", "\tif (override || field) {\n",
         "\tif ((override || field) && !size) {\n"),
    Hole("rule-push-is-fetch", "lib/rules/head/head_describe.c", "\t*ret_fetch = false;\n",
         "\t*ret_fetch = true;\n"),
    Hole("rule-no-row-reads", "lib/rules/head/head_describe.c",
         "\t\te->is_unknown = true;\n\t\te->why = slice_from_str(\"no-row\");\n",
         "\t\te->verb = slice_from_str(\"repo.view\");\n\t\te->risk = slice_from_str(\"read\");\n"),
    Hole("rule-not-intercepted", "lib/rules/gate/gate.c",
         "\t} else if (head && ask->kind == EDGE_ASK_TUNNEL) {\n",
         "\t} else if (head && ask->kind == EDGE_ASK_TUNNEL && !ask->port) {\n",
         also=(("src/egress/exchange.c",
                "\tif (x->kind == EGRESS_SOCKET || !head_is_needed(e->policy, &op, NULL, rule))\n",
                "\tif (x->kind != EGRESS_HTTP || !head_is_needed(e->policy, &op, NULL, rule))\n"),)),
    Hole("rule-two-lengths", "lib/wire/http/http1_framing.c",
         "\tif (said->n_length && said->n_encoding)\n",
         "\tif (said->n_length > 9 && said->n_encoding)\n",
         also=(("lib/wire/http/http1_framing.c", "\tif (said->n_length) {\n",
                "\tif (said->n_length && !said->n_encoding) {\n"),
               ("lib/wire/http/http1_twin.c", "\tt->parser.data = t;\n",
                "\tt->parser.data = t;\n"
                "\tllhttp_set_lenient_chunked_length(&t->parser, 1);\n"))),
    Hole("rule-h2-twice", "lib/wire/http/h2.c",
         "\t\tif (b->has[i]) {\n", "\t\tif (b->has[i] && false) {\n"),
    Hole("rule-host-differs", "lib/wire/http/canon/canon_name.c",
         "\t\treturn CANON_HOST_DIFFERS;\n", "\t\treturn CANON_AGREE;\n"),
    Hole("refusal-without-rule", "lib/wire/http/deny.c",
         '\t\twr_printf(wr, "\\n  allowed: ");\n', '\t\twr_printf(wr, "\\n  ");\n'),
    Hole("log-without-request", "lib/rules/gate/gate.c",
         "\tev.op = slice_from_str(op);\n", "\tev.op = slice_from_str(j->allowed ? \"\" : op);\n"),
    Hole("managed-not-asked", "lib/rules/policy/policy.c",
         "\t\tdecide_alone(p->managed, op, ret);\n\t\tif (is_limited(ret))\n",
         "\t\tdecide_alone(p->managed, op, ret);\n\t\tif (is_limited(ret) && !op->port)\n"),
    Hole("managed-asks-nobody", "lib/rules/policy/policy_request.c",
         "\t\t(managed.verdict == POLICY_ASKS && ret->verdict == POLICY_ALLOWS))\n",
         "\t\t(managed.verdict == POLICY_ASKS && ret->verdict == POLICY_ALLOWS && !p))\n"),
    Hole("hold-asks-nobody", "lib/rules/gate/gate_head.c",
         "\tif (d.answer == HEAD_HELD && !g->is_approved) {\n",
         "\tif (d.answer == HEAD_HELD && !g->is_approved && !ask->port) {\n"),
    Hole("hold-no-is-yes", "lib/rules/hold/hold.c",
         "\t       : h->state == HOLD_REFUSED ? HOLD_NO\n",
         "\t       : h->state == HOLD_REFUSED ? HOLD_PASS\n"),
    Hole("hold-any-digest", "lib/rules/hold/hold.c",
         "\tif (memcmp(h->text.digest, digest, SHA256_BYTES) != 0)\n\t\treturn -ESTALE;\n", ""),
    Hole("hold-many-times", "lib/rules/hold/hold.c",
         "\tif (!h->many)\n\t\tremove_hold(h);\n",
         "\tif (!h->many && !h->until_ms)\n\t\tremove_hold(h);\n"),
    Hole("hold-without-end", "lib/rules/hold/hold.c",
         "\th->until_ms = now_ms + (h->many ? what->for_ms : HOLD_USE_MS);\n",
         "\th->until_ms = now_ms + HOLD_USE_MS;\n"),
    Hole("hold-outlives-policy", "lib/rules/hold/hold.c",
         "\t\tif (t->list[i].state != HOLD_OPEN)\n",
         "\t\tif (t->list[i].state != HOLD_OPEN && !t->seed)\n"),
    Hole("hold-without-query", "lib/rules/head/head_describe.c",
         "\t\t.has_query = h->has_query,\n\t\t.query = h->query};\n\tput_headers(h, ret, e);\n",
         "\t\t.has_query = h->has_query && !h->query.n,\n\t\t.query = h->query};\n"
         "\tput_headers(h, ret, e);\n"),
]

# of the probes: the servers of this host, and the hosts whose TLS is intercepted
HOSTS = ("host.docker.internal:1024-65535/**", "*.rules.sbx-prove.invalid/**")


def permit_all(ctx):
    for host in HOSTS:
        said = ctx.env.sbx("policy", "allow", "http", host, "--sandbox", ctx.twin.name, "--json")
        ctx.keep[host] = json.loads(said.stdout)["rule"]["id"]


def permit_no_more(ctx):
    for host in HOSTS:
        if host in ctx.keep:
            ctx.env.sbx("policy", "rm", "http", "--id", ctx.keep.pop(host))


HELD = ids("ask-holds", "approval-digest", "approval-once", "approval-over", "approval-policy",
           "approval-other")

MUTATIONS = [
    Mutation(red=ids("method", "path", "odd-paths", "query", "query-twice", "header",
                     "header-twice", "grpc", "governed", "git-push", "second-request", "tunnel",
                     "websocket", "tls", "refusal", "log", "host-spelling"),
             host=permit_all, undo_host=permit_no_more),
    # in a build
    Mutation(red=ids("deny-first", "deny-anywhere"), hole="rule-deny-last"),
    Mutation(red=ids("odd-paths"), hole="rule-odd-path"),
    Mutation(red=ids("query-twice"), hole="rule-query-first"),
    Mutation(red=ids("header-twice"), hole="rule-header-last"),
    Mutation(red=ids("method-override"), hole="rule-override"),
    Mutation(red=ids("git-push"), hole="rule-push-is-fetch"),
    Mutation(red=ids("read-only"), hole="rule-no-row-reads"),
    Mutation(red=ids("tunnel", "tls", "h2-fields"), hole="rule-not-intercepted"),
    Mutation(red=ids("smuggling"), hole="rule-two-lengths"),
    Mutation(red=ids("h2-fields"), hole="rule-h2-twice"),
    Mutation(red=ids("host-spelling", "h2-fields"), hole="rule-host-differs"),
    Mutation(red=ids("refusal"), hole="refusal-without-rule"),
    Mutation(red=ids("managed-deny"), hole="managed-not-asked"),
    Mutation(red=ids("managed-ask"), hole="managed-asks-nobody"),
    Mutation(red=HELD, hole="hold-asks-nobody", alone=True),
    Mutation(red=ids("ask-holds"), hole="hold-no-is-yes"),
    Mutation(red=ids("approval-digest"), hole="hold-any-digest"),
    Mutation(red=ids("approval-once"), hole="hold-many-times"),
    Mutation(red=ids("approval-over"), hole="hold-without-end"),
    Mutation(red=ids("approval-policy"), hole="hold-outlives-policy"),
    # rules for the query do not match either
    Mutation(red=ids("approval-other", "query", "query-twice"), hole="hold-without-query"),
    Mutation(red=ids("log"), hole="log-without-request"),
]
