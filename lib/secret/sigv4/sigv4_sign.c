/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4_internal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/hex.h"

/* One request while it is signed. */
struct job {
	struct http_req *req;
	const struct sigv4 *s;
	const struct sigv4_cred *cred;
	struct arena *arena;
	struct slice name[SIGV4_MAX_SIGNED + 4]; /* of signed headers, sorted */
	size_t n_names;
	struct slice signed_list;
	struct slice host; /* as it will be written */
	char length[24];   /* content-length, as it will be written */
	char payload[SIGV4_HEX];
	struct slice said; /* of the payload */
	struct sigv4_chain chain;
};

static void done_job(struct job *j)
{
	OPENSSL_cleanse(j, sizeof(*j));
}

/* ---- which headers ---- */

static bool is_there(const struct job *j, struct slice name)
{
	if (slice_eq_str(name, "host"))
		return true;
	if (slice_eq_str(name, "authorization"))
		return false;
	if (slice_eq_str(name, "content-length"))
		return j->req->body.kind == HTTP_BODY_LENGTH;
	for (size_t i = 0; i < j->req->headers.n; i++)
		if (slice_eq(j->req->headers.list[i].name, name))
			return true;
	return false;
}

/* A missing header (it concerned the guest's connection, or was a placeholder) is not signed. */
static void add_name(struct job *j, struct slice name)
{
	if (!is_there(j, name) || j->n_names == ARRAY_LEN(j->name))
		return;
	for (size_t i = 0; i < j->n_names; i++)
		if (slice_eq(j->name[i], name))
			return;
	j->name[j->n_names++] = name;
}

static int compare_names(const void *a, const void *b)
{
	return sigv4_cmp(*(const struct slice *)a, *(const struct slice *)b);
}

static int list_names(struct job *j)
{
	static const char *const always[] = {
		"host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"};
	struct slice list = j->s->signed_headers;
	struct wr wr;

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		add_name(j, slice_from_str(always[i]));
	for (size_t from = 0, to; from < list.n; from = to + 1) {
		for (to = from; to < list.n && list.p[to] != ';';)
			to++;
		add_name(j, slice_of(list.p + from, to - from));
	}
	qsort(j->name, j->n_names, sizeof(j->name[0]), compare_names);
	wr = sigv4_text(j->arena, list.n + 128);
	for (size_t i = 0; i < j->n_names; i++) {
		wr_bytes(&wr, slice_from_str(i ? ";" : ""));
		wr_bytes(&wr, j->name[i]);
	}
	j->signed_list = slice_of(wr.p, wr.n);
	return wr_finish(&wr) < 0 ? -ENOBUFS : 0;
}

/* ---- the canonical request ---- */

/* Runs of blanks become one space. */
static void sum_value(struct sigv4_sum *sum, struct slice value)
{
	size_t from = 0;

	value = canon_text_trim(value);
	for (size_t i = 0; i < value.n;) {
		if (value.p[i] != ' ' && value.p[i] != '\t') {
			i++;
			continue;
		}
		sigv4_sum_add(sum, slice_of(value.p + from, i - from));
		sigv4_sum_add_str(sum, " ");
		while (value.p[i] == ' ' || value.p[i] == '\t')
			i++; /* ends: the last byte is not a space */
		from = i;
	}
	if (value.n > 0)
		sigv4_sum_add(sum, slice_of(value.p + from, value.n - from));
}

static void sum_header(struct job *j, struct sigv4_sum *sum, struct slice name)
{
	bool again = false;

	sigv4_sum_add(sum, name);
	sigv4_sum_add_str(sum, ":");
	if (slice_eq_str(name, "host"))
		sigv4_sum_add(sum, j->host);
	else if (slice_eq_str(name, "content-length"))
		sigv4_sum_add_str(sum, j->length);
	else
		for (size_t i = 0; i < j->req->headers.n; i++) {
			if (!slice_eq(j->req->headers.list[i].name, name))
				continue;
			sigv4_sum_add_str(sum, again ? "," : "");
			sum_value(sum, j->req->headers.list[i].value);
			again = true;
		}
	sigv4_sum_add_str(sum, "\n");
}

static int hash_request(struct job *j, uint8_t ret[SIGV4_HASH])
{
	AUTO_SIGV4_SUM struct sigv4_sum sum;
	int r;

	sigv4_sum_init(&sum);
	sigv4_sum_add(&sum, j->req->method);
	sigv4_sum_add_str(&sum, "\n");
	r = sigv4_sum_path(&sum, j->req->path, sigv4_is_s3(j->s->service), j->arena);
	if (r < 0)
		return r;
	sigv4_sum_add_str(&sum, "\n");
	r = sigv4_sum_query(&sum, j->req->query, j->arena);
	if (r < 0)
		return r;
	sigv4_sum_add_str(&sum, "\n");
	for (size_t i = 0; i < j->n_names; i++)
		sum_header(j, &sum, j->name[i]);
	sigv4_sum_add_str(&sum, "\n");
	sigv4_sum_add(&sum, j->signed_list);
	sigv4_sum_add_str(&sum, "\n");
	sigv4_sum_add(&sum, j->said);
	return sigv4_sum_end(&sum, ret);
}

