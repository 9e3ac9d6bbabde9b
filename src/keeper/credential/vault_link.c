/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_link - the keeper's channel to the vault, bound to its one sandbox.
 *
 * How      sbxd creates the channel and passes it when the keeper requests one (WANT_VAULT); there
 *          is no socket with a name. HELLO, WATCH and LIST follow, and a LIST after every CHANGED.
 *          The last list becomes the bindings (creds.h), also while the vault is down. Meanwhile
 *          requests that need a credential are denied, except open exchanges whose origin already
 *          has the value. Before the first LIST every host of a known service is denied too, unless
 *          this user has never stored a credential. A new channel is requested with growing pauses.
 * Trust    sbxd decides which process is at the other end (sbxd_link.c accepts the channel only
 *          from the sbxd that started this keeper, while it lives). The vault is trusted about
 *          names and serials; a protocol violation drops the channel.
 * Limits   CREDS_MAX_ITEMS, KEEPER_MAX_RELEASES, KEEPER_VAULT_MS, KEEPER_RELEASE_MS.
 * Never    Reads a stream that a value is written to.
 */
#include "credential.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/secret/service/own.h"
#include "lib/secret/service/service_match.h"

void vault_init(struct keeper *k)
{
	k->vault->sock = -1;
	k->vault->phase = VAULT_PHASE_END;
}

static bool needs_vault(const struct keeper *k)
{
	return k->state.phase == KEEPER_STARTING || k->state.phase == KEEPER_RUNNING;
}

static void set_timer(struct keeper *k, uint64_t ms)
{
	loop_timer_set(&k->loop, &k->vault->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = EV_TIMER_VAULT});
}

/* ---- the end of a connection ---- */

static void end_release(struct keeper *k, struct release *rel, int code, const char *text)
{
	struct release done = *rel;

	loop_timer_clear(&k->loop, &rel->timer);
	rel->id = 0;
	rel->gen++;
	if (done.login)
		k->egress->ops->on_logged(k, done.login, code < 0 ? text : "");
	else
		needs_on_released(k, &done, code, text);
}

static void end_store(struct keeper *k, struct store *store, int code, const char *text)
{
	struct store done = *store;

	loop_timer_clear(&k->loop, &store->timer);
	store->id = 0;
	store->gen++;
	tokens_on_stored(k, &done, code, text);
}

static void close_link(struct keeper *k)
{
	struct vault_link *v = k->vault;

	loop_timer_clear(&k->loop, &v->timer);
	if (v->sock < 0)
		return;
	loop_del(&k->loop, v->sock);
	fd_close(&v->sock);
	v->gen++;
	v->phase = VAULT_PHASE_END;
	v->list_id = 0;
	v->is_current = v->is_dirty = false;
	free(TAKE(v->items));
	v->n_items = 0;
	for (size_t i = 0; i < KEEPER_MAX_RELEASES; i++) {
		if (v->releases[i].id)
			end_release(k, &v->releases[i], -EPIPE, "the vault disconnected");
	}
	for (size_t i = 0; i < KEEPER_MAX_STORES; i++) {
		if (v->stores[i].id)
			end_store(k, &v->stores[i], -EPIPE, "the vault disconnected");
	}
}

static void try_later(struct keeper *k)
{
	struct vault_link *v = k->vault;
	uint64_t gap = (uint64_t)KEEPER_VAULT_GAP_MS << MIN(v->tries, 10u);

	v->tries++;
	if (needs_vault(k))
		set_timer(k, MIN(gap, (uint64_t)KEEPER_VAULT_MAX_GAP_MS));
}

static void lose_vault(struct keeper *k, const char *why)
{
	/* Logged once: the keeper retries as long as the sandbox runs. */
	if (k->vault->is_current || k->vault->tries == 0)
		log_warn("the vault is not available: %s", why);
	close_link(k);
	try_later(k);
}

void vault_stop(struct keeper *k)
{
	close_link(k);
	creds_free(TAKE(k->creds));
	services_free(TAKE(k->services));
	free(TAKE(k->vault->known));
	free(TAKE(k->vault->own_services));
}

/* ---- a new channel ---- */

int vault_take_channel(struct keeper *k, int fd)
{
	struct vault_link *v = k->vault;
	AUTO_CLOSE int own = fd;
	int r;

	if (v->sock >= 0 || !needs_vault(k))
		return 0; /* duplicate of an earlier request */
	r = fd_set_nonblock(own, true);
	if (r == 0)
		r = loop_add(
			&k->loop, own, EPOLLIN, (struct loop_key){.kind = EV_VAULT, .gen = v->gen});
	if (r < 0)
		return r;
	v->sock = TAKE_FD(own);
	ipc_trace(v->sock, &vault_chan, VAULT_FROM_PEER, "");
	v->phase = VAULT_PHASE_START;
	set_timer(k, KEEPER_VAULT_MS);
	return 0;
}

