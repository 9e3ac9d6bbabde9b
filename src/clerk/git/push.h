/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push - a push, or the list of refs before one, as lib/rules/clerk/session.h handles it.
 *
 * How      The body goes to clerk.c. What the push needs of the repository is a request to
 *          upload-pack: the want of the session. The list of refs is rewritten.
 * Trust    Bytes of the guest and of the server. Holds no secret.
 * Owns     struct clerk, for the time of the session.
 * Never    Sends anything itself.
 * See      README
 */
#pragma once

#include "lib/rules/clerk/session.h"

extern const struct session_program push_program;
