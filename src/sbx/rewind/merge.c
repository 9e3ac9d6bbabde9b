/* SPDX-License-Identifier: Apache-2.0 */
#include "merge.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/vm/template/layers_merge.h"

#define LOCK_MS 5000

static int merge_disks(
	const json_t *answer, const struct template *t, const char *dir, struct problem *p)
{
	const json_t *merge = json_object_get(answer, "merge"), *number;
	int r = 0;

	for (enum template_disk d = 0; r == 0 && d < TEMPLATE_N_DISKS; d++) {
		size_t i;

		json_array_foreach (json_object_get(merge, template_disk_name(d)), i, number) {
			ui_busy("merging layers");
			if (r == 0)
				r = layers_merge(
					t, dir, d, (unsigned)json_integer_value(number), &p->err);
		}
	}
	return r;
}

int merge_layers(const json_t *answer, struct problem *p)
{
	const char *dir = api_str(answer, "dir"), *id = api_str(answer, "template_id");
	AUTO_FREE char *lock = xasprintf("%s/lock", dir);
	AUTO_TEMPLATE struct template t = {0};
	AUTO_CLOSE int fd = -1;
	int r = template_open(id[0] ? id : api_str(answer, "template"), &t, &p->err);

	if (r < 0)
		return r;
	fd = file_lock(lock, LOCK_MS, &p->err);
	if (fd == -EBUSY)
		return err_set(&p->err, fd,
			"the checkpoint is removed, but its layers are not merged: the sandbox is in use");
	return fd < 0 ? fd : merge_disks(answer, &t, dir, p);
}
