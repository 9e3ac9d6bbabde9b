/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_ctl.h"

#include <ctype.h>
#include <errno.h>
#include "lib/base/b64.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----\n"
#define PEM_END "-----END CERTIFICATE-----\n"
#define PEM_CHARS B64_DIGITS "=\n"

/* Whether it is an absolute plain path, as struct guest_mount requires. */
static bool is_plain_path(const char *path)
{
	const char *p = path;

	if (p[0] != '/' || strnlen(p, GUEST_MAX_PATH) == GUEST_MAX_PATH)
		return false;
	while (*p == '/') {
		const char *part = p + 1;
		size_t n = strcspn(part, "/");

		if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && !strncmp(part, "..", 2)))
			return false;
		p = part + n;
	}
	return true;
}

static bool is_mount_valid(const struct guest_mount *m)
{
	bool is_kept_alone = (m->flags & GUEST_MOUNT_KEPT) && !(m->flags & GUEST_MOUNT_STAGED);

	return !(m->flags & ~GUEST_MOUNT_ALL) && !is_kept_alone && is_plain_path(m->share) &&
	       is_plain_path(m->path);
}

static bool are_mounts_valid(const struct guest_mounts *mounts)
{
	if (mounts->n > GUEST_MAX_MOUNTS)
		return false;
	for (size_t i = 0; i < mounts->n; i++)
		if (!is_mount_valid(&mounts->v[i]))
			return false;
	return true;
}

/* A label of a host name: what ends up in /etc/hosts and sethostname must not carry blanks. */
static bool is_hostname(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '-' && s[i] != '.')
			return false;
	return n > 0 && n <= 64;
}

static bool is_name(const char *s)
{
	for (const char *p = s; *p; p++)
		if (iscntrl((unsigned char)*p))
			return false;
	return strlen(s) < GUEST_MAX_NAME;
}

static bool is_env_valid(char *const *env, size_t n)
{
	if (n > GUEST_MAX_ENV)
		return false;
	for (size_t i = 0; i < n; i++)
		if (env[i][0] == '=' || !strchr(env[i], '='))
			return false;
	return true;
}

/* Exactly one certificate in its lines: it is put among others in files that people read. */
static bool is_certificate(const char *s)
{
	size_t n = strlen(s), n_begin = strlen(PEM_BEGIN), n_end = strlen(PEM_END);
	size_t n_body;

	if (n > GUEST_MAX_CA || n <= n_begin + n_end || strncmp(s, PEM_BEGIN, n_begin) != 0 ||
		strcmp(s + n - n_end, PEM_END) != 0)
		return false;
	n_body = n - n_begin - n_end;
	return strspn(s + n_begin, PEM_CHARS) == n_body && s[n_begin + n_body - 1] == '\n';
}

/* Certificates one after the other, or none. */
static bool are_certificates(const char *s)
{
	char one[GUEST_MAX_CA + 1];

	if (s && strlen(s) > GUEST_MAX_EXTRA_CA)
		return false;
	while (s && *s) {
		const char *end = strstr(s, PEM_END);
		size_t n = end ? (size_t)(end - s) + strlen(PEM_END) : 0;

		if (!end || n >= sizeof(one))
			return false;
		memcpy(one, s, n);
		one[n] = '\0';
		if (!is_certificate(one))
			return false;
		s += n;
	}
	return true;
}

static bool is_trust_valid(const struct guest_trust *t)
{
	return (!t->ca_pem[0] || is_certificate(t->ca_pem)) && are_certificates(t->extra_pem) &&
	       is_env_valid(t->env, t->n_env);
}

static bool is_setup_valid(const struct guest_setup *s)
{
	if (!is_name(s->id) || !is_name(s->name) || !is_hostname(s->hostname))
		return false;
	/* 0 would make the agent root, -1 means "leave it" to chown. */
	if (s->uid == 0 || s->gid == 0 || s->uid == UINT32_MAX || s->gid == UINT32_MAX)
		return false;
	if (!hex_is(s->machine_id, 32) || !is_env_valid(s->env, s->n_env))
		return false;
	if (s->workdir[0] && !is_plain_path(s->workdir))
		return false;
	return are_mounts_valid(&s->mounts);
}

