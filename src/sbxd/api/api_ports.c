/* SPDX-License-Identifier: Apache-2.0 */
#include "api_ports.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "api_internal.h"
#include "src/sbxd/journal/journal.h"
#include "src/sbxd/keepers/keepers.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* ---- a change ---- */

static bool has_port(const struct spec *spec, const struct spec_port *p)
{
	for (size_t i = 0; i < spec->n_ports; i++)
		if (spec_port_eq(&spec->ports[i], p))
			return true;
	return false;
}

static int record_port(struct sbxd *d, const struct spec *spec, const struct spec_port *p,
	const char *action, struct err *err)
{
	AUTO_FREE char *text = xasprintf(
		"%s:%u -> %u/%s", p->host_ip, p->host_port, p->port, spec_port_protocol(p));
	struct journal_entry e = {.kind = AUDIT_KIND_POLICY_CHANGE,
		.action = action,
		.sandbox = spec->name,
		.reason = text};

	return journal_append(d, &e, err);
}

static int check_owner(
	struct sbxd *d, const struct spec *spec, const struct spec_port *p, struct err *err)
{
	char name[SPEC_MAX_NAME + 1];

	if (!ports_find_owner(d, spec->id, p, name, sizeof(name)))
		return 0;
	return err_set(err, -EEXIST,
		"publish port: port %s:%u/tcp is already published by sandbox %s", p->host_ip,
		p->host_port, name);
}

int ports_prepare(struct sbxd *d, const struct spec *old, const struct spec *new, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < new->n_ports; i++)
		if (!has_port(old, &new->ports[i]))
			r = check_owner(d, new, &new->ports[i], err);
	for (size_t i = 0; r == 0 && i < new->n_ports; i++)
		if (!has_port(old, &new->ports[i]))
			r = record_port(d, new, &new->ports[i], "publish", err);
	for (size_t i = 0; r == 0 && i < old->n_ports; i++)
		if (!has_port(new, &old->ports[i]))
			r = record_port(d, new, &old->ports[i], "unpublish", err);
	return r;
}

/* Removes ports that the keeper could not open from the list of a publish. Returns the first. */
static const struct spec_port *take_back(struct sbxd *d, struct keeper *k,
	const struct store_row *row, const struct spec_port *asked, size_t n)
{
	AUTO_SPEC struct spec less = {0};
	const struct spec_port *first = NULL;
	struct err err = {0};

	spec_copy(&row->spec, &less);
	less.n_ports = 0;
	for (size_t i = 0; i < row->spec.n_ports; i++) {
		const struct spec_port *p = &row->spec.ports[i];
		const struct keeper_port *s = ports_find_state(k, p);
		bool failed = false;

		for (size_t j = 0; s && s->code < 0 && s->code != -EINPROGRESS && j < n; j++)
			failed = failed || spec_port_eq(p, &asked[j]);
		if (!failed)
			less.ports[less.n_ports++] = *p;
		else if (!first)
			first = p;
	}
	if (!first)
		return NULL;
	less.generation++;
	if (ports_prepare(d, &row->spec, &less, &err) == 0 &&
		store_update(d->store, &less, row->spec.generation, &err) == 0)
		(void)ports_send(d, k, &less);
	api_watch_changed(d, row->spec.id);
	return first;
}

static void refuse_port(struct sbxd *d, struct conn *c, const struct keeper *k, const char *name,
	const struct spec_port *p)
{
	char why[160], text[256], hint[128];

	ports_explain(d, k->id, p, ports_find_state(k, p)->code, why, sizeof(why));
	(void)snprintf(text, sizeof(text), "publish port: cannot listen on %s:%u: %s", p->host_ip,
		p->host_port, why);
	(void)snprintf(hint, sizeof(hint), "sbx ports %s --publish %u", name, p->port);
	api_fail(d, c, 409, "conflict", text, hint);
}

static const char *why_not_taken(const struct keeper *k, bool late)
{
	if (!k)
		return NULL;
	if (k->other_build)
		return "the sandbox was started by another version of sbx: restart it";
	return late ? "sbx-keeper did not respond in time" : NULL;
}

