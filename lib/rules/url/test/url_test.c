/* SPDX-License-Identifier: Apache-2.0 */
/* Which links are refused, and what is left of the others; which callbacks are received. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/rules/url/url.h"

static struct url url;
static struct err err;

static void must_be(const char *text, const char *expected)
{
	if (url_parse(slice_from_str(text), &url, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(url.text, expected);
	assert_int_equal(url.n, strlen(expected));
	assert_int_equal(url.text[url.path], '/');
}

static void must_refuse(const char *text, const char *why)
{
	err.text[0] = '\0';
	if (url_parse(slice_from_str(text), &url, &err) == 0)
		fail_msg("accepted: %s", text);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void links_have_one_form(void **state)
{
	must_be("https://example.com", "https://example.com/");
	must_be("HTTPS://EXAMPLE.com:443/A?b#c", "https://example.com/A?b#c");
	must_be("http://example.com:80/", "http://example.com/");
	must_be("http://example.com:443/", "http://example.com:443/");
	must_be("https://"
		"example.com.?q=1",
		"https://"
		"example.com/?q=1");
	must_be("https://"
		"example.com#x",
		"https://"
		"example.com/#x");
	must_be("https://"
		"8.8.8.8/",
		"https://"
		"8.8.8.8/");
	must_be("https://[2606:4700:0:0::1111]/", "https://[2606:4700::1111]/");
	must_be("https://a.example/x?u=https://b.example/@c&e=%C3%A9",
		"https://a.example/x?u=https://b.example/@c&e=%C3%A9");
}

static void only_web_links(void **state)
{
	must_refuse("", "empty");
	must_refuse("example.com", "http://");
	must_refuse("file:///etc/passwd", "http://");
	must_refuse("javascript:alert(1)", "http://");
	must_refuse("data:text/html,x", "http://");
	must_refuse("ftp://example.com/", "http://");
	must_refuse("https:/example.com/", "http://");
	must_refuse("view-source:https://example.com/", "http://");
	must_refuse("-new-window", "http://");
	must_refuse("//example.com/", "http://");
}

static void bytes_that_a_reader_would_not_see(void **state)
{
	must_refuse("https://example.com/\x1b[2J", "0x1b");
	must_refuse("https://example.com/\nhttps://b.example/", "0x0a");
	must_refuse("https://example.com/a b", "0x20");
	must_refuse("https://example.com/\xe2\x80\xae", "0xe2");
	must_refuse("https://"
		    "ex\xd0\xb0mple.com/",
		"0xd0");
	must_refuse("https://example.com\\@b.example/", "0x5c");
	must_refuse("https://example.com/\"", "0x22");
	must_refuse("https://example.com/`id`", "0x60");
	must_refuse("https://example.com/$(id)|x", "0x7c");
	must_refuse("https://example.com/%4", "hexadecimal");
	must_refuse("https://example.com/%zz", "hexadecimal");
}

static void hosts_that_mislead(void **state)
{
	must_refuse("https://bank.example@evil.example/", "user name");
	must_refuse("https://user:pw@example.com/", "user name");
	must_refuse("https://@example.com/", "user name");
	must_refuse("https:///path", "empty");
	must_refuse("https://example.com:/", "port");
	must_refuse("https://example.com:0/", "port");
	must_refuse("https://example.com:65536/", "port");
	must_refuse("https://"
		    "exam%70le.com/",
		"0x25");
	must_refuse("https://"
		    "a..example/",
		"label");
	must_refuse("https://2001:db8::1/", "brackets");
	must_be("https://xn--pple-43d.example/", "https://xn--pple-43d.example/");
	assert_true(url_has_punycode(&url));
	must_be("https://a.xn--pple-43d.example/", "https://a.xn--pple-43d.example/");
	assert_true(url_has_punycode(&url));
	must_be("https://notxn--a.example/", "https://notxn--a.example/");
	assert_false(url_has_punycode(&url));
}

static void no_local_hosts(void **state)
{
	static const char *const hosts[] = {"127.0.0.1", "127.1", "2130706433", "0x7f.1",
		"0177.0.0.1", "0", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255", "198.18.0.1",
		"192.0.2.1", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]",
		"[64:ff9b::a00:1]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[2002:7f00:1::]"};
	static const char *const names[] = {"localhost", "LOCALHOST.", "a.localhost", "router",
		"printer.local", "host.docker.internal", "gateway.docker.internal",
		"metadata.google.internal", "nas.lan", "x.home.arpa", "wiki.corp"};

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		AUTO_FREE char *text = xasprintf("http://%s/", hosts[i]);

		must_refuse(text, "address");
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *text = xasprintf("https://%s:8443/", names[i]);

		must_refuse(text, "local network");
	}
}

static void long_links_are_refused_whole(void **state)
{
	static char text[URL_MAX + 2] = "https://example.com/";

	memset(text + strlen(text), 'a', URL_MAX - strlen(text));
	must_be(text, text);
	text[URL_MAX] = 'a';
	must_refuse(text, "4000");
	(void)snprintf(text, sizeof(text),
		"https://example.com"
		"?");
	memset(text + strlen(text), 'a', URL_MAX - strlen(text));
	must_refuse(text, "4000"); /* a '/' is added */
}

