/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_pack - the changes in an overlay as one stream, the guest's half of `sbx review`. Blocking.
 *
 * How      Walks the upper directory. A character device 0/0 is a deletion; a directory with the
 *          attribute `opaque` replaces the one below. A directory with the attribute `redirect` was
 *          renamed: it is sent whole, as the overlay shows it, so that the host needs no knowledge
 *          of overlays. Its files are copied into the upper directory before, since an apply of the
 *          rename deletes them where they are. A file that changes while it is read is sent again,
 *          STAGE_PACK_TRIES times at most, and is then marked. A file that cannot be read is marked
 *          in the same way.
 * Trust    Runs in the guest as root. The host checks the stream (stage_read.h).
 * Owns     Nothing; the descriptors stay the caller's.
 * Limits   STAGE_MAX_DEPTH.
 * Not      Hard links: each name is a file. Extended attributes and owners are not sent.
 * See      stage_read.h, src/guest/stage/stage.h
 */
#pragma once

#include "lib/base/err.h"

#define STAGE_PACK_TRIES 3

struct stage_source {
	int upper, merged;  /* directories */
	const char *prefix; /* of the overlay's attributes: "trusted.overlay." */
};

int stage_pack(const struct stage_source *src, int out_fd, struct err *err) MUST_CHECK;
