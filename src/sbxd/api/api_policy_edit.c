/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "api_internal.h"
#include "api_policy.h"
#include "reload_reply.h"
#include "src/sbxd/journal/journal.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

#define MAX_EFFECTIVE 1000 /* rules that a change of the preset can list */
#define MAX_LISTED 20	   /* rules in a reply; their number is included */

/* Replies if there are no rules to change. */
static bool need_rules(struct sbxd *d, struct conn *c)
{
	struct err err = {0};
	int r = rulebook_need(d->rulebook, &err);

	if (r == -ENOENT)
		api_fail(d, c, 409, "no-policy", err.text, "sbx policy set-default balanced");
	else if (r < 0)
		api_fail(d, c, 409, "broken-policy", err.text, "sbx policy reset");
	return r == 0;
}

/* Written, recorded, renamed into place: in this order, so that each step can still fail. */
static int save_rules(struct sbxd *d, const struct journal_entry *e, struct err *err)
{
	struct rulebook *b = d->rulebook;
	struct journal_entry entry = *e;
	AUTO_FREE char *reason = NULL;
	int r = rulebook_prepare(b, err);

	if (r == 0 && !entry.rule) {
		reason = xasprintf("%s%s%zu rules, sha256 %s", e->reason ? e->reason : "",
			e->reason ? ", " : "", b->rules.n, b->hash);
		entry.reason = reason;
	}
	entry.kind = AUDIT_KIND_POLICY_CHANGE;
	if (r == 0)
		r = journal_append(d, &entry, err);
	if (r == 0)
		r = rulebook_commit(b, err);
	if (r < 0)
		rulebook_abandon(b);
	return r;
}

/* Replaces the reference to a rule's sandbox by its name; returns its id for the keeper. */
static bool find_scope(struct sbxd *d, struct conn *c, char **name, char id[SPEC_ID_LEN + 1])
{
	AUTO_ROW struct store_row row = {0};

	id[0] = '\0';
	if (!*name)
		return true;
	if (!api_find(d, c, *name, &row))
		return false;
	free(*name);
	*name = xstrdup(row.spec.name);
	memcpy(id, row.spec.id, SPEC_ID_LEN + 1);
	return true;
}

struct listed {
	json_t *list;
	size_t n;
};

static void list_rule(struct listed *l, const struct rules *rules, const struct rule *rule)
{
	if (l->n++ < MAX_LISTED)
		json_array_append_new(l->list, api_rule_to_json(rules, rule));
}

/* A deny: the rules that it limits. Others: the deny rules that still win. */
static void add_conflicts(json_t *o, const struct rules *rules, const struct rule *rule)
{
	bool deny = rule->effect == RULE_DENY;
	const struct rule *cover = deny ? NULL : rulebook_covering_deny(rules, rule);
	struct listed l = {.list = json_array()};
	uint64_t now = clock_wall_ms();

	if (cover)
		list_rule(&l, rules, cover);
	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *other = &rules->rule[i];

		if (other != cover && (other->effect == RULE_DENY) != deny &&
			!rule_is_over(other, now) && rule_may_meet(other, rule))
			list_rule(&l, rules, other);
	}
	json_object_set_new(o, deny ? "overrides" : "denied_by", l.list);
	json_object_set_new(o, deny ? "n_overrides" : "n_denied_by", json_integer((json_int_t)l.n));
	if (!deny)
		json_object_set_new(o, "no_effect", json_boolean(cover != NULL));
}

/* A host with its ports, or a service: a resource without its path. */
static void print_host(const struct netrule *net, char *buf)
{
	struct netrule host = *net;

	if (net->form != NETRULE_NO_HOST)
		host.path = NULL;
	netrule_print(&host, buf);
}

static bool governs_host(const struct rule *rule, const char *host)
{
	char text[NETRULE_MAX_TEXT];

	for (size_t i = 0; i < rule->n_net; i++) {
		print_host(&rule->net[i], text);
		if (strcmp(text, host) == 0)
			return true;
	}
	return false;
}

