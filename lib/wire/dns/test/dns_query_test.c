/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/wire/dns/dns_query.h"
#include "lib/base/mem.h"

/*
 * A row: a message, and what is said about it: "rcode" or "silent" for a refusal, else
 * "host type class" with the EDNS size and DO when there is an OPT record.
 */
struct row {
	const char *name;
	const char *in;
	size_t n;
	const char *want;
};

#define ROW(name, in, want)                    \
	{                                      \
		name, in, sizeof(in) - 1, want \
	}
#define HEAD(flags, counts) "\x12\x34" flags counts
#define ONE "\0\1\0\0\0\0\0\0"
#define ONE_OPT "\0\1\0\0\0\0\0\1"
#define RD "\1\0"
#define A_B "\1a\1b\0"
#define IN_A "\0\1\0\1"
#define OPT(size, flags, len) "\0\0\x29" size "\0\0" flags len
#define L63    \
	"\x3f" \
	"123456789012345678901234567890123456789012345678901234567890123"
#define L64 "1234567890123456789012345678901234567890123456789012345678901234"
#define L61    \
	"\x3d" \
	"1234567890123456789012345678901234567890123456789012345678901"

static const struct row rows[] = {
	ROW("a", HEAD(RD, ONE) A_B IN_A, "a.b 1 1 rd"),
	ROW("no recursion wanted", HEAD("\0\0", ONE) A_B IN_A, "a.b 1 1"),
	ROW("checking disabled", HEAD("\1\x10", ONE) A_B IN_A, "a.b 1 1 rd cd"),
	ROW("case stays", HEAD(RD, ONE) "\3WwW\4eX_1\0" IN_A, "WwW.eX_1 1 1 rd"),
	ROW("root", HEAD(RD, ONE) "\0\0\2\0\1", "<root> 2 1 rd"),
	ROW("any", HEAD(RD, ONE) A_B "\0\xff\0\1", "a.b 255 1 rd"),
	ROW("edns", HEAD(RD, ONE_OPT) A_B IN_A OPT("\4\xd0", "\0\0", "\0\0"),
		"a.b 1 1 rd edns 1232"),
	ROW("edns do", HEAD(RD, ONE_OPT) A_B IN_A OPT("\x10\0", "\x80\0", "\0\0"),
		"a.b 1 1 rd edns 4096 do"),
	ROW("edns below 512", HEAD(RD, ONE_OPT) A_B IN_A OPT("\0\x10", "\0\0", "\0\0"),
		"a.b 1 1 rd edns 512"),
	ROW("unknown options",
		HEAD(RD, ONE_OPT)
			A_B IN_A OPT("\4\xd0", "\0\0", "\0\x0b") "\0\x0a\0\3xyz\xff\xff\0\0",
		"a.b 1 1 rd edns 1232"),
	ROW("option over the end",
		HEAD(RD, ONE_OPT) A_B IN_A OPT("\4\xd0", "\0\0", "\0\5") "\0\x0a\0\2x", "1"),
	ROW("half an option", HEAD(RD, ONE_OPT) A_B IN_A OPT("\4\xd0", "\0\0", "\0\3") "\0\x0a\0",
		"1"),
	ROW("options over the end", HEAD(RD, ONE_OPT) A_B IN_A OPT("\4\xd0", "\0\0", "\0\1"), "1"),
	ROW("edns version 1", HEAD(RD, ONE_OPT) A_B IN_A "\0\0\x29\4\xd0\0\1\0\0\0\0", "16"),
	ROW("opt with a name", HEAD(RD, ONE_OPT) A_B IN_A "\1x\0\0\x29\4\xd0\0\0\0\0\0\0", "1"),
	ROW("another record than opt", HEAD(RD, ONE_OPT) A_B IN_A "\0\0\1\0\1\0\0\0\0\0\0", "1"),
	ROW("opt missing", HEAD(RD, ONE_OPT) A_B IN_A, "1"),
	ROW("two opt",
		HEAD(RD, "\0\1\0\0\0\0\0\2") A_B IN_A OPT("\4\xd0", "\0\0", "\0\0")
			OPT("\4\xd0", "\0\0", "\0\0"),
		"1"),
	ROW("one opt of two", HEAD(RD, "\0\1\0\0\0\0\0\2") A_B IN_A OPT("\4\xd0", "\0\0", "\0\0"),
		"1"),
	ROW("none of two opt", HEAD(RD, "\0\1\0\0\0\0\0\2") A_B IN_A, "1"),
	ROW("nothing", "", "silent"),
	ROW("eleven bytes", "\x12\x34\1\0\0\1\0\0\0\0\0", "silent"),
	ROW("a response", HEAD("\x81\x80", ONE) A_B IN_A, "silent"),
	ROW("no question", HEAD(RD, "\0\0\0\0\0\0\0\0"), "1"),
	ROW("two questions", HEAD(RD, "\0\2\0\0\0\0\0\0") A_B IN_A A_B IN_A, "1"),
	ROW("65535 questions", HEAD(RD, "\xff\xff\0\0\0\0\0\0") A_B IN_A, "1"),
	ROW("an answer", HEAD(RD, "\0\1\0\1\0\0\0\0") A_B IN_A, "1"),
	ROW("an authority", HEAD(RD, "\0\1\0\0\0\1\0\0") A_B IN_A, "1"),
	ROW("notify", HEAD("\x20\0", ONE) A_B IN_A, "4"),
	ROW("update", HEAD("\x28\0", ONE) A_B IN_A, "4"),
	ROW("opcode 15", HEAD("\x78\0", ONE) A_B IN_A, "4"),
	ROW("says it is truncated", HEAD("\3\0", ONE) A_B IN_A, "1"),
	ROW("trailing byte", HEAD(RD, ONE) A_B IN_A "\0", "1"),
	ROW("trailing byte behind opt",
		HEAD(RD, ONE_OPT) A_B IN_A OPT("\4\xd0", "\0\0", "\0\0") "x", "1"),
	ROW("pointer to itself", HEAD(RD, ONE) "\xc0\x0c" IN_A, "1"),
	ROW("pointer behind a label", HEAD(RD, ONE) "\1a\xc0\x0c" IN_A, "1"),
	ROW("label type 01",
		HEAD(RD, ONE) "\x41"
			      "a\0" IN_A,
		"1"),
	ROW("label type 10",
		HEAD(RD, ONE) "\x81"
			      "a\0" IN_A,
		"1"),
	ROW("name without an end", HEAD(RD, ONE) "\1a", "1"),
	ROW("label over the end", HEAD(RD, ONE) "\5ab", "1"),
	ROW("no type", HEAD(RD, ONE) A_B, "1"),
	ROW("half a class", HEAD(RD, ONE) A_B "\0\1\0", "1"),
	ROW("63 bytes", HEAD(RD, ONE) L63 "\0" IN_A,
		"123456789012345678901234567890123456789012345678901234567890123 1 1 rd"),
	ROW("255 bytes", HEAD(RD, ONE) L63 L63 L63 L61 "\0" IN_A, "253 bytes 1 1 rd"),
	ROW("256 bytes",
		HEAD(RD, ONE) L63 L63 L63
		"\x3e"
		"1"
		"1234567890123456789012345678901234567890123456789012345678901"
		"\0" IN_A,
		"1"),
	ROW("64 bytes", HEAD(RD, ONE) "\x40" L64 "\0" IN_A, "1"),
	ROW("a pointer with all its bytes", HEAD(RD, ONE) "\xc0" L64 L64 L64 "\0" IN_A, "1"),
	ROW("a NUL in a label",
		HEAD(RD, ONE) "\7"
			      "evil\0"
			      "co\3com\0" IN_A,
		"<invalid> 1 1 rd"),
	ROW("a dot in a label",
		HEAD(RD, ONE) "\3"
			      "a.b\3com\0" IN_A,
		"<invalid> 1 1 rd"),
	ROW("a space", HEAD(RD, ONE) "\1 \0" IN_A, "<invalid> 1 1 rd"),
	ROW("utf-8", HEAD(RD, ONE) "\2\xc3\xa4\0" IN_A, "<invalid> 1 1 rd"),
	ROW("axfr", HEAD(RD, ONE) A_B "\0\xfc\0\1", "5"),
	ROW("ixfr with its soa", HEAD(RD, "\0\1\0\0\0\1\0\0") A_B "\0\xfb\0\1\xc0\x0c", "5"),
	ROW("tkey", HEAD(RD, ONE) A_B "\0\xf9\0\1", "5"),
	ROW("opt as a question", HEAD(RD, ONE) A_B "\0\x29\0\1", "1"),
	ROW("chaos", HEAD(RD, ONE) A_B "\0\x10\0\3", "5"),
	ROW("class any", HEAD(RD, ONE) A_B "\0\1\0\xff", "5"),
};

