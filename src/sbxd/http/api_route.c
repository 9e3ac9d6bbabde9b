/* SPDX-License-Identifier: Apache-2.0 */
#include "api_route.h"

#include <string.h>
#include "lib/rules/audit/audit_record.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/ipc/vault_scanned.h"

static const struct {
	enum api_http_method method;
	const char *pattern;
	enum api_call call;
	bool body; /* may have one */
} routes[] = {
	{API_HTTP_GET, "v1/version", API_VERSION, false},
	{API_HTTP_GET, "v1/sandboxes", API_LIST, false},
	{API_HTTP_POST, "v1/sandboxes", API_CREATE, true},
	{API_HTTP_GET, "v1/sandboxes/:ref", API_GET, false},
	{API_HTTP_PATCH, "v1/sandboxes/:ref", API_PATCH, true},
	{API_HTTP_DELETE, "v1/sandboxes/:ref", API_DELETE, false},
	{API_HTTP_POST, "v1/sandboxes/:ref/start", API_START, true},
	{API_HTTP_POST, "v1/sandboxes/:ref/stop", API_STOP, true},
	{API_HTTP_POST, "v1/sandboxes/:ref/exec", API_EXEC, false},
	{API_HTTP_GET, "v1/sandboxes/:ref/stats", API_STATS, false},
	{API_HTTP_GET, "v1/watch", API_WATCH, false},
	{API_HTTP_GET, "v1/metrics", API_METRICS, false},
	{API_HTTP_POST, "v1/shutdown", API_SHUTDOWN, true},
	{API_HTTP_GET, "v1/policy", API_POLICY_GET, false},
	{API_HTTP_PUT, "v1/policy", API_POLICY_PUT, true},
	{API_HTTP_DELETE, "v1/policy", API_POLICY_RESET, false},
	{API_HTTP_GET, "v1/policy/check", API_POLICY_CHECK, false},
	{API_HTTP_POST, "v1/policy/rules", API_RULE_ADD, true},
	{API_HTTP_DELETE, "v1/policy/rules", API_RULES_RM, false},
	{API_HTTP_DELETE, "v1/policy/rules/:ref", API_RULE_RM, false},
	{API_HTTP_POST, "v1/reload", API_RELOAD, true},
	{API_HTTP_POST, "v1/pool", API_POOL, false},
	{API_HTTP_GET, "v1/secrets", API_SECRETS, false},
	{API_HTTP_GET, "v1/secrets/status", API_SECRET_STATUS, false},
	{API_HTTP_POST, "v1/secrets/unlock", API_SECRET_UNLOCK, false},
	{API_HTTP_POST, "v1/secrets/scan", API_SECRET_SCAN, false},
	{API_HTTP_PUT, "v1/secrets/:ref", API_SECRET_PUT, true},
	{API_HTTP_DELETE, "v1/secrets/:ref", API_SECRET_RM, false},
	{API_HTTP_GET, "v1/services", API_SERVICES, false},
	{API_HTTP_GET, "v1/sandboxes/:ref/ports", API_PORTS, false},
	{API_HTTP_POST, "v1/sandboxes/:ref/ports", API_PORT_ADD, true},
	{API_HTTP_DELETE, "v1/sandboxes/:ref/ports", API_PORT_RM, false},
	{API_HTTP_POST, "v1/sandboxes/:ref/freeze", API_FREEZE, false},
	{API_HTTP_POST, "v1/sandboxes/:ref/checkpoints", API_CHECKPOINT, true},
	{API_HTTP_GET, "v1/sandboxes/:ref/checkpoints", API_CHECKPOINTS, false},
	{API_HTTP_DELETE, "v1/sandboxes/:ref/checkpoints", API_CHECKPOINT_RM, false},
	{API_HTTP_POST, "v1/sandboxes/:ref/rewind", API_REWIND, true},
	{API_HTTP_POST, "v1/sandboxes/:ref/own", API_OWN, true},
	{API_HTTP_GET, "v1/sandboxes/:ref/guard", API_GUARD, false},
	{API_HTTP_DELETE, "v1/sandboxes/:ref/guard", API_GUARD_DONE, false},
	{API_HTTP_POST, "v1/sandboxes/:ref/stage", API_STAGE, true},
	{API_HTTP_GET, "v1/holds", API_HOLDS, false},
	{API_HTTP_GET, "v1/holds/:ref", API_HOLD, false},
	{API_HTTP_POST, "v1/holds/:ref", API_HOLD_ANSWER, true},
	{API_HTTP_DELETE, "v1/templates/:ref", API_TEMPLATE_RM, false},
	{API_HTTP_POST, "v1/templates/collect", API_TEMPLATE_COLLECT, false},
	{API_HTTP_POST, "v1/audit/:ref/prune", API_AUDIT_PRUNE, false},
};

