/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/vault_sock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

static char dir[64];

static int set_up(void **state)
{
	AUTO_FREE char *run = NULL;
	struct err err = {0};

	(void)snprintf(dir, sizeof(dir), "/tmp/sbx-vsock-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
	run = paths_get(PATHS_RUNTIME, NULL);
	return paths_make(run, &err);
}

static int tear_down(void **state)
{
	AUTO_FREE char *path = vault_sock_path();
	AUTO_FREE char *run = paths_get(PATHS_RUNTIME, NULL);

	(void)unlink(path);
	(void)rmdir(run);
	return rmdir(dir);
}

static void test_nobody(void **state)
{
	struct err err = {0};

	assert_int_equal(vault_sock_connect(&err), -ECONNREFUSED);
	assert_non_null(strstr(err.text, "vault.sock"));
}

static void test_life(void **state)
{
	AUTO_FREE char *path = vault_sock_path();
	AUTO_CLOSE int at = vault_sock_listen(NULL), peer = vault_sock_connect(NULL), other = -1;
	struct stat st;
	int type = 0;
	socklen_t n = sizeof(type);

	assert_true(at >= 0 && peer >= 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(getsockopt(peer, SOL_SOCKET, SO_TYPE, &type, &n), 0);
	assert_int_equal(type, SOCK_SEQPACKET);
	/* a copy of the listener keeps the name alive, the last one's end leaves a dead name */
	other = dup(at);
	fd_close(&at);
	fd_close(&peer);
	peer = vault_sock_connect(NULL);
	assert_true(peer >= 0);
	fd_close(&other);
	assert_int_equal(vault_sock_connect(NULL), -ECONNREFUSED);
	/* and that is replaced */
	at = vault_sock_listen(NULL);
	assert_true(at >= 0);
	fd_close(&peer);
	peer = vault_sock_connect(NULL);
	assert_true(peer >= 0);
}

static void test_long_name(void **state)
{
	char many[120] = "/tmp/";
	struct err err = {0};

	memset(many + 5, 'x', sizeof(many) - 6);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", many, 1), 0);
	assert_int_equal(vault_sock_listen(&err), -ENAMETOOLONG);
	assert_int_equal(vault_sock_connect(&err), -ENAMETOOLONG);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_life, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_name, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
