/* SPDX-License-Identifier: Apache-2.0 */
#include "sshagent.h"

#include <assert.h>
#include <errno.h>
#include "lib/base/b64.h"
#include "lib/base/hash/sha256.h"

#define KNOWN_FLAGS 6U /* SHA-256 and SHA-512 of RSA keys */
#define USERAUTH_REQUEST 50

/* SSH writes integers with the highest byte first. */
static uint32_t rd_be32(struct rd *rd)
{
	struct slice s = rd_bytes(rd, 4);

	return rd->bad ? 0
		       : (uint32_t)s.p[0] << 24 | (uint32_t)s.p[1] << 16 | (uint32_t)s.p[2] << 8 |
				 s.p[3];
}

static struct slice rd_blob(struct rd *rd)
{
	uint32_t n = rd_be32(rd);

	return rd_bytes(rd, n);
}

static void wr_be32(struct wr *wr, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		wr_u8(wr, (uint8_t)(v >> shift));
}

static void wr_blob(struct wr *wr, struct slice s)
{
	wr_be32(wr, (uint32_t)s.n);
	wr_bytes(wr, s);
}

struct sshagent_request sshagent_parse(struct slice msg)
{
	struct sshagent_request other = {.kind = SSHAGENT_OTHER}, req;
	struct rd rd = rd_init(msg);
	uint8_t type = rd_u8(&rd);

	if (type == SSHAGENT_REQUEST_IDENTITIES) {
		req = (struct sshagent_request){.kind = SSHAGENT_LIST};
		return rd_finish(&rd) == 0 ? req : other;
	}
	if (type != SSHAGENT_SIGN_REQUEST)
		return other;
	/* Not as initialisers: their order is the compiler's choice. */
	req = (struct sshagent_request){.kind = SSHAGENT_SIGN};
	req.key = rd_blob(&rd);
	req.data = rd_blob(&rd);
	req.flags = rd_be32(&rd);
	if (rd_finish(&rd) < 0 || req.key.n == 0 || req.flags & ~KNOWN_FLAGS)
		return other;
	return req;
}

static void put_fingerprint(struct slice blob, char ret[SSHAGENT_FINGERPRINT])
{
	static const char kind[] = "SHA256:";
	uint8_t hash[SHA256_BYTES];

	static_assert(sizeof(kind) - 1 + B64_LEN(SHA256_BYTES) == SSHAGENT_FINGERPRINT, "padding");
	sha256(blob, hash);
	memcpy(ret, kind, sizeof(kind) - 1);
	(void)b64_encode(slice_of(hash, sizeof(hash)), ret + sizeof(kind) - 1);
	ret[SSHAGENT_FINGERPRINT - 1] = '\0'; /* in place of the padding */
}

static bool is_allowed(const struct sshagent_filter *f, const struct sshagent_key *key)
{
	for (unsigned i = 0; i < f->n_rules; i++) {
		if (strcmp(f->rules[i], key->fingerprint) == 0)
			return true;
		/* A comment is the key owner's free text: one that looks like a fingerprint is
		 * not a name. */
		if (strncmp(f->rules[i], "SHA256:", 7) != 0 &&
			slice_eq_str(key->comment, f->rules[i]))
			return true;
	}
	return f->n_rules == 0;
}

/* The head of a list: the number of keys that follow. */
static int begin_list(struct slice answer, struct rd *ret, uint32_t *ret_n)
{
	*ret = rd_init(answer);
	if (rd_u8(ret) != SSHAGENT_IDENTITIES_ANSWER)
		return -EBADMSG;
	*ret_n = rd_be32(ret);
	return ret->bad || *ret_n > SSHAGENT_MAX_KEYS ? -EBADMSG : 0;
}

static void read_key(struct rd *rd, struct sshagent_key *ret)
{
	ret->blob = rd_blob(rd);
	ret->comment = rd_blob(rd);
	if (!rd->bad)
		put_fingerprint(ret->blob, ret->fingerprint);
}

