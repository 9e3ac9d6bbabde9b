/* SPDX-License-Identifier: Apache-2.0 */
/* The vault's own listening socket, with a kernel that reports another user as the peer. */
#include "src/vault/main/vault.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"

/* ---- unused stubs that peer.c needs ---- */

void op_drop_peer(struct vault *v, uint32_t peer)
{
}

void ask_fill_status(const struct vault *v, struct vault_status *ret)
{
}

int ask_take(struct vault *v, struct peer *p, struct ipc_msg *msg)
{
	return -EBADMSG;
}

/* An ordinary user cannot change its uid: the test changes the result of geteuid instead. */
static uid_t offset;
uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);

uid_t __wrap_geteuid(void)
{
	return __real_geteuid() + offset;
}

/* Connects, lets the vault accept, and returns our end. */
static int knock(struct vault *v)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX}; /* a name that the kernel chooses */
	socklen_t n = sizeof(at);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(listener >= 0 && peer >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at.sun_family)), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(peer, (struct sockaddr *)&at, n), 0);
	assert_int_equal(dup2(listener, VAULT_LISTEN_FD), VAULT_LISTEN_FD);
	(void)close(listener);
	peer_on_listen(v);
	return peer;
}

static struct vault *make_vault(void)
{
	struct vault *v = xcalloc(1, sizeof(*v));

	/* Occupies the number of the listening socket, so that no other socket gets it. */
	(void)dup2(STDERR_FILENO, VAULT_LISTEN_FD);
	assert_int_equal(loop_init(&v->loop), 0);
	peer_init(v);
	return v;
}

static void free_vault(struct vault *v)
{
	for (size_t i = 0; i < v->n_peers; i++)
		fd_close(&v->peers[i].fd);
	loop_done(&v->loop);
	(void)close(VAULT_LISTEN_FD);
	free(v);
}

/* Returns the length of HELLO, or 0 at end-of-file. */
static ssize_t heard(int peer)
{
	struct pollfd p = {.fd = peer, .events = POLLIN};
	char buf[512];

	assert_int_equal(poll(&p, 1, 60000), 1);
	return recv(peer, buf, sizeof(buf), MSG_DONTWAIT);
}

static void a_process_of_the_same_user_is_heard(void **state)
{
	struct vault *v = make_vault();
	int peer = knock(v);

	assert_true(heard(peer) > 0);
	assert_true(v->peers[0].fd >= 0);
	assert_int_equal(v->peers[0].phase, VAULT_PHASE_ROLE);
	(void)close(peer);
	free_vault(v);
}

static void a_process_of_another_user_is_turned_away(void **state)
{
	struct vault *v = make_vault();
	int peer;

	offset = 1;
	peer = knock(v);
	offset = 0;
	assert_true(heard(peer) <= 0);
	for (size_t i = 0; i < v->n_peers; i++)
		assert_int_equal(v->peers[i].fd, -1);
	(void)close(peer);
	free_vault(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_of_the_same_user_is_heard),
		cmocka_unit_test(a_process_of_another_user_is_turned_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
