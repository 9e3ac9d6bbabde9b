/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <stdlib.h>
#include <time.h>
#include "str.h"

static uint64_t read_us(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

uint64_t clock_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

uint64_t clock_wall_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}

uint32_t clock_limit_ms(uint32_t ms)
{
	static uint64_t factor; /* 0: not read yet */
	const char *text;

	if (factor == 0) {
		text = getenv("SBX_TIME_FACTOR");
		if (!text || str_to_u64(text, 1, CLOCK_MAX_FACTOR, &factor) < 0)
			factor = 1;
	}
	return ms * (uint32_t)factor;
}