/* The keeper has answered, or will not. later.answer has the requested ports, later.number is
 * nonzero for a publish. */
static void finish_change(struct sbxd *d, struct conn *c, bool late)
{
	AUTO_ROW struct store_row row = {0};
	AUTO_FREE struct spec_port *asked = NULL;
	struct keeper *k = keeper_find(d, c->wait_id);
	const struct spec_port *failed;
	const char *why = why_not_taken(k, late);
	json_t *list = json_array(), *o;
	size_t n = 0;

	if (spec_ports_decode(c->later.answer, &asked, &n, NULL) < 0)
		n = 0;
	json_decref(c->later.answer);
	c->later.answer = NULL;
	if (!api_find(d, c, c->wait_id, &row)) {
		json_decref(list);
		return;
	}
	failed = c->later.number && k ? take_back(d, k, &row, asked, n) : NULL;
	if (failed) {
		json_decref(list);
		refuse_port(d, c, k, row.spec.name, failed);
		return;
	}
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, c->later.number
						    ? api_port_to_json(d, row.spec.id, k, &asked[i])
						    : spec_port_to_json(&asked[i]));
	o = json_pack("{s:s,s:s,s:o}", "sandbox", row.spec.name, "status", keeper_status(k),
		"ports", list);
	if (why)
		json_object_set_new(o, "not_taken", api_text(why));
	api_reply_json(d, c, c->later.status, o);
}

static void wait_ports(struct sbxd *d, struct conn *c, bool late)
{
	if (late || !keeper_find(d, c->wait_id))
		finish_change(d, c, late);
}

static void wait_row(struct sbxd *d, struct conn *c, bool late)
{
	if (late || !keeper_find(d, c->wait_id))
		api_reply_ref(d, c, 200, c->wait_id);
}

void api_on_ports(struct sbxd *d, struct keeper *k, uint32_t ask)
{
	struct conn *c = conns_find_asker(d, k->id, ask);

	if (c && c->wait == wait_ports)
		finish_change(d, c, false);
	else if (c && c->wait == wait_row)
		api_reply_ref(d, c, 200, k->id);
}

/* Waits for the keeper's answer if there is a keeper; otherwise `fn` replies. */
static void tell_and_wait(struct sbxd *d, struct conn *c, const struct spec *spec, conn_wait_fn *fn)
{
	struct keeper *k = keeper_find(d, spec->id);

	c->ask_id = 0;
	conn_wait(d, c, fn, spec->id, KEEPER_ANSWER_MS);
	if (k)
		c->ask_id = ports_send(d, k, spec);
	/* A starting keeper gets the list at its HELLO. */
	if (!k || (!c->ask_id && !ports_can_send(k)))
		fn(d, c, true);
}

void ports_reply_row(
	struct sbxd *d, struct conn *c, const struct spec *was, const struct store_row *now)
{
	bool differ = was->n_ports != now->spec.n_ports;

	for (size_t i = 0; !differ && i < was->n_ports; i++)
		differ = !spec_port_eq(&was->ports[i], &now->spec.ports[i]);
	if (differ)
		tell_and_wait(d, c, &now->spec, wait_row);
	else
		api_reply_row(d, c, 200, now);
}

/* ---- the calls ---- */

void api_ports(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};

	if (api_find(d, c, req->ref, &row))
		api_reply_json(d, c, 200, json_pack("{s:o}", "ports", api_ports_to_json(d, &row)));
}

/* asked: takes ownership. */
static void change_ports(struct sbxd *d, struct conn *c, const struct spec *old, struct spec *new,
	json_t *asked, bool is_publish)
{
	struct err err = {0};
	int r;

	new->generation = old->generation + 1;
	r = ports_prepare(d, old, new, &err);
	if (r == 0)
		r = store_update(d->store, new, old->generation, &err);
	if (r < 0) {
		json_decref(asked);
		api_fail_errno(d, c, r, &err);
		return;
	}
	api_watch_changed(d, new->id);
	c->later.answer = asked;
	c->later.status = 200;
	c->later.number = is_publish;
	tell_and_wait(d, c, new, wait_ports);
}

