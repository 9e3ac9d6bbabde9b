/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/hash/ticket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static struct ticket_request request(
	const char *method, const char *host, uint16_t port, const char *path, const char *query)
{
	return (struct ticket_request){.tls = true,
		.method = slice_from_str(method),
		.host = slice_from_str(host),
		.port = port,
		.path = slice_from_str(path),
		.has_query = query != NULL,
		.query = slice_from_str(query ? query : "")};
}

static struct ticket_request with_named(const char *named)
{
	struct ticket_request req = request("GET", "a.test", 443, "/x", NULL);

	req.named = slice_from_str(named);
	return req;
}

static void a_ticket_is_for_its_request_alone(void **state)
{
	struct ticket_request list[] = {request("GET", "a.test", 443, "/x", NULL),
		request("GET", "a.test", 443, "/x", ""), request("GET", "a.test", 443, "/x", "y"),
		request("GET", "a.test", 443, "/xy", NULL), request("GET", "a.test", 443, "/", "x"),
		request("POST", "a.test", 443, "/x", NULL),
		request("GE", "Ta.test", 443, "/x", NULL),
		request("GET", "a.test", 444, "/x", NULL),
		request("GET", "b.test", 443, "/x", NULL),
		request("GET", "a.tes", 443, "t/x", NULL),
		request("get", "a.test", 443, "/x", NULL),
		request("GET", "a.test", 443, "/X", NULL), request("GET", "a.test", 443, "", "/x"),
		with_named("x-a:1\n"), with_named("x-a:1\nx-b:\n"), with_named("x-b:\nx-a:1\n")};

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		struct ticket ticket;

		ticket_make(&list[i], &ticket);
		for (size_t j = 0; j < ARRAY_LEN(list); j++)
			assert_int_equal(ticket_is_for(&ticket, &list[j]), i == j);
		list[i].tls = false;
		assert_false(ticket_is_for(&ticket, &list[i]));
		list[i].tls = true;
	}
}

static void a_ticket_of_another_version_is_for_nothing(void **state)
{
	const struct ticket_request req = request("GET", "a.test", 443, "/x", NULL);
	struct ticket ticket;

	ticket_make(&req, &ticket);
	ticket.version++;
	assert_false(ticket_is_for(&ticket, &req));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ticket_is_for_its_request_alone),
		cmocka_unit_test(a_ticket_of_another_version_is_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
