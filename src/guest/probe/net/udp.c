/* SPDX-License-Identifier: Apache-2.0 */
/* udp: a datagram to an address, and whether the path answers. */
#include <poll.h>
#include <stdio.h>

#include "answer.h"
#include "net.h"
#include "src/guest/probe/verb/verb.h"

#define LISTEN_MS 300 /* an error arrives immediately */

int probe_udp(int argc, char **argv)
{
	uint8_t buf[1024];
	struct net_addr to;
	int fd, on = 1;
	ssize_t n;

	if (argc < 2 || argc > 3 || net_parse(argv[0], argv[1], &to) < 0)
		return PROBE_USAGE;
	fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return probe_refused("socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	/* Not connected: answers to a multicast come from the sender's own address. Errors are
	 * still reported. */
	if (to.sa.sa_family == AF_INET)
		(void)setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	else
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
	n = (ssize_t)net_bytes(argc == 3 ? argv[2] : "probe", buf, sizeof(buf));
	if (sendto(fd, buf, (size_t)n, 0, &to.sa, to.n) < 0)
		return probe_refused("sending");
	if (!net_wait(fd, POLLIN, LISTEN_MS)) {
		printf("sent, and no answer\n");
		return PROBE_POSSIBLE;
	}
	n = recv(fd, buf, sizeof(buf), 0);
	if (n < 0)
		return probe_refused("sending");
	printf("answered: ");
	answer_print(stdout, slice_of(buf, (size_t)n), 60);
	(void)putchar('\n');
	return PROBE_POSSIBLE;
}
