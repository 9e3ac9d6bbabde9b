/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "api_body.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static bool is_one_of(const char *key, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(key, *list) == 0)
			return true;
	return false;
}

int api_body_check(json_t *o, const char *const *allowed, struct err *err)
{
	const char *key;
	json_t *v;

	json_object_foreach (o, key, v) {
		if (!is_one_of(key, allowed))
			return err_set(err, -EINVAL, "unknown or read-only field '%.60s'", key);
	}
	return 0;
}

int api_body_load(struct slice body, const char *const *allowed, json_t **ret, struct err *err)
{
	json_error_t je;

	*ret = json_loadb(body.n ? (const char *)body.p : "", body.n, JSON_REJECT_DUPLICATES, &je);
	if (!*ret)
		return err_set(err, -EINVAL, "not JSON, line %d column %d: %s", je.line, je.column,
			je.text);
	if (!json_is_object(*ret))
		return err_set(err, -EINVAL, "the body must be a JSON object");
	return allowed ? api_body_check(*ret, allowed, err) : 0;
}

/* A call cannot combine immediate changes with one that waits. */
static int check_alone(json_t *o, struct err *err)
{
	return json_object_get(o, "name") && json_object_get(o, "ports")
		       ? err_set(err, -EINVAL, "name and ports cannot be changed together")
		       : 0;
}

static int take_generation(json_t *o, uint64_t *ret, struct err *err)
{
	json_t *v = json_object_get(o, "generation");

	*ret = 0;
	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 1)
		return err_set(err, -EINVAL, "generation must be a whole number from 1");
	*ret = (uint64_t)json_integer_value(v);
	json_object_del(o, "generation");
	return 0;
}

/* env has changes: a value of null removes a variable. */
static int merge_env(json_t *whole, json_t *o, struct err *err)
{
	json_t *change = json_object_get(o, "env"), *env, *v;
	const char *name;

	if (!change)
		return 0;
	if (!json_is_object(change))
		return err_set(err, -EINVAL, "env must be an object");
	env = json_deep_copy(json_object_get(whole, "env"));
	json_object_foreach (change, name, v) {
		if (!json_is_null(v)) {
			(void)json_object_set(env, name, v);
		} else if (json_object_del(env, name) < 0) {
			json_decref(env);
			return err_set(err, -EINVAL, "the sandbox has no variable '%.100s'", name);
		}
	}
	return json_object_set_new(o, "env", env);
}

/* The fields are merged into the old spec as JSON, so that one decoder checks both. */
int api_decode_patch(struct slice body, const struct spec *old, struct spec *ret,
	uint64_t *ret_generation, struct err *err)
{
	static const char *const allowed[] = {"name", "cpus", "memory", "accel", "idle_timeout",
		"guard", "guard_except", "labels", "ports", "generation", "env", "hide",
		"workspaces", "force", NULL};
	AUTO_FREE char *text = NULL;
	json_auto_t *o = NULL, *whole = NULL;
	int r = api_body_load(body, allowed, &o, err);

	if (r == 0)
		r = check_alone(o, err);
	if (r == 0)
		r = take_generation(o, ret_generation, err);
	if (r < 0)
		return r;
	whole = spec_to_json(old);
	if (merge_env(whole, o, err) < 0)
		return -EINVAL;
	json_object_update(whole, o);
	text = json_dumps(whole, JSON_COMPACT);
	if (!text)
		abort();
	return spec_decode(slice_from_str(text), ret, err);
}

int api_decode_ports(struct slice body, struct spec_port **ret, size_t *ret_n, struct err *err)
{
	static const char *const allowed[] = {"ports", NULL};
	json_auto_t *o = NULL;
	int r = api_body_load(body, allowed, &o, err);

	if (r == 0)
		r = spec_ports_decode(json_object_get(o, "ports"), ret, ret_n, err);
	if (r == 0 && *ret_n == 0)
		r = err_set(err, -EINVAL, "ports is empty");
	return r;
}

