/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/secret/safe.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static char dir[] = "/tmp/sbx-safe-XXXXXX", *folder;

static int setup(void **state)
{
	folder = mkdtemp(strcpy(dir, "/tmp/sbx-safe-XXXXXX"));
	return folder ? 0 : -1;
}

static int teardown(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s", folder);

	return system(command);
}

static char *in_folder(const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

static int open_book(struct safe *s, struct book *b, bool accept_old, struct err *err)
{
	int r;

	*b = (struct book){0};
	*err = (struct err){0};
	r = safe_look(s, folder, accept_old, err);
	if (r == 0 && s->is_new)
		s->head.source = VAULT_KEY_FILE;
	if (r == 0)
		r = safe_key_from_file(s, err);
	return r < 0 ? r : safe_load(s, b, 0, err);
}

static void put(struct safe *s, struct book *b, const char *name, const char *value)
{
	struct book_entry *e = xcalloc(1, sizeof(*e)), *old = NULL;

	(void)snprintf(e->meta.name, sizeof(e->meta.name), "%s", name);
	assert_int_equal(secret_copy(&e->value, slice_from_str(value), NULL), 0);
	assert_int_equal(book_put(b, e, &old, NULL), 0);
	book_entry_free(old);
	assert_int_equal(safe_save(s, b, NULL), 0);
}

static void close_book(struct safe *s, struct book *b)
{
	book_done(b);
	safe_done(s);
}

/* Makes a safe with one value and closes it. */
static void make_one(const char *value)
{
	struct safe s;
	struct book b;
	struct err err;

	assert_int_equal(open_book(&s, &b, false, &err), 0);
	put(&s, &b, "a", value);
	close_book(&s, &b);
}

static void copy(const char *from, const char *to)
{
	AUTO_FREE char *a = in_folder(from), *b = in_folder(to), *bytes = NULL;
	size_t n;

	assert_int_equal(file_load(a, SEAL_MAX, &bytes, &n, NULL), 0);
	assert_int_equal(file_save(b, slice_of(bytes, n), NULL), 0);
}

static void assert_refused(int want, const char *word)
{
	struct safe s;
	struct book b;
	struct err err;

	assert_int_equal(open_book(&s, &b, false, &err), want);
	if (!strstr(err.text, word))
		fail_msg("no \"%s\" in: %s", word, err.text);
	close_book(&s, &b);
}

static void test_there_and_back(void **state)
{
	struct safe s, second;
	struct book b;
	struct err err;
	struct stat st;
	AUTO_FREE char *sealed = in_folder(SAFE_SEALED), *key = in_folder(SAFE_KEY);

	make_one("canary of the safe");
	assert_int_equal(stat(sealed, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(key, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(open_book(&s, &b, false, &err), 0);
	assert_int_equal(s.head.generation, 2);
	assert_true(
		slice_eq_str(secret_slice(&book_find(&b, "a", "")->value), "canary of the safe"));
	/* one vault a folder */
	assert_int_equal(safe_look(&second, folder, false, &err), -EBUSY);
	safe_done(&second);
	close_book(&s, &b);
}

static void test_changed_cut_or_foreign(void **state)
{
	AUTO_FREE char *sealed = in_folder(SAFE_SEALED), *key = in_folder(SAFE_KEY), *bytes = NULL;
	size_t n;

	make_one("value");
	assert_int_equal(file_load(sealed, SEAL_MAX, &bytes, &n, NULL), 0);
	bytes[n - 20] ^= 1;
	assert_int_equal(file_save(sealed, slice_of(bytes, n), NULL), 0);
	assert_refused(-EBADMSG, "changed after it was sealed");
	bytes[n - 20] ^= 1;
	assert_int_equal(file_save(sealed, slice_of(bytes, n - 1), NULL), 0);
	assert_refused(-EBADMSG, "truncated");
	assert_int_equal(file_save(sealed, slice_of("", 0), NULL), 0);
	assert_refused(-EBADMSG, "not a sealed file");
	assert_int_equal(file_save(sealed, slice_of(bytes, n), NULL), 0);
	assert_int_equal(file_save(key, slice_of(bytes, SEAL_KEY), NULL), 0);
	assert_refused(-EKEYREJECTED, "does not match");
	assert_int_equal(file_save(key, slice_of(bytes, 5), NULL), 0);
	assert_refused(-EBADMSG, "not a key");
	assert_int_equal(unlink(key), 0);
	assert_refused(-ENOKEY, "does not exist");
}

static void test_key_that_others_can_read(void **state)
{
	AUTO_FREE char *key = in_folder(SAFE_KEY);

	make_one("value");
	assert_int_equal(chmod(key, 0640), 0);
	assert_refused(-EPERM, "chmod 600");
}

static void test_old_copies(void **state)
{
	AUTO_FREE char *sealed = in_folder(SAFE_SEALED), *anchor = in_folder(SAFE_ANCHOR);
	struct safe s;
	struct book b;
	struct err err;

	make_one("first");
	copy(SAFE_SEALED, "backup");
	copy(SAFE_ANCHOR, "anchor-backup");
	make_one("second");
	copy("backup", SAFE_SEALED);
	assert_refused(-ESTALE, "old copy");
	assert_int_equal(unlink(anchor), 0);
	assert_refused(-ESTALE, "does not exist");
	assert_int_equal(file_save(anchor, slice_from_str("nonsense"), NULL), 0);
	assert_refused(-EBADMSG, "changed");
	assert_int_equal(unlink(sealed), 0);
	assert_refused(-ESTALE, "was removed");
	/* said on purpose it is taken, and the next writing is newer than everything */
	copy("backup", SAFE_SEALED);
	copy("anchor-backup", SAFE_ANCHOR);
	assert_int_equal(
		open_book(&s, &b, false, &err), 0); /* the whole folder: only a floor helps */
	close_book(&s, &b);
	assert_int_equal(safe_look(&s, folder, false, &err), 0);
	assert_int_equal(safe_key_from_file(&s, &err), 0);
	assert_int_equal(safe_load(&s, &b, 9, &err), -ESTALE);
	s.accept_old = true;
	assert_int_equal(safe_load(&s, &b, 9, &err), 0);
	put(&s, &b, "a", "third");
	assert_int_equal(s.head.generation, 10);
	close_book(&s, &b);
}

/* The anchor of the generation before is what a writer leaves that was killed in between. */
static void test_killed_between_file_and_anchor(void **state)
{
	struct safe s;
	struct book b;
	struct err err;

	make_one("first");
	copy(SAFE_ANCHOR, "anchor-backup");
	make_one("second");
	copy("anchor-backup", SAFE_ANCHOR);
	assert_int_equal(open_book(&s, &b, false, &err), 0);
	assert_true(slice_eq_str(secret_slice(&book_find(&b, "a", "")->value), "second"));
	close_book(&s, &b);
}

/* Writes numbers, says each after it was saved. */
static void write_until_killed(int out)
{
	struct safe s;
	struct book b;
	struct err err;

	if (open_book(&s, &b, false, &err) < 0)
		_exit(1);
	for (uint32_t i = 1; i < 100000; i++) {
		char text[32];

		(void)snprintf(text, sizeof(text), "value %u", i);
		put(&s, &b, "a", text);
		if (write(out, &i, sizeof(i)) != sizeof(i))
			_exit(2);
	}
	_exit(3);
}

static void test_kill_at_any_time(void **state)
{
	for (unsigned round = 0; round < 12; round++) {
		uint32_t last = 0, i;
		struct safe s;
		struct book b;
		struct err err;
		unsigned number = 0;
		char text[32] = "";
		int fds[2], status;
		pid_t pid;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		pid = fork();
		if (pid == 0)
			write_until_killed(fds[1]);
		(void)close(fds[1]);
		assert_int_equal(read(fds[0], &last, sizeof(last)), sizeof(last));
		(void)usleep(3000 + round * 1700);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		while (read(fds[0], &i, sizeof(i)) == sizeof(i))
			last = i;
		(void)close(fds[0]);
		if (open_book(&s, &b, false, &err) < 0)
			fail_msg("%s", err.text);
		memcpy(text, book_find(&b, "a", "")->value.p, book_find(&b, "a", "")->value.n);
		assert_int_equal(sscanf(text, "value %u", &number), 1);
		/* what was said to be saved is there; perhaps the one that was being written */
		assert_true(number == last || number == last + 1);
		close_book(&s, &b);
	}
}

static void test_leftovers_are_removed(void **state)
{
	AUTO_FREE char *temp = in_folder("sealed.aB3xYz"), *key = in_folder("key.aB3xYz"),
		       *other = in_folder("notes.txt");

	make_one("value");
	assert_int_equal(file_save(temp, slice_of("x", 1), NULL), 0);
	assert_int_equal(file_save(key, slice_of("x", 1), NULL), 0);
	assert_int_equal(file_save(other, slice_of("x", 1), NULL), 0);
	make_one("value");
	assert_int_equal(access(temp, F_OK), -1);
	assert_int_equal(access(key, F_OK), -1);
	assert_int_equal(access(other, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_there_and_back),
		TEST(test_changed_cut_or_foreign),
		TEST(test_key_that_others_can_read),
		TEST(test_old_copies),
		TEST(test_killed_between_file_and_anchor),
		TEST(test_kill_at_any_time),
		TEST(test_leftovers_are_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
