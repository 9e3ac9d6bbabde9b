/* SPDX-License-Identifier: Apache-2.0 */
#include "merge.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/spec/spec.h"
#include "lib/vm/template/layers_merge.h"

/* The numbers of one disk. */
static int merge_list(const struct template *t, const char *dir, enum template_disk disk,
	const char *list, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && list && *list && i < LAYERS_MAX; i++) {
		char *end = NULL;
		unsigned long number = strtoul(list, &end, 10);

		if (end == list || number == 0 || number > LAYERS_MAX_NUMBER ||
			(*end && *end != ','))
			return err_set(err, -EINVAL, "invalid list of layers");
		r = layers_merge(t, dir, disk, (unsigned)number, err);
		list = *end ? end + 1 : end;
	}
	return r;
}

static int merge_all(
	const char *id, const char *dir, const char *const lists[TEMPLATE_N_DISKS], struct err *err)
{
	AUTO_FREE char *path = spec_path(id);
	AUTO_TEMPLATE struct template t = {0};
	AUTO_SPEC struct spec spec = {0};
	int r = spec_load(path, &spec, err);

	if (r == 0)
		r = template_open(spec.template_id[0] ? spec.template_id : spec.template, &t, err);
	for (enum template_disk d = 0; r == 0 && d < TEMPLATE_N_DISKS; d++)
		r = merge_list(&t, dir, d, lists[d], err);
	return r;
}

int merge_main(const char *id, const char *root, const char *docker)
{
	const char *const lists[TEMPLATE_N_DISKS] = {
		[TEMPLATE_ROOT] = root, [TEMPLATE_DOCKER] = docker};
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id),
		       *path = xasprintf("%s/lock", dir);
	AUTO_CLOSE int fd = -1;
	struct err err = {0};
	int r;

	/* The next sbxd does not know this process. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!nice(19);
	fd = file_lock(path, 0, &err);
	if (fd == -EBUSY)
		return MERGE_EXIT_BUSY;
	r = fd < 0 ? fd : merge_all(id, dir, lists, &err);
	if (r < 0)
		log_error("cannot merge layers of %s: %s", id, err_text(&err, r));
	return r < 0;
}
