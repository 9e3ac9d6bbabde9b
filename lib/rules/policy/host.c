/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/hex.h"
#include "lib/base/str.h"

static const char empty_label[] = "the host has an empty label";
static const char long_label[] = "a label of the host has more than 63 bytes";

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

void host_from_addr(const struct addr *a, struct host *ret)
{
	*ret = (struct host){.is_addr = true, .addr = *a};
	addr_print(a, ret->name);
	ret->n = (uint8_t)strlen(ret->name);
}

/* Lower case into ret->name; the label rules hold afterwards. */
static int copy_name(struct slice s, struct host *ret, struct err *err)
{
	size_t label = 0;

	if (s.n == 0)
		return err_set(err, -EINVAL, "the host is empty");
	if (s.n > HOST_MAX_NAME)
		return err_set(err, -EINVAL, "the host has more than %d bytes", HOST_MAX_NAME);
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];

		if (c >= 'A' && c <= 'Z')
			c = (uint8_t)(c - 'A' + 'a');
		if (c != '.' && c != '-' && c != '_' && !is_digit(c) && !(c >= 'a' && c <= 'z'))
			return err_set(err, -EINVAL,
				"a host name cannot contain the character 0x%02x (character %zu)",
				c, i + 1);
		ret->name[i] = (char)c;
		if (c != '.') {
			label++;
			continue;
		}
		if (label == 0 || label > HOST_MAX_LABEL)
			break;
		label = 0;
	}
	if (label == 0 || label > HOST_MAX_LABEL)
		return err_set(err, -EINVAL, "%s", label ? long_label : empty_label);
	ret->name[s.n] = '\0';
	ret->n = (uint8_t)s.n;
	return 0;
}

static int check_hyphens(const struct host *h, struct err *err)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->name[i] == '-' &&
			(i == 0 || i + 1 == h->n || h->name[i - 1] == '.' || h->name[i + 1] == '.'))
			return err_set(err, -EINVAL, "a label of the host begins or ends with '-'");
	return 0;
}

static struct slice last_label(const struct host *h)
{
	size_t at = h->n;

	while (at > 0 && h->name[at - 1] != '.')
		at--;
	return slice_of(h->name + at, h->n - at);
}

static bool ends_in_number(const struct host *h)
{
	struct slice s = last_label(h);
	bool hex = s.n >= 2 && s.p[0] == '0' && s.p[1] == 'x';

	for (size_t i = hex ? 2 : 0; i < s.n; i++)
		if (hex ? hex_digit(s.p[i]) < 0 : !is_digit(s.p[i]))
			return false;
	return true;
}

/* The next part of an address in inet_aton's spelling: hexadecimal, octal or decimal. */
static int read_number(struct rd *rd, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;
	size_t n = 0;

	if (rd->n >= 2 && rd->p[0] == '0' && rd->p[1] == 'x') {
		base = 16;
		(void)rd_bytes(rd, 2);
	} else if (rd->n >= 2 && rd->p[0] == '0' && rd->p[1] != '.') {
		base = 8;
		(void)rd_u8(rd);
	}
	for (; rd->n > 0 && rd->p[0] != '.'; n++) {
		uint8_t c = rd_u8(rd);
		int digit = hex_digit(c);

		if (digit < 0 || (unsigned)digit >= base || v > UINT32_MAX)
			return -EINVAL;
		v = v * base + (unsigned)digit;
	}
	*ret = v;
	return n > 0 ? 0 : -EINVAL;
}

static int parse_numbers(struct slice s, struct addr *ret)
{
	struct rd rd = rd_init(s);
	uint64_t part[4], v = 0;
	unsigned n = 0;

	do {
		if (n == 4 || (n > 0 && rd_u8(&rd) != '.') || read_number(&rd, &part[n++]) < 0)
			return -EINVAL;
	} while (rd.n > 0);
	/* The last part fills all bytes that are left. */
	if (part[n - 1] >> (8 * (5 - n)) != 0)
		return -EINVAL;
	for (unsigned i = 0; i + 1 < n; i++) {
		if (part[i] > 255)
			return -EINVAL;
		v |= part[i] << (8 * (3 - i));
	}
	v |= part[n - 1];
	*ret = addr_from_v4(
		(uint8_t[]){(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v});
	return 0;
}

static int take_v6(struct slice s, struct host *ret, struct err *err)
{
	struct addr a;

	if (s.p[0] == '[') {
		if (s.p[s.n - 1] != ']')
			return err_set(err, -EINVAL, "missing ']' at the end of the host");
		s = slice_of(s.p + 1, s.n - 2);
	}
	if (memchr(s.p, '%', s.n))
		return err_set(
			err, -EINVAL, "the host is an address with a zone, which is not supported");
	if (!memchr(s.p, ':', s.n) || addr_parse(s, &a) < 0)
		return err_set(err, -EINVAL, "the host is not a well-formed IPv6 address");
	host_from_addr(&a, ret);
	return 0;
}

int host_from_wire(struct slice text, struct host *ret, struct err *err)
{
	struct host h = {0};
	int r;

	if (text.n > 1 && (text.p[0] == '[' || memchr(text.p, ':', text.n)))
		return take_v6(text, ret, err);
	if (text.n > 1 && text.p[text.n - 1] == '.')
		text.n--;
	r = copy_name(text, &h, err);
	if (r < 0)
		return r;
	r = check_hyphens(&h, err);
	if (r < 0)
		return r;
	if (ends_in_number(&h)) {
		struct addr a;

		if (parse_numbers(host_slice(&h), &a) < 0)
			return err_set(err, -EINVAL,
				"the host ends in a number and is not an IPv4 address");
		host_from_addr(&a, &h);
	}
	*ret = h;
	return 0;
}

int host_parse_port(struct slice text, uint16_t *ret)
{
	uint32_t v = 0;

	if (text.n == 0 || text.n > 5 || text.p[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < text.n; i++) {
		if (!is_digit(text.p[i]))
			return -EINVAL;
		v = v * 10 + (uint32_t)(text.p[i] - '0');
	}
	if (v > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

/* Where the port's colon is; the length when there is none. */
static size_t find_colon(struct slice s)
{
	const uint8_t *colon = s.n ? memchr(s.p, ':', s.n) : NULL;
	const uint8_t *end = s.n && s.p[0] == '[' ? memchr(s.p, ']', s.n) : NULL;
	size_t at;

	if (end) {
		at = (size_t)(end - s.p) + 1;
		return at < s.n && s.p[at] == ':' ? at : s.n;
	}
	if (!colon)
		return s.n;
	at = (size_t)(colon - s.p);
	return memchr(colon + 1, ':', s.n - at - 1) ? s.n : at;
}

int host_split(struct slice target, struct slice *ret_host, uint16_t *ret_port, struct err *err)
{
	size_t at = find_colon(target);
	uint16_t port = 0;

	if (at < target.n &&
		host_parse_port(slice_of(target.p + at + 1, target.n - at - 1), &port) < 0)
		return err_set(err, -EINVAL, "the port is not a number from 1 to 65535");
	*ret_host = slice_of(target.p, at);
	*ret_port = port;
	return 0;
}

bool host_is_here(const struct host *h)
{
	static const char *const names[] = {"host.docker.internal", "gateway.docker.internal"};

	for (size_t i = 0; !h->is_addr && i < ARRAY_LEN(names); i++) {
		if (slice_eq_str(host_slice(h), names[i]))
			return true;
	}
	return false;
}

bool host_is_localhost(const struct host *h)
{
	return !h->is_addr &&
	       (strcmp(h->name, "localhost") == 0 || str_ends(h->name, ".localhost"));
}
