/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations of guest root in a real VM against a guarded workspace, for tests/long/guard.
 *
 * usage:  guard_random GUEST [SEED [BATCHES [SEQUENCES]]]
 *
 * Each batch has a directory of its own, made by the host. After it the directory is compared with
 * what it was: what guard_oracle.c says is refused has not changed, a checked file has no key that
 * is refused, a fixed file has its only content, and a reported file that differs is in the list.
 * A batch is SEQUENCES of ten calls in each of two processes. Needs SBX_TEST_KERNEL.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guard_oracle.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "vm_rig.h"

#define MAX_ENTRIES 4096
#define MAX_OPEN 32

struct entry {
	char *path; /* in the directory of the batch */
	char *text; /* inode, mode, content */
	enum oracle_mode mode;
};

static struct entry before[MAX_ENTRIES], now[MAX_ENTRIES];
static size_t n_before, n_now;
static char top[] = "/tmp/sbx-guard-random-XXXXXX", batch[128];
static unsigned n_failed, n_looks;
static char *dirty;

static const struct {
	const char *path, *content; /* NULL: a directory; content "-> X": a link to X */
} hosts[] = {{".git", NULL}, {".git/hooks", NULL}, {".git/modules", NULL}, {".claude", NULL},
	{"a", NULL}, {"a/b", NULL}, {"a/b/.git", NULL}, {"b", NULL}, {"b/a", NULL},
	{".git/modules/a", NULL}, {".git/config", "[user]\n\tname = host\n"},
	{".git/HEAD", "ref: refs/heads/main\n"}, {".git/hooks/x", "host's hook"},
	{".git/modules/a/config", "[user]\n\tname = sub\n"}, {".claude/x", "host's"},
	{".envrc", "host's"}, {"a/b/.git/config", "[user]\n\tname = b\n"}, {"Makefile", "all:\n"},
	{"b/Makefile", "b:\n"}, {"a/x", "plain"}, {"b/a/.git", "-> ../../a"}, {"x", "-> a"}};

static void wrong(const char *what, const char *path)
{
	printf("FAIL %s: %s/%s\n", what, batch, path);
	n_failed++;
}

static void make_batch(const char *number)
{
	(void)snprintf(batch, sizeof(batch), "%s/ws/t%s", top, number);
	if (mkdir(batch, 0755) < 0)
		abort();
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", batch, hosts[i].path);
		const char *text = hosts[i].content;
		int r = !text			 ? mkdir(path, 0755)
			: str_starts(text, "->") ? symlink(text + 3, path)
						 : file_save(path, slice_from_str(text), NULL);

		if (r < 0)
			abort();
	}
}

/* ---- what there is ---- */

static char *text_of(const char *path, const struct stat *st)
{
	char content[64] = "";
	AUTO_CLOSE int fd = -1;

	if (S_ISLNK(st->st_mode))
		(void)!readlink(path, content, sizeof(content) - 1);
	else if (S_ISREG(st->st_mode))
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		(void)!read(fd, content, sizeof(content) - 1);
	return xasprintf("%lu %o %s", (unsigned long)st->st_ino, st->st_mode, content);
}

static int add_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const char *rel = path + strlen(batch) + 1;
	struct entry *e = &now[n_now];

	(void)at;
	if (type == FTW_D || strlen(path) <= strlen(batch))
		return 0;
	*e = (struct entry){.mode = oracle_mode(rel)};
	if (S_ISLNK(st->st_mode) && oracle_leads(rel))
		e->mode = ORACLE_REFUSED;
	if (e->mode == ORACLE_FREE)
		return 0;
	if (++n_now == MAX_ENTRIES)
		abort();
	e->path = xstrdup(rel);
	e->text = text_of(path, st);
	return 0;
}

static void forget(struct entry *list, size_t *n)
{
	for (size_t i = 0; i < *n; i++) {
		free(list[i].path);
		free(list[i].text);
	}
	*n = 0;
}

static void collect(void)
{
	forget(now, &n_now);
	if (nftw(batch, add_entry, MAX_OPEN, FTW_PHYS) < 0)
		abort();
}

/* ---- comparing ---- */

static const struct entry *find(const struct entry *list, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].path, path) == 0)
			return &list[i];
	return NULL;
}

static bool is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return slash && strcmp(slash + 1, name) == 0;
}

static bool is_listed(const char *path)
{
	AUTO_FREE char *row = xasprintf(" %s/%s ", strrchr(batch, '/') + 1, path);

	return dirty && strstr(dirty, row);
}

