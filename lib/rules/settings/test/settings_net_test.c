/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rules/settings/settings_net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

static void pins_are_canonical(void **state)
{
	static const char text[] = "network.connect-to = Git.Example.com:443=127.0.0.1:8443, "
				   "[2001:DB8::1]:22=[::1]:2222 ,10.0.0.1:80=10.0.0.2:81\n"
				   "network.proxy = http://PROXY.example:3128/\n";
	AUTO_SETTINGS struct settings s = {0};
	struct egress_config c;
	struct err err = {0};

	if (settings_parse(slice_from_str(text), "f", &s, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(settings_net_config(&s, &c, &err), 0);
	assert_int_equal(c.n_pins, 3);
	assert_string_equal(c.pins[0].host, "git.example.com");
	assert_int_equal(c.pins[0].port, 443);
	assert_string_equal(c.pins[0].addr, "127.0.0.1");
	assert_int_equal(c.pins[0].addr_port, 8443);
	assert_string_equal(c.pins[1].host, "2001:db8::1");
	assert_string_equal(c.pins[1].addr, "::1");
	assert_int_equal(c.pins[1].addr_port, 2222);
	assert_string_equal(c.pins[2].host, "10.0.0.1");
	assert_string_equal(c.proxy_host, "proxy.example");
	assert_int_equal(c.proxy_port, 3128);
}

static void hosts_without_the_proxy(void **state)
{
	static const char text[] = "network.proxy = socks5://CORP\\a@b@proxy.example:1080\n"
				   "network.no-proxy = Git.Example, .corp.example:8443 ,10.1.2.3/8,"
				   "[2001:db8::1]:22,192.0.2.1\n";
	AUTO_SETTINGS struct settings s = {0};
	struct egress_config c;

	assert_int_equal(settings_parse(slice_from_str(text), "f", &s, NULL), 0);
	assert_int_equal(settings_net_config(&s, &c, NULL), 0);
	assert_int_equal(c.proxy, EGRESS_PROXY_SOCKS);
	assert_string_equal(c.proxy_host, "proxy.example");
	assert_string_equal(c.proxy_user, "CORP\\a@b");
	assert_int_equal(c.n_direct, 5);
	assert_string_equal(c.direct[0].host, "git.example");
	assert_false(c.direct[0].is_below);
	assert_string_equal(c.direct[1].host, "corp.example");
	assert_true(c.direct[1].is_below && c.direct[1].port == 8443);
	assert_memory_equal(c.direct[2].addr, "\x0a\0\0\0", 4);
	assert_int_equal(c.direct[2].prefix, 8);
	assert_true(c.direct[3].n == 16 && c.direct[3].prefix == 128 && c.direct[3].port == 22);
	assert_true(c.direct[4].n == 4 && c.direct[4].prefix == 32 && !c.direct[4].host[0]);
}

static void nothing_set_is_nothing(void **state)
{
	struct settings s = {0};
	struct egress_config c;

	memset(&c, 0xff, sizeof(c));
	assert_int_equal(settings_net_config(&s, &c, NULL), 0);
	assert_int_equal(c.n_pins, 0);
	assert_string_equal(c.proxy_host, "");
	assert_int_equal(c.n_direct, 0);
	assert_int_equal(c.proxy_port, 0);
}

static void wrong_values_are_named(void **state)
{
	static const struct {
		enum settings_id id;
		const char *value, *says;
	} rows[] = {
		{SETTINGS_NETWORK_CONNECT_TO, "a.example:443",
			"entry 'a.example:443': expected "
			"HOST"},
		{SETTINGS_NETWORK_CONNECT_TO, "a.example=1.2.3.4:5", "missing port"},
		{SETTINGS_NETWORK_CONNECT_TO, "a.example:1=1.2.3.4", "the address has no port"},
		{SETTINGS_NETWORK_CONNECT_TO, "a.example:1=b.example:2",
			"invalid IP address after '='"},
		{SETTINGS_NETWORK_CONNECT_TO, "a.example:1=0x7f.1:2",
			"invalid IP address after '='"},
		{SETTINGS_NETWORK_CONNECT_TO, "a:1=1.2.3.4:5,", "entry '': expected HOST"},
		{SETTINGS_NETWORK_CONNECT_TO, "a:1=1.2.3.4:5,,b:1=1.2.3.4:5", "entry ''"},
		{SETTINGS_NETWORK_CONNECT_TO, "a:1=1.2.3.4:5,A.:1=1.2.3.4:6",
			"'A.:1=1.2.3.4:6': "
			"duplicate host and port"},
		{SETTINGS_NETWORK_CONNECT_TO, "a:70000=1.2.3.4:5", "entry 'a:70000"},
		{SETTINGS_NETWORK_CONNECT_TO, "*.a:1=1.2.3.4:5", "entry '*.a"},
		{SETTINGS_NETWORK_CONNECT_TO, "a\nvm.cpus:1=1.2.3.4:5", "entry 'a"},
		{SETTINGS_NETWORK_PROXY, "proxy.example:3128", "must be http://"},
		{SETTINGS_NETWORK_PROXY, "https://proxy.example:3128", "TLS to the proxy is not"},
		{SETTINGS_NETWORK_PROXY, "socks5h://proxy.example:1", "the proxy resolves"},
		{SETTINGS_NETWORK_PROXY, "socks4://proxy.example:1", "or socks5://"},
		{SETTINGS_NETWORK_PROXY, "http://proxy.example/proxy.pac", "PAC files"},
		{SETTINGS_NETWORK_PROXY, "socks5://proxy.example", "missing port"},
		{SETTINGS_NETWORK_NO_PROXY, "a.example,,b.example", "entry ''"},
		{SETTINGS_NETWORK_NO_PROXY, "*.example", "use .DOMAIN"},
		{SETTINGS_NETWORK_NO_PROXY, "*", "use .DOMAIN"},
		{SETTINGS_NETWORK_NO_PROXY, "10.0.0.0/33", "invalid prefix"},
		{SETTINGS_NETWORK_NO_PROXY, "10.0.0.0/", "invalid prefix"},
		{SETTINGS_NETWORK_NO_PROXY, "10.0.0.0/0008", "invalid prefix"},
		{SETTINGS_NETWORK_NO_PROXY, "corp.example/8", "invalid IP address"},
		{SETTINGS_NETWORK_NO_PROXY, ".10.0.0.1", "no names below"},
		{SETTINGS_NETWORK_NO_PROXY, "http://a.example", "entry 'http"},
		{SETTINGS_NETWORK_NO_PROXY, "a.example:0", "entry 'a.example:0'"},
		{SETTINGS_NETWORK_PROXY, "http://proxy.example", "missing port"},
		{SETTINGS_NETWORK_PROXY, "http://u:p@proxy.example:1", "cannot have a password"},
		{SETTINGS_NETWORK_PROXY, "http://@proxy.example:1", "1 to 127 bytes"},
		{SETTINGS_NETWORK_PROXY, "http://a%20b@proxy.example:1", "printable ASCII"},
		{SETTINGS_NETWORK_PROXY, "socks5://a/b@proxy.example:1", "printable ASCII"},
		{SETTINGS_NETWORK_PROXY, "http://proxy.example:1/x", "network.proxy"},
		{SETTINGS_NETWORK_PROXY, "http://", "network.proxy"},
		{SETTINGS_NETWORK_EXTRA_CA, "ca.pem", "absolute path"},
		{SETTINGS_NETWORK_EXTRA_CA, "/a\nvm.cpus = 4", "control character"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};

		if (settings_check_value(rows[i].id, rows[i].value, &err) >= 0)
			fail_msg("accepted: %s", rows[i].value);
		if (!strstr(err.text, rows[i].says))
			fail_msg("'%s' lacks '%s'", err.text, rows[i].says);
	}
}

static void there_is_a_limit_of_entries(void **state)
{
	char value[8192] = "";

	for (unsigned i = 0; i <= EGRESS_MAX_PINS; i++) {
		assert_int_equal(settings_check_value(SETTINGS_NETWORK_CONNECT_TO, value, NULL), 0);
		(void)snprintf(value + strlen(value), sizeof(value) - strlen(value),
			"%sh%u.example:443=127.0.0.1:1%u", i ? "," : "", i, i);
	}
	assert_int_equal(settings_check_value(SETTINGS_NETWORK_CONNECT_TO, value, NULL), -E2BIG);
}

/* `set` requires certificates; a file that goes away later must not break all settings. */
static void extra_ca_is_copied_when_set(void **state)
{
	char dir[] = "/tmp/settings_net_test.XXXXXX";
	AUTO_FREE char *ca = NULL, *rm = NULL, *text = NULL, *again = NULL, *copy = NULL;
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};
	size_t n;

	assert_non_null(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
	copy = settings_net_ca_copy();
	ca = xasprintf("%s/ca.pem", dir);
	assert_int_equal(settings_change(SETTINGS_NETWORK_EXTRA_CA, ca, &err), -ENOENT);
	assert_int_equal(file_save(ca, slice_from_str("no certificate\n"), NULL), 0);
	assert_int_equal(settings_change(SETTINGS_NETWORK_EXTRA_CA, ca, &err), -EINVAL);
	assert_int_equal(file_save(ca, slice_from_str("-----BEGIN CERTIFICATE-----\n"), NULL), 0);
	assert_int_equal(settings_change(SETTINGS_NETWORK_EXTRA_CA, ca, &err), 0);
	/* A guest can replace the file later: what was set is what counts. */
	assert_int_equal(unlink(ca), 0);
	assert_int_equal(mkfifo(ca, 0600), 0);
	assert_int_equal(settings_load(&s, &err), 0);
	assert_string_equal(settings_get(&s, SETTINGS_NETWORK_EXTRA_CA), ca);
	assert_int_equal(settings_net_load_ca(ca, &text, &n, &err), 0);
	assert_string_equal(text, "-----BEGIN CERTIFICATE-----\n");
	assert_int_equal(n, strlen(text));
	/* The copy of one file is not taken for another that somebody wrote into settings.conf. */
	assert_int_equal(settings_net_load_ca("/other.pem", &again, &n, &err), -ESTALE);
	assert_non_null(strstr(err.text, "sbx settings set network.extra-ca /other.pem"));
	(void)alarm(5);
	assert_int_equal(settings_change(SETTINGS_NETWORK_EXTRA_CA, ca, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is not a regular file"));
	(void)alarm(0);
	assert_int_equal(settings_net_load_ca(ca, &again, &n, &err), 0);
	assert_int_equal(settings_change(SETTINGS_NETWORK_EXTRA_CA, NULL, &err), 0);
	assert_int_equal(access(copy, F_OK), -1);
	rm = xasprintf("rm -r %s", dir);
	assert_int_equal(system(rm), 0);
}

/* The guest exchanges the file after it was checked. */
static void extra_ca_is_read_from_the_file_that_was_checked(void **state)
{
	char dir[] = "/tmp/settings_net_test.XXXXXX";
	AUTO_FREE char *ca = NULL, *rm = NULL, *text = NULL;
	AUTO_CLOSE int fd = -1;
	struct err err = {0};
	size_t n;

	assert_non_null(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
	ca = xasprintf("%s/ca.pem", dir);
	assert_int_equal(settings_net_open_ca(ca, &err), -ENOENT);
	assert_int_equal(file_save(ca, slice_from_str("-----BEGIN CERTIFICATE-----\n"), NULL), 0);
	fd = settings_net_open_ca(ca, &err);
	assert_true(fd >= 0);
	assert_int_equal(file_save(ca, slice_from_str("-----BEGIN CERTIFICATE-----\nb"), NULL), 0);
	assert_int_equal(settings_change_with(SETTINGS_NETWORK_EXTRA_CA, ca, fd, &err), 0);
	assert_int_equal(settings_net_load_ca(ca, &text, &n, &err), 0);
	assert_string_equal(text, "-----BEGIN CERTIFICATE-----\n");
	rm = xasprintf("rm -r %s", dir);
	assert_int_equal(system(rm), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pins_are_canonical),
		cmocka_unit_test(hosts_without_the_proxy),
		cmocka_unit_test(nothing_set_is_nothing),
		cmocka_unit_test(wrong_values_are_named),
		cmocka_unit_test(there_is_a_limit_of_entries),
		cmocka_unit_test(extra_ca_is_copied_when_set),
		cmocka_unit_test(extra_ca_is_read_from_the_file_that_was_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
