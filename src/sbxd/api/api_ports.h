/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_ports - changes of the published ports of a sandbox.
 *
 * How      A change is checked against the other running sandboxes, recorded, written to the
 *          registry and sent to the keeper (src/sbxd/keepers/ports.h). The client gets its reply
 *          when the keeper has answered; a port that could not be opened is removed again.
 * Trust    As keepers.h.
 * Limits   SPEC_MAX_PORTS, KEEPER_ANSWER_MS.
 * See      proto/PROTOCOL.api, tests/api/test_ports.py
 */
#pragma once

#include "src/sbxd/http/http.h"
#include "lib/vm/store/store.h"

/* Checks and records the change from the ports of `old` to those of `new`; on an error nothing must
 * be done. Returns -EEXIST if another running sandbox has one of them. */
int ports_prepare(
	struct sbxd *d, const struct spec *old, const struct spec *new, struct err *err) MUST_CHECK;
/* The registry has `now`: if its list differs from the list of `was`, the keeper is notified.
 * Replies with the sandbox. */
void ports_reply_row(
	struct sbxd *d, struct conn *c, const struct spec *was, const struct store_row *now);
