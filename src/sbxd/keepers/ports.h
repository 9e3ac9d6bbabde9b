/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports - the published ports of sandboxes: the requested ones (registry) and their state (keeper).
 *
 * How      The registry has the list. A running keeper gets the complete list with PORTS
 *          (ports_send) and reports its state with PORTS_ARE. A list that could not be sent (sbxd
 *          exited, the channel was full) is sent at the keeper's next HELLO or message.
 * Trust    As keepers.h: a keeper may send false data. Its list is shown, and decides only whether
 *          a new port is kept.
 * Owns     keeper.ports
 * Limits   SPEC_MAX_PORTS.
 * See      lib/os/ipc/keeper_ports.h, tests/api/test_ports.py
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/os/ipc/keeper_ports.h"
#include "lib/rules/spec/spec.h"

struct keeper;

/* Returns the state of this port reported by the keeper; NULL: none yet. */
const struct keeper_port *ports_find_state(const struct keeper *k, const struct spec_port *p);
/* The name of another sandbox that has it open; false if there is none. */
bool ports_find_owner(
	struct sbxd *d, const char *id, const struct spec_port *p, char *buf, size_t n);
/* Why the port of the sandbox `id` could not be opened: `code` as text. */
void ports_explain(
	struct sbxd *d, const char *id, const struct spec_port *p, int code, char *buf, size_t n);
bool ports_can_send(const struct keeper *k);
/* Returns the number of the request, 0 if it could not be sent. */
uint32_t ports_send(struct sbxd *d, struct keeper *k, const struct spec *spec);
