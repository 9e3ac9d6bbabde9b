/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_path - the directories in which the scripts of sbx find their programs.
 *
 * How      The entries of PATH that are absolute and that, like every directory above them, root
 *          alone can change; links are followed first. Debian's own directories come after them. A
 *          guest that can write a workspace puts a program named `sed` into the virtual environment
 *          or node_modules/.bin there; when that directory is in the PATH of the user, `sbx prove`
 *          and `sbx template build` would run it on the host.
 * Trust    PATH is the user's; directories in it may be a guest's.
 * See      src/prove/main.c, disk.c, follow.c, search_path_test.c
 */
#pragma once

#include "lib/base/attr.h"

#define SEARCH_PATH_DEBIAN "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

/* On the heap. NULL is an empty PATH. */
char *search_path_make(const char *path) MUST_CHECK;
