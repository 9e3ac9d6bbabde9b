/* SPDX-License-Identifier: Apache-2.0 */
/* A real vault with a sealed file: setting, listing, release, removal, and remains. */
#include "vault_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"

static const char *const by_file[] = {"--key=file", NULL};

static void test_set_list_release_remove(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r), keeper = rig_keeper(r, "sandbox1"),
		       other = rig_keeper(r, "sandbox2");
	static struct vault_item items[RIG_MAX_ITEMS];
	struct vault_frame frame;
	struct vault_status status;
	AUTO_FREE char *value = NULL, *own = NULL, *none = NULL;

	rig_status(admin, &status);
	assert_int_equal(status.state, VAULT_READY);
	assert_int_equal(status.key, VAULT_KEY_FILE);
	assert_non_null(strstr(status.text, "a file in the same directory"));
	assert_int_equal(rig_list(admin, NULL), 0);
	assert_int_equal(rig_set_str(admin, "github", "", "ghp_0123456789abcdefghij"), 0);
	assert_int_equal(rig_set_str(admin, "github", "sandbox1", "own-of-sandbox-1"), 0);
	assert_int_equal(rig_set_str(admin, "npm", "sandbox2", "npm-of-sandbox-2"), 0);
	assert_int_equal(rig_list(admin, items), 3);
	assert_string_equal(items[0].mask_head, "ghp_");
	assert_string_equal(items[0].mask_tail, "ghij");
	assert_true(items[0].created_ms && items[0].created_ms == items[0].changed_ms);
	assert_int_equal(items[0].used_ms, 0);
	assert_int_equal(rig_list(keeper, NULL), 2);
	assert_int_equal(rig_list(other, NULL), 2);
	assert_int_equal(rig_release(keeper, "github", 0, &own, &frame), 0);
	assert_string_equal(own, "own-of-sandbox-1");
	assert_string_equal(frame.header, "authorization");
	assert_string_equal(frame.format, "Bearer %s");
	assert_int_equal(rig_release(other, "github", 0, &value, NULL), 0);
	assert_string_equal(value, "ghp_0123456789abcdefghij");
	/* sandbox 1 has no npm, whatever serial it requests */
	assert_int_equal(rig_release(keeper, "npm", items[2].serial, &none, NULL), -ENOENT);
	assert_int_equal(rig_list(admin, items), 3);
	assert_true(items[0].used_ms && items[1].used_ms && !items[2].used_ms);
	assert_int_equal(rig_remove(admin, "github", "sandbox1"), 0);
	assert_int_equal(rig_remove(admin, "github", "sandbox1"), -ENOENT);
	assert_int_equal(rig_list(keeper, NULL), 1);
	assert_int_equal(rig_stop(r), 0);
	rig_free(r);
}

/* A decision about one value releases no other value. */
static void test_a_changed_credential_is_stale(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r), keeper = rig_keeper(r, "sandbox1");
	static struct vault_item items[RIG_MAX_ITEMS];
	AUTO_FREE char *value = NULL, *again = NULL;
	uint64_t old;

	assert_int_equal(rig_set_str(admin, "a", "", "one"), 0);
	assert_int_equal(rig_list(keeper, items), 1);
	old = items[0].serial;
	assert_int_equal(rig_set_str(admin, "a", "", "two"), 0);
	assert_int_equal(rig_release(keeper, "a", old, &value, NULL), -ESTALE);
	/* an item of the sandbox hides the global one */
	assert_int_equal(rig_list(keeper, items), 1);
	assert_int_equal(rig_set_str(admin, "a", "sandbox1", "three"), 0);
	assert_int_equal(rig_release(keeper, "a", items[0].serial, &value, NULL), -ESTALE);
	assert_int_equal(rig_release(keeper, "a", 0, &again, NULL), 0);
	assert_string_equal(again, "three");
	rig_free(r);
}

