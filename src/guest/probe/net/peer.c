/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "net.h"
#include "src/guest/probe/verb/verb.h"

#define PATIENCE_MS 700
#define OTHER 1 /* the first subordinate id, in the user namespace that the caller created */

/* Another uid that file modes do not stop: only the listener's check of its peer is left. The
 * capabilities apply in this namespace only, which owns the socket's files. */
static int become_other(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	d[0].permitted = d[0].effective = 1U << CAP_DAC_OVERRIDE;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(OTHER, OTHER, OTHER) < 0 ||
		syscall(SYS_capset, &h, d) < 0)
		return -1;
	return 0;
}

static int watch_peer(int fd, const char *text)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char buf[64];
	ssize_t n;

	if (text && (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 ||
			    send(fd, "\r\n\r\n", 4, MSG_NOSIGNAL) < 0)) {
		printf("closed\n");
		return PROBE_REFUSED;
	}
	if (poll(&p, 1, PATIENCE_MS) == 0) {
		printf("kept open\n");
		return PROBE_POSSIBLE;
	}
	n = recv(fd, buf, sizeof(buf) - 1, 0);
	if (n <= 0) {
		printf("closed\n");
		return PROBE_REFUSED;
	}
	buf[n] = '\0';
	n = 0;
	while (buf[n] >= ' ' && buf[n] <= '~')
		n++;
	printf("answered %.*s\n", (int)n, buf);
	return PROBE_POSSIBLE;
}

int probe_peer(int argc, char **argv)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, type;

	if (argc < 3 || argc > 4 || strlen(argv[2]) >= sizeof(sa.sun_path))
		return PROBE_USAGE;
	type = strcmp(argv[1], "seqpacket") == 0 ? SOCK_SEQPACKET : SOCK_STREAM;
	(void)strcpy(sa.sun_path, argv[2]);
	if (strcmp(argv[0], "other") == 0 && become_other() < 0) {
		(void)probe_refused("becoming another user");
		return PROBE_USAGE;
	}
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return probe_refused("connect");
	return watch_peer(fd, argc == 4 ? argv[3] : NULL);
}