static int take_bool(json_t *o, const char *key, bool *ret, struct err *err)
{
	json_t *v = json_object_get(o, key);

	if (v && !json_is_boolean(v))
		return err_set(err, -EINVAL, "%s must be true or false", key);
	*ret = json_is_true(v);
	return 0;
}

int api_decode_start(struct slice body, enum spec_accel *accel, bool *cold, struct err *err)
{
	static const char *const allowed[] = {"accel", "cold", NULL};
	json_auto_t *o = NULL;
	json_t *v;
	int r;

	if (!body.n)
		return 0;
	r = api_body_load(body, allowed, &o, err);
	v = json_object_get(o, "accel");
	if (r == 0 && v &&
		(!json_is_string(v) || spec_accel_parse(json_string_value(v), accel) < 0))
		r = err_set(err, -EINVAL, "accel must be auto, kvm or tcg");
	if (r == 0)
		r = take_bool(o, "cold", cold, err);
	return r;
}

int api_decode_stop(
	struct slice body, uint64_t *timeout_ms, bool *suspend, bool *idle, struct err *err)
{
	static const char *const allowed[] = {"timeout_ms", "suspend", "suspend_idle", NULL};
	json_auto_t *o = NULL;
	json_t *v;
	int r;

	*suspend = *idle = false;
	if (!body.n)
		return 0;
	r = api_body_load(body, allowed, &o, err);
	v = json_object_get(o, "timeout_ms");
	if (r == 0 && v &&
		(!json_is_integer(v) || json_integer_value(v) < 0 ||
			json_integer_value(v) > API_MAX_STOP_MS))
		r = err_set(err, -EINVAL, "timeout_ms must be a whole number up to %d",
			API_MAX_STOP_MS);
	if (r == 0 && v)
		*timeout_ms = (uint64_t)json_integer_value(v);
	if (r == 0)
		r = take_bool(o, "suspend", suspend, err);
	if (r == 0)
		r = take_bool(o, "suspend_idle", idle, err);
	if (r == 0 && *idle && (*suspend || v))
		r = err_set(err, -EINVAL, "suspend_idle excludes suspend and timeout_ms");
	return r;
}

static int take_label(const json_t *o, char *ret, size_t size, struct err *err)
{
	const json_t *v = json_object_get(o, "label");

	if (v && (!json_is_string(v) || str_copy(ret, size, json_string_value(v)) < 0))
		return err_set(
			err, -EINVAL, "label must be a string of at most %zu bytes", size - 1);
	return 0;
}

int api_decode_checkpoint(struct slice body, char *ret, size_t size, bool *ret_auto,
	bool *ret_memory, struct err *err)
{
	static const char *const allowed[] = {"label", "auto", "with_memory", NULL};
	json_auto_t *o = NULL;
	int r;

	if (!body.n)
		return 0;
	r = api_body_load(body, allowed, &o, err);
	if (r == 0)
		r = take_label(o, ret, size, err);
	if (r == 0)
		r = take_bool(o, "auto", ret_auto, err);
	if (r == 0)
		r = take_bool(o, "with_memory", ret_memory, err);
	if (r == 0 && *ret_auto && (ret[0] || *ret_memory))
		r = err_set(err, -EINVAL, "%s and auto are mutually exclusive",
			ret[0] ? "label" : "with_memory");
	return r;
}

int api_decode_rewind(struct slice body, char *ret_label, size_t size, struct err *err)
{
	static const char *const allowed[] = {"label", "undo", NULL};
	json_auto_t *o = NULL;
	bool undo = false;
	int r = api_body_load(body, allowed, &o, err);

	if (r == 0)
		r = take_label(o, ret_label, size, err);
	if (r == 0)
		r = take_bool(o, "undo", &undo, err);
	if (r == 0 && undo == (ret_label[0] != '\0'))
		r = err_set(err, -EINVAL, "expected one of label and undo");
	return r;
}