static void test_restart_and_kill(void **state)
{
	struct rig *r = rig_new(by_file);
	int admin = rig_admin(r), keeper;
	AUTO_FREE char *value = NULL;

	for (unsigned i = 0; i < 20; i++) {
		char name[16], text[32];

		(void)snprintf(name, sizeof(name), "n%u", i);
		(void)snprintf(text, sizeof(text), "value number %u", i);
		assert_int_equal(rig_set_str(admin, name, "", text), 0);
	}
	rig_kill(r);
	(void)close(admin);
	rig_start(r, by_file);
	admin = rig_admin(r);
	keeper = rig_keeper(r, "s");
	assert_int_equal(rig_list(admin, NULL), 20);
	assert_int_equal(rig_release(keeper, "n19", 0, &value, NULL), 0);
	assert_string_equal(value, "value number 19");
	(void)close(admin);
	(void)close(keeper);
	rig_free(r);
}

static void test_sizes(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r), keeper = rig_keeper(r, "s");
	AUTO_FREE char *big = xmalloc(VAULT_MAX_VALUE + 1), *value = NULL;

	memset(big, 'x', VAULT_MAX_VALUE + 1);
	assert_int_equal(rig_set(admin, "big", "", big, VAULT_MAX_VALUE + 1), -EMSGSIZE);
	assert_int_equal(rig_set(admin, "empty", "", big, 0), -EINVAL);
	assert_int_equal(rig_list(admin, NULL), 0);
	assert_int_equal(rig_set(admin, "big", "", big, VAULT_MAX_VALUE), 0);
	assert_int_equal(rig_release(keeper, "big", 0, &value, NULL), 0);
	assert_int_equal(strlen(value), VAULT_MAX_VALUE);
	for (unsigned i = 0; i < 40; i++) {
		char name[16];
		int want = i < 31 ? 0 : -ENOSPC;

		(void)snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(rig_set(admin, name, "", big, VAULT_MAX_VALUE), want);
	}
	assert_int_equal(rig_list(admin, NULL), 32);
	/* all of it can be read again */
	assert_int_equal(rig_stop(r), 0);
	rig_start(r, by_file);
	(void)close(admin);
	admin = rig_admin(r);
	assert_int_equal(rig_list(admin, NULL), 32);
	rig_free(r);
}

static void test_many_items(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r);
	char name[16];

	for (unsigned i = 0; i < 256; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(rig_set_str(admin, name, "", name), 0);
	}
	assert_int_equal(rig_set_str(admin, "one.more", "", "x"), -ENOSPC);
	/* more than a socket accepts at a time */
	assert_int_equal(rig_list(admin, NULL), 256);
	rig_free(r);
}

static void test_watch(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r), keeper = rig_keeper(r, "s"), deaf = rig_keeper(r, "t");
	static struct ipc_msg msg;
	struct vault_done done;
	uint64_t generation = 0;

	assert_int_equal(chan_send_plain(keeper, VAULT_WATCH, 1, -1), 0);
	rig_done(keeper, 1, &done);
	assert_int_equal(chan_send_plain(deaf, VAULT_WATCH, 1, -1), 0);
	assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
	rig_next(keeper, &msg);
	assert_int_equal(vault_get_changed(&msg, &generation), 0);
	assert_true(generation > done.number);
	assert_int_equal(rig_remove(admin, "a", ""), 0);
	rig_next(keeper, &msg);
	assert_int_equal(vault_get_changed(&msg, &generation), 0);
	/* a peer that never reads blocks no other */
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(rig_remove(admin, "a", ""), -ENOENT);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
	rig_free(r);
}

