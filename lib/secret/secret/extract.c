/* SPDX-License-Identifier: Apache-2.0 */
#include "extract.h"

#include <errno.h>
#include <string.h>
#include "lib/base/json/jtext.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

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

struct docker {
	struct slice user, secret;
	bool has_user, has_secret;
};

/* Decodes a string in place. Returns false for half a surrogate pair. */
static bool decode_inside(struct secret *s, struct slice raw, struct slice *ret)
{
	uint8_t *at = s->p + (raw.p - s->p);
	ssize_t n = jtext_decode(raw, at, raw.n);

	*ret = slice_of(at, (size_t)MAX(n, 0));
	return n >= 0;
}

static bool take_member(struct secret *s, const struct jtext_member *m, struct docker *d)
{
	struct slice key, value;
	bool is_new = true;

	if (m->kind != JTEXT_STRING || !decode_inside(s, m->key, &key) ||
		!decode_inside(s, slice_of(m->value.p + 1, m->value.n - 2), &value))
		return false;
	if (slice_eq_str(key, "Secret")) {
		is_new = !d->has_secret;
		d->has_secret = true;
		d->secret = value;
	} else if (slice_eq_str(key, "Username")) {
		is_new = !d->has_user;
		d->has_user = true;
		d->user = value;
	}
	return is_new;
}

static bool read_docker(struct secret *s, struct docker *d)
{
	struct jtext_walk w = jtext_begin(secret_slice(s), 1);
	struct jtext_member m;
	int r;

	while ((r = jtext_next(&w, &m)) == 1)
		if (!take_member(s, &m, d))
			return false;
	return r == 0 && d->has_secret;
}

static int keep_docker(struct secret *s, char user[VAULT_MAX_USER], struct err *err)
{
	struct docker d = {0};

	if (!read_docker(s, &d))
		return err_set(err, -EBADMSG, "the program did not return a docker credential");
	if (d.has_user && !slice_eq_str(d.user, "<token>") &&
		slice_to_cstr(d.user, user, VAULT_MAX_USER) < 0)
		return err_set(err, -EBADMSG, "the returned user name is too long");
	if (!str_is_printable(user))
		return err_set(err, -EBADMSG, "the user name is not printable");
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
		return err_set(err, -EBADMSG, "the program returned no value");
	if (s->n > VAULT_MAX_VALUE)
		return err_set(err, -EMSGSIZE, "the returned value is longer than %d bytes",
			VAULT_MAX_VALUE);
	return 0;
}
