/* SPDX-License-Identifier: Apache-2.0 */
/* A child process answers at the socket of sbxd, one request per connection. */
#include "lib/client/api/api.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/accel.h"
#include "lib/client/api/daemon.h"
#include "lib/client/api/out_place.h"
#include "lib/client/api/sandbox.h"
#include "lib/os/ipc/test/flight_rig.h"

static char *top;
static pid_t server;

static const char *const answers[][3] = {
	{"GET /v1/version ", "200", "{\"version\": \"" SBX_VERSION "\"}"},
	{"GET /v1/sandboxes/demo ", "200",
		"{\"name\": \"demo\", \"status\": \"running\", \"cpus\": 3}"},
	{"GET /v1/sandboxes/a%2Fb ", "404",
		"{\"error\": {\"code\": \"not-found\", \"message\": \"no sandbox named a/b\", "
		"\"hint\": \"sbx start SANDBOX\"}}"},
	{"GET /v1/busy ", "409", "{\"error\": {\"code\": \"busy\", \"message\": \"it starts\"}}"},
	{"GET /v1/text ", "200", "no JSON"},
	{"GET /v1/bare ", "500", ""},
};

static void answer_one(int fd)
{
	AUTO_FREE char *list =
		xasprintf("{\"sandboxes\": [{\"workspaces\": [{\"host\": \"%s/rw\"}, "
			  "{\"host\": \"%s/ro\", \"ro\": true}]}]}",
			top, top);
	const char *status = "200", *body = list;
	char request[1024] = "";
	size_t n = 0;

	/* the first byte comes alone when it has a descriptor */
	while (!strstr(request, "\r\n\r\n")) {
		ssize_t more = recv(fd, request + n, sizeof(request) - 1 - n, 0);

		if (more <= 0)
			return;
		n += (size_t)more;
	}
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		if (strncmp(request, answers[i][0], strlen(answers[i][0])) == 0)
			status = answers[i][1], body = answers[i][2];
	(void)dprintf(
		fd, "HTTP/1.1 %s x\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);
}

static void serve_calls(int listener)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		AUTO_CLOSE int fd = accept(listener, NULL, NULL);

		/* A client may have a second connection while the first is silent. */
		if (fd >= 0 && fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			answer_one(fd);
			_exit(0);
		}
	}
}

static int start_server(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	AUTO_CLOSE int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sbx/sbxd.sock", top);
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(listener, 9) < 0)
		return -1;
	server = fork();
	if (server == 0)
		serve_calls(listener);
	return server > 0 ? 0 : -1;
}

static int stop_server(void **state)
{
	return kill(server, SIGKILL) == 0 && waitpid(server, NULL, 0) == server ? 0 : -1;
}

static void without_sbxd_a_peek_starts_nothing(void **state)
{
	struct problem p = {0};

	assert_int_equal(api_peek("GET", "/v1/version", 1000, NULL, &p), -ECONNREFUSED);
	assert_string_equal(p.err.text, "sbxd is not running");
	assert_string_equal(p.hint, "sbx daemon start");
}

static void a_reply_is_json_with_defaults(void **state)
{
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};

	assert_int_equal(sandbox_get("demo", &s, &p), 0);
	assert_true(sandbox_is(s, "running") && !sandbox_is(s, "stopped"));
	assert_int_equal(api_int(s, "cpus"), 3);
	assert_int_equal(api_int(s, "name"), 0);
	assert_string_equal(api_str(s, "cpus"), "");
	assert_string_equal(api_str(s, "none"), "");
}

static void an_error_has_sentence_code_and_hint(void **state)
{
	static const struct {
		const char *path, *text;
		int r;
	} rows[] = {
		{"/v1/busy", "it starts", -EBUSY},
		{"/v1/text", "invalid response from sbxd: not JSON", -EPROTO},
		{"/v1/bare", "sbxd returned status 500", -EIO},
	};
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};

	assert_int_equal(sandbox_get("a/b", &s, &p), -ENOENT);
	assert_string_equal(p.err.text, "no sandbox named a/b");
	assert_string_equal(p.code, "not-found");
	assert_string_equal(p.hint, "sbx start a/b");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		p = (struct problem){0};
		assert_int_equal(api_call("GET", rows[i].path, NULL, 5000, NULL, &p), rows[i].r);
		assert_string_equal(p.err.text, rows[i].text);
	}
}

