/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ship_run - one execution of the user's command that takes a batch of audit records.
 *
 * How      The batch is a memory file, which is the stdin of the command: it cannot block sbx, and
 *          a command that reads only a part of it leaves nothing behind. Output of the command goes
 *          where that of sbx goes. A command that does not end in time is killed.
 * Trust    The command and its arguments are the user's, as typed. The batch has texts of guests.
 * Owns     Nothing after it returned.
 * See      ship.h
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/slice.h"

/* 0: it has exited with status 0. -ENOENT, -EACCES: it cannot be executed. */
int ship_run(
	const char *const *argv, struct slice batch, unsigned seconds, struct err *err) MUST_CHECK;
