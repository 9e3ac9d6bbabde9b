/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/secret/book.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static struct book book;

static int teardown(void **state)
{
	book_done(&book);
	return 0;
}

static struct book_entry *make(const char *name, const char *scope, const char *value)
{
	struct book_entry *e = xcalloc(1, sizeof(*e)), *old = NULL;

	(void)snprintf(e->meta.name, sizeof(e->meta.name), "%s", name);
	(void)snprintf(e->meta.scope, sizeof(e->meta.scope), "%s", scope);
	if (value)
		assert_int_equal(secret_copy(&e->value, slice_from_str(value), NULL), 0);
	assert_int_equal(book_put(&book, e, &old, NULL), 0);
	book_entry_free(old);
	return e;
}

static void test_scopes(void **state)
{
	struct book_entry *all = make("github", "", "global value"),
			  *mine = make("github", "sandbox1", "own value"),
			  *npm = make("npm", "sandbox2", "another");

	assert_ptr_equal(book_fit(&book, "github", "sandbox1"), mine);
	assert_ptr_equal(book_fit(&book, "github", "sandbox2"), all);
	assert_ptr_equal(book_fit(&book, "npm", "sandbox2"), npm);
	assert_null(book_fit(&book, "npm", "sandbox1"));
	assert_null(book_fit(&book, "npm", ""));
	assert_ptr_equal(book_next(&book, 0, "sandbox1"), all);
	assert_ptr_equal(book_next(&book, all->serial, "sandbox1"), mine);
	assert_null(book_next(&book, mine->serial, "sandbox1"));
	assert_ptr_equal(book_next(&book, mine->serial, ""), npm);
}

static void test_a_serial_is_never_used_twice(void **state)
{
	uint64_t first = make("a", "", "one")->serial;
	struct book_entry *second = make("a", "", "two");

	assert_int_equal(book.n, 1);
	assert_true(second->serial > first);
	assert_null(book_by_serial(&book, first));
	book_entry_free(book_remove(&book, second));
	assert_int_equal(book.n, 0);
	assert_true(make("a", "", "three")->serial > first + 1);
}

static void test_there_and_back(void **state)
{
	AUTO_SECRET struct secret bytes = {0};
	struct book_entry *e = make("custom", "sandbox1", "a value");
	struct book got = {0};

	(void)snprintf(e->meta.hosts, sizeof(e->meta.hosts), "api.example.com *.example.org");
	(void)snprintf(e->meta.format, sizeof(e->meta.format), "Bearer %%s");
	e = make("ref", "", NULL);
	e->ref = (struct vault_ref){
		.kind = VAULT_REF_DOCKER, .program = "/usr/bin/x", .n_args = 1, .refresh_s = 60};
	(void)snprintf(e->ref.args[0], sizeof(e->ref.args[0]), "https://r.example.com");
	/* what was fetched is not written down */
	assert_int_equal(secret_copy(&e->value, slice_from_str("fetched"), NULL), 0);
	assert_int_equal(book_encode(&book, &bytes, NULL), 0);
	assert_null(memmem(bytes.p, bytes.n, "fetched", 7));
	assert_int_equal(book_decode(&got, secret_slice(&bytes), NULL), 0);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.last_serial, book.last_serial);
	assert_string_equal(book_find(&got, "custom", "sandbox1")->meta.format, "Bearer %s");
	assert_true(slice_eq_str(
		secret_slice(&book_find(&got, "custom", "sandbox1")->value), "a value"));
	assert_string_equal(book_find(&got, "ref", "")->ref.args[0], "https://r.example.com");
	assert_int_equal(book_find(&got, "ref", "")->value.n, 0);
	book_done(&got);
	for (size_t i = 0; i < bytes.n; i++) { /* cut anywhere: refused, and nothing is left over */
		assert_int_equal(book_decode(&got, slice_of(bytes.p, i), NULL), -EBADMSG);
		assert_int_equal(got.n, 0);
	}
}

static void test_masks(void **state)
{
	static const struct {
		const char *value, *head, *tail;
	} rows[] = {
		{"sk-ant-api03-0123456789abcdefXYZ9", "sk-", "XYZ9"},
		{"ghp_0123456789abcdefghij0123", "ghp_", "0123"},
		{"0123456789abcdef0123456789abcdef", "", "cdef"},
		{"short-secret", "", ""},
		{"sk-0123456789abcde", "", ""},
		{"{\"type\": \"service_account\", 1}", "", ""},
		{"sk-0123456789012345678901\n", "", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct vault_item item;

		book_item(make("x", "", rows[i].value), &item);
		assert_string_equal(item.mask_head, rows[i].head);
		assert_string_equal(item.mask_tail, rows[i].tail);
	}
}

static void test_full(void **state)
{
	struct book_entry *e, *old = NULL;
	char name[16];

	for (unsigned i = 0; i < BOOK_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		(void)make(name, "", i < 2 ? "v" : NULL);
	}
	e = xcalloc(1, sizeof(*e));
	(void)snprintf(e->meta.name, sizeof(e->meta.name), "one.more");
	assert_int_equal(book_put(&book, e, &old, NULL), -ENOSPC);
	/* a replacement still fits, and undoing it brings the old one back */
	(void)snprintf(e->meta.name, sizeof(e->meta.name), "n0");
	assert_int_equal(book_put(&book, e, &old, NULL), 0);
	assert_non_null(old);
	book_undo(&book, e, old);
	assert_ptr_equal(book_find(&book, "n0", ""), old);
	assert_true(book_has_room(&book, BOOK_MAX_TOTAL - 2));
	assert_false(book_has_room(&book, BOOK_MAX_TOTAL - 1));
	book_entry_free(e);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scopes),
		TEST(test_a_serial_is_never_used_twice),
		TEST(test_there_and_back),
		TEST(test_masks),
		TEST(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
