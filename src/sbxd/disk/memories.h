/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memories - the saved memory of checkpoints: sandboxes/ID/memory.SEQ.
 *
 * How      The keeper writes the directory (src/keeper/memory/point.c). A rewind links its files
 *          into `suspend` and copies the empty tops, so that the sandbox is as after a suspend: the
 *          next start resumes it (src/keeper/memory/resume.c) and checks all. A directory of no
 *          checkpoint is removed when the list is saved.
 * Trust    A compromised keeper can write the files: links are not followed, sizes are limited, and
 *          the next keeper trusts them no more than those of a suspend.
 * Limits   MEMORIES_MAX_TOP bytes of a top.
 * See      rewind.h, checkpoints.h
 */
#pragma once

#include "checkpoints.h"

#define MEMORIES_MAX_TOP (16u << 20) /* of an empty qcow2 of 1 TiB: less than 1 MiB */

/* Whether the checkpoint with the record `seq` has memory. */
bool memories_has(const char *id, uint64_t seq);
/* On the disk. */
uint64_t memories_bytes(const char *id, uint64_t seq);
/* The sandbox has no tops: makes it one that is suspended at the checkpoint. Can be repeated. */
int memories_place(const char *id, uint64_t seq, struct err *err) MUST_CHECK;
/* Removes the memory of checkpoints that the list does not have. */
void memories_sweep(const char *id, const struct checkpoints *l);
