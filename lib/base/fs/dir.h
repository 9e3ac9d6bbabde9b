/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir - the entries of a directory.
 *
 * How      AUTO_DIR DIR *d = opendir(PATH); while ((e = dir_next(d))) ...; the directory is closed
 *          at the end of the scope.
 * Trust    Names may be a guest's.
 * See      dir_test.c
 */
#pragma once

#include <dirent.h>
#include "lib/base/attr.h"

void dir_close(DIR **d);
#define AUTO_DIR CLEANUP(dir_close)

/* The next entry, without . and .. ; NULL at the end, and if `d` is NULL. At the end errno is 0
 * unless reading failed. */
struct dirent *dir_next(DIR *d);
/* The directory of `fd`, which belongs to it from now on. NULL with errno; `fd` is then closed. -1
 * is an fd that could not be opened. */
DIR *dir_of(int fd);
