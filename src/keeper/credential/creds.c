/* SPDX-License-Identifier: Apache-2.0 */
#include "creds.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/secret/service/custom.h"
#include "lib/secret/service/own.h"
#include "lib/secret/service/service_match.h"

#define AUTH_NAMES "auth-names" /* in the same directory as the services of the installation */
#define DEFAULT_FORMAT "Bearer %s"

struct creds {
	struct binding list[CREDS_MAX_ITEMS];
	size_t n;
	struct services *set;	      /* only bound services */
	const struct creds_input *in; /* set only while creds is being built */
	char *sandbox;		      /* its id */
	bool logins, all;	      /* of the input */
	char *fault[CREDS_MAX_FAULTS];
	size_t n_faults;
};

/* ---- joining ---- */

static void keep_fault(struct creds *c, const char *item, const struct err *err, int r)
{
	if (c->n_faults < CREDS_MAX_FAULTS)
		c->fault[c->n_faults++] =
			xasprintf("the credential %s is not used: %s", item, err_text(err, r));
}

/* Copies the name without .access or .refresh to base and returns the kind of value. */
static enum origin_which split_name(const struct vault_item *item, char base[VAULT_MAX_NAME])
{
	static const char *const suffixes[ORIGIN_N_WHICH] = {
		[ORIGIN_SECRET] = "", [ORIGIN_ACCESS] = ".access", [ORIGIN_REFRESH] = ".refresh"};
	enum origin_which which = ORIGIN_SECRET;

	(void)!str_copy(base, VAULT_MAX_NAME, item->meta.name);
	if (item->meta.kind != VAULT_SERVICE)
		return which;
	for (unsigned i = ORIGIN_ACCESS; i < ORIGIN_N_WHICH; i++) {
		if (str_ends(base, suffixes[i]) && strlen(base) > strlen(suffixes[i])) {
			base[strlen(base) - strlen(suffixes[i])] = '\0';
			return (enum origin_which)i;
		}
	}
	return which;
}

static struct binding *find_name(struct creds *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++) {
		if (strcmp(c->list[i].name, name) == 0)
			return &c->list[i];
	}
	return NULL;
}

/* Returns how long origin may use a value without requesting it again; 0: no limit. A value with
 * `refresh on-demand` gets the shortest time. */
static uint32_t use_seconds(const struct vault_item *item)
{
	if (item->ref == VAULT_REF_NONE)
		return 0;
	return MAX(item->refresh_s, 1u);
}

static void put_value(struct binding *b, enum origin_which which, const struct vault_item *item)
{
	struct creds_value *v = &b->value[which];

	(void)!str_copy(v->name, sizeof(v->name), item->meta.name);
	v->serial = item->serial;
	v->use_s = use_seconds(item);
	b->has |= (uint8_t)(1u << which);
}

/* Whether the sandbox has its own item of this name and this one is global. */
static bool is_hidden(const struct vault_item *items, size_t n, const struct vault_item *item)
{
	for (size_t i = 0; i < n && !item->meta.scope[0]; i++) {
		if (items[i].meta.scope[0] && strcmp(items[i].meta.name, item->meta.name) == 0)
			return true;
	}
	return false;
}

/* ---- services ---- */

static int load_text(const struct creds *c, const char *name, char **ret, struct err *err)
{
	const char *const folders[] = {c->in->shipped, c->in->own};
	size_t n;
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(folders) && r == -ENOENT; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s.conf", folders[i], name);

		r = file_load(path, SERVICE_MAX_BYTES, ret, &n, err);
	}
	if (r == -ENOENT)
		return err_set(err, r, "service not found");
	return r;
}

/* Returns the position of the first slot: lines about the whole service precede it. */
static size_t find_slot(const char *text)
{
	struct slice rest = slice_from_str(text);

	while (rest.n) {
		size_t at = (size_t)(rest.p - (const uint8_t *)text);
		struct slice line = slice_trim(slice_next_line(&rest));

		if (line.n > 4 && memcmp(line.p, "slot", 4) == 0 && line.p[4] <= ' ')
			return at;
	}
	return strlen(text);
}

