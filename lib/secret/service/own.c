/* SPDX-License-Identifier: Apache-2.0 */
#include "own.h"

#include <errno.h>
#include <string.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/slice.h"

int own_load(const char *dir, char **ret, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" OWN_FILE, dir), *text = NULL;
	size_t n = 0;
	int r = file_load(path, OWN_MAX_BYTES, &text, &n, err);

	if (r == 0 && memchr(text, '\0', n))
		r = err_set(err, -EBADMSG, "%s is corrupt", path);
	*ret = r == 0 ? TAKE(text) : xstrdup("");
	return r == -ENOENT ? 0 : r;
}

bool own_has(const char *list, const char *service)
{
	struct slice rest = slice_from_str(list);

	while (rest.n)
		if (slice_eq_str(slice_next_line(&rest), service))
			return true;
	return false;
}

char *own_change(const char *list, const char *service, bool is_own)
{
	struct slice rest = slice_from_str(list);
	char *text = xstrdup("");

	while (rest.n) {
		struct slice line = slice_next_line(&rest);
		AUTO_FREE char *old = text;

		text = line.n && !slice_eq_str(line, service)
			       ? xasprintf("%s%.*s\n", old, (int)line.n, (const char *)line.p)
			       : TAKE(old);
	}
	if (is_own) {
		AUTO_FREE char *old = text;

		text = xasprintf("%s%s\n", old, service);
	}
	return text;
}

int own_save(const char *dir, const char *list, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" OWN_FILE, dir);

	if (strlen(list) > OWN_MAX_BYTES)
		return err_set(err, -E2BIG, "too many services in %s", path);
	return file_save(path, slice_from_str(list), err);
}
