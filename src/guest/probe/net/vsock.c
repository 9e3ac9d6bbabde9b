/* SPDX-License-Identifier: Apache-2.0 */
/* vsock: a connection to a context of the hypervisor. */
#include <errno.h>
#include <linux/vm_sockets.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"
#include "src/guest/probe/verb/verb.h"

int probe_vsock(int argc, char **argv)
{
	struct sockaddr_vm to = {.svm_family = AF_VSOCK};
	int fd, e = 0;
	socklen_t n = sizeof(e);

	if (argc != 2)
		return PROBE_USAGE;
	to.svm_cid = (unsigned)strtoul(argv[0], NULL, 10);
	to.svm_port = (unsigned)strtoul(argv[1], NULL, 10);
	fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return probe_refused("socket");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
		return probe_refused("connecting");
	if (!net_wait(fd, POLLOUT, NET_WAIT_MS)) {
		printf("no answer in time\n");
		return PROBE_REFUSED;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) == 0 && e) {
		errno = e;
		return probe_refused("connecting");
	}
	printf("connected to %s\n", argv[0]);
	return PROBE_POSSIBLE;
}