static bool is_governed(const struct rules *rules, const struct rule *new, const char *host)
{
	uint64_t now = clock_wall_ms();

	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *rule = &rules->rule[i];

		if (rule->effect == RULE_ALLOW && rule->kind != RULE_NETWORK &&
			(rule->kind == RULE_API) == (new->kind == RULE_API) &&
			!rule_is_over(rule, now) &&
			(!rule->sandbox ||
				(new->sandbox &&strcmp(rule->sandbox, new->sandbox) == 0)) &&
			governs_host(rule, host))
			return true;
	}
	return false;
}

/* The hosts of a rule that no rule of the list governs: before it is added, or after it was
 * removed. */
static void list_bare(json_t *list, const struct rules *rules, const struct rule *rule)
{
	char text[NETRULE_MAX_TEXT];

	for (size_t i = 0; i < rule->n_net; i++) {
		print_host(&rule->net[i], text);
		if (rule->kind != RULE_NETWORK && rule->effect == RULE_ALLOW &&
			!is_governed(rules, rule, text))
			json_array_append_new(list, api_text(text));
	}
}

/* In memory only. */
static int place_rule(struct rules *rules, struct rule *rule, json_t *o, struct err *err)
{
	const struct rule *same = rulebook_find_same(rules, rule);
	char id[RULEBOOK_ID_LEN + 1];
	json_t *governs = json_array();

	add_conflicts(o, rules, rule);
	json_object_set_new(o, "existed", json_boolean(same != NULL));
	json_object_set_new(o, "governs", governs);
	if (!same)
		list_bare(governs, rules, rule);
	if (same) {
		json_object_set_new(o, "rule", api_rule_to_json(rules, same));
		return 0;
	}
	str_random_hex(id, RULEBOOK_ID_LEN / 2);
	rule->id = xstrdup(id);
	rule->created_ms = clock_wall_ms();
	if (!rule->origin)
		rule->origin = xstrdup("local");
	rulebook_drop_over(rules, rule->created_ms);
	rulebook_complete(rules, "local", rule->created_ms);
	json_object_set_new(o, "rule", api_rule_to_json(rules, rule));
	return rules_add(rules, rule, err);
}

static bool is_new(const json_t *o)
{
	return json_is_false(json_object_get(o, "existed"));
}

/* As save_rules, with a record for each new rule of the list. */
static int save_added(struct sbxd *d, const json_t *list, struct err *err)
{
	struct rulebook *b = d->rulebook;
	int r = rulebook_prepare(b, err);
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o) {
		const json_t *rule = json_object_get(o, "rule");
		struct journal_entry e = {.kind = AUDIT_KIND_POLICY_CHANGE,
			.action = "rule-add",
			.rule = json_string_value(json_object_get(rule, "id")),
			.reason = json_string_value(json_object_get(rule, "text")),
			.sandbox = json_string_value(json_object_get(rule, "sandbox"))};

		if (r == 0 && is_new(o))
			r = journal_append(d, &e, err);
	}
	return r < 0 ? r : rulebook_commit(b, err);
}

int api_rules_add(struct sbxd *d, struct rule *v, size_t n, json_t *list, struct err *err)
{
	struct rulebook *b = d->rulebook;
	bool any = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		json_t *o = json_object();

		json_array_append_new(list, o);
		r = place_rule(&b->rules, &v[i], o, err);
		any = any || is_new(o);
	}
	if (r == 0 && any)
		r = save_added(d, list, err);
	if (r < 0)
		rulebook_abandon(b);
	return r;
}

/* Returns the first resource without effect because it names this host without a port, or NULL. */
static const struct netrule *find_portless(const struct rule *rule)
{
	for (size_t i = 0; rule->effect == RULE_ALLOW && i < rule->n_net; i++) {
		if (netrule_is_here(&rule->net[i]) && !rule->net[i].ports.lo)
			return &rule->net[i];
	}
	return NULL;
}

