/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "api_internal.h"
#include "lib/base/mem.h"

#define SNAPSHOT_BATCH 16
#define SNAPSHOT_AHEAD 65536 /* unsent bytes at which the snapshot waits for the reader */

/* Returns one line, on the heap; takes ownership of the object. */
static char *make_line(uint64_t seq, const char *type, const char *key, json_t *value)
{
	json_t *o = json_pack("{s:I,s:s}", "seq", (json_int_t)seq, "type", type);
	char *text, *line;

	if (value)
		json_object_set_new(o, key, value);
	text = json_dumps(o, JSON_COMPACT);
	assert(text);
	line = xasprintf("%s\n", text);
	free(text);
	json_decref(o);
	return line;
}

struct filling {
	struct sbxd *d;
	struct conn *c;
	unsigned n;
};

static int add_to_snapshot(void *arg, const struct store_row *row)
{
	struct filling *f = arg;
	AUTO_FREE char *line =
		make_line(f->d->conns->seq, "snapshot", "sandbox", api_object(f->d, row));

	if (!conn_push(f->d, f->c, slice_from_str(line)))
		return -1;
	(void)snprintf(f->c->cursor, sizeof(f->c->cursor), "%s", row->spec.name);
	f->n++;
	return 0;
}

/* After the sandboxes. f->n is set when the connection was closed. */
static void add_hold(void *arg, const struct keeper *k, const struct held *h)
{
	struct filling *f = arg;
	AUTO_FREE char *line = NULL;

	if (f->n)
		return;
	line = make_line(f->d->conns->seq, "hold", "hold", api_hold_to_json(f->d, k, h));
	if (!conn_push(f->d, f->c, slice_from_str(line)))
		f->n = 1;
}

bool api_watch_fill(struct sbxd *d, struct conn *c)
{
	while (!c->live && conn_unsent(c) < SNAPSHOT_AHEAD) {
		struct filling f = {.d = d, .c = c};
		uint32_t gen = c->gen;

		if (store_list(d->store, c->cursor, SNAPSHOT_BATCH, add_to_snapshot, &f, NULL) <
			0) {
			if (c->gen == gen)
				conn_close(d, c);
			return false;
		}
		if (f.n < SNAPSHOT_BATCH) {
			AUTO_FREE char *line = make_line(d->conns->seq, "live", NULL, NULL);

			f.n = 0;
			holds_each(d, add_hold, &f);
			if (f.n)
				return false;
			c->live = true;
			return conn_push(d, c, slice_from_str(line));
		}
	}
	return true;
}

void api_watch(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	conn_start_watch(d, c);
}

/* A watcher whose snapshot has not reached this name yet gets it with the snapshot. */
static void publish_line(struct sbxd *d, const char *line, const char *name, bool always)
{
	for (size_t i = 0; i < d->conns->n_slots; i++) {
		struct conn *c = d->conns->slot[i];

		if (c->state == CONN_WATCHING &&
			(always || c->live || strcmp(name, c->cursor) <= 0))
			(void)conn_push(d, c, slice_from_str(line));
	}
}

void api_watch_changed(struct sbxd *d, const char *id)
{
	AUTO_ROW struct store_row row = {0};
	AUTO_FREE char *line = NULL;

	d->conns->seq++;
	wakes_look(d, id);
	if (!d->conns->n_watching || store_get(d->store, id, &row, NULL) < 0)
		return;
	line = make_line(d->conns->seq, "changed", "sandbox", api_object(d, &row));
	publish_line(d, line, row.spec.name, false);
}

void api_watch_removed(struct sbxd *d, const struct spec *spec)
{
	AUTO_FREE char *line = NULL;

	wakes_look(d, spec->id);
	d->conns->seq++;
	if (!d->conns->n_watching)
		return;
	line = make_line(d->conns->seq, "removed", "sandbox",
		json_pack("{s:s,s:s}", "id", spec->id, "name", spec->name));
	publish_line(d, line, spec->name, true);
}

/* A watcher that is not live yet gets it with the snapshot. */
void api_watch_hold(struct sbxd *d, json_t *hold, bool gone)
{
	AUTO_FREE char *line = NULL;

	d->conns->seq++;
	line = make_line(d->conns->seq, gone ? "unhold" : "hold", "hold", hold);
	for (size_t i = 0; i < d->conns->n_slots; i++) {
		struct conn *c = d->conns->slot[i];

		if (c->state == CONN_WATCHING && c->live)
			(void)conn_push(d, c, slice_from_str(line));
	}
}
