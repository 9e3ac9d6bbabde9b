/* SPDX-License-Identifier: Apache-2.0 */
/*
 * existing - the options of `sbx run` for an existing sandbox.
 *
 * How      Each option is applied or refused; none is ignored. existing_check compares the options
 *          with the sandbox: equal values pass, and others are refused with the command that helps,
 *          before anything is changed. existing_apply adds the rules and ports. existing_import
 *          copies the settings of the agent into the running sandbox.
 * Trust    Runs in sbx. The user's arguments, sbxd's answer.
 * See      create.h, tests/cli/test_existing.py
 */
#pragma once

#include "create.h"

/* want: the same options parsed by create_parse. */
int existing_check(const struct opts *o, const struct creation *want, const json_t *there,
	struct problem *p) MUST_CHECK;
int existing_apply(const struct creation *want, const json_t *there, struct problem *p) MUST_CHECK;
int existing_import(const struct creation *want, const json_t *there, struct problem *p) MUST_CHECK;