static void test_passphrase(void **state)
{
	static const char *const args[] = {"--key=passphrase", NULL};
	struct rig *r = rig_new(args);
	int admin = rig_admin(r);
	struct vault_status status;

	rig_status(admin, &status);
	assert_int_equal(status.state, VAULT_LOCKED);
	assert_int_equal(rig_set_str(admin, "a", "", "v"), -ENOKEY);
	assert_int_equal(rig_unlock(admin, ""), -EINVAL);
	assert_int_equal(rig_unlock(admin, "open sesame"), 0);
	assert_int_equal(rig_unlock(admin, "open sesame"), -EINVAL);
	assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
	rig_kill(r);
	(void)close(admin);
	rig_start(r, NULL); /* the file names its key source */
	admin = rig_admin(r);
	rig_status(admin, &status);
	assert_int_equal(status.key, VAULT_KEY_PASSPHRASE);
	assert_int_equal(rig_unlock(admin, "open sesam"), -EKEYREJECTED);
	assert_int_equal(rig_unlock(admin, "open sesame"), 0);
	assert_int_equal(rig_list(admin, NULL), 1);
	(void)close(admin);
	rig_free(r);
}

/* Changes a byte of the sealed file, or truncates it. */
static void damage(struct rig *r, bool cut)
{
	AUTO_FREE char *path = rig_file(r, "sealed"), *bytes = NULL;
	size_t n;

	assert_int_equal(file_load(path, 1 << 20, &bytes, &n, NULL), 0);
	bytes[n - 20] ^= 1;
	assert_int_equal(file_save(path, slice_of(bytes, cut ? n - 3 : n), NULL), 0);
}

static void test_damaged_file_says_so_and_denies(void **state)
{
	static const char *const words[] = {"changed after it was sealed", "truncated"};

	for (unsigned i = 0; i < 2; i++) {
		struct rig *r = rig_new(by_file);
		int admin = rig_admin(r);
		struct vault_status status;

		assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
		(void)close(admin);
		assert_int_equal(rig_stop(r), 0);
		damage(r, i);
		rig_start(r, by_file);
		admin = rig_admin(r);
		rig_status(admin, &status);
		assert_int_equal(status.state, VAULT_FAILED);
		assert_non_null(strstr(status.text, words[i]));
		assert_int_equal(rig_set_str(admin, "b", "", "v"), -EAGAIN);
		assert_non_null(strstr(rig_text, words[i]));
		(void)close(admin);
		rig_free(r);
	}
}

static void test_old_copy_of_the_file(void **state)
{
	static const char *const accept[] = {"--accept-old", NULL};
	struct rig *r = rig_new(by_file);
	AUTO_FREE char *path = rig_file(r, "sealed"), *bytes = NULL;
	int admin = rig_admin(r);
	struct vault_status status;
	size_t n;

	assert_int_equal(rig_set_str(admin, "a", "", "v"), 0);
	assert_int_equal(file_load(path, 1 << 20, &bytes, &n, NULL), 0);
	assert_int_equal(rig_remove(admin, "a", ""), 0);
	(void)close(admin);
	assert_int_equal(rig_stop(r), 0);
	assert_int_equal(file_save(path, slice_of(bytes, n), NULL), 0);
	rig_start(r, by_file);
	admin = rig_admin(r);
	rig_status(admin, &status);
	assert_int_equal(status.state, VAULT_FAILED);
	assert_non_null(strstr(status.text, "old copy"));
	(void)close(admin);
	rig_kill(r);
	rig_start(r, accept);
	admin = rig_admin(r);
	assert_int_equal(rig_list(admin, NULL), 1);
	(void)close(admin);
	rig_free(r);
}

static void test_one_vault_a_folder(void **state)
{
	struct rig *r = rig_new(by_file), second;
	AUTO_CLOSE int admin = rig_admin(r);
	struct vault_status status;

	second = *r;
	second.pid = 0;
	rig_start(&second, by_file);
	assert_int_equal(rig_wait(&second), 1);
	rig_status(admin, &status);
	assert_int_equal(status.state, VAULT_READY);
	rig_free(r);
}

