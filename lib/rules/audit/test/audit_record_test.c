/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/rules/audit/audit_record.h"

static struct audit_record sample(void)
{
	struct audit_record rec = {
		.seq = 7,
		.time_ms = 1700000000123,
		.sandbox = slice_from_str("0123456789ab"),
		.name = slice_from_str("demo"),
		.ev = {.kind = AUDIT_KIND_DECISION,
			.decision = AUDIT_DENY,
			.type = slice_from_str("https"),
			.host = slice_from_str("a.example"),
			.port = 443,
			.path = slice_from_str("transparent"),
			.op = slice_from_str("GET /a\"b"),
			.reason = slice_from_str("no applicable policies")},
	};

	memset(rec.prev, 0xab, sizeof(rec.prev));
	memset(rec.hash, 0xcd, sizeof(rec.hash));
	return rec;
}

static size_t encode(const struct audit_record *rec, char *buf, size_t size)
{
	struct wr wr = wr_init(buf, size);

	assert_int_equal(audit_record_encode(&wr, rec), 0);
	assert_int_equal(audit_record_encode_sig(&wr, rec), 0);
	assert_int_equal(audit_record_encode_hash(&wr, rec), 0);
	return wr.n;
}

static int decode_str(const char *line)
{
	struct audit_record rec;

	return audit_record_decode(slice_from_str(line), &rec);
}

#define HEX_AB "abababababababababababababababababababababababababababababababab"
#define HEX_CD "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
#define HEX_00 "0000000000000000000000000000000000000000000000000000000000000000"
#define TAIL ",\"prev\":\"" HEX_AB "\",\"hash\":\"" HEX_CD "\"}\n"

static void a_record_is_this_line(void **state)
{
	struct audit_record rec = sample();
	char buf[AUDIT_MAX_RECORD + 1];
	size_t n = encode(&rec, buf, sizeof(buf) - 1);

	buf[n] = '\0';
	assert_string_equal(buf,
		"{\"seq\":7,\"time\":1700000000123,\"kind\":\"decision\","
		"\"sandbox\":\"0123456789ab\",\"name\":\"demo\",\"decision\":\"deny\","
		"\"type\":\"https\",\"host\":\"a.example\",\"port\":443,"
		"\"path\":\"transparent\",\"op\":\"GET /a\\u0022b\","
		"\"reason\":\"no applicable policies\"" TAIL);
}

static void what_is_decoded_is_what_was_encoded(void **state)
{
	struct audit_record rec = sample(), back;
	char buf[AUDIT_MAX_RECORD], again[AUDIT_MAX_RECORD];
	uint8_t host[256];
	size_t n;

	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (uint8_t)i;
	rec.ev.host = slice_of(host, 255);
	n = encode(&rec, buf, sizeof(buf));
	assert_int_equal(audit_record_decode(slice_of(buf, n), &back), 0);
	assert_int_equal(back.seq, 7);
	assert_int_equal(back.time_ms, 1700000000123);
	assert_int_equal(back.ev.kind, AUDIT_KIND_DECISION);
	assert_int_equal(back.ev.decision, AUDIT_DENY);
	assert_int_equal(back.ev.port, 443);
	assert_true(slice_eq(back.ev.host, rec.ev.host));
	assert_true(slice_eq_str(back.sandbox, "0123456789ab"));
	assert_memory_equal(back.hash, rec.hash, sizeof(rec.hash));
	assert_int_equal(encode(&back, again, sizeof(again)), n);
	assert_memory_equal(buf, again, n);
}

static void the_longest_record_fits(void **state)
{
	struct audit_record rec = sample();
	char buf[AUDIT_MAX_RECORD];
	uint8_t bytes[300];
	struct slice word = slice_from_str("abcdefghijklmnopqrstuvwxyz01234");

	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(word.n, AUDIT_MAX_WORD);
	rec.seq = rec.time_ms = rec.ev.count = AUDIT_MAX_NUMBER;
	rec.ev.kind = AUDIT_KIND_WORKER_VIOLATION;
	rec.ev.port = 65535;
	rec.sandbox = rec.ev.action = rec.ev.type = rec.ev.path = word;
	rec.name = rec.ev.host = rec.ev.op = rec.ev.rule = rec.ev.reason = rec.ev.hold =
		rec.ev.from = rec.ev.effects = slice_of(bytes, sizeof(bytes));
	memset(rec.ev.digest, 0xff, sizeof(rec.ev.digest));
	audit_record_trim(&rec);
	assert_int_equal(rec.cut, (300 - 255) + (300 - 240) + (300 - 64) + (300 - 200) + (300 - 8) +
					  (300 - 64) + (300 - rec.ev.effects.n));
	rec.cut = AUDIT_MAX_NUMBER;
	assert_true(encode(&rec, buf, sizeof(buf)) <= AUDIT_MAX_RECORD);
}

