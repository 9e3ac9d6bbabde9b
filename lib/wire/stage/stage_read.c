/* SPDX-License-Identifier: Apache-2.0 */
#include "stage_read.h"

#include <errno.h>

static const struct {
	char letter;
	enum tar_type type;
} ops[STAGE_N_OPS] = {
	[STAGE_FILE] = {'f', TAR_FILE},
	[STAGE_LINK] = {'l', TAR_SYMLINK},
	[STAGE_DIR] = {'d', TAR_DIR},
	[STAGE_OPAQUE] = {'o', TAR_DIR},
	[STAGE_DELETE] = {'x', TAR_FILE},
	[STAGE_MOVING] = {'m', TAR_FILE},
	[STAGE_SPECIAL] = {'s', TAR_FILE},
};

char stage_op_letter(enum stage_op op)
{
	return ops[op].letter;
}

void stage_reader_init(struct stage_reader *r)
{
	r->n_entries = r->n_bytes = 0;
	tar_reader_init(&r->tar);
}

static int find_op(const struct tar_entry *e, enum stage_op *ret)
{
	for (size_t i = 0; i < STAGE_N_OPS; i++)
		if (e->name[0] == ops[i].letter && e->type == ops[i].type) {
			*ret = (enum stage_op)i;
			return 0;
		}
	return -EBADMSG;
}

/* The path in the workspace, without a slash at the end, which some writers of tar append. */
static bool is_path_ok(char *path)
{
	size_t n = strlen(path), depth = 0;

	if (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	if (n == 0 || path[n - 1] == '/')
		return false;
	for (const char *p = path; *p;) {
		size_t k = strcspn(p, "/");

		if (k == 0 || k > 255 || (k == 1 && p[0] == '.') ||
			(k == 2 && p[0] == '.' && p[1] == '.') ||
			strncmp(p, STAGE_TEMP, strlen(STAGE_TEMP)) == 0 ||
			++depth > STAGE_MAX_DEPTH)
			return false;
		p += k + (p[k] == '/');
	}
	return true;
}

static int take_item(struct stage_reader *r, struct err *err)
{
	struct tar_entry *e = &r->tar.entry;
	struct stage_item *i = &r->item;
	bool is_dir, is_root;

	*i = (struct stage_item){.path = e->name + 2, .link = e->link, .size = e->size};
	if (find_op(e, &i->op) < 0 || e->name[1] != '/')
		return err_set(err, -EBADMSG, "the sandbox sent an unknown kind of change");
	is_dir = i->op == STAGE_DIR || i->op == STAGE_OPAQUE;
	is_root = is_dir && (strcmp(i->path, ".") == 0 || strcmp(i->path, "./") == 0);
	if (is_root)
		i->path = ".";
	else if (!is_path_ok(e->name + 2))
		return err_set(err, -EBADMSG, "the sandbox sent an invalid path");
	if (i->op != STAGE_FILE && i->size > 0)
		return err_set(err, -EBADMSG, "the sandbox sent a change with a wrong size");
	if (i->op == STAGE_LINK && !i->link[0])
		return err_set(err, -EBADMSG, "the sandbox sent a link without a target");
	i->mode = (e->mode & 0777) | (is_dir ? 0700 : 0400);
	return TAR_EV_ENTRY;
}

static int count_item(struct stage_reader *r, struct err *err)
{
	if (++r->n_entries > STAGE_MAX_ENTRIES)
		return err_set(err, -E2BIG, "the sandbox has more than %u changed files",
			STAGE_MAX_ENTRIES);
	if (r->item.size > STAGE_MAX_BYTES - r->n_bytes)
		return err_set(err, -E2BIG, "the changed files are larger than 2 GiB");
	r->n_bytes += r->item.size;
	return TAR_EV_ENTRY;
}

int stage_read(struct stage_reader *r, struct slice *in, struct err *err)
{
	int ev = tar_read(&r->tar, in, err);

	if (ev == TAR_EV_DATA)
		r->data = r->tar.data;
	if (ev != TAR_EV_ENTRY)
		return ev;
	ev = take_item(r, err);
	return ev < 0 ? ev : count_item(r, err);
}
