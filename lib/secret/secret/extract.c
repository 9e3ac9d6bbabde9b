/* SPDX-License-Identifier: Apache-2.0 */
#include "extract.h"

#include <errno.h>
#include <string.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"

/* Moves [at, at + n) to the beginning and wipes the rest. */
static void keep_extract(struct secret *s, size_t at, size_t n)
{
	memmove(s->p, s->p + at, n);
	secret_cut(s, n);
}

static void keep_first_line(struct secret *s)
{
	uint8_t *end = s->n ? memchr(s->p, '\n', s->n) : NULL;
	size_t n = end ? (size_t)(end - s->p) : s->n;

	if (n && s->p[n - 1] == '\r')
		n--;
	secret_cut(s, n);
}

static void keep_whole(struct secret *s)
{
	size_t n = s->n;

	if (n && s->p[n - 1] == '\n')
		n--;
	if (n && n < s->n && s->p[n - 1] == '\r')
		n--;
	secret_cut(s, n);
}

/* ---- a flat JSON object of strings ---- */

struct json {
	uint8_t *p;
	size_t n, at;
	bool bad;
};

static void skip_space(struct json *j)
{
	while (j->at < j->n && memchr(" \t\r\n", j->p[j->at], 4))
		j->at++;
}

static bool eat_extract(struct json *j, uint8_t c)
{
	skip_space(j);
	if (j->at >= j->n || j->p[j->at] != c)
		return false;
	j->at++;
	return true;
}

static uint32_t read_hex4(struct json *j)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < 4; i++) {
		int digit = j->at < j->n ? hex_digit(j->p[j->at]) : -1;

		j->at++;
		j->bad |= digit < 0;
		v = v << 4 | (uint32_t)MAX(digit, 0);
	}
	return v;
}

/* The bytes of a code point are never more than those of its escape. */
static size_t put_utf8(uint8_t *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

static uint32_t read_unicode(struct json *j)
{
	uint32_t c = read_hex4(j), low;

	if (c < 0xd800 || c > 0xdfff)
		return c;
	if (c > 0xdbff || j->at + 2 > j->n || j->p[j->at] != '\\' || j->p[j->at + 1] != 'u') {
		j->bad = true;
		return 0;
	}
	j->at += 2;
	low = read_hex4(j);
	if (low < 0xdc00 || low > 0xdfff)
		j->bad = true;
	return 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
}

static uint32_t read_escape(struct json *j)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	uint8_t c = j->at < j->n ? j->p[j->at++] : 0;
	const char *found = c ? strchr(from, c) : NULL;

	if (c == 'u')
		return read_unicode(j);
	if (!found)
		j->bad = true;
	return found ? (uint8_t)to[found - from] : 0;
}

/* Decodes in place. */
static struct slice read_string(struct json *j)
{
	size_t start, out;

	if (!eat_extract(j, '"')) {
		j->bad = true;
		return slice_of(NULL, 0);
	}
	start = out = j->at;
	while (!j->bad && j->at < j->n && j->p[j->at] != '"') {
		uint8_t c = j->p[j->at++];

		if (c == '\\')
			out += put_utf8(j->p + out, read_escape(j));
		else if (c < ' ')
			j->bad = true;
		else
			j->p[out++] = c;
	}
	if (!eat_extract(j, '"'))
		j->bad = true;
	return slice_of(j->p + start, out - start);
}

struct docker {
	struct slice user, secret;
	bool has_user, has_secret;
};

static void read_member(struct json *j, struct docker *d)
{
	struct slice key = read_string(j), value;

	if (j->bad || !eat_extract(j, ':')) {
		j->bad = true;
		return;
	}
	value = read_string(j);
	if (slice_eq_str(key, "Secret")) {
		j->bad |= d->has_secret;
		d->has_secret = true;
		d->secret = value;
	} else if (slice_eq_str(key, "Username")) {
		j->bad |= d->has_user;
		d->has_user = true;
		d->user = value;
	}
}

static int keep_docker(struct secret *s, char user[VAULT_MAX_USER], struct err *err)
{
	struct json j = {.p = s->p, .n = s->n};
	struct docker d = {0};

	if (!eat_extract(&j, '{'))
		j.bad = true;
	for (bool more = !j.bad; more && !j.bad; more = eat_extract(&j, ','))
		read_member(&j, &d);
	if (!eat_extract(&j, '}'))
		j.bad = true;
	skip_space(&j);
	if (j.bad || j.at != j.n || !d.has_secret)
		return err_set(err, -EBADMSG, "it did not answer with a docker credential");
	if (d.has_user && !slice_eq_str(d.user, "<token>") &&
		slice_to_cstr(d.user, user, VAULT_MAX_USER) < 0)
		return err_set(err, -EBADMSG, "the user name it answered with is too long");
	for (const char *c = user; *c; c++) {
		if (*c < ' ' || *c > '~')
			return err_set(err, -EBADMSG, "the user name is not printable");
	}
	keep_extract(s, d.secret.n ? (size_t)(d.secret.p - s->p) : 0, d.secret.n);
	return 0;
}

int extract_value(
	struct secret *s, enum vault_ref_kind kind, char user[VAULT_MAX_USER], struct err *err)
{
	int r = 0;

	memset(user, 0, VAULT_MAX_USER);
	if (kind == VAULT_REF_DOCKER)
		r = keep_docker(s, user, err);
	else if (kind == VAULT_REF_FIRST_LINE)
		keep_first_line(s);
	else
		keep_whole(s);
	if (r < 0)
		return r;
	if (s->n == 0)
		return err_set(err, -EBADMSG, "it wrote no value");
	if (s->n > VAULT_MAX_VALUE)
		return err_set(
			err, -EMSGSIZE, "its value is longer than %d bytes", VAULT_MAX_VALUE);
	return 0;
}