static bool matches_path(const struct api_http *h, const char *pattern, const char **ret_ref)
{
	size_t i = 0;

	for (;; pattern++) {
		size_t n = strcspn(pattern, "/");

		if (i == h->n_parts)
			return false;
		if (n == 4 && strncmp(pattern, ":ref", 4) == 0)
			*ret_ref = h->part[i];
		else if (strlen(h->part[i]) != n || strncmp(h->part[i], pattern, n) != 0)
			return false;
		i++;
		pattern += n;
		if (!*pattern)
			return i == h->n_parts;
	}
}

/* A query key of a call, and the member of struct api_request that it fills. */
struct query {
	enum api_call call;
	const char *key;
	int (*take)(
		struct api_request *req, const struct query *q, const char *value, struct err *err);
	size_t at;
	uint64_t min, max; /* of a number */
	const char *must;  /* the valid range of a number */
};

static void *place_of(struct api_request *req, const struct query *q)
{
	return (char *)req + q->at;
}

static int take_string(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	*(const char **)place_of(req, q) = value;
	return 0;
}

static int take_flag(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return err_set(err, 400, "%s must be 0 or 1", q->key);
	*(bool *)place_of(req, q) = value[0] == '1';
	return 0;
}

static int take_number(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	if (str_to_u64(value, q->min, q->max, place_of(req, q)) < 0)
		return err_set(err, 400, "%s must be %s", q->key, q->must);
	return 0;
}

static int take_wait(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	if (str_to_u64(value, 0, API_MAX_WAIT_MS, &req->wait_ms) < 0)
		return err_set(err, 400, "wait must be milliseconds, at most %d", API_MAX_WAIT_MS);
	return 0;
}

static int take_control(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	req->control = value;
	return vault_control_is_good(value)
		       ? 0
		       : err_set(err, 400, "control must be %d to %d printable characters",
				 VAULT_MIN_CONTROL, VAULT_MAX_CONTROL);
}

static int take_effect(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	req->has_effect = true;
	for (req->effect = 0; req->effect < RULE_EFFECTS; req->effect++)
		if (strcmp(value, rule_effect_name(req->effect)) == 0)
			return 0;
	return err_set(err, 400, "effect must be allow, deny or ask");
}

static int take_protocol(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	req->protocol = value;
	return strcmp(value, "tcp4") != 0 && strcmp(value, "tcp6") != 0
		       ? err_set(err, 400, "protocol must be tcp4 or tcp6")
		       : 0;
}

static int take_keep(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	req->has_keep = true;
	return take_number(req, q, value, err);
}

static int take_total(
	struct api_request *req, const struct query *q, const char *value, struct err *err)
{
	req->has_total = true;
	return take_number(req, q, value, err);
}

#define AT(m) offsetof(struct api_request, m)
#define PORT 1, UINT16_MAX, "1 to 65535"