static int parse_copy(struct slice in, uint8_t **copy, struct dns_query *q)
{
	/* A heap copy of the exact size, so that the address sanitizer sees one byte too far. */
	*copy = xmalloc(in.n ? in.n : 1);
	if (in.n)
		memcpy(*copy, in.p, in.n);
	return dns_query_parse(slice_of(*copy, in.n), DNS_OVER_UDP, q);
}

static void describe(int r, const struct dns_query *q, char *buf, size_t size)
{
	struct slice host = dns_query_host(q);
	char name[64];

	if (r < 0) {
		snprintf(buf, size, "silent");
		return;
	}
	if (r > 0) {
		snprintf(buf, size, "%d", r);
		return;
	}
	if (host.n > 63)
		snprintf(name, sizeof(name), "%zu bytes", host.n);
	else
		snprintf(name, sizeof(name), "%.*s", (int)host.n, (const char *)host.p);
	snprintf(buf, size, "%s%s %d %d%s%s",
		q->kind == DNS_NAME_ROOT      ? "<root>"
		: q->kind == DNS_NAME_INVALID ? "<invalid>"
					      : "",
		name, q->type, q->class, q->rd ? " rd" : "", q->cd ? " cd" : "");
	if (q->edns)
		snprintf(buf + strlen(buf), size - strlen(buf), " edns %d%s", q->udp_size,
			q->dnssec_ok ? " do" : "");
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE uint8_t *copy = NULL;
		struct dns_query q;
		char got[256];
		int r = parse_copy(slice_of(rows[i].in, rows[i].n), &copy, &q);

		describe(r, &q, got, sizeof(got));
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: %s instead of %s", rows[i].name, got, rows[i].want);
	}
}

