/* SPDX-License-Identifier: Apache-2.0 */
#include "stage_rig.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/wire/stage/stage_pack.h"

uint64_t rig_random(struct rig *r, uint64_t below)
{
	r->seed ^= r->seed << 13;
	r->seed ^= r->seed >> 7;
	r->seed ^= r->seed << 17;
	return (r->seed >> 11) % below;
}

char *rig_path(const struct rig *r, const char *name)
{
	return xasprintf("%s/%s", r->top, name);
}

/* ---- snapshots ---- */

static void print_leaf(FILE *f, int dir, const char *name, const struct stat *st)
{
	char text[PATH_MAX] = "", hex[65];
	struct look l;
	ssize_t n;

	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(dir, name, text, sizeof(text) - 1);
		assert(n >= 0);
		(void)fprintf(f, "l %s\n", text);
		return;
	}
	assert(look_in(dir, name, true, &l, NULL) == 0);
	hex_print(l.sha, sizeof(l.sha), hex);
	(void)fprintf(f, "f %03o %s\n", (unsigned)st->st_mode & 0777, hex);
}

static void print_tree(FILE *f, int dir, const char *path, bool temps)
{
	struct dirent **list = NULL;
	int n = scandirat(dir, ".", &list, NULL, alphasort);

	assert(n >= 0);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		AUTO_FREE char *child = xasprintf("%s/%s", path, name);
		struct stat st;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
			(!temps && strncmp(name, STAGE_TEMP, strlen(STAGE_TEMP)) == 0)) {
			free(list[i]);
			continue;
		}
		assert(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		(void)fprintf(f, "%s ", child);
		if (S_ISDIR(st.st_mode)) {
			AUTO_CLOSE int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			(void)fprintf(f, "d %03o\n", (unsigned)st.st_mode & 0777);
			print_tree(f, sub, child, temps);
		} else {
			print_leaf(f, dir, name, &st);
		}
		free(list[i]);
	}
	free(list);
}

char *rig_snapshot(const char *dir, bool temps)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	struct stat st;

	assert(fd >= 0 && f && fstat(fd, &st) == 0);
	(void)fprintf(f, ". d %03o\n", (unsigned)st.st_mode & 0777);
	print_tree(f, fd, "", temps);
	assert(fclose(f) == 0);
	return text;
}

char *rig_host_snapshot(const struct rig *r, bool temps)
{
	AUTO_FREE char *host = rig_path(r, "host");

	return rig_snapshot(host, temps);
}

/* ---- random trees and operations ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	if (flag == FTW_DP || flag == FTW_D)
		return rmdir(path);
	return unlink(path);
}

static void remove_tree(const char *path)
{
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* A path of one to four components of few names, so that paths meet. */
static char *any_path(struct rig *r, const char *top)
{
	static const char *const names[] = {"a", "b", "c", "d e", "\xc3\xa9", ".git"};
	size_t n = 1 + rig_random(r, 4);
	char *path = xstrdup(top);

	while (n-- > 0) {
		char *longer = xasprintf("%s/%s", path, names[rig_random(r, 6)]);

		free(path);
		path = longer;
	}
	return path;
}

static void write_any(struct rig *r, const char *path, int flags)
{
	static const mode_t modes[] = {0644, 0755, 0600, 0444, 0666};
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
	char text[64];
	int n = snprintf(text, sizeof(text), "text %u\n", (unsigned)rig_random(r, 5));

	if (fd < 0)
		return;
	for (uint64_t k = rig_random(r, 3); k > 0; k--)
		assert(write(fd, text, (size_t)n) == n);
	if (rig_random(r, 2))
		(void)fchmod(fd, modes[rig_random(r, 5)]);
}

static void link_any(struct rig *r, const char *path)
{
	static const char *const targets[] = {"a", "../b", "/etc/passwd", "nowhere", "../../.."};

	(void)!symlink(targets[rig_random(r, 5)], path);
}

/* Whether the directory of a path is in `top`: a link of link_any can lead to /tmp, where the names
 * may be somebody else's. */
static bool is_inside(const char *path, const char *top)
{
	AUTO_FREE char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	AUTO_FREE char *at = realpath(dir, NULL);
	size_t n = strlen(top);

	return at && strncmp(at, top, n) == 0 && (at[n] == '/' || at[n] == '\0');
}

static void change_one(struct rig *r, const char *top)
{
	static const mode_t modes[] = {0755, 0700, 0775, 0750};
	AUTO_FREE char *path = any_path(r, top), *other = any_path(r, top);
	struct stat st;

	if (!is_inside(path, top) || !is_inside(other, top))
		return;
	switch (rig_random(r, 10)) {
	case 0:
	case 1:
		write_any(r, path, O_TRUNC);
		break;
	case 2:
		write_any(r, path, O_APPEND);
		break;
	case 3:
	case 4:
		(void)!mkdir(path, modes[rig_random(r, 4)]);
		break;
	case 5:
		remove_tree(path);
		break;
	case 6:
		(void)!unlink(path);
		break;
	case 7:
		(void)!rename(path, other);
		break;
	case 8:
		link_any(r, path);
		break;
	default:
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			(void)!chmod(path, modes[rig_random(r, 4)]);
		else if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
			(void)!chmod(path, rig_random(r, 2) ? 0644 : 0755);
	}
}