/* ---- callbacks ---- */

static struct url_callback cb;

static int callback(const char *query)
{
	AUTO_FREE char *text = xasprintf("https://a.example/authorize?%s", query);

	err.text[0] = '\0';
	assert_int_equal(url_parse(slice_from_str(text), &url, &err), 0);
	return url_callback(&url, &cb, &err);
}

static void must_call(const char *query, uint16_t port, const char *path)
{
	if (callback(query) != 1)
		fail_msg("%s: %s", query, err.text);
	assert_int_equal(cb.port, port);
	assert_string_equal(cb.path, path);
}

static void must_not_call(const char *uri, const char *why)
{
	AUTO_FREE char *query = xasprintf("a=b&redirect_uri=%s", uri);

	if (callback(query) >= 0)
		fail_msg("accepted: %s", uri);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", uri, err.text);
}

static void a_callback_is_received_on_the_loopback(void **state)
{
	must_call("redirect_uri=http%3A%2F%2Flocalhost%3A54545%2Fcallback", 54545, "/callback");
	must_call("x=1&redirect_uri=http://127.0.0.1:1455/auth/callback&y", 1455, "/auth/callback");
	must_call("redirect_uri=http%3a%2f%2flocalhost%3a1024", 1024, "/");
	must_call("redirect_uri=http%3a%2f%2flocalhost%3a8085/oauth2callback/", 8085,
		"/oauth2callback/");
}

static void other_links_have_none(void **state)
{
	assert_int_equal(callback("a=b"), 0);
	assert_int_equal(callback("xredirect_uri=http://localhost:2000/"), 0);
	assert_int_equal(callback("redirect_uri=https%3A%2F%2Fb.example%2Fx"), 0);
	assert_int_equal(callback("redirect_uri=urn:ietf:wg:oauth:2.0:oob"), 0);
	assert_int_equal(callback("a=b#redirect_uri=http://localhost:2000/"), 0);
	assert_int_equal(callback(""), 0);
}

static void callbacks_that_are_refused(void **state)
{
	static const struct {
		const char *uri, *why;
	} rows[] = {
		{"http://"
		 "192.168.1.1:8080/",
			"not http://localhost"},
		{"http://[::1]:8080/", "not http://localhost"},
		{"http://127.0.0.2:8080/", "not http://localhost"},
		{"http://"
		 "localhost.:8080/",
			"not http://localhost"},
		{"http://localhost@b.example:8080/", "not http://localhost"},
		{"http://a:b@localhost:8080/", "not http://localhost"},
		{"https://localhost:8080/", "not http://localhost"},
		{"file://localhost:8080/", "not http://localhost"},
		{"http://localhost/", "not http://localhost"},
		{"http://localhost:/", "no valid port"},
		{"http://localhost:0/", "no valid port"},
		{"http://localhost:65536/", "no valid port"},
		{"http://localhost:080/", "no valid port"},
		{"http://localhost:80@b.example/", "no valid port"},
		{"http://localhost:80/", "below 1024"},
		{"http://localhost:1023/x", "below 1024"},
		{"http://localhost:2000/../x", "plain path"},
		{"http://localhost:2000/a/..", "plain path"},
		{"http://localhost:2000/a/./b", "plain path"},
		{"http://localhost:2000//a", "plain path"},
		{"http://localhost:2000/a?x=y", "plain path"},
		{"http://localhost:2000/a%3Fx", "plain path"},
		{"http://localhost:2000/a%23x", "plain path"},
		{"http://localhost:2000/a%20b", "plain path"},
		{"http://localhost:2000/%252e%252e/x", "plain path"},
		{"http://localhost:2000/a%0d%0aX:y", "plain URL"},
		{"http://localhost:2000/a%00", "plain URL"},
		{"http://localhost:2000/a&redirect_uri=http://localhost:2000/b", "more than one"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		must_not_call(rows[i].uri, rows[i].why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_have_one_form),
		cmocka_unit_test(only_web_links),
		cmocka_unit_test(bytes_that_a_reader_would_not_see),
		cmocka_unit_test(hosts_that_mislead),
		cmocka_unit_test(no_local_hosts),
		cmocka_unit_test(long_links_are_refused_whole),
		cmocka_unit_test(a_callback_is_received_on_the_loopback),
		cmocka_unit_test(other_links_have_none),
		cmocka_unit_test(callbacks_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
