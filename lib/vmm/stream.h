/*
 * stream - a memory image on its way from qemu to its file: pages of zeros are left out.
 *
 * How      qemu writes a record for every page, also for those that the guest never touched; reading
 *          such a record makes qemu touch the page, and a restored machine of 4 GiB would hold
 *          4 GiB. A new machine's memory is zero anyway. stream_pack reads the sections of memory
 *          record by record and passes the rest on as it is.
 * Trust    qemu may be taken over by the guest whose memory it is: every length is checked, and what
 *          is not understood is passed on untouched or refused. The result goes to a qemu in
 *          the same jail, of the same guest.
 * Owns     Its buffers.
 * Limits   STREAM_MAX_MEMORY (for the map of pages that were seen).
 * Never    Leaves out a page that was written before, a page below 1 MiB, or one of a ROM: firmware
 *          puts something there before the image is read.
 * See      stream_test.c, stream_fuzz.c
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include "lib/base/attr.h"

#define STREAM_MAX_MEMORY (1ULL << 40)

struct stream_io {
	/* As read(2): 0 at the end, a negative errno. */
	ssize_t (*read)(void *arg, void *buf, size_t n);
	/* Takes all of it: 0 or a negative errno. */
	int (*write)(void *arg, const void *p, size_t n);
	void *arg;
};

struct stream_stats {
	uint64_t n_kept, n_left_out; /* pages */
};

/* Until the end of the input. -EBADMSG: no image, or one that is cut off inside its memory. */
int stream_pack(const struct stream_io *io, struct stream_stats *ret) MUST_CHECK;