/* A value that cannot be written does not exist: neither now nor later. */
static void test_a_disk_that_takes_nothing(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r), keeper = rig_keeper(r, "s");
	AUTO_FREE char *path = rig_file(r, "sealed"), *inside = rig_file(r, "sealed/x"),
		       *value = NULL;

	assert_int_equal(rig_set_str(admin, "a", "", "one"), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mkdir(inside, 0700), 0);
	assert_true(rig_set_str(admin, "a", "", "two") < 0);
	assert_true(rig_set_str(admin, "b", "", "three") < 0);
	assert_true(rig_remove(admin, "a", "") < 0);
	assert_int_equal(rig_list(admin, NULL), 1);
	assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
	assert_string_equal(value, "one");
	assert_int_equal(rmdir(inside), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rig_set_str(admin, "b", "", "three"), 0);
	assert_int_equal(rig_list(admin, NULL), 2);
	rig_free(r);
}

/* Sets and removes under its own names; the last one stays. */
static void write_much(struct rig *r, unsigned who)
{
	int admin = rig_admin(r);
	char name[32];

	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "w%u.%u", who, i);
		if (rig_set_str(admin, name, "", name) != 0 ||
			(i && rig_remove(admin, name, "") != 0))
			_exit(1);
	}
	_exit(0);
}

