/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials: metadata only, never a value. The value of a new one is in a descriptor of the
 * request, which is passed to the vault unread. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "api_internal.h"
#include "api_service.h"
#include "api_vault.h"
#include "ref_check.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/secret/service/custom.h"

#define CUSTOM_NAME "custom-credential" /* in messages and in the check; the vault has the user's */
#define LOCKED_HINT "sbx secret unlock"

/* ---- questions to the vault ---- */

static void fail_vault(struct sbxd *d, struct conn *c, const struct vault_op *op)
{
	const char *text = op->done.text[0] ? op->done.text : strerror(-op->done.code);

	switch (op->done.code) {
	case -ENOKEY:
		api_fail(d, c, 409, "locked", text, LOCKED_HINT);
		break;
	case -EKEYREJECTED:
		api_fail(d, c, 409, "wrong-passphrase", text, LOCKED_HINT);
		break;
	case -ENOENT:
		api_fail(d, c, 404, "not-found", text, "sbx secret ls");
		break;
	case -EINVAL:
		api_refuse(d, c, 400, "bad-request", text);
		break;
	case -EMSGSIZE:
	case -E2BIG:
	case -ENOSPC:
		api_refuse(d, c, 413, "too-large", text);
		break;
	case -EBUSY:
		api_refuse(d, c, 409, "busy", text);
		break;
	case -ETIMEDOUT:
		api_fail(d, c, 504, "timeout", text, "sbx secret status");
		break;
	default:
		api_fail(d, c, 503, "no-vault", text, "sbx secret status");
	}
}

static void wait_vault(struct sbxd *d, struct conn *c, bool late)
{
	struct vault_op *op = vault_link_find(d, c->vault_op);

	if (op && op->state == VAULT_OP_FINISHED) {
		c->vault_op = 0;
		if (op->done.code < 0)
			fail_vault(d, c, op);
		else
			op->reply(d, c, op);
		vault_link_forget(d, op);
	} else if (late || !op) {
		c->vault_op = 0;
		api_fail(d, c, 504, "timeout", "timed out waiting for the vault",
			"sbx secret status");
	}
}

void api_vault_ask(
	struct sbxd *d, struct conn *c, struct vault_op *op, api_vault_fn *reply, uint64_t ms)
{
	c->vault_op = op->id;
	op->reply = reply;
	conn_wait(d, c, wait_vault, "", ms);
	vault_link_step(d);
}

static void ask_vault(struct sbxd *d, struct conn *c, struct vault_op *op, api_vault_fn *reply)
{
	api_vault_ask(d, c, op, reply, VAULT_HELLO_MS + VAULT_ANSWER_MS);
}

struct vault_op *api_vault_op(struct sbxd *d, struct conn *c, enum vault_msg what)
{
	struct vault_op *op = vault_link_ask(d, what);

	if (!op)
		api_refuse(d, c, 503, "busy", "too many requests to the vault: try again");
	return op;
}

int api_take_passed(struct sbxd *d, struct conn *c, const char *why)
{
	if (c->passed_fd < 0 || c->too_many_fds) {
		api_refuse(d, c, 400, "bad-request", why);
		return -1;
	}
	return TAKE_FD(c->passed_fd);
}

static int take_pipe(struct sbxd *d, struct conn *c, const char *what)
{
	AUTO_FREE char *why =
		xasprintf("expected one descriptor with %s, a pipe or a socket", what);

	return api_take_passed(d, c, why);
}

/* ---- the list ---- */

static json_t *json_number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *split_words(const char *words)
{
	AUTO_FREE char *copy = xstrdup(words);
	json_t *list = json_array();
	char *rest = NULL;

	for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
		json_array_append_new(list, api_text(w));
	return list;
}

static json_t *service_envs(const struct service *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_envs; i++)
		json_array_append_new(list, api_text(s->env[i].name));
	return list;
}

/* The name of a token follows its service. */
static const struct service *find_service(const struct vault_meta *meta, const struct services *set)
{
	char name[VAULT_MAX_NAME];

	if (meta->kind != VAULT_SERVICE || !set)
		return NULL;
	(void)snprintf(name, sizeof(name), "%s", meta->name);
	if (vault_name_is_token(name))
		*strchr(name, '.') = '\0';
	return services_by_name(set, name);
}

