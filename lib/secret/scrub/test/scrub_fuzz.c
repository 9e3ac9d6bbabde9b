/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes choose a size and a value, the rest is a text: pieces of any size must give
 * the same as the whole, and what the oracle covers must be gone. */
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/secret/scrub/scrub.h"
#include "scrub_oracle.h"

#define MAX_INPUT 512

/* Few, because the tables of a set cost more than a run. */
static const char *const values[] = {"sk-ab/C+9?~Zq>", "a%41&#65;=41\\x", "aabaabaaab", "00000000",
	"=\\x5c\\u005c+ ", "%25%25%25&amp;&amp;", "\xc3\xa4\xff\xfe\x01\x02\x80\x7f",
	"//////////++++++"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed_pieces(struct scrub *s, struct slice text, size_t step, size_t room, uint8_t *out)
{
	size_t n = 0, got;
	struct slice none = {0};

	for (size_t at = 0; at < text.n;) {
		struct slice piece = slice_of(text.p + at, MIN(step, text.n - at));

		at += piece.n;
		while (piece.n > 0)
			n += scrub_feed(s, &piece, out + n, room);
	}
	while ((got = scrub_feed(s, &none, out + n, room)) > 0)
		n += got;
	while ((got = scrub_end(s, out + n, room)) > 0)
		n += got;
	if (n != text.n || s->n_hold > 0)
		abort();
}

static void check(const struct scrub_set *set, struct slice value, struct slice text, size_t step)
{
	AUTO_FREE uint8_t *whole = xmalloc(text.n + 1), *pieces = xcalloc(1, text.n + 64);
	AUTO_FREE uint8_t *covered = xcalloc(1, text.n + 1);
	struct scrub s;

	memcpy(whole, text.p, text.n);
	uint64_t hits = scrub_text(set, whole, text.n);

	scrub_init(&s, set);
	feed_pieces(&s, text, step % 16 + 1, step / 16 + 1, pieces);
	if (s.n_hits != hits || memcmp(whole, pieces, text.n) != 0)
		abort();
	scrub_done(&s);
	oracle_cover(text, value, covered);
	for (size_t i = 0; i < text.n; i++) {
		if (covered[i] && whole[i] != '*')
			abort();
		if (!covered[i] && whole[i] != text.p[i] && oracle_is_exact(value))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, MIN(size, MAX_INPUT)));
	size_t step = rd_u8(&rd), which = rd_u8(&rd) % ARRAY_LEN(values);
	static struct scrub_set *sets[ARRAY_LEN(values)];
	struct slice value = slice_from_str(values[which]);

	if (rd.bad)
		return 0;
	if (!sets[which])
		sets[which] = scrub_set_new(&value, 1, NULL);
	if (!sets[which])
		abort();
	check(sets[which], value, slice_of(rd.p, rd.n), step);
	return 0;
}
