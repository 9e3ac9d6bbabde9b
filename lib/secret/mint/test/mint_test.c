/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates as OpenSSL reads them; `openssl verify` and other clients are in
 * mint_client_test.c. */
#include "lib/secret/mint/mint.h"
#include "lib/secret/mint/mint_internal.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "lib/base/mem.h"

#define DAY 86400

static uint64_t now;

static struct mint *make(void)
{
	struct mint *m = NULL;
	struct err err;

	if (mint_new("0123456789ab", now, &m, &err) < 0)
		fail_msg("%s", err.text);
	return m;
}

static struct host host_of(const char *name)
{
	struct host h;

	assert_int_equal(host_from_wire(slice_from_str(name), &h, NULL), 0);
	return h;
}

static X509 *read_cert(struct slice der)
{
	const uint8_t *p = der.p;
	X509 *cert = d2i_X509(NULL, &p, (long)der.n);

	assert_non_null(cert);
	assert_ptr_equal(p, der.p + der.n);
	return cert;
}

static X509 *leaf_at(struct mint *m, const char *name, uint64_t at)
{
	struct host h = host_of(name);
	struct slice der;
	struct err err;

	if (mint_leaf(m, &h, at, &der, &err) < 0)
		fail_msg("%s: %s", name, err.text);
	return read_cert(der);
}

static X509 *leaf(struct mint *m, const char *name)
{
	return leaf_at(m, name, now);
}

/* As a client with the strictest flags does it; X509_V_OK or why not. */
static int verify(struct slice ca_der, X509 *cert, const char *host, const char *ip, time_t at)
{
	X509 *ca = read_cert(ca_der);
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_VERIFY_PARAM *param;
	int r;

	assert_int_equal(X509_STORE_add_cert(store, ca), 1);
	assert_int_equal(X509_STORE_CTX_init(ctx, store, cert, NULL), 1);
	param = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_flags(
		param, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE);
	X509_VERIFY_PARAM_set_time(param, at);
	assert_int_equal(X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER), 1);
	if (host)
		assert_int_equal(X509_VERIFY_PARAM_set1_host(param, host, 0), 1);
	if (ip)
		assert_int_equal(X509_VERIFY_PARAM_set1_ip_asc(param, ip), 1);
	r = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	X509_free(ca);
	return r;
}

static void a_leaf_is_good_for_its_host_and_no_other(void **state)
{
	struct mint *m = make();
	X509 *cert = leaf(m, "api.example.com");

	assert_int_equal(
		verify(mint_ca_der(m), cert, "api.example.com", NULL, (time_t)now), X509_V_OK);
	assert_int_equal(verify(mint_ca_der(m), cert, "example.com", NULL, (time_t)now),
		X509_V_ERR_HOSTNAME_MISMATCH);
	assert_int_equal(verify(mint_ca_der(m), cert, "x.api.example.com", NULL, (time_t)now),
		X509_V_ERR_HOSTNAME_MISMATCH);
	assert_int_equal(verify(mint_ca_der(m), cert, "sbx leaf", NULL, (time_t)now),
		X509_V_ERR_HOSTNAME_MISMATCH);
	assert_int_equal(verify(mint_ca_der(m), cert, NULL, "192.0.2.1", (time_t)now),
		X509_V_ERR_IP_ADDRESS_MISMATCH);
	X509_free(cert);
	mint_free(m);
}

static void an_address_is_an_address_and_not_a_name(void **state)
{
	static const char *const list[] = {"192.0.2.1", "2001:db8::1"};
	struct mint *m = make();

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		X509 *cert = leaf(m, list[i]);

		assert_int_equal(
			verify(mint_ca_der(m), cert, NULL, list[i], (time_t)now), X509_V_OK);
		assert_int_equal(verify(mint_ca_der(m), cert, NULL, "192.0.2.2", (time_t)now),
			X509_V_ERR_IP_ADDRESS_MISMATCH);
		assert_int_equal(verify(mint_ca_der(m), cert, list[i], NULL, (time_t)now),
			X509_V_ERR_HOSTNAME_MISMATCH);
		X509_free(cert);
	}
	mint_free(m);
}