static void fail_portless(struct sbxd *d, struct conn *c, const struct netrule *nr)
{
	AUTO_FREE char *why = xasprintf("%.*s is this host: a rule that allows it must name a port",
		(int)nr->n_name, nr->name);
	AUTO_FREE char *hint =
		xasprintf("sbx policy allow network %.*s:8080", (int)nr->n_name, nr->name);

	api_fail(d, c, 400, "missing-port", why, hint);
}

/* Replies if the managed policy does not permit all that they allow. */
static bool is_within_managed(struct sbxd *d, struct conn *c, const struct rules *rules)
{
	struct err err = {0};
	int r;

	rulebook_look_managed(d->rulebook);
	r = limit_check(&d->rulebook->managed, rules, clock_wall_ms(), &err);
	if (r < 0)
		api_fail(d, c, 403, "managed-policy", err_text(&err, r), "sbx policy ls");
	return r == 0;
}

static bool are_within_managed(struct sbxd *d, struct conn *c, const struct rule *v, size_t n)
{
	AUTO_RULES struct rules rules = {0};
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		AUTO_RULE struct rule copy = rulebook_copy(&v[i]);

		r = rules_add(&rules, &copy, NULL);
	}
	return r == 0 ? is_within_managed(d, c, &rules) : api_succeeded(d, c, r, NULL);
}

bool api_rules_check(struct sbxd *d, struct conn *c, const struct rule *v, size_t n)
{
	struct err err = {0};

	for (size_t i = 0; i < n; i++)
		if (find_portless(&v[i])) {
			fail_portless(d, c, find_portless(&v[i]));
			return false;
		}
	return api_succeeded(d, c, rulebook_check_requests(v, n, &err), &err) &&
	       (n == 0 || (need_rules(d, c) && are_within_managed(d, c, v, n)));
}

void api_rule_add(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_RULE struct rule rule = {0};
	char sandbox[SPEC_ID_LEN + 1];
	struct err err = {0};
	json_t *list, *o;
	int r = api_decode_rule(c->http.body, clock_wall_ms(), &rule, &err);

	if (!api_succeeded(d, c, r, &err))
		return;
	if (!api_rules_check(d, c, &rule, 1) || !find_scope(d, c, &rule.sandbox, sandbox))
		return;
	list = json_array();
	r = api_rules_add(d, &rule, 1, list, &err);
	o = json_incref(json_array_get(list, 0));
	json_decref(list);
	if (r == 0) {
		reload_reply(d, c, is_new(o) ? 201 : 200, o, sandbox[0] ? sandbox : NULL);
		return;
	}
	json_decref(o);
	api_fail_errno(d, c, r, &err);
}

/* ---- removing ---- */

/* Finds the keeper to notify: the sandbox of all these rules, else all keepers (empty id). */
static void find_keeper(struct sbxd *d, const struct rules *old, char id[SPEC_ID_LEN + 1])
{
	AUTO_ROW struct store_row row = {0};
	const char *name = old->rule[0].sandbox;

	id[0] = '\0';
	for (size_t i = 1; i < old->n && name; i++)
		if (!old->rule[i].sandbox || strcmp(old->rule[i].sandbox, name) != 0)
			name = NULL;
	if (name && store_get(d->store, name, &row, NULL) == 0)
		memcpy(id, row.spec.id, SPEC_ID_LEN + 1);
}

