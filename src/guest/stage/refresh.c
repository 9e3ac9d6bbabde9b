/* SPDX-License-Identifier: Apache-2.0 */
#include "refresh.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "src/guest/base/base.h"

/* Not mount(2): it would wake everybody who watches the list of mounts. */
static int forget_entries(const char *path)
{
	AUTO_CLOSE int fd = fspick(AT_FDCWD, path, FSPICK_CLOEXEC | FSPICK_NO_AUTOMOUNT);

	if (fd < 0 || fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		return -errno;
	return 0;
}

void refresh_start(const char *merged)
{
	if (fork() != 0)
		return;
	signals_reset();
	(void)close_range(3, ~0u, 0);
	(void)prctl(PR_SET_NAME, "sbx-refresh");
	/* EINVAL: the mount was removed. */
	for (int r = 0; r != -EINVAL && r != -ENOENT; r = forget_entries(merged))
		(void)usleep(REFRESH_MS * 1000);
	_exit(0);
}

int refresh_now(const char *merged, const char *lower, struct err *err)
{
	int r = forget_entries(merged);

	if (r == 0)
		r = forget_entries(lower); /* after the overlay: its entries were in use */
	return r < 0 ? err_errno(err, r, "cannot refresh the staged workspace") : 0;
}
