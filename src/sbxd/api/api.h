/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - the calls of PROTOCOL.api, one function per call.
 *
 * How      api_conn_ops receives a request, finds its call (api_route.h) and runs the call's
 *          function. The function replies immediately, or makes the connection wait (conn_wait) for
 *          a keeper; the functions api_on_* complete the request when the keeper's answer arrives.
 * Trust    As conn.h. Every reply is built here; text of a keeper is inserted as a JSON string.
 * Never    Waits without a deadline, or touches the guest's bytes: an exec's connection is passed
 *          on.
 * See      proto/PROTOCOL.api, api_internal.h
 */
#pragma once

#include "src/sbxd/http/http.h"
#include "src/sbxd/keepers/keepers.h"

extern const struct conn_ops api_conn_ops;

/* For struct keeper_ops: the sandbox has changed, or its keeper has answered. */
void api_watch_changed(struct sbxd *d, const char *id);
/* A client connects to a published port of a suspended sandbox. */
void api_wake(struct sbxd *d, const char *id);
/* For struct starts: a start that has waited begins. */
int api_begin(struct sbxd *d, const char *id, enum spec_accel wish, bool cold, struct err *err);
void api_on_done(
	struct sbxd *d, const struct keeper *k, uint32_t ask, const struct keeper_done *done);
int api_on_stats(struct sbxd *d, const struct keeper *k, uint32_t ask,
	const struct keeper_stats *stats) MUST_CHECK;
void api_on_frozen(
	struct sbxd *d, const struct keeper *k, uint32_t ask, const struct keeper_frozen *frozen);
void api_on_hold(struct sbxd *d, const struct keeper *k, const struct held *h, bool gone);
void api_on_ports(struct sbxd *d, struct keeper *k, uint32_t ask);

/* api_create.c, at the start of sbxd: removes sandboxes of creates that were not answered. */
void api_create_sweep(struct sbxd *d);
/* ref_check.c, at the start of sbxd: stores for each sandbox the paths that its guest can write. */
int ref_places_open(struct sbxd *d, struct err *err) MUST_CHECK;
