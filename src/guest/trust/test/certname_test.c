/* SPDX-License-Identifier: Apache-2.0 */
/* Compared with OpenSSL's own result, for subjects with all kinds of text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include "src/guest/trust/certname.h"

static size_t make_cert(const char *text, int type, uint8_t *buf, unsigned long *ret_hash)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_NAME *name = X509_NAME_new();
	int n;

	assert_non_null(x);
	X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const uint8_t *)"sbx", -1, -1, 0);
	assert_int_equal(
		X509_NAME_add_entry_by_txt(name, "CN", type, (const uint8_t *)text, -1, -1, 0), 1);
	assert_int_equal(X509_set_subject_name(x, name), 1);
	assert_int_equal(X509_set_version(x, 2), 1);
	assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(x), 5), 1);
	(void)X509_gmtime_adj(X509_getm_notBefore(x), 0);
	(void)X509_gmtime_adj(X509_getm_notAfter(x), 60);
	assert_int_equal(X509_set_pubkey(x, key), 1);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	*ret_hash = X509_subject_name_hash(x);
	n = i2d_X509(x, &buf);
	X509_NAME_free(name);
	X509_free(x);
	EVP_PKEY_free(key);
	return n > 0 ? (size_t)n : 0;
}

static void test_as_openssl(void **state)
{
	static const char *const texts[] = {"sbx sandbox 0123456789ab", "  Two  \t blanks ",
		"UPPER", "a", " ", "x.y-z_1",
		"0123456789012345678901234567890123456789012345678901234567890123"};
	static const int types[] = {V_ASN1_UTF8STRING, V_ASN1_PRINTABLESTRING, V_ASN1_IA5STRING};
	uint8_t buf[4096];

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t k = 0; k < ARRAY_LEN(types); k++) {
			unsigned long want;
			uint32_t got = 0;
			size_t n = make_cert(texts[i], types[k], buf, &want);

			assert_int_equal(certname_hash(slice_of(buf, n), &got), 0);
			if (got != want)
				fail_msg("\"%s\": %08x, not %08lx", texts[i], got, want);
		}
}

static void test_utf8_stays(void **state)
{
	uint8_t buf[4096];
	unsigned long want;
	uint32_t got = 0;
	size_t n = make_cert("Z\xc3\x9crich \xc2\xa0 B\xc3\xa4r", V_ASN1_UTF8STRING, buf, &want);

	assert_int_equal(certname_hash(slice_of(buf, n), &got), 0);
	assert_true(got == want);
}

/* Truncated anywhere before the subject's end it is rejected, and nothing is read outside. */
static void test_cut_and_broken(void **state)
{
	uint8_t buf[4096];
	unsigned long want;
	uint32_t got;
	size_t n = make_cert("sbx", V_ASN1_UTF8STRING, buf, &want), refused = 0;

	for (size_t k = 0; k < n; k++)
		refused += certname_hash(slice_of(buf, k), &got) < 0;
	assert_int_equal(refused, n);
	for (size_t i = 0; i < n; i++) {
		buf[i] ^= 0xff;
		(void)!certname_hash(slice_of(buf, n), &got);
		buf[i] ^= 0xff;
	}
	assert_int_equal(certname_hash(slice_of("", 0), &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_openssl),
		cmocka_unit_test(test_utf8_stays),
		cmocka_unit_test(test_cut_and_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
