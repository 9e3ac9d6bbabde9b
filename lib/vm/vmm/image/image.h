/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image - snapshots: the saved state of a VM in a directory with checksums.
 *
 * How      STATE/warm/KEY/ has `state` (the devices, as qemu writes them), `memory` (the guest's
 *          memory as a sparse file: sparse.c), `memory.sums` (a table of hashes of its pieces),
 *          root.qcow2 and docker.qcow2 (what the disks had on top of the template at that instant)
 *          and image.json with size and hash of each; for `memory`, of the table. KEY is a hash of
 *          all parts of the VM: a snapshot of another template, class or qemu is never used.
 *
 *          Making one: image_draft_begin gives a directory for the machine's disks;
 *          image_save_begin a pipe for vmm_save, whose other end a child process copies into
 *          `state`, and then what the guest has used of its memory; then image_save_end,
 *          image_finish, which hashes and syncs, and image_publish, which renames.
 *
 *          Using one: image_open, image_copy_disk, image_check_open (a new memory),
 *          image_check_begin (a child process hashes `state` and fills the memory, while the caller
 *          starts qemu with it, or later), and when that has ended image_check_end: only then
 *          vmm_restore may be called. The file behind image_check.fd is the one that is hashed, and
 *          the memory has the bytes that were.
 * Trust    The user's own directory; truncated, changed or foreign files are rejected. What the
 *          guest's qemu wrote is copied as bytes in the child only.
 * Owns     struct image its strings; a draft its directory and the lock, of which there is one:
 *          snapshots are created one at a time. A child dies with its parent.
 * Limits   IMAGE_MAX_JSON, IMAGE_MAX_OVERLAY, IMAGE_MAX_STATE, IMAGE_CHILD_MS.
 * Never    Uses a part: if one file is wrong, there is no snapshot.
 * See      image_test.c, docs/warm.md
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/vm/vmm/vmm.h"

/* Of image.json, `state`, `memory` and `memory.sums`. 1 had the memory inside `state`. 2 had one
 * hash of all of the memory; suspended sandboxes with it are resumed. */
#define IMAGE_FORMAT 3
#define IMAGE_FORMAT_OLD 2
#define IMAGE_FORMAT_STATE 2 /* part of the key: 3 changed only files beside `state` */
#define IMAGE_SUMS "memory.sums"
#define IMAGE_KEY_LEN 32
#define IMAGE_HASH_HEX 64 /* the first 256 bits of BLAKE2b-512 */
#define IMAGE_MAX_JSON 8192
#define IMAGE_MAX_OVERLAY (256ULL << 20) /* of one disk */
#define IMAGE_MAX_STATE (64ULL << 20)	 /* the devices: about 1 MiB */
#define IMAGE_CHILD_MS 120000		 /* the caller's bound for a child */
#define IMAGE_MAX_ID 64

/* What an image is of, besides the machine's own command line. */
struct image_class {
	const char *template_id;
	const char *initrd; /* its file, of which the bytes count */
	uint64_t disk;	    /* bytes of its root disk; 0: as the template's */
};

/* The machine's command line (as if it were to be restored), the class, qemu's own file and the
 * host's processor as one name. */
int image_key(const struct vmm_config *config, const struct image_class *class,
	char key[IMAGE_KEY_LEN + 1], struct err *err) MUST_CHECK;

struct image_file {
	uint64_t size;
	char hash[IMAGE_HASH_HEX + 1];
};

enum image_part { IMAGE_STATE, IMAGE_MEMORY, IMAGE_ROOT, IMAGE_DOCKER, IMAGE_N_PARTS };
#define IMAGE_N_SAVED 2 /* the first two: the machine without its disks */

struct image {
	char *dir;
	char template_id[IMAGE_MAX_ID + 1];
	struct image_file files[IMAGE_N_PARTS];
};

void image_done(struct image *image);
#define AUTO_IMAGE CLEANUP(image_done)

