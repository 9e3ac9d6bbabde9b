/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_rig.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <termios.h>

int guest_rig_start(void)
{
	struct termios raw;
	int tty;

	(void)mkdir("/dev", 0755);
	(void)mkdir("/mnt", 0755);
	(void)mkdir("/proc", 0755);
	(void)mount("dev", "/dev", "devtmpfs", 0, NULL);
	(void)mount("proc", "/proc", "proc", 0, NULL);
	tty = open("/dev/ttyS0", O_RDWR | O_NOCTTY);
	(void)tcgetattr(tty, &raw);
	cfmakeraw(&raw);
	(void)tcsetattr(tty, TCSANOW, &raw);
	return tty;
}