static json_t *list_to_json(const struct spec_port *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, spec_port_to_json(&v[i]));
	return list;
}

/* The first of `more` that conflicts with an existing one, or with another of `more`. */
static int check_new(
	const struct spec *spec, const struct spec_port *more, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < spec->n_ports + i; k++) {
			const struct spec_port *other =
				k < spec->n_ports ? &spec->ports[k] : &more[k - spec->n_ports];

			if (spec_port_meets(&more[i], other) || spec_port_eq(&more[i], other))
				return spec_port_refuse(&more[i], "publish port: ", -EEXIST, err);
		}
	return spec->n_ports + n > SPEC_MAX_PORTS
		       ? err_set(err, -E2BIG,
				 "publish port: a sandbox can publish at most %d ports",
				 SPEC_MAX_PORTS)
		       : 0;
}

void api_port_add(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	AUTO_SPEC struct spec new = {0};
	AUTO_FREE struct spec_port *more = NULL;
	struct err err = {0};
	size_t n = 0;
	int r;

	if (!api_find(d, c, req->ref, &row))
		return;
	r = api_decode_ports(c->http.body, &more, &n, &err);
	if (r == 0)
		r = check_new(&row.spec, more, n, &err);
	if (!api_succeeded(d, c, r, &err))
		return;
	spec_copy(&row.spec, &new);
	new.ports = xrealloc(new.ports, (new.n_ports + n) * sizeof(*new.ports));
	memcpy(new.ports + new.n_ports, more, n * sizeof(*more));
	new.n_ports += n;
	change_ports(d, c, &row.spec, &new, list_to_json(more, n), true);
}

/* Whether DELETE named this port; a port with any host port is named by its current one. */
static bool is_named(
	const struct keeper *k, const struct spec_port *p, const struct api_request *req)
{
	const struct keeper_port *s = ports_find_state(k, p);
	uint16_t now = s && s->code == 0 ? s->bound : p->host_port;

	return (!req->sandbox_port || req->sandbox_port == p->port) &&
	       (!req->host_port || req->host_port == p->host_port || req->host_port == now) &&
	       (!req->host_ip || strcmp(req->host_ip, p->host_ip) == 0) &&
	       (!req->protocol || strcmp(req->protocol, spec_port_protocol(p)) == 0);
}

void api_port_rm(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	AUTO_SPEC struct spec new = {0};
	const struct keeper *k;
	json_t *asked;

	if (!api_find(d, c, req->ref, &row))
		return;
	k = keeper_find(d, row.spec.id);
	spec_copy(&row.spec, &new);
	new.n_ports = 0;
	asked = json_array();
	for (size_t i = 0; i < row.spec.n_ports; i++) {
		const struct spec_port *p = &row.spec.ports[i];
		const struct keeper_port *s = ports_find_state(k, p);
		struct spec_port shown = *p;

		if (!is_named(k, p, req)) {
			new.ports[new.n_ports++] = *p;
			continue;
		}
		if (s && s->code == 0)
			shown.host_port = s->bound;
		json_array_append_new(asked, spec_port_to_json(&shown));
	}
	if (json_array_size(asked) > 0) {
		change_ports(d, c, &row.spec, &new, asked, false);
		return;
	}
	json_decref(asked);
	api_fail(d, c, 404, "not-found", "unpublish port: port not published", "sbx ports SANDBOX");
}

/* ---- a connection to a suspended sandbox ---- */

void api_wake(struct sbxd *d, const char *id)
{
	AUTO_ROW struct store_row row = {0};
	struct err err = {0};
	int r = store_get(d->store, id, &row, &err);

	if (r == 0)
		r = api_launch_now(d, &row.spec, SPEC_ACCEL_AUTO, false, &err);
	if (r < 0)
		log_error("connections to published ports of %s are closed: %s", id,
			err_text(&err, r));
}
