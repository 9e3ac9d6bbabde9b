/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a service. What is read finds its own slots by its own hosts; its sentinels are
 * judged ours in every slot and anything else somebody's; and a file that was read is taken into an
 * empty set.
 */
#include <assert.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/secret/service/service_match.h"
#include "lib/secret/service/services.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_slot(
	const struct service *s, const struct services *set, const struct service_slot *slot)
{
	for (size_t i = 0; i < slot->n_hosts; i++) {
		const struct netrule *nr = &slot->host[i];
		struct host h;
		struct service_request req = {
			.host = &h, .port = nr->ports.lo, .path = slice_from_str("/a/b")};

		assert(nr->form != NETRULE_EVERY && nr->ports.lo);
		if (nr->form == NETRULE_ADDR)
			host_from_addr(&nr->net.addr, &h);
		else if (nr->deep || nr->n_glob ||
			 host_from_wire(slice_of(nr->name, nr->n_name), &h, NULL) < 0)
			continue;
		assert(services_find(set, &h, req.port));
		if (slot->n_paths == 0)
			assert(service_pick_slot(s, &req, slot->value));
		assert(!service_pick_slot(s, &req, 0));
		(void)service_is_endpoint(s, &req);
	}
	assert(service_judge(s, SERVICE_IN_HEADER, slice_from_str(slot->header),
		       slice_from_str("Bearer somebody's")) == SERVICE_FOREIGN);
	for (size_t i = 0; i < s->n_envs; i++) {
		char sentinel[SERVICE_MAX_TEXT + 1];

		service_fill_sentinel(&s->env[i], "423c774dc9c8", sentinel);
		assert(service_judge(s, SERVICE_IN_HEADER, slice_from_str(slot->header),
			       slice_from_str(sentinel)) == SERVICE_SENTINEL);
	}
}

static void check_service(struct slice text, const struct service *s)
{
	struct services *set = services_new();
	struct err err = {0};

	if (services_add(set, text, "fuzz", &err) == 0) {
		assert(services_by_name(set, s->name));
		for (size_t i = 0; i < s->n_slots; i++)
			check_slot(s, set, &s->slot[i]);
		assert(services_add(set, text, "fuzz", &err) < 0);
	}
	assert(services_count(set) <= 1);
	services_free(set);
}

/* A rule refuses what it says, and what a pattern looks like when it is a path. */
static void check_refusals(const struct service *s)
{
	for (size_t i = 0; i < s->n_refusals; i++) {
		const struct service_refusal *r = &s->refusal[i];
		bool is_pattern = strchr(r->path ? r->path : r->value, '*');

		assert(r->rule && (r->path || (r->name && r->value)));
		if (r->path && !strpbrk(r->path, "*;\\#.") && r->path[1])
			assert(service_refuses_path(s, slice_from_str(r->method ? r->method : "X"),
				slice_from_str(r->path)));
		if (!r->path && r->where == SERVICE_IN_HEADER && !is_pattern)
			assert(service_refuses_header(
				s, slice_from_str(r->name), slice_from_str(r->value)));
	}
}

static void check_captures(const struct service *s)
{
	for (size_t i = 0; i < s->n_captures; i++) {
		const struct service_capture *c = &s->capture[i];

		assert(c->path && c->field[0]);
		if (!strpbrk(c->path, "*;\\#.") && c->path[1])
			assert(service_captures(s, slice_from_str(c->method ? c->method : "X"),
				       slice_from_str(c->path)) &
				UINT32_C(1) << i);
	}
}

static void check_endpoints(const struct service *s, struct slice text)
{
	for (size_t i = 0; i < s->n_endpoints; i++) {
		const struct service_endpoint *e = &s->endpoint[i];
		struct service_request req = {
			.port = e->host.ports.lo, .path = slice_from_str(e->path)};
		struct host h;

		req.host = &h;
		if (e->host.form != NETRULE_NAME || e->host.deep || e->host.n_glob ||
			host_from_wire(slice_of(e->host.name, e->host.n_name), &h, NULL) < 0)
			continue;
		assert(service_is_endpoint(s, &req));
		if (!strpbrk(e->path, ";\\#.%"))
			assert(service_may_be_endpoint(s, &req));
		req.path = text;
		(void)service_may_be_endpoint(s, &req);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_SERVICE struct service s = {0};
	struct slice text = slice_of(data, size);
	struct err err = {0};

	if (service_parse(text, "fuzz", &s, &err) < 0) {
		assert(err.text[0] && !s.name);
		return 0;
	}
	assert(s.name && s.about && s.n_slots);
	check_service(text, &s);
	/* The bytes as a request's, too. */
	(void)service_path_match("/**/info/*", text);
	(void)service_judge(&s, SERVICE_IN_HEADER, slice_from_str("authorization"), text);
	(void)service_judge(&s, SERVICE_IN_QUERY, text, text);
	(void)service_refuses_path(&s, slice_of(NULL, 0), text);
	(void)service_refuses_query(&s, text);
	(void)service_captures(&s, slice_of(NULL, 0), text);
	check_refusals(&s);
	check_captures(&s);
	check_endpoints(&s, text);
	return 0;
}
