/* SPDX-License-Identifier: Apache-2.0 */
#include "selftest.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "calls.h"
#include "lib/os/jail/selftest.h"

static const char pack_text[] = "api 1\n"
				"service test\n"
				"about a test\n"
				"host api.test:443\n"
				"object all all\n"
				"graphql /graphql\n"
				"op write thing.create mutation createThing on all\n"
				"end\n";

static void count_bytes(void *arg, struct slice bytes)
{
	*(size_t *)arg += bytes.n;
}

/* A request with one mutation, and its refusal. */
static long try_work(int fd)
{
	static struct pack_effects effects;
	struct http_header type = {
		slice_from_str("content-type"), slice_from_str("application/json")};
	const struct http_headers headers = {.list = &type, .n = 1, .max = 1};
	const struct pack_request req = {.method = slice_from_str("POST"),
		.path = slice_from_str("/graphql"),
		.headers = &headers,
		.body = slice_from_str("{\"query\": \"mutation {createThing {id}}\"}"),
		.has_body = true};
	struct pack pack = {0};
	struct err err = {0};
	char preview[CLERK_MAX_PREVIEW + 1];
	uint8_t buf[CALLS_RECORD];
	size_t n;

	if (pack_parse_calls(slice_from_str(pack_text), "test", &pack, &err) < 0)
		return -1;
	pack_match_all(&pack, &req, &effects);
	n = effects.n == 1 && effects.v[0].row ? calls_record(&effects.v[0], buf) : 0;
	calls_preview(&effects, preview);
	calls_refusal(preview, "refused", count_bytes, &n);
	pack_done(&pack);
	return n > 64 && write(fd, "x", 1) == 1 ? 0 : -1;
}

int calls_selftest(void)
{
	static const struct jail_selftest_probe own[] = {
		{"create a socket pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM}},
		{"set socket options", SYS_setsockopt,
			{JAIL_SELFTEST_FD, SOL_SOCKET, SO_KEEPALIVE}},
		{"accept", SYS_accept4, {JAIL_SELFTEST_FD}},
		{0},
	};
	const struct jail_selftest t = {.profile = JAIL_CLERK,
		.tables = {jail_selftest_files, jail_selftest_sockets, own, jail_selftest_any},
		.work = try_work};

	return jail_selftest_run(&t);
}