static void format_2_names_effects_and_where_the_rule_is(void **state)
{
	struct audit_record rec = sample(), back;
	char buf[AUDIT_MAX_RECORD + 1];
	size_t n;

	assert_int_equal(audit_record_format(&rec), 1);
	rec.ev.effects = slice_from_str("http:GET a.example /a; api:repo.read github repo/a/b");
	memset(rec.ev.digest, 0xcd, sizeof(rec.ev.digest));
	rec.ev.hold = slice_from_str("K7QD");
	rec.ev.from = slice_from_str("policy 3");
	rec.ev.reason = slice_from_str("r");
	assert_int_equal(audit_record_format(&rec), 2);
	n = encode(&rec, buf, sizeof(buf) - 1);
	buf[n] = '\0';
	assert_non_null(strstr(buf,
		",\"reason\":\"r\",\"effects\":\"http:GET a.example /a; api:repo.read github repo/a/b\","
		"\"digest\":\"" HEX_CD "\",\"hold\":\"K7QD\",\"from\":\"policy 3\"" TAIL));
	assert_int_equal(audit_record_decode(slice_of(buf, n), &back), 0);
	assert_memory_equal(back.ev.digest, rec.ev.digest, sizeof(rec.ev.digest));
	assert_true(slice_eq(back.ev.effects, rec.ev.effects));
	assert_int_equal(audit_record_format(&back), 2);
}

static void effects_are_cut_after_a_whole_one(void **state)
{
	struct audit_record rec = sample();
	char buf[AUDIT_MAX_RECORD];
	uint8_t bytes[300], texts[1100];

	memset(texts, 'a', sizeof(texts));
	memcpy(texts + 400, "; ", 2);
	rec.ev.effects = slice_of(texts, sizeof(texts));
	audit_record_trim(&rec);
	assert_int_equal(rec.ev.effects.n, 400);
	assert_int_equal(rec.cut, 700);
	(void)encode(&rec, buf, sizeof(buf));
	/* The other texts of a record are never cut for them. */
	memset(bytes, 0xff, sizeof(bytes));
	rec.name = rec.ev.host = rec.ev.op = rec.ev.rule = rec.ev.reason = rec.ev.hold =
		rec.ev.from = slice_of(bytes, sizeof(bytes));
	rec.ev.effects = slice_of(texts + 402, 600);
	memset(rec.ev.digest, 1, sizeof(rec.ev.digest));
	audit_record_trim(&rec);
	assert_true(rec.ev.effects.n < 100);
	assert_int_equal(rec.ev.op.n, AUDIT_MAX_OP);
	assert_int_equal(rec.ev.from.n, AUDIT_MAX_FROM);
	(void)encode(&rec, buf, sizeof(buf));
}

