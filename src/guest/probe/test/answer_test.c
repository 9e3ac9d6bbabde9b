/* SPDX-License-Identifier: Apache-2.0 */
/* answer: output and result for answers that are valid, truncated, or have false lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/guest/probe/net/answer.h"
#include "lib/base/mem.h"
#include "src/guest/probe/verb/verb.h"

/* A heap copy of exactly that size: the sanitizer detects reads beyond the end. */
static int read_one(
	int (*read)(FILE *, struct slice), const void *bytes, size_t n, char *text, size_t size)
{
	AUTO_FREE char *exact = xmalloc(n ? n : 1);
	FILE *out = fmemopen(text, size, "w");
	int r;

	assert_non_null(out);
	memcpy(exact, bytes, n);
	r = read(out, slice_of(exact, n));
	(void)fclose(out);
	return r;
}

static void check(int (*read)(FILE *, struct slice), const void *bytes, size_t n, int verdict,
	const char *line)
{
	char text[2048] = "";

	assert_int_equal(read_one(read, bytes, n, text, sizeof(text)), verdict);
	assert_string_equal(text, line);
}

#define DNS(verdict, line, bytes) check(answer_dns, bytes, sizeof(bytes) - 1, verdict, line)
#define TALK(verdict, line, bytes) check(answer_talk, bytes, sizeof(bytes) - 1, verdict, line)

/* id, flags and code, counts; the question a.b IN A */
#define HEAD(code, answers, more) "\x5b\x78\x81" code "\0\1\0" answers "\0\0\0" more
#define QUESTION "\1a\1b\0\0\1\0\1"
#define RECORD(type, len) "\xc0\x0c\0" type "\0\1\0\0\0\x3c\0" len

static void dns_in_order(void **state)
{
	DNS(PROBE_POSSIBLE, "NOERROR, 1 answers 192.0.2.1\n",
		HEAD("\x80", "\1", "\0") QUESTION RECORD("\1", "\4") "\xc0\0\2\1");
	DNS(PROBE_POSSIBLE, "NOERROR, 1 answers 2001:db8::1\n",
		HEAD("\x80", "\1", "\0")
			QUESTION RECORD("\x1c", "\x10") "\x20\1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\1");
	DNS(PROBE_POSSIBLE, "NOERROR, 2 answers a record of type 16 a record of type 15\n",
		HEAD("\x80", "\2", "\0") QUESTION RECORD("\x10", "\3") "\2hi" RECORD("\x0f", "\0"));
	DNS(PROBE_REFUSED, "NXDOMAIN, 0 answers\n", HEAD("\x83", "\0", "\0") QUESTION);
	DNS(PROBE_REFUSED, "an unknown code, 0 answers\n", HEAD("\x8f", "\0", "\0") QUESTION);
	DNS(PROBE_REFUSED, "REFUSED, 1 answers 192.0.2.1\n",
		HEAD("\x85", "\1", "\0") QUESTION RECORD("\1", "\4") "\xc0\0\2\1");
}

static void dns_says_why(void **state)
{
	/* EDNS: option 15, a code, text with a control character */
	DNS(PROBE_REFUSED, "REFUSED, 0 answers because: no\\x1b[2J\n",
		HEAD("\x85", "\0", "\1") QUESTION "\0\0\x29\4\xd0\0\0\0\0\0\x0c"
						  "\0\x0f\0\x08\0\x0f"
						  "no\x1b[2J");
}

static void dns_cut_or_lying(void **state)
{
	static const char whole[] =
		HEAD("\x80", "\1", "\0") QUESTION RECORD("\1", "\4") "\xc0\0\2\1";
	char text[2048];

	DNS(PROBE_REFUSED, "an answer of 0 bytes\n", "");
	DNS(PROBE_REFUSED, "an answer of 11 bytes\n", "\x5b\x78\x81\x80\0\1\0\1\0\0\0");
	DNS(PROBE_POSSIBLE, "NOERROR, 1 answers, all truncated\n", HEAD("\x80", "\1", "\0"));
	/* a record longer than the message; a label that exceeds it; a pointer cut in two */
	DNS(PROBE_POSSIBLE, "NOERROR, 1 answers, all truncated\n",
		HEAD("\x80", "\1", "\0") QUESTION "\xc0\x0c\0\1\0\1\0\0\0\x3c\xff\xff\xc0");
	DNS(PROBE_POSSIBLE, "NOERROR, 1 answers, all truncated\n",
		HEAD("\x80", "\1", "\0") "\xbf"
					 "a");
	DNS(PROBE_POSSIBLE, "NOERROR, 1 answers, all truncated\n",
		HEAD("\x80", "\1", "\0") QUESTION "\xc0");
	/* no prefix is read beyond its end */
	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		(void)read_one(answer_dns, whole, n, text, sizeof(text));
}

static void dns_that_counts_without_end(void **state)
{
	AUTO_FREE char *many = xcalloc(1, 16384);
	char text[4096] = "";

	/* 65535 records of 11 zero bytes each: 64 of them are printed */
	memcpy(many, "\x5b\x78\x81\x80\0\1\xff\xff\0\0\0\0", 12);
	assert_int_equal(read_one(answer_dns, many, 16384, text, sizeof(text)), PROBE_POSSIBLE);
	assert_true(strlen(text) < 64 * 24 + 40);
}

static void talk_http(void **state)
{
	TALK(PROBE_REFUSED, "HTTP 403: no rule\\x09allows it\n",
		"HTTP/1.1 403 Forbidden\r\nProxy-Status: sbx; Details=\"no rule\tallows "
		"it\"\r\n\r\n");
	TALK(PROBE_POSSIBLE, "HTTP 200\n", "HTTP/1.1 200 OK\r\n\r\n");
	TALK(PROBE_REFUSED, "HTTP 502\n", "HTTP/1.0 502");
	/* an invalid status is not a denial; NUL does not end the search; the text ends with the
	 * data */
	TALK(PROBE_POSSIBLE, "HTTP 0\n", "HTTP/1.1 -99 x");
	TALK(PROBE_POSSIBLE, "HTTP 0\n", "HTTP/1.1 99999999999999999999");
	TALK(PROBE_REFUSED, "HTTP 403: why\n", "HTTP/1.1 403 \0 details=\"why");
	TALK(PROBE_REFUSED, "HTTP 403: \n", "HTTP/1.1 403 details=\"");
}

static void talk_tls_and_others(void **state)
{
	TALK(PROBE_REFUSED, "TLS alert 112\n", "\x15\3\3\0\2\2\x70");
	TALK(PROBE_POSSIBLE, "TLS handshake continues\n", "\x16\3\3");
	TALK(PROBE_POSSIBLE, "bytes: \\x15\\x03\\x03\n", "\x15\3\3");
	TALK(PROBE_POSSIBLE, "bytes: HTTP/1.1 40\n",
		"HTTP/1.1 40"
		"");
	TALK(PROBE_POSSIBLE, "bytes: \\x0a\\x1b]0;x\\x07\n", "\n\x1b]0;x\a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dns_in_order),
		cmocka_unit_test(dns_says_why),
		cmocka_unit_test(dns_cut_or_lying),
		cmocka_unit_test(dns_that_counts_without_end),
		cmocka_unit_test(talk_http),
		cmocka_unit_test(talk_tls_and_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
