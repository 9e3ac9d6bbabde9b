/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_opts - the options of `sbx prove`.
 *
 * How      sbx prints them in help and completion and rejects other words. sbx-prove, which sbx
 *          executes with the same words, reads their values.
 * Trust    Our own constants.
 * See      cmd_prove.c, src/prove/main.c
 */
#pragma once

#include "opt.h"

extern const struct opt_def prove_opts[];
