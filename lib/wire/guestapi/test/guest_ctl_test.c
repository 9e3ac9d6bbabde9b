/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lib/wire/guestapi/guest_ctl.h"

static struct guest_mount some_mounts[] = {
	{.flags = 0, .share = (char *)"/home/u/p", .path = (char *)"/home/u/p"},
	{.flags = 31, .share = (char *)"/home/u/f", .path = (char *)"/etc/f"},
};
static char *some_env[] = {(char *)"A=1", (char *)"B=2"};

static struct guest_setup some_setup(void)
{
	return (struct guest_setup){.id = (char *)"0123456789ab",
		.name = (char *)"demo",
		.hostname = (char *)"demo",
		.wall_ms = 1700000000000,
		.uid = 1000,
		.gid = 1001,
		.entropy = {1, 2, 3},
		.machine_id = (char *)"00112233445566778899aabbccddeeff",
		.workdir = (char *)"/home/u/p",
		.mounts = {2, some_mounts},
		.n_env = 2,
		.env = some_env};
}

static void test_setup_round_trip(void **state)
{
	uint8_t buf[GUEST_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_setup in = some_setup(), out;

	assert_int_equal(guest_put_setup(&wr, &in), 0);
	assert_int_equal(guest_get_setup(slice_of(buf, wr.n), &out), 0);
	assert_string_equal(out.id, in.id);
	assert_string_equal(out.hostname, "demo");
	assert_true(out.wall_ms == in.wall_ms);
	assert_int_equal(out.uid, 1000);
	assert_int_equal(out.gid, 1001);
	assert_memory_equal(out.entropy, in.entropy, GUEST_ENTROPY);
	assert_string_equal(out.machine_id, in.machine_id);
	assert_string_equal(out.workdir, "/home/u/p");
	assert_int_equal(out.mounts.n, 2);
	assert_int_equal(out.mounts.v[1].flags, 31);
	assert_string_equal(out.mounts.v[1].share, "/home/u/f");
	assert_string_equal(out.mounts.v[1].path, "/etc/f");
	assert_int_equal(out.n_env, 2);
	assert_string_equal(out.env[1], "B=2");
	guest_setup_done(&out);
	for (size_t n = 0; n < wr.n; n++)
		assert_int_equal(guest_get_setup(slice_of(buf, n), &out), -EBADMSG);
	assert_int_equal(guest_get_setup(slice_of(buf, wr.n + 1), &out), -EBADMSG);
}

static void expect_refused(struct guest_setup s)
{
	uint8_t buf[GUEST_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(guest_put_setup(&wr, &s), -EINVAL);
}

static void test_setup_refused(void **state)
{
	struct guest_setup s;

#define WITH(field, value) (s = some_setup(), s.field = (value), s)
	expect_refused(WITH(uid, 0));
	expect_refused(WITH(gid, 0));
	expect_refused(WITH(uid, UINT32_MAX));
	expect_refused(WITH(hostname, (char *)""));
	expect_refused(WITH(hostname, (char *)"a b"));
	expect_refused(WITH(hostname, (char *)"a\nb"));
	expect_refused(WITH(name, (char *)"a\nb"));
	expect_refused(WITH(machine_id, (char *)"00"));
	expect_refused(WITH(machine_id, (char *)"00112233445566778899AABBCCDDEEFF"));
	expect_refused(WITH(workdir, (char *)"tmp"));
	expect_refused(WITH(n_env, GUEST_MAX_ENV + 1));
	expect_refused(WITH(mounts.n, GUEST_MAX_MOUNTS + 1));
	some_env[0] = (char *)"NAME";
	expect_refused(some_setup());
	some_env[0] = (char *)"A=1";
	some_mounts[0].flags = 32;
	expect_refused(some_setup());
	some_mounts[0].flags = GUEST_MOUNT_KEPT; /* of no overlay */
	expect_refused(some_setup());
	some_mounts[0].flags = 0;
	some_mounts[0].path = (char *)"/a/../b";
	expect_refused(some_setup());
	some_mounts[0].path = (char *)"/home/u/p";
}

#define SOME_CA "-----BEGIN CERTIFICATE-----\nMIIB+A/=\n-----END CERTIFICATE-----\n"

static int put_trust(const char *ca, size_t n_env, uint8_t *buf, size_t *ret_n)
{
	struct wr wr = wr_init(buf, GUEST_MAX_BODY);
	struct guest_trust t = {.ca_pem = (char *)ca, .n_env = n_env, .env = some_env};
	int r = guest_put_trust(&wr, &t);

	*ret_n = wr.n;
	return r;
}

static void test_trust_round_trip(void **state)
{
	static const char *const cas[] = {SOME_CA, ""};
	uint8_t buf[GUEST_MAX_BODY];
	struct guest_trust out;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(cas); i++) {
		assert_int_equal(put_trust(cas[i], 2, buf, &n), 0);
		assert_int_equal(guest_get_trust(slice_of(buf, n), &out), 0);
		assert_string_equal(out.ca_pem, cas[i]);
		assert_int_equal(out.n_env, 2);
		assert_string_equal(out.env[0], "A=1");
		assert_string_equal(out.env[1], "B=2");
		assert_null(out.env[2]);
		guest_trust_done(&out);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(guest_get_trust(slice_of(buf, k), &out), -EBADMSG);
		assert_int_equal(guest_get_trust(slice_of(buf, n + 1), &out), -EBADMSG);
	}
}

/* The user's own: any number that fits, each in its lines. */
static void test_extra_certificates(void **state)
{
	static const char
		*const good[] = {"", SOME_CA, SOME_CA SOME_CA SOME_CA},
		       *const bad[] = {"x", "\n", SOME_CA "\n" SOME_CA, SOME_CA "x",
			       "# a\n" SOME_CA, SOME_CA "-----BEGIN CERTIFICATE-----\n",
			       "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"};
	static char huge[GUEST_MAX_EXTRA_CA + sizeof(SOME_CA)];
	static uint8_t buf[2 * GUEST_MAX_BODY];
	struct guest_trust t = {.ca_pem = (char *)SOME_CA, .extra_pem = huge}, out;
	struct wr wr;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		t.extra_pem = (char *)good[i];
		wr = wr_init(buf, sizeof(buf));
		assert_int_equal(guest_put_trust(&wr, &t), 0);
		assert_int_equal(guest_get_trust(slice_of(buf, wr.n), &out), 0);
		assert_string_equal(out.ca_pem, SOME_CA);
		assert_string_equal(out.extra_pem, good[i]);
		guest_trust_done(&out);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		t.extra_pem = (char *)bad[i];
		wr = wr_init(buf, sizeof(buf));
		assert_int_equal(guest_put_trust(&wr, &t), -EINVAL);
		wr = wr_init(buf, sizeof(buf));
		wr_cstr(&wr, SOME_CA);
		wr_cstr(&wr, bad[i]);
		wr_u16(&wr, 0);
		assert_int_equal(guest_get_trust(slice_of(buf, wr.n), &out), -EBADMSG);
	}
	while (strlen(huge) + strlen(SOME_CA) < sizeof(huge))
		strcat(huge, SOME_CA);
	t.extra_pem = huge;
	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(guest_put_trust(&wr, &t), -EINVAL);
	huge[strlen(huge) - strlen(SOME_CA)] = '\0';
	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(guest_put_trust(&wr, &t), 0);
}

