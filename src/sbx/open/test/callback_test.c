/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of browsers, pages and programs that are not the callback of a login; and responses of a
 * guest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/fs/fd.h"
#include "src/sbx/open/callback.h"

#define LINK                                                         \
	"https://login.example/authorize?redirect_uri=http%3A%2F%2F" \
	"localhost%3A54545%2Fcallback&state=a%2Bb"
#define HOST "Host: localhost:54545\r\n"
#define GOOD "/callback?code=1&state=a%2Bb"

static struct callback cb;
static char target[CALLBACK_HEAD];
static const char *why;

static int up(void **state)
{
	static struct url u;
	struct err err = {0};

	assert_int_equal(url_parse(slice_from_str(LINK), &u, &err), 0);
	assert_int_equal(callback_of(&u, &cb, &err), 1);
	return 0;
}

static int judge(const char *request)
{
	return callback_read(&cb, slice_from_str(request), target, &why);
}

static void the_callback_is_found_however_it_comes(void **state)
{
	static const char *const requests[] = {"GET " GOOD " HTTP/1.1\r\n" HOST "\r\n",
		"GET " GOOD " HTTP/1.1\r\nHOST:  127.0.0.1:54545 \r\nCookie: a=b\r\n"
		"Authorization: Basic x\r\nSec-Fetch-Mode: navigate\r\n"
		"Sec-Fetch-Dest: document\r\nSec-Fetch-Site: cross-site\r\n\r\n",
		"GET " GOOD " HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"};

	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		size_t n = strlen(requests[i]);

		for (size_t cut = 0; cut < n; cut++)
			assert_int_equal(
				callback_read(&cb, slice_of(requests[i], cut), target, &why), 0);
		if (judge(requests[i]) != 200)
			fail_msg("%s: %s", requests[i], why);
		assert_string_equal(target, GOOD);
	}
}

