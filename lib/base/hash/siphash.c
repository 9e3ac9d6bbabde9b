/* SPDX-License-Identifier: Apache-2.0 */
#include "siphash.h"

struct state {
	uint64_t v[4];
};

static uint64_t rotate_siphash(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void mix_siphash(struct state *s, int rounds)
{
	uint64_t *v = s->v;

	for (int i = 0; i < rounds; i++) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_siphash(v[1], 13) ^ v[0];
		v[3] = rotate_siphash(v[3], 16) ^ v[2];
		v[0] = rotate_siphash(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate_siphash(v[1], 17) ^ v[2];
		v[3] = rotate_siphash(v[3], 21) ^ v[0];
		v[2] = rotate_siphash(v[2], 32);
	}
}

static void eat_siphash(struct state *s, uint64_t word)
{
	s->v[3] ^= word;
	mix_siphash(s, 2);
	s->v[0] ^= word;
}

uint64_t siphash(const uint8_t key[16], struct slice in)
{
	struct rd k = rd_init(slice_of(key, 16)), rd = rd_init(in);
	uint64_t k0 = rd_u64(&k), k1 = rd_u64(&k), last = (uint64_t)in.n << 56;
	struct state s = {{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
		k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}};

	while (rd.n >= 8)
		eat_siphash(&s, rd_u64(&rd));
	for (int shift = 0; rd.n > 0; shift += 8)
		last |= (uint64_t)rd_u8(&rd) << shift;
	eat_siphash(&s, last);
	s.v[2] ^= 0xff;
	mix_siphash(&s, 4);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}
