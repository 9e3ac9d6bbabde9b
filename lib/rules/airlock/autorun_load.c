/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from the reader, which does no I/O. */
#include "autorun.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"

int autorun_load(struct autorun_list **ret, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_SHARE, "airlock/autorun.list");
	AUTO_FREE char *text = NULL;
	size_t n;
	int r = file_load(path, AUTORUN_MAX_TEXT, &text, &n, err);

	if (r == 0)
		r = autorun_parse(text, n, ret, err);
	return r < 0 ? err_wrap(err, r, "cannot read %s", path) : 0;
}
