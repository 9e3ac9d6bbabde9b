/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_builtin - the guest's half of `sbx cp` and `sbx ssh` as a program, for tests without a VM.
 *
 * How      pack [-L] PATH and unpack PATH [NAME], as proto/PROTOCOL.exec says of the builtins; the
 *          same functions of lib/wire/tar that sbx-guest calls. ssh stores what stdin begins with
 *          in the files PROGRAM.0 to PROGRAM.2, and fails as a hostile guest. Installed nowhere.
 * Trust    Test program.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/wire/tar/tree.h"

static int serve_ssh(char **argv)
{
	for (int i = 0; i < 3; i++) {
		AUTO_FREE char *path = xasprintf("%s.%d", argv[0], i);
		size_t n = strtoul(argv[2 + i], NULL, 10);
		AUTO_FREE char *part = xmalloc(n);
		AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		if (fd_read_full(0, part, n) != (ssize_t)n || fd_write_all(fd, part, n) < 0)
			return 1;
	}
	(void)dprintf(2, "gone\033]0;owned\007\033[2J\nand more\n");
	return argv[5] ? 3 : 1;
}

int main(int argc, char **argv)
{
	bool follow = argc == 4 && strcmp(argv[2], "-L") == 0;
	struct err err = {0};
	int r = -1;

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc >= 5 && strcmp(argv[1], "ssh") == 0)
		return serve_ssh(argv);
	if (argc >= 3 && strcmp(argv[1], "pack") == 0)
		r = tree_pack_path(argv[follow ? 3 : 2], follow ? TREE_FOLLOW : 0, 1, NULL, &err);
	else if (argc >= 3 && strcmp(argv[1], "unpack") == 0)
		r = tree_unpack_path(0, argv[2], argc > 3 ? argv[3] : NULL, 0, NULL, &err);
	if (r < 0)
		(void)dprintf(2, "%s\n", err_text(&err, r));
	return r < 0;
}
