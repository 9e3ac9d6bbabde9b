/* SPDX-License-Identifier: Apache-2.0 */
#include "addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>

struct range {
	addr_bits bits;
	uint8_t n, prefix;
	enum addr_class class;
};

#define HALF(a, b, c, d) \
	((uint64_t)(a) << 48 | (uint64_t)(b) << 32 | (uint64_t)(c) << 16 | (uint64_t)(d))
#define V4(a, b, c, d, prefix, class)                                                          \
	{                                                                                      \
		(addr_bits) HALF((a) << 8 | (b), (c) << 8 | (d), 0, 0) << 64, 4, prefix, class \
	}
#define V6(a, b, c, d, e, f, g, h, prefix, class)                                        \
	{                                                                                \
		(addr_bits) HALF(a, b, c, d) << 64 | HALF(e, f, g, h), 16, prefix, class \
	}

/* After IANA's two registries of special purpose addresses, and further ones of clouds. */
static const struct range ranges[] = {
	V4(0, 0, 0, 0, 0, ADDR_PUBLIC),
	V4(0, 0, 0, 0, 8, ADDR_UNSPECIFIED),
	V4(10, 0, 0, 0, 8, ADDR_PRIVATE),
	V4(100, 64, 0, 0, 10, ADDR_CGNAT),
	V4(100, 100, 100, 200, 32, ADDR_METADATA), /* Alibaba */
	V4(127, 0, 0, 0, 8, ADDR_LOOPBACK),
	V4(168, 63, 129, 16, 32, ADDR_METADATA), /* Azure, in the midst of public space */
	V4(169, 254, 0, 0, 16, ADDR_LINK_LOCAL),
	V4(169, 254, 169, 254, 32, ADDR_METADATA),
	V4(169, 254, 170, 2, 32, ADDR_METADATA),  /* AWS, tasks */
	V4(169, 254, 170, 23, 32, ADDR_METADATA), /* AWS, pods */
	V4(172, 16, 0, 0, 12, ADDR_PRIVATE),
	V4(192, 0, 0, 0, 24, ADDR_RESERVED),
	V4(192, 0, 0, 192, 32, ADDR_METADATA), /* Oracle */
	V4(192, 0, 2, 0, 24, ADDR_DOCUMENTATION),
	V4(192, 88, 99, 0, 24, ADDR_TUNNEL),
	V4(192, 168, 0, 0, 16, ADDR_PRIVATE),
	V4(198, 18, 0, 0, 15, ADDR_BENCHMARK),
	V4(198, 51, 100, 0, 24, ADDR_DOCUMENTATION),
	V4(203, 0, 113, 0, 24, ADDR_DOCUMENTATION),
	V4(224, 0, 0, 0, 4, ADDR_MULTICAST),
	V4(240, 0, 0, 0, 4, ADDR_RESERVED),
	V4(255, 255, 255, 255, 32, ADDR_BROADCAST),
	/* Only 2000::/3 has ever been given out. */
	V6(0, 0, 0, 0, 0, 0, 0, 0, 0, ADDR_RESERVED),
	V6(0x2000, 0, 0, 0, 0, 0, 0, 0, 3, ADDR_PUBLIC),
	V6(0, 0, 0, 0, 0, 0, 0, 0, 128, ADDR_UNSPECIFIED),
	V6(0, 0, 0, 0, 0, 0, 0, 1, 128, ADDR_LOOPBACK),
	/* The well-known NAT64 prefix is the IPv4 Internet: see addr_embedded. */
	V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0, 96, ADDR_PUBLIC),
	V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0, 48, ADDR_TUNNEL),
	V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 23, ADDR_RESERVED),
	V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 32, ADDR_TUNNEL),
	V6(0x2001, 2, 0, 0, 0, 0, 0, 0, 48, ADDR_BENCHMARK),
	V6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0, 32, ADDR_DOCUMENTATION),
	V6(0x2002, 0, 0, 0, 0, 0, 0, 0, 16, ADDR_TUNNEL),
	V6(0x3fff, 0, 0, 0, 0, 0, 0, 0, 20, ADDR_DOCUMENTATION),
	V6(0xfc00, 0, 0, 0, 0, 0, 0, 0, 7, ADDR_PRIVATE),
	V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23, 128, ADDR_METADATA), /* AWS, pods */
	V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254, 128, ADDR_METADATA),
	V6(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254, 128, ADDR_METADATA), /* Google */
	V6(0xfe80, 0, 0, 0, 0, 0, 0, 0, 10, ADDR_LINK_LOCAL),
	V6(0xfec0, 0, 0, 0, 0, 0, 0, 0, 10, ADDR_PRIVATE),
	V6(0xff00, 0, 0, 0, 0, 0, 0, 0, 8, ADDR_MULTICAST),
};

