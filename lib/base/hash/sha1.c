/* SPDX-License-Identifier: Apache-2.0 */
#include "sha1.h"

#define BLOCK 64

static uint32_t turn_sha1(uint32_t v, unsigned n)
{
	return v << n | v >> (32 - n);
}

static uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* FIPS 180-4, 6.1.2: the function and the constant of each round. */
static uint32_t mix_sha1(unsigned t, uint32_t b, uint32_t c, uint32_t d)
{
	if (t < 20)
		return ((b & c) | (~b & d)) + 0x5a827999;
	if (t < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (t < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

static void do_block(struct sha1 *s, const uint8_t *p)
{
	uint32_t w[80], a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];

	for (unsigned t = 0; t < 16; t++)
		w[t] = load_be32(p + 4 * t);
	for (unsigned t = 16; t < 80; t++)
		w[t] = turn_sha1(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (unsigned t = 0; t < 80; t++) {
		uint32_t next = turn_sha1(a, 5) + mix_sha1(t, b, c, d) + e + w[t];

		e = d;
		d = c;
		c = turn_sha1(b, 30);
		b = a;
		a = next;
	}
	s->h[0] += a;
	s->h[1] += b;
	s->h[2] += c;
	s->h[3] += d;
	s->h[4] += e;
}

void sha1_init(struct sha1 *s)
{
	*s = (struct sha1){.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void sha1_add(struct sha1 *s, struct slice bytes)
{
	while (bytes.n > 0) {
		size_t at = s->n % BLOCK, k = MIN(BLOCK - at, bytes.n);

		memcpy(s->block + at, bytes.p, k);
		s->n += k;
		bytes = slice_of(bytes.p + k, bytes.n - k);
		if (s->n % BLOCK == 0)
			do_block(s, s->block);
	}
}

void sha1_end(struct sha1 *s, uint8_t ret[SHA1_BYTES])
{
	static const uint8_t pad[BLOCK] = {0x80};
	uint64_t bits = s->n * 8;
	size_t n = (BLOCK + 55 - s->n % BLOCK) % BLOCK + 1;
	uint8_t tail[8];

	for (unsigned i = 0; i < 8; i++)
		tail[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha1_add(s, slice_of(pad, n));
	sha1_add(s, slice_of(tail, sizeof(tail)));
	for (unsigned i = 0; i < SHA1_BYTES; i++)
		ret[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
