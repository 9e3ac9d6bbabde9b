/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/cli/form.h"
#include "port_spec.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/table.h"
#include "sandbox.h"

static const struct opt_def opts[] = {
	{'p', "publish", "SPEC", "publish a sandbox port on the host", .many = true},
	{0, "unpublish", "SPEC", "remove a published port, or all of a SANDBOX_PORT", .many = true},
	{0, "json", NULL, "print JSON"},
	{0},
};

static void say_each(const char *what, const json_t *answer, bool with_family)
{
	const json_t *port;
	size_t i;

	json_array_foreach (json_object_get(answer, "ports"), i, port) {
		AUTO_FREE char *address = port_spec_address(port);

		printf("%s %s -> %lld/%s\n", what, address, api_int(port, "sandbox_port"),
			with_family ? api_str(port, "protocol") : "tcp");
	}
}

static void say_rest(const json_t *answer)
{
	const char *name = api_str(answer, "sandbox"), *why = api_str(answer, "not_taken");

	if (why[0])
		ui_warning("sandbox '%s' has not applied the change: %s", name, why);
	else if (sandbox_is(answer, "stopped"))
		ui_note("Sandbox '%s' is stopped. Its ports are published when it starts: sbx "
			"run --name %s",
			name, name);
}

static int publish_ports(
	const char *ref, const struct opt_list *specs, bool quiet, struct problem *p)
{
	AUTO_JSON json_t *body = json_pack("{s:[]}", "ports"), *answer = NULL;
	int r = port_spec_list(specs, json_object_get(body, "ports"), &p->err);

	if (r < 0)
		return problem_usage(p, r, "ports");
	r = sandbox_call("POST", ref, "/ports", body, API_TIMEOUT_MS, &answer, p);
	if (r < 0)
		return r;
	if (!quiet)
		say_each("Published", answer, true);
	say_rest(answer);
	return 0;
}

static int unpublish_one(const char *ref, const char *text, bool quiet, struct problem *p)
{
	struct port_spec s;
	int r = port_spec_parse(text, &s, &p->err);
	bool family = s.protocol[0] && strcmp(s.protocol, "tcp") != 0;
	char host[16] = "";

	if (r < 0)
		return problem_usage(p, r, "ports");
	if (s.host_port)
		(void)snprintf(host, sizeof(host), "%u", s.host_port);
	for (size_t i = 0; i < (s.has_ip ? s.n_ips : 1); i++) {
		AUTO_JSON json_t *answer = NULL;
		AUTO_FREE char *ip = s.has_ip ? api_quote(s.ip[i]) : NULL;
		AUTO_FREE char *tail = xasprintf("/ports?sandbox_port=%u%s%s%s%s%s%s", s.port,
			ip ? "&host_ip=" : "", ip ? ip : "", host[0] ? "&host_port=" : "", host,
			family ? "&protocol=" : "", family ? s.protocol : "");

		r = sandbox_call("DELETE", ref, tail, NULL, API_TIMEOUT_MS, &answer, p);
		if (r < 0)
			return r;
		if (!quiet)
			say_each("Unpublished", answer, false);
		say_rest(answer);
	}
	return 0;
}

static void print_table(const json_t *list_ports)
{
	static const char *const heading[] = {
		"HOST IP", "HOST PORT", "SANDBOX PORT", "PROTOCOL", "STATUS"};
	CLEANUP(table_done) struct table t;
	const json_t *port;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (list_ports, i, port) {
		long long n = api_int(port, "host_port");
		AUTO_FREE char *host = n ? xasprintf("%lld", n) : xstrdup("any");
		AUTO_FREE char *inside = xasprintf("%lld", api_int(port, "sandbox_port"));
		const char *why = api_str(port, "reason");
		AUTO_FREE char *state =
			xasprintf("%s%s%s", api_str(port, "state"), why[0] ? ": " : "", why);
		const char *cells[] = {
			api_str(port, "host_ip"), host, inside, api_str(port, "protocol"), state};

		table_add(&t, cells);
	}
	table_print(&t);
}

static int list_ports(const char *ref, bool json, struct problem *p)
{
	AUTO_JSON json_t *answer = NULL;
	int r = sandbox_call("GET", ref, "/ports", NULL, API_TIMEOUT_MS, &answer, p);
	json_t *ports = json_object_get(answer, "ports");

	if (r < 0)
		return r;
	if (json) {
		form_ports(ports);
		api_print(answer);
	} else if (json_array_size(ports) == 0) {
		printf("No published ports\n");
	} else {
		print_table(ports);
	}
	return 0;
}

static int run_ports(struct opts *o)
{
	const struct opt_list *add = opts_list(o, "publish"), *rm = opts_list(o, "unpublish");
	const char *ref = o->args.v[0];
	bool json = opts_has(o, "json");
	struct problem p = {0};
	int r = 0;

	/* Close first: an opening port may need the freed slot. */
	for (size_t i = 0; r == 0 && i < rm->n; i++)
		r = unpublish_one(ref, rm->v[i], json, &p);
	if (r == 0 && add->n)
		r = publish_ports(ref, add, json, &p);
	if (r == 0 && (json || (!add->n && !rm->n)))
		r = list_ports(ref, json, &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_ports = {
	.name = "ports",
	.group = "sandboxes",
	.args = "SANDBOX",
	.summary = "publish and list ports of a sandbox",
	.about =
		"Publishes ports of a sandbox on the host, removes and lists them. SPEC is\n"
		"[[HOST_IP:]HOST_PORT:]SANDBOX_PORT[/PROTOCOL]. The default HOST_IP is 127.0.0.1, which\n"
		"only this machine can connect to. Without HOST_PORT, a free port is chosen at each start.\n"
		"The service in the sandbox can listen on 127.0.0.1, ::1 or all addresses, or be published\n"
		"by a container there. The list is kept when the sandbox stops. PROTOCOL is tcp4 (the\n"
		"default), tcp6, or tcp for both.",
	.examples =
		"  sbx ports demo --publish 18081:8080\n  sbx ports demo --unpublish 18081:8080\n"
		"  sbx ports demo --json\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_ports,
};
