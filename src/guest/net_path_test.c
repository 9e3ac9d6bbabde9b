#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "net_path.h"
#include "lib/wire/wire.h"

static_assert(NET_PATH_MAX <= WIRE_MAX_PATH, "the wire takes it");

static void ipv4(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(443)};
	char path[NET_PATH_MAX];

	assert_int_equal(inet_pton(AF_INET, "198.18.3.7", &to.sin_addr), 1);
	assert_int_equal(net_path_of((struct sockaddr *)&to, path), 0);
	assert_string_equal(path, "/tcp/198.18.3.7/443");
}

static void ipv6_at_its_longest(void **state)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(65535)};
	char path[NET_PATH_MAX];

	assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr), 1);
	assert_int_equal(net_path_of((struct sockaddr *)&to, path), 0);
	assert_string_equal(path, "/tcp/2001:db8::1/65535");
	memset(&to.sin6_addr, 0xff, sizeof(to.sin6_addr));
	assert_int_equal(net_path_of((struct sockaddr *)&to, path), 0);
	assert_string_equal(path, "/tcp/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/65535");
}

static void nothing_else(void **state)
{
	struct sockaddr_in6 to = {.sin6_family = AF_UNIX};
	char path[NET_PATH_MAX];

	assert_int_equal(net_path_of((struct sockaddr *)&to, path), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4),
		cmocka_unit_test(ipv6_at_its_longest),
		cmocka_unit_test(nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