static void remove_rules(struct sbxd *d, struct conn *c, const struct rulebook_match *m)
{
	AUTO_RULES struct rules old = {0};
	AUTO_FREE char *line = NULL;
	struct journal_entry e = {.action = "rule-rm"};
	struct listed l = {0};
	char id[SPEC_ID_LEN + 1];
	struct err err = {0};
	json_t *o, *bare;
	int r = rulebook_remove(&d->rulebook->rules, m, &old, &err);

	if (r < 0 && m->id && str_starts(m->id, MANAGED_ID)) {
		api_fail(d, c, 403, "managed-policy",
			"the rule is in " MANAGED_FILE ", which only root can change",
			"sbx policy ls");
		return;
	}
	if (r < 0) {
		api_fail(d, c, 404, "not-found", err.text, "sbx policy ls --wide");
		return;
	}
	line = m->id ? rule_print(&old.rule[0], RULE_PRINT_PLAIN)
		     : rule_print_resources(m->resources);
	e.rule = old.rule[0].id ? old.rule[0].id : "-";
	e.reason = line;
	e.sandbox = old.rule[0].sandbox;
	e.count = old.n;
	r = save_rules(d, &e, &err);
	if (!api_succeeded(d, c, r, &err))
		return;
	o = json_object();
	l.list = json_array();
	bare = json_array();
	for (size_t i = 0; i < old.n; i++) {
		list_rule(&l, &old, &old.rule[i]);
		list_bare(bare, &d->rulebook->rules, &old.rule[i]);
	}
	json_object_set_new(o, "ungoverned", bare);
	json_object_set_new(o, "removed", l.list);
	json_object_set_new(o, "n_removed", json_integer((json_int_t)l.n));
	find_keeper(d, &old, id);
	reload_reply(d, c, 200, o, id[0] ? id : NULL);
}

void api_rule_rm(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct rulebook_match m = {.id = req->ref};

	if (need_rules(d, c))
		remove_rules(d, c, &m);
}

void api_rules_rm(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_RULE struct rule what = {0};
	AUTO_ROW struct store_row row = {0};
	struct rulebook_match m = {.sandbox = req->sandbox,
		.any_effect = !req->has_effect,
		.effect = req->effect,
		.resources = &what};
	struct err err = {0};
	int r = rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str(req->resource), &what, &err);

	if (!api_succeeded(d, c, r, &err))
		return;
	/* Rules may exist for a sandbox that does not: its name is accepted as it is. */
	if (req->sandbox && store_get(d->store, req->sandbox, &row, NULL) == 0)
		m.sandbox = row.spec.name;
	if (need_rules(d, c))
		remove_rules(d, c, &m);
}

/* ---- the whole ---- */

/* A text too long for a body: a file of the same user in the state directory, removed after use. */
static int read_import(const char *name, char **ret_text, size_t *ret_n, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "%s", name);
	AUTO_FREE char *text = NULL;
	AUTO_CLOSE int fd = -1;
	struct stat st;
	ssize_t n;

	if (!str_starts(name, RULEBOOK_IMPORT_PREFIX) || strchr(name, '/'))
		return err_set(err, -EINVAL, "file must be the name of a file '%s...'",
			RULEBOOK_IMPORT_PREFIX);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -EINVAL, "cannot open %s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size > RULES_MAX_BYTES)
		return err_set(err, -EINVAL,
			"%s is not a regular file of this user with at most %u bytes", name,
			RULES_MAX_BYTES);
	(void)unlink(path);
	text = xmalloc((size_t)st.st_size + 1);
	n = fd_read_full(fd, text, (size_t)st.st_size);
	if (n < 0)
		return err_errno(err, (int)n, "cannot read %s", name);
	*ret_text = TAKE(text);
	*ret_n = (size_t)n;
	return 0;
}

static int replace_rules(struct sbxd *d, const struct api_policy *p, struct err *err)
{
	AUTO_FREE char *text = NULL;
	uint64_t now = clock_wall_ms();
	size_t n = 0;
	int r;

	if (p->preset && !rulebook_is_preset(p->preset))
		return err_set(err, -EINVAL,
			"unknown preset '%.64s': expected allow-all, balanced or deny-all",
			p->preset);
	if (p->preset)
		return rulebook_load_preset(d->rulebook, p->preset, p->lock, now, err);
	if (p->text)
		return rulebook_import(d->rulebook, slice_from_str(p->text), "text", now, err);
	r = read_import(p->file, &text, &n, err);
	return r < 0 ? r : rulebook_import(d->rulebook, slice_of(text, n), "text", now, err);
}

