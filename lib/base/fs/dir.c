/* SPDX-License-Identifier: Apache-2.0 */
#include "dir.h"

#include <errno.h>
#include <string.h>
#include "fd.h"

void dir_close(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

struct dirent *dir_next(DIR *d)
{
	struct dirent *e;

	errno = 0;
	do {
		e = d ? readdir(d) : NULL;
	} while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
	return e;
}

DIR *dir_of(int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		fd_close(&fd);
	return d;
}