struct addr addr_from_v4(const uint8_t b[4])
{
	struct addr a = {.n = 4};

	memcpy(a.b, b, 4);
	return a;
}

struct addr addr_from_v6(const uint8_t b[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct addr a = {.n = 16};

	if (memcmp(b, mapped, sizeof(mapped)) == 0)
		return addr_from_v4(b + 12);
	memcpy(a.b, b, 16);
	return a;
}

/* 0 to 255 without a leading zero, which other readers take for octal. */
static bool read_octet(struct rd *rd, uint8_t *ret)
{
	unsigned v = 0;
	size_t n = 0;

	while (n < rd->n && n < 4 && rd->p[n] >= '0' && rd->p[n] <= '9')
		v = v * 10 + (unsigned)(rd->p[n++] - '0');
	if (n == 0 || n > 3 || v > 255 || (n > 1 && rd->p[0] == '0'))
		return false;
	(void)rd_bytes(rd, n);
	*ret = (uint8_t)v;
	return true;
}

static int parse_v4(struct slice text, struct addr *ret)
{
	struct rd rd = rd_init(text);
	uint8_t b[4];

	for (size_t i = 0; i < 4; i++)
		if ((i > 0 && rd_u8(&rd) != '.') || !read_octet(&rd, &b[i]))
			return -EINVAL;
	if (rd_finish(&rd) < 0)
		return -EINVAL;
	*ret = addr_from_v4(b);
	return 0;
}

int addr_parse(struct slice text, struct addr *ret)
{
	char buf[ADDR_MAX_TEXT];
	uint8_t b[16];

	if (text.n == 0 || !memchr(text.p, ':', text.n))
		return parse_v4(text, ret);
	/* inet_pton stops at a NUL, and slice_to_cstr refuses one. */
	if (slice_to_cstr(text, buf, sizeof(buf)) < 0 || inet_pton(AF_INET6, buf, b) != 1)
		return -EINVAL;
	*ret = addr_from_v6(b);
	return 0;
}

void addr_print(const struct addr *a, char *buf)
{
	const char *s = inet_ntop(a->n == 4 ? AF_INET : AF_INET6, a->b, buf, ADDR_MAX_TEXT);

	assert(s != NULL);
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
	return a->n == b->n && memcmp(a->b, b->b, a->n) == 0;
}

addr_bits addr_key(const struct addr *a)
{
	uint64_t hi, lo = 0;

	if (a->n == 4) {
		uint32_t v;

		memcpy(&v, a->b, sizeof(v));
		return (addr_bits)__builtin_bswap32(v) << 96;
	}
	memcpy(&hi, a->b, sizeof(hi));
	memcpy(&lo, a->b + 8, sizeof(lo));
	return (addr_bits)__builtin_bswap64(hi) << 64 | __builtin_bswap64(lo);
}

static bool same_prefix(addr_bits a, addr_bits b, unsigned prefix)
{
	return prefix == 0 || (a ^ b) >> (128 - prefix) == 0;
}

bool addr_net_has(const struct addr_net *net, const struct addr *a)
{
	return net->addr.n == a->n && same_prefix(addr_key(&net->addr), addr_key(a), net->prefix);
}

bool addr_net_covers(const struct addr_net *net, const struct addr_net *inner)
{
	return net->prefix <= inner->prefix && addr_net_has(net, &inner->addr);
}

struct addr_net addr_net_of(const struct addr *a, uint8_t prefix)
{
	struct addr_net net = {.addr = *a, .prefix = prefix};

	for (unsigned i = 0; i < a->n; i++) {
		if (prefix <= i * 8)
			net.addr.b[i] = 0;
		else if (prefix < i * 8 + 8)
			net.addr.b[i] &= (uint8_t)(0xff << (i * 8 + 8 - prefix));
	}
	return net;
}

static bool begins_addr(const struct addr *a, const char *bytes, size_t n)
{
	return memcmp(a->b, bytes, n) == 0;
}

size_t addr_embedded(const struct addr *a, struct addr *ret)
{
	static const char zero[12], siit[12] = {[8] = '\xff', [9] = '\xff'};
	const uint8_t *b = a->b;
	size_t n = 0;

	if (a->n != 16)
		return 0;
	if (begins_addr(a, zero, 12) || begins_addr(a, siit, 12) ||
		begins_addr(a, "\0\x64\xff\x9b\0\0\0\0\0\0\0", 12))
		ret[n++] = addr_from_v4(b + 12); /* compatible, translated, NAT64 */
	if (begins_addr(
		    a, "\0\x64\xff\x9b\0\1", 6)) { /* local NAT64: either behind 48 bits, or 96 */
		ret[n++] = addr_from_v4((const uint8_t[]){b[6], b[7], b[9], b[10]});
		ret[n++] = addr_from_v4(b + 12);
	}
	if (begins_addr(a, "\x20\x02", 2))
		ret[n++] = addr_from_v4(b + 2);
	if (begins_addr(a, "\x20\x01\0\0", 4)) { /* Teredo: its server, and the client inverted */
		ret[n++] = addr_from_v4(b + 4);
		ret[n++] = addr_from_v4((const uint8_t[]){
			(uint8_t)~b[12], (uint8_t)~b[13], (uint8_t)~b[14], (uint8_t)~b[15]});
	}
	/* ISATAP: 0000:5efe or 0200:5efe in front, in any network. */
	if ((b[8] & 0xfd) == 0 && memcmp(b + 9, "\0\x5e\xfe", 3) == 0 && n < ADDR_MAX_EMBEDDED)
		ret[n++] = addr_from_v4(b + 12);
	return n;
}

static const struct range *find_range(const struct addr *a)
{
	addr_bits key = addr_key(a);
	const struct range *best = NULL;

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (ranges[i].n == a->n && (!best || ranges[i].prefix >= best->prefix) &&
			same_prefix(ranges[i].bits, key, ranges[i].prefix))
			best = &ranges[i];
	assert(best != NULL); /* each family has a row of prefix 0 */
	return best;
}

enum addr_class addr_classify(const struct addr *a, struct addr_net *ret_range)
{
	const struct range *own = find_range(a);
	struct addr inner[ADDR_MAX_EMBEDDED];
	size_t n;

	if (ret_range)
		*ret_range = addr_net_of(a, own->prefix);
	/* The unspecified and the loopback address look like IPv4-compatible ones. */
	if (own->prefix == 128)
		return own->class;
	n = addr_embedded(a, inner);
	for (size_t i = 0; i < n; i++) {
		enum addr_class class = find_range(&inner[i])->class;

		if (class == ADDR_PUBLIC)
			continue;
		if (ret_range)
			*ret_range = addr_net_of(a, 128);
		return class;
	}
	return own->class;
}

const char *addr_class_name(enum addr_class class)
{
	static const char *const names[] = {
		[ADDR_PUBLIC] = "public",
		[ADDR_PRIVATE] = "private",
		[ADDR_LOOPBACK] = "loopback",
		[ADDR_LINK_LOCAL] = "link-local",
		[ADDR_CGNAT] = "carrier NAT",
		[ADDR_METADATA] = "cloud metadata",
		[ADDR_MULTICAST] = "multicast",
		[ADDR_BROADCAST] = "broadcast",
		[ADDR_UNSPECIFIED] = "unspecified",
		[ADDR_BENCHMARK] = "benchmark",
		[ADDR_DOCUMENTATION] = "documentation",
		[ADDR_TUNNEL] = "tunnel",
		[ADDR_RESERVED] = "reserved",
		[ADDR_OWN] = "local host",
		[ADDR_LAN] = "local network",
	};

	static_assert(ARRAY_LEN(names) == ADDR_CLASSES, "a class has no name");
	return names[class];
}
