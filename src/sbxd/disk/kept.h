/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept - the memory of suspended sandboxes, as far as sbxd has to do with it.
 *
 * How      A sandbox without a keeper whose folder has suspend/image.json is suspended. The keeper
 *          writes it at the end of a run and uses it up at the next start
 *          (src/keeper/memory/suspend_file.h); sbxd looks, and removes it when the sandbox is told
 *          to stop for good. Its memory fits a machine of the size that it had, so the next start
 *          takes CPUs, memory and accelerator from spec.json of the last one; what `sbx update`
 *          changed applies at the start after a stop.
 * Trust    The user's own folder. Read are the size of a file, and spec.json as the keeper reads
 *          it.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include "lib/rules/spec/spec.h"

bool kept_is_there(const char *id);
/* suspended_at and suspended_bytes. */
void kept_describe(json_t *o, const char *id);
/* The size of the machine whose memory is kept, and with accel its accelerator; nothing changes
 * when there is none. */
void kept_fit(struct spec *spec, bool accel);
/* Also what was put aside, and what an interrupted keeper has left. */
void kept_remove(const char *id);
/* Only what was put aside: the sandbox runs. */
void kept_remove_bad(const char *id);