static void add_places(json_t *o, const struct vault_meta *meta, const struct services *set)
{
	const struct service *s = find_service(meta, set);
	bool is_token = meta->kind == VAULT_SERVICE && vault_name_is_token(meta->name);
	static const char *const kinds[VAULT_N_KINDS] = {"service", "custom", "proxy"};
	const char *kind = is_token ? "oauth" : kinds[meta->kind];

	json_object_set_new(o, "kind", json_string(kind));
	json_object_set_new(o, "hosts",
		s ? api_service_hosts(s, is_token ? SERVICE_ACCESS : SERVICE_SECRET)
		  : split_words(meta->hosts));
	json_object_set_new(
		o, "env", s && !is_token ? service_envs(s) : split_words(s ? "" : meta->env));
	/* a service without a file is not used */
	json_object_set_new(o, "known", json_boolean(s || meta->kind != VAULT_SERVICE));
	if (meta->kind != VAULT_SERVICE) {
		json_object_set_new(o, "header", api_text(meta->header));
		json_object_set_new(o, "format", api_text(meta->format));
		json_object_set_new(o, "sentinel", api_text(meta->sentinel));
	}
}

static void add_scope(struct sbxd *d, json_t *o, const struct vault_meta *meta)
{
	AUTO_ROW struct store_row row = {0};
	bool found = meta->scope[0] && store_get(d->store, meta->scope, &row, NULL) == 0;

	json_object_set_new(o, "scope", json_string(meta->scope[0] ? "sandbox" : "global"));
	json_object_set_new(o, "sandbox_id", meta->scope[0] ? api_text(meta->scope) : json_null());
	json_object_set_new(o, "sandbox", found ? api_text(row.spec.name) : json_null());
}

static void add_source(json_t *o, const struct vault_item *item)
{
	static const char *const sources[VAULT_N_REFS] = {"value", "docker", "command", "command"};
	AUTO_FREE char *mask = xasprintf("%s****%s", item->mask_head, item->mask_tail);

	json_object_set_new(o, "source", json_string(sources[item->ref]));
	json_object_set_new(
		o, "secret", api_text(item->ref == VAULT_REF_NONE ? mask : "(on demand)"));
	if (item->ref == VAULT_REF_NONE)
		return;
	json_object_set_new(o, "program", api_text(item->program));
	json_object_set_new(o, "refresh_s", json_number(item->refresh_s));
}

static json_t *item_to_json(
	struct sbxd *d, const struct vault_item *item, const struct services *set)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", api_text(item->meta.name));
	add_scope(d, o, &item->meta);
	add_places(o, &item->meta, set);
	add_source(o, item);
	json_object_set_new(o, "created_at", json_number(item->created_ms));
	json_object_set_new(o, "changed_at", json_number(item->changed_ms));
	json_object_set_new(o, "used_at", json_number(item->used_ms));
	return o;
}

static void reply_list(struct sbxd *d, struct conn *c, struct vault_op *op)
{
	struct services *set = api_load_services(NULL);
	json_t *list = json_array();

	for (size_t i = 0; i < op->n_items; i++)
		json_array_append_new(list, item_to_json(d, &op->items[i], set));
	services_free(set);
	api_reply_json(d, c, 200, json_pack("{s:o}", "secrets", list));
}

void api_secrets(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct vault_op *op;

	/* do not create a vault only to list nothing */
	if (!vault_link_has_vault(d)) {
		api_reply_json(d, c, 200, json_pack("{s:[]}", "secrets"));
		return;
	}
	op = api_vault_op(d, c, VAULT_LIST);
	if (op)
		ask_vault(d, c, op, reply_list);
}

/* ---- the state ---- */

static void reply_status(struct sbxd *d, struct conn *c, struct vault_op *op)
{
	static const char *const states[VAULT_N_STATES] = {"opening", "ready", "locked", "failed"};
	static const char *const keys[VAULT_N_KEYS] = {
		"none", "file", "secret-service", "systemd-creds", "passphrase"};
	static const char *const memories[VAULT_N_MEMORIES] = {"hidden", "locked", "plain"};
	const struct vault_status *s = &op->status;

	api_reply_json(d, c, 200,
		json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:I,s:b,s:o}", "state", states[s->state], "key",
			keys[s->key], "key_text", vault_key_text(s->key), "memory",
			memories[s->memory], "memory_text", vault_memory_text(s->memory), "secrets",
			(int)s->n_items, "generation", (json_int_t)s->generation, "locked",
			s->state == VAULT_LOCKED, "text", api_text(s->text)));
}

