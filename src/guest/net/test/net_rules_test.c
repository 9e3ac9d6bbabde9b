/* SPDX-License-Identifier: Apache-2.0 */
/* The rules as the kernel has them, printed by nft, in a separate network namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stdbool.h>
#include "src/guest/net/net_rules.h"

#define SKIP 77

static const char expected[] =
	"table inet sbx {\n"
	"	chain caught {\n"
	"		meta mark 0x73627801 accept\n"
	"		meta nfproto ipv4 udp dport 53 dnat ip to 198.18.0.1:53\n"
	"		meta nfproto ipv4 tcp dport 53 dnat ip to 198.18.0.1:53\n"
	"		meta nfproto ipv6 udp dport 53 dnat ip6 to [fd5b:7862:19d3:1::1]:53\n"
	"		meta nfproto ipv6 tcp dport 53 dnat ip6 to [fd5b:7862:19d3:1::1]:53\n"
	"		meta nfproto ipv4 meta l4proto tcp dnat ip to 198.18.0.1:15001\n"
	"		meta nfproto ipv6 meta l4proto tcp dnat ip6 to "
	"[fd5b:7862:19d3:1::1]:15001\n"
	"	}\n"
	"\n"
	"	chain catch_own {\n"
	"		type nat hook output priority -110; policy accept;\n"
	"		oifname \"eth0\" goto caught\n"
	"	}\n"
	"\n"
	"	chain catch_containers {\n"
	"		type nat hook prerouting priority -110; policy accept;\n"
	"		fib daddr oifname \"eth0\" goto caught\n"
	"	}\n"
	"\n"
	"	chain refused {\n"
	"		meta l4proto tcp reject with tcp reset\n"
	"		reject with icmpx admin-prohibited\n"
	"	}\n"
	"\n"
	"	chain refuse_own {\n"
	"		type filter hook output priority -10; policy accept;\n"
	"		ip daddr 198.18.0.1 accept\n"
	"		ip6 daddr fd5b:7862:19d3:1::1 accept\n"
	"		oifname \"eth0\" goto refused\n"
	"	}\n"
	"\n"
	"	chain refuse_containers {\n"
	"		type filter hook forward priority -10; policy accept;\n"
	"		oifname \"eth0\" goto refused\n"
	"	}\n"
	"}\n";

static void rules_are_what_nft_reads(void **state)
{
	static char text[8192];
	struct err err;
	size_t n;
	FILE *f;

	/* Twice: the second replaces the first. */
	for (int i = 0; i < 2; i++)
		if (net_rules_apply(false, &err) < 0)
			fail_msg("%s", err.text);
	f = popen("nft -y list ruleset", "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	assert_int_equal(pclose(f), 0);
	assert_string_equal(text, expected);
}

/* Kernels without queues have the other rules; these are read back in net_vm_test.c. */
static void rules_with_a_queue_are_taken_or_not_known(void **state)
{
	struct err err;
	int r = net_rules_apply(true, &err);

	if (r < 0 && r != -ENOENT && r != -EOPNOTSUPP)
		fail_msg("%s", err.text);
}

static bool become_root_of_a_namespace(void)
{
	char map[32];
	int n = snprintf(map, sizeof(map), "0 %u 1", geteuid()), fd;
	bool done;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, map, (size_t)n) == n;
	(void)close(fd);
	return done;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rules_are_what_nft_reads),
		cmocka_unit_test(rules_with_a_queue_are_taken_or_not_known)};

	if (!become_root_of_a_namespace()) {
		printf("no namespaces of our own here: skipped\n");
		return SKIP;
	}
	if (system("command -v nft >/dev/null") != 0) {
		printf("no nft here: skipped\n");
		return SKIP;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
