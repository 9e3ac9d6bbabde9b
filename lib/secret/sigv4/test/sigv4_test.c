/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/sigv4/sigv4.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/secret/sigv4/sigv4_internal.h"
#include "sigv4_rig.h"

#define SIG0 "0000000000000000000000000000000000000000000000000000000000000000"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define AUTH(day, scope, headers)                                                              \
	"header authorization AWS4-HMAC-SHA256 Credential=AKIAPROXYMANAGED2222/" day "/" scope \
	"/aws4_request, SignedHeaders=" headers ", Signature=" SIG0 "\n"
#define S3_KEY "cred AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"
#define S3_AT "now 1369353600\nhost examplebucket.s3.amazonaws.com\n"
#define S3_DATE "header x-amz-date 20130524T000000Z\n"
#define S3_EMPTY "header x-amz-content-sha256 " EMPTY "\n"
#define IAM_KEY "cred AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n"
#define IAM_AT "now 1440938160\nhost iam.amazonaws.com\nheader x-amz-date 20150830T123600Z\n"
#define IAM_AUTH AUTH("20150830", "us-east-1/iam", "host;x-amz-date")
/* A request that is signed again; tests change one thing of it. */
#define GOOD IAM_KEY IAM_AT IAM_AUTH

static void load(struct sigv4_rig *rig, const char *text)
{
	sigv4_rig_init(rig);
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (!sigv4_rig_line(rig, slice_of(text, n)))
			fail_msg("not a line: %s", text);
		text += n + (text[n] == '\n');
	}
}

static struct slice header_of(const struct sigv4_rig *rig, const char *name)
{
	size_t at;

	return canon_find_header(&rig->req.headers, name, &at) == 0
		       ? rig->req.headers.list[at].value
		       : slice_of("", 0);
}

static bool has(struct slice in, const char *what)
{
	return in.n > 0 && memmem(in.p, in.n, what, strlen(what));
}

static void expect(const char *text, const char *in_header, const char *in_query)
{
	struct sigv4_rig rig;
	struct err err = {0};

	load(&rig, text);
	if (sigv4_rig_run(&rig, &err) < 0)
		fail_msg("%s\n%s", err.text, text);
	if (in_header && !has(header_of(&rig, "authorization"), in_header))
		fail_msg("%.*s is without %s", (int)header_of(&rig, "authorization").n,
			(const char *)header_of(&rig, "authorization").p, in_header);
	if (in_query && !has(rig.req.query, in_query))
		fail_msg("%.*s is without %s", (int)rig.req.query.n, (const char *)rig.req.query.p,
			in_query);
	sigv4_rig_done(&rig);
}

static void expect_no(const char *text, const char *why)
{
	struct sigv4_rig rig;
	struct err err = {0};

	load(&rig, text);
	if (sigv4_rig_run(&rig, &err) == 0)
		fail_msg("signed, and should not: %s", text);
	if (!strstr(err.text, why))
		fail_msg("\"%s\" is not about \"%s\": %s", err.text, why, text);
	sigv4_rig_done(&rig);
}

/* ---- what AWS publishes ---- */

static void the_example_of_iam_has_its_signature(void **state)
{
	expect(IAM_KEY IAM_AT
		"query Action=ListUsers&Version=2010-05-08\n"
		"header content-type application/x-www-form-urlencoded; charset=utf-8\n" AUTH(
			"20150830", "us-east-1/iam", "content-type;host;x-amz-date"),
		"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
		"SignedHeaders=content-type;host;x-amz-date, "
		"Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
		NULL);
}

static void the_examples_of_s3_have_their_signatures(void **state)
{
	expect(S3_KEY S3_AT "path /test.txt\nheader range bytes=0-9\n" S3_EMPTY S3_DATE AUTH(
		       "20130524", "us-east-1/s3", "host;range;x-amz-content-sha256;x-amz-date"),
		"Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", NULL);
	expect(S3_KEY S3_AT
		"method PUT\npath /test$file.text\nheader date Fri, 24 May 2013 00:00:00 GMT\n"
		"header x-amz-storage-class REDUCED_REDUNDANCY\n"
		"body 57656c636f6d6520746f20416d617a6f6e2053332e\n"
		"header x-amz-content-sha256 "
		"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072\n" S3_DATE AUTH(
			"20130524", "us-east-1/s3",
			"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class"),
		"Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd", NULL);
	expect(S3_KEY S3_AT "query lifecycle\n" S3_EMPTY S3_DATE AUTH(
		       "20130524", "us-east-1/s3", "host;x-amz-content-sha256;x-amz-date"),
		"Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", NULL);
	expect(S3_KEY S3_AT "query prefix=J&max-keys=2\n" S3_EMPTY S3_DATE AUTH(
		       "20130524", "us-east-1/s3", "host;x-amz-content-sha256;x-amz-date"),
		"Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7", NULL);
}

