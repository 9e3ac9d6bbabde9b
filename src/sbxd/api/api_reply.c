/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that all calls use, and the sandbox that a request names. */
#include "api_internal.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"

void api_reply_json(struct sbxd *d, struct conn *c, int status, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	/* All strings were validated or converted as UTF-8. */
	assert(text);
	conn_reply(d, c, status, text);
	free(text);
}

json_t *api_text(const char *s)
{
	json_t *j = json_string(s);

	return j ? j : json_string("(text that is not UTF-8)");
}

static json_t *make_error(const char *code, const char *message, const char *hint)
{
	json_t *e = json_object(), *o = json_object();

	json_object_set_new(e, "code", json_string(code));
	json_object_set_new(e, "message", api_text(message));
	if (hint)
		json_object_set_new(e, "hint", api_text(hint));
	json_object_set_new(o, "error", e);
	return o;
}

void api_fail(struct sbxd *d, struct conn *c, int status, const char *code, const char *message,
	const char *hint)
{
	api_reply_json(d, c, status, make_error(code, message, hint));
}

void api_refuse(struct sbxd *d, struct conn *c, int status, const char *code, const char *message)
{
	api_fail(d, c, status, code, message, NULL);
}

json_t *api_error(int r, const struct err *err, int *ret_status)
{
	static const struct {
		int r, status;
		const char *code;
	} rows[] = {
		{-EINVAL, 400, "bad-request"},
		{-ERANGE, 400, "bad-request"},
		{-E2BIG, 413, "too-large"},
		{-ENOENT, 404, "not-found"},
		{-EEXIST, 409, "conflict"},
		{-EBUSY, 409, "conflict"},
		{-ESTALE, 409, "stale"},
		{-ECANCELED, 500, "start-failed"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		*ret_status = rows[i].status;
		if (rows[i].r == r)
			return make_error(rows[i].code, err_text(err, r), NULL);
	}
	log_error("%s", err_text(err, r));
	*ret_status = 500;
	return make_error("internal", err_text(err, r), NULL);
}

void api_fail_errno(struct sbxd *d, struct conn *c, int r, const struct err *err)
{
	int status;
	json_t *o = api_error(r, err, &status);

	api_reply_json(d, c, status, o);
}

bool api_succeeded(struct sbxd *d, struct conn *c, int r, const struct err *err)
{
	if (r < 0)
		api_fail_errno(d, c, r, err);
	return r >= 0;
}

bool api_find(struct sbxd *d, struct conn *c, const char *ref, struct store_row *ret)
{
	struct err err = {0};
	int r = store_get(d->store, ref, ret, &err);

	if (r == -ENOENT)
		api_fail(d, c, 404, "not-found", err.text, "sbx ls");
	else if (r < 0)
		api_fail_errno(d, c, r, &err);
	return r == 0;
}