static bool is_stage_action(const char *text)
{
	static const char *const actions[] = {"review", "apply", "undo", "discard"};

	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (strcmp(text, actions[i]) == 0)
			return true;
	return false;
}

int api_decode_stage(struct slice body, struct api_stage_body *ret, struct err *err)
{
	static const char *const allowed[] = {"action", "sha256", "count", "names", NULL};
	json_auto_t *o = NULL;
	int r = api_body_load(body, allowed, &o, err);
	const char *action = json_string_value(json_object_get(o, "action"));
	const char *sha = json_string_value(json_object_get(o, "sha256"));
	const char *names = json_string_value(json_object_get(o, "names"));
	json_int_t count = json_integer_value(json_object_get(o, "count"));

	*ret = (struct api_stage_body){0};
	if (r < 0)
		return r;
	if (!action || !is_stage_action(action))
		return err_set(err, -EINVAL, "action must be review, apply, undo or discard");
	if (sha && (strlen(sha) != 64 || strspn(sha, "0123456789abcdef") != 64))
		return err_set(err, -EINVAL, "sha256 must be 64 hexadecimal digits");
	if (count < 0 || count > API_MAX_CHANGES)
		return err_set(
			err, -EINVAL, "count must be a whole number up to %d", API_MAX_CHANGES);
	if (str_copy(ret->names, sizeof(ret->names), names ? names : "") < 0)
		return err_set(err, -EINVAL, "names is longer than %d bytes", AUDIT_MAX_OP);
	(void)snprintf(ret->action, sizeof(ret->action), "stage-%s", action);
	(void)snprintf(ret->sha256, sizeof(ret->sha256), "%s", sha ? sha : "");
	ret->count = (uint64_t)count;
	return 0;
}

/* ---- approvals ---- */

static int take_choice(const char *word, enum hold_choice *ret)
{
	for (*ret = 0; word && *ret < HOLD_N_CHOICES; ++*ret)
		if (strcmp(word, hold_choice_name(*ret)) == 0)
			return 0;
	return -EINVAL;
}

/* Empty if the key is missing. */
static int take_text(json_t *o, const char *key, char *buf, size_t size, struct err *err)
{
	json_t *v = json_object_get(o, key);
	const char *text = v ? json_string_value(v) : "";

	if (!text || !str_is_printable(text) || str_copy(buf, size, text) < 0)
		return err_set(err, -EINVAL, "%s must be printable ASCII of at most %zu bytes", key,
			size - 1);
	return 0;
}

int api_decode_hold(struct slice body, struct api_hold_body *ret, struct err *err)
{
	static const char *const allowed[] = {"answer", "digest", "seconds", "reason", "tty", NULL};
	json_auto_t *o = NULL;
	int r = api_body_load(body, allowed, &o, err);
	const char *digest = json_string_value(json_object_get(o, "digest"));
	json_int_t seconds = json_integer_value(json_object_get(o, "seconds"));

	*ret = (struct api_hold_body){0};
	if (r < 0)
		return r;
	if (take_choice(json_string_value(json_object_get(o, "answer")), &ret->choice) < 0)
		return err_set(err, -EINVAL, "answer must be once, for, always, open or no");
	if (!digest || !hex_is(digest, sizeof(ret->digest) * 2) ||
		hex_decode(slice_from_str(digest), ret->digest) < 0)
		return err_set(err, -EINVAL, "digest must be 64 hexadecimal digits");
	if ((ret->choice == HOLD_CHOICE_FOR) != (seconds != 0) || seconds < 0 ||
		seconds > API_MAX_FOR_S)
		return err_set(err, -EINVAL, "seconds must be 1 to %d, with the answer for only",
			API_MAX_FOR_S);
	ret->seconds = (uint64_t)seconds;
	r = take_text(o, "reason", ret->reason, sizeof(ret->reason), err);
	if (r == 0)
		r = take_text(o, "tty", ret->where, sizeof(ret->where), err);
	if (r == 0 && !ret->where[0])
		(void)!str_copy(ret->where, sizeof(ret->where), "api");
	return r;
}