static void compare(const struct entry *e)
{
	const struct entry *old = find(before, n_before, e->path);
	bool same = old && strcmp(old->text, e->text) == 0;

	if (e->mode == ORACLE_REPORTED) {
		if (!same && !is_listed(e->path))
			wrong("a change was not recorded", e->path);
	} else if (is_named(e->path, "config")) {
		if (strstr(e->text, "fsmonitor"))
			wrong("a checked file has a refused key", e->path);
	} else if (is_named(e->path, "commondir")) {
		if (!str_ends(e->text, " ../..\n"))
			wrong("a fixed file has another content", e->path);
	} else if (!same) {
		wrong(old ? "a refused name was changed" : "a refused name was made", e->path);
	}
}

static void look(void)
{
	AUTO_FREE char *list = xasprintf("%s/guard/dirty", top);
	size_t n;

	free(dirty);
	dirty = NULL;
	if (file_load(list, DIRTY_MAX_BYTES, &dirty, &n, NULL) < 0)
		dirty = NULL;
	collect();
	for (size_t i = 0; i < n_now; i++)
		compare(&now[i]);
	for (size_t i = 0; i < n_before; i++)
		if (!find(now, n_now, before[i].path) &&
			(before[i].mode == ORACLE_REFUSED || !is_listed(before[i].path)))
			wrong("a name is gone", before[i].path);
	(void)unlink(list); /* the guard begins a new one */
	n_looks++;
}

static void host_step(const char *step)
{
	if (str_starts(step, "look ")) {
		look();
		return;
	}
	make_batch(step + strlen("make "));
	collect();
	forget(before, &n_before);
	memcpy(before, now, sizeof(now));
	n_before = n_now;
	n_now = 0;
}

static bool on_line(int con, const char *line)
{
	if (str_starts(line, "host ")) {
		host_step(line + 5);
		if (fd_write_all(con, "\n", 1) < 0)
			return true;
	} else if (*line) {
		printf("%s\n", line);
		n_failed += str_starts(line, "FAIL");
	}
	return strcmp(line, "end") == 0;
}

/* ---- the VM ---- */

static int run_vm(const char *kernel, const char *guest, const char *words)
{
	AUTO_AUTORUN struct autorun_list *list = NULL;
	AUTO_FREE char *ws = xasprintf("%s/ws", top);
	AUTO_FREE char *initrd = xasprintf("%s/initrd", top);
	AUTO_FREE char *guard = xasprintf("%s/guard", top);
	AUTO_CLOSE int guard_fd = -1;
	const struct share_mount mount = {.host = ws, .guest = "/work"};
	struct err err = {0};
	int r;

	if (autorun_parse(oracle_rows, strlen(oracle_rows), &list, NULL) < 0 ||
		mkdir(ws, 0755) < 0 || mkdir(guard, 0700) < 0)
		abort();
	guard_fd = open(guard, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	vm_rig_make_initrd(initrd, guest);
	const struct share_config cfg = {.mounts = &mount,
		.n_mounts = 1,
		.guard = {getenv("SBX_GUARD_OFF") ? GUARD_OFF : GUARD_DEFAULT, list, guard_fd, -1},
		.program = getenv("SBX_TEST_VIRTIOFSD"),
		.log_fd = STDERR_FILENO};
	r = vm_rig_run(&cfg, kernel, initrd, words, on_line, &err);
	if (r < 0)
		printf("FAIL %s\n", err_text(&err, r));
	return r;
}

int main(int argc, char **argv)
{
	const char *kernel = getenv("SBX_TEST_KERNEL");
	const char *seed = argc > 2 ? argv[2] : "1", *batches = argc > 3 ? argv[3] : "4";
	AUTO_FREE char *words = xasprintf("%s %s %s", seed, batches, argc > 4 ? argv[4] : "25");
	AUTO_FREE char *remove = NULL;
	int r;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (!kernel || argc < 2 || access(kernel, R_OK) < 0) {
		printf("skipped: SBX_TEST_KERNEL does not name a kernel\n");
		return 77;
	}
	if (!mkdtemp(top))
		return 1;
	r = run_vm(kernel, argv[1], words);
	remove = xasprintf("chmod -R u+rwX '%s'; rm -rf '%s'", top, top);
	if (system(remove) != 0)
		printf("# left behind: %s\n", top);
	printf("seed %s: %u looks, %u failed%s\n", seed, n_looks, n_failed,
		r < 0 ? ", not complete" : "");
	return r < 0 || n_failed || n_looks != strtoul(batches, NULL, 10) ? 1 : 0;
}