static const struct query queries[] = {
	{.call = API_GET, .key = "wait", .take = take_wait},
	{API_EXEC, "callback", take_number, AT(callback), PORT},
	{API_DELETE, "force", take_flag, AT(force), 0, 0, NULL},
	{API_POLICY_GET, "from", take_number, AT(from), 0, UINT32_MAX, "the number of a rule"},
	{API_POLICY_GET, "text", take_flag, AT(text), 0, 0, NULL},
	{API_POLICY_CHECK, "target", take_string, AT(target), 0, 0, NULL},
	{API_POLICY_CHECK, "sandbox", take_string, AT(sandbox), 0, 0, NULL},
	{API_RULES_RM, "resource", take_string, AT(resource), 0, 0, NULL},
	{.call = API_RULES_RM, .key = "effect", .take = take_effect},
	{API_RULES_RM, "sandbox", take_string, AT(sandbox), 0, 0, NULL},
	{API_SECRET_RM, "sandbox", take_string, AT(sandbox), 0, 0, NULL},
	{.call = API_SECRET_SCAN, .key = "control", .take = take_control},
	{API_AUDIT_PRUNE, "before_ms", take_number, AT(before_ms), 1, AUDIT_MAX_NUMBER,
		"milliseconds since 1970"},
	{API_AUDIT_PRUNE, "keep_bytes", take_keep, AT(keep_bytes), 0, AUDIT_MAX_NUMBER,
		"a number of bytes"},
	{API_AUDIT_PRUNE, "dry", take_flag, AT(dry), 0, 0, NULL},
	{API_GUARD_DONE, "total", take_total, AT(total), 0, UINT32_MAX, "a number of files"},
	{API_CHECKPOINT_RM, "label", take_string, AT(label), 0, 0, NULL},
	{API_HOLDS, "sandbox", take_string, AT(sandbox), 0, 0, NULL},
	{API_HOLD, "sandbox", take_string, AT(sandbox), 0, 0, NULL},
	{API_HOLD_ANSWER, "sandbox", take_string, AT(sandbox), 0, 0, NULL},
	{API_PORT_RM, "host_ip", take_string, AT(host_ip), 0, 0, NULL},
	{API_PORT_RM, "host_port", take_number, AT(host_port), PORT},
	{.call = API_PORT_RM, .key = "protocol", .take = take_protocol},
	{API_PORT_RM, "sandbox_port", take_number, AT(sandbox_port), PORT},
};

static int take_query(const struct api_http *h, struct api_request *req, struct err *err)
{
	size_t known = 0;

	for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
		const char *value = api_http_query(h, queries[i].key);
		int r;

		if (queries[i].call != req->call || !value)
			continue;
		r = queries[i].take(req, &queries[i], value, err);
		if (r)
			return r;
		known++;
	}
	if (known != h->n_query)
		return err_set(err, 400, "unknown query key");
	if (req->call == API_POLICY_CHECK && !req->target)
		return err_set(err, 400, "missing target");
	if (req->call == API_RULES_RM && !req->resource)
		return err_set(err, 400, "missing resource");
	if (req->call == API_PORT_RM && !req->sandbox_port)
		return err_set(err, 400, "missing sandbox_port");
	if (req->call == API_GUARD_DONE && !req->has_total)
		return err_set(err, 400, "missing total");
	if (req->call == API_CHECKPOINT_RM && !req->label)
		return err_set(err, 400, "missing label");
	if (req->call == API_AUDIT_PRUNE && !req->before_ms == !req->has_keep)
		return err_set(err, 400, "expected one of before_ms and keep_bytes");
	return 0;
}

static int check_form(const struct api_http *h, size_t route, struct err *err)
{
	if (h->body.n && !routes[route].body)
		return err_set(err, 400, "unexpected request body");
	if (h->upgrade && routes[route].call != API_EXEC)
		return err_set(err, 400, "only exec supports Upgrade");
	if (!h->upgrade && routes[route].call == API_EXEC)
		return err_set(
			err, 400, "exec requires Connection: Upgrade and Upgrade: sbx-stream");
	return 0;
}

void api_route_print(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		(void)fprintf(out, "%s /%s%s", api_http_method_name(routes[i].method),
			routes[i].pattern, routes[i].body ? " body" : "");
		for (size_t k = 0; k < ARRAY_LEN(queries); k++)
			if (queries[k].call == routes[i].call)
				(void)fprintf(out, " ?%s", queries[k].key);
		(void)fputc('\n', out);
	}
}

int api_route(const struct api_http *h, struct api_request *ret, struct err *err)
{
	bool seen = false;

	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		struct api_request req = {.call = routes[i].call};
		int r;

		if (!matches_path(h, routes[i].pattern, &req.ref))
			continue;
		seen = true;
		if (routes[i].method != h->method)
			continue;
		r = check_form(h, i, err);
		if (r == 0)
			r = take_query(h, &req, err);
		if (r == 0)
			*ret = req;
		return r;
	}
	return seen ? err_set(err, 405, "method %s is not allowed for this path",
			      api_http_method_name(h->method))
		    : err_set(err, 404, "unknown call: see PROTOCOL.api");
}