/* ---- the policy ---- */

/* A string of an object, on the heap; unchanged if it does not exist. */
static int take_string(json_t *o, const char *key, char **ret, struct err *err)
{
	json_t *v = json_object_get(o, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return err_set(err, -EINVAL, "%s must be a string", key);
	*ret = xstrdup(json_string_value(v));
	return 0;
}

void api_policy_done(struct api_policy *p)
{
	free(p->preset);
	free(p->text);
	free(p->file);
	*p = (struct api_policy){0};
}

static int take_lock(json_t *o, struct api_policy *p, struct err *err)
{
	int r = take_bool(o, "lock", &p->lock, err);

	if (r < 0)
		return r;
	if (p->lock && (!p->preset || strcmp(p->preset, "deny-all") != 0))
		return err_set(err, -EINVAL, "lock requires the preset deny-all");
	return 0;
}

int api_decode_policy(struct slice body, struct api_policy *ret, struct err *err)
{
	static const char *const allowed[] = {"preset", "text", "file", "lock", NULL};
	AUTO_API_POLICY struct api_policy p = {0};
	json_auto_t *o = NULL;
	int r = api_body_load(body, allowed, &o, err);

	if (r == 0)
		r = take_string(o, "preset", &p.preset, err);
	if (r == 0)
		r = take_string(o, "text", &p.text, err);
	if (r == 0)
		r = take_string(o, "file", &p.file, err);
	if (r == 0)
		r = take_lock(o, &p, err);
	if (r == 0 && !!p.preset + !!p.text + !!p.file != 1)
		r = err_set(err, -EINVAL, "expected one of preset, text and file");
	if (r < 0)
		return r;
	*ret = p;
	p = (struct api_policy){0};
	return 0;
}

/* A list of strings, joined with commas. */
static int join_resources(json_t *v, char **ret, struct err *err)
{
	AUTO_FREE char *list = NULL;
	json_t *item;
	size_t i;

	if (json_is_string(v)) {
		*ret = xstrdup(json_string_value(v));
		return 0;
	}
	if (!json_is_array(v) || json_array_size(v) == 0)
		return err_set(err, -EINVAL, "resources must be a string or a list of strings");
	json_array_foreach (v, i, item) {
		char *longer;

		if (!json_is_string(item))
			return err_set(err, -EINVAL, "a resource must be a string");
		longer = xasprintf(
			"%s%s%s", list ? list : "", list ? "," : "", json_string_value(item));
		free(list);
		list = longer;
		if (strlen(list) > RULE_MAX_LINE)
			return err_set(err, -E2BIG, "the resources are longer than %d bytes",
				RULE_MAX_LINE);
	}
	*ret = TAKE(list);
	return 0;
}

static int take_end(json_t *o, uint64_t now_ms, struct rule *rule, struct err *err)
{
	json_t *span = json_object_get(o, "for_ms"), *until = json_object_get(o, "until");
	json_int_t v;

	if (!span && !until)
		return 0;
	if ((span && until) || !json_is_integer(span ? span : until))
		return err_set(err, -EINVAL, "for_ms or until must be a number of milliseconds");
	v = json_integer_value(span ? span : until);
	/* A hundred years count as no limit. */
	if (v < 1 || (span && v > 3155760000000) || v > 253402300799999)
		return err_set(err, -EINVAL, "%s is out of range", span ? "for_ms" : "until");
	rule->until_ms = span ? now_ms + (uint64_t)v : (uint64_t)v;
	if (rule->until_ms <= now_ms)
		return err_set(err, -EINVAL, "the rule would already have expired");
	return 0;
}

/* Rules that an agent needs are for its own sandbox, never for all. */
static bool is_agent_origin(const struct rule *rule)
{
	return rule->sandbox && rule->effect == RULE_ALLOW && str_starts(rule->origin, "agent:") &&
	       rule->origin[6] && rule_is_word(slice_from_str(rule->origin));
}

static int take_words(json_t *o, struct rule *rule, struct err *err)
{
	int r = take_string(o, "sandbox", &rule->sandbox, err);

	if (r == 0)
		r = take_string(o, "comment", &rule->comment, err);
	if (r == 0)
		r = take_string(o, "origin", &rule->origin, err);
	if (r < 0)
		return r;
	if (rule->sandbox && !rule_is_word(slice_from_str(rule->sandbox)))
		return err_set(err, -EINVAL, "sandbox is not a sandbox name");
	if (rule->comment && !rule_is_comment(slice_from_str(rule->comment)))
		return err_set(err, -EINVAL,
			"the comment must be one line of at most %d bytes without leading or trailing blanks",
			RULE_MAX_COMMENT);
	/* The program that creates a rule sets its origin; these are ours. */
	if (rule->origin && strcmp(rule->origin, "local") != 0 &&
		strcmp(rule->origin, "create") != 0 && !is_agent_origin(rule))
		return err_set(
			err, -EINVAL, "origin must be local, create or, for a sandbox, agent:NAME");
	return 0;
}

static int take_rule(json_t *o, uint64_t now_ms, struct rule *ret, struct err *err)
{
	static const char *const allowed[] = {"effect", "kind", "resources", "sandbox", "for_ms",
		"until", "comment", "origin", "options", NULL};
	const char *effect = json_string_value(json_object_get(o, "effect"));
	const char *kind = json_string_value(json_object_get(o, "kind")),
		   *options = json_string_value(json_object_get(o, "options"));
	enum rule_kind k = RULE_NETWORK;
	AUTO_FREE char *list = NULL;
	enum rule_effect e = 0;
	int r = api_body_check(o, allowed, err);

	if (r < 0)
		return r;
	while (effect && e < RULE_EFFECTS && strcmp(effect, rule_effect_name(e)) != 0)
		e++;
	if (!effect || e == RULE_EFFECTS)
		return err_set(err, -EINVAL, "effect must be allow, deny or ask");
	if ((json_object_get(o, "kind") && !kind) || (json_object_get(o, "options") && !options))
		return err_set(err, -EINVAL, "kind and options must be texts");
	if (kind && rule_kind_find(slice_from_str(kind), &k, err) < 0)
		return -EINVAL;
	r = join_resources(json_object_get(o, "resources"), &list, err);
	if (r == 0)
		r = rule_make_terms(e, k, slice_from_str(list),
			slice_from_str(options ? options : ""), ret, err);
	if (r == 0)
		r = take_words(o, ret, err);
	return r < 0 ? r : take_end(o, now_ms, ret, err);
}

int api_decode_rule(struct slice body, uint64_t now_ms, struct rule *ret, struct err *err)
{
	AUTO_RULE struct rule rule = {0};
	json_auto_t *o = NULL;
	int r = api_body_load(body, NULL, &o, err);

	if (r == 0)
		r = take_rule(o, now_ms, &rule, err);
	if (r < 0)
		return r;
	*ret = rule;
	rule = (struct rule){0};
	return 0;
}

/* ---- a new sandbox ---- */

void api_create_done(struct api_create_body *c)
{
	for (size_t i = 0; i < c->n_rules; i++)
		rule_done(&c->rules[i]);
	free(c->rules);
	*c = (struct api_create_body){0};
}

/* As in api_decode_rule; the sandbox is the new one and cannot be named. */
static int take_rules(json_t *list, const char *sandbox, uint64_t now_ms,
	struct api_create_body *ret, struct err *err)
{
	json_t *o;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > API_MAX_RULES)
		return err_set(
			err, -EINVAL, "rules must be a list of at most %d rules", API_MAX_RULES);
	ret->rules = xcalloc(API_MAX_RULES, sizeof(*ret->rules));
	json_array_foreach (list, i, o) {
		int r = 0;

		if (!json_is_object(o))
			r = err_set(err, -EINVAL, "expected an object");
		else if (json_object_get(o, "sandbox"))
			r = err_set(err, -EINVAL, "the field 'sandbox' is unknown here");
		else
			json_object_set_new(o, "sandbox", json_string(sandbox));
		ret->n_rules = i + 1;
		if (r == 0)
			r = take_rule(o, now_ms, &ret->rules[i], err);
		if (r < 0)
			return err_wrap(err, r, "rule %zu", i + 1);
	}
	return 0;
}

