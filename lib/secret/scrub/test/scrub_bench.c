/* SPDX-License-Identifier: Apache-2.0 */
/* What lib/secret/scrub costs: MB/s of processor time for kinds of bytes that hold no value, as
 * one JSON line. Run by bench/scrub. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "lib/base/mem.h"
#include "lib/secret/scrub/scrub.h"

#define PIECE 16384
#define TOTAL (64U << 20)
#define ROUNDS 7

static uint64_t seed = 88172645463325252U;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void fill(uint8_t *p, size_t n, const char *alphabet)
{
	size_t n_alphabet = alphabet ? strlen(alphabet) : 0;

	for (size_t i = 0; i < n; i++)
		p[i] = alphabet ? (uint8_t)alphabet[next() % n_alphabet] : (uint8_t)(next() >> 16);
}

static void fill_words(uint8_t *p, size_t n, const char *const *words, size_t n_words)
{
	for (size_t i = 0; i < n;) {
		const char *word = words[next() % n_words];
		size_t len = MIN(strlen(word), n - i);

		memcpy(p + i, word, len);
		i += len;
	}
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The best of some rounds: others use the machine too. */
static double measure(const struct scrub_set *set, const uint8_t *in, uint8_t *out)
{
	double best = 0;

	for (int r = 0; r < ROUNDS; r++) {
		struct scrub s;
		double begin = now_s();

		scrub_init(&s, set);
		for (size_t at = 0; at < TOTAL; at += PIECE) {
			struct slice piece = slice_of(in + at, PIECE);

			(void)scrub_feed(&s, &piece, out, PIECE + SCRUB_MAX_HOLD);
		}
		scrub_done(&s);
		best = MAX(best, TOTAL / 1e6 / (now_s() - begin));
	}
	return best;
}

int main(void)
{
	static const char *const text[] = {"the ", "sky ", "asks ", "for ", "some ", "skill ",
		"and ", "words, ", "in ", "lines.\n"};
	static const char *const json[] = {"\"key\":", "\"a value\",", "\\u00e9", "\\n", "{",
		"},\n", "12.5,", "\"https:\\/\\/x\"", "true,", "&#39;"};
	struct slice values[] = {
		slice_from_str("sk-proj-0Pq7rT2vXw9yZ_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"),
		slice_from_str("dXNlcjpzay1wcm9qLTBQcTdyVDJ2WHc5eVpfYUJjRGVGZ0hpSmtM")};
	AUTO_FREE uint8_t *in = xmalloc(TOTAL), *out = xmalloc(PIECE + SCRUB_MAX_HOLD);
	double begin = now_s();
	struct scrub_set *set = scrub_set_new(values, ARRAY_LEN(values), NULL);

	if (!set)
		return 1;
	printf("{\"set_ms\": %.2f", (now_s() - begin) * 1e3);
	fill(in, TOTAL, NULL);
	printf(", \"binary\": %.0f", measure(set, in, out));
	memset(in, 0, TOTAL);
	printf(", \"zeros\": %.0f", measure(set, in, out));
	fill(in, TOTAL, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
	printf(", \"base64\": %.0f", measure(set, in, out));
	fill(in, TOTAL, "0123456789abcdef");
	printf(", \"hex\": %.0f", measure(set, in, out));
	fill_words(in, TOTAL, text, ARRAY_LEN(text));
	printf(", \"text\": %.0f", measure(set, in, out));
	fill_words(in, TOTAL, json, ARRAY_LEN(json));
	printf(", \"json\": %.0f}\n", measure(set, in, out));
	scrub_set_free(set);
	return 0;
}
