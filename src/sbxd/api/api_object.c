/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox object of PROTOCOL.api: a row of the registry and the keeper's state. */
#include "api_internal.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/keepers/keepers.h"
#include "lib/base/mem.h"
#include "lib/secret/service/own.h"

static json_t *json_number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static void add_times(json_t *o, const struct store_row *row, const struct keeper *k)
{
	json_object_set_new(o, "created_at", json_number(row->created_at));
	json_object_set_new(o, "started_at", json_number(row->started_at));
	json_object_set_new(o, "stopped_at", json_number(row->stopped_at));
	json_object_set_new(o, "last_used_at",
		json_number(k ? MAX(k->used_stamp_ms, row->last_used_at) : row->last_used_at));
}

static void add_running(json_t *o, const struct keeper *k)
{
	char detail[KEEPER_MAX_TEXT + 64];

	keeper_detail(k, detail, sizeof(detail));
	json_object_set_new(o, "detail", api_text(detail));
	json_object_set_new(o, "progress", json_number(k->state.progress));
	json_object_set_new(o, "sessions", json_number(k->state.sessions));
	json_object_set_new(o, "boot_ms", json_number(k->state.boot_ms));
	json_object_set_new(o, "start", api_text(keeper_how_name(k->state.how)));
	json_object_set_new(o, "cold_why", api_text(k->state.cold_why));
	json_object_set_new(o, "keeper_pid", json_number((uint64_t)k->pid));
	json_object_set_new(o, "qemu_pid", json_number(k->state.qemu_pid));
	json_object_set_new(o, "net_sent", json_number(MIN(k->state.net_up, INT64_MAX)));
	json_object_set_new(o, "net_received", json_number(MIN(k->state.net_down, INT64_MAX)));
	if (k->state.accel[0])
		json_object_set_new(o, "accel", api_text(k->state.accel));
}

static void add_stopped(json_t *o, const struct store_row *row, size_t place)
{
	static const char *const zero[] = {"progress", "sessions", "boot_ms", "keeper_pid",
		"qemu_pid", "net_sent", "net_received"};

	char waits[64];

	(void)snprintf(waits, sizeof(waits), "waiting to start, %zu before it", place - 1);
	json_object_set_new(o, "detail", api_text(place ? waits : row->last_error));
	json_object_set_new(o, "start", json_string(""));
	json_object_set_new(o, "cold_why", json_string(""));
	for (size_t i = 0; i < ARRAY_LEN(zero); i++)
		json_object_set_new(o, zero[i], json_integer(0));
}

json_t *api_port_to_json(
	struct sbxd *d, const char *id, const struct keeper *k, const struct spec_port *p)
{
	const struct keeper_port *s = ports_find_state(k, p);
	struct spec_port shown = *p;
	char reason[160];
	json_t *o;

	if (s && s->code == 0)
		shown.host_port = s->bound;
	o = spec_port_to_json(&shown);
	if (!p->host_port)
		json_object_set_new(o, "ephemeral", json_true());
	if (!k)
		json_object_set_new(o, "state", json_string("stopped"));
	else if (!s || s->code == -EINPROGRESS)
		json_object_set_new(o, "state", json_string("starting"));
	else if (s->code == 0)
		json_object_set_new(o, "state", json_string("open"));
	else {
		ports_explain(d, id, p, s->code, reason, sizeof(reason));
		json_object_set_new(o, "state", json_string("failed"));
		json_object_set_new(o, "reason", api_text(reason));
	}
	return o;
}

json_t *api_ports_to_json(struct sbxd *d, const struct store_row *row)
{
	const struct keeper *k = keeper_find(d, row->spec.id);
	json_t *list = json_array();

	for (size_t i = 0; i < row->spec.n_ports; i++)
		json_array_append_new(
			list, api_port_to_json(d, row->spec.id, k, &row->spec.ports[i]));
	return list;
}

/* The services for which the sandbox may use its own credentials. */
static json_t *own_services(const char *id)
{
	AUTO_FREE char *dir = spec_dir(id), *list = NULL;
	json_t *o = json_array();
	char *rest = NULL;

	(void)!own_load(dir, &list, NULL); /* an unreadable list is empty */
	for (char *s = strtok_r(list, "\n", &rest); s; s = strtok_r(NULL, "\n", &rest))
		json_array_append_new(o, api_text(s));
	return o;
}

json_t *api_object(struct sbxd *d, const struct store_row *row)
{
	const struct keeper *k = keeper_find(d, row->spec.id);
	json_t *o = spec_to_json(&row->spec);

	size_t place = k ? 0 : starts_place(d->starts, row->spec.id);
	bool is_kept = !k && !place && kept_is_there(row->spec.id);

	json_object_set_new(o, "status",
		json_string(place     ? "starting"
			    : is_kept ? "suspended"
				      : keeper_status(k)));
	json_object_set_new(o, "start_queue", json_number(place));
	if (is_kept)
		kept_describe(o, row->spec.id);
	add_times(o, row, k);
	if (k)
		add_running(o, k);
	else
		add_stopped(o, row, place);
	json_object_set_new(o, "ports", api_ports_to_json(d, row));
	json_object_set_new(o, "guard", json_string(spec_guard_name(row->spec.guard)));
	json_object_set_new(o, "guard_changed",
		json_number(guarded_each(row->spec.id, GUARDED_DIRTY, NULL, NULL)));
	json_object_set_new(o, "own_services", own_services(row->spec.id));
	return o;
}

void api_reply_row(struct sbxd *d, struct conn *c, int status, const struct store_row *row)
{
	api_reply_json(d, c, status, api_object(d, row));
}

void api_reply_ref(struct sbxd *d, struct conn *c, int status, const char *ref)
{
	AUTO_ROW struct store_row row = {0};

	if (api_find(d, c, ref, &row))
		api_reply_row(d, c, status, &row);
}
