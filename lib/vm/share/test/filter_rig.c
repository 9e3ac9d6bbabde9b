/* SPDX-License-Identifier: Apache-2.0 */
#include "filter_rig.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "lib/os/jail/filter.h"

void filter_rig_enter(int in, int out, void *order, size_t n)
{
	struct filter f = {0};
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (filter_make_notify(&(struct filter_notify){.changes = true}, &f, NULL) < 0)
		_exit(1);
	fd = filter_install(&f, true);
	if (fd < 0 || write(out, &fd, sizeof(fd)) != sizeof(fd) ||
		read(in, order, n) != (ssize_t)n || close(fd) < 0)
		_exit(1);
}
