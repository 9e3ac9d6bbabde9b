/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form - the one form of the JSON that sbx prints (sbx(1), JSON).
 *
 * How      sbxd's answers have times in milliseconds, 0 for what does not exist, and leave keys
 *          out. These functions change an answer in place: a time is RFC 3339 in UTC, what does not
 *          exist is null, and every object of a kind has the same keys. api_print does the times of
 *          everything.
 * Trust    As api.h.
 * Owns     Nothing.
 * See      tests/cli/test_json.py
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* "2026-01-31T12:00:00Z", which jq's fromdate reads; null for 0. */
json_t *form_time(uint64_t ms);
/* Every integer whose key ends in _at, at any depth. */
void form_times(json_t *j);
/* null for each key that the object lacks; the list ends with NULL. */
void form_fill(json_t *o, const char *const *keys);
void form_sandbox(json_t *sandbox);
void form_ports(json_t *list);
