/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/wire/stage/stage_read.h"

static struct stage_reader r;

/* The result of one header. */
static int read_one(const struct tar_entry *e, struct err *err)
{
	static uint8_t buf[TAR_MAX_HEAD];
	struct slice in = {.p = buf};

	assert_int_equal(tar_write_entry(e, buf, sizeof(buf), &in.n), 0);
	stage_reader_init(&r);
	return stage_read(&r, &in, err);
}

static int read_name(enum tar_type type, const char *name, uint64_t size, const char *link)
{
	static struct tar_entry e;
	struct err err = {0};

	e = (struct tar_entry){.type = type, .mode = 07777, .size = size};
	(void)snprintf(e.name, sizeof(e.name), "%s", name);
	(void)snprintf(e.link, sizeof(e.link), "%s", link);
	return read_one(&e, &err);
}

static void every_operation_is_read_with_its_path(void **state)
{
	static const struct {
		const char *name;
		enum tar_type type;
		enum stage_op op;
	} rows[] = {{"f/a/b", TAR_FILE, STAGE_FILE}, {"l/a", TAR_SYMLINK, STAGE_LINK},
		{"d/a", TAR_DIR, STAGE_DIR}, {"o/a", TAR_DIR, STAGE_OPAQUE},
		{"x/a", TAR_FILE, STAGE_DELETE}, {"m/a", TAR_FILE, STAGE_MOVING},
		{"s/a", TAR_FILE, STAGE_SPECIAL}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *link = rows[i].type == TAR_SYMLINK ? "x" : "";

		assert_int_equal(read_name(rows[i].type, rows[i].name, 0, link), TAR_EV_ENTRY);
		assert_int_equal(r.item.op, rows[i].op);
		assert_string_equal(r.item.path, rows[i].name + 2);
		assert_int_equal(r.item.mode, 0777);
	}
	assert_int_equal(read_name(TAR_DIR, "d/.", 0, ""), TAR_EV_ENTRY);
	assert_string_equal(r.item.path, ".");
	assert_int_equal(read_name(TAR_DIR, "d/a/", 0, ""), TAR_EV_ENTRY);
	assert_string_equal(r.item.path, "a");
}

static void a_path_that_leaves_the_workspace_is_refused(void **state)
{
	static const char *const names[] = {"f/..", "f/../a", "f/a/../b", "f/a/..", "f//etc/passwd",
		"f/", "f", "f/.", "f/./a", "f/a//b", "f/a/./b", "g/a", "/f/a", "../f/a", "fa/b",
		"f/.sbx-apply-1", "f/a/.sbx-apply-x/b"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(read_name(TAR_FILE, names[i], 0, ""), -EBADMSG);
}

static void a_wrong_kind_is_refused(void **state)
{
	static const enum tar_type types[] = {
		TAR_HARDLINK, TAR_CHAR, TAR_BLOCKDEV, TAR_FIFO, TAR_DIR};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		assert_int_equal(read_name(types[i], "f/a", 0, "b"), -EBADMSG);
	assert_int_equal(read_name(TAR_FILE, "x/a", 1, ""), -EBADMSG);
	assert_int_equal(read_name(TAR_FILE, "l/a", 0, ""), -EBADMSG);
	assert_int_equal(read_name(TAR_SYMLINK, "d/a", 0, "b"), -EBADMSG);
}

static void a_giant_is_refused_at_its_header(void **state)
{
	assert_int_equal(read_name(TAR_FILE, "f/a", STAGE_MAX_BYTES, ""), TAR_EV_ENTRY);
	assert_int_equal(read_name(TAR_FILE, "f/a", STAGE_MAX_BYTES + 1, ""), -E2BIG);
	assert_int_equal(read_name(TAR_FILE, "f/a", INT64_MAX, ""), -E2BIG);
}

static void a_deep_path_is_refused(void **state)
{
	char name[2 * STAGE_MAX_DEPTH + 8] = "f";

	for (int i = 0; i < STAGE_MAX_DEPTH; i++)
		(void)strcat(name, "/a");
	assert_int_equal(read_name(TAR_FILE, name, 0, ""), TAR_EV_ENTRY);
	(void)strcat(name, "/a");
	assert_int_equal(read_name(TAR_FILE, name, 0, ""), -EBADMSG);
}

static void set_id_bits_and_unreadable_modes_do_not_pass(void **state)
{
	static struct tar_entry e = {.type = TAR_FILE, .mode = 06000, .name = "f/a"};
	struct err err = {0};

	assert_int_equal(read_one(&e, &err), TAR_EV_ENTRY);
	assert_int_equal(r.item.mode, 0400);
	e = (struct tar_entry){.type = TAR_DIR, .mode = 01055, .name = "d/a"};
	assert_int_equal(read_one(&e, &err), TAR_EV_ENTRY);
	assert_int_equal(r.item.mode, 0755);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_is_read_with_its_path),
		cmocka_unit_test(a_path_that_leaves_the_workspace_is_refused),
		cmocka_unit_test(a_wrong_kind_is_refused),
		cmocka_unit_test(a_giant_is_refused_at_its_header),
		cmocka_unit_test(a_deep_path_is_refused),
		cmocka_unit_test(set_id_bits_and_unreadable_modes_do_not_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