/* Adds the places where credentials of any service may be, so that origin checks them too. */
static int add_auth_names(const struct creds *c, char **text, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" AUTH_NAMES, c->in->shipped), *names = NULL,
		       *old = *text;
	size_t n, at = find_slot(old);
	int r = file_load(path, SERVICE_MAX_BYTES, &names, &n, err);

	*text = NULL;
	if (r < 0)
		return err_wrap(err, r, AUTH_NAMES " of the installation");
	*text = xasprintf("%.*s%s\n%s", (int)at, old, names, old + at);
	return 0;
}

/* Item names permit more characters than service names. The serial makes the name unique, and does
 * not depend on other credentials. */
static void custom_name(const struct vault_item *item, char buf[SERVICE_MAX_WORD])
{
	int n = snprintf(buf, SERVICE_MAX_WORD, "custom-%lu-%.32s", item->serial, item->meta.name);

	for (int k = 0; k < n; k++) {
		char c = (char)tolower((unsigned char)buf[k]);

		buf[k] = isalnum((unsigned char)c) ? c : '-';
	}
}

/* A placeholder without a variable is recognized too: the user may have put it into a file. */
static int make_custom(const struct vault_item *item, char **ret, struct err *err)
{
	const struct vault_meta *meta = &item->meta;
	char name[SERVICE_MAX_WORD], env[SERVICE_MAX_WORD + 4];
	struct custom c = {.name = name,
		.hosts = meta->hosts,
		.header = meta->header[0] ? meta->header : "authorization",
		.format = meta->format[0] ? meta->format : DEFAULT_FORMAT,
		.env = meta->env,
		.sentinel = meta->sentinel[0] ? meta->sentinel : "proxy-managed"};

	custom_name(item, name);
	if (!meta->env[0] && meta->sentinel[0]) {
		(void)snprintf(env, sizeof(env), "SBX_%s", name);
		for (char *p = env; *p; p++)
			*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
		c.env = env;
	}
	return custom_text(&c, ret, err);
}

/* Rejects a format in which a comment sign or a blank changed the user's meaning. */
static int check_custom(const struct service *s, const struct vault_meta *meta, struct err *err)
{
	const char *format = meta->format[0] ? meta->format : DEFAULT_FORMAT;

	if (s->n_slots != 1 || !s->slot[0].format || strcmp(s->slot[0].format, format) != 0)
		return err_set(err, -EINVAL, "invalid format '%s'", format);
	return 0;
}

static int check_service(const struct service *s, const char *name, struct err *err)
{
	if (strcmp(s->name, name) != 0)
		return err_set(err, -EINVAL, "the file describes the service '%s'", s->name);
	return 0;
}

/* Parses the text alone first: a set cannot undo an addition. */
static int check_text(
	const char *text, const struct vault_item *item, const char *base, struct err *err)
{
	AUTO_SERVICE struct service s = {0};
	int r = service_parse(slice_from_str(text), item->meta.name, &s, err);

	if (r < 0)
		return r;
	if (item->meta.kind == VAULT_CUSTOM)
		return check_custom(&s, &item->meta, err);
	return check_service(&s, base, err);
}

static void add_binding(struct creds *c, const struct vault_item *item, const char *base)
{
	struct binding *b = &c->list[c->n];
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	int r = 0;

	*b = (struct binding){0};
	if (item->meta.kind == VAULT_CUSTOM)
		r = make_custom(item, &text, &err);
	else
		r = load_text(c, base, &text, &err);
	if (r == 0)
		r = check_text(text, item, base, &err);
	if (r == 0)
		r = add_auth_names(c, &text, &err);
	if (r == 0)
		r = services_add(c->set, slice_from_str(text), item->meta.name, &err);
	if (r < 0) {
		keep_fault(c, item->meta.name, &err, r);
		return;
	}
	b->service = services_get(c->set, services_count(c->set) - 1);
	b->text = TAKE(text);
	(void)!str_copy(b->name, sizeof(b->name), base);
	c->n++;
}

static bool is_own(const struct creds *c, const char *service)
{
	return c->in->own_services && own_has(c->in->own_services, service);
}

