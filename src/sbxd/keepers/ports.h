/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports - the published ports of sandboxes: what is wanted (registry) and what became of it
 * (keeper).
 *
 * How      The registry has the list; a running keeper is told the whole of it with PORTS and says
 *          with PORTS_ARE what it has. A change is checked against the other running sandboxes,
 *          recorded, written, told, and answered when the keeper has answered; one that could
 *          not be opened is taken back. What could not be told (sbxd died, the channel was full)
 *          is told at the keeper's next HELLO or word.
 * Trust    As keepers.h: a keeper may say anything, its list is shown and nothing is decided by it
 *          but whether a new port is kept.
 * Owns     keeper.ports
 * Limits   SPEC_MAX_PORTS, KEEPER_ANSWER_MS.
 * See      proto/PROTOCOL.api, lib/os/ipc/keeper_ports.h, tests/api/test_ports.py
 */
#pragma once

#include "lib/os/ipc/keeper_ports.h"
#include "lib/rules/spec/spec.h"

struct conn;
struct json_t;
struct keeper;
struct sbxd;
struct store_row;

/* The list with the state of each, for the sandbox object. */
struct json_t *ports_to_json(struct sbxd *d, const struct store_row *row);
/* A PORTS_ARE; < 0: it breaks the rules. */
int ports_on_message(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
/* Tells what is due, if it can be told now. */
void ports_push(struct sbxd *d, struct keeper *k);
/* Checks and records the way from the ports of `old` to those of `new`; on an error nothing is
 * to be done. -EEXIST: another sandbox that runs has one of them. */
int ports_prepare(
	struct sbxd *d, const struct spec *old, const struct spec *new, struct err *err) MUST_CHECK;
/* The registry has `now`: when its list is another one than that of `was` the keeper is told, if
 * there is one. Answers with the sandbox. */
void ports_reply_row(
	struct sbxd *d, struct conn *c, const struct spec *was, const struct store_row *now);
