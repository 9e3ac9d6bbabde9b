/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keepenv - the variables that a program of ours needs from the user's environment.
 *
 * How      keepenv_pick goes through environ and keeps what names folders, languages, the session
 *          bus and the configuration of credential helpers; keepenv_pick_few keeps folders and
 *          our own settings only. Everything else stays behind: in a developer's shell that is
 *          where keys and tokens are.
 * Trust    The user's own environment. sbx starts sbxd and sbxd the vault with keepenv_pick; sbxd
 *          starts keepers and the maker of images with keepenv_pick_few.
 * Owns     Nothing: the list points into environ.
 * Limits   KEEPENV_MAX variables.
 * See      keepenv_test.c
 */
#pragma once

#include <stddef.h>
#include "lib/base/attr.h"

#define KEEPENV_MAX 96

/* NULL behind the last; gives their number. */
size_t keepenv_pick(char *ret[KEEPENV_MAX + 1]);
size_t keepenv_pick_few(char *ret[KEEPENV_MAX + 1]);
