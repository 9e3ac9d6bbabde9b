/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract - the value out of what an external program wrote: a line, all of it, or a docker answer.
 *
 * How      In place, inside the struct secret that the bytes came into: what is not the value is
 *          wiped. A docker-credential program answers {"ServerURL": ..., "Username": ..., "Secret":
 *          ...}; no JSON library is used, because it would leave copies on the heap.
 * Trust    Output of a program the user named; anything may be in it.
 * Limits   The value is not empty and has at most VAULT_MAX_VALUE bytes.
 * See      extract_test.c, extract_fuzz.c, lib/base/json/jtext.h
 */
#pragma once

#include "lib/os/ipc/vault_frame.h"
#include "secret.h"

/* -EBADMSG or -EMSGSIZE with a message without any of the bytes. `user` is "" if absent, or that of
 * the docker answer ("<token>" is treated as absent). */
int extract_value(struct secret *s, enum vault_ref_kind kind, char user[VAULT_MAX_USER],
	struct err *err) MUST_CHECK;
