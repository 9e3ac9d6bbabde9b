/* SPDX-License-Identifier: Apache-2.0 */
#include "spec.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "spec_internal.h"

typedef int field_fn(const json_t *v, struct spec *spec, struct err *err);

struct spec_field {
	const char *name;
	field_fn *get;	   /* NULL: a number if it has a max, else a word */
	size_t at, size;   /* the member of struct spec */
	uint64_t min, max; /* of a number */
};

static int get_word(const json_t *v, const char *field, char *buf, size_t size, struct err *err)
{
	if (!json_is_string(v))
		return err_set(err, -EINVAL, "%s must be a string", field);
	if (!json_string_length(v))
		return err_set(err, -EINVAL, "%s is empty", field);
	if (str_copy(buf, size, json_string_value(v)) < 0)
		return err_set(err, -EINVAL, "%s is longer than %zu characters", field, size - 1);
	return 0;
}

static int get_number(
	const json_t *v, const struct spec_field *f, struct spec *spec, struct err *err)
{
	json_int_t n = json_integer_value(v);
	void *at = (char *)spec + f->at;

	if (!json_is_integer(v) || n < 0 || (uint64_t)n < f->min || (uint64_t)n > f->max)
		return err_set(err, -EINVAL, "%s must be a whole number from %llu to %llu", f->name,
			(unsigned long long)f->min, (unsigned long long)f->max);
	if (f->size == sizeof(uint32_t))
		*(uint32_t *)at = (uint32_t)n;
	else
		*(uint64_t *)at = (uint64_t)n;
	return 0;
}

static int get_accel(const json_t *v, struct spec *spec, struct err *err)
{
	const char *s = json_string_value(v);

	if (!s || spec_accel_parse(s, &spec->accel) < 0)
		return err_set(err, -EINVAL, "accel must be auto, kvm or tcg");
	return 0;
}

/* One member of a workspace; a wrong type or an unknown name is refused. */
static int get_ws_member(
	const char *key, const json_t *v, struct spec_workspace *w, struct err *err)
{
	bool is_path =
		strcmp(key, "host") == 0 || strcmp(key, "guest") == 0 || strcmp(key, "typed") == 0;
	bool is_flag = strcmp(key, "ro") == 0 || strcmp(key, "file") == 0;

	if (!is_path && !is_flag)
		return err_set(err, -EINVAL, "unknown field '%.60s' of a workspace", key);
	if (is_path ? !json_is_string(v) : !json_is_boolean(v))
		return err_set(err, -EINVAL, "%s of a workspace must be %s", key,
			is_path ? "a string" : "true or false");
	if (strcmp(key, "host") == 0)
		w->host = xstrdup(json_string_value(v));
	else if (strcmp(key, "guest") == 0)
		w->guest = xstrdup(json_string_value(v));
	else if (strcmp(key, "typed") == 0)
		w->typed = xstrdup(json_string_value(v));
	else if (strcmp(key, "ro") == 0)
		w->ro = json_is_true(v);
	else
		w->file = json_is_true(v);
	return 0;
}

static int get_workspace(json_t *v, struct spec_workspace *w, struct err *err)
{
	const char *key;
	json_t *member;
	int r;

	if (!json_is_object(v))
		return err_set(err, -EINVAL, "a workspace must be an object");
	json_object_foreach (v, key, member) {
		r = get_ws_member(key, member, w, err);
		if (r < 0)
			return r;
	}
	if (!w->host)
		return err_set(err, -EINVAL, "missing host of a workspace");
	if (!w->guest)
		w->guest = xstrdup(w->host);
	return 0;
}

static int check_array(const json_t *v, const char *field, size_t max, struct err *err)
{
	if (!json_is_array(v))
		return err_set(err, -EINVAL, "%s must be a list", field);
	if (json_array_size(v) > max)
		return err_set(err, -E2BIG, "%s has more than %zu entries", field, max);
	return 0;
}

static int get_list(const json_t *v, const char *field, size_t max, struct spec_workspace **ret,
	size_t *ret_n, struct err *err)
{
	int r = check_array(v, field, max, err);
	size_t n = r < 0 ? 0 : json_array_size(v);

	*ret = n ? xcalloc(n, sizeof(**ret)) : NULL;
	for (size_t i = 0; r == 0 && i < n; i++) {
		*ret_n = i + 1;
		r = get_workspace(json_array_get(v, i), &(*ret)[i], err);
	}
	return r;
}