/* Loads all services of the installation. Until the first LIST, each may have a credential. */
static void load_services(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (k->services)
		return;
	k->services = services_new();
	r = services_load_installed(k->services, &err);
	if (r < 0)
		log_error("%s", err_text(&err, r));
	for (size_t i = 0; i < services_count_faults(k->services); i++)
		log_warn("%s", services_fault(k->services, i));
}

void vault_start(struct keeper *k)
{
	load_services(k);
	if (k->vault->sock >= 0 || !needs_vault(k))
		return;
	if (!link_want_vault(k))
		lose_vault(k, "sbxd is not running");
	else
		try_later(k);
}

static uint32_t next_id(struct vault_link *v)
{
	if (++v->last_id == 0)
		v->last_id = 1;
	return v->last_id;
}

static int ask_list(struct keeper *k)
{
	struct vault_link *v = k->vault;
	uint32_t id = next_id(v);
	int r = chan_send_plain(v->sock, VAULT_LIST, id, -1);

	if (r < 0)
		return r;
	v->list_id = id;
	v->is_dirty = false;
	v->n_items = 0;
	if (!v->items)
		v->items = xcalloc(CREDS_MAX_ITEMS, sizeof(*v->items));
	set_timer(k, KEEPER_VAULT_MS);
	return 0;
}

void vault_on_timer(struct keeper *k)
{
	struct vault_link *v = k->vault;

	if (v->sock < 0)
		vault_start(k);
	else if (v->phase != VAULT_PHASE_SANDBOX || v->list_id)
		lose_vault(k, "the vault is not responding");
	else if (ask_list(k) < 0)
		lose_vault(k, "the vault does not read");
}

/* ---- messages of the vault ---- */

static int on_hello(struct keeper *k, const struct ipc_msg *msg, struct err *err)
{
	struct vault_link *v = k->vault;
	char build[CHAN_MAX_BUILD];
	int r = chan_get_hello(msg, build);

	if (r < 0)
		return r;
	if (strcmp(build, SBX_BUILD) != 0)
		return err_set(
			err, -EBADMSG, "the vault has a different build: restart the sandbox");
	v->phase = VAULT_PHASE_SANDBOX;
	/* In this order: no change between the two is lost. */
	r = chan_send_plain(v->sock, VAULT_WATCH, next_id(v), -1);
	return r < 0 ? r : ask_list(k);
}

static int on_item(struct keeper *k, const struct ipc_msg *msg, struct err *err)
{
	struct vault_link *v = k->vault;

	if (!v->list_id || msg->id != v->list_id)
		return -EBADMSG;
	if (v->n_items == CREDS_MAX_ITEMS)
		return err_set(
			err, -E2BIG, "more than %d credentials for this sandbox", CREDS_MAX_ITEMS);
	return vault_get_item(msg, &v->items[v->n_items++]);
}

/* The bindings depend on the last list, the settings and the sandbox's own permissions. */
static void bind_all(struct keeper *k)
{
	AUTO_FREE char *shipped = paths_get(PATHS_SHARE, "services");
	AUTO_FREE char *own = paths_get(PATHS_CONFIG, "services");
	struct vault_link *v = k->vault;
	struct creds *was = k->creds;
	bool closed = k->spec.n_only > 0; /* an installation gets no credentials */
	const struct creds_input in = {.items = v->known,
		.n = closed ? 0 : v->n_known,
		.shipped = shipped,
		.own = own,
		.sandbox = k->spec.id,
		.services = k->services,
		.logins = !v->no_logins && !closed,
		.all = v->all,
		.own_services = v->own_services};

	k->creds = creds_new(&in);
	for (size_t i = 0; i < creds_count_faults(k->creds); i++)
		log_warn("%s", creds_fault(k->creds, i));
	creds_free(was);
	origins_on_creds(k);
	trust_renew(k);
}

/* A serial identifies exactly one value. */
static bool knows_serial(const struct vault_link *v, uint64_t serial)
{
	for (size_t i = 0; i < v->n_known; i++) {
		if (v->known[i].serial == serial)
			return true;
	}
	return false;
}

/* Whether this list is the one that the bindings were built from. */
static bool is_same_list(const struct vault_link *v)
{
	if (!v->is_current || v->n_items != v->n_known)
		return false;
	for (size_t i = 0; i < v->n_known; i++) {
		if (v->items[i].serial != v->known[i].serial)
			return false;
	}
	return true;
}

