/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_internal - what the files of lib/vm/template share; for them and their tests only.
 *
 * How      template_file.c: names, directories, links, the lock. template_hash.c: the hash of a
 *          file. template_stamp.c: what was hashed and not touched since. template_manifest.c:
 *          reading and checking manifests. template_qcow2.c: the heads of layers.
 * Trust    As template.h; manifests and layers may be untrusted.
 * Owns     Nothing.
 * Limits   The TEMPLATE_MAX_* here.
 */
#pragma once

#include <sys/stat.h>
#include "lib/base/slice.h"
#include "template.h"

#define TEMPLATE_BLOCK 65536
#define TEMPLATE_FORMAT 2
#define TEMPLATE_HASH_LEN 32 /* the first bytes of BLAKE2b-512 */
#define TEMPLATE_HASH_HEX 64
#define TEMPLATE_MAX_MANIFEST (256 << 10)
#define TEMPLATE_MAX_DISK (1ull << 40)	  /* a base, and what a layer takes */
#define TEMPLATE_MAX_SMALL (256ull << 20) /* kernel, modules */
#define TEMPLATE_MAX_FILES (2 + TEMPLATE_N_DISKS * TEMPLATE_MAX_LAYERS)
#define TEMPLATE_LOCK_MS 20000
#define TEMPLATE_MIN_FREE (512ull << 20) /* of the disk, when a file is loaded or copied */

/* ---- template.c ---- */

/* The disk space of these files of the directory. */
uint64_t template_bytes_of(const char *dir, const json_t *files);

/* ---- template_file.c ---- */

/* The directory with the names, or NAME in it. */
char *template_top(const char *name);
/* .store, or what is in it. */
char *template_store(const char *name);
bool template_is_id(const char *s);
int template_make_store(struct err *err) MUST_CHECK;
/* Of the store, until the fd is closed: who publishes and who removes are never two. */
int template_lock(int *ret_fd, struct err *err) MUST_CHECK;
/* A second name for the file; a copy that shares or skips what it can where that is not
 * possible. */
int template_link(const char *from, const char *to, struct err *err) MUST_CHECK;
/* A new file with the same content: shared blocks where the file system has them. -ENOSPC when less
 * than TEMPLATE_MIN_FREE would be left. */
int template_copy(const char *from, const char *to, struct err *err) MUST_CHECK;
int template_sync_dir(const char *dir, struct err *err) MUST_CHECK;
/* "name" becomes a link to target, in one step; a directory of that name must not be there. */
int template_point(const char *path, const char *target, struct err *err) MUST_CHECK;
bool template_is_real_dir(const char *path);

/* ---- template_hash.c ---- */

struct template_hash {
	void *ctx;
};

struct template_meter {
	template_progress_fn *fn;
	void *arg;
	const char *text;
	uint64_t done, total;
	unsigned shown;
};

void template_meter_add(struct template_meter *m, uint64_t n);

/* Of one file in pieces: size first, then each block that is not all zero, upwards. */
void template_hash_begin(struct template_hash *h, uint64_t size);
void template_hash_block(struct template_hash *h, uint64_t offset, struct slice block);
void template_hash_end(struct template_hash *h, char ret_hex[TEMPLATE_HASH_HEX + 1]);
void template_hash_done(struct template_hash *h);
bool template_is_zero(struct slice s);

/* Calls fn with each block that is not all zero. */
typedef int template_block_fn(void *arg, uint64_t offset, struct slice block);
int template_each_block(
	int fd, uint64_t size, template_block_fn *fn, void *arg, struct err *err) MUST_CHECK;
int template_hash_file(const char *path, uint64_t size, struct template_meter *m,
	char ret_hex[TEMPLATE_HASH_HEX + 1], struct err *err) MUST_CHECK;

/* ---- template_manifest.c ---- */

enum template_part { TEMPLATE_PART_BASE, TEMPLATE_PART_LAYER, TEMPLATE_PART_SMALL };

struct template_name {
	enum template_part part;
	enum template_disk disk;
	unsigned layer; /* 1 is the lowest */
};

/* Is it a name that a file of a template may have? */
bool template_file_name(const char *s, struct template_name *ret);
/* Of a published file. A layer has what was written in a sandbox: only its owner reads it. */
mode_t template_file_mode(const char *name);
/* "files" of a manifest: known names, no gap in a chain, sizes within the limits, hashes well made
 * (or missing, when they need not be there). */
int template_check_files(const json_t *files, bool need_hashes, struct err *err) MUST_CHECK;
/* Reads and checks the manifest in the directory. */
int template_manifest_read(const char *dir, json_t **ret, struct err *err) MUST_CHECK;
/* From names, sizes and hashes. -ENODATA when a hash is missing. */
int template_make_id(const json_t *files, char ret[TEMPLATE_ID_LEN + 1]) MUST_CHECK;
/* Fills dir, kernel, modules and chains; `files` is checked already. */
void template_fill(struct template *t, const char *dir, const json_t *files);
void template_chain_done(struct template_chain *c);
bool template_same_files(const json_t *a, const json_t *b);

/* ---- template_stamp.c ---- */

/* The directory's files as of the last hashing; an empty object if that is unknown. */
json_t *template_stamps_read(const char *dir);
void template_stamps_write(const char *dir, const json_t *stamps);
void template_stamp_set(json_t *stamps, const char *name, const struct stat *st, const char *hash);
/* The hash it had, whether or not it was touched since; NULL when it was never hashed. */
const char *template_stamp_sum(const json_t *stamps, const char *name);
/* The hash of an unchanged file; else NULL. */
const char *template_stamp_get(const json_t *stamps, const char *name, const struct stat *st);

/* ---- template.c ---- */

/* A directory of this name that is not a link is moved into the store. Under the lock. */
int template_move_aside(const char *name, struct err *err) MUST_CHECK;

/* ---- template_qcow2.c ---- */

/* Refuses a layer that names another file, is encrypted, or needs what we do not know. ret_size:
 * of the disk, may be NULL. */
int template_qcow2_check(const char *path, uint64_t *ret_size, struct err *err) MUST_CHECK;
/* Removes the name of the backing file from our layer: it is a path of this host. */
int template_qcow2_strip(const char *path, struct err *err) MUST_CHECK;

/* ---- template_export.c, template_import.c ---- */

#define TEMPLATE_MAGIC "SBXTMPL1"
#define TEMPLATE_MAGIC_LEN 8
#define TEMPLATE_PIECE (8 + TEMPLATE_BLOCK)
#define TEMPLATE_FRAME_PIECES 16
#define TEMPLATE_MAX_RAW (TEMPLATE_FRAME_PIECES * TEMPLATE_PIECE)
#define TEMPLATE_MAX_PACKED 1052680 /* a little more than what zstd may make of it */
#define TEMPLATE_ZSTD_LEVEL 3

/* The names in their order, n of them; they belong to `files`. */
size_t template_sorted(const json_t *files, const char *ret[TEMPLATE_MAX_FILES]);
