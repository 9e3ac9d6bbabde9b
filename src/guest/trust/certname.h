/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certname - the name by which OpenSSL finds a certificate in /etc/ssl/certs.
 *
 * How      SHA-1 of the subject in OpenSSL's canonical form (strings as UTF-8 in lower case, blanks
 *          at the ends removed and runs reduced to one); its first four bytes, the last first.
 * Trust    The CA that the host sent; any bytes give an answer or an error.
 * Limits   CERTNAME_MAX_SUBJECT bytes; one attribute in each part of the name.
 * See      certname_test.c
 */
#pragma once

#include "lib/base/slice.h"

#define CERTNAME_MAX_SUBJECT 1024

/* Returns -EBADMSG if not a certificate, -ENOTSUP for a subject beyond the limits. */
int certname_hash(struct slice der, uint32_t *ret) MUST_CHECK;
