/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/os/ipc/vault_chan.h"
#include "host.h"
#include "src/guest/probe/verb/verb.h"

#define PATIENCE_MS 3000
#define NONE 77 /* as a part of a probe that is skipped */

/* Ways in which a process of the same user could request a value. */
enum way { WITHOUT_ROLE, AS_ADMIN, OWN_CHANNEL, N_WAYS };

static const char *const ways[N_WAYS] = {
	"without a role", "in the role that manages credentials", "on a new channel"};

/* Returns 1 with a message, 0 at end-of-file or on a timeout. */
static int next_vault(int fd, struct ipc_msg *ret)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, PATIENCE_MS) <= 0)
		return 0;
	return ipc_recv(fd, ret) == 1;
}

/* A connection after the vault's HELLO. */
static int dial_vault(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct ipc_msg msg = {.fd = -1};
	char build[CHAN_MAX_BUILD];
	int r;

	(void)strcpy(sa.sun_path, path); /* its length was checked */
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	r = next_vault(fd, &msg) && chan_get_hello(&msg, build) == 0 ? 0 : -EPROTO;
	ipc_msg_done(&msg);
	return r < 0 ? r : TAKE_FD(fd);
}

/* Finds the first credential for all sandboxes; returns their number, or -EPROTO. */
static int find_vault(int fd, struct vault_item *ret)
{
	struct ipc_msg msg = {.fd = -1};
	struct vault_item item;
	int n = 0;

	if (chan_send_plain(fd, VAULT_ADMIN, 0, -1) < 0 ||
		chan_send_plain(fd, VAULT_LIST, 1, -1) < 0)
		return -EPROTO;
	while (next_vault(fd, &msg) && msg.type == VAULT_ITEM && vault_get_item(&msg, &item) == 0) {
		if (!ret->serial && !item.meta.scope[0] && item.ref == VAULT_REF_NONE)
			*ret = item;
		n++;
	}
	n = msg.type == VAULT_DONE ? n : -EPROTO;
	ipc_msg_done(&msg);
	return n;
}

/* Sends the request, and closes every end except `ours`. */
static void ask_vault(const char *path, enum way way, const struct vault_item *item, int stream)
{
	AUTO_CLOSE int fd = dial_vault(path);
	int pair[2], said = 0;

	if (fd < 0 || ipc_pair(pair) < 0)
		return;
	/* A vault that has disconnected returns -EPIPE, as intended. */
	if (way != WITHOUT_ROLE)
		said = chan_send_plain(fd, VAULT_ADMIN, 0, -1);
	if (way == OWN_CHANNEL)
		said = vault_ask_channel(fd, "probe", pair[1]);
	said = vault_ask_release(
		way == OWN_CHANNEL ? pair[0] : fd, 2, item->meta.name, item->serial, stream);
	(void)said;
	/* its answer follows its decision */
	struct ipc_msg msg = {.fd = -1};

	(void)close(pair[1]);
	(void)next_vault(way == OWN_CHANNEL ? pair[0] : fd, &msg);
	ipc_msg_done(&msg);
	(void)close(pair[0]);
}

/* Whether one byte was received. It is not shown. */
static bool try_way(const char *path, enum way way, const struct vault_item *item)
{
	struct pollfd p = {.events = POLLIN};
	int pair[2];
	char byte;
	bool came;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	ask_vault(path, way, item, pair[1]);
	(void)close(pair[1]);
	p.fd = pair[0];
	came = poll(&p, 1, PATIENCE_MS) == 1 && read(pair[0], &byte, 1) == 1;
	(void)close(pair[0]);
	return came;
}

int probe_vault(int argc, char **argv)
{
	struct vault_item item = {.serial = 0};
	struct sockaddr_un sa;
	AUTO_CLOSE int fd = -1;
	int n;

	if (argc != 1 || strlen(argv[0]) >= sizeof(sa.sun_path))
		return PROBE_USAGE;
	fd = dial_vault(argv[0]);
	n = fd < 0 ? fd : find_vault(fd, &item);
	if (n < 0) {
		printf("the vault does not respond: %s\n", strerror(-n));
		return PROBE_USAGE;
	}
	if (!item.serial) {
		printf("the vault stores no value for all sandboxes\n");
		return NONE;
	}
	for (enum way w = 0; w < N_WAYS; w++) {
		if (!try_way(argv[0], w, &item))
			continue;
		printf("the value of %s was returned, %s\n", item.meta.name, ways[w]);
		return PROBE_POSSIBLE;
	}
	printf("%d credentials are listed; no value was returned in %d ways\n", n, N_WAYS);
	return PROBE_REFUSED;
}
