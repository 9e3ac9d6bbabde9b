/* SPDX-License-Identifier: Apache-2.0 */
#include "saved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"

#define HEAD_BYTES (2 * SHA256_BYTES + 5) /* "SHA256 644\n" */

void saved_done(struct saved *s)
{
	free(s->text);
	*s = (struct saved){0};
}

static void add_place(struct sha256 *sha, size_t ws, const char *path)
{
	uint64_t number = ws;

	sha256_add(sha, slice_of(&number, sizeof(number)));
	sha256_add(sha, slice_of(path, strlen(path) + 1));
}

static char *file_in(const char *dir, const char *prefix, struct sha256 *sha)
{
	uint8_t key[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256_end(sha, key);
	hex_print(key, sizeof(key), hex);
	return xasprintf("%s/%s%s", dir, prefix, hex);
}

char *saved_path(const char *dir, const struct plan_step *s)
{
	struct sha256 sha;

	sha256_begin(&sha);
	add_place(&sha, s->ws, s->path);
	sha256_add(&sha, slice_of(s->old.sha, sizeof(s->old.sha)));
	sha256_add(&sha, slice_of(s->entry->sha, sizeof(s->entry->sha)));
	return file_in(dir, "", &sha);
}

char *saved_base_path(const char *dir, size_t ws, const char *path)
{
	struct sha256 sha;

	sha256_begin(&sha);
	add_place(&sha, ws, path);
	return file_in(dir, SAVED_BASE, &sha);
}

int saved_put(const char *file, struct slice text, uint32_t mode, struct err *err)
{
	AUTO_CLOSE int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint8_t sha[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1], head[HEAD_BYTES + 1];
	int r = fd < 0 ? -errno : 0;

	sha256(text, sha);
	hex_print(sha, sizeof(sha), hex);
	(void)snprintf(head, sizeof(head), "%s %03o\n", hex, (unsigned)(mode & 0777));
	if (r == 0)
		r = fd_write_all(fd, head, HEAD_BYTES);
	if (r == 0)
		r = fd_write_all(fd, text.p, text.n);
	return r < 0 ? err_errno(err, r, "cannot write %s", file) : 0;
}

static bool read_head(const char *text, size_t n, struct saved *ret)
{
	char *end;

	if (n < HEAD_BYTES || hex_decode(slice_of(text, 2 * SHA256_BYTES), ret->sha) < 0 ||
		text[2 * SHA256_BYTES] != ' ')
		return false;
	ret->mode = (uint32_t)strtoul(text + 2 * SHA256_BYTES + 1, &end, 8);
	return end == text + HEAD_BYTES - 1 && *end == '\n' && ret->mode <= 0777;
}

bool saved_get(const char *file, struct saved *ret)
{
	AUTO_FREE char *text = NULL;
	uint8_t sha[SHA256_BYTES];
	size_t n = 0;

	*ret = (struct saved){0};
	/* both versions of a merge have at most PLAN_HUGE bytes */
	if (file_load(file, 2 * PLAN_HUGE + HEAD_BYTES, &text, &n, NULL) < 0 ||
		!read_head(text, n, ret))
		return false;
	sha256(slice_of(text + HEAD_BYTES, n - HEAD_BYTES), sha);
	if (memcmp(sha, ret->sha, sizeof(sha)) != 0)
		return false;
	ret->n = n - HEAD_BYTES;
	ret->text = xmalloc(ret->n + 1);
	memcpy(ret->text, text + HEAD_BYTES, ret->n + 1);
	return true;
}

bool saved_has(const char *file, const uint8_t sha[SHA256_BYTES])
{
	AUTO_SAVED struct saved s = {0};

	return saved_get(file, &s) && memcmp(s.sha, sha, sizeof(s.sha)) == 0;
}

void saved_put_base(const char *dir, const struct bundle *b, const struct plan_step *s)
{
	AUTO_FREE char *file = saved_base_path(dir, s->ws, s->path), *text = NULL;
	size_t n = 0;

	/* Without it the next merge is a conflict. */
	if (bundle_load(b, s->entry, PLAN_HUGE, &text, &n, NULL) == 0 &&
		saved_put(file, slice_of(text, n), s->entry->mode, NULL) < 0)
		(void)unlink(file);
}

/* ---- the content of a step ---- */

static int load_merged(const struct plan_step *s, struct saved *ret, struct err *err)
{
	if (saved_get(s->merged, ret) && memcmp(ret->sha, s->new.sha, sizeof(ret->sha)) == 0)
		return 0;
	saved_done(ret);
	return err_set(
		err, -EBADMSG, "the merge of '%.200s' has changed since the review", s->path);
}

int saved_load_step(const struct bundle *b, const struct plan_step *s, size_t max, char **ret,
	size_t *ret_n, struct err *err)
{
	AUTO_SAVED struct saved saved = {0};
	int r;

	if (!s->merged)
		return bundle_load(b, s->entry, max, ret, ret_n, err);
	r = load_merged(s, &saved, err);
	if (r < 0)
		return r;
	*ret_n = MIN(saved.n, max);
	saved.text[*ret_n] = '\0';
	*ret = TAKE(saved.text);
	return 0;
}

int saved_copy_step(const struct bundle *b, const struct plan_step *s, int out, struct err *err)
{
	AUTO_SAVED struct saved saved = {0};
	int r;

	if (!s->merged)
		return bundle_copy(b, s->entry, out, err);
	r = load_merged(s, &saved, err);
	if (r == 0) {
		r = fd_write_all(out, saved.text, saved.n);
		if (r < 0)
			r = err_errno(err, r, "cannot copy '%.200s'", s->path);
	}
	return r;
}
