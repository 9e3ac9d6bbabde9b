/* SPDX-License-Identifier: Apache-2.0 */
#include "home_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/hash/sha256.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

#define KEY_BYTES 32
#define HASH_HEX 64
#define RECORD "home-record"
#define MAX_RECORD (HOME_MAX_FILES * 4200)
#define HEAD "sbx home record 1"

/* Files that are executed automatically, or contain a key. Files that programs rewrite every day
 * are omitted (known_hosts, histories, caches): a record that always differs is useless. */
static const struct place {
	const char *group, *path;
} places[] = {
	{"shell", ".profile"},
	{"shell", ".bashrc"},
	{"shell", ".bash_profile"},
	{"shell", ".bash_login"},
	{"shell", ".bash_logout"},
	{"shell", ".bash_aliases"},
	{"shell", ".zshrc"},
	{"shell", ".zshenv"},
	{"shell", ".zprofile"},
	{"shell", ".zlogin"},
	{"shell", ".config/fish"},
	{"shell", ".config/environment.d"},
	{"shell", ".pam_environment"},
	{"shell", ".inputrc"},
	{"ssh", ".ssh"},
	{"git", ".gitconfig"},
	{"git", ".git-credentials"},
	{"git", ".config/git"},
	{"keys", ".aws/config"},
	{"keys", ".aws/credentials"},
	{"keys", ".docker/config.json"},
	{"keys", ".kube/config"},
	{"keys", ".config/gcloud/application_default_credentials.json"},
	{"keys", ".netrc"},
	{"keys", ".npmrc"},
	{"keys", ".pypirc"},
	{"keys", ".gnupg/gpg.conf"},
	{"start", ".config/autostart"},
	{"start", ".config/systemd/user"},
	{"start", ".local/share/systemd/user"},
	{"start", ".xprofile"},
	{"start", ".xsession"},
	{"start", ".xinitrc"},
};

struct entry {
	const char *group;
	char *path;
	char hash[HASH_HEX + 1];
	bool seen;
};

struct record {
	struct entry *v;
	size_t n;
	const char *home;
	const char *group; /* only this one; NULL: all */
	uint8_t key[KEY_BYTES];
};

static void record_done(struct record *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].path);
	free(r->v);
	*r = (struct record){0};
}

/* Copied, to outlive the line. */
static const char *group_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strcmp(places[i].group, name) == 0)
			return places[i].group;
	return NULL;
}

bool home_record_is_group(const char *name)
{
	return group_of(name) != NULL;
}

/* ---- one file ---- */

/* Content of a file: "-" with its size and first bytes, "l" with a link's target, else its kind. */
static size_t read_content(
	int at, const char *name, const struct stat *st, uint8_t *buf, size_t size)
{
	AUTO_CLOSE int fd = -1;
	size_t n = (size_t)snprintf((char *)buf, size, "%c%llu:",
		S_ISREG(st->st_mode)   ? '-'
		: S_ISLNK(st->st_mode) ? 'l'
				       : '?',
		S_ISREG(st->st_mode) ? (unsigned long long)st->st_size : 0ULL);
	ssize_t got = 0;

	if (S_ISLNK(st->st_mode)) {
		got = readlinkat(at, name, (char *)buf + n, size - n);
	} else if (S_ISREG(st->st_mode)) {
		fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		got = fd < 0 ? 0 : fd_read_full(fd, buf + n, size - n);
	}
	return n + (got > 0 ? (size_t)got : 0);
}

static void hash_file(const struct record *r, int at, const char *name, const char *path,
	const struct stat *st, char ret[HASH_HEX + 1])
{
	size_t head = KEY_BYTES + strlen(path) + 1, size = head + HOME_MAX_BYTES + 64;
	AUTO_FREE uint8_t *buf = xmalloc(size);
	uint8_t sum[SHA256_BYTES];
	size_t n;

	memcpy(buf, r->key, KEY_BYTES);
	memcpy(buf + KEY_BYTES, path, strlen(path) + 1);
	n = head + read_content(at, name, st, buf + head, size - head);
	sha256(slice_of(buf, n), sum);
	hex_print(sum, sizeof(sum), ret);
}

static void add_record(struct record *r, const char *group, const char *path, const char *hash)
{
	struct entry *e;

	if (r->n >= HOME_MAX_FILES)
		return;
	r->v = xrealloc(r->v, (r->n + 1) * sizeof(*r->v));
	e = &r->v[r->n++];
	*e = (struct entry){.group = group, .path = xstrdup(path)};
	(void)!str_copy(e->hash, sizeof(e->hash), hash);
}

/* ---- the places ---- */

struct todo {
	char *path;
	unsigned depth;
};

static bool is_left_out(const char *name)
{
	return str_starts(name, "known_hosts") || strchr(name, '\n') != NULL;
}

