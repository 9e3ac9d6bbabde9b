/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth.h"

#include <errno.h>
#include <strings.h>
#include "lib/base/hex.h"

#define MAX_NAME 64
#define MAX_GRANT 64

static bool is_word(struct slice s, const char *word)
{
	return s.n == strlen(word) && strncasecmp((const char *)s.p, word, s.n) == 0;
}

/* Anything else cannot be in a header, and is not a token. */
static bool is_token(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	}
	return s.n > 0 && s.n <= OAUTH_MAX_TOKEN;
}

int oauth_parse_type(struct slice type, enum oauth_form *ret)
{
	size_t n = 0;

	while (n < type.n && type.p[n] != ';' && type.p[n] != ' ' && type.p[n] != '\t')
		n++;
	type.n = n;
	if (is_word(type, "application/json"))
		*ret = OAUTH_JSON;
	else if (is_word(type, "application/x-www-form-urlencoded"))
		*ret = OAUTH_FORM;
	else
		return -ENOTSUP;
	return 0;
}

/* ---- requests ---- */

enum role { ROLE_OTHER, ROLE_GRANT, ROLE_REFRESH, ROLE_ACCESS };

/* The standard names apply in addition to those of the service. */
static enum role role_of(const struct service *s, struct slice name)
{
	for (size_t i = 0; i < s->n_fields; i++) {
		if (!is_word(name, s->field[i].name))
			continue;
		if (s->field[i].kind == SERVICE_FIELD_REFRESH)
			return ROLE_REFRESH;
		if (s->field[i].kind == SERVICE_FIELD_ACCESS)
			return ROLE_ACCESS;
	}
	if (is_word(name, "grant_type"))
		return ROLE_GRANT;
	if (is_word(name, "refresh_token"))
		return ROLE_REFRESH;
	return is_word(name, "access_token") ? ROLE_ACCESS : ROLE_OTHER;
}

static bool is_refresh_sentinel(const struct service *s, struct slice text)
{
	for (size_t i = 0; i < s->n_fields; i++) {
		if (s->field[i].kind == SERVICE_FIELD_REFRESH &&
			service_is_field_sentinel(&s->field[i], text))
			return true;
	}
	return false;
}

static int parse_grant(struct slice text, enum oauth_grant *ret)
{
	static const struct {
		const char *name;
		enum oauth_grant grant;
	} grants[] = {{"authorization_code", OAUTH_CODE},
		{"urn:ietf:params:oauth:grant-type:device_code", OAUTH_DEVICE},
		{"refresh_token", OAUTH_REFRESH}};

	for (size_t i = 0; i < sizeof(grants) / sizeof(grants[0]); i++) {
		if (slice_eq_str(text, grants[i].name)) {
			*ret = grants[i].grant;
			return 0;
		}
	}
	return -ENOTSUP;
}

struct judge {
	const struct service *s;
	struct oauth_request *req;
	bool has_grant, has_refresh;
};

/* One field whose escapes are undone; raw is its value as it is written. */
static int judge_field(struct judge *j, struct slice name, struct slice value, struct slice raw)
{
	switch (role_of(j->s, name)) {
	case ROLE_GRANT:
		if (j->has_grant)
			return -EBADMSG;
		j->has_grant = true;
		return parse_grant(value, &j->req->grant);
	case ROLE_REFRESH:
		if (value.n == 0)
			return 0;
		if (!is_refresh_sentinel(j->s, value))
			return -EPERM;
		if (j->has_refresh)
			return -EBADMSG;
		j->has_refresh = true;
		j->req->refresh = raw;
		return 0;
	case ROLE_ACCESS:
		return value.n ? -EPERM : 0;
	case ROLE_OTHER:
		break;
	}
	return 0;
}

