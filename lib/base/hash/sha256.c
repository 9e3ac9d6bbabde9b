/* SPDX-License-Identifier: Apache-2.0 */
#include "sha256.h"

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
	0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
	0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
	0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
	0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
	0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn_sha256(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

/* Round j of eight, in which word n is v[(n - j) % 8]. */
static inline void round_sha256(uint32_t v[8], unsigned j, uint32_t in)
{
	uint32_t a = v[(8 - j) % 8], b = v[(9 - j) % 8], c = v[(10 - j) % 8];
	uint32_t e = v[(12 - j) % 8], f = v[(13 - j) % 8], g = v[(14 - j) % 8];
	uint32_t t1 = v[(15 - j) % 8] +
		      (turn_sha256(e, 6) ^ turn_sha256(e, 11) ^ turn_sha256(e, 25)) +
		      ((e & f) ^ (~e & g)) + in;
	uint32_t t2 = (turn_sha256(a, 2) ^ turn_sha256(a, 13) ^ turn_sha256(a, 22)) +
		      ((a & b) ^ (a & c) ^ (b & c));

	v[(11 - j) % 8] += t1;
	v[(15 - j) % 8] = t1 + t2;
}

static void block_sha256(uint32_t h[8], const uint8_t p[64])
{
	uint32_t w[64], v[8];

	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (unsigned i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (turn_sha256(w[i - 15], 7) ^ turn_sha256(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn_sha256(w[i - 2], 17) ^ turn_sha256(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, h, sizeof(v));
	/* eight rounds at once: the words change their names and stay in their registers */
	for (unsigned i = 0; i < 64; i += 8) {
		round_sha256(v, 0, k[i] + w[i]);
		round_sha256(v, 1, k[i + 1] + w[i + 1]);
		round_sha256(v, 2, k[i + 2] + w[i + 2]);
		round_sha256(v, 3, k[i + 3] + w[i + 3]);
		round_sha256(v, 4, k[i + 4] + w[i + 4]);
		round_sha256(v, 5, k[i + 5] + w[i + 5]);
		round_sha256(v, 6, k[i + 6] + w[i + 6]);
		round_sha256(v, 7, k[i + 7] + w[i + 7]);
	}
	for (unsigned i = 0; i < 8; i++)
		h[i] += v[i];
}

void sha256_begin(struct sha256 *s)
{
	*s = (struct sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				     0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, struct slice in)
{
	size_t used = s->n % 64, room = 64 - used, at = 0;

	s->n += in.n;
	if (used > 0 && in.n >= room) {
		memcpy(s->rest + used, in.p, room);
		block_sha256(s->h, s->rest);
		at = room;
		used = 0;
	}
	for (; used == 0 && at + 64 <= in.n; at += 64)
		block_sha256(s->h, in.p + at);
	if (at < in.n)
		memcpy(s->rest + used, in.p + at, in.n - at);
}

void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES])
{
	uint8_t last[128] = {0};
	size_t n_last = s->n % 64, n_pad = n_last < 56 ? 64 : 128;

	memcpy(last, s->rest, n_last);
	last[n_last] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[n_pad - 1 - i] = (uint8_t)((s->n * 8) >> 8 * i);
	for (size_t at = 0; at < n_pad; at += 64)
		block_sha256(s->h, last + at);
	for (unsigned i = 0; i < SHA256_BYTES; i++)
		ret[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256(struct slice in, uint8_t ret[SHA256_BYTES])
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, in);
	sha256_end(&s, ret);
}
