/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_text - the report of `sbx prove` for users, on stdout.
 *
 * How      On a terminal each probe gets a line when it ends, with a bar below; the reasons follow
 *          at the end. Elsewhere everything is printed at the end, by groups.
 * Trust    Results are clean (prove.h); names are printed with ui_put.
 * See      cmd_prove.c
 */
#pragma once

#include <stdbool.h>
#include "prove.h"

struct prove_text {
	bool live; /* stdout is a terminal */
	bool verbose;
	size_t n_done;
};

void prove_text_head(const struct prove_run *run);
void prove_text_one(
	struct prove_text *t, const struct prove_run *run, const struct prove_result *res);
void prove_text_end(const struct prove_text *t, const struct prove_run *run);
