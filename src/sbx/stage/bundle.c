/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "words.h"

#define BUFFER (256u << 10)
#define MAX_MANIFEST (1ull << 30)

void bundle_init(struct bundle *b)
{
	*b = (struct bundle){0};
	for (size_t i = 0; i < SPEC_MAX_WORKSPACES; i++)
		b->fds[i] = -1;
}

void bundle_done(struct bundle *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->v[i].path);
		free(b->v[i].link);
	}
	free(b->v);
	for (size_t i = 0; i < SPEC_MAX_WORKSPACES; i++)
		fd_close(&b->fds[i]);
	bundle_init(b);
}

/* ---- one stream ---- */

struct reading {
	struct bundle *b;
	struct stage_reader reader;
	struct sha256 sha;
	bool in_file;
	uint8_t buf[BUFFER];
};

static void end_file(struct reading *r)
{
	if (r->in_file)
		sha256_end(&r->sha, r->b->v[r->b->n - 1].sha);
	r->in_file = false;
}

static int add_entry(struct reading *r, struct err *err)
{
	struct bundle *b = r->b;
	const struct stage_item *i = &r->reader.item;

	end_file(r);
	if (b->n >= STAGE_MAX_ENTRIES || i->size > STAGE_MAX_BYTES - b->n_bytes)
		return err_set(err, -E2BIG, "the staged changes are too large");
	b->n_bytes += i->size;
	if (b->n == b->room) {
		b->room = b->room ? b->room * 2 : 64;
		b->v = xrealloc(b->v, b->room * sizeof(*b->v));
	}
	b->v[b->n] = (struct bundle_entry){.op = i->op,
		.mode = i->mode,
		.size = i->size,
		.ws = b->n_ws,
		.order = b->n,
		.path = xstrdup(i->path),
		.link = xstrdup(i->op == STAGE_LINK ? i->link : "")};
	if (i->op == STAGE_LINK)
		sha256(slice_from_str(i->link), b->v[b->n].sha);
	b->n++;
	r->in_file = i->op == STAGE_FILE;
	sha256_begin(&r->sha);
	return 0;
}

/* `at` is the offset of the buffer in the stream. */
static void add_data(struct reading *r, uint64_t at)
{
	struct bundle_entry *e = &r->b->v[r->b->n - 1];

	if (r->sha.n == 0)
		e->at = at + (uint64_t)(r->reader.data.p - r->buf);
	sha256_add(&r->sha, r->reader.data);
}

static int read_piece(struct reading *r, struct slice in, uint64_t at, struct err *err)
{
	for (;;) {
		int ev = stage_read(&r->reader, &in, err), k = 0;

		if (ev == TAR_EV_ENTRY)
			k = add_entry(r, err);
		else if (ev == TAR_EV_DATA)
			add_data(r, at);
		else
			return ev;
		if (k < 0)
			return k;
	}
}

static int read_stream(struct reading *r, int fd, struct err *err)
{
	int ev = TAR_EV_MORE;

	for (uint64_t at = 0; ev == TAR_EV_MORE;) {
		ssize_t n = pread(fd, r->buf, sizeof(r->buf), (off_t)at);

		if (n < 0)
			return err_errno(err, -errno, "cannot read the staged changes");
		if (n == 0)
			return err_set(err, -EBADMSG, "the staged changes are incomplete");
		ev = read_piece(r, slice_of(r->buf, (size_t)n), at, err);
		at += (uint64_t)n;
	}
	end_file(r);
	return ev < 0 ? ev : 0;
}

int bundle_add(struct bundle *b, int fd, struct err *err)
{
	AUTO_FREE struct reading *r = xmalloc(sizeof(*r));
	int k;

	if (b->n_ws == SPEC_MAX_WORKSPACES) {
		fd_close(&fd);
		return err_set(err, -E2BIG, "too many workspaces");
	}
	b->fds[b->n_ws] = fd;
	r->b = b;
	r->in_file = false;
	stage_reader_init(&r->reader);
	k = read_stream(r, fd, err);
	b->n_ws++;
	return k;
}

/* ---- all of it ---- */

static int compare_paths(const char *a, const char *b)
{
	if (strcmp(a, ".") == 0 || strcmp(b, ".") == 0)
		return (strcmp(a, ".") != 0) - (strcmp(b, ".") != 0);
	while (*a && *a == *b)
		a++, b++;
	/* a slash sorts before every other character, so that children follow their parent */
	return (*a == '/' ? 1 : (uint8_t)*a + (*a != 0)) -
	       (*b == '/' ? 1 : (uint8_t)*b + (*b != 0));
}

static int compare_place(const struct bundle_entry *x, const struct bundle_entry *y)
{
	if (x->ws != y->ws)
		return x->ws < y->ws ? -1 : 1;
	return compare_paths(x->path, y->path);
}

static int compare_entries(const void *a, const void *b)
{
	const struct bundle_entry *x = a, *y = b;
	int k = compare_place(x, y);

	return k ? k : (x->order > y->order) - (x->order < y->order);
}