static int get_workspaces(const json_t *v, struct spec *spec, struct err *err)
{
	return get_list(
		v, "workspaces", SPEC_MAX_WORKSPACES, &spec->workspaces, &spec->n_workspaces, err);
}

static int get_mounts(const json_t *v, struct spec *spec, struct err *err)
{
	return get_list(v, "mounts", SPEC_MAX_MOUNTS, &spec->mounts, &spec->n_mounts, err);
}

static int get_force(const json_t *v, struct spec *spec, struct err *err)
{
	if (!json_is_boolean(v))
		return err_set(err, -EINVAL, "force must be true or false");
	spec->force = json_is_true(v);
	return 0;
}

static int get_staged(const json_t *v, struct spec *spec, struct err *err)
{
	if (!json_is_boolean(v))
		return err_set(err, -EINVAL, "staged must be true or false");
	spec->staged = json_is_true(v);
	return 0;
}

static int get_texts(
	const json_t *v, const char *field, size_t max, char ***ret, size_t *ret_n, struct err *err)
{
	int r = check_array(v, field, max, err);
	size_t n = r < 0 ? 0 : json_array_size(v);

	if (r < 0 || *ret)
		return r;
	*ret = n ? xcalloc(n, sizeof(char *)) : NULL;
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(v, i));

		if (!s)
			return err_set(err, -EINVAL, "%s must be a list of strings", field);
		(*ret)[(*ret_n)++] = xstrdup(s);
	}
	return 0;
}

static int get_hide(const json_t *v, struct spec *spec, struct err *err)
{
	return get_texts(v, "hide", SPEC_MAX_HIDE, &spec->hide, &spec->n_hide, err);
}

static int get_guard(const json_t *v, struct spec *spec, struct err *err)
{
	const char *s = json_string_value(v);

	if (!s || spec_guard_parse(s, &spec->guard) < 0)
		return err_set(err, -EINVAL, "guard must be default, strict, report or off");
	return 0;
}

static int get_guard_except(const json_t *v, struct spec *spec, struct err *err)
{
	return get_texts(v, "guard_except", SPEC_MAX_EXCEPT, &spec->guard_except,
		&spec->n_guard_except, err);
}

static int get_only(const json_t *v, struct spec *spec, struct err *err)
{
	return get_texts(v, "only", SPEC_MAX_ONLY, &spec->only, &spec->n_only, err);
}

static int get_ssh_member(const char *key, const json_t *v, struct spec_ssh *s, struct err *err)
{
	if (strcmp(key, "keys") == 0)
		return get_texts(v, "keys", SPEC_MAX_SSH_KEYS, &s->keys, &s->n_keys, err);
	if (strcmp(key, "env") == 0)
		return get_texts(v, "env of ssh_agent", SPEC_MAX_SSH_ENV, &s->env, &s->n_env, err);
	if (strcmp(key, "confirm") == 0 && json_is_boolean(v)) {
		s->confirm = json_is_true(v);
		return 0;
	}
	if (strcmp(key, "socket") == 0 && json_is_string(v)) {
		s->socket = xstrdup(json_string_value(v));
		return 0;
	}
	if (strcmp(key, "askpass") == 0 && json_is_string(v)) {
		s->askpass = xstrdup(json_string_value(v));
		return 0;
	}
	return err_set(err, -EINVAL, "unknown field '%.60s' of ssh_agent", key);
}

static int get_ssh(const json_t *v, struct spec *spec, struct err *err)
{
	const char *key;
	json_t *member;
	int r = 0;

	if (!json_is_object(v))
		return err_set(err, -EINVAL, "ssh_agent must be an object");
	json_object_foreach ((json_t *)v, key, member) {
		r = get_ssh_member(key, member, &spec->ssh, err);
		if (r < 0)
			return r;
	}
	return spec->ssh.socket ? 0 : err_set(err, -EINVAL, "missing socket of ssh_agent");
}

static int get_clone(const json_t *v, struct spec *spec, struct err *err)
{
	const json_t *host = json_object_get(v, "host"), *guest = json_object_get(v, "guest");
	const json_t *branch = json_object_get(v, "branch");

	if (!json_is_string(host) || !json_is_string(guest) ||
		(branch && !json_is_string(branch)) || json_object_size(v) != 2u + !!branch)
		return err_set(
			err, -EINVAL, "clone must be an object with host, guest and maybe branch");
	spec->clone.host = xstrdup(json_string_value(host));
	spec->clone.guest = xstrdup(json_string_value(guest));
	spec->clone.branch = branch ? xstrdup(json_string_value(branch)) : NULL;
	return 0;
}

