/* SPDX-License-Identifier: Apache-2.0 */
/* What the user sees of a link, and links that are not shown at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/client/api/api.h"
#include "src/sbx/open/link.h"

static struct link l;

static json_t *hold_of(const char *kind, const char *url)
{
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:[s],s:I}", "id", "K7QD", "sandbox", "demo", "kind",
		kind, "state", "open", "digest", "00ff", "effects", url, "expires_at",
		(json_int_t)clock_wall_ms() + 60000);
}

static char *text_of(const char *url, enum link_policy policy)
{
	json_t *hold = hold_of("link", url);
	struct problem p = {0};
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	assert_int_equal(link_read(hold, &l, &p), 0);
	l.policy = policy;
	f = open_memstream(&text, &n);
	assert_non_null(f);
	link_print(f, &l);
	(void)fclose(f);
	json_decref(hold);
	return text;
}

static void the_whole_link_is_printed(void **state)
{
	static char url[URL_MAX + 1] = "https://a.example/";
	char *text;

	memset(url + strlen(url), 'x', URL_MAX - 8 - strlen(url));
	strcat(url, "?last=1");
	text = text_of(url, LINK_ALLOWED);
	assert_non_null(strstr(text, url));
	assert_non_null(strstr(text, "host      a.example\n"));
	assert_non_null(strstr(text, "allows the sandbox to connect to a.example:443\n"));
	assert_null(strstr(text, "NOT"));
	free(text);
}

static void what_a_user_should_know_is_printed(void **state)
{
	char *text = text_of("http://xn--pple-43d.example/", LINK_DENIED);

	assert_non_null(strstr(text, "punycode"));
	assert_non_null(strstr(text, "not encrypted"));
	assert_non_null(
		strstr(text, "does NOT allow the sandbox to connect to xn--pple-43d.example:80"));
	free(text);
}

static void must_not_read(const char *kind, const char *url)
{
	json_t *hold = hold_of(kind, url);
	struct problem p = {0};

	assert_int_equal(link_read(hold, &l, &p), -EINVAL);
	json_decref(hold);
}

static void links_that_no_keeper_sends_are_refused(void **state)
{
	must_not_read("request", "https://a.example/");
	must_not_read("link", "https://127.0.0.1/");
	must_not_read("link", "HTTPS://a.example/");
	must_not_read("link", "file:///etc/passwd");
	must_not_read("link", "https://a.example/\x1b[2J");
	must_not_read("link", "");
}

/* ---- its address ---- */

static struct addrinfo resolved;
static int resolve_status;

int __wrap_getaddrinfo(
	const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret);
void __wrap_freeaddrinfo(struct addrinfo *list);

int __wrap_getaddrinfo(
	const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	*ret = &resolved;
	return resolve_status;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
}

static int check_address(const char *text)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = {0};
	json_t *hold = hold_of("link", "https://a.example/");
	struct problem p = {0};
	int r;

	resolved.ai_family = a.sa.sa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	resolved.ai_addr = &a.sa;
	assert_int_equal(
		inet_pton(a.sa.sa_family, text,
			strchr(text, ':') ? (void *)&a.v6.sin6_addr : (void *)&a.v4.sin_addr),
		1);
	assert_int_equal(link_read(hold, &l, &p), 0);
	r = link_check_address(&l, &p.err);
	json_decref(hold);
	return r;
}

static void names_of_private_addresses_are_not_opened(void **state)
{
	static const char *const private[] = {"127.0.0.1", "10.1.2.3", "192.168.0.1",
		"169.254.169.254", "0.0.0.0", "::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1"};

	for (size_t i = 0; i < ARRAY_LEN(private); i++)
		assert_int_equal(check_address(private[i]), -EPERM);
	assert_int_equal(check_address("93.184.216.34"), 0);
	assert_int_equal(check_address("2606:4700::1111"), 0);
	resolve_status = EAI_NONAME; /* the browser may use a proxy that resolves it */
	assert_int_equal(check_address("127.0.0.1"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_link_is_printed),
		cmocka_unit_test(what_a_user_should_know_is_printed),
		cmocka_unit_test(links_that_no_keeper_sends_are_refused),
		cmocka_unit_test(names_of_private_addresses_are_not_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
