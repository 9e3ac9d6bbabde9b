/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_internal - what the parts of pack.h share: conditions, checks of a whole pack.
 */
#pragma once

#include "pack_match.h"

/* Why servers may take a request as another one than its path and method say; else NULL. */
const char *pack_check_request(const struct pack *p, const struct pack_request *req);
/* The name of a header in any case, "-" and "_" the same: gateways turn one into the other. */
bool pack_is_header(struct slice name, const char *lower);
/* Whether some text matches both, where `*` is any text, also none; exact. */
bool pack_glob_meets(struct slice a, struct slice b);

/* Sorts the rows and refuses two of which neither is more precise. */
int pack_sort_rows(struct pack *p, struct err *err) MUST_CHECK;
/* Runs the cases, and refuses a row without a case or without a near miss. */
int pack_run_cases(const struct pack *p, struct err *err) MUST_CHECK;