void api_secret_status(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct vault_op *op;

	if (!vault_link_has_vault(d)) {
		api_reply_json(d, c, 200,
			json_pack("{s:s,s:s,s:i,s:I,s:b,s:s}", "state", "empty", "key", "none",
				"secrets", 0, "generation", (json_int_t)0, "locked", 0, "text",
				"no credentials are set"));
		return;
	}
	op = api_vault_op(d, c, VAULT_STATUS);
	if (op)
		ask_vault(d, c, op, reply_status);
}

static void reply_done(struct sbxd *d, struct conn *c, struct vault_op *op)
{
	conn_reply(d, c, 204, NULL);
}

void api_secret_unlock(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_CLOSE int fd = take_pipe(d, c, "the passphrase");
	struct vault_op *op = fd < 0 ? NULL : api_vault_op(d, c, VAULT_UNLOCK);

	if (!op)
		return;
	op->fd = TAKE_FD(fd);
	ask_vault(d, c, op, reply_done);
}

/* ---- set ---- */

/* "NAME: line N: " of a text that the user never saw. */
static const char *without_line(const char *text)
{
	const char *line = strstr(text, ": line "), *colon = line ? strchr(line + 2, ':') : NULL;

	return colon && colon[1] == ' ' ? colon + 2 : text;
}

/* Hosts with their ports and the header as they will be compared. */
static int take_canonical(const struct service *s, struct vault_meta *meta, struct err *err)
{
	json_t *hosts = api_service_hosts(s, SERVICE_SECRET), *item;
	size_t i, n = 0;
	int r = 0;

	meta->hosts[0] = '\0';
	json_array_foreach (hosts, i, item) {
		const char *text = json_string_value(item);

		if (n + strlen(text) + 2 > sizeof(meta->hosts)) {
			r = err_set(err, -E2BIG, "the hosts are longer than %zu bytes",
				sizeof(meta->hosts) - 1);
			break;
		}
		n += (size_t)snprintf(
			meta->hosts + n, sizeof(meta->hosts) - n, "%s%s", n ? " " : "", text);
	}
	json_decref(hosts);
	(void)snprintf(meta->header, sizeof(meta->header), "%.*s", VAULT_MAX_HEADER - 1,
		s->slot[0].header);
	return r;
}

static int check_custom(struct services *set, struct vault_meta *meta, struct err *err)
{
	const struct custom custom = {.name = CUSTOM_NAME,
		.hosts = meta->hosts,
		.header = meta->header,
		.format = meta->format,
		.env = meta->env,
		.sentinel = meta->sentinel};
	AUTO_FREE char *text = NULL;
	struct err why = {0};
	int r;

	if (services_by_name(set, meta->name))
		return err_set(err, -EEXIST, "'%s' is the name of a service: use another name",
			meta->name);
	r = custom_text(&custom, &text, err);
	if (r < 0)
		return r == -EINVAL || r == -E2BIG ? r : -EINVAL;
	r = services_add(set, slice_from_str(text), CUSTOM_NAME, &why);
	if (r < 0)
		return err_set(err, r == -EEXIST ? r : -EINVAL, "%s", without_line(why.text));
	return take_canonical(services_by_name(set, CUSTOM_NAME), meta, err);
}

/* The login at network.proxy, as `sbx secret set --proxy` sends it. */
static int check_proxy(const struct vault_meta *meta, struct err *err)
{
	bool is_socks = strcmp(meta->header, "socks5") == 0;

	if (!is_socks && strcmp(meta->header, "http") != 0)
		return err_set(err, -EINVAL, "header of a proxy must be http or socks5");
	if (!meta->hosts[0] || strchr(meta->hosts, ' ') || !strchr(meta->hosts, ':'))
		return err_set(err, -EINVAL, "hosts of a proxy must be one HOST:PORT");
	if (!meta->format[0] || strchr(meta->format, ':'))
		return err_set(err, -EINVAL, "format of a proxy must be its user");
	if (meta->env[0] || meta->sentinel[0] || meta->scope[0])
		return err_set(err, -EINVAL, "a proxy has no env, no placeholder and no sandbox");
	return 0;
}