/* Directories are put on the list, everything else is hashed; false if the name does not exist. */
static bool look_at(struct record *r, const char *group, int home, const char *path, char **ret_dir)
{
	char hash[HASH_HEX + 1];
	struct stat st;

	*ret_dir = NULL;
	if (fstatat(home, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (S_ISDIR(st.st_mode)) {
		*ret_dir = xstrdup(path);
		return true;
	}
	hash_file(r, home, path, path, &st, hash);
	add_record(r, group, path, hash);
	return true;
}

static void list_folder(struct record *r, const char *group, int home, const struct todo *t,
	struct todo *all, size_t *n)
{
	AUTO_DIR DIR *d =
		dir_of(openat(home, t->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	const struct dirent *e;

	while ((e = dir_next(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s", t->path, e->d_name);
		char *dir;

		if (is_left_out(e->d_name) || !look_at(r, group, home, path, &dir) || !dir)
			continue;
		if (t->depth < HOME_MAX_DEPTH && *n < HOME_MAX_FILES)
			all[(*n)++] = (struct todo){dir, t->depth + 1};
		else
			free(dir);
	}
}

static void look_at_place(struct record *r, int home, const struct place *p)
{
	struct todo *all = xcalloc(HOME_MAX_FILES, sizeof(*all));
	size_t n = 0;
	char *dir;

	if (look_at(r, p->group, home, p->path, &dir) && dir)
		all[n++] = (struct todo){dir, 0};
	for (size_t i = 0; i < n; i++) {
		list_folder(r, p->group, home, &all[i], all, &n);
		free(all[i].path);
	}
	free(all);
}

static int look_around(struct record *r, struct err *err)
{
	AUTO_CLOSE int home = open(r->home, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (home < 0)
		return err_errno(err, -errno, "cannot open %s", r->home);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (!r->group || strcmp(r->group, places[i].group) == 0)
			look_at_place(r, home, &places[i]);
	return 0;
}

/* ---- the record ---- */

static int load_key(const char *path, bool make, uint8_t ret[KEY_BYTES], struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r = file_load(path, KEY_BYTES, &text, &n, err);

	if (r == 0 && n == KEY_BYTES) {
		memcpy(ret, text, KEY_BYTES);
		return 0;
	}
	if (r < 0 && r != -ENOENT)
		return r;
	if (!make)
		return err_set(err, -ENOENT, "cannot read the baseline key: %s", path);
	if (getrandom(ret, KEY_BYTES, 0) != KEY_BYTES)
		return err_errno(err, -EIO, "cannot get random numbers for %s", path);
	return file_save(path, slice_of(ret, KEY_BYTES), err);
}

int home_record_take(const char *key, const char *home, char **ret, struct err *err)
{
	CLEANUP(record_done) struct record r = {.home = home};
	size_t size = 0;
	FILE *f;
	int e = load_key(key, true, r.key, err);

	if (e == 0)
		e = look_around(&r, err);
	if (e < 0)
		return err_wrap(err, e, "cannot record the home directory");
	f = open_memstream(ret, &size);
	if (!f)
		abort();
	(void)fputs(HEAD "\n", f);
	for (size_t i = 0; i < r.n; i++)
		(void)fprintf(f, "%s %s %s\n", r.v[i].group, r.v[i].hash, r.v[i].path);
	if (fclose(f) != 0)
		abort();
	return 0;
}

int home_record_save(const char *dir, const char *text, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" RECORD, dir);
	int r = paths_make(dir, err);

	return r < 0 ? err_wrap(err, r, "cannot record the home directory")
		     : file_save(path, slice_from_str(text), err);
}

static int parse_line(struct record *r, struct slice line, struct err *err)
{
	AUTO_FREE char *text = slice_dup(line);
	char *hash = strchr(text, ' '), *path = hash ? strchr(hash + 1, ' ') : NULL;
	const char *group;

	if (!path || path - hash - 1 != HASH_HEX || !path[1])
		return err_set(err, -EBADMSG, "the record of the home directory is corrupt");
	*hash++ = *path++ = '\0';
	group = group_of(text);
	if (group && (!r->group || strcmp(r->group, group) == 0))
		add_record(r, group, path, hash);
	return 0;
}

static int load_record(const char *dir, struct record *r, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" RECORD, dir);
	AUTO_FREE char *text = NULL;
	struct slice rest;
	size_t n = 0;
	int e = file_load(path, MAX_RECORD, &text, &n, err);

	if (e == -ENOENT)
		return err_set(err, e,
			"no record of the home directory: the sandbox was created without one");
	if (e < 0)
		return e;
	rest = slice_of(text, n);
	if (!slice_eq_str(slice_next_line(&rest), HEAD))
		return err_set(err, -EBADMSG, "the record of the home directory is corrupt");
	while (e == 0 && rest.n) {
		struct slice line = slice_next_line(&rest);

		if (line.n)
			e = parse_line(r, line, err);
	}
	return e;
}

static struct entry *find_record(struct record *r, const char *path)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->v[i].path, path) == 0)
			return &r->v[i];
	return NULL;
}

static void changed_at(const char *home, const char *path, char *buf, size_t size)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", home, path);
	struct stat st;
	struct tm tm;

	if (lstat(whole, &st) < 0 || !gmtime_r(&st.st_ctim.tv_sec, &tm) ||
		strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		buf[0] = '\0';
}

static void compare_record(struct record *was, struct record *is, home_change_fn *fn, void *arg)
{
	char at[32];

	for (size_t i = 0; i < is->n; i++) {
		const struct entry *now = &is->v[i];
		struct entry *old = find_record(was, now->path);

		if (old)
			old->seen = true;
		if (old && strcmp(old->hash, now->hash) == 0)
			continue;
		changed_at(is->home, now->path, at, sizeof(at));
		fn(arg, old ? HOME_CHANGED : HOME_NEW, now->group, now->path, at);
	}
	for (size_t i = 0; i < was->n; i++)
		if (!was->v[i].seen)
			fn(arg, HOME_GONE, was->v[i].group, was->v[i].path, "");
}

int home_record_compare(const char *dir, const char *key, const char *home, const char *group,
	home_change_fn *fn, void *arg, struct err *err)
{
	CLEANUP(record_done) struct record was = {.home = home, .group = group};
	CLEANUP(record_done) struct record is = {.home = home, .group = group};
	int r = load_record(dir, &was, err);

	if (r == 0)
		r = load_key(key, false, is.key, err);
	if (r == 0)
		r = look_around(&is, err);
	if (r < 0)
		return r;
	compare_record(&was, &is, fn, arg);
	return (int)MAX(was.n, is.n);
}
