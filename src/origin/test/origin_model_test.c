/* SPDX-License-Identifier: Apache-2.0 */
/* Random orders of requests, renewals, repeated value requests, responses that repeat values,
 * resets and cuts, over HTTP/1.1 and HTTP/2: no value reaches edge, edge gets complete responses,
 * and nothing is left (origin_play.h). Arguments: number of sequences, and the seed of the first.
 * RUN of them share their values, because building a search set takes milliseconds. A failure
 * prints how to repeat it. */
#include "origin_play.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/base/mem.h"

#define MAX_STEPS 400
#define RUN 50

static unsigned long seed;

static void say_seed(int sig)
{
	(void)fprintf(stderr, "origin_model_test %lu %lu\n", seed % RUN + 1, seed - seed % RUN);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static uint64_t state;

static uint32_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 24);
}

/* Steps that others depend on are more frequent. */
static uint8_t draw_step(void)
{
	static const uint8_t often[] = {PLAY_GET, PLAY_POST, PLAY_SOCKET, PLAY_VALUE, PLAY_HEAD,
		PLAY_DATA, PLAY_END, PLAY_FINISH, PLAY_FORGE};
	uint32_t what = draw() % 3 ? often[draw() % ARRAY_LEN(often)] : draw() % PLAY_N_STEPS;

	/* one in eight: together with the next step */
	return (uint8_t)(what + PLAY_N_STEPS * (draw() % 8 ? 0 : 192 / PLAY_N_STEPS + 1));
}

/* How many bytes follow a step; DATA may have a split position and one more step. */
static unsigned n_args(uint8_t c)
{
	enum play_step what = c % PLAY_N_STEPS;

	if (what == PLAY_TURN || what == PLAY_GET || what == PLAY_POST || what == PLAY_RENEW ||
		what == PLAY_EXPIRE)
		return 0;
	return what >= PLAY_HEAD ? 2 : 1;
}

static size_t make(uint8_t *p)
{
	size_t n = 40 + draw() % (MAX_STEPS - 40);

	for (size_t i = 0; i < n;) {
		unsigned args = n_args(p[i] = draw_step());

		for (i++; args > 0 && i < n; args--)
			p[i++] = (uint8_t)draw();
	}
	return n;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	struct play_stats stats = {0};
	uint8_t text[MAX_STEPS];

	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	(void)signal(SIGABRT, say_seed);
	for (unsigned long i = 0; i < n; i++, seed++) {
		if (seed % RUN == 0)
			play_forget();
		state = seed * 0x9e3779b97f4a7c15U + 1;
		(void)draw();
		play_run(slice_of(text, make(text)), &stats);
	}
	printf("%lu sequences: %llu requests, %llu forged, %llu responses whole, values said back "
	       "%llu times, removed %llu times\n",
		n, (unsigned long long)stats.n_exchanges, (unsigned long long)stats.n_forged,
		(unsigned long long)stats.n_ended, (unsigned long long)stats.n_said_back,
		(unsigned long long)stats.n_removed);
	/* otherwise the model no longer covers its purpose */
	return stats.n_removed > n / 4 && stats.n_ended > n / 4 && stats.n_forged > n ? 0 : 1;
}
