/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_cmd - the commands of `sbx audit`, for the table in cmd_audit.c.
 *
 * How      One file per command; they share only audit_logs.h.
 * Trust    As audit_logs.h.
 * See      tests/cli/test_audit.py
 */
#pragma once

#include "lib/client/cli/opt.h"

int audit_cmd_show(struct opts *o);
int audit_cmd_verify(struct opts *o);
int audit_cmd_export(struct opts *o);
int audit_cmd_home(struct opts *o);
int audit_cmd_prune(struct opts *o);

/* Parses --limit: at most 100,000, 0 for all; `standard` without the option. Returns -EINVAL on an
 * invalid number. */
int audit_cmd_limit(const struct opts *o, size_t standard, size_t *ret, struct err *err) MUST_CHECK;