static int check_meta(struct vault_meta *meta, struct err *err)
{
	bool is_proxy = strcmp(meta->name, VAULT_PROXY_NAME) == 0;
	struct services *set;
	int r = 0;

	if (is_proxy != (meta->kind == VAULT_PROXY))
		return err_set(err, -EINVAL, "%s is the name of the credential of kind proxy, only",
			VAULT_PROXY_NAME);
	if (is_proxy)
		return check_proxy(meta, err);
	set = api_load_services(err);

	if (!set)
		return -EIO;
	if (meta->kind == VAULT_CUSTOM)
		r = check_custom(set, meta, err);
	else if (!services_by_name(set, meta->name))
		r = err_set(err, -ENOENT, "unknown service '%s'", meta->name);
	services_free(set);
	return r;
}

static void reply_set(struct sbxd *d, struct conn *c, struct vault_op *op)
{
	struct services *set = api_load_services(NULL);
	json_t *o = json_object();

	json_object_set_new(o, "name", api_text(op->meta->name));
	add_scope(d, o, op->meta);
	add_places(o, op->meta, set);
	json_object_set_new(o, "serial", json_number(op->done.number));
	/* the host of a proxy is not a target */
	json_object_set_new(o, "denied",
		op->meta->kind == VAULT_PROXY ? json_array()
					      : api_denied_hosts(d, json_object_get(o, "hosts"),
							op->sandbox[0] ? op->sandbox : NULL));
	services_free(set);
	api_reply_json(d, c, 200, o);
}

/* Its sandbox: the id is the scope, the name is for users. */
static bool find_scope(
	struct sbxd *d, struct conn *c, const char *ref, struct vault_meta *meta, char *name)
{
	AUTO_ROW struct store_row row = {0};

	if (!ref)
		return true;
	if (!api_find(d, c, ref, &row))
		return false;
	(void)snprintf(meta->scope, sizeof(meta->scope), "%s", row.spec.id);
	(void)snprintf(name, SPEC_MAX_NAME + 1, "%s", row.spec.name);
	return true;
}

void api_secret_put(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_API_SECRET struct api_secret s = {0};
	AUTO_CLOSE int fd = -1;
	char sandbox[SPEC_MAX_NAME + 1] = "";
	struct vault_op *op;
	struct err err = {0};
	int r = api_decode_secret(c->http.body, req->ref, &s, &err);

	if (r == 0)
		r = check_meta(&s.meta, &err);
	if (r == -ENOENT) {
		api_fail(d, c, 404, "no-service", err.text, "sbx secret services");
		return;
	}
	if (!api_succeeded(d, c, r, &err))
		return;
	if (!find_scope(d, c, s.sandbox, &s.meta, sandbox))
		return;
	r = s.ref.kind == VAULT_REF_NONE ? 0 : ref_check(d, &s.ref, &err);
	if (r < 0) {
		api_fail(d, c, 400, "bad-program", err_text(&err, r), NULL);
		return;
	}
	if (s.ref.kind == VAULT_REF_NONE) {
		fd = take_pipe(d, c, "the value");
		if (fd < 0)
			return;
	}
	op = api_vault_op(d, c, s.ref.kind == VAULT_REF_NONE ? VAULT_SET : VAULT_SET_REF);
	if (!op)
		return;
	op->fd = TAKE_FD(fd);
	op->meta = xmalloc(sizeof(*op->meta));
	*op->meta = s.meta;
	op->ref = xmalloc(sizeof(*op->ref));
	*op->ref = s.ref;
	memcpy(op->sandbox, sandbox, sizeof(op->sandbox));
	ask_vault(d, c, op, reply_set);
}

/* ---- rm ---- */

void api_secret_rm(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	char sandbox[SPEC_MAX_NAME + 1] = "";
	struct vault_meta meta = {0};
	struct vault_op *op;

	if (strlen(req->ref) >= VAULT_MAX_NAME || !vault_name_is_good(req->ref) ||
		!vault_link_has_vault(d)) {
		api_fail(d, c, 404, "not-found", "credential not found", "sbx secret ls");
		return;
	}
	memcpy(meta.name, req->ref, strlen(req->ref) + 1);
	if (!find_scope(d, c, req->sandbox, &meta, sandbox))
		return;
	op = api_vault_op(d, c, VAULT_REMOVE);
	if (!op)
		return;
	op->meta = xmalloc(sizeof(*op->meta));
	*op->meta = meta;
	memcpy(op->sandbox, sandbox, sizeof(op->sandbox));
	ask_vault(d, c, op, reply_done);
}