static void long_names_have_certificates_too(void **state)
{
	struct mint *m = make();
	char name[HOST_MAX_NAME + 1];
	X509 *cert;

	for (size_t i = 0; i < HOST_MAX_NAME; i++)
		name[i] = i % 64 == 63 ? '.' : (char)('a' + i % 26);
	name[HOST_MAX_NAME] = '\0';
	cert = leaf(m, name);
	assert_int_equal(verify(mint_ca_der(m), cert, name, NULL, (time_t)now), X509_V_OK);
	X509_free(cert);
	cert = leaf(m, "a");
	assert_int_equal(verify(mint_ca_der(m), cert, "a", NULL, (time_t)now), X509_V_OK);
	X509_free(cert);
	mint_free(m);
}

/* What a struct host holds when it did not come from host.h. */
static void what_is_not_a_canonical_host_is_refused(void **state)
{
	static const char *const list[] = {"*.example.com", "*", "", "API.example.com",
		"example.com.", "a b.example", "a..example", "127.1", "0x7f.0.0.1", "[::1]",
		"a\xff.example", "-a.example*", "a,DNS:b.example"};
	struct mint *m = make();
	struct slice der;

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		struct host h = {.n = (uint8_t)strlen(list[i])};

		(void)snprintf(h.name, sizeof(h.name), "%s", list[i]);
		if (mint_leaf(m, &h, now, &der, NULL) != -EINVAL)
			fail_msg("'%s' has a certificate", list[i]);
		h.is_addr = true;
		h.addr.n = 16;
		assert_int_equal(mint_leaf(m, &h, now, &der, NULL), -EINVAL);
	}
	/* A NUL inside, too long, and an address that is another than its text. */
	assert_int_equal(
		mint_leaf(m, &(struct host){.n = 9, .name = "good.test\0"}, now, &der, NULL), 0);
	assert_int_equal(
		mint_leaf(m, &(struct host){.n = 11, .name = "good.test\0b"}, now, &der, NULL),
		-EINVAL);
	assert_int_equal(mint_leaf(m, &(struct host){.n = 255}, now, &der, NULL), -EINVAL);
	assert_int_equal(
		mint_leaf(m, &(struct host){.n = 7, .name = "1.2.3.4"}, now, &der, NULL), -EINVAL);
	assert_int_equal(mint_leaf(m,
				 &(struct host){.is_addr = true,
					 .n = 7,
					 .name = "1.2.3.4",
					 .addr = {.n = 4, .b = {1, 2, 3, 5}}},
				 now, &der, NULL),
		-EINVAL);
	assert_int_equal(m->cache.n, 1);
	mint_free(m);
}

static bool has_critical(const X509 *cert, int nid)
{
	int at = X509_get_ext_by_NID(cert, nid, -1);

	return at >= 0 && X509_EXTENSION_get_critical(X509_get_ext(cert, at)) == 1;
}

static int64_t days_between(const ASN1_TIME *a, const ASN1_TIME *b)
{
	int days, seconds;

	assert_int_equal(ASN1_TIME_diff(&days, &seconds, a, b), 1);
	assert_int_equal(seconds, 0);
	return days;
}

static int64_t days_from_now(const ASN1_TIME *t)
{
	ASN1_TIME *at = ASN1_TIME_set(NULL, (time_t)now);
	int64_t days = days_between(at, t);

	ASN1_TIME_free(at);
	return days;
}

static void the_ca_signs_leaves_and_nothing_else(void **state)
{
	struct mint *m = make();
	X509 *ca = read_cert(mint_ca_der(m));
	char name[128];

	assert_non_null(X509_NAME_oneline(X509_get_subject_name(ca), name, sizeof(name)));
	assert_string_equal(name, "/CN=sbx sandbox CA 0123456789ab");
	assert_int_equal(X509_get_version(ca), X509_VERSION_3);
	assert_int_equal(X509_check_ca(ca), 1);
	assert_int_equal(X509_get_pathlen(ca), 0);
	assert_true(has_critical(ca, NID_basic_constraints));
	assert_true(has_critical(ca, NID_key_usage));
	assert_int_equal(X509_get_key_usage(ca), KU_KEY_CERT_SIGN);
	assert_non_null(X509_get0_subject_key_id(ca));
	assert_int_equal(days_from_now(X509_get0_notBefore(ca)), -1);
	assert_int_equal(
		days_between(X509_get0_notBefore(ca), X509_get0_notAfter(ca)), MINT_CA_DAYS);
	assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(ca)), 256);
	assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(ca), mint_leaf_key(m)), 0);
	X509_free(ca);
	mint_free(m);
}

