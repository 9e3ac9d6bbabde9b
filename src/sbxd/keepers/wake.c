/* SPDX-License-Identifier: Apache-2.0 */
#include "keepers_internal.h"

#include <stdio.h>
#include <string.h>
#include "src/sbxd/disk/disk.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/vm/store/store.h"

void wakes_init(struct wakes *w, void (*on_port)(struct sbxd *d, const char *id))
{
	w->on_port = on_port;
	for (size_t i = 0; i < WAKES_MAX; i++)
		w->list[i].fd = -1;
}

static bool is_of(const struct wake *w, const char *id)
{
	return w->id[0] && strcmp(w->id, id) == 0;
}

static void watch_one(struct sbxd *d, struct wake *w, bool on)
{
	struct loop_key key = {
		.kind = SBXD_EV_WAKE, .gen = w->gen, .idx = (uint32_t)(w - d->wakes->list)};

	if (w->fd < 0 || w->is_watched == on)
		return;
	if (!on)
		loop_del(&d->loop, w->fd);
	else if (loop_add(&d->loop, w->fd, EPOLLIN, key) < 0)
		return;
	w->is_watched = on;
}

static void drop_one(struct sbxd *d, struct wake *w)
{
	uint32_t gen = (w->gen + 1) & 0xffffff;

	watch_one(d, w, false);
	fd_close(&w->fd);
	*w = (struct wake){.fd = -1, .gen = gen};
}

void wakes_done(struct sbxd *d)
{
	for (size_t i = 0; i < WAKES_MAX; i++)
		drop_one(d, &d->wakes->list[i]);
}

static struct wake *new_wake(struct sbxd *d, const char *id)
{
	for (size_t i = 0; i < WAKES_MAX; i++) {
		struct wake *w = &d->wakes->list[i];

		if (w->id[0])
			continue;
		(void)snprintf(w->id, sizeof(w->id), "%s", id);
		return w;
	}
	return NULL;
}

/* The earliest of the next start and the ends of the pauses. */
static void set_timer(struct sbxd *d)
{
	uint64_t now = clock_mono_ms(), at = d->wakes->next_ms > now ? d->wakes->next_ms : 0;

	for (size_t i = 0; i < WAKES_MAX; i++) {
		const struct wake *w = &d->wakes->list[i];

		if (w->id[0] && w->fd < 0 && (!at || w->until_ms < at))
			at = w->until_ms;
	}
	if (at)
		loop_timer_set(&d->loop, &d->wakes->timer, at,
			(struct loop_key){.kind = SBXD_EV_WAKE_TIMER});
	else
		loop_timer_clear(&d->loop, &d->wakes->timer);
}

static void watch_all(struct sbxd *d)
{
	bool on = clock_mono_ms() >= d->wakes->next_ms;

	for (size_t i = 0; i < WAKES_MAX; i++)
		watch_one(d, &d->wakes->list[i], on);
	set_timer(d);
}

/* ---- the sockets of one sandbox ---- */

static void drop_all(struct sbxd *d, const char *id)
{
	for (size_t i = 0; i < WAKES_MAX; i++)
		if (is_of(&d->wakes->list[i], id))
			drop_one(d, &d->wakes->list[i]);
}

static bool is_paused(const struct wakes *ws, const char *id)
{
	for (size_t i = 0; i < WAKES_MAX; i++)
		if (is_of(&ws->list[i], id) && ws->list[i].fd < 0)
			return true;
	return false;
}

static bool is_published(const struct spec *spec, const struct spec_port *p)
{
	for (size_t i = 0; spec && i < spec->n_ports; i++)
		if (spec_port_eq(&spec->ports[i], p))
			return true;
	return false;
}

/* spec NULL: all of them. */
static void drop_closed(struct sbxd *d, const char *id, const struct spec *spec)
{
	for (size_t i = 0; i < WAKES_MAX; i++) {
		struct wake *w = &d->wakes->list[i];

		if (is_of(w, id) && w->fd >= 0 && !is_published(spec, &w->port))
			drop_one(d, w);
	}
}

static bool has_port(const struct wakes *ws, const char *id, const struct spec_port *p)
{
	for (size_t i = 0; i < WAKES_MAX; i++)
		if (is_of(&ws->list[i], id) && spec_port_eq(&ws->list[i].port, p))
			return true;
	return false;
}

