/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dumpable - loaded into sbxd by LD_PRELOAD, so that a test can search its memory: it then leaves
 * itself open to the user's other processes. Everything else of prctl is passed on.
 */
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...)
{
	unsigned long a[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, unsigned long);
	va_end(args);
	if (option == PR_SET_DUMPABLE)
		return 0;
	return (int)syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}
