/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/wire/dns/dns_reply.h"
#include "lib/base/mem.h"

#define V4 "\xc6\x12\1\2"
#define V6 "\xfd\x5b\0\0\0\0\0\0\0\0\0\0\0\0\1\2"
#define OPT "\0\0\x29\4\xd0\0\0\0\0\0\0"
#define SOA                                                                                      \
	"\0\0\6\0\1\0\0\0\5\0\x3a\7gateway\3sbx\10internal\0\6nobody\7invalid\0\0\0\0\1\0\0\x0e" \
	"\x10"                                                                                   \
	"\0\0\2\x58\0\1\x51\x80\0\0\0\5"
#define ROOM 1232

/* The query a.B with the case as given, of a type, with or without OPT. */
static size_t ask(uint8_t *buf, uint8_t type, bool edns)
{
	struct wr wr = wr_init(buf, 64);

	wr_bytes(&wr, slice_of("\x12\x34\1\0\0\1\0\0\0\0\0\0\1a\1B\0\0\0\0\1", 21));
	buf[18] = type;
	if (edns) {
		buf[11] = 1;
		wr_bytes(&wr, slice_of(OPT, 11));
	}
	return wr.n;
}

struct reply {
	uint8_t *p; /* heap, of the exact size */
	size_t n;
};

static void reply_done(struct reply *r)
{
	free(r->p);
}

static int build(struct slice msg, enum dns_via via, const struct dns_facts *facts, size_t room,
	struct reply *ret)
{
	uint8_t *buf = xmalloc(room);
	struct dns_query q;
	int status = dns_query_parse(msg, via, &q), r;

	assert_true(status >= 0);
	r = dns_reply_build(&q, status, facts, buf, room, &ret->n);
	ret->p = buf;
	return r;
}

static void expect_bytes(const char *what, struct slice msg, const struct dns_facts *facts,
	const char *want, size_t n)
{
	CLEANUP(reply_done) struct reply got = {0};

	assert_int_equal(build(msg, DNS_OVER_UDP, facts, ROOM, &got), 0);
	if (got.n != n || memcmp(got.p, want, n) != 0) {
		for (size_t i = 0; i < got.n; i++)
			fprintf(stderr, "%02x%s", got.p[i],
				i < n && got.p[i] == (uint8_t)want[i] ? "" : "!");
		fail_msg("%s: %zu bytes, wanted %zu", what, got.n, n);
	}
}

#define EXPECT(what, type, edns, facts, want) \
	expect_bytes(what, slice_of(msg, ask(msg, type, edns)), facts, want, sizeof(want) - 1)
#define QUESTION(type) "\1a\1B\0\0" type "\0\1"
#define HEAD(flags, counts) "\x12\x34" flags counts

static const struct dns_facts allowed = {
	.verdict = DNS_ALLOWED, .v4 = (const uint8_t *)V4, .v6 = (const uint8_t *)V6};
static const struct dns_facts denied = {
	.verdict = DNS_DENIED, .why = {(const uint8_t *)"no rule", 7}};

static void test_allowed_name(void **state)
{
	uint8_t msg[64];

	EXPECT("a", 1, false, &allowed,
		HEAD("\x81\x80", "\0\1\0\1\0\0\0\0")
			QUESTION("\1") "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" V4);
	EXPECT("a with edns", 1, true, &allowed,
		HEAD("\x81\x80", "\0\1\0\1\0\0\0\1")
			QUESTION("\1") "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" V4 OPT);
	EXPECT("aaaa", 28, false, &allowed,
		HEAD("\x81\x80", "\0\1\0\1\0\0\0\0")
			QUESTION("\x1c") "\xc0\x0c\0\x1c\0\1\0\0\0\x3c\0\x10" V6);
	EXPECT("any", 255, false, &allowed,
		HEAD("\x81\x80", "\0\1\0\1\0\0\0\0")
			QUESTION("\xff") "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" V4);
}

