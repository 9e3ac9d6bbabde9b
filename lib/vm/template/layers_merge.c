/* SPDX-License-Identifier: Apache-2.0 */
#include "layers_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/vmm/disk.h"
#include "lib/vm/vmm/vmm.h"

/* The files below a layer: those of the template and lower layers. */
struct below {
	char *own[LAYERS_MAX];
	size_t n_own;
	const char *files[VMM_MAX_LAYERS];
	size_t n;
};

static void below_done(struct below *b)
{
	for (size_t i = 0; i < b->n_own; i++)
		free(b->own[i]);
}

static int find_below(const struct template *t, const char *dir, enum template_disk disk,
	const struct layers *l, size_t at, struct below *ret)
{
	if (t->disks[disk].n + at + 2 > VMM_MAX_LAYERS)
		return -EMLINK;
	for (size_t i = 0; i < t->disks[disk].n; i++)
		ret->files[ret->n++] = t->disks[disk].files[i];
	for (size_t i = 0; i < at; i++) {
		ret->own[ret->n_own] = layers_path(dir, disk, l->number[i]);
		ret->files[ret->n++] = ret->own[ret->n_own++];
	}
	return 0;
}

/* Both on the disk before a name changes. */
static int sync_file(const char *path, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 || fsync(fd) < 0 ? err_errno(err, -errno, "cannot sync %s", path) : 0;
}

/* out: a copy of the lower layer, with the upper one in it. */
static int merge_files(const struct below *b, const char *lower, const char *upper, const char *out,
	const char *copy, struct err *err)
{
	int r;

	(void)unlink(out);
	(void)unlink(copy);
	r = layers_copy(lower, out, err);
	if (r == 0)
		r = layers_copy(upper, copy, err);
	if (r == 0)
		r = disk_merge(b->files, b->n, out, copy, err);
	if (r == 0)
		r = sync_file(out, err);
	(void)unlink(copy);
	if (r < 0)
		(void)unlink(out);
	return r;
}

/* The layer `at` and the next one. */
static int merge_pair(const struct template *t, const char *dir, enum template_disk disk,
	const struct layers *l, size_t at, struct err *err)
{
	CLEANUP(below_done) struct below b = {0};
	AUTO_FREE char *lower = layers_path(dir, disk, l->number[at]),
		       *upper = layers_path(dir, disk, l->number[at + 1]),
		       *out = xasprintf("%s.merged", upper), *copy = xasprintf("%s.copy", upper);
	int r = find_below(t, dir, disk, l, at, &b);

	if (r < 0)
		return err_set(err, r, "disk %s has too many layers", template_disk_name(disk));
	r = merge_files(&b, lower, upper, out, copy, err);
	if (r == 0 && rename(out, upper) < 0)
		r = err_errno(err, -errno, "cannot replace %s", upper);
	if (r == 0)
		r = sync_file(dir, err);
	/* Nothing reads it any more: the next layer has all of it. */
	if (r == 0 && unlink(lower) < 0)
		r = err_errno(err, -errno, "cannot remove %s", lower);
	return r;
}

int layers_merge(const struct template *t, const char *dir, enum template_disk disk,
	unsigned number, struct err *err)
{
	struct layers l;
	int r = layers_find(dir, disk, &l);

	for (size_t i = 0; r == 0 && i + 1 < l.n; i++)
		if (l.number[i] == number)
			return merge_pair(t, dir, disk, &l, i, err);
	return r < 0 ? err_errno(err, r, "cannot read %s", dir) : 0;
}