static void add_items(struct creds *c, enum vault_kind kind)
{
	const struct vault_item *items = c->in->items;

	for (size_t i = 0; i < c->in->n; i++) {
		const struct vault_item *item = &items[i];
		char base[VAULT_MAX_NAME];
		enum origin_which which;
		size_t n_before = c->n_faults;

		if (item->meta.kind != kind || is_hidden(items, c->in->n, item) ||
			(item->meta.scope[0] && strcmp(item->meta.scope, c->sandbox) != 0))
			continue;
		which = split_name(item, base);
		if (kind == VAULT_SERVICE && is_own(c, base))
			continue;
		if (!find_name(c, base) && c->n < CREDS_MAX_ITEMS)
			add_binding(c, item, base);
		else if (kind == VAULT_CUSTOM)
			keep_fault(c, item->meta.name, NULL, -EEXIST);
		if (c->n_faults == n_before && find_name(c, base))
			put_value(find_name(c, base), which, item);
	}
}

/* Services where programs log in: otherwise the guest would get the first tokens. Also services
 * where foreign credentials are denied although the user has none. */
static bool is_wanted(const struct creds *c, const struct service *s)
{
	return (c->logins && service_has_login(s)) || c->all || service_has_always(s);
}

/* The service has the same host as a credential of the user, or its file is invalid. */
static void replace_fault(struct creds *c, const struct service *s)
{
	AUTO_FREE char *old = c->fault[c->n_faults - 1];
	const char *why = strstr(old, ": ");

	if (c->all || service_has_always(s))
		c->fault[c->n_faults - 1] = xasprintf(
			"the hosts of service %s are not intercepted%s", s->name, why ? why : "");
	else
		c->n_faults--; /* no loss */
}

/* Bindings without a value. */
static void add_bare(struct creds *c)
{
	const struct services *all = c->in->services;

	for (size_t i = 0; all && i < services_count(all); i++) {
		const struct service *s = services_get(all, i);
		struct vault_item item = {.meta.kind = VAULT_SERVICE};
		size_t n_before = c->n_faults;

		if (!is_wanted(c, s) || is_own(c, s->name) || find_name(c, s->name) ||
			c->n == CREDS_MAX_ITEMS ||
			str_copy(item.meta.name, sizeof(item.meta.name), s->name) < 0)
			continue;
		add_binding(c, &item, s->name);
		if (c->n_faults > n_before)
			replace_fault(c, s);
	}
}

const struct vault_item *creds_find_login(
	const struct vault_item *items, size_t n, const struct egress_config *config)
{
	const char *kind = config->proxy == EGRESS_PROXY_SOCKS ? "socks5" : "http";
	char where[EGRESS_MAX_HOST + 8];

	(void)snprintf(where, sizeof(where), "%s:%u", config->proxy_host, config->proxy_port);
	for (size_t i = 0; i < n; i++) {
		const struct vault_meta *meta = &items[i].meta;

		if (meta->kind == VAULT_PROXY && strcmp(meta->hosts, where) == 0 &&
			strcmp(meta->header, kind) == 0 &&
			strcmp(meta->format, config->proxy_user) == 0)
			return &items[i];
	}
	return NULL;
}

struct creds *creds_new(const struct creds_input *in)
{
	struct creds *c = xcalloc(1, sizeof(*c));

	c->set = services_new();
	c->in = in;
	c->sandbox = xstrdup(in->sandbox);
	c->logins = in->logins;
	c->all = in->all;
	add_items(c, VAULT_SERVICE);
	add_items(c, VAULT_CUSTOM);
	add_bare(c);
	c->in = NULL;
	return c;
}

void creds_free(struct creds *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		free(c->list[i].text);
	for (size_t i = 0; i < c->n_faults; i++)
		free(c->fault[i]);
	services_free(c->set);
	free(c->sandbox);
	free(c);
}

/* ---- lookup ---- */

static size_t creds_count(const struct creds *c)
{
	return c ? c->n : 0;
}

/* Without a value only some hosts are intercepted: elsewhere the guest may use its own key. */
static bool is_open_at(
	const struct creds *c, const struct binding *b, const struct host *host, uint16_t port)
{
	const struct service_request where = {.host = host, .port = port};
	const struct service *s = b->service;

	if (b->has || service_is_slot_host(s, &where, !c->all))
		return true;
	return c->logins && service_has_login(s) && service_is_endpoint_host(s, &where);
}

