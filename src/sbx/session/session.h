/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - commands in a sandbox: `exec`, `attach` and `cp`.
 *
 * How      attach.h runs a command on the user's terminal, guest_run.h a small one in memory. env.h
 *          reads -e and --env-file, term.h sets the terminal.
 * Trust    The output is the guest's.
 * See      session_run.h
 */
#pragma once

#include "attach.h"
#include "env.h"
#include "guest_run.h"
#include "term.h"
#include "src/sbx/verb/verb.h"

extern const struct verb verb_attach, verb_cp, verb_exec;