/* -ENOENT when there is none, -EUCLEAN if it cannot be used: err has the reason. */
int image_open(const char *key, struct image *ret, struct err *err) MUST_CHECK;
/* Removes it in any state. */
void image_remove(const char *key);
/* Copies an overlay (IMAGE_ROOT, IMAGE_DOCKER) to a path that does not exist. -EUCLEAN if the copy
 * does not match image.json; then the copy is removed. */
int image_copy_disk(const struct image *image, enum image_part part, const char *to,
	struct err *err) MUST_CHECK;

/* A child that reads and hashes the saved machine, and fills a new memory with it. */
struct image_check {
	int fd;	       /* of `state`, at its beginning: for vmm_restore */
	int from;      /* `memory` of the snapshot, until image_check_begin */
	int sums;      /* the same of `memory.sums`; -1: format 2, one hash of all of it */
	int memory_fd; /* for struct vmm_config; filled when image_check_end gives 0 */
	int bad_fd;    /* the child's note where the memory differs */
	int pidfd;
	pid_t pid;
};

#define IMAGE_CHECK_EMPTY                                                                    \
	{                                                                                    \
		.fd = -1, .from = -1, .sums = -1, .memory_fd = -1, .bad_fd = -1, .pidfd = -1 \
	}

/* Opens the files of that format in dir and creates the memory of the VM, which has no page yet;
 * memory_dir is that of vmm_memory_new. The snapshot may be removed afterwards. */
int image_check_open(const char *dir, int format, const struct image_file want[IMAGE_N_SAVED],
	const char *memory_dir, struct image_check *ret, struct err *err) MUST_CHECK;
/* Starts the child, which also discards what a qemu has written to the memory before. The caller
 * may close memory_fd afterwards. */
int image_check_begin(struct image_check *check, const struct image_file want[IMAGE_N_SAVED],
	struct err *err) MUST_CHECK;
/* When pidfd is readable; closes it. 0; -EUCLEAN: the image is not what it was; -EIO: it could not
 * be read now. */
int image_check_end(struct image_check *check, struct err *err) MUST_CHECK;
/* Kills the child if it runs, closes everything. */
void image_check_done(struct image_check *check);

/* A child that keeps what comes through a pipe, and then the memory, in files. */
struct image_save {
	int pidfd, result_fd;
	pid_t pid;
};

#define IMAGE_SAVE_EMPTY                     \
	{                                    \
		.pidfd = -1, .result_fd = -1 \
	}

/* Makes `state`, `memory` and `memory.sums` in dir. *ret_fd is for vmm_save; memory_fd (borrowed)
 * is the machine's, which must stand still when the pipe ends. Memory that is a file without a name
 * in the same file system becomes `memory`, once; otherwise it is copied. `copy`: always, for a
 * machine that continues. */
int image_save_begin(const char *dir, int memory_fd, bool copy, struct image_save *ret, int *ret_fd,
	struct err *err) MUST_CHECK;
/* When pidfd is readable: the files are complete and synced, or err has the reason. */
int image_save_end(
	struct image_save *save, struct image_file ret[IMAGE_N_SAVED], struct err *err) MUST_CHECK;
void image_save_done(struct image_save *save);

struct image_draft {
	char key[IMAGE_KEY_LEN + 1];
	char *dir; /* root.qcow2 and docker.qcow2 are created here, `state` by image_save_begin */
	int lock_fd;
};

#define IMAGE_DRAFT_EMPTY     \
	{                     \
		.lock_fd = -1 \
	}

/* -EBUSY while another process creates one. */
int image_draft_begin(const char *key, struct image_draft *ret, struct err *err) MUST_CHECK;
/* Completes the draft: image.json describes each file. Changes nothing but the draft. */
int image_finish(struct image_draft *draft, const struct image_class *class,
	const struct image_file saved[IMAGE_N_SAVED], struct err *err) MUST_CHECK;
/* The draft gets its name, in the place of an image of the same key. */
int image_publish(struct image_draft *draft, struct err *err) MUST_CHECK;
/* Removes what was not published, gives the lock back. */
void image_draft_done(struct image_draft *draft);

/* Removes snapshots of other formats and of templates for which is_there returns false. */
void image_collect(bool (*is_there)(void *arg, const char *template_id), void *arg);