/* HTTPS and SVCB would carry keys for ECH; everything else has nothing to say either. */
static void test_allowed_name_has_addresses_only(void **state)
{
	uint8_t msg[64];
	struct dns_facts bare = {.verdict = DNS_ALLOWED};

	for (unsigned type = 0; type < 128; type++) {
		struct dns_facts facts = type == 1 || type == 28 ? bare : allowed;
		char want[256];
		size_t n = 21 + sizeof(SOA) - 1;

		if (type == DNS_TYPE_OPT)
			continue;
		memcpy(want, HEAD("\x81\x80", "\0\1\0\0\0\1\0\0") QUESTION("\1") SOA, n);
		want[18] = (char)type;
		expect_bytes(
			"nodata", slice_of(msg, ask(msg, (uint8_t)type, false)), &facts, want, n);
	}
}

static void test_denied_name(void **state)
{
	uint8_t msg[64];
	const char *fallback = "denied by the network policy of this sandbox";
	char want[256];
	size_t n = 21 + sizeof(SOA) - 1;

	EXPECT("plain", 1, false, &denied, HEAD("\x81\x83", "\0\1\0\0\0\1\0\0") QUESTION("\1") SOA);
	EXPECT("edns", 65, true, &denied,
		HEAD("\x81\x83", "\0\1\0\0\0\1\0\1") QUESTION("\x41") SOA
		"\0\0\x29\4\xd0\0\0\0\0\0\x0d\0\x0f\0\x09\0\x0fno rule");
	memcpy(want, HEAD("\x81\x83", "\0\1\0\0\0\1\0\1") QUESTION("\1") SOA, n);
	memcpy(want + n, "\0\0\x29\4\xd0\0\0\0\0\0\x32\0\x0f\0\x2e\0\x0f", 17);
	memcpy(want + n + 17, fallback, 44);
	expect_bytes("no facts", slice_of(msg, ask(msg, 1, true)), NULL, want, n + 17 + 44);
}

static void test_undecided_is_servfail(void **state)
{
	uint8_t msg[64];
	struct dns_facts facts = {.verdict = DNS_UNDECIDED, .why = {(const uint8_t *)"later", 5}};

	EXPECT("undecided", 1, true, &facts,
		HEAD("\x81\x82", "\0\1\0\0\0\0\0\1")
			QUESTION("\1") "\0\0\x29\4\xd0\0\0\0\0\0\x0b\0\x0f\0\7\0\x0elater");
}

#define MSG(m) slice_of(m, sizeof(m) - 1)

static void test_errors_of_the_parser(void **state)
{
	expect_bytes("notimp", MSG(HEAD("\x21\0", "\0\1\0\0\0\0\0\0") QUESTION("\1")), &allowed,
		HEAD("\xa1\x84", "\0\0\0\0\0\0\0\0"), 12);
	expect_bytes("formerr", MSG(HEAD("\1\0", "\0\2\0\0\0\0\0\0")), &allowed,
		HEAD("\x81\x81", "\0\0\0\0\0\0\0\0"), 12);
	expect_bytes("badvers",
		MSG(HEAD("\1\0", "\0\1\0\0\0\0\0\1") QUESTION("\1") "\0\0\x29\4\xd0\0\1\x80\0\0\0"),
		&allowed,
		HEAD("\x81\x80", "\0\1\0\0\0\0\0\1") QUESTION("\1") "\0\0\x29\4\xd0\1\0\x80\0\0\0",
		32);
	expect_bytes("axfr", MSG(HEAD("\1\0", "\0\1\0\0\0\0\0\0") QUESTION("\xfc")), &allowed,
		HEAD("\x81\x85", "\0\1\0\0\0\0\0\0") QUESTION("\xfc"), 21);
	expect_bytes("cd", MSG(HEAD("\1\x10", "\0\1\0\0\0\0\0\0") QUESTION("\xfc")), &allowed,
		HEAD("\x81\x95", "\0\1\0\0\0\0\0\0") QUESTION("\xfc"), 21);
}

