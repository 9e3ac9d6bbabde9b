/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_crypto_internal - the key's bare seed, for audit_crypto_key.c only.
 */
#pragma once

#include "audit_crypto.h"

int audit_seed_sign(
	const uint8_t seed[AUDIT_KEY_LEN], struct slice head, uint8_t *ret_sig) MUST_CHECK;
int audit_seed_sign_cut(
	const uint8_t seed[AUDIT_KEY_LEN], struct slice cut, uint8_t *ret_sig) MUST_CHECK;
int audit_seed_pub(const uint8_t seed[AUDIT_KEY_LEN], struct audit_pub *ret) MUST_CHECK;
