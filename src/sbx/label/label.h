/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label - labels of sandboxes (KEY=VALUE), and the filters of sbx ls.
 *
 * How      label_set reads the values of --label into the object of a request. label_filter_check
 *          checks the values of --filter, label_filter_matches decides about one sandbox: every
 *          filter must match.
 * Trust    The user's arguments; objects of sbxd.
 * See      label_test.c, lib/rules/spec/spec.h (the form of a label)
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/client/cli/opt.h"

/* Of two labels with the same key, the later one counts. -EINVAL for text that is not a label. */
int label_set(const struct opt_list *labels, json_t *object, struct err *err) MUST_CHECK;
/* label=KEY, label=KEY=VALUE, state=STATUS, agent=NAME. */
int label_filter_check(const struct opt_list *filters, struct err *err) MUST_CHECK;
bool label_filter_matches(const struct opt_list *filters, const json_t *sandbox);
/* "a=1, b=2" */
char *label_text(const json_t *sandbox);