/* R10A6: the kernel counts descriptors that any process of the user has sent, and compares with the
 * limit of the sender. */
static void a_descriptor_is_passed_while_others_have_many_in_flight(void **state)
{
	struct problem p = {0};
	struct rlimit limit;
	int pair[2];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	flight_fill(pair);
	flight_limit(0);
	if (api_call_passing("GET", "/v1/version", NULL, STDERR_FILENO, 5000, NULL, &p) < 0)
		fail_msg("%s", p.err.text);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* A guest writes to rw. */
static void a_path_follows_no_link_of_a_guest(void **state)
{
	AUTO_OUT_PLACE struct out_place o = {.dir = -1};
	CLEANUP(cp_dest_done) struct cp_dest d = {0};
	AUTO_CLOSE int fd = -1;
	struct problem p = {0};

	assert_int_equal(out_place_find("rw/planted/x", &o, &p), -ELOOP);
	assert_string_equal(p.hint, "realpath rw/planted/x");
	assert_int_equal(out_place_open_source("rw/link", &p), -ELOOP);
	assert_int_equal(out_place_find("rw/new", &o, &p), 0);
	assert_true(o.dir >= 0 && strncmp(o.path, "/proc/self/fd/", 14) == 0);
	fd = out_place_open_source("ro/link", &p);
	assert_true(fd >= 0);
	assert_int_equal(out_place_source("out", &d, &p), 0);
	assert_null(d.root);
}

static void a_helper_is_in_the_directory_that_the_user_names(void **state)
{
	AUTO_FREE char *own = daemon_own_path(), *first = NULL, *second = NULL;

	assert_int_equal(access(own, X_OK), 0);
	*strrchr(own, '/') = '\0';
	second = daemon_helper_path("api_test");
	assert_int_equal(strncmp(second, own, strlen(own)), 0);
	assert_int_equal(setenv("SBX_LIBEXEC", "/named", 1), 0);
	first = daemon_helper_path("api_test");
	assert_string_equal(first, "/named/api_test");
	assert_int_equal(unsetenv("SBX_LIBEXEC"), 0);
}

static void emulation_that_was_chosen_needs_no_kvm(void **state)
{
	AUTO_JSON json_t *body = json_pack("{s:s}", "accel", "tcg");
	struct problem p = {0};

	assert_int_equal(accel_require(body, &p), 0);
	assert_non_null(strstr(accel_open_command(), "usermod -aG kvm"));
}

static int make_top(void)
{
	char dir[] = "/tmp/sbx-api-test.XXXXXX";

	top = mkdtemp(dir) ? realpath(dir, NULL) : NULL;
	return top && chdir(top) == 0 && setenv("XDG_RUNTIME_DIR", top, 1) == 0 &&
			       unsetenv("SBX_LIBEXEC") == 0 &&
			       system("mkdir -m 700 sbx && mkdir rw ro out && touch out/file && "
				      "ln -s ../out rw/planted && ln -s ../out/file rw/link && "
				      "ln -s ../out/file ro/link") == 0
		       ? 0
		       : -1;
}

int main(void)
{
	static const struct CMUnitTest alone[] = {
		cmocka_unit_test(without_sbxd_a_peek_starts_nothing),
		cmocka_unit_test(a_helper_is_in_the_directory_that_the_user_names),
		cmocka_unit_test(emulation_that_was_chosen_needs_no_kvm),
	};
	static const struct CMUnitTest served[] = {
		cmocka_unit_test(a_reply_is_json_with_defaults),
		cmocka_unit_test(an_error_has_sentence_code_and_hint),
		cmocka_unit_test(a_descriptor_is_passed_while_others_have_many_in_flight),
		cmocka_unit_test(a_path_follows_no_link_of_a_guest),
	};
	AUTO_FREE char *rm = NULL;
	int r;

	if (make_top() < 0)
		return 1;
	r = cmocka_run_group_tests(alone, NULL, NULL) +
	    cmocka_run_group_tests(served, start_server, stop_server);
	rm = xasprintf("rm -rf %s", top);
	free(top);
	return system(rm) == 0 ? r : 1;
}
