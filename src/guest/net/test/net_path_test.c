/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "src/guest/net/net_path.h"
#include "lib/wire/wire/wire.h"

static_assert(NET_PATH_MAX <= WIRE_MAX_PATH, "the wire takes it");

static void ipv4(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(443)};
	char path[NET_PATH_MAX];

	assert_int_equal(inet_pton(AF_INET, "198.18.3.7", &to.sin_addr), 1);
	assert_int_equal(net_path_of("tcp", (struct sockaddr *)&to, path), 0);
	assert_string_equal(path, "/tcp/198.18.3.7/443");
}

static void ipv6_at_its_longest(void **state)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(65535)};
	char path[NET_PATH_MAX];

	assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr), 1);
	assert_int_equal(net_path_of("tcp", (struct sockaddr *)&to, path), 0);
	assert_string_equal(path, "/tcp/2001:db8::1/65535");
	memset(&to.sin6_addr, 0xff, sizeof(to.sin6_addr));
	assert_int_equal(net_path_of("tcp", (struct sockaddr *)&to, path), 0);
	assert_string_equal(path, "/tcp/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/65535");
}

static void nothing_else(void **state)
{
	struct sockaddr_in6 to = {.sin6_family = AF_UNIX};
	char path[NET_PATH_MAX];

	assert_int_equal(net_path_of("tcp", (struct sockaddr *)&to, path), -EINVAL);
}

/* The first packet of a connection, as passed by the kernel. */
static void packets(void **state)
{
	static const uint8_t v4[] = {0x45, 0, 0, 60, 1, 2, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 203,
		0, 113, 9, 0x9c, 0x40, 0x01, 0xbb, 1, 2, 3, 4};
	uint8_t v6[44] = {0x60, [6] = 6, [24] = 0x20, 0x01, 0x0d, 0xb8, [39] = 7, [42] = 0, 22};
	uint8_t buf[64] = {0};
	char path[NET_PATH_MAX];

	assert_int_equal(net_path_of_packet(slice_of(v4, sizeof(v4)), path), 0);
	assert_string_equal(path, "/may/203.0.113.9/443");
	assert_int_equal(net_path_of_packet(slice_of(v6, sizeof(v6)), path), 0);
	assert_string_equal(path, "/may/2001:db8::7/22");
	/* Truncated anywhere before the port. */
	for (size_t n = 0; n < 24; n++)
		assert_int_equal(net_path_of_packet(slice_of(v4, n), path), -EINVAL);
	for (size_t n = 0; n < sizeof(v6); n++)
		assert_int_equal(net_path_of_packet(slice_of(v6, n), path), -EINVAL);
	/* Options before the ports. */
	memcpy(buf, v4, 20);
	memcpy(buf + 24, v4 + 20, 8);
	buf[0] = 0x46;
	assert_int_equal(net_path_of_packet(slice_of(buf, 32), path), 0);
	assert_string_equal(path, "/may/203.0.113.9/443");
	buf[0] = 0x4f; /* longer than the packet */
	assert_int_equal(net_path_of_packet(slice_of(buf, 32), path), -EINVAL);
	buf[0] = 0x46;
	buf[7] = 1; /* a later fragment */
	assert_int_equal(net_path_of_packet(slice_of(buf, 32), path), -EINVAL);
	v6[6] = 0; /* a header between */
	assert_int_equal(net_path_of_packet(slice_of(v6, sizeof(v6)), path), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4),
		cmocka_unit_test(ipv6_at_its_longest),
		cmocka_unit_test(nothing_else),
		cmocka_unit_test(packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
