/* SPDX-License-Identifier: Apache-2.0 */
/*
 * browser - managed policies for browsers in the guest: no Encrypted Client Hello, and our CAs.
 *
 * How      Chromium and Firefox send an encrypted_client_hello with every connection, with random
 *          bytes if they have no key (GREASE). Edge cannot distinguish the two and refuses both, so
 *          the policies disable it. Browsers have their own lists of CAs; the policies add the
 *          sandbox CA and the user's. Chromium takes certificates in the policy, Firefox takes
 *          files with one each. Firefox has one policies.json: a foreign one is not changed.
 * Trust    Not enforcement, as trust.h. The texts are certificates that guest_ctl.h has checked.
 * Owns     Nothing.
 * Limits   BROWSER_MAX_CAS files for Firefox.
 * See      browser_test.c, trust.h
 */
#pragma once

#include "lib/base/err.h"

#define BROWSER_MAX_CAS 64

/* Writes the policies below root ("" in the guest) for these certificates; removes them if there
 * are none. */
int browser_write(const char *root, const char *pem, struct err *err) MUST_CHECK;