static void test_prohibited_says_why(void **state)
{
	static const char in[] = HEAD("\1\0", "\0\1\0\0\0\0\0\1") "\1a\1B\0\0\x10\0\3" OPT;
	CLEANUP(reply_done) struct reply got = {0};

	assert_int_equal(build(MSG(in), DNS_OVER_UDP, NULL, ROOM, &got), 0);
	assert_int_equal(got.p[3] & 15, DNS_REFUSED);
	assert_int_equal(got.p[21 + 11 + 5], DNS_EDE_PROHIBITED);
}

/* NXDOMAIN for the root would deny every name to a resolver that believes RFC 8020. */
static void test_root_has_no_data(void **state)
{
	expect_bytes("root", MSG(HEAD("\1\0", "\0\1\0\0\0\0\0\0") "\0\0\2\0\1"), &denied,
		HEAD("\x81\x80", "\0\1\0\0\0\1\0\0") "\0\0\2\0\1" SOA, 17 + sizeof(SOA) - 1);
}

static void test_invalid_name_is_denied_whatever_the_facts(void **state)
{
	expect_bytes("nul", MSG(HEAD("\1\0", "\0\1\0\0\0\0\0\0") "\3a\0b\0\0\1\0\1"), &allowed,
		HEAD("\x81\x83", "\0\1\0\0\0\1\0\0") "\3a\0b\0\0\1\0\1" SOA, 21 + sizeof(SOA) - 1);
}

#define PTR_Q  \
	"\1"   \
	"2\1"  \
	"1\2"  \
	"18\3" \
	"198\7in-addr\4arpa\0\0\x0c\0\1"

static void test_reverse(void **state)
{
	struct dns_facts facts = {.verdict = DNS_ALLOWED, .ptr = {(const uint8_t *)"a.example", 9}};
	static const char in[] = HEAD("\1\0", "\0\1\0\0\0\0\0\0") PTR_Q;
	static const char out[] = HEAD("\x81\x80", "\0\1\0\1\0\0\0\0") PTR_Q
		"\xc0\x0c\0\x0c\0\1\0\0\0\x3c\0\x0b\1a\7example\0";
	static const char none[] = HEAD("\x81\x83", "\0\1\0\0\0\1\0\0") PTR_Q SOA;

	expect_bytes("ptr", MSG(in), &facts, out, sizeof(out) - 1);
	facts.ptr = (struct slice){0};
	expect_bytes("no such address", MSG(in), &facts, none, sizeof(none) - 1);
	expect_bytes("no facts", MSG(in), NULL, none, sizeof(none) - 1);
	facts.ptr = slice_from_str("a..example");
	expect_bytes("not a name", MSG(in), &facts, none, sizeof(none) - 1);
	facts.ptr =
		slice_from_str("a234567890123456789012345678901234567890123456789012345678901234");
	expect_bytes("a label of 64", MSG(in), &facts, none, sizeof(none) - 1);
}

/* The longest question, the longest reason: the text is cut, the record is not. */
static size_t longest_question(uint8_t *msg, uint16_t udp_size)
{
	struct wr wr = wr_init(msg, 512);

	wr_bytes(&wr, slice_of("\x12\x34\1\0\0\1\0\0\0\0\0\1", 12));
	for (int i = 0; i < 4; i++) {
		wr_u8(&wr, i < 3 ? 63 : 61);
		for (int k = 0; k < (i < 3 ? 63 : 61); k++)
			wr_u8(&wr, 'a');
	}
	wr_bytes(&wr, slice_of("\0\0\1\0\1\0\0\x29", 8));
	wr_u8(&wr, (uint8_t)(udp_size >> 8));
	wr_u8(&wr, (uint8_t)udp_size);
	wr_bytes(&wr, slice_of("\0\0\0\0\0\0", 6));
	return wr.n;
}

