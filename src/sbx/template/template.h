/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template - `sbx template`.
 *
 * How      cmd_template.c has the table of its commands. disk.h has the templates themselves.
 * Trust    The user's arguments; images and Dockerfiles of third parties.
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_template;
