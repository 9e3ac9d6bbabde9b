/* SPDX-License-Identifier: Apache-2.0 */
#include "safe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define MAX_CREDS 16384

static char *path_of(const struct safe *s, const char *name)
{
	return xasprintf("%s/%s", s->dir, name);
}

static int take_lock(struct safe *s, struct err *err)
{
	AUTO_FREE char *path = path_of(s, SAFE_LOCK);

	/* one that was killed a moment ago still has it */
	s->lock = file_lock(path, SAFE_LOCK_MS, err);
	if (s->lock == -EBUSY)
		return err_set(err, -EBUSY, "another vault is using the directory %s", s->dir);
	return MIN(s->lock, 0);
}

/* What file_save leaves when it is killed: NAME and a dot and six characters. */
static bool is_leftover(const char *name)
{
	static const char *const names[] = {SAFE_SEALED, SAFE_ANCHOR, SAFE_KEY, SAFE_CREDS};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		if (str_starts(name, names[i]) && name[n] == '.' && strlen(name) == n + 7)
			return true;
	}
	return false;
}

static void remove_leftovers(const struct safe *s)
{
	AUTO_DIR DIR *d = opendir(s->dir);
	struct dirent *e;

	while ((e = dir_next(d)))
		if (is_leftover(e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
}

static bool has_file(const struct safe *s, const char *name)
{
	AUTO_FREE char *path = path_of(s, name);

	return access(path, F_OK) == 0;
}

static int look_at_file(struct safe *s, struct err *err)
{
	AUTO_FREE char *path = path_of(s, SAFE_SEALED);
	int r = file_load(path, SEAL_MAX, (char **)&s->file, &s->file_n, err);

	if (r == -ENOENT) {
		s->is_new = true;
		if (has_file(s, SAFE_ANCHOR) && !s->accept_old)
			return err_set(err, -ESTALE,
				"%s was removed: restore it, or accept an empty vault", path);
		return seal_random(s->head.salt, sizeof(s->head.salt));
	}
	if (r < 0)
		return r;
	r = seal_read_head(slice_of(s->file, s->file_n), &s->head, err);
	return r < 0 ? err_wrap(err, r, "%s", path) : 0;
}

int safe_look(struct safe *s, const char *dir, bool accept_old, struct err *err)
{
	int r;

	*s = (struct safe){.lock = -1, .accept_old = accept_old};
	r = str_copy(s->dir, sizeof(s->dir), dir);
	if (r < 0)
		return err_errno(err, r, "invalid vault directory");
	r = take_lock(s, err);
	if (r < 0)
		return r;
	remove_leftovers(s);
	return look_at_file(s, err);
}

void safe_done(struct safe *s)
{
	secret_done(&s->key);
	free(TAKE(s->file));
	fd_close(&s->lock);
}

/* ---- the key ---- */

static int check_key_file(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot access %s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return err_set(err, -EPERM,
			"%s must be a regular file readable only by its owner (chmod 600)", path);
	if (st.st_size != SEAL_KEY)
		return err_set(err, -EBADMSG, "%s is not a key: it has %lld bytes instead of %d",
			path, (long long)st.st_size, SEAL_KEY);
	return 0;
}

static int read_key_file(struct safe *s, const char *path, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	AUTO_SECRET struct secret key = {0};
	int r;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_errno(err, -errno, "cannot open %s", path);
	r = check_key_file(fd, path, err);
	if (r == 0)
		r = secret_init(&key, SEAL_KEY, err);
	if (r < 0)
		return r;
	if (fd_read_full(fd, key.p, SEAL_KEY) != SEAL_KEY)
		return err_set(err, -EIO, "cannot read %s", path);
	key.n = SEAL_KEY;
	s->key = secret_take(&key);
	return 0;
}

int safe_key_from_file(struct safe *s, struct err *err)
{
	AUTO_FREE char *path = path_of(s, SAFE_KEY);
	AUTO_SECRET struct secret key = {0};
	int r = read_key_file(s, path, err);

	if (r != -ENOENT)
		return r;
	if (!s->is_new)
		return err_set(err, -ENOKEY,
			"the key %s does not exist: the credentials cannot be read without it",
			path);
	r = secret_init(&key, SEAL_KEY, err);
	if (r == 0)
		r = seal_random(key.p, SEAL_KEY);
	if (r < 0)
		return r;
	key.n = SEAL_KEY;
	r = file_save(path, secret_slice(&key), err);
	if (r < 0)
		return r;
	s->key = secret_take(&key);
	return 0;
}

int safe_creds_read(struct safe *s, char **ret, size_t *ret_n, struct err *err)
{
	AUTO_FREE char *path = path_of(s, SAFE_CREDS);

	return file_load(path, MAX_CREDS, ret, ret_n, err);
}

int safe_creds_write(struct safe *s, struct slice blob, struct err *err)
{
	AUTO_FREE char *path = path_of(s, SAFE_CREDS);

	return file_save(path, blob, err);
}

/* ---- the content ---- */

/* The generation that was written last, by the anchor. Generation 1 may have none yet: its
 * writer was killed before. */
static int read_anchor(const struct safe *s, uint64_t *ret, struct err *err)
{
	AUTO_FREE char *path = path_of(s, SAFE_ANCHOR);
	AUTO_FREE char *bytes = NULL;
	size_t n = 0;
	int r = file_load(path, SEAL_ANCHOR, &bytes, &n, err);

	*ret = 0;
	if (r == -ENOENT)
		return s->head.generation == 1 || s->accept_old
			       ? 0
			       : err_set(err, -ESTALE,
					 "%s does not exist: the sealed file may be an old copy",
					 path);
	if (r == 0)
		r = seal_anchor_read(&s->key, &s->head, slice_of(bytes, n), ret);
	if (r < 0 && s->accept_old)
		return 0;
	return r < 0 ? err_set(err, -EBADMSG, "%s was changed or belongs to another vault", path)
		     : 0;
}

static int check_age(struct safe *s, uint64_t floor, struct err *err)
{
	uint64_t last;
	int r = read_anchor(s, &last, err);

	if (r < 0)
		return r;
	last = MAX(last, floor);
	if (s->head.generation >= last)
		return 0;
	if (!s->accept_old)
		return err_set(err, -ESTALE,
			"the sealed file is an old copy: it has number %llu, the last one written has number %llu. It would restore credentials that were removed or replaced since",
			(unsigned long long)s->head.generation, (unsigned long long)last);
	s->head.generation = last; /* the next writing is newer than everything */
	return 0;
}

int safe_load(struct safe *s, struct book *book, uint64_t floor, struct err *err)
{
	AUTO_SECRET struct secret plain = {0};
	int r;

	if (s->is_new) {
		s->head.generation = floor;
		r = safe_save(s, book, err);
		s->is_new = r < 0;
		return r;
	}
	r = seal_open(&s->key, slice_of(s->file, s->file_n), &plain, err);
	if (r == 0)
		r = check_age(s, floor, err);
	if (r == 0)
		r = book_decode(book, secret_slice(&plain), err);
	if (r < 0)
		return err_wrap(err, r, "%s/%s", s->dir, SAFE_SEALED);
	free(TAKE(s->file));
	return 0;
}

static int save_anchor(const struct safe *s, const struct seal_head *head, struct err *err)
{
	AUTO_FREE char *path = path_of(s, SAFE_ANCHOR);
	uint8_t bytes[SEAL_ANCHOR];
	int r = seal_anchor_make(&s->key, head, bytes);

	return r < 0 ? r : file_save(path, slice_of(bytes, sizeof(bytes)), err);
}

int safe_save(struct safe *s, const struct book *book, struct err *err)
{
	AUTO_FREE char *path = path_of(s, SAFE_SEALED);
	AUTO_SECRET struct secret plain = {0};
	AUTO_FREE uint8_t *file = NULL;
	struct seal_head head = s->head;
	struct err anchor_err = {0};
	size_t n;
	int r = book_encode(book, &plain, err);

	if (r < 0)
		return r;
	head.generation++;
	r = seal_write(&s->key, &head, secret_slice(&plain), &file, &n, err);
	if (r == 0)
		r = file_save(path, slice_of(file, n), err);
	if (r < 0)
		return r;
	s->head = head;
	/* Without it an old copy would pass for one generation longer; the content is safe. */
	r = save_anchor(s, &head, &anchor_err);
	if (r < 0)
		log_debug("cannot write the anchor: %s", err_text(&anchor_err, r));
	return 0;
}
