/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_builtin - the guest's half of `sbx cp` as a program, for tests without a VM.
 *
 * How      pack [-L] PATH and unpack PATH [NAME], as proto/PROTOCOL.exec says of the builtins; the
 *          same functions of lib/wire/tar that sbx-guest calls. Installed nowhere.
 * Trust    Test program.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/wire/tar/tree.h"

int main(int argc, char **argv)
{
	bool follow = argc == 4 && strcmp(argv[2], "-L") == 0;
	struct err err = {0};
	int r = -1;

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc >= 3 && strcmp(argv[1], "pack") == 0)
		r = tree_pack_path(argv[follow ? 3 : 2], follow ? TREE_FOLLOW : 0, 1, NULL, &err);
	else if (argc >= 3 && strcmp(argv[1], "unpack") == 0)
		r = tree_unpack_path(0, argv[2], argc > 3 ? argv[3] : NULL, 0, NULL, &err);
	if (r < 0)
		(void)dprintf(2, "%s\n", err_text(&err, r));
	return r < 0;
}