static void take_list(struct keeper *k)
{
	struct vault_link *v = k->vault;
	bool is_same = is_same_list(v);

	free(v->known);
	v->n_known = v->n_items;
	v->known = xrealloc(TAKE(v->items), MAX(v->n_known, 1u) * sizeof(*v->known));
	v->is_listed = v->is_current = true;
	v->tries = 0;
	v->fault[0] = '\0';
	if (!is_same)
		bind_all(k);
	/* This list was requested after the vault stored the token. */
	for (size_t i = 0; i < KEEPER_MAX_STORES; i++) {
		if (v->stores[i].id && v->stores[i].is_kept)
			end_store(k, &v->stores[i], 0, "");
	}
}

static int on_listed(struct keeper *k, const struct vault_done *done)
{
	struct vault_link *v = k->vault;

	v->list_id = 0;
	loop_timer_clear(&k->loop, &v->timer);
	if (done->code == 0) {
		take_list(k);
	} else {
		/* Not open yet, or locked. The vault does not report when that changes. */
		v->is_current = false;
		if (strcmp(v->fault, done->text) != 0)
			log_warn("cannot query the vault: %s", done->text);
		(void)snprintf(v->fault, sizeof(v->fault), "%s", done->text);
		set_timer(k, KEEPER_VAULT_RELIST_MS);
	}
	return v->is_dirty ? ask_list(k) : 0;
}

static struct release *find_release(struct vault_link *v, uint32_t id)
{
	for (size_t i = 0; i < KEEPER_MAX_RELEASES; i++) {
		if (v->releases[i].id == id)
			return &v->releases[i];
	}
	return NULL;
}

static struct store *find_store(struct vault_link *v, uint32_t id)
{
	for (size_t i = 0; i < KEEPER_MAX_STORES; i++) {
		if (v->stores[i].id == id)
			return &v->stores[i];
	}
	return NULL;
}

/* The vault has stored the token. The list with its serial binds it. If the vault had the token
 * before, the last list contains it, and no CHANGED follows. */
static int on_stored(struct keeper *k, struct store *store, uint64_t serial)
{
	struct vault_link *v = k->vault;

	if (v->is_current && knows_serial(v, serial)) {
		end_store(k, store, 0, "");
		return 0;
	}
	store->is_kept = true;
	return v->list_id ? 0 : ask_list(k);
}

static int on_done(struct keeper *k, const struct ipc_msg *msg)
{
	struct store *store = msg->id ? find_store(k->vault, msg->id) : NULL;
	struct release *rel = msg->id ? find_release(k->vault, msg->id) : NULL;
	struct vault_done done;
	int r = vault_get_done(msg, &done);

	if (r < 0)
		return r;
	if (k->vault->list_id && msg->id == k->vault->list_id)
		return on_listed(k, &done);
	/* Answer to WATCH, or to a dropped release. */
	if (rel)
		end_release(k, rel, done.code, done.text);
	if (store && done.code == 0)
		return on_stored(k, store, done.number);
	if (store)
		end_store(k, store, done.code, done.text);
	return 0;
}

static int on_changed(struct keeper *k, const struct ipc_msg *msg)
{
	uint64_t generation;
	int r = vault_get_changed(msg, &generation);

	if (r < 0)
		return r;
	if (!k->vault->list_id)
		return ask_list(k);
	k->vault->is_dirty = true;
	return 0;
}

static int on_message(struct keeper *k, const struct ipc_msg *msg, struct err *err)
{
	struct vault_link *v = k->vault;

	if (msg->fd >= 0 || !chan_allows(&vault_chan, v->phase, VAULT_FROM_VAULT, msg->type))
		return -EBADMSG;
	v->phase = chan_after(&vault_chan, v->phase, msg->type);
	switch (msg->type) {
	case VAULT_HELLO:
		return on_hello(k, msg, err);
	case VAULT_ITEM:
		return on_item(k, msg, err);
	case VAULT_DONE:
		return on_done(k, msg);
	case VAULT_CHANGED:
		return on_changed(k, msg);
	default:
		return -EBADMSG;
	}
}

void vault_on_event(struct keeper *k)
{
	static struct ipc_msg msg;
	struct err err = {0};
	uint32_t gen = k->vault->gen;
	int r = ipc_recv(k->vault->sock, &msg);

	if (r == -EAGAIN)
		return;
	if (r == 0) {
		lose_vault(k, "the vault exited");
		return;
	}
	if (r > 0) {
		r = on_message(k, &msg, &err);
		ipc_msg_done(&msg);
	}
	if (r < 0 && k->vault->gen == gen)
		lose_vault(k, err.text[0] ? err.text : "the vault sent an invalid message");
}

