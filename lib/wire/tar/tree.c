/* SPDX-License-Identifier: Apache-2.0 */
#include "tree_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/mem.h"

void tree_inodes_done(struct tree_inodes *t)
{
	for (size_t i = 0; i < t->room; i++)
		free(t->slots[i].name);
	free(t->slots);
	*t = (struct tree_inodes){0};
}

/* The slot that holds the file, or the free one where it belongs. */
static struct tree_inode *find_slot(const struct tree_inodes *t, uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ dev * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
	size_t i = (size_t)(h >> 20) & (t->room - 1);

	while (t->slots[i].used && (t->slots[i].dev != dev || t->slots[i].ino != ino))
		i = (i + 1) & (t->room - 1);
	return &t->slots[i];
}

const struct tree_inode *tree_inodes_find(const struct tree_inodes *t, const struct stat *st)
{
	struct tree_inode *slot;

	if (t->n == 0)
		return NULL;
	slot = find_slot(t, st->st_dev, st->st_ino);
	return slot->used ? slot : NULL;
}

static void grow_tree(struct tree_inodes *t)
{
	struct tree_inodes bigger = {.room = t->room ? t->room * 2 : 256, .n = t->n};

	bigger.slots = xcalloc(bigger.room, sizeof(*bigger.slots));
	for (size_t i = 0; i < t->room; i++)
		if (t->slots[i].used)
			*find_slot(&bigger, t->slots[i].dev, t->slots[i].ino) = t->slots[i];
	free(t->slots);
	*t = bigger;
}

int tree_inodes_add(struct tree_inodes *t, const struct stat *st, const char *name)
{
	struct tree_inode *slot;

	if (t->n >= TREE_MAX_ENTRIES)
		return -E2BIG;
	if (t->n * 2 >= t->room)
		grow_tree(t);
	slot = find_slot(t, st->st_dev, st->st_ino);
	if (slot->used)
		return 0;
	*slot = (struct tree_inode){.dev = st->st_dev, .ino = st->st_ino, .used = true};
	slot->name = name ? xstrdup(name) : NULL;
	t->n++;
	return 0;
}

int tree_open_beneath(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	/* -EAGAIN means that a rename elsewhere could have confused the kernel's check. */
	for (int tries = 0; tries < 16; tries++) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

void tree_split(const char *path, char *dir, size_t size, const char **ret_base)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	if (!slash)
		(void)snprintf(dir, size, ".");
	else
		(void)snprintf(dir, size, "%.*s", n ? (int)n : 1, path);
	*ret_base = slash ? slash + 1 : path;
}

void tree_base_name(const char *path, char *buf, size_t size)
{
	size_t n = strlen(path), from;

	while (n > 1 && path[n - 1] == '/')
		n--;
	for (from = n; from > 0 && path[from - 1] != '/'; from--)
		;
	(void)snprintf(buf, size, "%.*s", (int)(n - from), path + from);
	if (!buf[0] || strcmp(buf, "..") == 0)
		(void)snprintf(buf, size, ".");
}
