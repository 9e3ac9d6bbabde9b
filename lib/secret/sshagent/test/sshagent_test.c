/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/secret/sshagent/sshagent.h"

/* An ed25519 key as it goes over the wire. */
static const uint8_t key[] = "\0\0\0\x0bssh-ed25519\0\0\0\x20"
			     "0123456789abcdef0123456789abcdef";
#define KEY slice_of(key, sizeof(key) - 1)

static uint8_t buf[8192];

static void be32(struct wr *wr, size_t n)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		wr_u8(wr, (uint8_t)(n >> shift));
}

static void blob(struct wr *wr, struct slice s)
{
	be32(wr, s.n);
	wr_bytes(wr, s);
}

static void text(struct wr *wr, const char *s)
{
	blob(wr, slice_from_str(s));
}

static void test_requests(void **state)
{
	struct wr wr = wr_init(buf, sizeof(buf));
	struct sshagent_request req;

	assert_int_equal(sshagent_parse(slice_of("\x0b", 1)).kind, SSHAGENT_LIST);
	assert_int_equal(sshagent_parse(slice_of("\x0b\0", 2)).kind, SSHAGENT_OTHER);
	assert_int_equal(sshagent_parse(slice_of("", 0)).kind, SSHAGENT_OTHER);
	wr_u8(&wr, SSHAGENT_SIGN_REQUEST);
	blob(&wr, KEY);
	text(&wr, "data");
	be32(&wr, 4);
	req = sshagent_parse(slice_of(wr.p, wr.n));
	assert_int_equal(req.kind, SSHAGENT_SIGN);
	assert_true(slice_eq(req.key, KEY));
	assert_true(slice_eq_str(req.data, "data"));
	assert_int_equal(req.flags, 4);
	for (size_t n = 0; n < wr.n; n++)
		assert_int_equal(sshagent_parse(slice_of(wr.p, n)).kind, SSHAGENT_OTHER);
	assert_int_equal(sshagent_parse(slice_of(wr.p, wr.n + 1)).kind, SSHAGENT_OTHER);
	wr.p[wr.n - 1] = 8; /* an unknown flag */
	assert_int_equal(sshagent_parse(slice_of(wr.p, wr.n)).kind, SSHAGENT_OTHER);
	for (unsigned type = 0; type < 256; type++) {
		uint8_t one[64] = {(uint8_t)type};

		if (type != SSHAGENT_REQUEST_IDENTITIES)
			assert_int_equal(sshagent_parse(slice_of(one, 1)).kind, SSHAGENT_OTHER);
		if (type != SSHAGENT_SIGN_REQUEST)
			assert_int_equal(sshagent_parse(slice_of(one, 64)).kind, SSHAGENT_OTHER);
	}
}

static void put_list(struct wr *wr)
{
	static const char *const comments[] = {
		"me@example.com", "other", "me@example.com2", "SHA256:x"};

	wr_u8(wr, SSHAGENT_IDENTITIES_ANSWER);
	be32(wr, ARRAY_LEN(comments));
	for (size_t i = 0; i < ARRAY_LEN(comments); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "key-%zu", i);
		text(wr, name);
		text(wr, comments[i]);
	}
}

