/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret_verify - asks the server of a service whether it accepts a credential.
 *
 * How      The line `check` of the service file names one GET request. A program in a sandbox sends
 *          it without a credential, and sbx adds the credential on the way, as to every request of
 *          the sandbox: the policy applies and the audit log records it. The value stays in the
 *          vault.
 * Trust    The status is what the sandbox reports: a guest can lie about it.
 * See      proto/PROTOCOL.service, tests/cli/test_secret.py
 */
#pragma once

#include "lib/client/cli/ui.h"

/* Prints the result. -EACCES: the server refused it. */
int secret_verify(const char *service, const char *sandbox, struct problem *p) MUST_CHECK;