/* Each row says the same as a good line, in another way. */
static void there_is_one_encoding_only(void **state)
{
#define BEGIN "{\"seq\":7,\"time\":1,\"kind\":\"lifecycle\",\"sandbox\":\"ab\""
	static const char *const other[] = {
		" " BEGIN TAIL,
		BEGIN TAIL "\n",
		BEGIN " " TAIL,
		"{\"seq\":07,\"time\":1,\"kind\":\"lifecycle\",\"sandbox\":\"ab\"" TAIL,
		"{\"seq\":+7,\"time\":1,\"kind\":\"lifecycle\",\"sandbox\":\"ab\"" TAIL,
		"{\"seq\":7.0,\"time\":1,\"kind\":\"lifecycle\",\"sandbox\":\"ab\"" TAIL,
		"{\"seq\":0,\"time\":1,\"kind\":\"lifecycle\",\"sandbox\":\"ab\"" TAIL,
		"{\"seq\":9007199254740992,\"time\":1,\"kind\":\"lifecycle\",\"sandbox\":"
		"\"ab\"" TAIL,
		"{\"time\":1,\"seq\":7,\"kind\":\"lifecycle\",\"sandbox\":\"ab\"" TAIL,
		"{\"seq\":7,\"time\":1,\"kind\":\"Lifecycle\",\"sandbox\":\"ab\"" TAIL,
		"{\"seq\":7,\"time\":1,\"kind\":\"lifecycle\",\"sandbox\":\"aB\"" TAIL,
		BEGIN ",\"name\":\"\"" TAIL,
		BEGIN ",\"host\":\"\\u0061\"" TAIL,
		BEGIN ",\"host\":\"\\u000A\"" TAIL,
		BEGIN ",\"host\":\"\\n\"" TAIL,
		BEGIN ",\"host\":\"\\u010a\"" TAIL,
		BEGIN ",\"host\":\"\xc3\xa9\"" TAIL,
		BEGIN ",\"host\":\"a\",\"host\":\"b\"" TAIL,
		BEGIN ",\"port\":65536" TAIL,
		BEGIN ",\"port\":0" TAIL,
		BEGIN ",\"count\":-1" TAIL,
		BEGIN ",\"decision\":\"maybe\"" TAIL,
		BEGIN ",\"other\":\"x\"" TAIL,
		BEGIN ",\"segment\":2" TAIL,
		BEGIN ",\"version\":2" TAIL,
		BEGIN ",\"digest\":\"" HEX_00 "\"" TAIL,
		BEGIN ",\"digest\":\"ab\"" TAIL,
		BEGIN ",\"effects\":\"\"" TAIL,
		BEGIN ",\"from\":\"a\",\"hold\":\"b\"" TAIL,
		BEGIN ",\"hold\":\"123456789\"" TAIL,
		"{\"seq\":7,\"time\":1,\"kind\":\"format\",\"sandbox\":\"ab\"" TAIL,
		"{\"seq\":7,\"time\":1,\"kind\":\"format\",\"sandbox\":\"ab\",\"version\":3" TAIL,
		BEGIN ",\"prev\":\"" HEX_AB "\",\"hash\":\"" HEX_CD "\"}",
		BEGIN ",\"prev\":\"" HEX_AB "\",\"hash\":\"" HEX_CD "\"}\r\n",
		BEGIN ",\"hash\":\"" HEX_CD "\"}\n",
		"{\"seq\":7,\"time\":1,\"kind\":\"decision\",\"sandbox\":\"ab\"" TAIL,
		"{\"seq\":7,\"time\":1,\"kind\":\"head\",\"sandbox\":\"ab\"" TAIL,
		"",
		"\n",
	};

	assert_int_equal(decode_str(BEGIN TAIL), 0);
	assert_int_equal(decode_str(BEGIN ",\"host\":\"\\u000a\",\"port\":65535" TAIL), 0);
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		if (decode_str(other[i]) != -EBADMSG)
			fail_msg("accepted: %s", other[i]);
}

static void every_cut_of_a_line_is_refused(void **state)
{
	struct audit_record rec = sample(), back;
	char buf[AUDIT_MAX_RECORD];
	size_t n = encode(&rec, buf, sizeof(buf));

	for (size_t i = 0; i < n; i++)
		assert_int_equal(audit_record_decode(slice_of(buf, i), &back), -EBADMSG);
}

static void what_a_kind_may_not_have_is_not_encoded(void **state)
{
	struct audit_record rec = sample();
	char buf[AUDIT_MAX_RECORD];
	struct wr wr = wr_init(buf, sizeof(buf));

	rec.ev.kind = AUDIT_KIND_HEAD;
	assert_int_equal(audit_record_encode(&wr, &rec), -EINVAL);
	rec = sample();
	rec.ev.decision = AUDIT_NONE;
	assert_int_equal(audit_record_encode(&wr, &rec), -EINVAL);
	rec = sample();
	rec.ev.type = slice_from_str("Two words");
	assert_int_equal(audit_record_encode(&wr, &rec), -EINVAL);
	rec = sample();
	rec.ev.port = 65536;
	assert_int_equal(audit_record_encode(&wr, &rec), -EINVAL);
	rec = sample();
	rec.ev.kind = AUDIT_N_KINDS;
	assert_int_equal(audit_record_encode(&wr, &rec), -EINVAL);
}

static void names_are_known(void **state)
{
	assert_string_equal(audit_kind_name(AUDIT_KIND_POLICY_CHANGE), "policy-change");
	assert_string_equal(audit_kind_name(AUDIT_N_KINDS), "");
	assert_string_equal(audit_verdict_name(AUDIT_ALLOW), "allow");
	assert_string_equal(audit_verdict_name(AUDIT_N_VERDICTS), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_this_line),
		cmocka_unit_test(what_is_decoded_is_what_was_encoded),
		cmocka_unit_test(the_longest_record_fits),
		cmocka_unit_test(format_2_names_effects_and_where_the_rule_is),
		cmocka_unit_test(effects_are_cut_after_a_whole_one),
		cmocka_unit_test(there_is_one_encoding_only),
		cmocka_unit_test(every_cut_of_a_line_is_refused),
		cmocka_unit_test(what_a_kind_may_not_have_is_not_encoded),
		cmocka_unit_test(names_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