/* ---- values ---- */

static int ask_value(struct keeper *k, const char *name, uint64_t serial, int stream,
	struct release **ret, struct err *err)
{
	struct vault_link *v = k->vault;
	struct release *rel = find_release(v, 0);
	int r;

	if (v->sock < 0 || !v->is_current)
		return err_set(err, -EAGAIN, "the vault is not available");
	if (!rel)
		return err_set(err, -EBUSY, "too many concurrent credential requests");
	*rel = (struct release){.gen = rel->gen, .id = next_id(v)};
	r = vault_ask_release(v->sock, rel->id, name, serial, stream);
	if (r < 0) {
		rel->id = 0;
		return err_set(err, r, "the vault does not read");
	}
	*ret = rel;
	loop_timer_set(&k->loop, &rel->timer, clock_mono_ms() + KEEPER_RELEASE_MS,
		(struct loop_key){.kind = EV_TIMER_RELEASE,
			.gen = rel->gen,
			.idx = (uint32_t)(rel - v->releases)});
	return 0;
}

int vault_release(struct keeper *k, const struct origin *o, enum origin_which which, int stream,
	struct err *err)
{
	const struct creds_value *value = &o->binding.value[which];
	struct release *rel;
	int r = ask_value(k, value->name, value->serial, stream, &rel, err);

	if (r < 0)
		return r;
	rel->origin = o->worker.idx;
	rel->origin_gen = o->worker.gen;
	rel->which = which;
	return 0;
}

int vault_login(struct keeper *k, uint32_t exchange, int connection, struct err *err)
{
	const struct vault_item *item =
		creds_find_login(k->vault->known, k->vault->n_known, &k->egress->config);
	struct release *rel;
	int r;

	if (!item && k->vault->is_listed)
		return err_set(err, -ENOENT,
			"no password is stored for this user and proxy: sbx secret set --proxy");
	if (!item)
		return err_set(err, -EAGAIN, "the vault is not available");
	r = ask_value(k, item->meta.name, item->serial, connection, &rel, err);
	if (r == 0)
		rel->login = exchange;
	return r;
}

void vault_on_release_timeout(struct keeper *k, const struct loop_event *ev)
{
	end_release(
		k, &k->vault->releases[ev->key.idx], -ETIMEDOUT, "timed out waiting for the vault");
}

/* ---- tokens ---- */

int vault_store(struct keeper *k, const struct origin *o, enum origin_which which, uint32_t token,
	int pipe, struct err *err)
{
	struct vault_link *v = k->vault;
	struct store *store = find_store(v, 0);
	int n, r;

	if (v->sock < 0 || !v->is_current)
		return err_set(err, -EAGAIN, "the vault is not available");
	if (!store)
		return err_set(err, -EBUSY, "too many concurrent tokens");
	n = snprintf(store->name, sizeof(store->name), "%s.%s", o->binding.name,
		which == ORIGIN_ACCESS ? "access" : "refresh");
	if (n < 0 || (size_t)n >= sizeof(store->name) || !vault_name_is_token(store->name))
		return err_set(err, -EINVAL, "invalid token name");
	store->id = next_id(v);
	r = vault_ask_store(v->sock, store->id, store->name, pipe);
	if (r < 0) {
		store->id = 0;
		return err_set(err, r, "the vault does not read");
	}
	store->origin = o->worker.idx;
	store->origin_gen = o->worker.gen;
	store->token = token;
	store->is_kept = false;
	loop_timer_set(&k->loop, &store->timer, clock_mono_ms() + KEEPER_STORE_MS,
		(struct loop_key){.kind = EV_TIMER_STORE,
			.gen = store->gen,
			.idx = (uint32_t)(store - v->stores)});
	return 0;
}

void vault_on_store_timeout(struct keeper *k, const struct loop_event *ev)
{
	end_store(k, &k->vault->stores[ev->key.idx], -ETIMEDOUT, "timed out waiting for the vault");
}

size_t vault_count_stores(const struct keeper *k, const struct origin *o)
{
	size_t n = 0;

	for (size_t i = 0; i < KEEPER_MAX_STORES; i++) {
		const struct store *store = &k->vault->stores[i];

		n += store->id && store->origin == o->worker.idx &&
		     store->origin_gen == o->worker.gen;
	}
	return n;
}