static int judge_member(struct judge *j, const struct jtext_member *m)
{
	uint8_t name_buf[MAX_NAME], buf[SERVICE_MAX_TEXT + MAX_GRANT];
	struct slice name, value, raw;

	if (jtext_ascii(m->key, name_buf, sizeof(name_buf), &name) < 0 ||
		role_of(j->s, name) == ROLE_OTHER)
		return 0;
	/* where no server looks for it, and some might */
	if (m->depth > 1 || m->kind == JTEXT_OBJECT || m->kind == JTEXT_ARRAY)
		return -EPERM;
	if (m->kind != JTEXT_STRING)
		return slice_eq_str(m->value, "null") ? 0 : -EBADMSG;
	raw = slice_of(m->value.p + 1, m->value.n - 2);
	/* longer than any grant and any placeholder */
	if (jtext_ascii(raw, buf, sizeof(buf), &value) < 0)
		return role_of(j->s, name) == ROLE_GRANT ? -ENOTSUP : -EPERM;
	return judge_field(j, name, value, raw);
}

static int judge_json(struct judge *j, struct slice body)
{
	struct jtext_walk w = jtext_begin(body, OAUTH_MAX_DEPTH);
	struct jtext_member m;
	int r;

	while ((r = jtext_next(&w, &m)) == 1) {
		r = judge_member(j, &m);
		if (r < 0)
			break;
	}
	return r;
}

/* ---- forms ---- */