static int get_ports(const json_t *v, struct spec *spec, struct err *err)
{
	return spec_ports_decode(v, &spec->ports, &spec->n_ports, err);
}

/* Any fixed order will do: JSON objects have none, and two specs are compared entry by entry. */
static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int get_map(
	const json_t *v, const char *field, size_t max, char ***ret, size_t *ret_n, struct err *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(v))
		return err_set(err, -EINVAL, "%s must be an object", field);
	if (json_object_size(v) > max)
		return err_set(err, -E2BIG, "%s has more than %zu entries", field, max);
	if (json_object_size(v) == 0)
		return 0;
	*ret = xcalloc(json_object_size(v), sizeof(char *));
	json_object_foreach ((json_t *)v, key, value) {
		if (!json_is_string(value))
			return err_set(err, -EINVAL, "%s %.60s must be a string", field, key);
		if (!key[0] || strchr(key, '='))
			return err_set(err, -EINVAL, "invalid name '%.60s' in %s", key, field);
		(*ret)[(*ret_n)++] = xasprintf("%s=%s", key, json_string_value(value));
	}
	qsort(*ret, *ret_n, sizeof(char *), by_text);
	return 0;
}

static int get_env(const json_t *v, struct spec *spec, struct err *err)
{
	return get_map(v, "env", SPEC_MAX_ENV, &spec->env, &spec->n_env, err);
}

static int get_labels(const json_t *v, struct spec *spec, struct err *err)
{
	return get_map(v, "labels", SPEC_MAX_LABELS, &spec->labels, &spec->n_labels, err);
}

#define MEMBER(m) NULL, offsetof(struct spec, m), sizeof(((struct spec *)NULL)->m)

static const struct spec_field fields[] = {
	{"id", MEMBER(id), 0, 0},
	{"name", MEMBER(name), 0, 0},
	{"agent", MEMBER(agent), 0, 0},
	{"template", MEMBER(template), 0, 0},
	{"template_id", MEMBER(template_id), 0, 0},
	{"cpus", MEMBER(cpus), 1, SPEC_MAX_CPUS},
	{"memory", MEMBER(memory), SPEC_MIN_MEMORY, SPEC_MAX_MEMORY},
	{"disk", MEMBER(disk), SPEC_MIN_DISK, SPEC_MAX_DISK},
	{"idle_timeout", MEMBER(idle_s), 0, SPEC_MAX_IDLE},
	{"generation", MEMBER(generation), 1, INT64_MAX},
	{"staged_since", MEMBER(staged_since), 1, SPEC_MAX_SINCE},
	{.name = "accel", .get = get_accel},
	{.name = "workspaces", .get = get_workspaces},
	{.name = "mounts", .get = get_mounts},
	{.name = "only", .get = get_only},
	{.name = "force", .get = get_force},
	{.name = "staged", .get = get_staged},
	{.name = "hide", .get = get_hide},
	{.name = "guard", .get = get_guard},
	{.name = "guard_except", .get = get_guard_except},
	{.name = "env", .get = get_env},
	{.name = "labels", .get = get_labels},
	{.name = "ssh_agent", .get = get_ssh},
	{.name = "clone", .get = get_clone},
	{.name = "ports", .get = get_ports},
};

static int get_field(const char *key, const json_t *v, struct spec *spec, struct err *err)
{
	for (const struct spec_field *f = fields; f < fields + ARRAY_LEN(fields); f++) {
		if (strcmp(key, f->name) != 0)
			continue;
		if (f->get)
			return f->get(v, spec, err);
		return f->max ? get_number(v, f, spec, err)
			      : get_word(v, f->name, (char *)spec + f->at, f->size, err);
	}
	return err_set(err, -EINVAL, "unknown field '%.60s'", key);
}

static int decode_object(json_t *root, struct spec *spec, struct err *err)
{
	const char *key;
	json_t *v;
	int r;

	if (!json_is_object(root))
		return err_set(err, -EINVAL, "the body must be a JSON object");
	json_object_foreach (root, key, v) {
		r = get_field(key, v, spec, err);
		if (r < 0)
			return r;
	}
	if (!spec->name[0])
		return err_set(err, -EINVAL, "missing name");
	return spec_check_given(spec, err);
}

