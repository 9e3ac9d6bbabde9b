/* SPDX-License-Identifier: Apache-2.0 */
/*
 * why - blocked connections in the guest: the file WHY_FILE and the program sbx-why that reads it.
 *
 * How      The host sends the texts of the last denials (/denied), which replace the file. sbx-why
 *          is a shell script, so that it runs as any user and in any image that has a shell: it
 *          prints the texts about one host. It is in WHY_BIN, with a link in /usr/local/bin.
 * Trust    The text comes from the host and is printable. The file protects nothing.
 * Owns     Nothing.
 * See      src/keeper/network/denied.h, why_test.c
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/slice.h"

#define WHY_FILE "/run/sbx/denied"
#define WHY_BIN "/run/sbx/bin"

/* root is "" in the guest. */
int why_install(const char *root, struct err *err) MUST_CHECK;
int why_write(const char *root, struct slice text, struct err *err) MUST_CHECK;
