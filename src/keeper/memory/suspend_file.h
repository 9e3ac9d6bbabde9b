/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend_file - the folder `suspend` of a sandbox: its memory, and what that belongs to.
 *
 * How      `state` and `memory` are the machine (lib/vm/vmm/image/image.h), image.json says what it
 *          is: format (IMAGE_FORMAT), sizes and hashes, the key of the machine that wrote it (qemu,
 *          guest programs, processor, class, disks' names), and size and time of the disks at that
 *          instant. `ca` is the sandbox's CA, so that programs that have read its certificate go
 *          on. Written as suspend.new and renamed when all is on the disk. All that needs room on
 *          the disk is written while the machine can still go on (suspend_file_prepare). Used once:
 *          suspend_file_consume renames it away before the machine runs, since the disks move on
 *          then.
 * Trust    The user's own folder, mode 0700; files may be cut, changed or of another time all the
 *          same, and are then refused with the reason.
 * Owns     Nothing; struct suspend_file has the CA's key: suspend_file_wipe.
 * Limits   SUSPEND_MAX_JSON.
 * Never    Has a credential: the guest's memory has sentinels only.
 * See      suspend_file_test.c, docs/suspend.md
 */
#pragma once

#include "lib/os/ipc/edge_chan.h"
#include "lib/vm/vmm/image/image.h"

#define SUSPEND_MAX_JSON 8192
#define SUSPEND_N_DISKS 2
#define SUSPEND_DIR "suspend"
#define SUSPEND_NEW "suspend.new"
#define SUSPEND_USED "suspend.used"
#define SUSPEND_BAD "suspend.bad"

struct suspend_stamp {
	uint64_t size, mtime_ns;
};

struct suspend_file {
	char key[IMAGE_KEY_LEN + 1];
	uint64_t at_ms; /* wall clock */
	struct image_file saved[IMAGE_N_SAVED];
	struct suspend_stamp disks[SUSPEND_N_DISKS]; /* root.qcow2, docker.qcow2 */
	bool has_ca;
	struct edge_ca ca;
	char ca_hash[IMAGE_HASH_HEX + 1]; /* of its file; "": none */
};

/* dir: the sandbox's folder. Makes suspend.new, empty, and gives its path. */
int suspend_file_begin(const char *dir, char **ret_new, struct err *err) MUST_CHECK;
/* The disks as they are now. */
int suspend_file_stamp(const char *dir, struct suspend_file *f, struct err *err) MUST_CHECK;
/* All but `state` and `memory`, which exist. The machine runs still: a full disk loses nothing. */
int suspend_file_prepare(const char *dir, struct suspend_file *f, struct err *err) MUST_CHECK;
/* The machine has ended: image.json gets what is true now, in place, and the folder its name. */
int suspend_file_publish(const char *dir, const struct suspend_file *f, struct err *err) MUST_CHECK;
/* Is there one? Says nothing about whether it is good. */
bool suspend_file_is_there(const char *dir);
/* -ENOENT: none. -EUCLEAN: it can never be used, err says why in a few words. Another error: it
 * could not be read now. The hashes of `state` and `memory` are the caller's to check. */
int suspend_file_open(
	const char *dir, const char *key, struct suspend_file *ret, struct err *err) MUST_CHECK;
/* From now on it is not there any more, whatever happens to us. */
int suspend_file_consume(const char *dir, struct err *err) MUST_CHECK;
/* The machine did not run after all: it is there again. */
void suspend_file_put_back(const char *dir);
/* Moved to suspend.bad, in the place of an earlier one. */
void suspend_file_refuse(const char *dir);
/* What an interrupted keeper has left, and what is consumed. */
void suspend_file_tidy(const char *dir);
void suspend_file_remove(const char *dir);
void suspend_file_wipe(struct suspend_file *f);
