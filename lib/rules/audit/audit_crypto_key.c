/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "audit_crypto_internal.h"

struct audit_key {
	uint8_t *seed; /* a separate page */
	size_t size;
	struct audit_pub pub;
};

static int alloc_page(struct audit_key *k)
{
	void *p;

	k->size = (size_t)sysconf(_SC_PAGESIZE);
	p = mmap(NULL, k->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	k->seed = p;
	(void)mlock(p, k->size);
	(void)madvise(p, k->size, MADV_DONTDUMP);
	return 0;
}

void audit_key_keep_from_children(struct audit_key *k)
{
	(void)madvise(k->seed, k->size, MADV_DONTFORK);
}

void audit_key_free(struct audit_key *k)
{
	if (!k)
		return;
	if (k->seed) {
		explicit_bzero(k->seed, k->size);
		(void)munmap(k->seed, k->size);
	}
	free(k);
}

static void free_key(struct audit_key **k)
{
	audit_key_free(*k);
}

const struct audit_pub *audit_key_pub(const struct audit_key *k)
{
	return &k->pub;
}

int audit_sign(const struct audit_key *k, struct slice head, uint8_t ret[AUDIT_SIG_LEN])
{
	return audit_seed_sign(k->seed, head, ret);
}

int audit_sign_cut(const struct audit_key *k, struct slice cut, uint8_t ret[AUDIT_SIG_LEN])
{
	return audit_seed_sign_cut(k->seed, cut, ret);
}

static int read_key(const char *path, struct audit_key *k, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_errno(err, -errno, "cannot open %s", path);
	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot access %s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, -EPERM,
			"the audit key %s is readable by other users (mode %o)\n"
			"  try: chmod 600 %s",
			path, (unsigned)st.st_mode & 07777, path);
	n = fd_read_full(fd, k->seed, AUDIT_KEY_LEN + 1);
	if (n < 0)
		return err_errno(err, (int)n, "cannot read %s", path);
	if (n != AUDIT_KEY_LEN)
		return err_set(
			err, -EBADMSG, "%s is corrupt: expected %d bytes", path, AUDIT_KEY_LEN);
	return audit_seed_pub(k->seed, &k->pub);
}

static int write_seed(int fd, struct audit_key *k)
{
	int r;

	if (getrandom(k->seed, AUDIT_KEY_LEN, 0) != AUDIT_KEY_LEN)
		return -EIO;
	r = fd_write_all(fd, k->seed, AUDIT_KEY_LEN);
	if (r < 0)
		return r;
	return fsync(fd) < 0 ? -errno : 0;
}

/* link(2) and not rename(2): of two that make a key at once the second must not replace the first.
 */
static int make_key(const char *path, struct audit_key *k, struct err *err)
{
	AUTO_FREE char *temp = xasprintf("%s.XXXXXX", path);
	AUTO_CLOSE int fd = mkostemp(temp, O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "cannot create %s", temp);
	r = write_seed(fd, k);
	if (r == 0 && link(temp, path) < 0 && errno != EEXIST)
		r = -errno;
	(void)unlink(temp);
	return r < 0 ? err_errno(err, r, "cannot create the key %s", path) : read_key(path, k, err);
}

/* key.pub also records that there was a key: it is saved before any log is signed with it. */
static int save_pub(const char *path, const struct audit_pub *pub, struct err *err)
{
	char hex[2 * AUDIT_KEY_LEN + 1];

	hex_encode(pub->b, sizeof(pub->b), hex);
	hex[sizeof(hex) - 1] = '\n';
	return file_save(path, slice_of(hex, sizeof(hex)), err);
}

static int load_pub_file(const char *path, struct audit_pub *ret, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r;

	r = file_load(path, 4096, &text, &n, err);
	if (r < 0)
		return r;
	if (n != 2 * AUDIT_KEY_LEN + 1 || text[n - 1] != '\n' ||
		hex_decode(slice_of(text, n - 1), ret->b) < 0)
		return err_set(err, -EBADMSG,
			"%s is not a public key: expected %d hex digits and a newline", path,
			2 * AUDIT_KEY_LEN);
	return 0;
}

static int check_pub(const char *dir, const struct audit_key *k, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/key.pub", dir);
	struct audit_pub pub;
	int r;

	r = load_pub_file(path, &pub, err);
	if (r == -ENOENT)
		return save_pub(path, &k->pub, err);
	if (r == 0 && memcmp(&pub, &k->pub, sizeof(pub)) != 0)
		return err_set(err, -EBADMSG,
			"%s/key and %s/key.pub do not match: one of them was replaced", dir, dir);
	return r;
}

static int load_or_make(const char *dir, struct audit_key *k, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/key", dir);
	AUTO_FREE char *pub = xasprintf("%s/key.pub", dir);
	int r;

	r = read_key(path, k, err);
	if (r != -ENOENT)
		return r;
	if (access(pub, F_OK) < 0)
		return make_key(path, k, err);
	/* Another process may have made both in between. */
	r = read_key(path, k, err);
	if (r == -ENOENT)
		return err_set(err, -ENOKEY,
			"the audit key %s was removed, and existing logs were signed with it: restore it, or move %s away to begin new logs",
			path, dir);
	return r;
}

int audit_key_load(const char *dir, struct audit_key **ret, struct err *err)
{
	CLEANUP(free_key) struct audit_key *k = xcalloc(1, sizeof(*k));
	int r;

	r = paths_make(dir, err);
	if (r < 0)
		return r;
	r = alloc_page(k);
	if (r < 0)
		return err_errno(err, r, "cannot allocate memory for the key");
	r = load_or_make(dir, k, err);
	if (r < 0)
		return r;
	r = check_pub(dir, k, err);
	if (r < 0)
		return r;
	*ret = TAKE(k);
	return 0;
}

int audit_pub_load(const char *dir, struct audit_pub *ret, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/key.pub", dir);
	int r;

	r = load_pub_file(path, ret, err);
	if (r == -ENOENT)
		return err_set(
			err, -ENOENT, "no audit key in %s: no audit log was written yet", dir);
	return r;
}
