/* SPDX-License-Identifier: Apache-2.0 */
#include "quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "git.h"

#define MAX_SHALLOW (16u << 20)
#define MAX_FDS 16
#define HERE "/q" /* in the jail */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	(void)remove(path);
	return 0;
}

void quarantine_remove_dir(const char *dir)
{
	(void)nftw(dir, remove_entry, MAX_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void quarantine_done(struct quarantine *q)
{
	if (q->dir)
		quarantine_remove_dir(q->dir);
	free(TAKE(q->dir));
}

int quarantine_dir(const char *id, char **ret, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s/git-XXXXXX", id);

	if (!mkdtemp(dir))
		return err_errno(err, -errno, "cannot create %s", dir);
	*ret = TAKE(dir);
	return 0;
}

int quarantine_save(struct quarantine *q, const char *name, struct slice content, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", q->dir, name);

	return file_save(path, content, err);
}

static int save_in(struct quarantine *q, const char *name, const char *text, struct err *err)
{
	return quarantine_save(q, name, slice_from_str(text), err);
}

static int make_dirs(const struct quarantine *q, struct err *err)
{
	static const char *const dirs[] = {"objects", "objects/info", "objects/pack", "refs"};

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", q->dir, dirs[i]);

		if (mkdir(path, 0700) < 0)
			return err_errno(err, -errno, "cannot create %s", path);
	}
	return 0;
}

/* Every key that could run a program, reach another transport or weaken the check. */
static char *config_text(const struct repo *repo)
{
	bool other = strcmp(repo->format, "sha1") != 0;

	return xasprintf(
		"[core]\n\trepositoryformatversion = %d\n\tbare = true\n"
		"\thooksPath = /dev/null\n\tfsmonitor = false\n\tlogAllRefUpdates = false\n"
		"\tpackedGitWindowSize = 32m\n\tpackedGitLimit = 256m\n"
		"\tbigFileThreshold = 64m\n"
		"%s%s%s"
		"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
		"[protocol]\n\tallow = never\n[protocol \"fd\"]\n\tallow = always\n"
		"[transfer]\n\tfsckObjects = true\n\tunpackLimit = 1\n"
		"[fetch]\n\tfsckObjects = true\n\tunpackLimit = 1\n"
		"\trecurseSubmodules = false\n\twriteCommitGraph = false\n"
		"[submodule]\n\trecurse = false\n[push]\n\trecurseSubmodules = no\n"
		"[pack]\n\tthreads = 2\n\twindowMemory = 256m\n",
		other, other ? "[extensions]\n\tobjectFormat = " : "", other ? repo->format : "",
		other ? "\n" : "");
}

static int save_alternates(struct quarantine *q, struct err *err)
{
	size_t n = q->repo->n_objects + (q->objects ? 1 : 0);
	AUTO_FREE char *text = xcalloc(n + 1, 16);
	char *s = text;

	for (size_t i = 0; i < n; i++)
		s += snprintf(s, 16, "/o/%zu\n", i);
	return save_in(q, "objects/info/alternates", text, err);
}

static int copy_shallow(struct quarantine *q, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t n;
	int r = q->repo->shallow ? file_load(q->repo->shallow, MAX_SHALLOW, &text, &n, err)
				 : -ENOENT;

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : save_in(q, "shallow", text, err);
}

int quarantine_make(struct quarantine *q, const struct repo *repo, const char *id,
	const char *objects, struct err *err)
{
	AUTO_FREE char *config = config_text(repo);
	int r;

	*q = (struct quarantine){.repo = repo, .objects = objects};
	r = quarantine_dir(id, &q->dir, err);
	if (r == 0)
		r = make_dirs(q, err);
	if (r == 0)
		r = save_in(q, "HEAD", "ref: refs/heads/none\n", err);
	if (r == 0)
		r = save_in(q, "config", config, err);
	if (r == 0)
		r = save_alternates(q, err);
	return r == 0 ? copy_shallow(q, err) : r;
}

int quarantine_set_refs(struct quarantine *q, const char *lines, struct err *err)
{
	AUTO_FREE char *text = xasprintf("# pack-refs with:\n%s", lines);

	return save_in(q, "packed-refs", text, err);
}

/* The list of mounts of a jailed git. */
struct mounts {
	struct jail_mount v[8 + REPO_MAX_OBJECTS + 2];
	char to[REPO_MAX_OBJECTS + 1][16];
	size_t n, n_objects;
};

static void add_mount(struct mounts *m, const char *from, const char *to, unsigned flags)
{
	m->v[m->n++] = (struct jail_mount){.from = from, .to = to, .flags = flags};
}

static void add_objects(struct mounts *m, const char *from)
{
	char *to = m->to[m->n_objects];

	(void)snprintf(to, sizeof(m->to[0]), "/o/%zu", m->n_objects++);
	add_mount(m, from, to, 0);
}

static void fill_mounts(const struct quarantine *q, struct mounts *m)
{
	/* With a merged /usr these are symlinks; their targets are bound. */
	static const char *const folders[] = {"/usr", "/bin", "/lib", "/lib64"};

	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		add_mount(m, folders[i], folders[i], i ? JAIL_MOUNT_OPTIONAL : 0);
	for (size_t i = 0; i < q->repo->n_objects; i++)
		add_objects(m, q->repo->objects[i]);
	if (q->objects)
		add_objects(m, q->objects);
	add_mount(m, "/dev/urandom", "/dev/urandom", JAIL_MOUNT_DEV); /* names of temporary files */
	add_mount(m, q->dir, HERE, JAIL_MOUNT_RW);
}

int quarantine_spawn(struct quarantine *q, const char *const *argv,
	const struct quarantine_fds *fds, struct jail_child *ret, struct err *err)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", "HOME=" HERE, "GIT_DIR=" HERE,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C", NULL};
	struct mounts m = {.n = 0};
	struct jail_fd placed[] = {
		{fds->from_guest, 3}, {fds->to_guest, 4}, {fds->out, 1}, {fds->in, 0}};
	struct jail_plan plan = {.profile = JAIL_GIT,
		.program = GIT_PROGRAM,
		.argv = (char *const *)argv,
		.envp = (char *const *)env,
		.mounts = m.v,
		.fds = placed,
		.n_fds = fds->in < 0 ? 3 : 4,
		.log_fd = fds->err};

	fill_mounts(q, &m);
	plan.n_mounts = m.n;
	return jail_spawn(&plan, ret, err);
}

static bool is_pack(const char *name)
{
	return str_starts(name, "pack-") && str_ends(name, ".pack") && str_is_printable(name);
}

int quarantine_packs(struct quarantine *q, int *ret, size_t max, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/objects/pack", q->dir);
	AUTO_DIR DIR *d = dir_of(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	const struct dirent *e;
	struct stat st;
	size_t n = 0;

	if (!d)
		return err_errno(err, -errno, "cannot read %s", path);
	while ((e = dir_next(d))) {
		AUTO_CLOSE int fd = -1;

		if (!is_pack(e->d_name))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || n == max) {
			while (n > 0)
				fd_close(&ret[--n]);
			return err_set(err, -EBADMSG, "git left an unexpected file in quarantine");
		}
		ret[n++] = TAKE_FD(fd);
	}
	return (int)n;
}
