/* SPDX-License-Identifier: Apache-2.0 */
#include "opener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define FAILED 4 /* as of xdg-open: 1 is a wrong argument */

static const char *const names[] = {"sbx-open", "xdg-open", "open"};

/* ---- PID 1 ---- */

/* An existing program of that name stays. */
static int put_links(struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xasprintf("/usr/local/bin/%s", names[i]);
		int r = file_make_parents(path, err);

		if (r < 0)
			return r;
		if (symlink(OPENER_BIN, path) < 0 && errno != EEXIST)
			return err_errno(err, -errno, "cannot create %s", path);
	}
	return 0;
}

int opener_install(struct err *err)
{
	int r = file_make_parents(OPENER_BIN, err);

	if (r == 0)
		r = file_replace(OPENER_BIN, "", err);
	if (r == 0 && mount("/proc/self/exe", OPENER_BIN, NULL, MS_BIND, NULL) < 0)
		r = err_errno(err, -errno, "cannot mount " OPENER_BIN);
	return r < 0 ? r : put_links(err);
}

/* ---- the program ---- */

bool opener_is(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

	for (size_t i = 0; argc > 0 && i < ARRAY_LEN(names); i++)
		if (strcmp(slash ? slash + 1 : argv[0], names[i]) == 0)
			return true;
	return false;
}

static int read_reply(int fd, char reply[OPENER_REPLY])
{
	size_t n = 0;

	while (n < OPENER_REPLY - 1) {
		ssize_t r = read(fd, reply + n, OPENER_REPLY - 1 - n);

		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		n += (size_t)r;
	}
	reply[n] = '\0';
	reply[strcspn(reply, "\n")] = '\0';
	return reply[0] == '+' || reply[0] == '-' ? 0 : -EPROTO;
}

/* Returns 0 and the answer, + or - and a line without its end, or a negative errno. */
static int send_link(const char *text, char reply[OPENER_REPLY])
{
	const struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = OPENER_SOCKET};
	const struct timeval wait = {.tv_sec = OPENER_WAIT_S};
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	if (strlen(text) > OPENER_MAX)
		return -E2BIG;
	if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	if (r < 0)
		return r;
	return shutdown(fd, SHUT_WR) < 0 ? -errno : read_reply(fd, reply);
}

int opener_main(int argc, char **argv)
{
	char reply[OPENER_REPLY];
	int r;

	if (argc != 2 || argv[1][0] == '-') {
		(void)fprintf(stderr, "usage: %s URL\n", argv[0]);
		(void)fprintf(stderr,
			"Ask the user of this sandbox to open an http or https link in "
			"the browser of the host.\n");
		return 1;
	}
	r = send_link(argv[1], reply);
	if (r < 0) {
		(void)fprintf(
			stderr, "error: cannot pass the link to the host: %s\n", strerror(-r));
		return FAILED;
	}
	(void)fprintf(stderr, "%s%s\n", reply[0] == '+' ? "" : "error: ", reply + 1);
	return reply[0] == '+' ? 0 : FAILED;
}
