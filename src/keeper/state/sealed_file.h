/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealed_file - a text in a memory file that no process can change, to be passed to workers.
 *
 * How      sealed_file_make writes the text to a memfd and seals it. sealed_file_open gives a
 *          read-only descriptor with its own file offset.
 * Trust    Internal. The receiver of a descriptor may be compromised: it cannot write the file.
 */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/slice.h"

int sealed_file_make(const char *name, struct slice text) MUST_CHECK;
int sealed_file_open(int fd) MUST_CHECK;
