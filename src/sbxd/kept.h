/*
 * kept - the memory of suspended sandboxes, as far as sbxd has to do with it.
 *
 * How      A sandbox without a keeper whose folder has suspend/image.json is suspended. The keeper writes
 *          it at the end of a run and uses it up at the next start (src/keeper/suspend_file.h); sbxd
 *          looks, and removes it when the sandbox is told to stop for good.
 * Trust    The user's own folder. Nothing in it is read but the size of a file.
 * See      proto/PROTOCOL.api
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

bool kept_is_there(const char *id);
/* suspended_at and suspended_bytes. */
void kept_describe(json_t *o, const char *id);
void kept_remove(const char *id);
