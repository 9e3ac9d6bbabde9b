/*
 * clock - milliseconds that never go backwards, and seconds since 1970.
 *
 * How      One clock_gettime a call.
 * Trust    Every program.
 */
#pragma once

#include <stdint.h>

uint64_t clock_mono_ms(void);
uint64_t clock_mono_us(void);
uint64_t clock_wall_ms(void);
