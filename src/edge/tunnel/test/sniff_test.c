/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/edge/tunnel/sniff.h"

#define ROW(text, is)                      \
	{                                  \
		text, sizeof(text) - 1, is \
	}

static const struct row {
	const char *text;
	size_t n;
	enum sniff is;
} rows[] = {
	ROW("", SNIFF_MORE),
	ROW("\x16", SNIFF_MORE),
	ROW("\x16\x03", SNIFF_TLS),
	ROW("\x16\x03\x01\x02\x00\x01", SNIFF_TLS),
	ROW("\x16\x02\x01", SNIFF_OTHER),
	ROW("\x15\x03\x01", SNIFF_OTHER),
	ROW("\x80\x2e\x01\x03\x01", SNIFF_OTHER), /* SSL 2 */
	ROW("G", SNIFF_MORE),
	ROW("GET", SNIFF_MORE),
	ROW("GET ", SNIFF_MORE),
	ROW("GET /", SNIFF_HTTP),
	ROW("get\t /x", SNIFF_HTTP),
	ROW("OPTIONS *", SNIFF_HTTP),
	ROW("PRI * HTTP/2.0\r\n", SNIFF_HTTP),
	ROW("M-SEARCH * HTTP/1.1\r\n", SNIFF_HTTP),
	ROW("GET h", SNIFF_MORE),
	ROW("GET http", SNIFF_MORE),
	ROW("GET http:", SNIFF_HTTP),
	ROW("GET HTTPS", SNIFF_MORE),
	ROW("GET hTTps:", SNIFF_HTTP),
	ROW("GET httpx", SNIFF_OTHER),
	ROW("GET httpsx", SNIFF_OTHER),
	ROW("GET key\r\n", SNIFF_OTHER), /* redis */
	ROW("CONNECT", SNIFF_MORE),
	ROW("CONNECT a", SNIFF_HTTP),
	ROW("connect a", SNIFF_HTTP),
	ROW("CONNECTS a", SNIFF_OTHER),
	/* Leading line ends hide nothing. */
	ROW("\r\n\r\n", SNIFF_MORE),
	ROW("\r\nGET /", SNIFF_HTTP),
	ROW("\n\n\nGET /", SNIFF_HTTP),
	ROW("\r\nEHLO x", SNIFF_OTHER),
	ROW(" GET /", SNIFF_OTHER),
	ROW("\0GET /", SNIFF_OTHER),
	ROW("GET\0 /", SNIFF_OTHER),
	ROW("GET \0/", SNIFF_OTHER),
	ROW("SSH-2.0-OpenSSH_9.2\r\n", SNIFF_OTHER),
	ROW("EHLO there", SNIFF_OTHER),
	ROW("EHLO h", SNIFF_MORE),
	ROW("EHLO hello", SNIFF_OTHER),
	ROW("0032git-upload-pack /project.git", SNIFF_OTHER),
	ROW("AMQP\0\0\x09\x01", SNIFF_OTHER),
	ROW("PING\r\n", SNIFF_OTHER),
	ROW("\0\0\0\x08\x04\xd2\x16\x2f", SNIFF_OTHER), /* postgres */
	ROW("abcdefghijklmnopqrstuvwxyzabcdefg", SNIFF_OTHER),
	ROW("abcdefghijklmnopqrstuvwxyzabcdef /", SNIFF_HTTP),
	/* The wait is limited. */
	ROW("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
	    "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nxyz",
		SNIFF_HTTP),
};

static void test_first_bytes(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum sniff is = sniff_first(slice_of(rows[i].text, rows[i].n));

		if (is != rows[i].is)
			fail_msg("row %zu (%s): %d instead of %d", i, rows[i].text, is, rows[i].is);
	}
}

/* A decision does not change with more bytes, and is always reached within the limit. */
static void test_prefixes_agree(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum sniff whole = sniff_first(slice_of(rows[i].text, rows[i].n));

		for (size_t n = 0; n < rows[i].n; n++) {
			enum sniff is = sniff_first(slice_of(rows[i].text, n));

			if (is != SNIFF_MORE && is != whole)
				fail_msg("row %zu at %zu bytes: %d, later %d", i, n, is, whole);
		}
	}
}

/* No byte value anywhere extends the wait beyond the limit. */
static void test_bounded(void **state)
{
	uint8_t buf[SNIFF_BYTES];

	for (unsigned c = 0; c < 256; c++) {
		memset(buf, (int)c, sizeof(buf));
		assert_int_not_equal(sniff_first(slice_of(buf, sizeof(buf))), SNIFF_MORE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_bytes),
		cmocka_unit_test(test_prefixes_agree),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
