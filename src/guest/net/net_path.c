/* SPDX-License-Identifier: Apache-2.0 */
#include "net_path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST, whose headers conflict with the C library's. */
#define ORIGINAL_DST 80

/* Offsets in the headers. */
#define V4_HEAD 20
#define V4_PROTO 9
#define V4_TO 16
#define V6_HEAD 40
#define V6_NEXT 6
#define V6_TO 24

int net_path_of(const char *kind, const struct sockaddr *to, char path[NET_PATH_MAX])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)to;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)to;
	bool is_v6 = to->sa_family == AF_INET6;
	char addr[INET6_ADDRSTRLEN];
	const void *bytes = is_v6 ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr;

	if ((!is_v6 && to->sa_family != AF_INET) ||
		!inet_ntop(to->sa_family, bytes, addr, sizeof(addr)))
		return -EINVAL;
	(void)snprintf(path, NET_PATH_MAX, "/%s/%s/%u", kind, addr,
		ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
	return 0;
}

int net_path_caught(int fd, char path[NET_PATH_MAX])
{
	struct sockaddr_in6 to = {0}, here = {0};
	socklen_t n = sizeof(to), n_here = sizeof(here);
	int level;

	if (getsockname(fd, (struct sockaddr *)&here, &n_here) < 0)
		return -errno;
	level = here.sin6_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
	if (getsockopt(fd, level, ORIGINAL_DST, &to, &n) < 0)
		return -errno;
	/* The kernel does not change n. */
	if (!memcmp(&to, &here, n_here))
		return -ENOENT;
	return net_path_of("tcp", (struct sockaddr *)&to, path);
}

static int packet_of_v4(struct slice p, char path[NET_PATH_MAX])
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	size_t head = p.n >= V4_HEAD ? (size_t)(p.p[0] & 15) * 4 : 0;

	/* Of a fragment only the first has a port. */
	if (head < V4_HEAD || p.n < head + 4 || p.p[V4_PROTO] != IPPROTO_TCP || (p.p[6] & 0x1f) ||
		p.p[7])
		return -EINVAL;
	memcpy(&to.sin_addr, p.p + V4_TO, sizeof(to.sin_addr));
	memcpy(&to.sin_port, p.p + head + 2, sizeof(to.sin_port));
	return net_path_of("may", (struct sockaddr *)&to, path);
}

static int packet_of_v6(struct slice p, char path[NET_PATH_MAX])
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6};

	if (p.n < V6_HEAD + 4 || p.p[V6_NEXT] != IPPROTO_TCP)
		return -EINVAL;
	memcpy(&to.sin6_addr, p.p + V6_TO, sizeof(to.sin6_addr));
	memcpy(&to.sin6_port, p.p + V6_HEAD + 2, sizeof(to.sin6_port));
	return net_path_of("may", (struct sockaddr *)&to, path);
}

int net_path_of_packet(struct slice packet, char path[NET_PATH_MAX])
{
	unsigned version = packet.n > 0 ? packet.p[0] >> 4 : 0;

	if (version == 4)
		return packet_of_v4(packet, path);
	return version == 6 ? packet_of_v6(packet, path) : -EINVAL;
}