void rig_open(struct rig *r, uint64_t seed)
{
	static const char *const dirs[] = {
		"host", "upper", "work", "merged", "bundle", "undo", NULL};
	char top[] = "/tmp/sbx-stage-XXXXXX";
	AUTO_FREE char *host = NULL;

	*r = (struct rig){.seed = seed * 0x9e3779b97f4a7c15u + 1, .root = -1};
	bundle_init(&r->bundle);
	assert(mkdtemp(top));
	r->top = xstrdup(top);
	(void)umask(022);
	for (const char *const *d = dirs; *d; d++) {
		AUTO_FREE char *path = rig_path(r, *d);

		assert(mkdir(path, 0755) == 0);
	}
	host = rig_path(r, "host");
	for (int i = 0; i < 40; i++)
		change_one(r, host);
	r->before = rig_snapshot(host, true);
	r->root = open(host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(r->root >= 0);
}

/* ---- the guest ---- */

static void put_text(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	assert(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static void enter_namespace(void)
{
	AUTO_FREE char *uid = xasprintf("0 %u 1", (unsigned)getuid());
	AUTO_FREE char *gid = xasprintf("0 %u 1", (unsigned)getgid());

	assert(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
	put_text("/proc/self/setgroups", "deny");
	put_text("/proc/self/uid_map", uid);
	put_text("/proc/self/gid_map", gid);
}

static void mount_overlay(const struct rig *r)
{
	AUTO_FREE char *merged = rig_path(r, "merged");
	AUTO_FREE char *options = xasprintf("lowerdir=%s/host,upperdir=%s/upper,workdir=%s/work,"
					    "userxattr,volatile",
		r->top, r->top, r->top);

	assert(mount("overlay", merged, "overlay", 0, options) == 0);
}

static void send_stream(const struct rig *r)
{
	AUTO_FREE char *upper = rig_path(r, "upper"), *merged = rig_path(r, "merged");
	AUTO_FREE char *tar = rig_path(r, "bundle/0.tar");
	AUTO_CLOSE int u = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int m = open(merged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int out = open(tar, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct stage_source src = {.upper = u, .merged = m, .prefix = "user.overlay."};

	assert(u >= 0 && m >= 0 && out >= 0);
	assert(stage_pack(&src, out, NULL) == 0);
}

static void be_guest(struct rig *r, unsigned n)
{
	AUTO_FREE char *merged = rig_path(r, "merged"), *file = rig_path(r, "view");
	AUTO_FREE char *view = NULL;

	enter_namespace();
	mount_overlay(r);
	for (unsigned i = 0; i < n; i++)
		change_one(r, merged);
	view = rig_snapshot(merged, true);
	put_text(file, view);
	send_stream(r);
	_exit(0);
}

static void take_bundle(struct rig *r)
{
	AUTO_FREE char *dir = rig_path(r, "bundle"), *tar = rig_path(r, "bundle/0.tar");
	AUTO_BUNDLE struct bundle first;
	struct err err = {0};

	bundle_init(&first);
	assert(bundle_add(&first, open(tar, O_RDONLY | O_CLOEXEC), &err) == 0);
	assert(bundle_seal(&first, &err) == 0);
	assert(bundle_save(&first, dir, &err) == 0);
	assert(bundle_open(&r->bundle, dir, &err) == 0);
}

void rig_guest(struct rig *r, unsigned n)
{
	AUTO_FREE char *file = rig_path(r, "view");
	AUTO_CLOSE int fd = -1;
	size_t len;
	pid_t pid;
	int status;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		be_guest(r, n);
	assert(waitpid(pid, &status, 0) == pid && status == 0);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	assert(fd_load(fd, 16u << 20, &r->view, &len) == 0);
	take_bundle(r);
}

/* ---- the host ---- */

void rig_plan(struct rig *r)
{
	struct plan_input in = {
		.bundle = &r->bundle, .roots = &r->root, .base_ns = INT64_MAX, .known = &r->known};

	plan_done(&r->plan);
	assert(plan_make(&in, &r->plan, NULL) == 0);
	for (size_t i = 0; i < r->plan.n; i++)
		r->plan.v[i].wanted = r->plan.v[i].class < PLAN_MOVING;
}

static int call_apply(struct rig *r, int how)
{
	AUTO_FREE char *dir = rig_path(r, "undo");
	struct err err = {0};
	struct apply a = {.dir = dir,
		.tag = "rig-1",
		.roots = &r->root,
		.bundle = &r->bundle,
		.known = &r->known};
	int k = how == 0   ? apply_run(&a, &r->plan, &err)
		: how == 1 ? apply_continue(&a, &err)
			   : apply_undo(&a, &err);

	if (k < 0)
		(void)fprintf(stderr, "%s\n", err_text(&err, k));
	return k < 0 ? k : (int)a.n_skipped;
}

int rig_apply(struct rig *r)
{
	return call_apply(r, 0);
}

int rig_continue(struct rig *r)
{
	return call_apply(r, 1);
}

int rig_undo(struct rig *r)
{
	return call_apply(r, 2);
}

/* The work directory of an overlay has directories without permissions. */
static void open_work(const struct rig *r)
{
	static const char *const names[] = {
		"work/work", "work/work/incompat", "work/work/incompat/volatile"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = rig_path(r, names[i]);

		(void)!chmod(path, 0700);
	}
}

void rig_close(struct rig *r)
{
	plan_done(&r->plan);
	bundle_done(&r->bundle);
	known_done(&r->known);
	fd_close(&r->root);
	open_work(r);
	remove_tree(r->top);
	assert(access(r->top, F_OK) < 0);
	free(r->before);
	free(r->view);
	free(r->top);
}
