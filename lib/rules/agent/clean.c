/* SPDX-License-Identifier: Apache-2.0 */
#include "clean.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/secret/service/shape.h"
#include "clean_internal.h"

#define MAX_KEY 64

/* ---- names ---- */

static bool ends_clean(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

static bool is_any(const char *s, const char *const *list, bool (*fits)(const char *, const char *))
{
	for (; *list; list++)
		if (fits(s, *list))
			return true;
	return false;
}

static bool equals_clean(const char *s, const char *t)
{
	return strcmp(s, t) == 0;
}

static bool begins_clean(const char *s, const char *t)
{
	return str_starts(s, t);
}

static bool holds_clean(const char *s, const char *t)
{
	return strstr(s, t) != NULL;
}

bool clean_is_secret_name(const char *path)
{
	static const char *const whole[] = {"auth.json", ".netrc", ".npmrc", ".pypirc",
		"google_accounts.json", "hosts.yml", ".git-credentials", NULL};
	static const char *const first[] = {".env", "id_", "oauth", NULL};
	static const char *const inside[] = {"credential", "token", "secret", "passw", NULL};
	static const char *const last[] = {
		".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", NULL};
	AUTO_FREE char *name = xstrdup(path);
	size_t n = strlen(name);
	char *part;

	if (n && name[n - 1] == '/')
		name[n - 1] = '\0';
	part = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	for (char *c = part; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return is_any(part, whole, equals_clean) || is_any(part, first, begins_clean) ||
	       is_any(part, inside, holds_clean) || is_any(part, last, ends_clean);
}

bool clean_is_secret_key(const char *key)
{
	static const char *const whole[] = {
		"env", "environment", "headers", "auth", "oauth", "bearer", "cookies", NULL};
	static const char *const inside[] = {"token", "secret", "passw", "apikey", "authorization",
		"credential", "accesskey", "privatekey", "httpheaders", "sessionkey", NULL};
	char plain[MAX_KEY + 1];
	size_t n = 0;

	for (; *key && n < MAX_KEY; key++)
		if (*key != '-' && *key != '_' && *key != '.')
			plain[n++] = (char)tolower((unsigned char)*key);
	plain[n] = '\0';
	return is_any(plain, whole, equals_clean) || is_any(plain, inside, holds_clean);
}

/* ---- JSON ---- */

bool clean_is_dropped(const struct clean *c, const char *key)
{
	for (size_t i = 0; i < c->n_drop; i++)
		if (strcmp(c->drop[i], key) == 0)
			return true;
	return false;
}

static bool must_go(const struct clean *c, const char *key, const json_t *v)
{
	if (clean_is_dropped(c, key))
		return true;
	/* "maxTokens": 4000 is not a credential */
	return clean_is_secret_key(key) && !json_is_number(v) && !json_is_boolean(v) &&
	       !json_is_null(v);
}

static void clean_object(const struct clean *c, json_t *o)
{
	const char *key;
	json_t *v;
	void *next;

	json_object_foreach_safe (o, next, key, v)
		if (must_go(c, key, v)) {
			c->told(c->arg, key);
			(void)json_object_del(o, key);
		}
}

/* Level by level: no call inside a call for what a file has inside each other. */
static void clean_values(const struct clean *c, json_t *root)
{
	json_t *level = json_pack("[O]", root);

	for (size_t depth = 0; level && json_array_size(level) > 0; depth++) {
		json_t *below = json_array(), *v, *child;
		const char *key;
		size_t i, k;

		json_array_foreach (level, i, v) {
			if (depth > CLEAN_MAX_DEPTH && json_is_object(v))
				(void)json_object_clear(v);
			if (json_is_object(v))
				clean_object(c, v);
			json_object_foreach (v, key, child)
				(void)json_array_append(below, child);
			if (json_is_array(v))
				json_array_foreach (v, k, child)
					(void)json_array_append(below, child);
		}
		json_decref(level);
		level = below;
	}
	json_decref(level);
}

static int clean_json(const struct clean *c, struct slice text, char **ret, struct err *err)
{
	json_error_t je;
	json_t *root =
		json_loadb(text.n ? (const char *)text.p : "", text.n, JSON_REJECT_DUPLICATES, &je);

	if (!root)
		return err_set(err, -EINVAL, "the file is not JSON (line %d)", je.line);
	clean_values(c, root);
	*ret = json_dumps(root, JSON_INDENT(2));
	json_decref(root);
	return *ret ? 0 : err_set(err, -EINVAL, "the file is not JSON");
}

/* ---- the whole ---- */

static int clean_plain(struct slice text, char **ret, struct err *err)
{
	if (text.n && memchr(text.p, '\0', text.n))
		return err_set(err, -EINVAL, "the file is not text");
	*ret = text.n ? xstrndup((const char *)text.p, text.n) : xstrdup("");
	return 0;
}

int clean_settings(const char *name, struct slice text, const char *const *drop, size_t n_drop,
	clean_told_fn *told, void *arg, char **ret, struct err *err)
{
	struct clean c = {.drop = drop, .n_drop = n_drop, .told = told, .arg = arg};
	AUTO_FREE char *out = NULL;
	int r;

	if (text.n > CLEAN_MAX_BYTES)
		return err_set(err, -E2BIG, "the file is larger than %u bytes", CLEAN_MAX_BYTES);
	if (ends_clean(name, ".json"))
		r = clean_json(&c, text, &out, err);
	else if (ends_clean(name, ".toml"))
		r = clean_toml(&c, text, &out, err);
	else
		r = clean_plain(text, &out, err);
	if (r < 0)
		return r;
	if (shape_has_secret(slice_from_str(out)))
		return err_set(
			err, -EPERM, "the file contains a text that looks like a credential");
	*ret = TAKE(out);
	return 0;
}
