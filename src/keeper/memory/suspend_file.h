/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend_file - the directory `suspend` of a sandbox: the snapshot and its description.
 *
 * How      `state`, `memory` and `memory.sums` are the VM (lib/vm/vmm/image/image.h). image.json
 *          has the format, sizes, hashes, the key of the VM (qemu, guest programs, CPU, class,
 *          names of the disks), and size and time of the disks. `ca` is the sandbox CA, for the
 *          programs that have read its certificate. The directory is written as suspend.new and
 *          renamed when all is on the disk. Everything that needs disk space is written while the
 *          VM can still continue (suspend_file_prepare). Used once: suspend_file_consume renames it
 *          before the VM runs, because the disks change then. A checkpoint with memory has the same
 *          files in memory.SEQ, with the two empty tops that the snapshot belongs to: a rewind
 *          copies both (src/sbxd/disk/memories.h). `by` has the reason of the suspension, for sbxd
 *          (src/sbxd/disk/kept.h).
 * Trust    The user's own directory, mode 0700. Truncated, changed or stale files are refused with
 *          the reason.
 * Owns     struct suspend_file has the CA's key: suspend_file_wipe.
 * Limits   SUSPEND_MAX_JSON.
 * Never    Contains a credential: the guest's memory has placeholder credentials only.
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
/* The file `by`: why the sandbox was suspended. */
#define SUSPEND_BY_REQUEST "request" /* SUSPEND */
#define SUSPEND_BY_STOP "stop"	     /* SUSPEND_IDLE */
#define SUSPEND_BY_IDLE "idle"	     /* its idle timeout expired */
#define SUSPEND_MEMORY "memory."     /* and the number of the record of a checkpoint */

struct suspend_stamp {
	uint64_t size, mtime_ns;
};

struct suspend_file {
	char key[IMAGE_KEY_LEN + 1];
	int format;	/* of an opened one: IMAGE_FORMAT or IMAGE_FORMAT_OLD */
	uint64_t at_ms; /* wall clock */
	const char *by; /* SUSPEND_BY_*, for the file `by`; NULL: none */
	struct image_file saved[IMAGE_N_SAVED];
	struct suspend_stamp disks[SUSPEND_N_DISKS]; /* root.qcow2, docker.qcow2 */
	bool has_ca;
	struct edge_ca ca;
	char ca_hash[IMAGE_HASH_HEX + 1]; /* of the file `ca`; "": none */
};

/* dir: the sandbox's directory. Creates an empty suspend.new and returns its path. */
int suspend_file_begin(const char *dir, char **ret_new, struct err *err) MUST_CHECK;
/* Stores size and time of the disks. */
int suspend_file_stamp(const char *dir, struct suspend_file *f, struct err *err) MUST_CHECK;
/* Writes all files except `state` and `memory`. The VM still runs: a full disk loses nothing. */
int suspend_file_prepare(const char *dir, struct suspend_file *f, struct err *err) MUST_CHECK;
/* qemu has exited: updates image.json in place and renames the directory. */
int suspend_file_publish(const char *dir, const struct suspend_file *f, struct err *err) MUST_CHECK;
/* The VM continues: suspend.new becomes memory.SEQ. */
int suspend_file_keep(const char *dir, uint64_t seq, struct err *err) MUST_CHECK;
/* True if the directory exists, usable or not. */
bool suspend_file_is_there(const char *dir);
/* Returns -ENOENT if there is none, -EUCLEAN with the reason if it can never be used, another error
 * if it cannot be read now. The caller checks the hashes of `state` and `memory`. */
int suspend_file_open(
	const char *dir, const char *key, struct suspend_file *ret, struct err *err) MUST_CHECK;
/* Renames the directory: no later start uses it. */
int suspend_file_consume(const char *dir, struct err *err) MUST_CHECK;
/* The VM did not run: undoes suspend_file_consume. */
void suspend_file_put_back(const char *dir);
/* Renames the directory to suspend.bad, which it replaces. */
void suspend_file_refuse(const char *dir);
/* Removes stale files of a killed keeper, and a used snapshot. */
void suspend_file_tidy(const char *dir);
void suspend_file_remove(const char *dir);
void suspend_file_wipe(struct suspend_file *f);
