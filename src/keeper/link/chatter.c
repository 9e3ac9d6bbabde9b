/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chatter - output of QEMU, virtiofsd and edge, copied into keeper.log up to a limit.
 *
 * How      All children inherit one pipe as stdout and stderr. The guest can make them print, so
 *          after KEEPER_LOG_BUDGET bytes the output of the run is read and dropped: a guest cannot
 *          fill the host's disk. The last line of QEMU is kept: it has the reason for its exit.
 * Trust    Input: output of possibly compromised children; control characters are replaced.
 */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/log.h"

int chatter_open(struct keeper *k)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	k->chatter_rd = fds[0];
	k->chatter_wr = fds[1];
	k->chatter_left = KEEPER_LOG_BUDGET;
	/* Children write blocking: a full pipe slows a noisy one down. */
	if (fd_set_nonblock(fds[1], false) < 0)
		return -errno;
	return loop_add(&k->loop, fds[0], EPOLLIN, (struct loop_key){.kind = EV_CHATTER});
}

static void clean_line(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != '\n' && p[i] != '\t' && (p[i] < 0x20 || p[i] == 0x7f))
			p[i] = '?';
}

/* QEMU prints the rejected argument as JSON before the reason. */
static void keep_qemu_line(struct keeper *k)
{
	const char *reason = k->said;

	for (const char *p = k->said; (p = strstr(p, "}: ")) != NULL; p += 3)
		reason = p + 3;
	(void)snprintf(
		k->qemu_said, sizeof(k->qemu_said), "%.*s", (int)sizeof(k->qemu_said) - 1, reason);
}

/* QEMU prints a line in pieces. Its lines begin with its name; other lines are skipped. */
static void note_qemu(struct keeper *k, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(k->said);

		if (p[i] != '\n') {
			if (len + 1 < sizeof(k->said)) {
				k->said[len] = p[i];
				k->said[len + 1] = '\0';
			}
			continue;
		}
		if (strncmp(k->said, "qemu", 4) == 0)
			keep_qemu_line(k);
		k->said[0] = '\0';
	}
}

static ssize_t read_some(struct keeper *k)
{
	char buf[4096];
	ssize_t n = read(k->chatter_rd, buf, sizeof(buf));
	size_t keep;

	if (n <= 0 || k->chatter_left == 0)
		return n;
	keep = MIN((size_t)n, k->chatter_left);
	clean_line(buf, keep);
	note_qemu(k, buf, keep);
	(void)!fd_write_all(STDERR_FILENO, buf, keep);
	k->chatter_left -= keep;
	if (k->chatter_left == 0)
		log_warn("the child processes have printed %d bytes: further output is dropped",
			KEEPER_LOG_BUDGET);
	return n;
}

void chatter_on_readable(struct keeper *k)
{
	(void)read_some(k);
}

void chatter_drain(struct keeper *k)
{
	/* Limited: a child may print without end. */
	for (unsigned i = 0; k->chatter_rd >= 0 && i < 64 && read_some(k) > 0; i++)
		;
}
