/* SPDX-License-Identifier: Apache-2.0 */
#include "termname.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/attr.h"
#include "lib/base/mem.h"

static bool is_described(const char *root, const char *name)
{
	static const char *const dirs[] = {
		"/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo"};

	if (!name[0] || name[0] == '.' || strchr(name, '/'))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		AUTO_FREE char *path = xasprintf("%s%s/%c/%s", root, dirs[i], name[0], name);

		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

const char *termname_for(const char *root, const char *wanted)
{
	if (wanted && wanted[0] &&
		(is_described(root, wanted) || !is_described(root, TERMNAME_USUAL)))
		return wanted;
	return TERMNAME_USUAL;
}