/* A cut message is never a question, and only one without a header goes unanswered. */
static void test_every_prefix_is_refused(void **state)
{
	static const char msg[] =
		HEAD(RD, ONE_OPT) A_B IN_A OPT("\4\xd0", "\0\0", "\0\4") "\0\x0a\0\0";

	for (size_t n = 0; n < sizeof(msg) - 1; n++) {
		AUTO_FREE uint8_t *copy = NULL;
		struct dns_query q;

		assert_int_equal(parse_copy(slice_of(msg, n), &copy, &q),
			n < DNS_HEADER ? -EBADMSG : DNS_FORMERR);
	}
}

/* Each value of a byte in each place of a name: the whole of it comes out, or none. */
static void test_name_is_never_cut(void **state)
{
	char msg[] = HEAD(RD, ONE) "\x0c"
				   "evil-allowed\3com\0" IN_A;
	char text[] = "evil-allowed.com";

	for (size_t at = 0; at < 12; at++) {
		for (unsigned v = 0; v < 256; v++) {
			bool good = (v >= 'a' && v <= 'z') || (v >= 'A' && v <= 'Z') ||
				    (v >= '0' && v <= '9') || v == '-' || v == '_';
			char m[sizeof(msg)], t[sizeof(text)];
			struct dns_query q;

			memcpy(m, msg, sizeof(m));
			memcpy(t, text, sizeof(t));
			m[13 + at] = t[at] = (char)v;
			assert_int_equal(
				dns_query_parse(slice_of(m, sizeof(m) - 1), DNS_OVER_UDP, &q), 0);
			assert_int_equal(q.kind, good ? DNS_NAME_HOST : DNS_NAME_INVALID);
			assert_true(slice_eq(dns_query_host(&q), slice_of(t, good ? 16 : 0)));
			assert_int_equal(
				dns_query_want(&q), good ? DNS_WANT_POLICY : DNS_WANT_NOTHING);
		}
	}
}

