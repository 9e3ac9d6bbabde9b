/* SPDX-License-Identifier: Apache-2.0 */
#include "known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "words.h"

#define MAX_FILE (1ull << 30)

/* Not hashes of anything that is known. */
const uint8_t KNOWN_ABSENT[SHA256_BYTES] = {0};
const uint8_t KNOWN_MIXED[SHA256_BYTES] = {1};

void known_done(struct known *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->v[i].path);
	free(k->v);
	*k = (struct known){0};
}

void known_add(struct known *k, size_t ws, const char *path, const uint8_t sha[SHA256_BYTES])
{
	if (k->n == k->room) {
		k->room = k->room ? k->room * 2 : 64;
		k->v = xrealloc(k->v, k->room * sizeof(*k->v));
	}
	k->v[k->n] = (struct known_row){.ws = ws, .path = xstrdup(path)};
	memcpy(k->v[k->n++].sha, sha, SHA256_BYTES);
}

static int compare_rows(const struct known_row *x, const struct known_row *y)
{
	return x->ws != y->ws ? (x->ws < y->ws ? -1 : 1) : strcmp(x->path, y->path);
}

/* Stable, so that of equal rows the last one is the newest. */
static void merge_rows(struct known_row *v, size_t n, struct known_row *spare)
{
	size_t half = n / 2, i = 0, k = half, at = 0;

	if (n < 2)
		return;
	merge_rows(v, half, spare);
	merge_rows(v + half, n - half, spare);
	while (i < half && k < n)
		spare[at++] = compare_rows(&v[i], &v[k]) <= 0 ? v[i++] : v[k++];
	while (i < half)
		spare[at++] = v[i++];
	memcpy(v, spare, at * sizeof(*v));
}

void known_sort(struct known *k)
{
	AUTO_FREE struct known_row *spare = xcalloc(k->n + 1, sizeof(*spare));
	size_t n = 0;

	merge_rows(k->v, k->n, spare);
	for (size_t i = 0; i < k->n; i++) {
		if (i + 1 < k->n && compare_rows(&k->v[i], &k->v[i + 1]) == 0)
			free(k->v[i].path);
		else
			k->v[n++] = k->v[i];
	}
	k->n = n;
}

const uint8_t *known_find(const struct known *k, size_t ws, const char *path)
{
	const struct known_row key = {.ws = ws, .path = (char *)path};
	size_t low = 0, high = k->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = compare_rows(&key, &k->v[mid]);

		if (c == 0)
			return k->v[mid].sha;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

bool known_has(const struct known *k, size_t ws, const char *path, const uint8_t sha[SHA256_BYTES])
{
	const uint8_t *have = known_find(k, ws, path);

	return have && memcmp(have, sha, SHA256_BYTES) == 0;
}

/* "WS SHA PATH" */
static int add_line(struct known *k, struct slice line)
{
	AUTO_FREE char *text = slice_dup(line), *path = NULL;
	uint8_t sha[SHA256_BYTES];
	char *at;
	size_t ws;

	if (!text)
		return -EBADMSG;
	ws = strtoul(text, &at, 10);
	if (strlen(at) < 2 * SHA256_BYTES + 3 ||
		hex_decode(slice_of(at + 1, 2 * SHA256_BYTES), sha) < 0)
		return -EBADMSG;
	at += 2 * SHA256_BYTES + 2;
	path = words_unescape(at, strlen(at));
	if (!path)
		return -EBADMSG;
	known_add(k, ws, path, sha);
	return 0;
}

int known_load(struct known *k, const char *file, struct err *err)
{
	AUTO_FREE char *text = NULL;
	struct slice rest;
	size_t n = 0;
	int r = file_load(file, MAX_FILE, &text, &n, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	rest = slice_of(text, n);
	while (rest.n > 0)
		if (add_line(k, slice_next_line(&rest)) < 0)
			return err_set(err, -EBADMSG, "%s is damaged", file);
	known_sort(k);
	return 0;
}

static void put_rows(const struct known *k, FILE *f)
{
	for (size_t i = 0; i < k->n; i++) {
		AUTO_FREE char *path = words_escape(k->v[i].path);
		char hex[2 * SHA256_BYTES + 1];

		hex_print(k->v[i].sha, SHA256_BYTES, hex);
		(void)fprintf(f, "%zu %s %s\n", k->v[i].ws, hex, path);
	}
}

int known_save(const struct known *k, const char *file, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return err_errno(err, -errno, "cannot write %s", file);
	put_rows(k, f);
	if (fclose(f) != 0)
		return err_errno(err, -errno, "cannot write %s", file);
	return file_save(file, slice_of(text, n), err);
}
