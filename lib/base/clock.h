/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - milliseconds that never go backwards, and seconds since 1970.
 *
 * How      One clock_gettime a call. clock_limit_ms multiplies a time limit by SBX_TIME_FACTOR of
 *          the environment, for machines on which all of sbx is slow: limits that bound how long a
 *          healthy program may take are written with it where they are defined.
 * Trust    Every program. The variable is the user's own.
 * Limits   CLOCK_MAX_FACTOR.
 * See      clock_test.c, sbx(1)
 */
#pragma once

#include <stdint.h>

#define CLOCK_MAX_FACTOR 100

uint64_t clock_mono_ms(void);
uint64_t clock_mono_us(void);
uint64_t clock_wall_ms(void);
/* ms, times SBX_TIME_FACTOR when that is a number from 1 to CLOCK_MAX_FACTOR. */
uint32_t clock_limit_ms(uint32_t ms);
