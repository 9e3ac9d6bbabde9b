/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_internal - what tar.c, tar_ext.c and tar_write.c share: where a header's fields are.
 *
 * Trust    See tar.h.
 */
#pragma once

#include <assert.h>
#include "tar.h"

enum tar_at {
	TAR_AT_NAME = 0,
	TAR_AT_MODE = 100,
	TAR_AT_UID = 108,
	TAR_AT_GID = 116,
	TAR_AT_SIZE = 124,
	TAR_AT_MTIME = 136,
	TAR_AT_SUM = 148,
	TAR_AT_TYPE = 156,
	TAR_AT_LINK = 157,
	TAR_AT_MAGIC = 257,
	TAR_AT_PREFIX = 345,
};

enum tar_set {
	TAR_SET_NAME = 1,
	TAR_SET_LINK = 2,
	TAR_SET_SIZE = 4,
	TAR_SET_UID = 8,
	TAR_SET_GID = 16,
	TAR_SET_MTIME = 32,
};

char tar_type_letter(enum tar_type type);
/* Reads the extension that is complete in r->ext into r->over. TAR_EV_MORE or -EBADMSG. */
int tar_take_ext(struct tar_reader *r, struct err *err) MUST_CHECK;
