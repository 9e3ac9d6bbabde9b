/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/sigv4/sigv4_chunks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define SIG0 "0000000000000000000000000000000000000000000000000000000000000000"
#define LINE(size, sig) size ";chunk-signature=" sig "\r\n"

/* AWS's example of an upload: 65 KiB of "a" in chunks of 64 KiB. */
static const struct {
	const char *word, *headers, *seed, *first, *second, *last, *trailer;
} example[] = {
	{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
		"content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;"
		"x-amz-decoded-content-length;x-amz-storage-class",
		"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
		"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
		"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
		"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9", NULL},
	{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
		"content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-"
		"length;"
		"x-amz-storage-class;x-amz-trailer",
		"106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
		"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
		"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
		"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
		"d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"},
};

/* The head of an upload, signed; gives the chain. */
static void sign_head(size_t which, struct sigv4 *s, struct sigv4_chain *ret)
{
	struct arena arena;
	struct http_header list[12];
	struct http_req req = {.method = slice_from_str("PUT"),
		.scheme = HTTP_SCHEME_HTTPS,
		.host = slice_from_str("s3.amazonaws.com"),
		.port = 443,
		.path = slice_from_str("/examplebucket/chunkObject.txt"),
		.body = {.kind = HTTP_BODY_LENGTH, .length = 66824},
		.headers = {.list = list, .max = ARRAY_LEN(list)}};
	struct sigv4_check check = {.sentinel = slice_from_str("SENTINEL"), .now = 1369353600};
	struct sigv4_cred cred = {slice_from_str("AKIAIOSFODNN7EXAMPLE"),
		slice_from_str("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")};
	AUTO_FREE char *auth =
		xasprintf("AWS4-HMAC-SHA256 Credential=SENTINEL/20130524/us-east-1/s3/aws4_request,"
			  "SignedHeaders=%s,Signature=" SIG0,
			example[which].headers);
	const char *const pairs[][2] = {{"content-encoding", "aws-chunked"},
		{"x-amz-date", "20130524T000000Z"}, {"x-amz-decoded-content-length", "66560"},
		{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
		{"x-amz-content-sha256", example[which].word}, {"authorization", auth},
		{"x-amz-trailer", "x-amz-checksum-crc32c"}};
	struct err err = {0};

	arena_init(&arena, SIGV4_ARENA_SIZE);
	for (size_t i = 0; i < ARRAY_LEN(pairs) - (which == 0); i++)
		assert_int_equal(canon_set_header(&req.headers, slice_from_str(pairs[i][0]),
					 slice_from_str(pairs[i][1])),
			0);
	if (sigv4_read(&req, &check, &arena, s, &err) < 0 ||
		sigv4_sign(&req, s, &cred, NULL, &arena, ret, &err) < 0)
		fail_msg("%s", err.text);
	arena_done(&arena);
}

static void put(struct wr *wr, const char *s)
{
	wr_bytes(wr, slice_from_str(s));
}

static void put_body(struct wr *wr, size_t which, bool is_signed)
{
	static uint8_t a[65536];

	memset(a, 'a', sizeof(a));
	put(wr, "10000;chunk-signature=");
	put(wr, is_signed ? example[which].first : SIG0);
	put(wr, "\r\n");
	wr_bytes(wr, slice_of(a, sizeof(a)));
	put(wr, "\r\n400;chunk-signature=");
	put(wr, is_signed ? example[which].second : SIG0);
	put(wr, "\r\n");
	wr_bytes(wr, slice_of(a, 1024));
	put(wr, "\r\n0;chunk-signature=");
	put(wr, is_signed ? example[which].last : SIG0);
	put(wr, "\r\n");
	if (example[which].trailer) {
		put(wr, "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:");
		put(wr, is_signed ? example[which].trailer : SIG0);
		put(wr, "\r\n");
	}
	put(wr, "\r\n");
}

/* Gives the body in pieces of `step`; the pieces of the answer, joined. */
static int run(
	struct sigv4_chunks *c, struct slice in, size_t step, struct wr *out, struct err *err)
{
	while (in.n > 0) {
		struct slice piece;
		size_t used;
		int r = sigv4_chunks_put(c, canon_text_cut(in, 0, step), &used, &piece, err);

		if (r < 0)
			return r;
		assert_true(used > 0);
		wr_bytes(out, piece);
		in = canon_text_cut(in, used, in.n);
	}
	return 0;
}

static void check_example(size_t which, size_t step)
{
	static uint8_t in[70000], want[70000], got[70000];
	struct wr win = wr_init(in, sizeof(in)), wwant = wr_init(want, sizeof(want)),
		  wgot = wr_init(got, sizeof(got));
	struct sigv4_chain chain;
	struct sigv4_chunks c;
	struct err err = {0};
	struct sigv4 s;

	sign_head(which, &s, &chain);
	assert_memory_equal(chain.signature, example[which].seed, SIGV4_HEX);
	put_body(&win, which, false);
	put_body(&wwant, which, true);
	sigv4_chunks_init(&c, &chain, &s);
	if (run(&c, slice_of(in, win.n), step, &wgot, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(sigv4_chunks_is_whole(&c));
	assert_int_equal(wgot.n, wwant.n);
	assert_memory_equal(got, want, wwant.n);
	sigv4_chunks_done(&c);
}

static void the_examples_of_aws_have_their_signatures(void **state)
{
	for (size_t which = 0; which < ARRAY_LEN(example); which++) {
		check_example(which, 70000);
		check_example(which, 1);
		check_example(which, 86);
		check_example(which, 4096);
	}
}

/* Gives what was let out before the end. */
static size_t expect_no(bool trailer, const char *body, const char *why)
{
	static uint8_t out[4096];
	size_t n = 0;

	for (size_t step = 1; step < 200; step += 198) {
		struct wr wr = wr_init(out, sizeof(out));
		struct sigv4_chain chain;
		struct sigv4_chunks c;
		struct err err = {0};
		struct sigv4 s;
		int r;

		sign_head(trailer, &s, &chain);
		sigv4_chunks_init(&c, &chain, &s);
		r = run(&c, slice_from_str(body), step, &wr, &err);
		if (why) {
			assert_int_equal(r, -EBADMSG);
			if (!strstr(err.text, why))
				fail_msg("\"%s\" is not about \"%s\"", err.text, why);
			assert_int_equal(run(&c, slice_from_str("0"), 1, &wr, &err), -EBADMSG);
		} else {
			assert_int_equal(r, 0);
		}
		assert_true(!why || !sigv4_chunks_is_whole(&c));
		n = wr.n;
		sigv4_chunks_done(&c);
	}
	return n;
}

static void what_is_no_chunk_is_refused(void **state)
{
	expect_no(false, "x", NULL); /* not yet */
	expect_no(false, "x\r\n", "is invalid");
	expect_no(false, "3\r\nabc\r\n", "is invalid");
	expect_no(false, LINE("-1", SIG0), "is invalid");
	expect_no(false, LINE("", SIG0), "is invalid");
	expect_no(false, "1;chunk-signature=" SIG0 "\na\n", "is invalid");
	expect_no(false, "1;chunk-signature=0" SIG0 "\r\n", "is invalid");
	expect_no(false,
		LINE("1", "A000000000000000000000000000000000000000000000000000000000000000"),
		"is invalid");
	expect_no(false, "1;chunk-signature=" SIG0 SIG0 "\r\n", "too long");
	expect_no(false, LINE("100001", SIG0), "larger than 1 MiB");
	expect_no(false, LINE("fffffffff", SIG0), "is invalid");
	expect_no(false, LINE("1", SIG0) "ab\r\n", "declared length");
	expect_no(false, LINE("0", SIG0) "\r\nx", "continues after");
	expect_no(false, LINE("0", SIG0) "x-amz-a:b\r\n", "declared length");
}

static void what_is_no_trailer_is_refused(void **state)
{
	expect_no(true, LINE("0", SIG0) "\r\n", "not signed");
	expect_no(true, LINE("0", SIG0) "a:b\r\n\r\n", "not signed");
	expect_no(true, LINE("0", SIG0) "A:b\r\n", "trailer is invalid");
	expect_no(true, LINE("0", SIG0) "a: b\r\n", "trailer is invalid");
	expect_no(true, LINE("0", SIG0) "a\rb:c\r\n", "trailer is invalid");
	expect_no(true, LINE("0", SIG0) "x-amz-trailer-signature:0\r\n", "signature");
	expect_no(true, LINE("0", SIG0) "x-amz-trailer-signature:" SIG0 "\r\na:b\r\n",
		"trailer is invalid");
	expect_no(true,
		LINE("0", SIG0) "x-amz-trailer-signature:" SIG0 "\r\nx-amz-trailer-signature:" SIG0
				"\r\n",
		"signature");
}

static void nothing_leaves_before_it_is_signed(void **state)
{
	assert_int_equal(expect_no(false, LINE("3", SIG0) "abc\r", NULL), 0);
	assert_int_equal(expect_no(false, LINE("3", SIG0) "abc\r\n", NULL), 84 + 5);
	assert_int_equal(expect_no(true, LINE("0", SIG0) "a:b\r\n", NULL), 0);
}

static void a_long_trailer_is_refused(void **state)
{
	AUTO_FREE char *text = xcalloc(1, SIGV4_MAX_TRAILER + 200);
	size_t n = (size_t)sprintf(text, "%s", LINE("0", SIG0));

	for (size_t i = 0; i < SIGV4_MAX_TRAILER / 4; i++)
		n += (size_t)sprintf(text + n, "a:\r\n");
	(void)sprintf(text + n, "a:\r\n");
	expect_no(true, text, "too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_aws_have_their_signatures),
		cmocka_unit_test(what_is_no_chunk_is_refused),
		cmocka_unit_test(what_is_no_trailer_is_refused),
		cmocka_unit_test(nothing_leaves_before_it_is_signed),
		cmocka_unit_test(a_long_trailer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
