/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prune - which stopped sandboxes go.
 *
 * How      Pure functions over the list that sbxd gave, so that they can be tested without one.
 * Trust    The user's arguments, sbxd's list.
 * See      prune_test.c, cmd_prune.c
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"

/* "until=24h", "until=2026-01-31T12:00:00Z", "until=1700000000". */
int prune_parse_until(
	const char *filter, uint64_t now_ms, uint64_t *ret_ms, struct err *err) MUST_CHECK;
/* Appends sandboxes to remove to `go`, and names without the data for the filter to `unknown`. */
void prune_choose(
	const json_t *list, bool filtered, uint64_t until_ms, json_t *go, json_t *unknown);
