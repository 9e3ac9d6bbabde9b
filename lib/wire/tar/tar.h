/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar - tar headers and bodies, bytes in, events out; and the same for writing.
 *
 * How      tar_read reads bytes of an archive and yields events: an entry, pieces of its body, the
 *          end. Names longer than ustar's, sizes over 8 GiB and parts of a second come in pax
 *          records, which tar_read takes in and tar_write_entry puts out; GNU's long names and
 *          binary numbers are read too.
 * Trust    Parses untrusted input: a guest's archive on the host. Runs in sbx and in sbx-guest.
 * Owns     Nothing on the heap. Body slices point into the caller's input.
 * Limits   TAR_MAX_PATH, TAR_MAX_EXT. Over a limit, a wrong checksum, a negative size, a sparse
 *          file, an unknown kind: -EBADMSG, and the reader is dead.
 * Never    Judges names: absolute ones and `..` come through as they are (see tree.h).
 * See      tar_test.c, tar_fuzz.c
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/slice.h"

#define TAR_BLOCK 512
#define TAR_MAX_PATH 4096  /* with its NUL */
#define TAR_MAX_EXT 16384  /* bytes of pax records or of a GNU long name */
#define TAR_MAX_HEAD 16384 /* what tar_write_entry needs at most */

enum tar_type {
	TAR_FILE,
	TAR_HARDLINK,
	TAR_SYMLINK,
	TAR_CHAR,
	TAR_BLOCKDEV,
	TAR_DIR,
	TAR_FIFO,
	TAR_N_TYPES,
};

struct tar_entry {
	enum tar_type type;
	uint32_t mode; /* permission bits with set-id and sticky, 07777 */
	uint32_t uid, gid;
	uint64_t size; /* 0 unless TAR_FILE */
	int64_t mtime_s;
	uint32_t mtime_ns;
	char name[TAR_MAX_PATH]; /* never empty, no NUL inside */
	char link[TAR_MAX_PATH]; /* of links; empty otherwise */
};

enum tar_event {
	TAR_EV_MORE,  /* the input is used up */
	TAR_EV_ENTRY, /* reader->entry is a new one; its body, if any, follows */
	TAR_EV_DATA,  /* reader->data is a piece of its body */
	TAR_EV_END,   /* the archive is complete; what follows is ignored. Without it: cut off */
};

struct tar_reader {
	struct tar_entry entry;
	struct slice data;
	uint64_t left; /* body bytes of the entry (or of ext) still to come */
	uint32_t pad;  /* bytes up to the next block */
	uint8_t state;
	uint8_t ext_kind; /* what is being collected in ext */
	uint8_t seen;	  /* bits: which extensions wait for their entry */
	uint8_t n_zero;	  /* zero blocks in a row */
	uint32_t n_block, n_ext;
	uint8_t block[TAR_BLOCK];
	uint8_t ext[TAR_MAX_EXT];
	struct tar_entry over; /* fields that extensions set, marked in `set` */
	uint32_t set;
};

void tar_reader_init(struct tar_reader *r);
/* One step: takes bytes from the front of *in. An enum tar_event, or -EBADMSG with a sentence. */
int tar_read(struct tar_reader *r, struct slice *in, struct err *err) MUST_CHECK;

/* The header of an entry with the pax records that it needs. -EMSGSIZE when buf is too small. */
int tar_write_entry(const struct tar_entry *e, uint8_t *buf, size_t size, size_t *ret_n) MUST_CHECK;
/* How many zero bytes follow a body of n bytes. */
static inline size_t tar_padding(uint64_t n)
{
	return (size_t)((TAR_BLOCK - n % TAR_BLOCK) % TAR_BLOCK);
}
/* An archive ends with this many zero bytes. */
#define TAR_END_BYTES (2 * TAR_BLOCK)