int sshagent_filter_list(const struct sshagent_filter *f, struct slice answer, struct wr *wr)
{
	struct rd rd;
	uint32_t n = 0, n_kept = 0;
	int r = begin_list(answer, &rd, &n);

	wr_u8(wr, SSHAGENT_IDENTITIES_ANSWER);
	struct wr count = *wr; /* comes here when it is known */

	wr_be32(wr, 0);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct sshagent_key key = {0};

		read_key(&rd, &key);
		if (rd.bad)
			break;
		if (!is_allowed(f, &key))
			continue;
		wr_blob(wr, key.blob);
		wr_blob(wr, key.comment);
		n_kept++;
	}
	wr_be32(&count, n_kept);
	if (r == 0)
		r = rd_finish(&rd);
	return r < 0 ? r : wr_finish(wr);
}

int sshagent_find(const struct sshagent_filter *f, struct slice answer, struct slice blob,
	struct sshagent_key *ret)
{
	struct rd rd;
	uint32_t n = 0;
	bool found = false;
	int r = begin_list(answer, &rd, &n);

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct sshagent_key key = {0};

		read_key(&rd, &key);
		if (rd.bad || found || !slice_eq(key.blob, blob) || !is_allowed(f, &key))
			continue;
		*ret = key;
		found = true;
	}
	if (r == 0)
		r = rd_finish(&rd);
	return r < 0 ? r : found ? 0 : -ENOENT;
}

void sshagent_show(struct slice text, char *ret, size_t size)
{
	size_t n = MIN(text.n, size - 1);

	for (size_t i = 0; i < n; i++)
		ret[i] = (char)(text.p[i] > ' ' - 1 && text.p[i] < 127 ? text.p[i] : '?');
	ret[n] = '\0';
}

static bool is_login(struct slice data, struct slice blob, struct slice *ret_user)
{
	struct rd rd = rd_init(data);

	(void)rd_blob(&rd); /* the session */
	if (rd_u8(&rd) != USERAUTH_REQUEST)
		return false;
	*ret_user = rd_blob(&rd);
	struct slice service = rd_blob(&rd), method = rd_blob(&rd);
	bool is_bound = slice_eq_str(method, "publickey-hostbound-v00@openssh.com");

	if (!slice_eq_str(service, "ssh-connection") ||
		(!is_bound && !slice_eq_str(method, "publickey")))
		return false;
	if (rd_u8(&rd) != 1)
		return false;
	(void)rd_blob(&rd); /* the algorithm */
	struct slice key = rd_blob(&rd);

	if (is_bound)
		(void)rd_blob(&rd); /* the server's key */
	return rd_finish(&rd) == 0 && slice_eq(key, blob);
}

static bool is_file(struct slice data, struct slice *ret_namespace)
{
	struct rd rd = rd_init(data);

	if (!slice_eq_str(rd_bytes(&rd, 6), "SSHSIG"))
		return false;
	*ret_namespace = rd_blob(&rd);
	(void)rd_blob(&rd); /* reserved */
	(void)rd_blob(&rd); /* how the text was hashed */
	(void)rd_blob(&rd); /* its hash */
	return rd_finish(&rd) == 0 && ret_namespace->n > 0;
}

enum sshagent_what sshagent_describe(
	struct slice data, struct slice blob, char ret_text[SSHAGENT_MAX_TEXT])
{
	struct slice text = {0};
	enum sshagent_what what = SSHAGENT_SIGNS_OTHER;

	if (is_file(data, &text))
		what = SSHAGENT_SIGNS_FILE;
	else if (is_login(data, blob, &text))
		what = SSHAGENT_SIGNS_LOGIN;
	else
		text = slice_of(NULL, 0);
	sshagent_show(text, ret_text, SSHAGENT_MAX_TEXT);
	return what;
}

bool sshagent_is_signed(struct slice answer)
{
	struct rd rd = rd_init(answer);
	uint8_t type = rd_u8(&rd);

	if (type == SSHAGENT_SIGN_RESPONSE)
		(void)rd_blob(&rd);
	else if (type != SSHAGENT_FAILURE)
		return false;
	return rd_finish(&rd) == 0;
}
