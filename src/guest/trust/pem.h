/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pem - the certificates of a PEM bundle, one after the other.
 *
 * How      pem_next finds the next BEGIN/END pair and decodes its content; anything else is
 *          skipped, as all readers of such files do.
 * Trust    Files of the guest, of containers too: any bytes.
 * Owns     The caller frees the decoded bytes.
 * Limits   PEM_MAX_DER bytes a certificate; a longer or broken one is passed over.
 * See      pem_test.c
 */
#pragma once

#include "lib/base/slice.h"

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----\n"
#define PEM_END "-----END CERTIFICATE-----"
#define PEM_MAX_DER 65536

/* Returns the next certificate at or after *at, on the heap; NULL if there is none. *at moves after
 * it. */
uint8_t *pem_next(const char **at, size_t *ret_n);
