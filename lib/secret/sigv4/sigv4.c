/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4_internal.h"

#include <errno.h>

static const char ALGORITHM[] = "AWS4-HMAC-SHA256";

static bool is_word(struct slice s, size_t max, bool hyphen_only)
{
	if (s.n == 0 || s.n > max)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = canon_text_lower(s.p[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' &&
			(c != '_' || hyphen_only))
			return false;
	}
	return true;
}

static bool is_graph(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] >= 0x7f)
			return false;
	return true;
}

/* Cuts what is in front of the first `c` off; all of it when there is none. */
static struct slice cut_to(struct slice *s, uint8_t c)
{
	const uint8_t *at = s->n ? memchr(s->p, c, s->n) : NULL;
	size_t n = at ? (size_t)(at - s->p) : s->n;
	struct slice front = slice_of(s->p, n);

	*s = canon_text_cut(*s, at ? n + 1 : n, s->n);
	return front;
}

int sigv4_split(struct slice value, struct sigv4_cred *ret, struct err *err)
{
	struct sigv4_cred cred;

	cred.id = cut_to(&value, ':');
	cred.secret = cut_to(&value, ':');
	cred.session = value;
	if (!is_word(cred.id, SIGV4_MAX_ID, false) || cred.secret.n == 0 ||
		cred.secret.n > SIGV4_MAX_SECRET || cred.session.n > SIGV4_MAX_SESSION ||
		!is_graph(cred.secret) || !is_graph(cred.session))
		return err_set(err, -EBADMSG,
			"the credential is not an AWS ID:SECRET or ID:SECRET:SESSION");
	*ret = cred;
	return 0;
}

/* ---- time ---- */

static bool read_digits(struct slice s, size_t at, size_t n, int *ret)
{
	*ret = 0;
	for (size_t i = at; i < at + n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		*ret = *ret * 10 + (s.p[i] - '0');
	}
	return true;
}