static void test_many_writers(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r), keeper = rig_keeper(r, "s");
	pid_t pids[6];
	int status;

	for (unsigned i = 0; i < ARRAY_LEN(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			write_much(r, i);
	}
	for (unsigned i = 0; i < ARRAY_LEN(pids); i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(rig_list(admin, NULL), ARRAY_LEN(pids));
	for (unsigned i = 0; i < ARRAY_LEN(pids); i++) {
		AUTO_FREE char *value = NULL;
		char name[32];

		(void)snprintf(name, sizeof(name), "w%u.0", i);
		assert_int_equal(rig_release(keeper, name, 0, &value, NULL), 0);
		assert_string_equal(value, name);
	}
	rig_free(r);
}

/* fd 3 may be one connected channel: when it closes, the vault exits. */
static void test_one_channel_instead_of_a_socket(void **state)
{
	struct rig *r = rig_new(by_file);
	static struct ipc_msg msg;
	int pair[2];

	rig_kill(r);
	fd_close(&r->listener);
	assert_int_equal(ipc_pair(pair), 0);
	r->listener = pair[1];
	rig_start(r, by_file);
	fd_close(&r->listener);
	rig_next(pair[0], &msg);
	assert_int_equal(msg.type, VAULT_HELLO);
	assert_int_equal(chan_send_plain(pair[0], VAULT_ADMIN, 0, -1), 0);
	assert_int_equal(rig_set_str(pair[0], "a", "", "v"), 0);
	fd_close(&pair[0]);
	assert_int_equal(rig_wait(r), 0);
	rig_free(r);
}

/* However it ends: no process is left, and the directory is free. */
/* A connection on the loopback: ret[0] is the proxy's end. */
static void connect_tcp(int ret[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	ret[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ret[1], (struct sockaddr *)&a, n), 0);
	ret[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(ret[0] >= 0);
	(void)close(listener);
}

static void set_proxy(int admin, const char *header, const char *value)
{
	const struct vault_meta meta = {.kind = VAULT_PROXY,
		.name = VAULT_PROXY_NAME,
		.hosts = "proxy.example:3128",
		.header = "",
		.format = "alice"};
	struct vault_meta m = meta;
	struct vault_done done;
	int fds[2];

	(void)snprintf(m.header, sizeof(m.header), "%s", header);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(vault_ask_set(admin, 900, &m, fds[0]), 0);
	assert_int_equal(fd_write_all(fds[1], value, strlen(value)), 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	rig_done(admin, 900, &done);
	assert_int_equal(done.code, 0);
}

/* The password of an upstream proxy leaves as a login to a connection, and in no other way. */
static void a_proxy_gets_a_login_and_a_unix_socket_does_not(void **state)
{
	static const char socks[] = "\1\5alice\6secret";
	static const struct {
		const char *header, *login;
	} rows[] = {{"http", "YWxpY2U6c2VjcmV0"}, {"socks5", socks}};
	struct rig *r = rig_new(by_file);
	int admin = rig_admin(r), keeper = rig_keeper(r, "box-1");
	char long_one[300] = "", buf[64];
	AUTO_FREE char *value = NULL;
	struct vault_item items[RIG_MAX_ITEMS];
	struct vault_done done;
	int fds[2];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		set_proxy(admin, rows[i].header, "secret");
		assert_int_equal(rig_release(keeper, VAULT_PROXY_NAME, 0, &value, NULL), -EINVAL);
		assert_null(value);
		assert_int_equal(rig_list(keeper, items), 1);
		connect_tcp(fds);
		assert_int_equal(
			vault_ask_release(keeper, 901, VAULT_PROXY_NAME, items[0].serial, fds[1]),
			0);
		(void)close(fds[1]);
		rig_done(keeper, 901, &done);
		assert_int_equal(done.code, 0);
		assert_int_equal(fd_read_full(fds[0], buf, sizeof(buf)), strlen(rows[i].login));
		assert_memory_equal(buf, rows[i].login, strlen(rows[i].login));
		(void)close(fds[0]);
	}
	/* a value of a service does not leave to a connection */
	assert_int_equal(rig_set_str(admin, "github", "", "gh-token"), 0);
	assert_int_equal(rig_list(keeper, items), 2);
	connect_tcp(fds);
	assert_int_equal(vault_ask_release(keeper, 902, "github",
				 items[strcmp(items[0].meta.name, "github") != 0].serial, fds[1]),
		0);
	(void)close(fds[1]);
	rig_done(keeper, 902, &done);
	assert_int_equal(done.code, -EINVAL);
	assert_int_equal(fd_read_full(fds[0], buf, 1), 0);
	(void)close(fds[0]);
	memset(long_one, 'x', sizeof(long_one) - 1);
	set_proxy(admin, "socks5", long_one);
	assert_int_equal(rig_list(keeper, items), 2);
	connect_tcp(fds);
	assert_int_equal(vault_ask_release(keeper, 903, VAULT_PROXY_NAME,
				 items[strcmp(items[0].meta.name, "github") == 0].serial, fds[1]),
		0);
	(void)close(fds[1]);
	rig_done(keeper, 903, &done);
	assert_int_equal(done.code, -EMSGSIZE);
	assert_int_equal(fd_read_full(fds[0], buf, 1), 0);
	(void)close(fds[0]);
	(void)close(admin);
	(void)close(keeper);
	rig_free(r);
}

static void test_ends_together(void **state)
{
	struct rig *r = rig_new(by_file);
	pid_t pid = rig_vault_pid(r);

	(void)close(rig_admin(r));
	assert_int_equal(kill(r->pid, SIGTERM), 0);
	assert_int_equal(rig_wait(r), 0);
	assert_int_equal(kill(pid, 0), -1);
	rig_start(r, by_file);
	pid = rig_vault_pid(r);
	(void)close(rig_admin(r));
	rig_kill(r);
	for (unsigned i = 0; i < 6000 && kill(pid, 0) == 0; i++)
		(void)usleep(10000);
	assert_int_equal(kill(pid, 0), -1);
	rig_start(r, by_file);
	(void)close(rig_admin(r));
	assert_int_equal(kill(rig_vault_pid(r), SIGKILL), 0);
	assert_int_equal(rig_wait(r), 3);
	rig_free(r);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_set_list_release_remove),
		TEST(test_a_changed_credential_is_stale),
		TEST(test_restart_and_kill),
		TEST(test_sizes),
		TEST(test_many_items),
		TEST(test_watch),
		TEST(test_passphrase),
		TEST(test_damaged_file_says_so_and_denies),
		TEST(test_old_copy_of_the_file),
		TEST(test_one_vault_a_folder),
		TEST(test_a_disk_that_takes_nothing),
		TEST(test_many_writers),
		TEST(test_one_channel_instead_of_a_socket),
		TEST(a_proxy_gets_a_login_and_a_unix_socket_does_not),
		TEST(test_ends_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