const struct binding *creds_find(const struct creds *c, const char *host, uint16_t port)
{
	const struct service *s;
	struct host h;

	if (creds_count(c) == 0 || host_from_wire(slice_from_str(host), &h, NULL) < 0 ||
		strcmp(h.name, host) != 0)
		return NULL;
	s = services_find(c->set, &h, port);
	for (size_t i = 0; s && i < c->n; i++) {
		if (c->list[i].service == s)
			return is_open_at(c, &c->list[i], &h, port) ? &c->list[i] : NULL;
	}
	return NULL;
}

bool creds_guards_host(const struct creds *c, const char *host)
{
	struct host h;

	if (creds_count(c) == 0 || host_from_wire(slice_from_str(host), &h, NULL) < 0)
		return false;
	for (size_t i = 0; i < c->n; i++) {
		if (service_guards_host(c->list[i].service, &h, c->logins))
			return true;
	}
	return false;
}

static bool binding_has_host(
	const struct creds *c, const struct binding *b, const struct netrule *host)
{
	const struct service *s = b->service;

	for (size_t i = 0; i < s->n_slots; i++) {
		for (size_t k = 0; k < s->slot[i].n_hosts; k++) {
			if ((b->has || c->all || s->slot[i].always) &&
				netrule_may_meet(&s->slot[i].host[k], host))
				return true;
		}
	}
	for (size_t i = 0; i < s->n_endpoints; i++) {
		if ((b->has || (c->logins && service_has_login(s))) &&
			netrule_may_meet(&s->endpoint[i].host, host))
			return true;
	}
	return false;
}

bool creds_has_host(const struct creds *c, const char *host)
{
	struct netrule rule = {0};
	bool found = false;

	if (creds_count(c) == 0 || netrule_parse(slice_from_str(host), &rule, NULL) < 0)
		return false;
	for (size_t i = 0; i < c->n && !found; i++)
		found = binding_has_host(c, &c->list[i], &rule);
	netrule_done(&rule);
	return found;
}

bool creds_env(const struct creds *c, size_t i, char buf[CREDS_MAX_FIELD])
{
	char sentinel[SERVICE_MAX_TEXT + 1];

	for (size_t k = 0; k < creds_count(c); k++) {
		const struct service *s = c->list[k].service;

		/* After a login the placeholder is in the token file of the program. */
		if (!(c->list[k].has & ORIGIN_HAS_SECRET))
			continue;
		if (i < s->n_envs) {
			service_fill_sentinel(&s->env[i], c->sandbox, sentinel);
			(void)snprintf(buf, CREDS_MAX_FIELD, "%s=%s", s->env[i].name, sentinel);
			return true;
		}
		i -= s->n_envs;
	}
	return false;
}

size_t creds_count_faults(const struct creds *c)
{
	return c->n_faults;
}

const char *creds_fault(const struct creds *c, size_t i)
{
	return i < c->n_faults ? c->fault[i] : NULL;
}

bool creds_is_same(const struct binding *a, const struct binding *b)
{
	if (a->has != b->has || strcmp(a->name, b->name) != 0 || strcmp(a->text, b->text) != 0)
		return false;
	for (unsigned i = 0; i < ORIGIN_N_WHICH; i++) {
		if (a->value[i].serial != b->value[i].serial ||
			a->value[i].use_s != b->value[i].use_s ||
			strcmp(a->value[i].name, b->value[i].name) != 0)
			return false;
	}
	return true;
}

bool creds_is_renewal(const struct binding *was, const struct binding *now)
{
	const struct creds_value *a = &was->value[ORIGIN_SECRET], *b = &now->value[ORIGIN_SECRET];

	return strcmp(was->name, now->name) == 0 && strcmp(was->text, now->text) == 0 &&
	       (was->has & now->has) == was->has && a->serial == b->serial &&
	       a->use_s == b->use_s && strcmp(a->name, b->name) == 0;
}

void creds_copy(const struct binding *b, struct binding *ret)
{
	*ret = *b;
	ret->text = xstrdup(b->text);
	ret->service = NULL;
}

void creds_drop(struct binding *b)
{
	free(b->text);
	*b = (struct binding){0};
}