/* Takes its fields out of the body, so that the decoder of the spec judges the rest. */
static int take_create(json_t *o, uint64_t now_ms, struct spec *ret_spec,
	struct api_create_body *ret, struct err *err)
{
	json_auto_t *list = json_incref(json_object_get(o, "rules"));
	AUTO_FREE char *text = NULL;
	int r = take_bool(o, "start", &ret->start, err);

	ret->has_rules = list != NULL;
	if (r == 0)
		r = take_bool(o, "cold", &ret->cold, err);
	if (r == 0 && ret->cold && !ret->start)
		r = err_set(err, -EINVAL, "cold requires start");
	json_object_del(o, "start");
	json_object_del(o, "cold");
	json_object_del(o, "rules");
	text = json_dumps(o, JSON_COMPACT);
	if (!text)
		abort();
	if (r == 0)
		r = spec_decode(slice_from_str(text), ret_spec, err);
	if (r == 0 && list)
		r = take_rules(list, ret_spec->name, now_ms, ret, err);
	return r;
}

int api_decode_create(struct slice body, uint64_t now_ms, struct spec *ret_spec,
	struct api_create_body *ret, struct err *err)
{
	json_auto_t *o = NULL;
	int r = api_body_load(body, NULL, &o, err);

	return r < 0 ? r : take_create(o, now_ms, ret_spec, ret, err);
}

