/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret - `sbx secret`, and credentials for other commands.
 *
 * How      secret_api.h finds and sets credentials through sbxd.
 * Trust    Values are in secret_value.h only.
 */
#pragma once

#include "secret_api.h"
#include "src/sbx/verb/verb.h"

extern const struct verb verb_secret;