const struct bundle_entry *bundle_find(const struct bundle *b, size_t ws, const char *path)
{
	const struct bundle_entry key = {.ws = ws, .path = (char *)path};
	size_t low = 0, high = b->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int k = compare_place(&key, &b->v[mid]);

		if (k == 0)
			return &b->v[mid];
		if (k < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* Of entries with the same path the last one counts. */
static void drop_earlier(struct bundle *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		if (i + 1 < b->n && compare_place(&b->v[i], &b->v[i + 1]) == 0) {
			free(b->v[i].path);
			free(b->v[i].link);
			continue;
		}
		b->v[n++] = b->v[i];
	}
	b->n = n;
}

static bool has_parent(const struct bundle *b, const struct bundle_entry *e)
{
	const char *slash = strrchr(e->path, '/');
	AUTO_FREE char *dir = slash ? xstrndup(e->path, (size_t)(slash - e->path)) : xstrdup(".");
	const struct bundle_entry *parent;

	if (strcmp(e->path, ".") == 0)
		return true;
	parent = bundle_find(b, e->ws, dir);
	return parent && (parent->op == STAGE_DIR || parent->op == STAGE_OPAQUE);
}

int bundle_seal(struct bundle *b, struct err *err)
{
	if (b->n)
		qsort(b->v, b->n, sizeof(b->v[0]), compare_entries);
	drop_earlier(b);
	for (size_t i = 0; i < b->n; i++)
		if (!has_parent(b, &b->v[i]))
			return err_set(err, -EBADMSG,
				"the sandbox sent a path whose directory it did not send");
	return 0;
}

/* ---- saved ---- */

static int put_manifest(const struct bundle *b, FILE *f)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct bundle_entry *e = &b->v[i];
		AUTO_FREE char *path = words_escape(e->path), *link = words_escape(e->link);
		char hex[2 * SHA256_BYTES + 1];

		hex_print(e->sha, sizeof(e->sha), hex);
		if (fprintf(f, "%c %zu %03o %" PRIu64 " %s %s %s\n", stage_op_letter(e->op), e->ws,
			    (unsigned)e->mode, e->size, hex, path, link) < 0)
			return -EIO;
	}
	return 0;
}

static int make_manifest(struct bundle *b, char **ret, size_t *ret_n, struct err *err)
{
	uint8_t sha[SHA256_BYTES];
	FILE *f = open_memstream(ret, ret_n);
	int r = f ? put_manifest(b, f) : -ENOMEM;

	if (f && fclose(f) != 0)
		r = -ENOMEM;
	if (r < 0)
		return err_errno(err, r, "cannot write the manifest");
	sha256(slice_of(*ret, *ret_n), sha);
	hex_print(sha, sizeof(sha), b->manifest);
	return 0;
}

int bundle_save(struct bundle *b, const char *dir, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/manifest", dir);
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r = make_manifest(b, &text, &n, err);

	return r < 0 ? r : file_save(path, slice_of(text, n), err);
}

static int compare_manifest(struct bundle *b, const char *dir, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/manifest", dir);
	AUTO_FREE char *have = NULL, *want = NULL;
	size_t n_have = 0, n_want = 0;
	int r = make_manifest(b, &want, &n_want, err);

	if (r == 0)
		r = file_load(path, MAX_MANIFEST, &have, &n_have, err);
	if (r < 0)
		return r;
	if (!slice_eq(slice_of(have, n_have), slice_of(want, n_want)))
		return err_set(err, -EBADMSG, "%s differs from its manifest", dir);
	return 0;
}

int bundle_open(struct bundle *b, const char *dir, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < SPEC_MAX_WORKSPACES; i++) {
		AUTO_FREE char *path = xasprintf("%s/%zu.tar", dir, i);
		int fd = file_open(path, err);

		if (fd == -ENOENT)
			break;
		r = fd < 0 ? fd : bundle_add(b, fd, err);
	}
	if (r == 0)
		r = bundle_seal(b, err);
	return r < 0 ? r : compare_manifest(b, dir, err);
}

/* ---- contents ---- */

int bundle_load(const struct bundle *b, const struct bundle_entry *e, size_t max, char **ret,
	size_t *ret_n, struct err *err)
{
	size_t n = (size_t)MIN(e->size, (uint64_t)max), done = 0;
	char *text = xmalloc(n + 1);

	while (done < n) {
		ssize_t k = pread(b->fds[e->ws], text + done, n - done, (off_t)(e->at + done));

		if (k <= 0) {
			free(text);
			return err_errno(err, k < 0 ? -errno : -EIO, "cannot read the bundle");
		}
		done += (size_t)k;
	}
	text[n] = '\0';
	*ret = text;
	*ret_n = n;
	return 0;
}

int bundle_copy(const struct bundle *b, const struct bundle_entry *e, int out, struct err *err)
{
	AUTO_FREE uint8_t *buf = xmalloc(BUFFER);
	uint8_t have[SHA256_BYTES];
	struct sha256 sha;

	sha256_begin(&sha);
	for (uint64_t done = 0; done < e->size;) {
		size_t want = (size_t)MIN(e->size - done, (uint64_t)BUFFER);
		ssize_t k = pread(b->fds[e->ws], buf, want, (off_t)(e->at + done));
		int r = k > 0 ? fd_write_all(out, buf, (size_t)k) : -EIO;

		if (r < 0)
			return err_errno(err, r, "cannot copy '%.200s' from the bundle", e->path);
		sha256_add(&sha, slice_of(buf, (size_t)k));
		done += (uint64_t)k;
	}
	sha256_end(&sha, have);
	return memcmp(have, e->sha, sizeof(have)) == 0
		       ? 0
		       : err_set(err, -EBADMSG, "the bundle has changed since the review");
}
