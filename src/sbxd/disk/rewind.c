/* SPDX-License-Identifier: Apache-2.0 */
#include "rewind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "memories.h"

#define MAX_FILES (4 * TEMPLATE_N_DISKS * (LAYERS_MAX + 1))
#define MAX_PLAN (3 * CHECKPOINTS_MAX_BYTES)

enum mark { MARK_NONE, MARK_HOLD, MARK_ASIDE, N_MARKS };
static const char *const marks[N_MARKS] = {"", "hold.", "aside."};

/* A file of a disk: root.aside.3.qcow2; number 0 is a top. */
struct disk_file {
	enum template_disk disk;
	enum mark mark;
	unsigned number;
};

struct plan {
	bool undo;
	uint64_t step;
	uint64_t memory;	 /* the record of the checkpoint, if it has memory; else 0 */
	struct checkpoints list; /* the result */
};

static char *plan_path(const char *id)
{
	return paths_get(PATHS_STATE, "sandboxes/%s/rewind", id);
}

/* ---- names ---- */

static void name_of(const struct disk_file *f, char buf[64])
{
	char number[16] = "";

	if (f->number)
		(void)snprintf(number, sizeof(number), "%u.", f->number);
	(void)snprintf(
		buf, 64, "%s.%s%sqcow2", template_disk_name(f->disk), marks[f->mark], number);
}

/* Compared with the one form that name_of writes. */
static bool parse_name(const char *name, struct disk_file *ret)
{
	for (enum template_disk d = 0; d < TEMPLATE_N_DISKS; d++)
		for (enum mark m = 0; m < N_MARKS; m++) {
			size_t stem = strlen(template_disk_name(d)), mark = strlen(marks[m]);
			char buf[64];
			unsigned n = 0;

			if (strncmp(name, template_disk_name(d), stem) != 0 || name[stem] != '.' ||
				strncmp(name + stem + 1, marks[m], mark) != 0)
				continue;
			(void)sscanf(name + stem + 1 + mark, "%4u.", &n);
			*ret = (struct disk_file){d, m, n};
			name_of(ret, buf);
			if (strcmp(buf, name) == 0)
				return true;
		}
	return false;
}

