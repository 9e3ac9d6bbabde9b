/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_warm - `sbx template warm`: makes a template's memory image now.
 *
 * How      Runs sbx-keeper --make-image, whose lines "PERCENT TEXT" drive the bar; what it prints
 *          else goes to images.log in the state folder.
 * Trust    The user's arguments; the lines are cleaned before they are shown.
 * Limits   TEMPLATE_WARM_LINE bytes a line; the program has its own time limit.
 */
#pragma once

#include "lib/client/cli/opt.h"

#define TEMPLATE_WARM_LINE 512

extern const struct opt_def template_warm_opts[];
int template_warm_run(struct opts *o);