/* Counts the rules that are not the preset's, and those of them that a deny makes useless. */
static void add_counts(json_t *o, const struct rules *rules)
{
	size_t own = 0, useless = 0;

	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *rule = &rules->rule[i];

		if (rule->group && rulebook_preset_of_group(rules->group[rule->group - 1].name))
			continue;
		own++;
		/* Limited: this is only a warning, and each check reads every rule. */
		if (own <= MAX_LISTED && rule->effect == RULE_ALLOW)
			useless += rulebook_covering_deny(rules, rule) != NULL;
	}
	json_object_set_new(o, "rules", json_integer((json_int_t)rules->n));
	json_object_set_new(o, "own", json_integer((json_int_t)own));
	json_object_set_new(o, "without_effect", json_integer((json_int_t)useless));
}

/* The ids of the first allow rules that a deny makes useless. */
static json_t *without_effect(const struct rules *rules)
{
	json_t *ids = json_array();

	for (size_t i = 0; i < rules->n && json_array_size(ids) < MAX_EFFECTIVE; i++) {
		const struct rule *rule = &rules->rule[i];

		if (rule->effect == RULE_ALLOW && rule->id && rulebook_covering_deny(rules, rule))
			json_array_append_new(ids, json_string(rule->id));
	}
	return ids;
}

/* Adds the rules that had no effect before and have one now. */
static void add_effective(json_t *o, const struct rules *rules, const json_t *ids)
{
	json_t *list = json_array();
	const json_t *id;
	size_t i;

	json_array_foreach (ids, i, id) {
		const struct rule *rule = rulebook_find(rules, json_string_value(id));

		if (rule && !rulebook_covering_deny(rules, rule))
			json_array_append_new(list, api_rule_to_json(rules, rule));
	}
	json_object_set_new(o, "effective", list);
}

void api_policy_put(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_API_POLICY struct api_policy p = {0};
	struct journal_entry e = {0};
	struct err err = {0};
	json_t *o, *useless;
	int r = api_decode_policy(c->http.body, &p, &err);

	rulebook_refresh(d->rulebook);
	useless = without_effect(&d->rulebook->rules);
	if (r == 0)
		r = replace_rules(d, &p, &err);
	o = json_object();
	if (r == 0)
		add_effective(o, &d->rulebook->rules, useless);
	json_decref(useless);
	if (r == -EBADMSG) {
		json_decref(o);
		api_fail(d, c, 409, "broken-policy", err.text, "sbx policy reset");
		return;
	}
	if (r == 0 && !p.preset && !is_within_managed(d, c, &d->rulebook->rules)) {
		json_decref(o);
		rulebook_abandon(d->rulebook);
		return;
	}
	e.action = p.preset ? "set-default" : "import";
	e.reason = p.lock ? "deny-all, locked" : p.preset;
	if (r == 0)
		r = save_rules(d, &e, &err);
	if (r < 0) {
		json_decref(o);
		rulebook_abandon(d->rulebook);
		api_fail_errno(d, c, r, &err);
		return;
	}
	add_counts(o, &d->rulebook->rules);
	reload_reply(d, c, 200, o, NULL);
}

void api_policy_reset(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct journal_entry e = {.kind = AUDIT_KIND_POLICY_CHANGE, .action = "reset"};
	struct rulebook *b = d->rulebook;
	struct err err = {0};
	json_t *o;
	int r = 0;

	rulebook_refresh(b);
	if (!b->exists)
		r = err_set(&err, -ENOENT, "no network policy is set");
	e.count = b->rules.n;
	if (r == 0)
		r = journal_append(d, &e, &err);
	if (r == 0)
		r = rulebook_erase(b, &err);
	if (!api_succeeded(d, c, r, &err))
		return;
	o = json_object();
	json_object_set_new(o, "removed", json_integer((json_int_t)e.count));
	reload_reply(d, c, 200, o, NULL);
}