const char *wakes_find(const struct wakes *ws, const char *id, const struct spec_port *p)
{
	for (size_t i = 0; i < WAKES_MAX; i++) {
		const struct wake *w = &ws->list[i];

		if (w->fd >= 0 && !is_of(w, id) && spec_port_meets(&w->port, p))
			return w->id;
	}
	return NULL;
}

static void open_one(struct sbxd *d, const struct spec *spec, const struct spec_port *p)
{
	int fd = spec_port_listen(p, WAKE_BACKLOG);
	struct wake *w = fd < 0 ? NULL : new_wake(d, spec->id);

	if (!w) {
		log_warn("port %s:%u of %s does not resume it: %s", p->host_ip, p->host_port,
			spec->name, fd < 0 ? strerror(-fd) : "too many ports");
		fd_close(&fd);
		return;
	}
	w->fd = fd;
	w->port = *p;
}

static void open_all(struct sbxd *d, const struct spec *spec)
{
	for (size_t i = 0; i < spec->n_ports; i++)
		if (spec->ports[i].host_port && !has_port(d->wakes, spec->id, &spec->ports[i]))
			open_one(d, spec, &spec->ports[i]);
	watch_all(d);
}

void wakes_look(struct sbxd *d, const char *id)
{
	AUTO_ROW struct store_row row = {0};
	bool is_parked = !keeper_find(d, id) && kept_is_parked(id) &&
			 store_get(d->store, id, &row, NULL) == 0;

	drop_closed(d, id, is_parked ? &row.spec : NULL);
	if (is_parked && !is_paused(d->wakes, id))
		open_all(d, &row.spec);
}

static int look_at(void *d, const struct store_row *row)
{
	if (row->spec.n_ports)
		wakes_look(d, row->spec.id);
	return 0;
}

void wakes_look_all(struct sbxd *d)
{
	struct err err = {0};

	if (store_list(d->store, NULL, 0, look_at, d, &err) < 0)
		log_warn("ports of suspended sandboxes are not opened: %s", err.text);
}

/* A socket that cannot be sent is closed, and the keeper opens its own. */
void wakes_pass(struct sbxd *d, const char *id)
{
	struct keeper *k = keeper_find(d, id);

	for (size_t i = 0; i < WAKES_MAX; i++) {
		struct wake *w = &d->wakes->list[i];

		if (!is_of(w, id) || w->fd < 0)
			continue;
		if (!k || chan_send_plain(k->sock, KEEPER_LISTENER, 0, w->fd) < 0)
			log_warn("cannot pass port %u to the keeper of %s", w->port.host_port, id);
		drop_one(d, w);
	}
}

/* ---- a client connects ---- */

static void pause_wakes(struct sbxd *d, const char *id, uint64_t now)
{
	struct wake *w;

	drop_all(d, id);
	w = new_wake(d, id); /* one was just dropped */
	if (w)
		w->until_ms = now + WAKE_PAUSE_MS;
	d->wakes->next_ms = now + WAKE_GAP_MS;
	watch_all(d);
}

void wakes_on_event(struct sbxd *d, const struct loop_event *ev)
{
	struct wake *w = &d->wakes->list[ev->key.idx];
	uint64_t now = clock_mono_ms();
	char id[SPEC_ID_LEN + 1];

	if (w->gen != ev->key.gen || w->fd < 0 || now < d->wakes->next_ms)
		return;
	memcpy(id, w->id, sizeof(id));
	log_info("a connection to port %u resumes %s", w->port.host_port, id);
	d->wakes->on_port(d, id);
	pause_wakes(d, id, now);
}

void wakes_on_timer(struct sbxd *d)
{
	uint64_t now = clock_mono_ms();

	for (size_t i = 0; i < WAKES_MAX; i++) {
		struct wake *w = &d->wakes->list[i];
		char id[SPEC_ID_LEN + 1];

		if (!w->id[0] || w->fd >= 0 || w->until_ms > now)
			continue;
		memcpy(id, w->id, sizeof(id));
		drop_one(d, w);
		wakes_look(d, id);
	}
	watch_all(d);
}
