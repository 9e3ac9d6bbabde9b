/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_oracle - what guard_model_test.c believes about names, without lib/rules/airlock.
 *
 * How      Each pattern is compared with each end of a path, component by component.
 * Trust    Tests only.
 */
#pragma once

#include <stdbool.h>

enum oracle_mode { ORACLE_FREE, ORACLE_REPORTED, ORACLE_REFUSED };

/* The rows, in the format of autorun.h. */
extern const char oracle_rows[];

enum oracle_mode oracle_mode(const char *path);
/* Whether a refused path can be below this one. */
bool oracle_leads(const char *path);
