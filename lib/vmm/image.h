/*
 * image - memory images: a machine as it was at one instant, kept in a folder with checksums.
 *
 * How      STATE/warm/KEY/ has `state` (memory and devices, packed by stream.h), root.qcow2 and
 *          docker.qcow2 (what the disks had on top of the template at that instant) and image.json
 *          with size and hash of each. KEY is a hash of everything that the machine is made of,
 *          hence an image of another template, class, qemu or build is never met.
 *
 *          Making one: image_draft_begin gives a folder for the machine's disks; image_save_begin
 *          a pipe for vmm_save, whose other end a child process packs into `state`; when that has
 *          ended image_save_end, then image_publish, which syncs and renames.
 *
 *          Using one: image_open, image_copy_disk, image_check_begin (a child process hashes
 *          `state` while the caller starts qemu and has it read the same), and when that has ended
 *          image_check_end: before it has said yes no machine of the image may run. The file
 *          behind image_check.fd is the one that is hashed.
 * Trust    The user's own folder; files may be cut, changed or foreign all the same, and are then
 *          refused. What the guest's qemu wrote is read by stream.h in the child only.
 * Owns     struct image its strings; a draft its folder and the lock, of which there is one: images
 *          are made one at a time. A child dies with its parent.
 * Limits   IMAGE_MAX_JSON, IMAGE_MAX_OVERLAY, IMAGE_CHILD_MS.
 * Never    Is used in part: a wrong file means that no image is there.
 * See      image_test.c, docs/warm.md
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "vmm.h"

#define IMAGE_KEY_LEN 32
#define IMAGE_HASH_HEX 64 /* the first 256 bits of BLAKE2b-512 */
#define IMAGE_MAX_JSON 8192
#define IMAGE_MAX_OVERLAY (256ULL << 20) /* of one disk */
#define IMAGE_CHILD_MS 120000		 /* the caller's bound for a child */
#define IMAGE_MAX_ID 64

/* What an image is of, besides the machine's own command line. */
struct image_class {
	const char *template_id;
	const char *build;  /* of sbx */
	const char *initrd; /* its file, of which the bytes count */
};

/* The machine's command line (as if it were to be restored), the class, qemu's own file and the
 * host's processor as one name. */
int image_key(const struct vmm_config *config, const struct image_class *class,
	char key[IMAGE_KEY_LEN + 1], struct err *err) MUST_CHECK;

struct image_file {
	uint64_t size;
	char hash[IMAGE_HASH_HEX + 1];
};

enum image_part { IMAGE_STATE, IMAGE_ROOT, IMAGE_DOCKER, IMAGE_N_PARTS };

struct image {
	char *dir;
	char template_id[IMAGE_MAX_ID + 1];
	struct image_file files[IMAGE_N_PARTS];
};

void image_done(struct image *image);
#define AUTO_IMAGE CLEANUP(image_done)

/* -ENOENT when there is none, -EUCLEAN when it cannot be used: err says why. */
int image_open(const char *key, struct image *ret, struct err *err) MUST_CHECK;
/* Gone, whatever it is. */
void image_remove(const char *key);
/* Copies an overlay (IMAGE_ROOT, IMAGE_DOCKER) to a path that is not there. -EUCLEAN when the copy is
 * not what the image says; then nothing is left of it. */
int image_copy_disk(const struct image *image, enum image_part part, const char *to,
	struct err *err) MUST_CHECK;

/* A child that reads and hashes one file. */
struct image_check {
	int fd; /* of the file, at its beginning: for vmm_restore */
	int pidfd;
	pid_t pid;
};

#define IMAGE_CHECK_EMPTY             \
	{                             \
		.fd = -1, .pidfd = -1 \
	}

int image_check_begin(const char *path, const struct image_file *want, struct image_check *ret,
	struct err *err) MUST_CHECK;
/* When pidfd is readable; closes it. 0, or -EUCLEAN with the reason. */
int image_check_end(struct image_check *check, struct err *err) MUST_CHECK;
/* Kills the child if it runs, closes everything. */
void image_check_done(struct image_check *check);

/* A child that packs what comes through a pipe into a file. */
struct image_save {
	int pidfd, result_fd;
	pid_t pid;
};

#define IMAGE_SAVE_EMPTY                     \
	{                                    \
		.pidfd = -1, .result_fd = -1 \
	}

/* *ret_fd is for vmm_save. The file must not be there yet. */
int image_save_begin(
	const char *path, struct image_save *ret, int *ret_fd, struct err *err) MUST_CHECK;
/* When pidfd is readable: the file is whole and synced, or err says why not. */
int image_save_end(struct image_save *save, struct image_file *ret, struct err *err) MUST_CHECK;
void image_save_done(struct image_save *save);

struct image_draft {
	char key[IMAGE_KEY_LEN + 1];
	char *dir; /* root.qcow2 and docker.qcow2 are made here, `state` by image_save_begin */
	int lock_fd;
};

#define IMAGE_DRAFT_EMPTY     \
	{                     \
		.lock_fd = -1 \
	}

/* -EBUSY while another process makes one. */
int image_draft_begin(const char *key, struct image_draft *ret, struct err *err) MUST_CHECK;
/* Replaces an image of the same key. */
int image_publish(struct image_draft *draft, const struct image_class *class,
	const struct image_file *state, struct err *err) MUST_CHECK;
/* Removes what was not published, gives the lock back. */
void image_draft_done(struct image_draft *draft);

/* Is one being made now? */
bool image_is_busy(void);
/* Removes images of other builds and of templates for which is_there says no. */
void image_collect(
	const char *build, bool (*is_there)(void *arg, const char *template_id), void *arg);