static void test_filter(void **state)
{
	struct sshagent_filter f = {.n_rules = 1, .rules = {"me@example.com"}};
	struct wr wr = wr_init(buf, sizeof(buf));
	uint8_t out[1024];
	struct wr to = wr_init(out, sizeof(out));
	struct sshagent_key found;

	put_list(&wr);
	struct slice list = slice_of(wr.p, wr.n);

	assert_int_equal(sshagent_filter_list(&f, list, &to), 0);
	assert_int_equal(to.n, 1 + 4 + 4 + 5 + 4 + 14);
	assert_memory_equal(out, "\x0c\0\0\0\1\0\0\0\5key-0\0\0\0\x0eme@example.com", to.n);
	assert_int_equal(sshagent_find(&f, list, slice_from_str("key-0"), &found), 0);
	assert_int_equal(sshagent_find(&f, list, slice_from_str("key-1"), &found), -ENOENT);
	assert_int_equal(sshagent_find(&f, list, slice_from_str("key-"), &found), -ENOENT);
	/* by fingerprint, which a comment cannot play */
	f.n_rules = 0;
	assert_int_equal(sshagent_find(&f, list, slice_from_str("key-1"), &found), 0);
	(void)strcpy(f.rules[0], found.fingerprint);
	f.n_rules = 1;
	assert_int_equal(sshagent_find(&f, list, slice_from_str("key-1"), &found), 0);
	assert_int_equal(sshagent_find(&f, list, slice_from_str("key-0"), &found), -ENOENT);
	(void)strcpy(f.rules[0], "SHA256:x");
	assert_int_equal(sshagent_find(&f, list, slice_from_str("key-3"), &found), -ENOENT);
	f.n_rules = 0;
	assert_int_equal(sshagent_find(&f, list, slice_from_str("key-3"), &found), 0);
	for (size_t n = 0; n < list.n; n++) {
		to = wr_init(out, sizeof(out));
		assert_int_equal(sshagent_filter_list(&f, slice_of(list.p, n), &to), -EBADMSG);
		assert_int_equal(
			sshagent_find(&f, slice_of(list.p, n), slice_from_str("key-0"), &found),
			-EBADMSG);
	}
	to = wr_init(out, 20);
	assert_int_equal(sshagent_filter_list(&f, list, &to), -EMSGSIZE);
}

static void put_login(struct wr *wr, const char *user, const char *method, struct slice blob_)
{
	*wr = wr_init(buf, sizeof(buf));
	text(wr, "the session");
	wr_u8(wr, 50);
	text(wr, user);
	text(wr, "ssh-connection");
	text(wr, method);
	wr_u8(wr, 1);
	text(wr, "ssh-ed25519");
	blob(wr, blob_);
	if (strcmp(method, "publickey") != 0)
		text(wr, "host key");
}

static void test_what_is_signed(void **state)
{
	char what[SSHAGENT_MAX_TEXT];
	struct wr wr;

	put_login(&wr, "git", "publickey", KEY);
	assert_int_equal(sshagent_describe(slice_of(wr.p, wr.n), KEY, what), SSHAGENT_SIGNS_LOGIN);
	assert_string_equal(what, "git");
	assert_int_equal(
		sshagent_describe(slice_of(wr.p, wr.n - 1), KEY, what), SSHAGENT_SIGNS_OTHER);
	assert_string_equal(what, "");
	put_login(&wr, "a\nb", "publickey-hostbound-v00@openssh.com", KEY);
	assert_int_equal(sshagent_describe(slice_of(wr.p, wr.n), KEY, what), SSHAGENT_SIGNS_LOGIN);
	assert_string_equal(what, "a?b");
	put_login(&wr, "git", "publickey", slice_from_str("another key"));
	assert_int_equal(sshagent_describe(slice_of(wr.p, wr.n), KEY, what), SSHAGENT_SIGNS_OTHER);
	wr = wr_init(buf, sizeof(buf));
	wr_bytes(&wr, slice_from_str("SSHSIG"));
	text(&wr, "git");
	text(&wr, "");
	text(&wr, "sha512");
	text(&wr, "hash");
	assert_int_equal(sshagent_describe(slice_of(wr.p, wr.n), KEY, what), SSHAGENT_SIGNS_FILE);
	assert_string_equal(what, "git");
	assert_int_equal(
		sshagent_describe(slice_of(wr.p, wr.n + 1), KEY, what), SSHAGENT_SIGNS_OTHER);
}

static void test_answers(void **state)
{
	assert_true(sshagent_is_signed(slice_of("\x05", 1)));
	assert_true(sshagent_is_signed(slice_of("\x0e\0\0\0\1x", 6)));
	assert_false(sshagent_is_signed(slice_of("\x0e\0\0\0\1xy", 7)));
	assert_false(sshagent_is_signed(slice_of("\x0e\0\0\0\2x", 6)));
	assert_false(sshagent_is_signed(slice_of("\x05x", 2)));
	assert_false(sshagent_is_signed(slice_of("\x06", 1)));
	assert_false(sshagent_is_signed(slice_of("", 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_what_is_signed),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
