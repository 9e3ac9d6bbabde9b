#include "net_path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST, whose headers do not go with the C library's. */
#define ORIGINAL_DST 80

int net_path_of(const struct sockaddr *to, char path[NET_PATH_MAX])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)to;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)to;
	bool is_v6 = to->sa_family == AF_INET6;
	char addr[INET6_ADDRSTRLEN];
	const void *bytes = is_v6 ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr;

	if ((!is_v6 && to->sa_family != AF_INET) ||
		!inet_ntop(to->sa_family, bytes, addr, sizeof(addr)))
		return -EINVAL;
	(void)snprintf(path, NET_PATH_MAX, "/tcp/%s/%u", addr,
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
	/* The kernel leaves n as it was. */
	if (!memcmp(&to, &here, n_here))
		return -ENOENT;
	return net_path_of((struct sockaddr *)&to, path);
}