/* ---- the signature ---- */

static int derive_key(struct job *j)
{
	char first[4 + SIGV4_MAX_SECRET];
	struct wr wr = wr_init(first, sizeof(first));
	uint8_t *key = j->chain.key;
	struct slice as_key = slice_of(key, SIGV4_HASH);
	int r;

	wr_bytes(&wr, slice_from_str("AWS4"));
	wr_bytes(&wr, j->cred->secret);
	r = wr_finish(&wr);
	if (r == 0)
		r = sigv4_mac(slice_of(first, wr.n), canon_text_cut(j->s->stamp, 0, 8), key);
	OPENSSL_cleanse(first, sizeof(first));
	if (r == 0)
		r = sigv4_mac(as_key, j->s->region, key);
	if (r == 0)
		r = sigv4_mac(as_key, j->s->service, key);
	return r < 0 ? r : sigv4_mac(as_key, slice_from_str("aws4_request"), key);
}

static int start_chain(struct job *j)
{
	struct wr wr = wr_init(j->chain.scope, sizeof(j->chain.scope));

	wr_bytes(&wr, canon_text_cut(j->s->stamp, 0, 8));
	wr_u8(&wr, '/');
	wr_bytes(&wr, j->s->region);
	wr_u8(&wr, '/');
	wr_bytes(&wr, j->s->service);
	wr_bytes(&wr, slice_from_str("/aws4_request"));
	j->chain.n_scope = wr.n;
	memcpy(j->chain.stamp, j->s->stamp.p, SIGV4_STAMP);
	return wr_finish(&wr) < 0 ? -ENOBUFS : derive_key(j);
}

static int make_signature(struct job *j)
{
	char text[32 + SIGV4_STAMP + sizeof(j->chain.scope) + SIGV4_HEX], hex[SIGV4_HEX];
	struct wr wr = wr_init(text, sizeof(text));
	uint8_t hash[SIGV4_HASH];
	int r = hash_request(j, hash);

	if (r < 0)
		return r;
	hex_encode(hash, SIGV4_HASH, hex);
	wr_bytes(&wr, slice_from_str("AWS4-HMAC-SHA256\n"));
	wr_bytes(&wr, slice_of(j->chain.stamp, SIGV4_STAMP));
	wr_u8(&wr, '\n');
	wr_bytes(&wr, slice_of(j->chain.scope, j->chain.n_scope));
	wr_u8(&wr, '\n');
	wr_bytes(&wr, slice_of(hex, sizeof(hex)));
	r = wr_finish(&wr);
	return r < 0 ? r : sigv4_chain_next(&j->chain, slice_of(text, wr.n));
}

/* ---- the header form ---- */

static int sign_header(struct job *j)
{
	struct http_headers *headers = &j->req->headers;
	struct wr wr;
	int r = 0;

	canon_remove_header(headers, "x-amz-security-token");
	if (j->cred->session.n > 0)
		r = canon_set_header(
			headers, slice_from_str("x-amz-security-token"), j->cred->session);
	if (r == 0)
		r = list_names(j);
	if (r == 0)
		r = make_signature(j);
	if (r < 0)
		return r;
	wr = sigv4_text(
		j->arena, 128 + j->cred->id.n + j->chain.n_scope + j->signed_list.n + SIGV4_HEX);
	wr_bytes(&wr, slice_from_str("AWS4-HMAC-SHA256 Credential="));
	wr_bytes(&wr, j->cred->id);
	wr_u8(&wr, '/');
	wr_bytes(&wr, slice_of(j->chain.scope, j->chain.n_scope));
	wr_bytes(&wr, slice_from_str(", SignedHeaders="));
	wr_bytes(&wr, j->signed_list);
	wr_bytes(&wr, slice_from_str(", Signature="));
	wr_bytes(&wr, slice_of(j->chain.signature, SIGV4_HEX));
	if (wr_finish(&wr) < 0)
		return -ENOBUFS;
	return canon_set_header(headers, slice_from_str("authorization"), slice_of(wr.p, wr.n));
}

/* ---- the query form ---- */

static void put_field(struct wr *wr, enum sigv4_field f, struct slice value)
{
	wr_bytes(wr, slice_from_str(wr->n ? "&" : ""));
	wr_bytes(wr, slice_from_str(sigv4_field_name(f)));
	wr_u8(wr, '=');
	wr_bytes(wr, value);
}

