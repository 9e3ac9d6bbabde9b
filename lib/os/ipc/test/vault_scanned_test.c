/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/vault_scanned.h"
#include "lib/os/ipc/vault_chan.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

static int pair[2];
static struct ipc_msg msg;
static struct vault_scanned scanned, got;

static int setup(void **state)
{
	msg.fd = -1;
	scanned = (struct vault_scanned){.bytes = 1ULL << 40,
		.n_looked = 5,
		.n_left = 1,
		.control = 2,
		.n_found = 2,
		.n = 2,
		.v = {{.name = "anthropic", .times = 3},
			{.name = "lab", .scope = "id-1", .times = 1}}};
	return ipc_pair(pair);
}

static int teardown(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	ipc_msg_done(&msg);
	return 0;
}

static void receive(uint16_t type)
{
	ipc_msg_done(&msg);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
	assert_int_equal(msg.type, type);
	assert_int_equal(msg.id, 7);
}

static void test_scan(void **state)
{
	static const char *const good[] = {
		"", "12345678", "a control, forty-eight bytes of it, and not more"};
	static const char *const bad[] = {"1234567", "tab\tin a control", "umlaut \xc3\xa4 in it"};
	char control[VAULT_MAX_CONTROL + 1];
	AUTO_CLOSE int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(vault_ask_scan(pair[0], 7, good[i], fd), 0);
		receive(VAULT_SCAN);
		assert_int_equal(vault_get_scan(&msg, control), 0);
		assert_string_equal(control, good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(vault_ask_scan(pair[0], 7, bad[i], fd), 0);
		receive(VAULT_SCAN);
		assert_int_equal(vault_get_scan(&msg, control), -EBADMSG);
	}
	/* longer than any control: not even sent */
	assert_true(vault_ask_scan(pair[0], 7, "a control, forty-nine bytes of it, and no longer!",
			    fd) < 0);
	assert_int_equal(vault_ask_scan(pair[0], 7, "", -1), 0);
	receive(VAULT_SCAN);
	assert_int_equal(vault_get_scan(&msg, control), -EBADMSG);
}

static int send_and_get(void)
{
	assert_int_equal(vault_send_scanned(pair[0], 7, &scanned), 0);
	receive(VAULT_SCANNED);
	return vault_get_scanned(&msg, &got);
}

static void test_scanned(void **state)
{
	assert_int_equal(send_and_get(), 0);
	assert_int_equal(got.bytes, scanned.bytes);
	assert_int_equal(got.n_looked, 5);
	assert_int_equal(got.n_left, 1);
	assert_int_equal(got.control, 2);
	assert_int_equal(got.n_found, 2);
	assert_int_equal(got.n, 2);
	assert_string_equal(got.v[0].name, "anthropic");
	assert_string_equal(got.v[1].scope, "id-1");
	assert_int_equal(got.v[0].times, 3);
}

/* More than can be named: the first are, and the number is all of them. */
static void test_many(void **state)
{
	scanned.n_looked = scanned.n_found = 256;
	scanned.n = VAULT_MAX_FOUND;
	for (size_t i = 0; i < VAULT_MAX_FOUND; i++) {
		(void)snprintf(scanned.v[i].name, sizeof(scanned.v[i].name), "%063zu", i);
		(void)snprintf(scanned.v[i].scope, sizeof(scanned.v[i].scope), "%063zu", i);
		scanned.v[i].times = i + 1;
	}
	assert_int_equal(send_and_get(), 0);
	assert_int_equal(got.n, VAULT_MAX_FOUND);
	assert_int_equal(got.n_found, 256);
	scanned.n++;
	assert_int_equal(vault_send_scanned(pair[0], 7, &scanned), -EMSGSIZE);
}

static void test_what_cannot_be(void **state)
{
	struct vault_scanned whole = scanned;

	scanned.n_found = 3; /* one of them without a name */
	assert_int_equal(send_and_get(), -EBADMSG);
	scanned = whole;
	scanned.n_looked = 1;
	assert_int_equal(send_and_get(), -EBADMSG);
	scanned = whole;
	scanned.v[0].times = 0;
	assert_int_equal(send_and_get(), -EBADMSG);
	scanned = whole;
	scanned.v[0].name[0] = ' ';
	assert_int_equal(send_and_get(), -EBADMSG);
	scanned = whole;
	scanned.v[1].scope[1] = '\n';
	assert_int_equal(send_and_get(), -EBADMSG);
	scanned = whole;
	assert_int_equal(vault_send_scanned(pair[0], 7, &scanned), 0);
	receive(VAULT_SCANNED);
	msg.n--;
	assert_int_equal(vault_get_scanned(&msg, &got), -EBADMSG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scan),
		TEST(test_scanned),
		TEST(test_many),
		TEST(test_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