/* Days since 1970-01-01; years are counted from March, so that a leap day is the last one. */
static int64_t days_of(int y, int m, int d)
{
	int64_t year = m > 2 ? y : y - 1, era = year / 400, of_era = year - era * 400;
	int64_t of_year = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool read_stamp(struct slice s, int64_t *ret)
{
	int y, mo, d, h, mi, sec;

	if (s.n != SIGV4_STAMP || s.p[8] != 'T' || s.p[15] != 'Z' || !read_digits(s, 0, 4, &y) ||
		!read_digits(s, 4, 2, &mo) || !read_digits(s, 6, 2, &d) ||
		!read_digits(s, 9, 2, &h) || !read_digits(s, 11, 2, &mi) ||
		!read_digits(s, 13, 2, &sec))
		return false;
	if (y < 1970 || mo < 1 || mo > 12 || d < 1 || d > 31 || h > 23 || mi > 59 || sec > 60)
		return false;
	*ret = days_of(y, mo, d) * 86400 + h * 3600 + mi * 60 + sec;
	return true;
}

/* ---- scope ---- */

/* PLACEHOLDER/DATE/REGION/SERVICE/aws4_request */
static int read_scope(struct slice text, const struct http_req *req,
	const struct sigv4_check *check, struct sigv4 *s, struct err *err)
{
	struct slice id = cut_to(&text, '/'), day = cut_to(&text, '/');
	const char *misfit;

	s->region = cut_to(&text, '/');
	s->service = cut_to(&text, '/');
	if (check->sentinel.n == 0 || !slice_is_like(id, check->sentinel))
		return err_set(err, -EBADMSG,
			"the request is signed with an access key that is not the sandbox's placeholder");
	if (!slice_eq_str(text, "aws4_request") || !is_word(s->region, SIGV4_MAX_WORD, true) ||
		!is_word(s->service, SIGV4_MAX_WORD, true))
		return err_set(err, -EBADMSG, "the AWS signature has an invalid scope");
	if (!slice_eq(day, canon_text_cut(s->stamp, 0, 8)))
		return err_set(err, -EBADMSG,
			"the AWS signature has another day than the request's x-amz-date");
	misfit = sigv4_host_misfit(req->host, s->service, s->region);
	return misfit ? err_set(err, -EBADMSG, "%s", misfit) : 0;
}

static int check_signed_list(struct slice list, struct err *err)
{
	size_t n = 0;

	do {
		struct slice name = cut_to(&list, ';');

		if (!canon_text_is_lower_token(name) || ++n > SIGV4_MAX_SIGNED)
			return err_set(err, -EBADMSG,
				"the AWS signature has an invalid list of signed headers");
	} while (list.n > 0);
	return 0;
}

/* ---- the body ---- */

static bool has_body(const struct http_req *req)
{
	return req->body.kind == HTTP_BODY_CHUNKED || req->body.length > 0;
}

static int use_whole_body(const struct http_req *req, struct sigv4 *s, struct err *err)
{
	s->body = SIGV4_BODY_WHOLE;
	if (req->websocket || req->body.length > SIGV4_MAX_BODY)
		return err_set(err, -EBADMSG,
			"the body is larger than %u MiB and its hash is missing: the request cannot be signed again (send x-amz-content-sha256)",
			SIGV4_MAX_BODY >> 20);
	return 0;
}

static int read_payload(
	const struct http_req *req, struct slice said, struct sigv4 *s, struct err *err)
{
	static const char chunks[] = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";

	s->payload = said;
	if (sigv4_is_hex(said) || slice_eq_str(said, "UNSIGNED-PAYLOAD") ||
		slice_eq_str(said, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"))
		return 0;
	s->has_trailer = slice_eq_str(said, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER");
	if (slice_eq_str(said, chunks) || s->has_trailer) {
		s->body = SIGV4_BODY_CHUNKS;
		return has_body(req)
			       ? 0
			       : err_set(err, -EBADMSG,
					 "the request requires signed chunks, and the body has none");
	}
	if (slice_eq_str(said, "STREAMING-AWS4-HMAC-SHA256-EVENTS"))
		return err_set(err, -EBADMSG, "signed event streams are not supported");
	if (memmem(said.p, said.n, "ECDSA", 5))
		return err_set(err, -EBADMSG, "SigV4A (AWS4-ECDSA-P256-SHA256) is not supported");
	return err_set(err, -EBADMSG, "x-amz-content-sha256 of the request has an unknown value");
}

/* ---- both forms ---- */

static int find_once(
	const struct http_req *req, const char *lower, struct slice *ret, struct err *err)
{
	size_t at;
	int r = canon_find_header(&req->headers, lower, &at);

	*ret = r == 0 ? req->headers.list[at].value : slice_of(NULL, 0);
	return r == -ENOTUNIQ ? err_set(err, -EBADMSG, "the request has a duplicate %s", lower) : r;
}

struct auth {
	struct slice scope, headers, signature;
};

static int read_auth(struct slice list, struct auth *ret, struct err *err)
{
	struct slice item;

	*ret = (struct auth){0};
	while (canon_text_next(&list, &item)) {
		struct slice name = cut_to(&item, '=');
		struct slice *to = slice_eq_str(name, "Credential")	 ? &ret->scope
				   : slice_eq_str(name, "SignedHeaders") ? &ret->headers
				   : slice_eq_str(name, "Signature")	 ? &ret->signature
									 : NULL;

		if (!to || to->n > 0 || item.n == 0)
			return err_set(err, -EBADMSG, "the AWS Authorization header is invalid");
		*to = item;
	}
	return sigv4_is_hex(ret->signature)
		       ? 0
		       : err_set(err, -EBADMSG, "the AWS Authorization header has no signature");
}

static int read_date(struct slice stamp, struct sigv4 *s, int64_t *ret, struct err *err)
{
	s->stamp = stamp;
	return read_stamp(stamp, ret)
		       ? 0
		       : err_set(err, -EBADMSG,
				 "the signed request has no X-Amz-Date like 20150830T123600Z");
}

static int refuse_algorithm(struct slice algorithm, struct err *err)
{
	if (slice_eq_str(algorithm, "AWS4-ECDSA-P256-SHA256"))
		return err_set(err, -EBADMSG,
			"SigV4A (AWS4-ECDSA-P256-SHA256) is not supported: use AWS4-HMAC-SHA256");
	return err_set(err, -EBADMSG, "unsupported AWS signature: use AWS4-HMAC-SHA256");
}

static int read_header_form(const struct http_req *req, struct slice value,
	const struct sigv4_check *check, struct sigv4 *s, struct err *err)
{
	struct slice rest = value, algorithm = cut_to(&rest, ' '), stamp, said;
	struct auth auth;
	int64_t when;
	int r;

	s->form = SIGV4_HEADER;
	if (!slice_eq_str(algorithm, ALGORITHM))
		return refuse_algorithm(algorithm, err);
	r = read_auth(rest, &auth, err);
	if (r < 0)
		return r;
	r = find_once(req, "x-amz-date", &stamp, err);
	if (r == -EBADMSG)
		return r;
	r = read_date(stamp, s, &when, err);
	if (r < 0)
		return r;
	r = read_scope(auth.scope, req, check, s, err);
	if (r < 0)
		return r;
	if (when > check->now + SIGV4_SKEW_S || when < check->now - SIGV4_SKEW_S)
		return err_set(err, -EBADMSG,
			"the time of the signature differs by more than %d minutes: check the clock of the sandbox",
			SIGV4_SKEW_S / 60);
	s->signed_headers = auth.headers;
	r = check_signed_list(auth.headers, err);
	if (r < 0)
		return r;
	r = find_once(req, "x-amz-content-sha256", &said, err);
	if (r == -ENOENT)
		return use_whole_body(req, s, err);
	return r < 0 ? r : read_payload(req, said, s, err);
}

/* The URL is valid from its date on. What we sign ends soon after now: see sigv4.h. */
static int read_expires(
	struct slice text, int64_t when, int64_t now, struct sigv4 *s, struct err *err)
{
	uint64_t expires;
	int64_t left = now + SIGV4_SKEW_S - when; /* from its date on */

	if (!canon_text_to_u64(text, &expires) || expires < 1 || expires > SIGV4_MAX_EXPIRES)
		return err_set(err, -EBADMSG,
			"invalid X-Amz-Expires of the URL: expected 1 to %d seconds",
			SIGV4_MAX_EXPIRES);
	if (left < 1)
		return err_set(err, -EBADMSG,
			"the presigned URL is not valid yet: check the clock of the sandbox");
	if (now - when > (int64_t)expires)
		return err_set(err, -EBADMSG, "the presigned URL has expired");
	s->expires_s = (uint32_t)MIN((int64_t)expires, left);
	return 0;
}

/* Without escapes; empty when they are broken. */
static struct slice plain_field(struct slice value, struct arena *arena)
{
	struct slice plain;

	return sigv4_decode(value, arena, &plain) == 0 ? plain : slice_of(NULL, 0);
}

static int read_query_payload(const struct http_req *req, const struct slice *field,
	const bool *has, struct sigv4 *s, struct err *err)
{
	struct slice said = field[SIGV4_F_PAYLOAD];
	int r = find_once(req, "x-amz-content-sha256", &said, err);

	if (r == -EBADMSG)
		return r;
	if (r == -ENOENT && has[SIGV4_F_PAYLOAD])
		said = field[SIGV4_F_PAYLOAD];
	else if (r == -ENOENT && sigv4_is_s3(s->service))
		said = slice_from_str("UNSIGNED-PAYLOAD");
	else if (r == -ENOENT)
		return use_whole_body(req, s, err);
	return read_payload(req, said, s, err);
}

static int read_query_form(const struct http_req *req, const struct slice *field, const bool *has,
	const struct sigv4_check *check, struct arena *arena, struct sigv4 *s, struct err *err)
{
	int64_t when;
	int r;

	s->form = SIGV4_QUERY;
	if (!slice_eq_str(field[SIGV4_F_ALGORITHM], ALGORITHM))
		return refuse_algorithm(field[SIGV4_F_ALGORITHM], err);
	if (!sigv4_is_hex(field[SIGV4_F_SIGNATURE]))
		return err_set(err, -EBADMSG, "the presigned URL has no X-Amz-Signature");
	r = read_date(field[SIGV4_F_DATE], s, &when, err);
	if (r < 0)
		return r;
	r = read_scope(plain_field(field[SIGV4_F_CREDENTIAL], arena), req, check, s, err);
	if (r < 0)
		return r;
	r = read_expires(field[SIGV4_F_EXPIRES], when, check->now, s, err);
	if (r < 0)
		return r;
	s->signed_headers = plain_field(field[SIGV4_F_SIGNED], arena);
	r = check_signed_list(s->signed_headers, err);
	return r < 0 ? r : read_query_payload(req, field, has, s, err);
}

int sigv4_read(const struct http_req *req, const struct sigv4_check *check, struct arena *arena,
	struct sigv4 *ret, struct err *err)
{
	struct slice field[SIGV4_N_FIELDS], auth;
	bool has[SIGV4_N_FIELDS];
	int r;

	*ret = (struct sigv4){0};
	if (req->form != HTTP_FORM_ORIGIN)
		return err_set(err, -EBADMSG, "only a request for a path can be signed again");
	r = sigv4_read_fields(req->query, field, has);
	if (r < 0)
		return err_set(err, r, "the query has a duplicate or encoded X-Amz- field");
	r = find_once(req, "authorization", &auth, err);
	if (r == -EBADMSG)
		return r;
	if (r == 0 && (has[SIGV4_F_ALGORITHM] || has[SIGV4_F_CREDENTIAL] || has[SIGV4_F_SIGNATURE]))
		return err_set(err, -EBADMSG,
			"the request has a signature in both the header and the query");
	if (r == 0)
		return read_header_form(req, auth, check, ret, err);
	if (!has[SIGV4_F_ALGORITHM] && !has[SIGV4_F_CREDENTIAL] && !has[SIGV4_F_SIGNATURE])
		return 0;
	return read_query_form(req, field, has, check, arena, ret, err);
}
