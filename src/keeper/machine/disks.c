/* SPDX-License-Identifier: Apache-2.0 */
#include "disks.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/vm/vmm/disk.h"

bool disks_exist(const char *dir)
{
	for (enum template_disk i = 0; i < TEMPLATE_N_DISKS; i++) {
		AUTO_FREE char *top = layers_path(dir, i, 0);
		struct layers l;

		if (access(top, F_OK) == 0 || layers_find(dir, i, &l) < 0 || l.n > 0)
			return true;
	}
	return false;
}

static void disks_done(struct disks *d)
{
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		for (size_t n = 0; n < d->n_own[i]; n++)
			free(d->own[i][n]);
		d->n_own[i] = 0;
	}
	template_done(&d->template);
}

int disks_open_template(struct disks *d, const char *name, const char *id, struct err *err)
{
	int r;

	disks_done(d);
	r = template_open(id[0] ? id : name, &d->template, err);
	if (r == -ENOENT && id[0])
		return err_set(err, r,
			"template %s (%s) of this sandbox not found: get it with `sbx template load FILE` or `sbx template build`",
			name, id);
	if (r == -ENOENT)
		return err_set(err, r,
			"template %s not found: run `sbx template build` or `sbx template ls`",
			name);
	return r;
}

int disks_set_size(struct disks *d, uint64_t root, struct err *err)
{
	char want[32];
	int r = 0;

	for (size_t i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++) {
		const struct template_chain *c = &d->template.disks[i];

		r = disk_chain_size((const char *const *)c->files, c->n, &d->size[i], err);
	}
	d->is_larger = r == 0 && root > d->size[TEMPLATE_ROOT];
	if (d->is_larger)
		d->size[TEMPLATE_ROOT] = root;
	if (r < 0 || root == 0 || root >= d->size[TEMPLATE_ROOT])
		return r;
	str_from_size(root, want, sizeof(want));
	return err_set(err, -EINVAL,
		"disk size %s is smaller than that of the template: use --disk %" PRIu64
		"g or more",
		want, (uint64_t)((d->size[TEMPLATE_ROOT] + (1ull << 30) - 1) >> 30));
}

static int open_disk(struct disks *d, const char *dir, enum template_disk disk, struct err *err)
{
	const struct template_chain *below = &d->template.disks[disk];
	AUTO_FREE char *top = layers_path(dir, disk, 0);
	struct layers l;
	int r = layers_find(dir, disk, &l);

	if (r == 0 && (below->n + l.n + 1 > VMM_MAX_LAYERS || l.n >= DISKS_MAX_OWN))
		r = -EMLINK;
	if (r == -EMLINK)
		return err_set(err, r, "disk %s has too many layers", template_disk_name(disk));
	if (r < 0)
		return err_errno(err, r, "cannot read %s", dir);
	/* The backing name is for users only: the raw base needs no parsing. */
	if (access(top, F_OK) < 0)
		r = disk_make(top, below->files[0], d->size[disk], err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < l.n; i++)
		d->own[disk][d->n_own[disk]++] = layers_path(dir, disk, l.number[i]);
	d->last[disk] = layers_last(&l);
	d->own[disk][d->n_own[disk]++] = TAKE(top);
	return 0;
}

int disks_open(struct disks *d, const char *dir, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		for (size_t n = 0; n < d->n_own[i]; n++)
			free(d->own[i][n]);
		d->n_own[i] = 0;
	}
	for (size_t i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++)
		r = open_disk(d, dir, (enum template_disk)i, err);
	return r;
}

static const char *disks_top(const struct disks *d, enum template_disk disk)
{
	return d->own[disk][d->n_own[disk] - 1];
}

int disks_wait_free(const struct disks *d, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++)
		r = disk_wait_free(disks_top(d, (enum template_disk)i), DISK_FREE_MS, err);
	return r;
}

void disks_fill(const struct disks *d, struct vmm_disk ret[VMM_N_DISKS])
{
	static_assert(
		(int)TEMPLATE_ROOT == VMM_ROOT && (int)TEMPLATE_DOCKER == VMM_DOCKER, "one order");

	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		const struct template_chain *below = &d->template.disks[i];

		ret[i].n = 0;
		for (size_t n = 0; n < below->n; n++)
			ret[i].files[ret[i].n++] = below->files[n];
		for (size_t n = 0; n < d->n_own[i]; n++)
			ret[i].files[ret[i].n++] = d->own[i][n];
	}
}