static void test_trust_refused(void **state)
{
	static const char *const bad[] = {"x", "\n", (SOME_CA "x"), (SOME_CA SOME_CA),
		("# a\n" SOME_CA), "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nMIIB-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nMI B\n-----END CERTIFICATE-----\n",
		"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"};
	static char huge[GUEST_MAX_CA + 2];
	uint8_t buf[GUEST_MAX_BODY];
	struct guest_trust out;
	struct wr wr;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (put_trust(bad[i], 2, buf, &n) != -EINVAL)
			fail_msg("was taken: %s", bad[i]);
		wr = wr_init(buf, sizeof(buf));
		wr_cstr(&wr, bad[i]);
		wr_cstr(&wr, "");
		wr_u16(&wr, 0);
		assert_int_equal(guest_get_trust(slice_of(buf, wr.n), &out), -EBADMSG);
	}
	memset(huge, 'A', sizeof(huge) - 1);
	memcpy(huge, SOME_CA, 28);
	memcpy(huge + sizeof(huge) - 28, "\n-----END CERTIFICATE-----\n", 28);
	assert_int_equal(put_trust(huge, 0, buf, &n), -EINVAL);
	assert_int_equal(put_trust(SOME_CA, GUEST_MAX_ENV + 1, buf, &n), -EINVAL);
	some_env[1] = (char *)"=x";
	assert_int_equal(put_trust(SOME_CA, 2, buf, &n), -EINVAL);
	some_env[1] = (char *)"B=2";
}

