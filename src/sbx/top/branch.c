/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in sbx. Reads one file that a guest can write. */
#include "branch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"

#define PREFIX "ref: refs/heads/"

static int open_head(const char *work)
{
	AUTO_CLOSE int top = open(work, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int git = -1;

	if (top >= 0)
		git = openat(top, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return git < 0 ? -1
		       : openat(git, "HEAD",
				 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void read_head(const char *work, char ret[BRANCH_MAX])
{
	char text[sizeof(PREFIX) + BRANCH_MAX];
	AUTO_CLOSE int fd = open_head(work);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return;
	if (!str_starts(text, PREFIX) || str_copy(ret, BRANCH_MAX, text + strlen(PREFIX)) < 0)
		ret[0] = '\0';
}

void branch_of(const json_t *sandbox, char ret[BRANCH_MAX])
{
	const json_t *clone = json_object_get(sandbox, "clone"),
		     *first = json_array_get(json_object_get(sandbox, "workspaces"), 0);

	ret[0] = '\0';
	if (clone)
		(void)snprintf(ret, BRANCH_MAX, "%s", api_str(clone, "branch"));
	else if (first)
		read_head(api_str(first, "host"), ret);
}
