/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_bench FOLDER RECORDS - appends RECORDS decisions to a new log in FOLDER, with the limits
 * that programs use, then verifies it. Prints one JSON object; bench/audit judges it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/rules/audit/audit.h"
#include "lib/rules/audit/audit_read.h"

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int append_all(struct audit *a, size_t n, uint32_t *us, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		char host[64];
		struct audit_event ev = {.kind = AUDIT_KIND_DECISION,
			.decision = i % 5 ? AUDIT_ALLOW : AUDIT_DENY,
			.type = slice_from_str("https"),
			.port = 443,
			.path = slice_from_str("forward-bypass"),
			.rule = slice_from_str("balanced:17"),
			.reason = slice_from_str("matched rule **.example:443")};
		uint64_t from = clock_mono_us();
		int r;

		(void)snprintf(host, sizeof(host), "packages-%zu.registry.example", i % 5000);
		ev.host = slice_from_str(host);
		r = audit_append(a, &ev, NULL, err);
		if (r < 0)
			return r;
		us[i] = (uint32_t)(clock_mono_us() - from);
	}
	return 0;
}

static int run(const char *dir, const struct audit_key *key, size_t n, struct err *err)
{
	AUTO_FREE uint32_t *us = xcalloc(n, sizeof(*us));
	struct audit_options o = {
		.dir = dir, .sandbox = "0123456789ab", .name = "bench", .key = key};
	struct audit_report rep;
	struct audit *a = NULL;
	uint64_t from, written, verified;
	int r;

	r = audit_open(&o, &a, err);
	if (r < 0)
		return r;
	from = clock_mono_us();
	r = append_all(a, n, us, err);
	if (r == 0)
		r = audit_close(a, err);
	if (r < 0)
		return r;
	written = clock_mono_us() - from;
	from = clock_mono_us();
	r = audit_verify(dir, o.sandbox, audit_key_pub(key), NULL, &rep, err);
	verified = clock_mono_us() - from;
	if (r < 0)
		return r;
	qsort(us, n, sizeof(*us), by_size);
	printf("{\"records\": %" PRIu64 ", \"heads\": %" PRIu64 ", \"append_per_s\": %.0f, "
	       "\"append_p50_us\": %u, \"append_p99_us\": %u, \"append_max_us\": %u, "
	       "\"verify_per_s\": %.0f}\n",
		rep.n_records, rep.n_heads, (double)n * 1e6 / (double)(written + 1), us[n / 2],
		us[n - 1 - n / 100], us[n - 1],
		(double)rep.n_records * 1e6 / (double)(verified + 1));
	return 0;
}

int main(int argc, char **argv)
{
	struct audit_key *key = NULL;
	struct err err = {0};
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	int r;

	if (n < 1 || n > 100000000) {
		fprintf(stderr, "usage: audit_bench FOLDER RECORDS\n");
		return 2;
	}
	r = audit_key_load(argv[1], &key, &err);
	if (r == 0)
		r = run(argv[1], key, n, &err);
	if (r < 0)
		fprintf(stderr, "audit_bench: %s\n", err_text(&err, r));
	audit_key_free(key);
	return r < 0;
}
