/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept - the saved memory of suspended sandboxes, for sbxd.
 *
 * How      A sandbox without a keeper whose directory has suspend/image.json is suspended. The
 *          keeper writes it at the end of a run and consumes it at the next start
 *          (src/keeper/memory/suspend_file.h). sbxd checks for it, and removes it when the sandbox
 *          is stopped without suspend. The memory fits a VM of the same size, so the next start
 *          takes CPUs, memory and accelerator from spec.json of the last one; changes by `sbx
 *          update` apply at the start after a stop.
 * Trust    The user's own directory. Reads the size of a file, and spec.json as the keeper reads
 *          it. What is removed is not searched for through a symbolic link.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include "lib/rules/spec/spec.h"

bool kept_is_there(const char *id);
/* Suspended by its idle timeout. */
bool kept_is_parked(const char *id);
/* Whether a VM of these CPUs, memory and accelerator is what the sandbox runs on now. */
bool kept_is_current(const struct spec *spec, const char *accel);
/* suspended_at, suspended_bytes and suspended_by. */
void kept_describe(json_t *o, const char *id);
/* Sets the size of the saved VM, and with accel its accelerator; no change without a snapshot. */
void kept_fit(struct spec *spec, bool accel);
/* Removes also invalid snapshots and files of an interrupted keeper. */
void kept_remove(const char *id);
/* Removes only invalid snapshots: the sandbox runs. */
void kept_remove_bad(const char *id);
/* Removes one directory with the files of a snapshot. */
void kept_remove_folder(const char *id, const char *folder);