static int form_unescape(struct slice raw, uint8_t *buf, size_t size, struct slice *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < raw.n; i++) {
		uint8_t c = raw.p[i] == '+' ? ' ' : raw.p[i];

		if (n == size)
			return -EMSGSIZE;
		if (c == '%') {
			int hi = i + 2 < raw.n ? hex_digit(raw.p[i + 1]) : -1;
			int lo = i + 2 < raw.n ? hex_digit(raw.p[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return -EBADMSG;
			c = (uint8_t)(hi << 4 | lo);
			i += 2;
		}
		buf[n++] = c;
	}
	*ret = slice_of(buf, n);
	return 0;
}

/* NAME=VALUE up to the next '&', cut off the front. */
static void next_pair(struct slice *form, struct slice *ret_name, struct slice *ret_value)
{
	const uint8_t *amp = memchr(form->p, '&', form->n);
	size_t n = amp ? (size_t)(amp - form->p) : form->n;
	const uint8_t *eq = n ? memchr(form->p, '=', n) : NULL;
	size_t n_name = eq ? (size_t)(eq - form->p) : n;

	*ret_name = slice_of(form->p, n_name);
	*ret_value = slice_of(form->p + n_name + (eq ? 1 : 0), n - n_name - (eq ? 1 : 0));
	n += amp ? 1 : 0;
	*form = slice_of(form->p + n, form->n - n);
}

static int judge_pair(struct judge *j, struct slice raw_name, struct slice raw)
{
	uint8_t name_buf[MAX_NAME], buf[SERVICE_MAX_TEXT + MAX_GRANT];
	struct slice name, value;
	int r = form_unescape(raw_name, name_buf, sizeof(name_buf), &name);

	if (r == -EMSGSIZE || (r == 0 && role_of(j->s, name) == ROLE_OTHER))
		return 0;
	if (r < 0)
		return r;
	r = form_unescape(raw, buf, sizeof(buf), &value);
	if (r == -EMSGSIZE)
		return role_of(j->s, name) == ROLE_GRANT ? -ENOTSUP : -EPERM;
	return r < 0 ? r : judge_field(j, name, value, raw);
}

static int judge_form(struct judge *j, struct slice body)
{
	int r = 0;

	for (size_t i = 0; i < body.n; i++) {
		/* some servers end a pair at ';' too: a token could hide after it */
		if (body.p[i] <= ' ' || body.p[i] > '~' || body.p[i] == ';')
			return -EBADMSG;
	}
	while (r == 0 && body.n) {
		struct slice name, value;

		next_pair(&body, &name, &value);
		r = judge_pair(j, name, value);
	}
	return r;
}

int oauth_judge(
	const struct service *s, enum oauth_form form, struct slice body, struct oauth_request *ret)
{
	struct judge j = {.s = s, .req = ret};
	int r;

	*ret = (struct oauth_request){.form = form, .body = body};
	if (body.n == 0)
		return 0;
	if (body.n > OAUTH_MAX_REQUEST)
		return -EBADMSG;
	r = form == OAUTH_JSON ? judge_json(&j, body) : judge_form(&j, body);
	if (r < 0)
		return r;
	if (!j.has_grant)
		return -ENOTSUP;
	return j.has_refresh == (ret->grant == OAUTH_REFRESH) ? 0 : -EBADMSG;
}

int oauth_judge_query(const struct service *s, struct slice query)
{
	while (query.n) {
		uint8_t buf[MAX_NAME];
		struct slice raw, value, name;
		int r;

		next_pair(&query, &raw, &value);
		r = form_unescape(raw, buf, sizeof(buf), &name);
		if (r == -EMSGSIZE)
			continue;
		if (r < 0 || role_of(s, name) != ROLE_OTHER)
			return -EPERM;
	}
	return 0;
}

static void put_form(struct wr *wr, struct slice text)
{
	static const char plain[] = "-._~";

	for (size_t i = 0; i < text.n; i++) {
		uint8_t c = text.p[i];
		bool is_alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');

		if (is_alnum || strchr(plain, c))
			wr_u8(wr, c);
		else
			hex_put_percent(wr, c);
	}
}

int oauth_fill(const struct oauth_request *req, struct slice token, struct wr *wr)
{
	bool is_json = req->form == OAUTH_JSON;
	const uint8_t *from, *to;

	if (req->grant != OAUTH_REFRESH || !is_token(token))
		return -EINVAL;
	/* the quotes of JSON go with it */
	from = req->refresh.p - (is_json ? 1 : 0);
	to = req->refresh.p + req->refresh.n + (is_json ? 1 : 0);
	wr_bytes(wr, slice_of(req->body.p, (size_t)(from - req->body.p)));
	if (is_json)
		jtext_put_string(wr, token);
	else
		put_form(wr, token);
	wr_bytes(wr, slice_of(to, (size_t)(req->body.p + req->body.n - to)));
	return wr_finish(wr);
}

/* ---- what is answered ---- */

struct rewrite {
	const struct service *s;
	const char *tail;
	struct wr *wr, *room;
	struct oauth_tokens *tokens;
	unsigned seen; /* a bit a field */
};

static const struct service_field *find_field(const struct service *s, struct slice key)
{
	for (size_t i = 0; i < s->n_fields; i++) {
		if (jtext_is_word(key, s->field[i].name))
			return &s->field[i];
	}
	return NULL;
}

static void put_sentinel(struct rewrite *rw, const struct service_field *f)
{
	uint8_t buf[SERVICE_MAX_TEXT + OAUTH_TAIL];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct slice text = slice_from_str(f->sentinel);
	bool has_tail = text.n && text.p[text.n - 1] == '*';

	wr_bytes(&wr, slice_of(text.p, text.n - has_tail));
	if (has_tail)
		wr_bytes(&wr, slice_of(rw->tail, OAUTH_TAIL));
	jtext_put_string(rw->wr, slice_of(buf, wr.n));
}

/* The same token may be in two fields; two different tokens must not. */
static int keep_oauth(struct rewrite *rw, struct slice *kept, struct slice raw)
{
	struct slice text;
	size_t left = rw->room->size - rw->room->n;
	int r = jtext_ascii(raw, rw->room->p + rw->room->n, left, &text);

	if (r < 0 || !is_token(text))
		return -EPROTO;
	if (kept->n)
		return slice_eq(*kept, text) ? 0 : -EPROTO;
	*kept = text;
	rw->room->n += text.n;
	return 0;
}

static int put_token(struct rewrite *rw, const struct service_field *f, struct slice raw)
{
	struct slice *kept =
		f->kind == SERVICE_FIELD_ACCESS ? &rw->tokens->access : &rw->tokens->refresh;
	int r = keep_oauth(rw, kept, raw);

	if (r == 0)
		put_sentinel(rw, f);
	return r;
}

/* HEADER.CLAIMS.SIGNATURE of base64url; escapes have no place in it. */
static int put_unsigned(struct rewrite *rw, struct slice raw)
{
	size_t n_dots = 0, cut = 0;

	for (size_t i = 0; i < raw.n; i++) {
		uint8_t c = raw.p[i];

		if (c == '.') {
			n_dots++;
			cut = i + 1;
		} else if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
				   c == '-' || c == '_' || c == '=')) {
			return -EPROTO;
		}
	}
	if (n_dots != 2)
		return -EPROTO;
	wr_u8(rw->wr, '"');
	wr_bytes(rw->wr, slice_of(raw.p, cut));
	wr_bytes(rw->wr, slice_from_str(OAUTH_SIGNATURE "\""));
	return 0;
}