int spec_decode(struct slice json, struct spec *ret, struct err *err)
{
	json_error_t je;
	json_t *root;
	int r;

	if (json.n > SPEC_MAX_JSON)
		return err_set(err, -E2BIG, "the text is larger than %d bytes", SPEC_MAX_JSON);
	root = json_loadb(json.n ? (const char *)json.p : "", json.n, JSON_REJECT_DUPLICATES, &je);
	if (!root)
		return err_set(err, -EINVAL, "not JSON, line %d column %d: %s", je.line, je.column,
			je.text);
	r = decode_object(root, ret, err);
	json_decref(root);
	if (r < 0)
		spec_done(ret);
	return r;
}

static json_t *workspaces_to_json(const struct spec_workspace *all, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct spec_workspace *w = &all[i];

		json_array_append_new(list, json_pack("{s:s,s:s,s:b,s:b}", "host", w->host, "guest",
						    w->guest, "ro", w->ro, "file", w->file));
	}
	return list;
}

static json_t *map_to_json(char *const *list, size_t n)
{
	json_t *map = json_object();

	for (size_t i = 0; i < n; i++) {
		size_t end = strcspn(list[i], "=");
		AUTO_FREE char *name = xstrndup(list[i], end);

		json_object_set_new(map, name, json_string(list[i] + end + 1));
	}
	return map;
}

static void set_word(json_t *o, const char *field, const char *word)
{
	if (word[0])
		json_object_set_new(o, field, json_string(word));
}

static void set_number(json_t *o, const char *field, uint64_t n)
{
	if (n)
		json_object_set_new(o, field, json_integer((json_int_t)n));
}

static json_t *list_to_json(char *const *list, size_t n)
{
	json_t *o = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(o, json_string(list[i]));
	return o;
}

static void set_ssh(json_t *o, const struct spec_ssh *ssh)
{
	json_t *s;

	if (!ssh->socket)
		return;
	s = json_pack("{s:s,s:o,s:b}", "socket", ssh->socket, "keys",
		list_to_json(ssh->keys, ssh->n_keys), "confirm", ssh->confirm);
	if (ssh->askpass) {
		json_object_set_new(s, "askpass", json_string(ssh->askpass));
		json_object_set_new(s, "env", list_to_json(ssh->env, ssh->n_env));
	}
	json_object_set_new(o, "ssh_agent", s);
}

json_t *spec_to_json(const struct spec *spec)
{
	json_t *o = json_object();

	set_word(o, "id", spec->id);
	set_word(o, "name", spec->name);
	set_word(o, "agent", spec->agent);
	set_word(o, "template", spec->template);
	set_word(o, "template_id", spec->template_id);
	set_number(o, "generation", spec->generation);
	set_number(o, "cpus", spec->cpus);
	set_number(o, "memory", spec->memory);
	set_number(o, "disk", spec->disk);
	set_word(o, "accel", spec_accel_name(spec->accel));
	json_object_set_new(
		o, "workspaces", workspaces_to_json(spec->workspaces, spec->n_workspaces));
	if (spec->n_mounts)
		json_object_set_new(o, "mounts", workspaces_to_json(spec->mounts, spec->n_mounts));
	if (spec->n_only)
		json_object_set_new(o, "only", list_to_json(spec->only, spec->n_only));
	json_object_set_new(o, "hide", list_to_json(spec->hide, spec->n_hide));
	if (spec->guard)
		set_word(o, "guard", spec_guard_name(spec->guard));
	if (spec->n_guard_except)
		json_object_set_new(
			o, "guard_except", list_to_json(spec->guard_except, spec->n_guard_except));
	if (spec->force)
		json_object_set_new(o, "force", json_true());
	if (spec->staged)
		json_object_set_new(o, "staged", json_true());
	set_number(o, "staged_since", spec->staged_since);
	json_object_set_new(o, "env", map_to_json(spec->env, spec->n_env));
	if (spec->n_labels)
		json_object_set_new(o, "labels", map_to_json(spec->labels, spec->n_labels));
	set_ssh(o, &spec->ssh);
	if (spec->clone.host)
		json_object_set_new(o, "clone",
			json_pack("{s:s,s:s,s:s*}", "host", spec->clone.host, "guest",
				spec->clone.guest, "branch", spec->clone.branch));
	set_number(o, "idle_timeout", spec->idle_s);
	if (spec->n_ports)
		json_object_set_new(o, "ports", spec_ports_to_json(spec));
	return o;
}

char *spec_encode(const struct spec *spec)
{
	json_t *o = spec_to_json(spec);
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	if (!text)
		abort();
	return text;
}
