/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

int verdict_add_file(struct wr *w, const char *path)
{
	char text[128];
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), "%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 ".%lx ",
		(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
		(uint64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	wr_bytes(w, slice_from_str(text));
	return 0;
}

bool verdict_load(const char *path, const char *key, char *text, size_t size, uint64_t *ret_age_s)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[VERDICT_MAX];
	size_t n_key = strlen(key);
	struct stat st;
	uint64_t now;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	n = fd_read_full(fd, buf, sizeof(buf) - 1);
	if (n <= 0)
		return false;
	buf[n] = 0;
	if (strncmp(buf, key, n_key) != 0 || buf[n_key] != '\n')
		return false;
	now = clock_wall_ms() / 1000;
	*ret_age_s = now > (uint64_t)st.st_mtime ? now - (uint64_t)st.st_mtime : 0;
	return str_copy(text, size, buf + n_key + 1) == 0;
}

void verdict_store(const char *path, const char *key, const char *text)
{
	AUTO_FREE char *both = xasprintf("%s\n%s", key, text);

	if (strlen(both) < VERDICT_MAX)
		(void)!file_save(path, slice_from_str(both), NULL);
}