static void test_text_is_cut_before_the_record(void **state)
{
	char why[600];
	struct dns_facts facts = {.verdict = DNS_DENIED, .why = slice_of(why, sizeof(why))};

	memset(why, 'w', sizeof(why));
	for (unsigned udp = 0; udp <= 4096; udp += 64) {
		CLEANUP(reply_done) struct reply got = {0};
		uint8_t msg[512];

		assert_int_equal(build(slice_of(msg, longest_question(msg, (uint16_t)udp)),
					 DNS_OVER_UDP, &facts, ROOM, &got),
			0);
		assert_true(got.n <= MAX(udp, 512) && got.n <= DNS_MAX_REPLY);
		assert_int_equal(got.p[2] & 2, 0); /* TC */
		assert_int_equal(got.p[9], 1);	   /* SOA */
		assert_int_equal(
			got.n, udp <= 512 ? 512 : MIN(udp, 12 + 259 + 69 + 17 + DNS_MAX_WHY));
	}
}

static void test_truncated_when_it_does_not_fit(void **state)
{
	uint8_t msg[512];
	size_t n = longest_question(msg, 512);

	for (size_t room = 0; room < 400; room++) {
		CLEANUP(reply_done) struct reply got = {0};
		int r = build(slice_of(msg, n), DNS_OVER_UDP, &allowed, room, &got);

		assert_int_equal(r, room < 12 + 259 + 11 ? -EMSGSIZE : 0);
		if (r < 0)
			continue;
		assert_true(got.n <= room);
		assert_int_equal(got.p[2] & 2, room < 12 + 259 + 16 + 11 ? 2 : 0);
		assert_int_equal(got.p[7], room < 12 + 259 + 16 + 11 ? 0 : 1);
	}
	CLEANUP(reply_done) struct reply got = {0};
	assert_int_equal(build(slice_of(msg, n), DNS_OVER_STREAM, &allowed, 290, &got), -EMSGSIZE);
}

static const struct {
	const char *in, *out;
} texts[] = {
	{"plain", "plain"},
	{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
	{"a\nb\x7f", "a?b?"},
	{"\x80", "?"},
	{"\xc3", "?"},
	{"\xc0\xaf", "??"},
	{"\xe0\x80\xaf", "???"},
	{"\xed\xa0\x80", "???"},
	{"\xf4\x90\x80\x80", "????"},
	{"\xf5\x80\x80\x80", "????"},
	{"\xe2\x82x", "??x"},
};

static void test_text_is_utf8(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct dns_facts facts = {
			.verdict = DNS_DENIED, .why = slice_from_str(texts[i].in)};
		CLEANUP(reply_done) struct reply got = {0};
		size_t at = 21 + sizeof(SOA) - 1 + 17;
		uint8_t msg[64];

		assert_int_equal(
			build(slice_of(msg, ask(msg, 1, true)), DNS_OVER_UDP, &facts, ROOM, &got),
			0);
		assert_int_equal(got.n - at, strlen(texts[i].out));
		assert_memory_equal(got.p + at, texts[i].out, got.n - at);
	}
}

/* A character of three bytes is there as a whole or not at all. */
static void test_text_is_cut_between_characters(void **state)
{
	struct dns_facts facts = {
		.verdict = DNS_DENIED, .why = slice_from_str("\xe2\x82\xac\xe2\x82\xac")};
	size_t at = 21 + sizeof(SOA) - 1 + 17;
	uint8_t msg[64];

	for (size_t room = at; room < at + 8; room++) {
		CLEANUP(reply_done) struct reply got = {0};

		assert_int_equal(
			build(slice_of(msg, ask(msg, 1, true)), DNS_OVER_UDP, &facts, room, &got),
			0);
		assert_int_equal(got.n, at + MIN((room - at) / 3, 2) * 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allowed_name),
		cmocka_unit_test(test_allowed_name_has_addresses_only),
		cmocka_unit_test(test_denied_name),
		cmocka_unit_test(test_undecided_is_servfail),
		cmocka_unit_test(test_errors_of_the_parser),
		cmocka_unit_test(test_prohibited_says_why),
		cmocka_unit_test(test_root_has_no_data),
		cmocka_unit_test(test_invalid_name_is_denied_whatever_the_facts),
		cmocka_unit_test(test_reverse),
		cmocka_unit_test(test_text_is_cut_before_the_record),
		cmocka_unit_test(test_truncated_when_it_does_not_fit),
		cmocka_unit_test(test_text_is_utf8),
		cmocka_unit_test(test_text_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