static void put_mounts(struct wr *wr, const struct guest_mounts *mounts)
{
	wr_u16(wr, (uint16_t)mounts->n);
	for (size_t i = 0; i < mounts->n; i++) {
		wr_u8(wr, mounts->v[i].flags);
		wr_cstr(wr, mounts->v[i].share);
		wr_cstr(wr, mounts->v[i].path);
	}
}

static void put_env(struct wr *wr, char *const *env, size_t n)
{
	wr_u16(wr, (uint16_t)n);
	for (size_t i = 0; i < n; i++)
		wr_cstr(wr, env[i]);
}

int guest_put_setup(struct wr *wr, const struct guest_setup *s)
{
	if (!is_setup_valid(s))
		return -EINVAL;
	wr_cstr(wr, s->id);
	wr_cstr(wr, s->name);
	wr_cstr(wr, s->hostname);
	wr_u64(wr, s->wall_ms);
	wr_u32(wr, s->uid);
	wr_u32(wr, s->gid);
	wr_bytes(wr, slice_of(s->entropy, sizeof(s->entropy)));
	wr_cstr(wr, s->machine_id);
	wr_cstr(wr, s->workdir);
	put_mounts(wr, &s->mounts);
	put_env(wr, s->env, s->n_env);
	return wr_finish(wr);
}

int guest_put_trust(struct wr *wr, const struct guest_trust *t)
{
	if (!is_trust_valid(t))
		return -EINVAL;
	wr_cstr(wr, t->ca_pem);
	wr_cstr(wr, t->extra_pem ? t->extra_pem : "");
	put_env(wr, t->env, t->n_env);
	return wr_finish(wr);
}

int guest_put_power(struct wr *wr, enum guest_power kind)
{
	wr_u8(wr, (uint8_t)kind);
	return wr_finish(wr);
}

int guest_put_park(struct wr *wr, const struct guest_parking *p)
{
	wr_u8(wr, (uint8_t)p->kind);
	if (p->kind == GUEST_PARK_IMAGE) {
		wr_u32(wr, p->uid);
		wr_u32(wr, p->gid);
	}
	return wr_finish(wr);
}

int guest_put_wake(struct wr *wr, const struct guest_wake *w)
{
	if (!are_mounts_valid(&w->mounts))
		return -EINVAL;
	wr_u64(wr, w->wall_ms);
	wr_bytes(wr, slice_of(w->entropy, sizeof(w->entropy)));
	put_mounts(wr, &w->mounts);
	return wr_finish(wr);
}

int guest_put_reply(struct wr *wr, bool ok, const char *text)
{
	wr_u8(wr, ok);
	wr_str(wr, slice_of(text, strnlen(text, GUEST_MAX_TEXT - 1)));
	return wr_finish(wr);
}

int guest_put_stats(struct wr *wr, const struct keeper_stats *stats)
{
	keeper_put_stats(wr, stats);
	return wr_finish(wr);
}

/* Never NULL: a bad one is empty and makes the reader bad. */
static char *get_string(struct rd *rd)
{
	char *s = slice_dup(rd_str(rd));

	if (s)
		return s;
	rd->bad = true;
	return xstrdup("");
}

static void get_mounts(struct rd *rd, struct guest_mounts *ret)
{
	size_t n = rd_u16(rd);

	if (rd->bad || n > GUEST_MAX_MOUNTS) {
		rd->bad = true;
		return;
	}
	ret->v = xcalloc(n + 1, sizeof(*ret->v));
	ret->n = n;
	for (size_t i = 0; i < n; i++) {
		ret->v[i].flags = rd_u8(rd);
		ret->v[i].share = get_string(rd);
		ret->v[i].path = get_string(rd);
	}
}

static char **get_env(struct rd *rd, size_t *ret_n)
{
	size_t n = rd_u16(rd);
	char **env;

	*ret_n = 0;
	if (rd->bad || n > GUEST_MAX_ENV) {
		rd->bad = true;
		return NULL;
	}
	env = xcalloc(n + 1, sizeof(*env));
	for (size_t i = 0; i < n; i++)
		env[i] = get_string(rd);
	*ret_n = n;
	return env;
}