/* ---- a target ---- */

static const struct {
	const char *scheme;
	uint16_t port;
} schemes[] = {
	{"https://", 443},
	{"http://", 80},
	{"wss://", 443},
	{"ws://", 80},
	{"ssh://", 22},
	{"git://", 9418},
	{"ftp://", 21},
	{"postgres://", 5432},
	{"postgresql://", 5432},
	{"mysql://", 3306},
	{"redis://", 6379},
	{"ldap://", 389},
	{"ldaps://", 636},
};

/* After the scheme; *ret_port is 0 for an unknown one. */
static const char *cut_scheme(const char *text, uint16_t *ret_port)
{
	const char *mark = strstr(text, "://");

	*ret_port = 443;
	if (!mark || (size_t)(mark - text) != strcspn(text, ":/?#@[]"))
		return text;
	*ret_port = 0;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strncasecmp(text, schemes[i].scheme, strlen(schemes[i].scheme)) == 0)
			*ret_port = schemes[i].port;
	return mark + 3;
}

int api_parse_target(const char *text, struct host *ret_host, uint16_t *ret_port, struct err *err)
{
	uint16_t standard, port = 0;
	const char *rest = cut_scheme(text, &standard);
	bool is_url = rest != text;
	size_t n = strcspn(rest, "/?#");
	const char *at = is_url ? memrchr(rest, '@', n) : NULL;
	struct slice host;
	int r;

	if (!is_url && rest[n])
		return err_set(err, -EINVAL,
			"invalid target: expected a host, host:port or a URL such as https://host/path");
	if (at) {
		n -= (size_t)(at + 1 - rest);
		rest = at + 1;
	}
	r = host_split(slice_of(rest, n), &host, &port, err);
	if (r == 0)
		r = host_from_text(host, ret_host, err);
	if (r < 0)
		return r;
	if (!port && !standard)
		return err_set(
			err, -EINVAL, "the default port of this scheme is unknown: add a port");
	*ret_port = port ? port : standard;
	return 0;
}
