/* SPDX-License-Identifier: Apache-2.0 */
/* Random orders of all operations on both ends of a channel, against a model: two queues of bytes
 * for each stream. Arguments: number of steps, and the seed. Aborts when the bytes of a stream
 * differ from those that were sent, when an end comes early or not at all, when a window is
 * exceeded, or when a stream that can send is not told so. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/wire/mux/mux.h"

#define IDS 12

/* One direction of a stream. */
struct way {
	uint64_t sent, got;
	bool is_shut, is_over, is_told; /* is_told: WRITABLE came after a short send */
};

static struct mux ends[2];
static struct way ways[2][IDS];
static uint32_t ids[IDS]; /* their numbers; 0: not open */
static bool is_open[2][IDS];
static uint64_t state;
static uint64_t n_bytes, n_streams, n_short;

static uint32_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 24);
}

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	(void)fprintf(stderr, "mux_model: %s\n", what);
	abort();
}

static uint8_t byte_of(uint32_t id, int end, uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 9) + id * 7 + (unsigned)end);
}

static void open_both(unsigned i)
{
	static uint32_t n;

	if (is_open[0][i] || is_open[1][i])
		return;
	n = n % MUX_MAX_ID + 1;
	ids[i] = n;
	for (int e = 0; e < 2; e++) {
		check(mux_open(&ends[e], n) != NULL, "a number is in use");
		is_open[e][i] = true;
		ways[e][i] = (struct way){.is_told = true};
	}
	n_streams++;
}

static void send_some(int e, unsigned i)
{
	static uint8_t buf[100000];
	struct way *w = &ways[e][i];
	size_t n = draw() % 4 ? draw() % 3000 : draw() % sizeof(buf), cut = n ? draw() % n : 0,
	       sent;
	struct mux_stream *s = mux_find(&ends[e], ids[i]);

	for (size_t k = 0; k < n; k++)
		buf[k] = byte_of(ids[i], e, w->sent + k);
	sent = mux_send(s, slice_of(buf, cut), slice_of(buf + cut, n - cut));
	check(sent <= n && (!w->is_shut || !sent), "more was sent than there was");
	check(s->is_gone || w->is_shut || sent == n || !w->is_told || s->credit == 0 ||
			mux_out(&ends[e]).n >= MUX_OUT,
		"a short send without a reason");
	w->is_told = w->is_told && sent == n;
	n_short += sent < n;
	w->sent += sent;
	n_bytes += sent;
}

static void take_some(int e, unsigned i)
{
	struct mux_stream *s = mux_find(&ends[e], ids[i]);
	struct way *w = &ways[!e][i];
	struct slice in = mux_peek(s);
	size_t n = draw() % 2 ? in.n : in.n ? draw() % in.n : 0;

	check(in.n <= MUX_MAX_WINDOW && in.n <= s->window, "more than the window");
	for (size_t k = 0; k < n; k++)
		check(in.p[k] == byte_of(ids[i], !e, w->got + k), "another byte");
	mux_take(s, n);
	w->got += n;
	check(w->got <= w->sent, "bytes that nobody sent");
	if (mux_is_at_end(s) && !w->is_over) {
		check(w->got == w->sent, "an end before the last byte");
		check(w->is_shut || !is_open[!e][i], "an end that nobody sent");
		w->is_over = true;
	}
}

static void carry_some(int e)
{
	struct slice out = mux_out(&ends[e]), in;
	size_t n = draw() % 3 ? out.n : out.n ? draw() % out.n : 0;
	int r;

	in = slice_of(out.p, n);
	while ((r = mux_feed(&ends[!e], &in)) == 1)
		;
	check(r == 0, "a frame is refused");
	mux_sent(&ends[e], n);
}

static void note_events(int e)
{
	struct mux_stream *s;
	unsigned events;

	while ((s = mux_next(&ends[e], &events)))
		for (unsigned i = 0; i < IDS; i++)
			if (is_open[e][i] && ids[i] == s->id && events & MUX_WRITABLE)
				ways[e][i].is_told = true;
}

static void close_one(int e, unsigned i)
{
	mux_close(mux_find(&ends[e], ids[i]));
	is_open[e][i] = false;
}

/* Everything arrives: nothing may wait without a reason. */
static void settle(void)
{
	for (unsigned round = 0; round < 40; round++)
		for (int e = 0; e < 2; e++) {
			carry_some(e);
			note_events(e);
		}
	for (int e = 0; e < 2; e++)
		while (mux_out(&ends[e]).n)
			carry_some(e);
	for (int e = 0; e < 2; e++)
		note_events(e);
	for (int e = 0; e < 2; e++)
		for (unsigned i = 0; i < IDS; i++) {
			struct mux_stream *s = is_open[e][i] ? mux_find(&ends[e], ids[i]) : NULL;

			check(!s || s->is_gone || ways[e][i].is_shut || ways[e][i].is_told ||
					!s->credit,
				"a stream that can send was not told");
		}
}

static void step(void)
{
	unsigned i = draw() % IDS, what = draw() % 64;
	int e = (int)(draw() % 2);

	if (what < 2)
		settle();
	else if (what < 12)
		carry_some(e);
	else if (what < 16)
		note_events(e);
	else if (!is_open[e][i])
		open_both(i);
	else if (what < 36)
		send_some(e, i);
	else if (what < 61)
		take_some(e, i);
	else if (what == 61 && !ways[e][i].is_shut) {
		mux_shut(mux_find(&ends[e], ids[i]));
		ways[e][i].is_shut = true;
	} else if (what == 62)
		close_one(e, i);
	else if (what == 63)
		mux_again(mux_find(&ends[e], ids[i]));
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;

	state = (argc > 2 ? strtoul(argv[2], NULL, 10) : 1) * 0x9e3779b97f4a7c15U + 1;
	for (unsigned long k = 0; k < n; k++)
		step();
	settle();
	for (int e = 0; e < 2; e++)
		for (unsigned i = 0; i < IDS; i++)
			if (is_open[e][i])
				close_one(e, i);
	settle();
	for (int e = 0; e < 2; e++) {
		check(ends[e].n_streams == 0 && ends[e].n_shared == 0, "something is left");
		mux_done(&ends[e]);
	}
	printf("%lu steps: %lu streams, %lu bytes, %lu short sends\n", n, (unsigned long)n_streams,
		(unsigned long)n_bytes, (unsigned long)n_short);
	return n_streams > n / 2000 && n_short > n / 100 ? 0 : 1;
}