int guest_get_setup(struct slice body, struct guest_setup *ret)
{
	struct rd rd = rd_init(body);
	struct slice entropy;

	*ret = (struct guest_setup){.id = get_string(&rd)};
	ret->name = get_string(&rd);
	ret->hostname = get_string(&rd);
	ret->wall_ms = rd_u64(&rd);
	ret->uid = rd_u32(&rd);
	ret->gid = rd_u32(&rd);
	entropy = rd_bytes(&rd, GUEST_ENTROPY);
	if (entropy.n)
		memcpy(ret->entropy, entropy.p, entropy.n);
	ret->machine_id = get_string(&rd);
	ret->workdir = get_string(&rd);
	get_mounts(&rd, &ret->mounts);
	ret->env = get_env(&rd, &ret->n_env);
	if (rd_finish(&rd) < 0 || !is_setup_valid(ret)) {
		guest_setup_done(ret);
		return -EBADMSG;
	}
	return 0;
}

int guest_get_trust(struct slice body, struct guest_trust *ret)
{
	struct rd rd = rd_init(body);

	*ret = (struct guest_trust){.ca_pem = get_string(&rd)};
	ret->extra_pem = get_string(&rd);
	ret->env = get_env(&rd, &ret->n_env);
	if (rd_finish(&rd) < 0 || !is_trust_valid(ret)) {
		guest_trust_done(ret);
		return -EBADMSG;
	}
	return 0;
}

int guest_get_power(struct slice body, enum guest_power *ret_kind)
{
	struct rd rd = rd_init(body);
	uint8_t kind = rd_u8(&rd);

	*ret_kind = (enum guest_power)kind;
	return rd_finish(&rd) < 0 || kind == 0 || kind >= GUEST_POWER_N ? -EBADMSG : 0;
}

int guest_get_park(struct slice body, struct guest_parking *ret)
{
	struct rd rd = rd_init(body);
	uint8_t kind = rd_u8(&rd);

	*ret = (struct guest_parking){.kind = (enum guest_park)kind};
	if (kind == GUEST_PARK_IMAGE) {
		ret->uid = rd_u32(&rd);
		ret->gid = rd_u32(&rd);
	}
	return rd_finish(&rd) < 0 || kind == 0 || kind >= GUEST_PARK_N ? -EBADMSG : 0;
}

int guest_get_wake(struct slice body, struct guest_wake *ret)
{
	struct rd rd = rd_init(body);
	struct slice entropy;

	*ret = (struct guest_wake){.wall_ms = rd_u64(&rd)};
	entropy = rd_bytes(&rd, GUEST_ENTROPY);
	if (entropy.n)
		memcpy(ret->entropy, entropy.p, entropy.n);
	get_mounts(&rd, &ret->mounts);
	if (rd_finish(&rd) < 0 || !are_mounts_valid(&ret->mounts)) {
		guest_wake_done(ret);
		return -EBADMSG;
	}
	return 0;
}

int guest_get_reply(struct slice body, struct guest_reply *ret)
{
	struct rd rd = rd_init(body);
	uint8_t ok = rd_u8(&rd);

	ret->ok = ok == 1;
	rd_cstr(&rd, ret->text, sizeof(ret->text));
	str_make_printable(ret->text);
	return rd_finish(&rd) < 0 || ok > 1 ? -EBADMSG : 0;
}

int guest_get_stats(struct slice body, struct keeper_stats *ret)
{
	return keeper_read_stats(body, ret);
}

void guest_mounts_done(struct guest_mounts *mounts)
{
	for (size_t i = 0; i < mounts->n; i++) {
		free(mounts->v[i].share);
		free(mounts->v[i].path);
	}
	free(mounts->v);
	*mounts = (struct guest_mounts){0};
}

void guest_wake_done(struct guest_wake *wake)
{
	guest_mounts_done(&wake->mounts);
}

void guest_trust_done(struct guest_trust *t)
{
	free(t->ca_pem);
	free(t->extra_pem);
	mem_free_list(t->env, t->n_env);
	*t = (struct guest_trust){0};
}

void guest_setup_done(struct guest_setup *s)
{
	free(s->id);
	free(s->name);
	free(s->hostname);
	free(s->machine_id);
	free(s->workdir);
	guest_mounts_done(&s->mounts);
	mem_free_list(s->env, s->n_env);
	*s = (struct guest_setup){0};
}
