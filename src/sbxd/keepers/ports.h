/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports - the published ports of sandboxes: what is wanted (registry) and what became of it
 * (keeper).
 *
 * How      The registry has the list; a running keeper is told the whole of it with PORTS
 *          (ports_send) and says with PORTS_ARE what it has. What could not be told (sbxd died, the
 *          channel was full) is told at the keeper's next HELLO or word.
 * Trust    As keepers.h: a keeper may say anything. Its list is shown, and decides only whether a
 *          new port is kept.
 * Owns     keeper.ports
 * Limits   SPEC_MAX_PORTS.
 * See      lib/os/ipc/keeper_ports.h, tests/api/test_ports.py
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/os/ipc/keeper_ports.h"
#include "lib/rules/spec/spec.h"

struct keeper;

/* What the keeper said of this port; NULL: nothing yet. */
const struct keeper_port *ports_find_state(const struct keeper *k, const struct spec_port *p);
/* The name of another sandbox that has it open now; false when none has. */
bool ports_find_owner(
	struct sbxd *d, const char *id, const struct spec_port *p, char *buf, size_t n);
/* Why the port of the sandbox `id` could not be opened: `code` as a sentence. */
void ports_explain(
	struct sbxd *d, const char *id, const struct spec_port *p, int code, char *buf, size_t n);
bool ports_can_send(const struct keeper *k);
/* The number of the question, 0 when it could not be asked. */
uint32_t ports_send(struct sbxd *d, struct keeper *k, const struct spec *spec);