/* Whole seconds; any other value is ignored. */
static void read_expires(struct rewrite *rw, const struct jtext_member *m)
{
	struct slice s = m->value;
	uint64_t v = 0;

	if (m->kind == JTEXT_STRING)
		s = slice_of(s.p + 1, s.n - 2);
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || v > UINT32_MAX)
			return;
		v = v * 10 + (s.p[i] - '0');
	}
	rw->tokens->expires_s = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* 1 if the value was written, after the text before it; 0 if it is unchanged. */
static int rewrite_member(struct rewrite *rw, const struct jtext_member *m, struct slice front)
{
	const struct service_field *f = find_field(rw->s, m->key);
	bool is_null = m->kind == JTEXT_LITERAL && slice_eq_str(m->value, "null");
	bool is_empty = m->kind == JTEXT_STRING && m->value.n == 2;
	unsigned bit = f ? 1u << (f - rw->s->field) : 0;
	int r;

	if (!f || is_null || is_empty)
		return 0;
	if (f->kind == SERVICE_FIELD_EXPIRES) {
		if (m->depth == 1)
			read_expires(rw, m);
		return 0;
	}
	/* Which of two would count, and what is in an inner object or a list, is not ours to
	 * guess. */
	if (m->depth > 1 || m->kind != JTEXT_STRING || rw->seen & bit)
		return -EPROTO;
	rw->seen |= bit;
	wr_bytes(rw->wr, front);
	r = f->kind == SERVICE_FIELD_UNSIGN
		    ? put_unsigned(rw, slice_of(m->value.p + 1, m->value.n - 2))
		    : put_token(rw, f, slice_of(m->value.p + 1, m->value.n - 2));
	return r < 0 ? r : 1;
}

int oauth_rewrite(const struct service *s, struct slice answer, const char *tail, struct wr *wr,
	struct wr *room, struct oauth_tokens *ret)
{
	struct rewrite rw = {.s = s, .tail = tail, .wr = wr, .room = room, .tokens = ret};
	struct jtext_walk w = jtext_begin(answer, OAUTH_MAX_DEPTH);
	const uint8_t *done = answer.p;
	struct jtext_member m;
	int r, walked;

	*ret = (struct oauth_tokens){0};
	if (answer.n > OAUTH_MAX_ANSWER)
		return -EMSGSIZE;
	while ((walked = jtext_next(&w, &m)) == 1) {
		r = rewrite_member(&rw, &m, slice_of(done, (size_t)(m.value.p - done)));
		if (r < 0)
			return r;
		if (r == 1)
			done = m.value.p + m.value.n;
	}
	if (walked < 0)
		return walked;
	wr_bytes(wr, slice_of(done, (size_t)(answer.p + answer.n - done)));
	return wr_finish(wr);
}