static void a_leaf_is_for_servers_and_thirty_days(void **state)
{
	struct mint *m = make();
	X509 *ca = read_cert(mint_ca_der(m)), *cert = leaf(m, "a.example");
	BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);

	assert_int_equal(X509_get_version(cert), X509_VERSION_3);
	assert_int_equal(X509_check_ca(cert), 0);
	assert_true(has_critical(cert, NID_basic_constraints));
	assert_true(has_critical(cert, NID_key_usage));
	assert_int_equal(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE);
	assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_SERVER);
	assert_int_equal(ASN1_OCTET_STRING_cmp(
				 X509_get0_authority_key_id(cert), X509_get0_subject_key_id(ca)),
		0);
	assert_int_equal(days_from_now(X509_get0_notBefore(cert)), -1);
	assert_int_equal(
		days_between(X509_get0_notBefore(cert), X509_get0_notAfter(cert)), MINT_LEAF_DAYS);
	assert_int_equal(BN_num_bits(serial), 127);
	assert_int_equal(X509_check_private_key(cert, mint_leaf_key(m)), 1);
	BN_free(serial);
	X509_free(cert);
	X509_free(ca);
	mint_free(m);
}

/* Read without a decoder of its key it is the same certificate, byte by byte, with the key. */
static void the_short_way_to_a_certificate_is_the_same(void **state)
{
	struct mint *m = make();
	struct host h = host_of("a.example");
	struct slice der;
	X509 *cert = NULL;
	uint8_t *again = NULL;

	assert_int_equal(mint_leaf(m, &h, now, &der, NULL), 0);
	assert_int_equal(mint_x509(m, der, &cert), 0);
	assert_int_equal(ERR_peek_error(), 0);
	assert_int_equal(i2d_X509(cert, &again), der.n);
	assert_memory_equal(again, der.p, der.n);
	assert_int_equal(X509_check_private_key(cert, mint_leaf_key(m)), 1);
	OPENSSL_free(again);
	X509_free(cert);
	cert = NULL;
	for (size_t n = 0; n < der.n; n++)
		assert_int_equal(mint_x509(m, slice_of(der.p, n), &cert), -EBADMSG);
	assert_int_equal(ERR_peek_error(), 0);
	assert_null(cert);
	mint_free(m);
}

static void the_pem_is_the_certificate(void **state)
{
	struct mint *m = make();
	struct slice pem = mint_ca_pem(m);
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509 *a = PEM_read_bio_X509(bio, NULL, NULL, NULL), *b = read_cert(mint_ca_der(m));

	assert_non_null(a);
	assert_int_equal(X509_cmp(a, b), 0);
	assert_null(memmem(pem.p, pem.n, "PRIVATE", 7));
	X509_free(a);
	X509_free(b);
	BIO_free(bio);
	mint_free(m);
}

static void one_sandbox_does_not_trust_another(void **state)
{
	struct mint *a = make(), *b = make(); /* even of the same name */
	X509 *cert = leaf(a, "a.example");

	assert_int_not_equal(
		verify(mint_ca_der(b), cert, "a.example", NULL, (time_t)now), X509_V_OK);
	X509_free(cert);
	mint_free(a);
	mint_free(b);
}

/* A leaf and its key are no CA: what they sign is worth nothing. */
static void a_leaf_cannot_sign_another(void **state)
{
	struct mint *m = make();
	X509 *cert = leaf(m, "a.example"), *ca = read_cert(mint_ca_der(m)), *evil = X509_dup(cert);
	STACK_OF(X509) *between = sk_X509_new_null();
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();

	assert_int_equal(X509_set_issuer_name(evil, X509_get_subject_name(cert)), 1);
	X509_EXTENSION_free(
		X509_delete_ext(evil, X509_get_ext_by_NID(evil, NID_authority_key_identifier, -1)));
	assert_true(X509_sign(evil, mint_leaf_key(m), EVP_sha256()) > 0);
	assert_int_equal(X509_STORE_add_cert(store, ca), 1);
	assert_true(sk_X509_push(between, cert) > 0);
	assert_int_equal(X509_STORE_CTX_init(ctx, store, evil, between), 1);
	assert_int_not_equal(X509_verify_cert(ctx), 1);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	sk_X509_free(between);
	X509_free(cert);
	X509_free(ca);
	X509_free(evil);
	mint_free(m);
}

