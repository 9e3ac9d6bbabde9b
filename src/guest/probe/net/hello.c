/* SPDX-License-Identifier: Apache-2.0 */
/* A hand-made ClientHello: a library would refuse most of these. */
#include "net.h"

#include <string.h>

struct out {
	uint8_t *p;
	size_t n, size;
};

static void put_hello(struct out *o, const void *p, size_t n)
{
	if (o->n + n <= o->size)
		memcpy(o->p + o->n, p, n);
	o->n += n;
}

static void put_u8(struct out *o, unsigned v)
{
	put_hello(o, &(uint8_t){(uint8_t)v}, 1);
}

static void put_u16(struct out *o, size_t v)
{
	put_u8(o, (unsigned)(v >> 8));
	put_u8(o, (unsigned)v);
}

/* Writes the length of the data since `at` into the bytes before it. */
static void close_length(struct out *o, size_t at, unsigned bytes)
{
	size_t n = o->n - at;

	if (o->n > o->size)
		return;
	for (unsigned i = 0; i < bytes; i++)
		o->p[at - 1 - i] = (uint8_t)(n >> (8 * i));
}

static void put_name(struct out *o, const uint8_t *name, size_t n)
{
	put_u16(o, 0); /* server_name */
	put_u16(o, n + 5);
	put_u16(o, n + 3);
	put_u8(o, 0);
	put_u16(o, n);
	put_hello(o, name, n);
}

/* Type outer, a suite, a key and a payload that is indistinguishable from a real one. */
static void put_ech(struct out *o)
{
	static const uint8_t begin[] = {0, 0, 1, 0, 1, 7, 0, 32};

	put_u16(o, 0xfe0d);
	put_u16(o, sizeof(begin) + 32 + 2 + 64);
	put_hello(o, begin, sizeof(begin));
	for (unsigned i = 0; i < 32; i++)
		put_u8(o, i * 37 + 11);
	put_u16(o, 64);
	for (unsigned i = 0; i < 64; i++)
		put_u8(o, i * 53 + 7);
}

static void put_extensions(struct out *o, bool h2)
{
	static const uint8_t fixed[] = {
		0, 10, 0, 4, 0, 2, 0, 23,	     /* groups: P-256 */
		0, 13, 0, 8, 0, 6, 4, 3, 8, 4, 4, 1, /* signatures */
		0, 11, 0, 2, 1, 0,		     /* points: uncompressed */
		0, 43, 0, 5, 4, 3, 4, 3, 3,	     /* TLS 1.3 and 1.2 */
		0, 45, 0, 2, 1, 1,		     /* psk modes */
		0, 51, 0, 2, 0, 0,		     /* no key share: requests one */
	};
	static const uint8_t alpn[] = {0, 16, 0, 5, 0, 3, 2, 'h', '2'};

	put_hello(o, fixed, sizeof(fixed));
	if (h2)
		put_hello(o, alpn, sizeof(alpn));
}

size_t hello_make(const uint8_t *name, size_t n_name, bool ech, bool h2, uint8_t *buf, size_t size)
{
	static const uint8_t suites[] = {0, 6, 0x13, 0x01, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0};
	struct out o = {.p = buf, .size = size};
	size_t record, message, extensions;

	put_hello(&o, "\x16\x03\x01\0\0", 5);
	record = o.n;
	put_hello(&o, "\x01\0\0\0", 4);
	message = o.n;
	put_u16(&o, 0x0303);
	for (unsigned i = 0; i < 32; i++)
		put_u8(&o, i * 29 + 3);
	put_u8(&o, 0); /* no session */
	put_hello(&o, suites, sizeof(suites));
	put_u16(&o, 0);
	extensions = o.n;
	if (n_name)
		put_name(&o, name, n_name);
	if (ech)
		put_ech(&o);
	put_extensions(&o, h2);
	close_length(&o, extensions, 2);
	close_length(&o, message, 3);
	close_length(&o, record, 2);
	return o.n <= size ? o.n : 0;
}
