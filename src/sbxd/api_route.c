#include "api_route.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"

static const struct {
	enum api_http_method method;
	const char *pattern;
	enum api_call call;
	bool body; /* may have one */
} routes[] = {
	{API_HTTP_GET, "v1/version", API_VERSION, false},
	{API_HTTP_GET, "v1/sandboxes", API_LIST, false},
	{API_HTTP_POST, "v1/sandboxes", API_CREATE, true},
	{API_HTTP_GET, "v1/sandboxes/:ref", API_GET, false},
	{API_HTTP_PATCH, "v1/sandboxes/:ref", API_PATCH, true},
	{API_HTTP_DELETE, "v1/sandboxes/:ref", API_DELETE, false},
	{API_HTTP_POST, "v1/sandboxes/:ref/start", API_START, true},
	{API_HTTP_POST, "v1/sandboxes/:ref/stop", API_STOP, true},
	{API_HTTP_POST, "v1/sandboxes/:ref/exec", API_EXEC, false},
	{API_HTTP_GET, "v1/sandboxes/:ref/stats", API_STATS, false},
	{API_HTTP_GET, "v1/watch", API_WATCH, false},
	{API_HTTP_POST, "v1/shutdown", API_SHUTDOWN, true},
};

static bool matches(const struct api_http *h, const char *pattern, const char **ret_ref)
{
	size_t i = 0;

	for (;; pattern++) {
		size_t n = strcspn(pattern, "/");

		if (i == h->n_parts)
			return false;
		if (n == 4 && strncmp(pattern, ":ref", 4) == 0)
			*ret_ref = h->part[i];
		else if (strlen(h->part[i]) != n || strncmp(h->part[i], pattern, n) != 0)
			return false;
		i++;
		pattern += n;
		if (!*pattern)
			return i == h->n_parts;
	}
}

static int take_query(const struct api_http *h, struct api_request *req, struct err *err)
{
	const char *wait = api_http_query(h, "wait"), *force = api_http_query(h, "force");
	size_t known = 0;

	if (wait && req->call == API_GET) {
		if (str_to_u64(wait, 0, API_MAX_WAIT_MS, &req->wait_ms) < 0)
			return err_set(
				err, 400, "wait must be milliseconds, at most %d", API_MAX_WAIT_MS);
		known++;
	}
	if (force && req->call == API_DELETE) {
		if (strcmp(force, "0") != 0 && strcmp(force, "1") != 0)
			return err_set(err, 400, "force must be 0 or 1");
		req->force = force[0] == '1';
		known++;
	}
	return known == h->n_query ? 0 : err_set(err, 400, "a query key that this call has not");
}

static int check_form(const struct api_http *h, size_t route, struct err *err)
{
	if (h->body.n && !routes[route].body)
		return err_set(err, 400, "this call takes no body");
	if (h->upgrade && routes[route].call != API_EXEC)
		return err_set(err, 400, "only exec takes an upgrade");
	if (!h->upgrade && routes[route].call == API_EXEC)
		return err_set(err, 400, "exec needs Connection: Upgrade and Upgrade: sbx-stream");
	return 0;
}

int api_route(const struct api_http *h, struct api_request *ret, struct err *err)
{
	bool seen = false;

	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		struct api_request req = {.call = routes[i].call};
		int r;

		if (!matches(h, routes[i].pattern, &req.ref))
			continue;
		seen = true;
		if (routes[i].method != h->method)
			continue;
		r = check_form(h, i, err);
		if (r == 0)
			r = take_query(h, &req, err);
		if (r == 0)
			*ret = req;
		return r;
	}
	return seen ? err_set(err, 405, "%s is not possible here", api_http_method_name(h->method))
		    : err_set(err, 404, "there is no such call; see PROTOCOL.api");
}

static int load(struct slice body, json_t **ret, struct err *err)
{
	json_error_t je;

	*ret = json_loadb(body.n ? (const char *)body.p : "", body.n, JSON_REJECT_DUPLICATES, &je);
	if (!*ret)
		return err_set(err, -EINVAL, "not JSON, line %d column %d: %s", je.line, je.column,
			je.text);
	if (!json_is_object(*ret)) {
		json_decref(*ret);
		return err_set(err, -EINVAL, "the body must be a JSON object");
	}
	return 0;
}

static bool is_one_of(const char *key, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(key, *list) == 0)
			return true;
	return false;
}

static int check_keys(json_t *o, const char *const *allowed, struct err *err)
{
	const char *key;
	json_t *v;

	json_object_foreach(o, key, v)
	{
		if (!is_one_of(key, allowed))
			return err_set(err, -EINVAL,
				"the field '%.60s' is unknown or cannot be changed", key);
	}
	return 0;
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

/* The fields go over the old spec as JSON, so that one decoder judges both. */
int api_decode_patch(struct slice body, const struct spec *old, struct spec *ret,
	uint64_t *ret_generation, struct err *err)
{
	static const char *const allowed[] = {
		"name", "cpus", "memory", "accel", "generation", NULL};
	AUTO_FREE char *text = NULL;
	json_t *o, *whole;
	int r = load(body, &o, err);

	if (r < 0)
		return r;
	r = check_keys(o, allowed, err);
	if (r == 0)
		r = take_generation(o, ret_generation, err);
	whole = spec_to_json(old);
	json_object_update(whole, o);
	json_decref(o);
	text = json_dumps(whole, JSON_COMPACT);
	json_decref(whole);
	if (!text)
		abort();
	return r < 0 ? r : spec_decode(slice_from_str(text), ret, err);
}

int api_decode_start(struct slice body, enum spec_accel *accel, struct err *err)
{
	static const char *const allowed[] = {"accel", NULL};
	json_t *o, *v;
	int r;

	if (!body.n)
		return 0;
	r = load(body, &o, err);
	if (r < 0)
		return r;
	r = check_keys(o, allowed, err);
	v = json_object_get(o, "accel");
	if (r == 0 && v &&
		(!json_is_string(v) || spec_accel_parse(json_string_value(v), accel) < 0))
		r = err_set(err, -EINVAL, "accel must be auto, kvm or tcg");
	json_decref(o);
	return r;
}

int api_decode_stop(struct slice body, uint64_t *timeout_ms, struct err *err)
{
	static const char *const allowed[] = {"timeout_ms", NULL};
	json_t *o, *v;
	int r;

	if (!body.n)
		return 0;
	r = load(body, &o, err);
	if (r < 0)
		return r;
	r = check_keys(o, allowed, err);
	v = json_object_get(o, "timeout_ms");
	if (r == 0 && v &&
		(!json_is_integer(v) || json_integer_value(v) < 0 ||
			json_integer_value(v) > API_MAX_STOP_MS))
		r = err_set(err, -EINVAL, "timeout_ms must be a whole number up to %d",
			API_MAX_STOP_MS);
	if (r == 0 && v)
		*timeout_ms = (uint64_t)json_integer_value(v);
	json_decref(o);
	return r;
}