static void serials_never_come_twice(void **state)
{
	struct mint *m = make();
	X509 *a = leaf(m, "a.example"), *b = leaf(m, "b.example"), *ca = read_cert(mint_ca_der(m));

	assert_int_not_equal(
		ASN1_INTEGER_cmp(X509_get0_serialNumber(a), X509_get0_serialNumber(b)), 0);
	assert_int_not_equal(
		ASN1_INTEGER_cmp(X509_get0_serialNumber(a), X509_get0_serialNumber(ca)), 0);
	X509_free(a);
	X509_free(b);
	X509_free(ca);
	mint_free(m);
}

/* ---- time ---- */

static bool is_same(struct mint *m, const X509 *cert, uint64_t at)
{
	X509 *again = leaf_at(m, "a.example", at);
	bool same = X509_cmp(cert, again) == 0;

	X509_free(again);
	return same;
}

static void a_leaf_is_kept_until_it_ends_soon(void **state)
{
	struct mint *m = make();
	X509 *cert = leaf(m, "a.example");

	assert_true(is_same(m, cert, now));
	assert_true(is_same(m, cert, now - DAY));
	assert_true(is_same(m, cert, now + 22 * DAY));
	assert_false(is_same(m, cert, now + 22 * DAY + 1));
	X509_free(cert);
	mint_free(m);
}

static void a_clock_that_goes_back_makes_new_leaves(void **state)
{
	struct mint *m = make();
	X509 *cert = leaf_at(m, "a.example", now + 20 * DAY);

	assert_false(is_same(m, cert, now + 18 * DAY));
	X509_free(cert);
	mint_free(m);
}

static void leaves_end_with_their_ca(void **state)
{
	struct mint *m = make();
	uint64_t last = now + (MINT_CA_DAYS - 1) * DAY - 1;
	X509 *cert = leaf_at(m, "a.example", last), *ca = read_cert(mint_ca_der(m));
	struct host h = host_of("a.example");
	struct slice der;

	assert_int_equal(days_between(X509_get0_notAfter(cert), X509_get0_notAfter(ca)), 0);
	assert_int_equal(verify(mint_ca_der(m), cert, "a.example", NULL, (time_t)last), X509_V_OK);
	assert_true(is_same(m, cert, last));
	assert_int_equal(mint_leaf(m, &h, last + 1, &der, NULL), -EKEYEXPIRED);
	assert_int_equal(mint_leaf(m, &h, now - DAY - 1, &der, NULL), -EKEYEXPIRED);
	X509_free(cert);
	X509_free(ca);
	mint_free(m);
}

/* ---- the cache ---- */

static void many_hosts_take_bounded_memory(void **state)
{
	struct mint *m = make();
	struct host h = host_of("host-00000.example.com");
	struct slice der;
	size_t full = 0;

	for (unsigned i = 0; i < 10000; i++) {
		(void)snprintf(h.name, sizeof(h.name), "host-%05u.example.com", i);
		assert_int_equal(mint_leaf(m, &h, now, &der, NULL), 0);
		if (i == MINT_MAX_LEAVES - 1)
			full = mallinfo2().uordblks;
	}
	assert_int_equal(m->cache.n, MINT_MAX_LEAVES);
	assert_true(mallinfo2().uordblks <= full + 16384);
	assert_true(mallinfo2().uordblks < 2u << 20);
	mint_free(m);
}

static void the_last_used_stay(void **state)
{
	struct mint *m = make();
	X509 *cert = leaf(m, "a.example");
	struct host h = host_of("x00000.example");
	struct slice der;

	for (unsigned i = 0; i < 3 * MINT_MAX_LEAVES; i++) {
		(void)snprintf(h.name, sizeof(h.name), "x%05u.example", i);
		assert_int_equal(mint_leaf(m, &h, now, &der, NULL), 0);
		if (i % 1000 == 0)
			assert_true(is_same(m, cert, now));
	}
	for (unsigned i = 0; i < MINT_MAX_LEAVES; i++) {
		(void)snprintf(h.name, sizeof(h.name), "y%05u.example", i);
		assert_int_equal(mint_leaf(m, &h, now, &der, NULL), 0);
	}
	assert_false(is_same(m, cert, now));
	X509_free(cert);
	mint_free(m);
}