/* Read completely first: renames change what a directory returns. */
static int list_files(int dir, struct disk_file files[MAX_FILES], size_t *ret_n, struct err *err)
{
	AUTO_DIR DIR *d = dir_of(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	*ret_n = 0;
	if (!d)
		return err_errno(err, -errno, "cannot read the directory of the sandbox");
	while ((e = dir_next(d))) {
		if (*ret_n == MAX_FILES)
			return err_set(err, -EMLINK, "the sandbox has too many disk files");
		if (parse_name(e->d_name, &files[*ret_n]))
			(*ret_n)++;
	}
	return 0;
}

/* ---- steps ---- */

static int move_file(int dir, struct disk_file f, enum mark to, struct err *err)
{
	char from_name[64], to_name[64];

	name_of(&f, from_name);
	f.mark = to;
	name_of(&f, to_name);
	if (faccessat(dir, to_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(
			err, -EEXIST, "cannot move %s: %s already exists", from_name, to_name);
	if (renameat(dir, from_name, dir, to_name) < 0)
		return err_errno(err, -errno, "cannot move %s to %s", from_name, to_name);
	return 0;
}

static int remove_file(int dir, const struct disk_file *f, struct err *err)
{
	char name[64];

	name_of(f, name);
	return unlinkat(dir, name, 0) < 0 ? err_errno(err, -errno, "cannot remove %s", name) : 0;
}

static bool is_above(const struct disk_file *f, const struct checkpoints *l)
{
	return f->number == 0 || f->number > l->keep[f->disk];
}

/* What step `p->step` does with one file. */
static int step_file(int dir, const struct plan *p, const struct disk_file *f, struct err *err)
{
	if (p->step == 1 && f->mark == MARK_NONE && is_above(f, &p->list))
		return move_file(dir, *f, MARK_HOLD, err);
	if (p->step == 2 && f->mark == MARK_ASIDE)
		return p->undo ? move_file(dir, *f, MARK_NONE, err) : remove_file(dir, f, err);
	if (p->step == 3 && f->mark == MARK_HOLD)
		return move_file(dir, *f, MARK_ASIDE, err);
	return 0;
}

static int run_step(int dir, const struct plan *p, struct err *err)
{
	static struct disk_file files[MAX_FILES];
	size_t n;
	int r = list_files(dir, files, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = step_file(dir, p, &files[i], err);
	/* The names are on the disk before the plan says so. */
	if (r == 0 && fsync(dir) < 0)
		r = err_errno(err, -errno, "cannot sync the directory of the sandbox");
	return r;
}

static int save_plan(const char *id, const struct plan *p, struct err *err)
{
	AUTO_FREE char *path = plan_path(id), *text = NULL;
	json_auto_t *o =
		json_pack("{s:b,s:I,s:I,s:o}", "undo", p->undo, "step", (json_int_t)p->step,
			"memory", (json_int_t)p->memory, "list", checkpoints_encode(&p->list));

	text = json_dumps(o, JSON_COMPACT);
	return text ? file_save(path, slice_from_str(text), err) : -ENOMEM;
}

static int load_plan(const char *id, struct plan *ret, struct err *err)
{
	AUTO_FREE char *path = plan_path(id), *text = NULL;
	json_auto_t *o = NULL;
	const json_t *step, *undo, *memory;
	size_t n = 0;
	int r = file_load_no_link(path, MAX_PLAN, &text, &n, err);

	if (r < 0)
		return r;
	o = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	step = json_object_get(o, "step");
	undo = json_object_get(o, "undo");
	memory = json_object_get(o, "memory"); /* absent: written by an older sbxd */
	ret->undo = json_is_true(undo);
	ret->step = (uint64_t)json_integer_value(step);
	ret->memory = (uint64_t)json_integer_value(memory);
	if (!json_is_boolean(undo) || json_integer_value(memory) < 0 || ret->step < 1 ||
		ret->step > 3 || !checkpoints_decode(json_object_get(o, "list"), &ret->list) ||
		!ret->list.has_aside)
		return err_set(err, -EBADMSG, "invalid plan of a rewind: %s", path);
	return 0;
}

/* The disks are those of the checkpoint without it, too. */
static void place_memory(const char *id, uint64_t seq)
{
	struct err err = {0};
	int r = memories_place(id, seq, &err);

	if (r < 0)
		log_warn("the memory of the checkpoint is not used: %s", err_text(&err, r));
}

static int run_plan(const char *id, struct plan *p, struct err *err)
{
	AUTO_FREE char *dir_path = paths_get(PATHS_STATE, "sandboxes/%s", id),
		       *plan = plan_path(id);
	AUTO_CLOSE int dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = dir < 0 ? err_errno(err, -errno, "cannot open %s", dir_path) : 0;

	while (r == 0) {
		r = run_step(dir, p, err);
		if (r < 0 || p->step == 3)
			break;
		p->step++;
		r = save_plan(id, p, err);
	}
	if (r == 0 && p->memory)
		place_memory(id, p->memory);
	if (r == 0)
		r = checkpoints_save(id, &p->list, err);
	if (r == 0)
		memories_sweep(id, &p->list);
	if (r == 0 && (unlink(plan) < 0 || fsync(dir) < 0))
		r = err_errno(err, -errno, "cannot remove %s", plan);
	return r;
}

/* ---- the plan ---- */

static void add_all(struct checkpoint *to, size_t *n, const struct checkpoint *from, size_t n_from)
{
	for (size_t i = 0; i < n_from && *n < CHECKPOINTS_MAX; i++)
		to[(*n)++] = from[i];
}

static bool is_kept(const struct checkpoint *c, const unsigned keep[TEMPLATE_N_DISKS])
{
	return c->layer[TEMPLATE_ROOT] <= keep[TEMPLATE_ROOT] &&
	       c->layer[TEMPLATE_DOCKER] <= keep[TEMPLATE_DOCKER];
}

/* The list after it: entries above go aside; with undo, those aside come back. */
static void plan_list(struct plan *p, const struct checkpoints *now)
{
	struct checkpoints *l = &p->list;

	for (size_t i = 0; i < now->n; i++) {
		bool keep = is_kept(&now->v[i], l->keep);

		add_all(keep ? l->v : l->aside, keep ? &l->n : &l->n_aside, &now->v[i], 1);
	}
	if (p->undo)
		add_all(l->v, &l->n, now->aside, now->n_aside);
	l->has_aside = true;
	l->aside_ms = clock_wall_ms();
}

/* Loads the list, and finds the checkpoint in it; with NULL there must be a rewind. */
static int find_target(const char *id, const char *label, struct checkpoints *now,
	const struct checkpoint **ret, struct err *err)
{
	int r = checkpoints_load(id, now, err);

	if (r < 0)
		return r;
	*ret = label ? checkpoints_find(now, label) : NULL;
	if (label && !*ret)
		return err_set(err, -ENOENT, "no checkpoint '%s'", label);
	if (!label && !now->has_aside)
		return err_set(err, -ENOENT, "there is no rewind to undo");
	return 0;
}

int rewind_check(const char *id, const char *label, struct err *err)
{
	static struct checkpoints now;
	const struct checkpoint *to;

	return find_target(id, label, &now, &to, err);
}

int rewind_begin(const char *id, const char *label, struct err *err)
{
	static struct checkpoints now;
	static struct plan p;
	const struct checkpoint *to;
	int r = find_target(id, label, &now, &to, err);

	if (r < 0)
		return r;
	p = (struct plan){
		.undo = !label, .step = 1, .memory = label && to->has_memory ? to->seq : 0};
	memcpy(p.list.keep, label ? to->layer : now.keep, sizeof(p.list.keep));
	plan_list(&p, &now);
	r = save_plan(id, &p, err);
	return r < 0 ? r : run_plan(id, &p, err);
}

int rewind_settle(const char *id, struct err *err)
{
	static struct plan p;
	int r;

	p = (struct plan){0};
	r = load_plan(id, &p, err);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : run_plan(id, &p, err);
}
