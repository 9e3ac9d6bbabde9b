#include "ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static int make(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = posix_fallocate(fd, 0, BALLAST_BYTES);
	if (r != 0)
		(void)unlink(path);
	return -r;
}

void ballast_look(const char *dir, bool is_needed)
{
	AUTO_FREE char *path = xasprintf("%s/ballast", dir);
	struct statfs st;
	uint64_t free;
	int r;

	if (statfs(dir, &st) < 0)
		return;
	free = (uint64_t)st.f_bavail * (uint64_t)st.f_bsize;
	if (is_needed && free < BALLAST_LOW && unlink(path) == 0)
		log_warn("the disk is full: the space that was kept for it is given up");
	if (free < BALLAST_ENOUGH || access(path, F_OK) == 0)
		return;
	r = make(path);
	if (r < 0)
		log_warn("no space can be kept for a full disk: %s", strerror(-r));
}
