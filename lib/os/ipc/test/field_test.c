/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/os/ipc/field.h"

enum color { RED, GREEN, N_COLORS };

struct all {
	enum color color;
	bool flag;
	uint16_t port;
	int32_t code;
	uint64_t large;
	char name[4];
	char text[4];
	uint8_t key[3];
	uint16_t n_saved;
	uint8_t saved[4];
};

static const struct field fields[] = {
	FIELD_ENUM(all, color, N_COLORS),
	FIELD_BOOL(all, flag),
	FIELD_RANGE(all, port, 1, 100),
	FIELD_CODE(all, code),
	FIELD_NUMBER(all, large),
	FIELD_STR(all, name),
	FIELD_TEXT(all, text),
	FIELD_BYTES(all, key),
	FIELD_BLOB(all, saved, n_saved),
	{0},
};

/* The bytes of `all` below, field by field. */
#define WIRE                                                               \
	"\x01\x01\x50\x00\xfe\xff\xff\xff\x08\x07\x06\x05\x04\x03\x02\x01" \
	"\x01\x00\x07\x02\x00ok"                                           \
	"abc\x02\x00xy"
static const struct all all = {.color = GREEN,
	.flag = true,
	.port = 80,
	.code = -2,
	.large = 0x0102030405060708,
	.name = "\a",
	.text = "ok",
	.key = "abc",
	.n_saved = 2,
	.saved = "xy"};

static uint8_t buf[64];

static int read_back(struct all *ret)
{
	struct rd rd = rd_init(slice_of(buf, sizeof(WIRE) - 1));

	memset(ret, 0xff, sizeof(*ret));
	fields_read(&rd, fields, ret);
	return rd_finish(&rd);
}

static void a_struct_is_written_in_the_order_of_its_table(void **state)
{
	struct wr wr = wr_init(buf, sizeof(buf));

	fields_write(&wr, fields, &all);
	assert_int_equal(wr_finish(&wr), 0);
	assert_int_equal(wr.n, sizeof(WIRE) - 1);
	assert_memory_equal(buf, WIRE, sizeof(WIRE) - 1);
}

static void what_was_written_is_read(void **state)
{
	struct all out;

	memcpy(buf, WIRE, sizeof(WIRE) - 1);
	assert_int_equal(read_back(&out), 0);
	assert_int_equal(out.color, GREEN);
	assert_true(out.flag);
	assert_int_equal(out.port, 80);
	assert_int_equal(out.code, -2);
	assert_int_equal(out.large, all.large);
	assert_string_equal(out.name, "\a");
	assert_string_equal(out.text, "ok");
	assert_memory_equal(out.key, "abc", 3);
	assert_int_equal(out.n_saved, 2);
	assert_memory_equal(out.saved, "xy", 2);
}

static void a_value_out_of_its_bounds_makes_the_reader_bad(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} bad[] = {
		{0, N_COLORS}, {1, 2}, {2, 0}, /* port 0 */
		{3, 1},			       /* port 336 */
		{7, 0},			       /* a code above 0 */
		{6, 0xef},		       /* a code below -4095 */
		{16, 4},		       /* a name that does not fit */
		{18, 0},		       /* a NUL in it */
		{21, '\n'},		       /* a text that cannot be printed */
		{26, 5},		       /* more than fits, and than came */
		{26, 1},		       /* a byte is left */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct all out;

		memcpy(buf, WIRE, sizeof(WIRE) - 1);
		buf[bad[i].at] = bad[i].byte;
		assert_int_equal(read_back(&out), -EBADMSG);
		assert_true(out.color < N_COLORS && out.n_saved <= sizeof(out.saved));
		assert_non_null(memchr(out.name, '\0', sizeof(out.name)));
		assert_non_null(memchr(out.text, '\0', sizeof(out.text)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_struct_is_written_in_the_order_of_its_table),
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(a_value_out_of_its_bounds_makes_the_reader_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