static int put_mount_at(const char *path)
{
	uint8_t buf[GUEST_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_mount mount = {.share = (char *)"/s", .path = (char *)(uintptr_t)path};
	struct guest_setup s = some_setup();

	s.mounts = (struct guest_mounts){1, &mount};
	return guest_put_setup(&wr, &s);
}

static void test_plain_paths(void **state)
{
	static const char *const good[] = {"/a", "/a/b", "/.a", "/..a", "/a/...", "/a b/c"};
	static const char *const bad[] = {"", "/", "a", "a/b", "//a", "/a/", "/a//b", "/.", "/..",
		"/a/.", "/a/..", "/./a", "/../a"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (put_mount_at(good[i]) != 0)
			fail_msg("%s is plain", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (put_mount_at(bad[i]) != -EINVAL)
			fail_msg("%s is not plain", bad[i]);
}

static void test_small_messages(void **state)
{
	uint8_t buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_reply reply;
	enum guest_power kind;

	assert_int_equal(guest_put_reply(&wr, false, "no\033[2Jway"), 0);
	assert_int_equal(guest_get_reply(slice_of(buf, wr.n), &reply), 0);
	assert_false(reply.ok);
	assert_string_equal(reply.text, "no?[2Jway");
	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(guest_put_reply(&wr, false,
				 "no\x9b"
				 "2J \xc2\x9b"
				 "2J \xe2\x80\xaeyaw"),
		0);
	assert_int_equal(guest_get_reply(slice_of(buf, wr.n), &reply), 0);
	assert_string_equal(reply.text, "no?2J ??2J ???yaw");
	assert_int_equal(guest_get_reply(slice_of("\2\0\0", 3), &reply), -EBADMSG);
	assert_int_equal(guest_get_power(slice_of("\1", 1), &kind), 0);
	assert_int_equal(guest_get_power(slice_of("\2", 1), &kind), -EBADMSG);
	assert_int_equal(guest_get_power(slice_of("\0", 1), &kind), -EBADMSG);
}

static void test_parking(void **state)
{
	uint8_t buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_mount mount = {
		.flags = GUEST_MOUNT_RO, .share = (char *)"/a", .path = (char *)"/b"};
	struct guest_wake wake = {.wall_ms = 7, .entropy = {1, 2, 3}, .mounts = {1, &mount}}, got;
	struct guest_parking p = {.kind = GUEST_PARK_SUSPEND, .uid = 5};

	assert_int_equal(guest_put_park(&wr, &p), 0);
	assert_int_equal(wr.n, 1);
	assert_int_equal(guest_get_park(slice_of(buf, wr.n), &p), 0);
	assert_int_equal(p.kind, GUEST_PARK_SUSPEND);
	assert_int_equal(p.uid, 0);
	assert_int_equal(guest_get_park(slice_of("\0", 1), &p), -EBADMSG);
	assert_int_equal(guest_get_park(slice_of("\4", 1), &p), -EBADMSG);
	assert_int_equal(guest_get_park(slice_of("\1", 1), &p), -EBADMSG);
	assert_int_equal(guest_get_park(slice_of("\2\0\0\0\0\0\0\0\0", 9), &p), -EBADMSG);
	wr = wr_init(buf, sizeof(buf));
	p = (struct guest_parking){GUEST_PARK_IMAGE, 1000, 70000};
	assert_int_equal(guest_put_park(&wr, &p), 0);
	p = (struct guest_parking){0};
	assert_int_equal(guest_get_park(slice_of(buf, wr.n), &p), 0);
	assert_int_equal(p.kind, GUEST_PARK_IMAGE);
	assert_int_equal(p.uid, 1000);
	assert_int_equal(p.gid, 70000);
	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(guest_put_wake(&wr, &wake), 0);
	assert_int_equal(guest_get_wake(slice_of(buf, wr.n), &got), 0);
	assert_true(got.wall_ms == 7);
	assert_memory_equal(got.entropy, wake.entropy, sizeof(wake.entropy));
	assert_int_equal(got.mounts.n, 1);
	assert_string_equal(got.mounts.v[0].path, "/b");
	guest_wake_done(&got);
	for (size_t n = 0; n < wr.n; n++)
		assert_int_equal(guest_get_wake(slice_of(buf, n), &got), -EBADMSG);
	mount.path = (char *)"/../b";
	assert_int_equal(guest_put_wake(&wr, &wake), -EINVAL);
}

static void test_long_reply_is_cut(void **state)
{
	uint8_t buf[2048];
	char text[1024];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_reply reply;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(guest_put_reply(&wr, true, text), 0);
	assert_int_equal(guest_get_reply(slice_of(buf, wr.n), &reply), 0);
	assert_int_equal(strlen(reply.text), GUEST_MAX_TEXT - 1);
}

static void test_stats_round_trip(void **state)
{
	uint8_t buf[128];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct keeper_stats in = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, {{"agent", 1, 0}}}, out = {0};

	assert_int_equal(guest_put_stats(&wr, &in), 0);
	assert_int_equal(guest_get_stats(slice_of(buf, wr.n), &out), 0);
	assert_true(out.uptime_ms == 1 && out.docker_free == 8 && out.processes == 9);
	assert_int_equal(guest_get_stats(slice_of(buf, wr.n - 1), &out), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_setup_round_trip),
		cmocka_unit_test(test_setup_refused),
		cmocka_unit_test(test_trust_round_trip),
		cmocka_unit_test(test_extra_certificates),
		cmocka_unit_test(test_trust_refused),
		cmocka_unit_test(test_plain_paths),
		cmocka_unit_test(test_small_messages),
		cmocka_unit_test(test_parking),
		cmocka_unit_test(test_long_reply_is_cut),
		cmocka_unit_test(test_stats_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