static void test_too_long_is_refused(void **state)
{
	size_t n = DNS_MAX_QUERY + 1;
	AUTO_FREE uint8_t *msg = xcalloc(1, n);
	struct dns_query q;

	memcpy(msg, HEAD(RD, ONE_OPT) A_B IN_A OPT("\4\xd0", "\0\0", "\0\0"), 32);
	for (size_t len = n - 1; len <= n; len++) {
		size_t rest = len - 32;

		msg[30] = (uint8_t)(rest >> 8);
		msg[31] = (uint8_t)rest;
		msg[34] = (uint8_t)((rest - 4) >> 8);
		msg[35] = (uint8_t)(rest - 4);
		assert_int_equal(dns_query_parse(slice_of(msg, len), DNS_OVER_UDP, &q),
			len <= DNS_MAX_QUERY ? 0 : DNS_FORMERR);
	}
}

#define REVERSE(name, len, first, last)                  \
	{                                                \
		name, sizeof(name) - 1, len, first, last \
	}
#define ARPA "\4arpa\0"
#define ZEROS \
	"\1"  \
	"0\1" \
	"0\1" \
	"0\1" \
	"0\1" \
	"0\1" \
	"0\1" \
	"0\1" \
	"0"

static const struct {
	const char *name;
	size_t n;
	int len;
	uint8_t first, last;
} reverse[] = {
	REVERSE("\1"
		"4\1"
		"3\2"
		"18\3"
		"198\7in-addr" ARPA,
		4, 198, 4),
	REVERSE("\1"
		"4\1"
		"3\2"
		"18\3"
		"198\7IN-aDDr\4ArPa\0",
		4, 198, 4),
	REVERSE("\3"
		"256\1"
		"3\2"
		"18\3"
		"198\7in-addr" ARPA,
		0, 0, 0),
	REVERSE("\2"
		"04\1"
		"3\2"
		"18\3"
		"198\7in-addr" ARPA,
		0, 0, 0),
	REVERSE("\1"
		"x\1"
		"3\2"
		"18\3"
		"198\7in-addr" ARPA,
		0, 0, 0),
	REVERSE("\1"
		"3\2"
		"18\3"
		"198\7in-addr" ARPA,
		0, 0, 0),
	REVERSE("\1"
		"5\1"
		"4\1"
		"3\2"
		"18\3"
		"198\7in-addr" ARPA,
		0, 0, 0),
	REVERSE("\1"
		"4\1"
		"3\2"
		"18\3"
		"198\7in-addr\4arpa\1x\0",
		0, 0, 0),
	REVERSE("\1"
		"4\1"
		"3\2"
		"18\3"
		"198\7in-addr\3com\0",
		0, 0, 0),
	REVERSE("\1"
		"e\1"
		"F" ZEROS ZEROS ZEROS "\1"
		"0\1"
		"0\1"
		"0\1"
		"0\1"
		"d\1"
		"f\3ip6" ARPA,
		16, 0xfd, 0xfe),
	REVERSE("\1"
		"e\1"
		"g" ZEROS ZEROS ZEROS "\1"
		"0\1"
		"0\1"
		"0\1"
		"0\1"
		"d\1"
		"f\3ip6" ARPA,
		0, 0, 0),
	REVERSE("\1"
		"e\1"
		"F" ZEROS ZEROS ZEROS "\1"
		"0\1"
		"0\1"
		"0\1"
		"d\1"
		"f\3ip6" ARPA,
		0, 0, 0),
	REVERSE("\0", 0, 0, 0),
};

static void test_reverse_names(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(reverse); i++) {
		struct dns_query q = {.name = slice_of(reverse[i].name, reverse[i].n),
			.kind = DNS_NAME_HOST,
			.type = DNS_TYPE_PTR};
		struct dns_addr a = {0};
		bool found = dns_query_reverse(&q, &a);

		if (found != (reverse[i].len > 0) || a.n != reverse[i].len)
			fail_msg("row %zu: %d", i, a.n);
		if (found)
			assert_true(a.b[0] == reverse[i].first && a.b[a.n - 1] == reverse[i].last);
		assert_int_equal(dns_query_want(&q), found ? DNS_WANT_REVERSE : DNS_WANT_POLICY);
		q.type = DNS_TYPE_A;
		assert_int_equal(dns_query_want(&q), DNS_WANT_POLICY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_every_prefix_is_refused),
		cmocka_unit_test(test_name_is_never_cut),
		cmocka_unit_test(test_too_long_is_refused),
		cmocka_unit_test(test_reverse_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