#define PRESIGNED(when, expires)                                                                  \
	"query X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAPROXYMANAGED2222%2F20130524" \
	"%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=" when "&X-Amz-Expires=" expires             \
	"&X-Amz-SignedHeaders=host&X-Amz-Signature=" SIG0 "\n"

static void the_presigned_example_has_its_signature(void **state)
{
	/* A few minutes before it ends, so that all of it is signed. */
	expect(S3_KEY
		"now 1369439400\nhost examplebucket.s3.amazonaws.com\npath /test.txt\n" PRESIGNED(
			"20130524T000000Z", "86400"),
		NULL,
		"&X-Amz-Signature="
		"aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

/* ---- what is changed ---- */

static void a_session_is_added_or_taken_away(void **state)
{
	struct sigv4_rig rig;
	struct err err = {0};

	load(&rig, "cred AKID:secret:tok/en+==\n" IAM_AT
		   "header x-amz-security-token proxymanaged\n" IAM_AUTH);
	assert_int_equal(sigv4_rig_run(&rig, &err), 0);
	assert_true(slice_eq_str(header_of(&rig, "x-amz-security-token"), "tok/en+=="));
	assert_true(has(header_of(&rig, "authorization"),
		"SignedHeaders=host;x-amz-date;x-amz-security-token,"));
	sigv4_rig_done(&rig);

	load(&rig, "cred AKID:secret\n" IAM_AT "header x-amz-security-token proxymanaged\n" AUTH(
			   "20150830", "us-east-1/iam", "host;x-amz-date;x-amz-security-token"));
	assert_int_equal(sigv4_rig_run(&rig, &err), 0);
	assert_int_equal(header_of(&rig, "x-amz-security-token").n, 0);
	assert_true(has(header_of(&rig, "authorization"), "SignedHeaders=host;x-amz-date,"));
	sigv4_rig_done(&rig);

	expect("cred AKID:secret:tok/en+==\n" S3_AT PRESIGNED("20130524T000000Z", "60"), NULL,
		"X-Amz-Expires=60&X-Amz-Security-Token=tok%2Fen%2B%3D%3D&X-Amz-SignedHeaders=host"
		"&X-Amz-Signature=");
}

static void no_sentinel_is_left(void **state)
{
	struct sigv4_rig rig;
	struct err err = {0};

	load(&rig,
		"cred AKID:secret\n" S3_AT "header x-amz-security-token proxymanaged\n"
		"query a=%7e&X-Amz-Security-Token=proxymanaged&"
		"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAPROXYMANAGED2222/20130524/"
		"us-east-1/s3/aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=5&b&"
		"X-Amz-SignedHeaders=host&X-Amz-Signature=" SIG0);
	assert_int_equal(sigv4_rig_run(&rig, &err), 0);
	assert_false(has(rig.req.query, "PROXYMANAGED") || has(rig.req.query, "proxymanaged"));
	assert_false(has(rig.req.query, SIG0));
	assert_int_equal(rig.req.headers.n, 0);
	assert_true(has(rig.req.query, "a=%7e&X-Amz-Algorithm=") && has(rig.req.query, "&b&"));
	sigv4_rig_done(&rig);
	load(&rig, GOOD);
	assert_int_equal(sigv4_rig_run(&rig, &err), 0);
	assert_false(has(header_of(&rig, "authorization"), "PROXYMANAGED"));
	assert_false(has(header_of(&rig, "authorization"), SIG0));
	sigv4_rig_done(&rig);
}

static void a_presigned_url_of_ours_ends_soon(void **state)
{
	expect(S3_KEY S3_AT PRESIGNED("20130524T000000Z", "604800"), NULL, "&X-Amz-Expires=900&");
	expect(S3_KEY S3_AT PRESIGNED("20130524T001000Z", "604800"), NULL, "&X-Amz-Expires=300&");
	expect(S3_KEY S3_AT PRESIGNED("20130524T001459Z", "604800"), NULL, "&X-Amz-Expires=1&");
	expect_no(S3_KEY S3_AT PRESIGNED("20130524T001500Z", "60"), "not valid yet");
	expect(S3_KEY
		"now 1369357200\nhost s3.amazonaws.com\n" PRESIGNED("20130524T000000Z", "604800"),
		NULL, "&X-Amz-Expires=4500&");
	expect_no(S3_KEY
		"now 1369357200\nhost s3.amazonaws.com\n" PRESIGNED("20130524T000000Z", "3599"),
		"has expired");
	expect_no(S3_KEY S3_AT PRESIGNED("20130524T001501Z", "60"), "not valid yet");
	expect_no(S3_KEY S3_AT PRESIGNED("20130524T000000Z", "0"), "X-Amz-Expires");
	expect_no(S3_KEY S3_AT PRESIGNED("20130524T000000Z", "604801"), "X-Amz-Expires");
	expect_no(S3_KEY S3_AT PRESIGNED("20130524T000000Z", "-1"), "X-Amz-Expires");
}

static void the_host_is_always_signed(void **state)
{
	expect(IAM_KEY IAM_AT AUTH("20150830", "us-east-1/iam", "x-amz-date"),
		"SignedHeaders=host;x-amz-date,", NULL);
	/* What is not there is not signed; what must be is. */
	expect(IAM_KEY IAM_AT S3_EMPTY AUTH("20150830", "us-east-1/iam", "connection;expect;x-b"),
		"SignedHeaders=host;x-amz-content-sha256;x-amz-date,", NULL);
	expect(IAM_KEY IAM_AT AUTH(
		       "20150830", "us-east-1/iam", "host;authorization;host;x-amz-date"),
		"SignedHeaders=host;x-amz-date,", NULL);
}

static void a_request_without_signature_stays(void **state)
{
	struct sigv4_rig rig;
	struct err err = {0};

	load(&rig, IAM_KEY IAM_AT "query a=b\n");
	assert_int_equal(sigv4_rig_run(&rig, &err), 0);
	assert_int_equal(rig.s.form, SIGV4_UNSIGNED);
	assert_int_equal(rig.req.headers.n, 1);
	assert_true(slice_eq_str(rig.req.query, "a=b"));
	sigv4_rig_done(&rig);
}

/* ---- what is refused ---- */

/* Four letters of the key's ID are the sandbox's. */
static void a_sentinel_has_places(void **state)
{
	expect(GOOD "sentinel AKIAPROXYMANAGED****\n", "SignedHeaders=host;x-amz-date,", NULL);
}

static void other_keys_are_refused(void **state)
{
	expect_no(GOOD "sentinel AKIASOMEBODYELSES222\n", "not the sandbox's placeholder");
	expect_no(GOOD "sentinel \n", "not the sandbox's placeholder");
	expect_no(GOOD "sentinel AKIAPROXYMANAGED***\n", "not the sandbox's placeholder");
	expect_no(GOOD "sentinel AKIAPROXYMANAGEE****\n", "not the sandbox's placeholder");
	expect_no(S3_KEY S3_AT "sentinel AKIA\n" PRESIGNED("20130524T000000Z", "60"),
		"not the sandbox's placeholder");
}

static void other_signatures_are_refused(void **state)
{
	static const char *const auth[] = {
		"AWS AKIAPROXYMANAGED2222:frJIUN8DYpKDtOLCwo//yllqDzg=",
		"Bearer AKIAPROXYMANAGED2222",
		"aws4-hmac-sha256 "
		"Credential=AKIAPROXYMANAGED2222/20150830/us-east-1/iam/aws4_request, "
		"SignedHeaders=host, Signature=" SIG0,
	};
	char text[1024];

	for (size_t i = 0; i < ARRAY_LEN(auth); i++) {
		(void)snprintf(
			text, sizeof(text), IAM_KEY IAM_AT "header authorization %s\n", auth[i]);
		expect_no(text, "unsupported AWS signature");
	}
	expect_no(IAM_KEY IAM_AT
		"header authorization AWS4-ECDSA-P256-SHA256 Credential=AKIAPROXYMANAGED2222/"
		"20150830/iam/aws4_request, SignedHeaders=host, Signature=" SIG0 "\n",
		"SigV4A");
	expect_no(S3_KEY S3_AT "query X-Amz-Algorithm=AWS4-ECDSA-P256-SHA256&X-Amz-Signature=" SIG0
			       "\n",
		"SigV4A");
	expect_no(S3_KEY S3_AT "query X-Amz-Signature=" SIG0 "\n", "unsupported AWS signature");
	expect_no(GOOD "header x-amz-content-sha256 STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD\n",
		"SigV4A");
	expect_no(GOOD "header x-amz-content-sha256 STREAMING-AWS4-HMAC-SHA256-EVENTS\n",
		"event streams");
	expect_no(GOOD "header x-amz-content-sha256 something\n", "x-amz-content-sha256");
	expect_no(GOOD "header x-amz-content-sha256 STREAMING-AWS4-HMAC-SHA256-PAYLOAD\n",
		"the body has none");
}

static void two_of_anything_are_refused(void **state)
{
	expect_no(GOOD IAM_AUTH, "duplicate authorization");
	expect_no(GOOD "header x-amz-date 20150830T123600Z\n", "duplicate x-amz-date");
	expect_no(GOOD S3_EMPTY S3_EMPTY, "duplicate x-amz-content-sha256");
	expect_no(GOOD PRESIGNED("20150830T123600Z", "60"), "in both the header and the query");
	expect_no(S3_KEY S3_AT "query X-Amz-Date=1&X-Amz-Date=2\n", "duplicate or encoded");
	expect_no(S3_KEY S3_AT "query x-amz-signature=1\n", "duplicate or encoded");
	expect_no(S3_KEY S3_AT "query X%2dAmz-Security-Token=1\n", "duplicate or encoded");
	expect_no(IAM_KEY IAM_AT
		"header authorization AWS4-HMAC-SHA256 Credential=AKIAPROXYMANAGED2222/20150830/"
		"us-east-1/iam/aws4_request, Credential=b, SignedHeaders=host, Signature=" SIG0
		"\n",
		"is invalid");
}

static void times_are_compared(void **state)
{
	expect(GOOD "now 1440939060\n", "Signature=", NULL);
	expect(GOOD "now 1440937260\n", "Signature=", NULL);
	expect_no(GOOD "now 1440939061\n", "clock");
	expect_no(GOOD "now 1440937259\n", "clock");
	expect_no(IAM_KEY IAM_AT AUTH("20150831", "us-east-1/iam", "host"), "another day");
	expect_no(IAM_KEY "now 1440938160\nhost iam.amazonaws.com\n" IAM_AUTH, "X-Amz-Date");
	expect_no(IAM_KEY "now 1440938160\nhost iam.amazonaws.com\n"
			  "header x-amz-date 20150830T123660+\n" IAM_AUTH,
		"X-Amz-Date");
	/* A leap day is one. */
	expect(IAM_KEY
		"now 1709208000\nhost iam.amazonaws.com\nheader x-amz-date 20240229T120000Z\n" AUTH(
			"20240229", "us-east-1/iam", "host"),
		"Signature=", NULL);
}

static void broken_scopes_and_lists_are_refused(void **state)
{
	expect_no(IAM_KEY IAM_AT AUTH("20150830", "us east-1/iam", "host"), "scope");
	expect_no(IAM_KEY IAM_AT AUTH("20150830", "/iam", "host"), "scope");
	expect_no(IAM_KEY IAM_AT AUTH("20150830", "us-east-1/iam/x", "host"), "scope");
	expect_no(IAM_KEY IAM_AT AUTH("20150830", "us-east-1/iam", "Host"), "signed headers");
	expect_no(IAM_KEY IAM_AT AUTH("20150830", "us-east-1/iam", "host;;a"), "signed headers");
	expect_no(IAM_KEY IAM_AT AUTH("20150830", "us-east-1/iam", ""), "is invalid");
	expect_no(GOOD "query a=%g0\n", "escape");
}

static void large_bodies_need_a_hash(void **state)
{
	expect_no(GOOD "method POST\nlength 8388609\n", "larger than 8 MiB");
	expect(GOOD "method POST\nlength 8388609\nheader x-amz-content-sha256 UNSIGNED-PAYLOAD\n",
		"Signature=", NULL);
}

static void keys_are_cut_in_their_parts(void **state)
{
	static const char *const bad[] = {
		"", "a", "a:", ":b", "a b:c", "a/b:c", "a:b c", "a:b:c\n"};
	struct sigv4_cred cred;
	struct err err;

	assert_int_equal(sigv4_split(slice_from_str("AKID:se/cr+et:to:ken"), &cred, &err), 0);
	assert_true(slice_eq_str(cred.id, "AKID") && slice_eq_str(cred.secret, "se/cr+et"));
	assert_true(slice_eq_str(cred.session, "to:ken"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(sigv4_split(slice_from_str(bad[i]), &cred, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "ID:SECRET"));
	}
}

/* ---- scope and host ---- */

static void a_scope_fits_its_host(void **state)
{
	static const struct {
		const char *host, *service, *region;
		bool fits;
	} row[] = {
		{"dynamodb.eu-west-1.amazonaws.com", "dynamodb", "eu-west-1", true},
		{"dynamodb.eu-west-1.amazonaws.com", "dynamodb", "us-east-1", false},
		{"dynamodb.eu-west-1.amazonaws.com", "sts", "eu-west-1", false},
		{"dynamodb.eu-west-1.amazonaws.com", "s3", "eu-west-1", false},
		{"sts.amazonaws.com", "sts", "us-east-1", true},
		{"sts.amazonaws.com", "iam", "us-east-1", false},
		{"api.ecr.eu-west-1.amazonaws.com", "ecr", "eu-west-1", true},
		{"bedrock-runtime.us-east-1.amazonaws.com", "bedrock", "us-east-1", true},
		{"email.us-east-1.amazonaws.com", "ses", "us-east-1", true},
		{"oidc.us-east-1.amazonaws.com", "sso-oauth", "us-east-1", true},
		{"s3.amazonaws.com", "s3", "eu-west-1", true},
		{"b.s3.amazonaws.com", "b", "eu-west-1", false},
		{"sts.s3.amazonaws.com", "sts", "eu-west-1", false},
		{"eu-west-1.s3.amazonaws.com", "s3", "us-east-1", true},
		{"s3-eu-west-1.amazonaws.com", "s3", "eu-west-1", true},
		{"s3-eu-west-1.amazonaws.com", "s3", "eu-west-2", false},
		{"b.s3.dualstack.eu-west-1.amazonaws.com", "s3", "eu-west-1", true},
		{"1.s3-control.eu-west-1.amazonaws.com", "s3", "eu-west-1", true},
		{"lambda.us-gov-east-1.amazonaws.com", "lambda", "us-gov-east-1", true},
		{"lambda.cn-north-1.amazonaws.com.cn", "lambda", "cn-north-1", true},
		{"lambda.us-east-1.api.aws", "lambda", "us-east-2", false},
		{"s3.example.com", "s3", "anything", true},
		{"xamazonaws.com", "s3", "anything", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		if (row[i].fits != !sigv4_host_misfit(slice_from_str(row[i].host),
					   slice_from_str(row[i].service),
					   slice_from_str(row[i].region)))
			fail_msg("%s %s %s", row[i].host, row[i].service, row[i].region);
	expect_no(IAM_KEY IAM_AT AUTH("20150830", "us-east-1/sts", "host"), "another service");
	expect_no(GOOD "host iam.eu-west-1.amazonaws.com\n", "another region");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_iam_has_its_signature),
		cmocka_unit_test(the_examples_of_s3_have_their_signatures),
		cmocka_unit_test(the_presigned_example_has_its_signature),
		cmocka_unit_test(a_session_is_added_or_taken_away),
		cmocka_unit_test(no_sentinel_is_left),
		cmocka_unit_test(a_presigned_url_of_ours_ends_soon),
		cmocka_unit_test(the_host_is_always_signed),
		cmocka_unit_test(a_request_without_signature_stays),
		cmocka_unit_test(a_sentinel_has_places),
		cmocka_unit_test(other_keys_are_refused),
		cmocka_unit_test(other_signatures_are_refused),
		cmocka_unit_test(two_of_anything_are_refused),
		cmocka_unit_test(times_are_compared),
		cmocka_unit_test(broken_scopes_and_lists_are_refused),
		cmocka_unit_test(large_bodies_need_a_hash),
		cmocka_unit_test(keys_are_cut_in_their_parts),
		cmocka_unit_test(a_scope_fits_its_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
