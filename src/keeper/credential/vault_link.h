/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_link - the keeper's channel to the vault: bindings, releases, tokens that are kept.
 *
 * How      See vault_link.c. The state is struct vault_link in keeper.h.
 * Trust    Runs in the keeper. Sees messages of the vault, never a value.
 */
#pragma once

void vault_init(struct keeper *k);
/* Requests a channel from sbxd, again and again until one comes. */
void vault_start(struct keeper *k);
/* Takes fd. */
int vault_take_channel(struct keeper *k, int fd) MUST_CHECK;
void vault_on_event(struct keeper *k);
void vault_on_timer(struct keeper *k);
void vault_on_release_timeout(struct keeper *k, const struct loop_event *ev);
void vault_stop(struct keeper *k);
/* What is known of credentials for an ask; the texts live until the next event. */
struct gate_binding vault_look(struct keeper *k, const struct edge_ask *ask);
/* Has the value written to the stream, which stays the caller's; origins_on_released follows. */
int vault_release(struct keeper *k, const struct origin *o, enum origin_which which, int stream,
	struct err *err) MUST_CHECK;
void vault_on_store_timeout(struct keeper *k, const struct loop_event *ev);
/* Has a token kept, whose frame is in the pipe, which stays the caller's; tokens_on_stored
 * follows when the bindings have it. */
int vault_store(struct keeper *k, const struct origin *o, enum origin_which which, uint32_t token,
	int pipe, struct err *err) MUST_CHECK;
/* How many of this origin's are not answered. */
size_t vault_count_stores(const struct keeper *k, const struct origin *o);
/* credentials.oauth, credentials.intercept; and reads the services of `sbx secret own` again.
 * Counts at once. */
void vault_set_rules(struct keeper *k, bool logins, bool all);
/* The origin is gone: its releases matter to nobody. */
void vault_forget(struct keeper *k, uint32_t origin, uint32_t origin_gen);
