/* The first bytes are a value and a size, the rest a text: pieces of any size must give the same as the whole, and
 * what the oracle covers must be gone. */
#include <stdlib.h>
#include "lib/base/mem.h"
#include "scrub.h"
#include "scrub_oracle.h"

#define MAX_VALUE 24
#define MAX_INPUT 512

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
	size_t step = rd_u8(&rd), n = SCRUB_MIN + rd_u8(&rd) % (MAX_VALUE - SCRUB_MIN);
	struct slice value = rd_bytes(&rd, n);

	if (rd.bad)
		return 0;
	struct scrub_set *set = scrub_set_new(&value, 1, NULL);

	if (!set)
		abort();
	check(set, value, slice_of(rd.p, rd.n), step);
	scrub_set_free(set);
	return 0;
}
