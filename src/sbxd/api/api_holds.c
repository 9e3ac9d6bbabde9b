/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/holds and /v1/holds/ID: requests that wait for a person's approval. POST /v1/holds/ID:
 * the answer. The keeper checks the digest, records the answer and approves the request. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "api_internal.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static json_t *split_lines(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		size_t n = strcspn(text, "\n");
		AUTO_FREE char *line = xasprintf("%.*s", (int)n, text);

		json_array_append_new(list, api_text(line));
		text += n + (text[n] == '\n');
	}
	return list;
}

static const char *name_of(struct sbxd *d, const char *id, struct store_row *row)
{
	return store_get(d->store, id, row, NULL) == 0 ? row->spec.name : id;
}

json_t *api_hold_to_json(struct sbxd *d, const struct keeper *k, const struct held *h)
{
	AUTO_ROW struct store_row row = {0};
	char digest[2 * SHA256_BYTES + 1];
	uint64_t passed = clock_mono_ms() - h->got_ms;
	uint64_t left = h->msg.left_ms - MIN(passed, h->msg.left_ms);
	uint64_t now = clock_wall_ms(), opened = now - passed - h->msg.age_ms;

	hex_print(h->msg.digest, SHA256_BYTES, digest);
	return json_pack("{s:s,s:o,s:s,s:s,s:s,s:I,s:o,s:i,s:o,s:o,s:o}", "id", h->msg.id,
		"sandbox", api_text(name_of(d, k->id, &row)), "kind", hold_kind_name(h->msg.kind),
		"state", hold_state_name(h->msg.state), "digest", digest, "opened_at",
		(json_int_t)opened, "expires_at",
		h->msg.left_ms == HOLD_NO_END ? json_null()
					      : json_integer((json_int_t)(now + left)),
		"waiting", (int)h->msg.waiting, "effects", split_lines(h->msg.effects), "rule",
		api_text(h->msg.rule), "preview", split_lines(h->msg.preview));
}

void api_on_hold(struct sbxd *d, const struct keeper *k, const struct held *h, bool gone)
{
	if (keeper_is_owned(k))
		api_watch_hold(d, api_hold_to_json(d, k, h), gone);
}

/* ---- the list ---- */

struct listing {
	struct sbxd *d;
	const char *keeper; /* NULL: of any */
	json_t *list;
};

static void list_hold(void *arg, const struct keeper *k, const struct held *h)
{
	struct listing *l = arg;

	if (!l->keeper || strcmp(l->keeper, k->id) == 0)
		json_array_append_new(l->list, api_hold_to_json(l->d, k, h));
}

void api_holds(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	struct listing l = {d, NULL, NULL};

	if (req->sandbox && !api_find(d, c, req->sandbox, &row))
		return;
	l.keeper = req->sandbox ? row.spec.id : NULL;
	l.list = json_array();
	holds_each(d, list_hold, &l);
	api_reply_json(d, c, 200, json_pack("{s:o}", "holds", l.list));
}

/* ---- one ---- */

struct search {
	char id[HOLD_ID];
	const char *keeper; /* NULL: of any */
	const struct keeper *k;
	const struct held *h;
	size_t n;
};

static void compare_hold(void *arg, const struct keeper *k, const struct held *h)
{
	struct search *s = arg;

	if (strcmp(s->id, h->msg.id) != 0 || (s->keeper && strcmp(s->keeper, k->id) != 0))
		return;
	s->k = k;
	s->h = h;
	s->n++;
}

/* Replies unless there is exactly one. */
static bool find_hold(
	struct sbxd *d, struct conn *c, const struct api_request *req, struct search *s)
{
	AUTO_ROW struct store_row row = {0};

	*s = (struct search){0};
	if (req->sandbox && !api_find(d, c, req->sandbox, &row))
		return false;
	s->keeper = req->sandbox ? row.spec.id : NULL;
	if (hold_id_parse(req->ref, s->id) == 0)
		holds_each(d, compare_hold, s);
	s->keeper = NULL;
	if (s->n == 1)
		return true;
	if (s->n == 0)
		api_fail(d, c, 404, "not-found", "no such request waits for approval",
			"sbx approve");
	else
		api_fail(d, c, 409, "ambiguous",
			"requests of more than one sandbox have this ID: use SANDBOX/ID",
			"sbx approve");
	return false;
}

void api_hold(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct search s;

	if (find_hold(d, c, req, &s))
		api_reply_json(d, c, 200, api_hold_to_json(d, s.k, s.h));
}

/* ---- the answer ---- */

static void fail_late(struct sbxd *d, struct conn *c)
{
	api_fail(d, c, 503, "unresponsive", "sbx-keeper did not respond in time",
		"sbx inspect SANDBOX");
}

static void wait_hold(struct sbxd *d, struct conn *c, bool late)
{
	if (late || !keeper_find(d, c->wait_id))
		fail_late(d, c);
}

static void send_answer(
	struct sbxd *d, struct conn *c, const struct search *s, const struct api_hold_body *body)
{
	struct hold_reply reply = {.choice = (uint8_t)body->choice,
		.seconds = (uint32_t)body->seconds,
		.uid = (uint32_t)getuid()};
	struct keeper *k = keeper_find(d, s->k->id);

	memcpy(reply.id, s->id, sizeof(reply.id));
	memcpy(reply.digest, body->digest, sizeof(reply.digest));
	(void)!str_copy(reply.where, sizeof(reply.where), body->where);
	(void)!str_copy(reply.reason, sizeof(reply.reason), body->reason);
	json_decref(c->later.answer);
	c->later.answer =
		json_pack("{s:s,s:s}", "id", s->id, "answer", hold_choice_name(body->choice));
	c->ask_id = 0;
	conn_wait(d, c, wait_hold, s->k->id, KEEPER_ANSWER_MS);
	c->ask_id = k ? holds_answer(d, k, &reply) : 0;
	if (!c->ask_id)
		fail_late(d, c);
}

void api_hold_answer(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct api_hold_body body;
	struct err err = {0};
	struct search s;
	int r = api_decode_hold(c->http.body, &body, &err);

	if (api_succeeded(d, c, r, &err) && find_hold(d, c, req, &s))
		send_answer(d, c, &s, &body);
}

static void refuse_answer(struct sbxd *d, struct conn *c, const struct keeper_done *done)
{
	switch (done->code) {
	case -ENOENT:
		api_fail(d, c, 404, "not-found", done->text, "sbx approve");
		return;
	case -ESTALE:
		api_fail(d, c, 409, "stale", done->text, "sbx approve");
		return;
	case -EALREADY:
		api_fail(d, c, 409, "answered", done->text, "sbx approve");
		return;
	case -ECANCELED:
		api_fail(d, c, 409, "withdrawn", done->text, "sbx approve");
		return;
	case -EINVAL:
		api_fail(d, c, 409, "kind", done->text, "sbx open");
		return;
	default:
		api_fail(d, c, 500, "internal", done->text, "sbx inspect SANDBOX");
	}
}

bool api_hold_done(struct sbxd *d, struct conn *c, const struct keeper_done *done)
{
	json_auto_t *answer = NULL;

	if (c->wait != wait_hold)
		return false;
	answer = c->later.answer;
	c->later.answer = NULL;
	if (done->code < 0)
		refuse_answer(d, c, done);
	else
		api_reply_json(d, c, 200, json_incref(answer));
	return true;
}
