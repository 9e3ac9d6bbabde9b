/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_read - the stream with the staged changes of one workspace, bytes in, events out.
 *
 * How      The stream is a tar archive (lib/wire/tar/tar.h). The first component of a name is the
 *          operation: f file, l symbolic link, d directory that is merged with the host's, o
 *          directory that replaces the host's, x deletion, m file that changed while it was read, s
 *          FIFO, socket or device. The rest is the path in the workspace; "." is the workspace.
 *          A later entry replaces an earlier one of the same path: a file that changed while it was
 *          read is sent again.
 * Trust    Parses untrusted input: a guest's stream on the host. A path is relative, has no empty
 *          component, no "." and no "..", and no component with STAGE_TEMP in front. Permission
 *          bits are 0777 at most: no set-id bit passes.
 * Owns     Nothing on the heap. Strings and data are valid until the next call.
 * Limits   STAGE_MAX_ENTRIES, STAGE_MAX_BYTES of all files, STAGE_MAX_DEPTH. Beyond: -E2BIG.
 * See      stage_pack.h, stage_read_test.c, stage_read_fuzz.c
 */
#pragma once

#include "lib/wire/tar/tar.h"

#define STAGE_MAX_ENTRIES (1u << 20)
#define STAGE_MAX_BYTES (2ull << 30)
#define STAGE_MAX_DEPTH 128
#define STAGE_TEMP ".sbx-apply-" /* temporary files of sbx apply */

enum stage_op {
	STAGE_FILE,
	STAGE_LINK,
	STAGE_DIR,
	STAGE_OPAQUE,
	STAGE_DELETE,
	STAGE_MOVING,
	STAGE_SPECIAL,
	STAGE_N_OPS,
};

/* What an entry is; strings point into the reader. */
struct stage_item {
	enum stage_op op;
	uint32_t mode; /* of files and directories; the owner can read, and search directories */
	uint64_t size;
	const char *path, *link;
};

struct stage_reader {
	struct tar_reader tar;
	struct stage_item item;
	struct slice data;
	uint64_t n_entries, n_bytes;
};

/* The letter of an operation. */
char stage_op_letter(enum stage_op op);
void stage_reader_init(struct stage_reader *r);
/* As tar_read: an enum tar_event; with TAR_EV_ENTRY the item is set. -EBADMSG, -E2BIG. */
int stage_read(struct stage_reader *r, struct slice *in, struct err *err) MUST_CHECK;
