/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/client/cli/search_path.h"

bool ssh_exec_has(const char *name)
{
	AUTO_FREE char *path = search_path_make(getenv("PATH"));

	for (char *save = NULL, *dir = strtok_r(path, ":", &save); dir;
		dir = strtok_r(NULL, ":", &save)) {
		AUTO_FREE char *program = xasprintf("%s/%s", dir, name);

		if (access(program, X_OK) == 0)
			return true;
	}
	return false;
}

int ssh_exec(const char *const *argv, struct problem *p)
{
	AUTO_FREE char *path = search_path_make(getenv("PATH"));

	for (char *save = NULL, *dir = strtok_r(path, ":", &save); dir;
		dir = strtok_r(NULL, ":", &save)) {
		AUTO_FREE char *program = xasprintf("%s/%s", dir, argv[0]);

		(void)execv(program, (char *const *)argv);
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			return err_errno(&p->err, -errno, "cannot run %s", program);
	}
	return err_set(&p->err, -ENOENT, "program %s not found", argv[0]);
}