void vault_set_rules(struct keeper *k, bool logins, bool all)
{
	struct vault_link *v = k->vault;
	AUTO_FREE char *dir = spec_dir(k->spec.id), *own = NULL;
	struct err err = {0};
	int r = own_load(dir, &own, &err);

	if (r < 0)
		log_error("%s", err_text(&err, r));
	if (v->own_services && v->no_logins == !logins && v->all == all &&
		strcmp(own, v->own_services) == 0)
		return;
	v->no_logins = !logins;
	v->all = all;
	free(v->own_services);
	v->own_services = TAKE(own);
	if (v->is_listed)
		bind_all(k);
}

void vault_forget(struct keeper *k, uint32_t origin, uint32_t origin_gen)
{
	for (size_t i = 0; i < KEEPER_MAX_RELEASES; i++) {
		struct release *rel = &k->vault->releases[i];

		if (!rel->id || rel->login || rel->origin != origin ||
			rel->origin_gen != origin_gen)
			continue;
		loop_timer_clear(&k->loop, &rel->timer);
		rel->id = 0;
		rel->gen++;
	}
}

/* ---- facts about an ask ---- */

/* A user who has never stored a credential cannot miss one. */
static bool has_kept_any(void)
{
	AUTO_FREE char *sealed = paths_get(PATHS_STATE, "vault/sealed");

	return access(sealed, F_OK) == 0;
}

static const char *say_away(const struct keeper *k, const char *credential)
{
	static char text[EDGE_MAX_REASON];

	if (k->vault->fault[0])
		(void)snprintf(text, sizeof(text), "cannot use credential %s: %s", credential,
			k->vault->fault);
	else
		(void)snprintf(text, sizeof(text),
			"cannot use credential %s: the vault is not available, try again",
			credential);
	return text;
}

/* Intercepted without a credential: tokens that a program would get there are for the vault, or
 * foreign credentials are denied there. */
static bool is_bare(
	const struct keeper *k, const struct service *s, const struct host *host, uint16_t port)
{
	const struct service_request where = {.host = host, .port = port};

	return service_is_slot_host(s, &where, !k->vault->all) ||
	       (!k->vault->no_logins && service_has_login(s) &&
		       service_is_endpoint_host(s, &where));
}

static bool is_own(const struct keeper *k, const struct service *s)
{
	return k->vault->own_services && own_has(k->vault->own_services, s->name);
}

static bool is_guarded(const struct keeper *k, const struct host *host)
{
	for (size_t i = 0; i < services_count(k->services); i++) {
		const struct service *s = services_get(k->services, i);

		if (!is_own(k, s) && service_guards_host(s, host, !k->vault->no_logins))
			return true;
	}
	return false;
}

/* Before the first LIST: each host of a known service may have a credential. */
static struct gate_binding look_unlisted(struct keeper *k, const struct edge_ask *ask)
{
	struct gate_binding ret = {0};
	const struct service *s;
	struct host host;

	load_services(k);
	if (host_from_wire(slice_from_str(ask->host), &host, NULL) < 0)
		return ret;
	ret.has_host = ret.is_guarded = is_guarded(k, &host);
	s = services_find(k->services, &host, ask->port);
	if (!s || is_own(k, s) || (!has_kept_any() && !is_bare(k, s, &host, ask->port)))
		return ret;
	ret.credential = s->name;
	ret.fault = say_away(k, s->name);
	return ret;
}

struct gate_binding vault_look(struct keeper *k, const struct edge_ask *ask)
{
	const struct binding *b;
	struct gate_binding ret = {0};

	if (!edge_ask_has_socket(ask->kind) || ask->fault[0])
		return ret;
	if (!k->vault->is_listed)
		return look_unlisted(k, ask);
	b = creds_find(k->creds, ask->host, ask->port);
	ret.credential = b ? b->name : NULL;
	ret.has_host = b || creds_has_host(k->creds, ask->host);
	ret.is_guarded = creds_guards_host(k->creds, ask->host);
	if (b && !k->vault->is_current)
		ret.fault = say_away(k, b->name);
	return ret;
}

/* ---- stale events ---- */

bool vault_is_live(const struct keeper *k, struct loop_key key)
{
	return k->vault->sock >= 0 && k->vault->gen == key.gen;
}

bool release_is_live(const struct keeper *k, struct loop_key key)
{
	return k->vault->releases[key.idx].id && k->vault->releases[key.idx].gen == key.gen;
}

bool store_is_live(const struct keeper *k, struct loop_key key)
{
	return k->vault->stores[key.idx].id && k->vault->stores[key.idx].gen == key.gen;
}
