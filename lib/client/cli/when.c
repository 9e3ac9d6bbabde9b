/* SPDX-License-Identifier: Apache-2.0 */
#include "when.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/str.h"

int when_parse(const char *text, uint64_t now_ms, uint64_t *ret_ms, struct err *err)
{
	struct tm tm = {0};
	const char *rest;
	uint64_t v;

	if (str_to_seconds(text, &v) == 0) {
		*ret_ms = v > now_ms / 1000 ? 0 : now_ms - v * 1000;
		return 0;
	}
	if (str_to_u64(text, 0, UINT32_MAX, &v) == 0) {
		*ret_ms = v * 1000;
		return 0;
	}
	rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (rest && (strcmp(rest, "Z") == 0 || strcmp(rest, "+00:00") == 0)) {
		*ret_ms = (uint64_t)timegm(&tm) * 1000;
		return 0;
	}
	return err_set(err, -EINVAL,
		"invalid time '%s': use a form such as 24h, 7d or 2026-01-31T12:00:00Z", text);
}

void when_print(uint64_t ms, bool with_ms, char ret[WHEN_TEXT])
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	size_t n;

	if (!ms || !gmtime_r(&t, &tm) ||
		!(n = strftime(ret, WHEN_TEXT - 8, "%Y-%m-%dT%H:%M:%S", &tm))) {
		(void)snprintf(ret, WHEN_TEXT, "-");
		return;
	}
	if (with_ms)
		(void)snprintf(ret + n, WHEN_TEXT - n, ".%03uZ", (unsigned)(ms % 1000));
	else
		(void)snprintf(ret + n, WHEN_TEXT - n, "Z");
}
