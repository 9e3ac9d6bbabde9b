/* SPDX-License-Identifier: Apache-2.0 */
/* The SPEC frame's payload; the rest of the stream is in exec_frame.c. */
#include "exec_frame.h"

#include <errno.h>
#include "lib/base/mem.h"

static bool is_assignment(const char *s)
{
	return s[0] != '=' && strchr(s, '=') != NULL;
}

static size_t count_spec(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

static bool has_token(const struct exec_spec *spec)
{
	static const uint8_t none[EXEC_TOKEN];

	return memcmp(spec->token, none, EXEC_TOKEN) != 0;
}

/* What a client that comes back needs; a session that is kept has all of it. */
static bool is_session_valid(const struct exec_spec *spec)
{
	const uint8_t needs = EXEC_F_TTY | EXEC_F_STDIN | EXEC_F_RESUME;

	if (!!(spec->flags & EXEC_F_RESUME) != has_token(spec) ||
		(spec->flags & EXEC_F_RESUME && spec->flags & EXEC_F_DETACHED))
		return false;
	if (!(spec->flags & EXEC_F_KEEP))
		return !(spec->flags & EXEC_F_ATTACH) && !spec->session[0];
	return (spec->flags & needs) == needs && !(spec->flags & EXEC_F_BUILTIN) &&
	       exec_session_is_valid(spec->session);
}

static bool is_valid(const struct exec_spec *spec)
{
	if (!is_session_valid(spec))
		return false;
	if (spec->flags & ~EXEC_F_ALL || !spec->argv || !spec->argv[0] || !spec->argv[0][0])
		return false;
	for (char *const *e = spec->env; e && *e; e++)
		if (!is_assignment(*e))
			return false;
	return count_spec(spec->argv) <= EXEC_MAX_STRINGS &&
	       count_spec(spec->env) <= EXEC_MAX_STRINGS;
}

static void put_strings(struct wr *wr, char *const *v)
{
	size_t n = count_spec(v);

	wr_u16(wr, (uint16_t)n);
	for (size_t i = 0; i < n; i++)
		wr_cstr(wr, v[i]);
}

/* A payload without header; -EMSGSIZE when it is too large for one frame. */
static int encode_spec(struct wr *wr, const struct exec_spec *spec)
{
	if (!is_valid(spec))
		return -EINVAL;
	wr_u8(wr, spec->flags);
	wr_u16(wr, spec->rows);
	wr_u16(wr, spec->cols);
	wr_cstr(wr, spec->user ? spec->user : "");
	wr_cstr(wr, spec->cwd ? spec->cwd : "");
	put_strings(wr, spec->argv);
	put_strings(wr, spec->env);
	if (spec->flags & EXEC_F_RESUME)
		wr_bytes(wr, slice_of(spec->token, EXEC_TOKEN));
	if (spec->flags & EXEC_F_KEEP)
		wr_cstr(wr, spec->session);
	return wr_finish(wr);
}

int exec_put_spec(struct bufq *q, const struct exec_spec *spec)
{
	AUTO_FREE uint8_t *buf = xmalloc(EXEC_MAX_PAYLOAD);
	struct wr wr = wr_init(buf, EXEC_MAX_PAYLOAD);
	int r = encode_spec(&wr, spec);

	return r < 0 ? r : exec_put_frame(q, EXEC_SPEC, slice_of(buf, wr.n));
}

/* NULL makes the reader bad; the memory is bounded by the payload's own size. */
static char *get_string(struct rd *rd)
{
	char *s = slice_dup(rd_str(rd));

	if (!s)
		rd->bad = true;
	return s;
}

static char **get_strings(struct rd *rd)
{
	size_t n = rd_u16(rd);
	char **v;

	/* Each string has two bytes of length at least: a count beyond that is a lie. */
	if (rd->bad || n > EXEC_MAX_STRINGS || n > rd->n / 2) {
		rd->bad = true;
		return NULL;
	}
	v = xcalloc(n + 1, sizeof(*v));
	for (size_t i = 0; i < n && !rd->bad; i++)
		v[i] = get_string(rd);
	return v;
}

static void get_session(struct rd *rd, struct exec_spec *ret)
{
	struct slice s;

	if (ret->flags & EXEC_F_RESUME) {
		s = rd_bytes(rd, EXEC_TOKEN);
		if (s.n == EXEC_TOKEN)
			memcpy(ret->token, s.p, s.n);
	}
	if (ret->flags & EXEC_F_KEEP) {
		s = rd_str(rd);
		if (s.n > EXEC_MAX_SESSION || (s.n && memchr(s.p, '\0', s.n)))
			rd->bad = true;
		else if (s.n)
			memcpy(ret->session, s.p, s.n);
	}
}

int exec_spec_decode(struct slice payload, struct exec_spec *ret)
{
	struct rd rd = rd_init(payload);

	*ret = (struct exec_spec){.flags = rd_u8(&rd)};
	ret->rows = rd_u16(&rd);
	ret->cols = rd_u16(&rd);
	ret->user = get_string(&rd);
	ret->cwd = get_string(&rd);
	ret->argv = get_strings(&rd);
	ret->env = get_strings(&rd);
	get_session(&rd, ret);
	if (rd_finish(&rd) < 0 || !is_valid(ret)) {
		exec_spec_done(ret);
		return -EBADMSG;
	}
	return 0;
}

static void free_strings(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

void exec_spec_done(struct exec_spec *spec)
{
	free(spec->user);
	free(spec->cwd);
	free_strings(spec->argv);
	free_strings(spec->env);
	*spec = (struct exec_spec){0};
}
