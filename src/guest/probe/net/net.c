/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "lib/base/hex.h"

int net_parse(const char *addr, const char *port, struct net_addr *ret)
{
	int number = atoi(port);

	*ret = (struct net_addr){0};
	if (number < 0 || number > UINT16_MAX)
		return -EINVAL;
	if (strcmp(addr, "gateway") == 0)
		addr = NET_GATEWAY;
	if (inet_pton(AF_INET, addr, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)number);
		ret->n = sizeof(ret->v4);
		return 0;
	}
	if (inet_pton(AF_INET6, addr, &ret->v6.sin6_addr) != 1)
		return -EINVAL;
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons((uint16_t)number);
	ret->n = sizeof(ret->v6);
	return 0;
}

int net_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int)(t.tv_sec % 1000000) * 1000 + (int)(t.tv_nsec / 1000000);
}

int net_left(int start)
{
	const char *said = getenv("PROBE_MS");
	int wait = said ? atoi(said) : NET_WAIT_MS;
	int left = MIN(wait, NET_WAIT_MS) - (net_now() - start);

	return left > 0 ? left : 0;
}

int net_wait(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, ms) == 1;
}

static int finish_connect(int fd, int start)
{
	int e = 0;
	socklen_t n = sizeof(e);

	if (errno != EINPROGRESS)
		return -errno;
	if (!net_wait(fd, POLLOUT, net_left(start)))
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0)
		return -errno;
	return -e;
}

int net_connect(const struct net_addr *to, int start)
{
	int fd = socket(to->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = 0;

	if (fd < 0)
		return -errno;
	/* Bypasses the guest's own check (src/guest/net/net_hold.h): the host's decision is probed.
	 * Has no use outside the guest, and requires a privilege. */
	(void)setsockopt(fd, SOL_SOCKET, SO_MARK, &(uint32_t){0x73627802}, sizeof(uint32_t));
	if (connect(fd, &to->sa, to->n) < 0)
		r = finish_connect(fd, start);
	if (r == 0)
		return fd;
	(void)close(fd);
	return r;
}

size_t net_bytes(const char *text, uint8_t *buf, size_t size)
{
	size_t n = 0;

	for (; *text && n < size; text++) {
		if (text[0] != '\\' || !text[1]) {
			buf[n++] = (uint8_t)*text;
			continue;
		}
		text++;
		if (*text == 'x' && text[1] && hex_decode(slice_of(text + 1, 2), &buf[n]) == 0) {
			n++;
			text += 2;
		} else {
			buf[n++] = *text == 'r'	  ? '\r'
				   : *text == 'n' ? '\n'
				   : *text == '0' ? '\0'
						  : (uint8_t)*text;
		}
	}
	return n;
}
