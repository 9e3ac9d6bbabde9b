/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own - the services for which one sandbox may use its own credentials.
 *
 * How      A file in the directory of the sandbox's spec.json with one service name per line. `sbx
 *          secret own` changes it through sbxd; the keeper reads it at the start and on RELOAD, and
 *          binds no origin for these services: their hosts are plain TLS tunnels in this sandbox.
 * Trust    A file of the same user. It is in no workspace, so the guest cannot write it, and the
 *          seal of the keeper lets it only read there.
 * Owns     Texts are on the heap, the caller's.
 * Limits   OWN_MAX_BYTES.
 * Never    Makes a list longer than it was because the file cannot be read: then nothing is on it.
 * See      own_test.c, src/keeper/credential/creds.h, src/sbxd/api/api_own.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define OWN_FILE "own-services"
#define OWN_MAX_BYTES 20480 /* SERVICES_MAX names and their line feeds */

/* The list in `dir`, the spec_dir of a sandbox; "" without a file. On an error too. */
int own_load(const char *dir, char **ret, struct err *err) MUST_CHECK;
bool own_has(const char *list, const char *service);
/* The list with or without the service, on the heap. */
char *own_change(const char *list, const char *service, bool is_own);
int own_save(const char *dir, const char *list, struct err *err) MUST_CHECK;
