/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keepenv - the variables that our programs need from the user's environment.
 *
 * How      keepenv_pick reads environ and keeps the variables for directories, languages, the
 *          session bus and the configuration of credential helpers; keepenv_pick_few keeps
 *          directories and our own settings only. All other variables are dropped: in a developer's
 *          shell they contain keys and tokens.
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

/* NULL after the last; gives their number. */
size_t keepenv_pick(char *ret[KEEPENV_MAX + 1]);
size_t keepenv_pick_few(char *ret[KEEPENV_MAX + 1]);