/* ---- the next edge ---- */

static void a_saved_ca_goes_on(void **state)
{
	struct mint *m = make(), *next = NULL;
	uint8_t buf[MINT_MAX_SAVED];
	size_t n;
	X509 *cert;

	assert_int_equal(mint_save(m, buf, &n), 0);
	assert_int_equal(mint_load(slice_of(buf, n), &next, NULL), 0);
	assert_true(slice_eq(mint_ca_pem(m), mint_ca_pem(next)));
	cert = leaf(next, "a.example");
	assert_int_equal(verify(mint_ca_der(m), cert, "a.example", NULL, (time_t)now), X509_V_OK);
	assert_int_equal(X509_check_private_key(cert, mint_leaf_key(next)), 1);
	assert_int_equal(EVP_PKEY_eq(mint_leaf_key(m), mint_leaf_key(next)), 0);
	X509_free(cert);
	mint_free(next);
	mint_free(m);
}

static void a_saved_ca_that_was_changed_is_refused(void **state)
{
	struct mint *m = make(), *other = make(), *next = NULL;
	uint8_t buf[MINT_MAX_SAVED + 1], mixed[MINT_MAX_SAVED];
	size_t n, n_other;

	assert_int_equal(mint_save(m, buf, &n), 0);
	for (size_t cut = 0; cut < n; cut++) {
		assert_int_equal(mint_load(slice_of(buf, cut), &next, NULL), -EBADMSG);
		assert_int_equal(ERR_peek_error(), 0);
	}
	buf[n] = 0;
	assert_int_equal(mint_load(slice_of(buf, n + 1), &next, NULL), -EBADMSG);
	/* One CA's key with the other's certificate of the same name. */
	assert_int_equal(mint_save(other, mixed, &n_other), 0);
	memcpy(mixed + n_other - 300, buf + n - 300, 300);
	assert_int_equal(mint_load(slice_of(mixed, n_other), &next, NULL), -EBADMSG);
	for (size_t i = 0; i < n; i++) {
		buf[i] ^= 0x40;
		if (mint_load(slice_of(buf, n), &next, NULL) != -EBADMSG)
			fail_msg("byte %zu does not count", i);
		assert_int_equal(ERR_peek_error(), 0);
		buf[i] ^= 0x40;
	}
	mint_free(m);
	mint_free(other);
}

static void an_id_is_checked(void **state)
{
	static const char *const list[] = {"", "a b", "a/CN=x", "a\n", "\xc3\xa4",
		"0123456789012345678901234567890123456789012345678"};
	struct mint *m = NULL;

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		assert_int_equal(mint_new(list[i], now, &m, NULL), -EINVAL);
	assert_int_equal(mint_new("a", 0, &m, NULL), -EINVAL);
	assert_int_equal(mint_new("a", UINT64_MAX, &m, NULL), -EINVAL);
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaf_is_good_for_its_host_and_no_other),
		cmocka_unit_test(an_address_is_an_address_and_not_a_name),
		cmocka_unit_test(long_names_have_certificates_too),
		cmocka_unit_test(what_is_not_a_canonical_host_is_refused),
		cmocka_unit_test(the_ca_signs_leaves_and_nothing_else),
		cmocka_unit_test(a_leaf_is_for_servers_and_thirty_days),
		cmocka_unit_test(the_short_way_to_a_certificate_is_the_same),
		cmocka_unit_test(the_pem_is_the_certificate),
		cmocka_unit_test(one_sandbox_does_not_trust_another),
		cmocka_unit_test(a_leaf_cannot_sign_another),
		cmocka_unit_test(serials_never_come_twice),
		cmocka_unit_test(a_leaf_is_kept_until_it_ends_soon),
		cmocka_unit_test(a_clock_that_goes_back_makes_new_leaves),
		cmocka_unit_test(leaves_end_with_their_ca),
		cmocka_unit_test(many_hosts_take_bounded_memory),
		cmocka_unit_test(the_last_used_stay),
		cmocka_unit_test(a_saved_ca_goes_on),
		cmocka_unit_test(a_saved_ca_that_was_changed_is_refused),
		cmocka_unit_test(an_id_is_checked),
	};

	now = (uint64_t)time(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
