/* SPDX-License-Identifier: Apache-2.0 */
#include "api_service.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include "api_internal.h"
#include "api_policy.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/policy.h"

struct services *api_load_services(struct err *err)
{
	struct services *set = services_new();

	if (services_load_installed(set, err) == 0)
		return set;
	services_free(set);
	return NULL;
}

static bool has_text(const json_t *list, const char *text)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		if (strcmp(json_string_value(item), text) == 0)
			return true;
	}
	return false;
}

static void add_host(json_t *list, const struct netrule *host)
{
	AUTO_FREE char *text = xmalloc(NETRULE_MAX_TEXT);

	netrule_print(host, text);
	if (!has_text(list, text))
		json_array_append_new(list, api_text(text));
}

json_t *api_service_hosts(const struct service *s, unsigned values)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_slots; i++)
		for (size_t k = 0; (s->slot[i].value & values) && k < s->slot[i].n_hosts; k++)
			add_host(list, &s->slot[i].host[k]);
	return list;
}

/* The expected form of a value of this service: USER:PASSWORD or ID:SECRET. */
static const char *shape_of(const struct service *s)
{
	const char *shape = "token";

	for (size_t i = 0; i < s->n_slots; i++) {
		if (s->slot[i].how == SERVICE_SIGV4)
			return "id:secret";
		if (s->slot[i].how == SERVICE_BASIC && !s->slot[i].user)
			shape = "user:password";
	}
	return shape;
}

static json_t *to_json(const struct service *s)
{
	json_t *o = json_object(), *envs = json_array();

	for (size_t i = 0; i < s->n_envs; i++)
		json_array_append_new(envs, json_pack("{s:s,s:s}", "name", s->env[i].name,
						    "sentinel", s->env[i].sentinel));
	json_object_set_new(o, "name", api_text(s->name));
	json_object_set_new(o, "about", api_text(s->about ? s->about : ""));
	json_object_set_new(o, "hosts", api_service_hosts(s, SERVICE_SECRET | SERVICE_ACCESS));
	json_object_set_new(o, "env", envs);
	json_object_set_new(o, "shape", json_string(shape_of(s)));
	json_object_set_new(o, "oauth", json_boolean(s->n_endpoints > 0));
	return o;
}

void api_services(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct err err = {0};
	struct services *set = api_load_services(&err);
	json_t *list = json_array(), *faults = json_array();

	if (!set) {
		json_decref(list);
		json_decref(faults);
		api_fail_errno(d, c, -EIO, &err);
		return;
	}
	for (size_t i = 0; i < services_count(set); i++)
		json_array_append_new(list, to_json(services_get(set, i)));
	for (size_t i = 0; i < services_count_faults(set); i++)
		json_array_append_new(faults, api_text(services_fault(set, i)));
	services_free(set);
	api_reply_json(d, c, 200, json_pack("{s:o,s:o}", "services", list, "faults", faults));
}

static bool is_allowed(struct policy *policy, const char *target)
{
	struct host host = {0};
	struct policy_op op = {.kind = RULE_NETWORK, .now_ms = clock_wall_ms()};
	struct policy_decision pd;
	uint16_t port = 0;

	/* a pattern is not a target: its hosts are not known here */
	if (api_parse_target(target, &host, &port, NULL) < 0)
		return true;
	op.host = &host;
	op.port = port;
	policy_decide(policy, &op, &pd);
	return pd.allowed;
}

json_t *api_denied_hosts(struct sbxd *d, const json_t *hosts, const char *sandbox)
{
	json_t *list = json_array();
	struct policy *policy = tables_open(d->tables, d->rulebook, sandbox);
	const json_t *item;
	size_t i;

	json_array_foreach (hosts, i, item) {
		if (!is_allowed(policy, json_string_value(item)))
			json_array_append_new(list, json_string(json_string_value(item)));
	}
	policy_free(policy);
	return list;
}
