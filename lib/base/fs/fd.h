/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd - file descriptors: closed once, CLOEXEC at birth, -1 when empty.
 *
 * How      AUTO_CLOSE closes a local fd at the end of its scope, TAKE_FD hands it over. fd_send and
 *          fd_recv pass descriptors through a Unix socket.
 * Trust    Every program. The peer of fd_recv may be compromised: it decides how many descriptors
 *          arrive, and none of them stays open unnoticed.
 * Owns     A struct that holds an fd closes it in its _done function with fd_close.
 * Limits   FD_MAX_PASSED descriptors with one message; one with each of FD_MAX_MANY packets.
 * See      fd_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "lib/base/err.h"

#define FD_MAX_PASSED 64
#define FD_MAX_MANY 16

/* Closes *fd when it is not -1 and sets it to -1. errno is kept. */
void fd_close(int *fd);

#define AUTO_CLOSE CLEANUP(fd_close)
#define TAKE_FD(fd)                \
	({                         \
		int _taken = (fd); \
		(fd) = -1;         \
		_taken;            \
	})

int fd_set_nonblock(int fd, bool on) MUST_CHECK;
int fd_set_cloexec(int fd, bool on) MUST_CHECK;
/* As sendmsg(2) with MSG_NOSIGNAL. Returns the number of bytes. */
ssize_t fd_send(int sock, const struct iovec *iov, size_t n_iov, const int *fds, size_t n_fds,
	int flags) MUST_CHECK;
/* As recvmsg(2); the descriptors are CLOEXEC. *n_fds is how many may come, then how many came. If
 * more came or some were lost, *n_fds is larger than before and all of them were closed. -EBADMSG
 * for a packet that is larger than iov. */
ssize_t fd_recv(int sock, const struct iovec *iov, size_t n_iov, int *fds, size_t *n_fds,
	int flags) MUST_CHECK;
/* A packet of fd_recv_many: room for it, then what fd_recv returns for one descriptor. */
struct fd_packet {
	struct iovec room;
	ssize_t n;
	int fd;
	size_t n_fds;
};
/* As fd_recv of up to n packets, FD_MAX_MANY at most, in one call and without waiting. Returns
 * their number; fewer than n: there were no more, or the other end has closed, and then the last
 * ones are empty. */
int fd_recv_many(int sock, struct fd_packet *list, size_t n) MUST_CHECK;
/* Whether it is a Unix socket of this type (SOCK_STREAM ...). */
bool fd_is_unix_socket(int fd, int type);
/* A TCP socket, of either family. */
bool fd_is_tcp(int fd);
/* Whether the peer of a Unix socket runs as the user of this process. */
bool fd_is_same_user(int sock);
/* As many descriptors as the hard limit allows. The kernel also compares the soft limit with the
 * descriptors that all processes of the user have in flight when one more is passed. */
void fd_raise_limit(void);
/* Blocking; all n bytes or an error. */
int fd_write_all(int fd, const void *p, size_t n) MUST_CHECK;
/* Blocking; reads until n bytes or the end; gives the count. */
ssize_t fd_read_full(int fd, void *p, size_t n) MUST_CHECK;
/* Reads a whole file by position: another process may have read the same open file. A heap copy
 * with a NUL after it; -EFBIG over max bytes. */
int fd_load(int fd, size_t max, char **ret, size_t *ret_n) MUST_CHECK;
