/* SPDX-License-Identifier: Apache-2.0 */
#include "park_child.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "src/guest/docker/docker.h"
#include "src/guest/setup/setup.h"
#include "park_freeze.h"
#include "park_list.h"
#include "park_mounts.h"
#include "park_reseat.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/wire/guestapi/guest_ctl.h"

#define SOCK_FD 3

static void say_child(int sock, bool ok, const char *text)
{
	uint8_t buf[GUEST_MAX_TEXT + 64];
	struct wr wr = wr_init(buf, sizeof(buf));

	if (guest_put_reply(&wr, ok, text) < 0 || send(sock, buf, wr.n, MSG_NOSIGNAL) < 0)
		log_warn("cannot report the state of the programs to PID 1");
}

/* Unwritten data is in memory only: if the snapshot is rejected, only the disks remain. */
static void sync_at(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)syncfs(fd);
}

static void report_child(const struct park_list *l, char *text, size_t n)
{
	if (l->lost.n == 0)
		text[0] = '\0';
	else
		(void)snprintf(text, n, "%u not restored: %s", l->lost.n, l->lost.text);
}

static void wake_child(struct park_list *l)
{
	struct park_reseat rs;

	park_mounts_restore(l);
	park_reseat_open(l);
	park_reseat_hold(&rs, l);
	park_thaw_all();
	park_reseat_run(&rs);
}

void park_child_run(int sock, const pid_t *skip)
{
	static struct park_list list;
	char text[GUEST_MAX_TEXT];
	struct err err = {0};
	char word;
	int r;

	signals_reset();
	/* None of PID 1's descriptors may stay open here, neither ports nor pipes of programs. */
	if (dup2(sock, SOCK_FD) < 0)
		_exit(1);
	(void)close_range(SOCK_FD + 1, ~0u, 0);
	sock = SOCK_FD;
	(void)prctl(PR_SET_NAME, "sbx-guest-park");
	(void)!chdir("/");
	r = park_freeze_all(&err);
	if (r == 0) {
		r = park_list_read(&list, skip, &err);
		if (r < 0)
			park_thaw_all();
	}
	if (r < 0) {
		say_child(sock, false, err_text(&err, r));
		_exit(1);
	}
	sync_at(MOUNTS_SHARE);
	sync_at("/");
	sync_at(DOCKER_DATA);
	park_mounts_drop(&list);
	report_child(&list, text, sizeof(text));
	say_child(sock, true, text);
	/* If PID 1 closes its side, the VM is shutting down. */
	if (recv(sock, &word, 1, 0) != 1)
		_exit(1);
	(void)alarm(PARK_WAKE_S);
	wake_child(&list);
	report_child(&list, text, sizeof(text));
	say_child(sock, true, text);
	_exit(0);
}