/* What we say ourselves goes from the guest's query; the rest stays byte by byte. */
static void put_others(struct wr *wr, struct slice query)
{
	struct sigv4_pair pair;

	while (sigv4_next_pair(&query, &pair)) {
		int f = sigv4_which(pair.name);

		if (f != SIGV4_F_OTHER && f != SIGV4_F_ALGORITHM && f != SIGV4_F_DATE &&
			f != SIGV4_F_PAYLOAD)
			continue;
		wr_bytes(wr, slice_from_str(wr->n ? "&" : ""));
		wr_bytes(wr, pair.name);
		wr_bytes(wr, slice_from_str(pair.has_value ? "=" : ""));
		wr_bytes(wr, pair.value);
	}
}

static struct slice whole_scope(struct job *j)
{
	struct wr wr = sigv4_text(j->arena, j->cred->id.n + 1 + j->chain.n_scope);

	wr_bytes(&wr, j->cred->id);
	wr_u8(&wr, '/');
	wr_bytes(&wr, slice_of(j->chain.scope, j->chain.n_scope));
	return wr.bad ? slice_of(NULL, 0) : slice_of(wr.p, wr.n);
}

static int sign_query(struct job *j)
{
	struct slice scope, list, token = {0};
	char expires[16];
	struct wr wr;
	int r;

	canon_remove_header(&j->req->headers, "x-amz-security-token");
	r = list_names(j);
	if (r < 0)
		return r;
	(void)snprintf(expires, sizeof(expires), "%u", j->s->expires_s);
	scope = sigv4_encode(whole_scope(j), j->arena);
	list = sigv4_encode(j->signed_list, j->arena);
	if (j->cred->session.n > 0)
		token = sigv4_encode(j->cred->session, j->arena);
	wr = sigv4_text(j->arena, j->req->query.n + scope.n + list.n + token.n + 256);
	put_others(&wr, j->req->query);
	put_field(&wr, SIGV4_F_CREDENTIAL, scope);
	put_field(&wr, SIGV4_F_EXPIRES, slice_from_str(expires));
	if (token.n > 0)
		put_field(&wr, SIGV4_F_TOKEN, token);
	put_field(&wr, SIGV4_F_SIGNED, list);
	if (wr.bad || arena_is_full(j->arena))
		return -ENOBUFS;
	j->req->query = slice_of(wr.p, wr.n);
	r = make_signature(j);
	if (r < 0)
		return r;
	put_field(&wr, SIGV4_F_SIGNATURE, slice_of(j->chain.signature, SIGV4_HEX));
	j->req->query = slice_of(wr.p, wr.n);
	return wr_finish(&wr) < 0 ? -ENOBUFS : 0;
}

/* ---- all ---- */

static int write_host(struct job *j)
{
	struct wr wr = sigv4_text(j->arena, j->req->host.n + 16);

	canon_write_authority(&wr, j->req, false);
	j->host = slice_of(wr.p, wr.n);
	return wr_finish(&wr) < 0 ? -ENOBUFS : 0;
}

static int prepare_sign(struct job *j, const uint8_t *hash)
{
	uint8_t empty[SIGV4_HASH];
	int r = write_host(j);

	(void)snprintf(
		j->length, sizeof(j->length), "%llu", (unsigned long long)j->req->body.length);
	j->said = j->s->payload;
	if (r == 0 && j->s->body == SIGV4_BODY_WHOLE) {
		if (!hash)
			r = sigv4_hash(slice_of(NULL, 0), empty);
		if (r == 0)
			hex_encode(hash ? hash : empty, SIGV4_HASH, j->payload);
		j->said = slice_of(j->payload, SIGV4_HEX);
	}
	return r < 0 ? r : start_chain(j);
}

int sigv4_sign(struct http_req *req, const struct sigv4 *s, const struct sigv4_cred *cred,
	const uint8_t *hash, struct arena *arena, struct sigv4_chain *ret_chain, struct err *err)
{
	CLEANUP(done_job) struct job j = {.req = req, .s = s, .cred = cred, .arena = arena};
	int r;

	if (s->form == SIGV4_UNSIGNED)
		return 0;
	r = prepare_sign(&j, hash);
	if (r == 0)
		r = s->form == SIGV4_HEADER ? sign_header(&j) : sign_query(&j);
	if (r == -EBADMSG)
		return err_set(err, r, "the query of the request has an invalid escape");
	if (r == -EIO)
		return err_set(err, r, "cannot compute the signature");
	if (r < 0)
		return err_set(err, -EBADMSG, "the request is too large to be signed again");
	if (ret_chain)
		*ret_chain = j.chain;
	return 0;
}
