/* SPDX-License-Identifier: Apache-2.0 */
#include "search_path.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"

/* The sticky bit keeps others from replacing a directory of root's, as in /tmp. */
static bool is_roots(const char *dir)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 &&
	       (!(st.st_mode & 022) || (st.st_mode & S_ISVTX));
}

/* The target of the entry, on the heap; NULL if another user than root can change it. */
static char *find_safe(const char *entry)
{
	AUTO_FREE char *real = entry[0] == '/' ? realpath(entry, NULL) : NULL;
	AUTO_FREE char *above = real ? xstrdup(real) : NULL;
	char *cut = above ? above + strlen(above) : NULL;

	for (; cut && cut != above; cut = strrchr(above, '/')) {
		*cut = '\0';
		if (!is_roots(above))
			return NULL;
	}
	return above && is_roots("/") ? TAKE(real) : NULL;
}

char *search_path_make(const char *path)
{
	AUTO_FREE char *copy = xstrdup(path ? path : "");
	char *all = xstrdup(""), *rest = copy, *entry, *whole;

	while ((entry = strsep(&rest, ":"))) {
		AUTO_FREE char *safe = find_safe(entry), *old = all;

		all = safe ? xasprintf("%s%s:", old, safe) : xstrdup(old);
	}
	whole = xasprintf("%s" SEARCH_PATH_DEBIAN, all);
	free(all);
	return whole;
}
