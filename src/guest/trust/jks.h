/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jks - trust stores in Java's old format, which every JVM reads.
 *
 * How      Head, one entry per certificate, and a SHA-1 checksum over the password, a fixed text
 *          and all of it. jks_from_pem creates a store from a bundle; jks_put replaces or adds one
 *          certificate in an existing store.
 * Trust    The guest's files: untrusted. The checksum protects nothing, its password is public.
 * Owns     The caller frees the results.
 * Limits   JKS_MAX_BYTES a store.
 * See      jks_test.c
 */
#pragma once

#include "lib/base/slice.h"

#define JKS_MAX_BYTES (1u << 20)
#define JKS_PASSWORD "changeit"

/* The certificates are called "sbx-0", "sbx-1" and so on. -EMSGSIZE above the limit. */
int jks_from_pem(const char *bundle, uint8_t **ret, size_t *ret_n) MUST_CHECK;
/* Returns a copy of the store with the certificate under that name; an empty certificate removes
 * the name. -EBADMSG if the store is invalid, contains keys, or has another password. */
int jks_put(struct slice store, const char *alias, struct slice der, uint8_t **ret,
	size_t *ret_n) MUST_CHECK;
