/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sub_ids - ranges of subordinate IDs: /etc/subuid and /etc/subgid.
 *
 * How      A line is USER:FIRST:COUNT; USER is a name or a uid. Other lines are ignored.
 * Trust    Reads files of root; the result is a suggestion that is printed.
 * Limits   SUB_IDS IDs are required to build a template. image/common has the same rule in shell:
 *          the builder runs without sbx.
 * See      sub_ids_test.c, check_host.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SUB_IDS 65536u

/* Whether the file gives the user a range of at least SUB_IDS. */
bool sub_ids_has(const char *file, const char *user, uid_t uid);
/* The first ID of a free range of SUB_IDS: after all ranges of both files, and at least 100000.
 * Returns 0 if no ID is left there. */
uint32_t sub_ids_free(const char *uids, const char *gids);