static void every_other_request_is_refused(void **state)
{
	static const struct {
		int status;
		const char *request;
	} rows[] = {
		/* other methods, paths and forms */
		{405, "POST " GOOD " HTTP/1.1\r\n" HOST "\r\n"},
		{405, "HEAD " GOOD " HTTP/1.1\r\n" HOST "\r\n"},
		{405, "OPTIONS " GOOD " HTTP/1.1\r\n" HOST "\r\n"},
		{405, "get " GOOD " HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET / HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET /callback/?state=a%2Bb HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET /callback/../callback?state=a%2Bb HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET //callback?state=a%2Bb HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET /%63allback?state=a%2Bb HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET /Callback?state=a%2Bb HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET http://localhost:54545" GOOD " HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET /callback#x?state=a%2Bb HTTP/1.1\r\n" HOST "\r\n"},
		{404, "GET /callback?state=a%2Bb&x=\\ HTTP/1.1\r\n" HOST "\r\n"},
		{400, "GET " GOOD " HTTP/1.0\r\n" HOST "\r\n"},
		{400, "GET " GOOD "\r\n" HOST "\r\n"},
		{400, "GET  " GOOD " HTTP/1.1\r\n" HOST "\r\n"},
		{400, "GET " GOOD " x HTTP/1.1\r\n" HOST "\r\n"},
		{400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		/* DNS rebinding: another Host */
		{421, "GET " GOOD " HTTP/1.1\r\n\r\n"},
		{421, "GET " GOOD " HTTP/1.1\r\nHost: evil.example:54545\r\n\r\n"},
		{421, "GET " GOOD " HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{421, "GET " GOOD " HTTP/1.1\r\nHost: localhost:54546\r\n\r\n"},
		{421, "GET " GOOD " HTTP/1.1\r\nHost: localhost.evil.example:54545\r\n\r\n"},
		{421, "GET " GOOD " HTTP/1.1\r\n" HOST "Host: evil.example\r\n\r\n"},
		/* a page of the browser, without the user */
		{403, "GET " GOOD " HTTP/1.1\r\n" HOST "Origin: https://evil.example"
		      "\r\n\r\n"},
		{403, "GET " GOOD " HTTP/1.1\r\n" HOST "Sec-Fetch-Mode: no-cors\r\n\r\n"},
		{403, "GET " GOOD " HTTP/1.1\r\n" HOST "Sec-Fetch-Mode: cors\r\n\r\n"},
		{403, "GET " GOOD " HTTP/1.1\r\n" HOST "Sec-Fetch-Dest: image\r\n\r\n"},
		{403, "GET " GOOD " HTTP/1.1\r\n" HOST "sec-fetch-dest: iframe\r\n\r\n"},
		/* another login */
		{403, "GET /callback?code=1 HTTP/1.1\r\n" HOST "\r\n"},
		{403, "GET /callback?code=1&state=other HTTP/1.1\r\n" HOST "\r\n"},
		{403, "GET /callback?state=a%2Bb&state=a%2Bb HTTP/1.1\r\n" HOST "\r\n"},
		{403, "GET /callback?state=a%2Bb%00 HTTP/1.1\r\n" HOST "\r\n"},
		{403, "GET /callback?state= HTTP/1.1\r\n" HOST "\r\n"},
		/* a body, and lines that are read in two ways */
		{400, "GET " GOOD " HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"},
		{400, "GET " GOOD " HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"},
		{400, "GET " GOOD " HTTP/1.1\r\n" HOST " folded\r\n\r\n"},
		{400, "GET " GOOD " HTTP/1.1\r\n" HOST "X : y\r\n\r\n"},
		{400, "GET " GOOD " HTTP/1.1\r\n" HOST "X\r\n\r\n"},
		{400, "GET " GOOD " HTTP/1.1\r\n" HOST "X: a\nHost: b\r\n\r\n"},
		{400, "GET " GOOD " HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (judge(rows[i].request) != rows[i].status)
			fail_msg("%d: %s%s", judge(rows[i].request), rows[i].request, why);
}

static void a_long_head_is_refused(void **state)
{
	static char head[CALLBACK_HEAD + 1];

	(void)snprintf(head, sizeof(head), "%s", "GET " GOOD "&x=");
	memset(head + strlen(head), 'x', CALLBACK_HEAD - strlen(head));
	assert_int_equal(callback_read(&cb, slice_of(head, CALLBACK_HEAD), target, &why), 431);
}

/* ---- the guest ---- */

static int respond(const char *response, char next[URL_MAX + 1])
{
	return callback_response(&cb, slice_from_str(response), next);
}

static void must_lead(const char *location, const char *expected)
{
	char text[512], next[URL_MAX + 1];

	(void)snprintf(text, sizeof(text),
		"HTTP/1.1 302 Found\r\nSet-Cookie: a=b\r\nLocation: %s\r\n\r\n", location);
	assert_int_equal(respond(text, next), 302);
	assert_string_equal(next, expected);
}

static void only_redirections_to_the_same_port_are_followed(void **state)
{
	must_lead("/success?x=1", "/success?x=1");
	must_lead("http://localhost:54545/success", "/success");
	must_lead("http://127.0.0.1:54545/success", "/success");
	must_lead("http://localhost:54546/success", "");
	must_lead("http://localhost:545450/success", "");
	must_lead("http://localhost:54545@evil.example/", "");
	must_lead("https://login.example/done", "");
	must_lead("//evil.example/", "");
	must_lead("/a b", "");
	must_lead("", "");
	must_lead("file:///etc/passwd", "");
}

static void responses_that_are_not_http_are_refused(void **state)
{
	static char next[URL_MAX + 1], flood[CALLBACK_HEAD];

	assert_int_equal(respond("HTTP/1.1 200 OK\r\nLocation: /x\r\n\r\n", next), 200);
	assert_string_equal(next, "");
	assert_int_equal(respond("HTTP/1.1 200 OK\r\n", next), 0);
	assert_int_equal(respond("HTTP/1.1 2x0 OK\r\n\r\n", next), -EBADMSG);
	assert_int_equal(respond("HTTP/2 200\r\n\r\n", next), -EBADMSG);
	assert_int_equal(respond("\r\n\r\n", next), -EBADMSG);
	assert_int_equal(respond("HTTP/1.1 099 OK\r\n\r\n", next), -EBADMSG);
	assert_int_equal(respond("HTTP/1.1 302 x\r\nLocation: /a\n\r\n\r\n", next), -EBADMSG);
	memset(flood, 'x', sizeof(flood));
	assert_int_equal(callback_response(&cb, slice_of(flood, sizeof(flood)), next), -EBADMSG);
}

static void a_port_in_use_is_an_error(void **state)
{
	struct err err = {0};
	AUTO_CLOSE int fd = callback_listen(&cb, &err);

	assert_true(fd >= 0);
	assert_int_equal(callback_listen(&cb, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "54545"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_callback_is_found_however_it_comes),
		cmocka_unit_test(every_other_request_is_refused),
		cmocka_unit_test(a_long_head_is_refused),
		cmocka_unit_test(only_redirections_to_the_same_port_are_followed),
		cmocka_unit_test(responses_that_are_not_http_are_refused),
		cmocka_unit_test(a_port_in_use_is_an_error),
	};

	return cmocka_run_group_tests(tests, up, NULL);
}
