/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 between a real sbx-origin and servers: one of ours, nghttpd and nginx. */
#include "line_h2_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nghttp2/nghttp2.h>
#include <openssl/pem.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define MIB (1024 * 1024)
#define MANY 100
#define BIG (64 * MIB)
#define MAX_MEMORY (12 * MIB)

/* Sends head and end to a new exchange, and reads its answer. */
static void ask(struct rig *r, const char *path, const char *query, struct rig_answer *a)
{
	int fd = rig_ask(r, &(struct rig_req){.path = path, .query = query});

	rig_read_answer(fd, a);
	(void)close(fd);
}

static pid_t serve_first(struct rig *r, const struct h2_rig_manner *manner)
{
	pid_t pid = h2_rig_serve(r, manner);

	rig_give_value(r, RIG_VALUE);
	return pid;
}

static void a_request_arrives_with_the_value(void **state)
{
	struct rig *r = rig_new();
	int fd = rig_ask(r, &(struct rig_req){.path = "/dump",
				    .query = "a=b",
				    .headers = "authorization: Bearer " RIG_SENTINEL "\nx-a: b\n",
				    .te = true});
	pid_t pid = serve_first(r, NULL);
	struct rig_answer a;

	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 200);
	assert_true(a.ended);
	assert_non_null(strstr(a.headers, "x-server: rig"));
	assert_string_equal((char *)a.body,
		":method: GET\n:scheme: https\n:authority: " RIG_HOST
		"\n:path: /dump?a=b\nx-a: b\naccept-encoding: identity\n"
		"authorization: Bearer THE VALUE"
		" (not indexed)\nte: trailers\n");
	assert_int_equal(rig_result(r, 1)->outcome, ORIGIN_DONE);
	assert_int_equal(rig_result(r, 1)->status, 200);
	assert_true(rig_result(r, 1)->used);
	rig_answer_done(&a);
	(void)close(fd);
	rig_free(r);
	h2_rig_end(pid);
}

/* nghttp2 never puts authorization into tables; for other headers it must be told. */
static void a_value_is_in_no_table(void **state)
{
	static const char service[] =
		"service 1\nname demo\nabout Demo: a test\nenv KEY " RIG_SENTINEL
		"\nslot api\nhost " RIG_HOST ":443\nheader x-goog-api-key %s\nend\n";
	struct rig *r = rig_start(NULL);
	struct rig_answer a;
	pid_t pid;
	int fd;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_SECRET, service);
	fd = rig_ask(r, &(struct rig_req){.path = "/dump"});
	pid = serve_first(r, NULL);
	rig_read_answer(fd, &a);
	assert_non_null(strstr((char *)a.body, "x-goog-api-key: THE VALUE (not indexed)\n"));
	rig_answer_done(&a);
	(void)close(fd);
	rig_free(r);
	h2_rig_end(pid);
}

/* One line and one NEED for all exchanges. */
static void many_exchanges_share_a_line(void **state)
{
	struct rig *r = rig_new();
	struct rig_answer a;
	int fd[MANY];
	pid_t pid;

	for (size_t i = 0; i < MANY; i++)
		fd[i] = rig_ask(
			r, &(struct rig_req){
				   .path = "/echo", .method = "POST", .body = HTTP_BODY_CHUNKED});
	pid = serve_first(r, NULL);
	for (size_t i = 0; i < MANY; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "text %zu", i);
		rig_send_data(fd[i], text, strlen(text));
	}
	/* all are open at the same time: the last one is answered while no other has ended */
	for (size_t i = MANY; i-- > 0;) {
		char text[16];

		rig_send_end(fd[i], NULL);
		rig_read_answer(fd[i], &a);
		(void)snprintf(text, sizeof(text), "text %zu", i);
		assert_int_equal(a.status, 200);
		assert_string_equal((char *)a.body, text);
		rig_answer_done(&a);
		(void)close(fd[i]);
		rig_until_closed(r, (uint32_t)i + 1);
	}
	assert_int_equal(r->n_wants, 1);
	assert_int_equal(r->n_needs, 1);
	rig_free(r);
	h2_rig_end(pid);
}

static void both_directions_talk_at_once(void **state)
{
	struct rig *r = rig_new();
	int fd = rig_ask(r,
		&(struct rig_req){
			.path = "/echo", .method = "POST", .body = HTTP_BODY_CHUNKED, .te = true});
	pid_t pid = serve_first(r, NULL);
	struct rig_answer a = {0};

	while (a.status != 200)
		assert_true(rig_read_frame(fd, &a)); /* before any content */
	for (size_t i = 0; i < 200; i++) {
		size_t had = a.n_body;

		rig_send_data(fd, "ping", 4);
		while (a.n_body < had + 4)
			assert_true(rig_read_frame(fd, &a));
	}
	rig_send_end(fd, "x-sum: 800\n");
	while (!a.ended)
		assert_true(rig_read_frame(fd, &a));
	assert_int_equal(a.n_body, 800);
	assert_string_equal(a.trailers, "grpc-status: 0\nx-got: x-sum=800\n");
	rig_answer_done(&a);
	(void)close(fd);
	rig_free(r);
	h2_rig_end(pid);
}

static void interim_answers_pass(void **state)
{
	struct rig *r = rig_new();
	int fd = rig_ask(r, &(struct rig_req){.path = "/hint"});
	pid_t pid = serve_first(r, NULL);
	struct rig_answer a = {0};

	assert_true(rig_read_frame(fd, &a));
	assert_int_equal(a.status, 103);
	assert_string_equal(a.headers, "link: </a>\n");
	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(fd);
	rig_free(r);
	h2_rig_end(pid);
}

/* Edge waits for a 100: from the server, or after a while from origin. */
static void a_body_is_offered(void **state)
{
	static const char *const path[] = {"/expect", "/quiet"};
	struct rig *r = rig_new();
	pid_t pid = 0;

	for (size_t i = 0; i < ARRAY_LEN(path); i++) {
		struct rig_answer a = {0};
		int fd = rig_ask(r, &(struct rig_req){.path = path[i],
					    .method = "PUT",
					    .body = HTTP_BODY_LENGTH,
					    .length = 5,
					    .expect = true});

		if (!pid)
			pid = serve_first(r, NULL);
		assert_true(rig_read_frame(fd, &a));
		assert_int_equal(a.status, 100);
		rig_send_data(fd, "12345", 5);
		rig_send_end(fd, NULL);
		rig_read_answer(fd, &a);
		while (a.status == 100 && !a.ended)
			assert_true(rig_read_frame(fd, &a));
		assert_int_equal(a.status, 200);
		assert_string_equal((char *)a.body, "5");
		rig_answer_done(&a);
		(void)close(fd);
	}
	rig_free(r);
	h2_rig_end(pid);
}

/* ---- size and memory ---- */

static void much_passes_both_ways(void **state)
{
	struct rig *r = rig_new();
	AUTO_FREE uint8_t *piece = xcalloc(1, 65536);
	uint64_t most = 0, sent = 0;
	struct rig_answer a = {0};
	struct pollfd p;
	size_t got = 0;
	pid_t pid;
	int fd = rig_ask(
		r, &(struct rig_req){.path = "/echo", .method = "POST", .body = HTTP_BODY_CHUNKED});

	pid = serve_first(r, NULL);
	p = (struct pollfd){.fd = fd};
	while (got < BIG) {
		p.events = (short)(POLLIN | (sent < BIG && sent < got + 2 * MIB ? POLLOUT : 0));
		assert_int_equal(poll(&p, 1, 20000), 1);
		if (p.revents & POLLIN) {
			assert_true(rig_read_frame(fd, &a));
			got += a.n_body;
			a.n_body = 0;
		}
		if (p.revents & POLLOUT && sent < BIG && sent < got + 2 * MIB) {
			rig_send_data(fd, piece, 32768);
			sent += 32768;
			if (sent == BIG)
				rig_send_end(fd, NULL);
		}
		if (sent % (4 * MIB) == 0)
			most = MAX(most, rig_memory(r));
	}
	while (!a.ended)
		assert_true(rig_read_frame(fd, &a));
	assert_int_equal(got + a.n_body, BIG);
	print_message("memory of origin at most %llu KiB\n", (unsigned long long)most / 1024);
	assert_true(most < MAX_MEMORY);
	rig_answer_done(&a);
	(void)close(fd);
	rig_free(r);
	h2_rig_end(pid);
}

/* Edge does not read one answer: it costs one window, and the others continue. */
static void a_reader_that_stops_stops_only_itself(void **state)
{
	struct rig *r = rig_new();
	int stuck = rig_ask(r, &(struct rig_req){.path = "/big", .query = "33554432"});
	pid_t pid = serve_first(r, NULL);
	struct rig_answer a = {0};
	uint64_t before;

	(void)usleep(300000);
	before = rig_memory(r);
	assert_true(before < MAX_MEMORY);
	for (size_t i = 0; i < 50; i++) {
		ask(r, "/big", "100000", &a);
		assert_int_equal(a.n_body, 100000);
		rig_answer_done(&a);
	}
	assert_true(rig_memory(r) < MAX_MEMORY);
	/* and now it reads */
	rig_read_answer(stuck, &a);
	assert_int_equal(a.n_body, 33554432);
	assert_true(a.ended);
	rig_answer_done(&a);
	(void)close(stuck);
	assert_int_equal(r->n_wants, 1);
	rig_free(r);
	h2_rig_end(pid);
}

static void a_server_that_reads_slowly_stops_edge(void **state)
{
	struct rig *r = rig_new();
	int fd = rig_ask(r,
		&(struct rig_req){.path = "/silent", .method = "POST", .body = HTTP_BODY_CHUNKED});
	pid_t pid = serve_first(r, &(struct h2_rig_manner){.is_slow = true});
	static uint8_t piece[32768];
	uint64_t sent = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};

		if (poll(&p, 1, 20) == 0 || sent > 16 * MIB)
			break;
		rig_send_data(fd, piece, sizeof(piece));
		sent += sizeof(piece);
	}
	assert_true(sent < 8 * MIB);
	assert_true(rig_memory(r) < MAX_MEMORY);
	(void)close(fd);
	rig_until_closed(r, 1);
	rig_free(r);
	h2_rig_end(pid);
}

/* ---- behaviour of servers ---- */

static void a_refused_request_is_sent_once_more(void **state)
{
	for (unsigned n = 1; n <= 2; n++) {
		struct rig *r = rig_new();
		int fd = rig_ask(r, &(struct rig_req){.path = "/dump", .method = "POST"});
		pid_t pid = serve_first(r, &(struct h2_rig_manner){.n_refused = n});
		struct rig_answer a;

		rig_read_answer(fd, &a);
		assert_int_equal(a.status, n == 1 ? 200 : 502);
		assert_true(n == 1 || strstr(a.reason, "refused"));
		rig_answer_done(&a);
		(void)close(fd);
		h2_rig_end(pid);
		rig_free(r);
	}
}

static void what_wants_http1_gets_it(void **state)
{
	struct rig *r = rig_new();
	int fd = rig_ask(r, &(struct rig_req){.path = "/old"});
	pid_t pid = serve_first(r, NULL);
	SSL *ssl = rig_serve(r); /* no ALPN, and only HTTP/1.1 is offered */
	struct rig_answer a;
	char head[4096];

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "GET /old HTTP/1.1\r\n"));
	rig_write(ssl, "HTTP/1.1 204 No Content\r\n\r\n");
	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 204);
	rig_answer_done(&a);
	(void)close(fd);
	rig_hang_up(ssl);
	h2_rig_end(pid);
	rig_free(r);
}

static void content_that_was_taken_is_not_sent_again(void **state)
{
	struct rig *r = rig_new();
	int fd = rig_ask(r,
		&(struct rig_req){
			.path = "/reset", .method = "POST", .body = HTTP_BODY_LENGTH, .length = 5});
	struct rig_answer a;
	pid_t pid;

	rig_send_data(fd, "12345", 5);
	pid = serve_first(r, &(struct h2_rig_manner){.n_refused = 1});
	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 502);
	assert_int_equal(r->n_wants, 1);
	rig_answer_done(&a);
	(void)close(fd);
	h2_rig_end(pid);
	rig_free(r);
}

static void a_line_that_goes_away_takes_no_more(void **state)
{
	struct rig *r = rig_new();
	int fd = rig_ask(r, &(struct rig_req){.path = "/dump"}), late;
	pid_t pid = serve_first(r, &(struct h2_rig_manner){.goaway_at = 2}), second;
	struct rig_answer a;

	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(fd);
	late = rig_ask(r, &(struct rig_req){.path = "/dump"}); /* excluded by the GOAWAY */
	second = h2_rig_serve(r, NULL);
	rig_read_answer(late, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(late);
	assert_int_equal(r->n_needs, 1);
	h2_rig_end(pid);
	h2_rig_end(second);
	rig_free(r);
}

static void the_servers_number_of_streams_holds(void **state)
{
	struct rig *r = rig_new();
	int first = rig_ask(r, &(struct rig_req){.path = "/dump"}), fd[3];
	static const struct h2_rig_manner two = {.max_streams = 2};
	pid_t pid = serve_first(r, &two), second;
	struct rig_answer a;

	rig_read_answer(first, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(first);
	for (size_t i = 0; i < 3; i++)
		fd[i] = rig_ask(
			r, &(struct rig_req){
				   .path = "/echo", .method = "POST", .body = HTTP_BODY_CHUNKED});
	second = h2_rig_serve(r, &two); /* the third needs another line */
	for (size_t i = 0; i < 3; i++) {
		rig_send_end(fd[i], NULL);
		rig_read_answer(fd[i], &a);
		assert_int_equal(a.status, 200);
		rig_answer_done(&a);
		(void)close(fd[i]);
	}
	assert_int_equal(r->n_wants, 2);
	h2_rig_end(pid);
	h2_rig_end(second);
	rig_free(r);
}

static void a_reset_is_one_exchanges_end(void **state)
{
	struct rig *r = rig_new();
	int other = rig_ask(
		r, &(struct rig_req){.path = "/echo", .method = "POST", .body = HTTP_BODY_CHUNKED});
	pid_t pid = serve_first(r, NULL);
	struct rig_answer a;

	ask(r, "/reset", NULL, &a);
	assert_int_equal(a.status, 502);
	assert_non_null(strstr(a.reason, "stream reset by the server"));
	rig_answer_done(&a);
	/* edge cancels one: the server is informed, the line stays */
	(void)close(rig_ask(r, &(struct rig_req){.path = "/silent"}));
	rig_until_closed(r, 3);
	rig_send_end(other, NULL);
	rig_read_answer(other, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(other);
	assert_int_equal(r->n_wants, 1);
	rig_free(r);
	h2_rig_end(pid);
}

/* ---- third-party servers ---- */

static char folder[] = "/tmp/line_h2_XXXXXX";

static void write_file(const char *name, const void *p, size_t n)
{
	AUTO_FREE char *path = xasprintf("%s/%s", folder, name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	(void)fclose(f);
}

static void write_pem(void)
{
	AUTO_FREE char *key = xasprintf("%s/key", folder), *cert = xasprintf("%s/cert", folder);
	FILE *f = fopen(key, "we");

	assert_int_equal(PEM_write_PrivateKey(f, rig_good.key, NULL, NULL, 0, NULL, NULL), 1);
	(void)fclose(f);
	f = fopen(cert, "we");
	assert_int_equal(PEM_write_X509(f, rig_good.cert), 1);
	(void)fclose(f);
}

static pid_t run(const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)close_range(3, ~0U, 0);
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		(void)execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	return pid;
}

static uint16_t free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	(void)close(fd);
	return ntohs(a.sin_port);
}

/* A file of 3 MiB, HEAD, a missing file, and 50 at the same time. */
static void use_server(struct rig *r, uint16_t port)
{
	struct rig_answer a;
	int fd = rig_ask(r, &(struct rig_req){.path = "/big.bin"}), many[50];

	h2_rig_connect(r, port);
	rig_give_value(r, RIG_VALUE);
	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.n_body, 3 * MIB);
	rig_answer_done(&a);
	(void)close(fd);
	fd = rig_ask(r, &(struct rig_req){.path = "/big.bin", .method = "HEAD"});
	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.n_body, 0);
	assert_true(a.ended);
	(void)close(fd);
	ask(r, "/nothing", NULL, &a);
	assert_int_equal(a.status, 404);
	rig_answer_done(&a);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = rig_ask(r, &(struct rig_req){.path = "/small.txt"});
	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		rig_read_answer(many[i], &a);
		assert_int_equal(a.status, 200);
		assert_string_equal((char *)a.body, "small\n");
		rig_answer_done(&a);
		(void)close(many[i]);
	}
	assert_int_equal(r->n_wants, 1);
}

static void nghttpd_is_spoken_to(void **state)
{
	AUTO_FREE char *port_text = NULL, *key = xasprintf("%s/key", folder),
		       *cert = xasprintf("%s/cert", folder);
	uint16_t port = free_port();
	const char *argv[] = {"/usr/sbin/nghttpd", "-d", folder, "--echo-upload", "--trailer",
		"x-end: yes", "-a", "127.0.0.1", NULL, key, cert, NULL};
	struct rig *r = rig_new();
	static uint8_t piece[32768];
	struct rig_answer a;
	pid_t pid;
	int fd;

	argv[8] = port_text = xasprintf("%u", port);
	pid = run(argv);
	use_server(r, port);
	/* the server echoes uploads, with its own trailer */
	fd = rig_ask(r, &(struct rig_req){.path = "/up",
				.method = "POST",
				.body = HTTP_BODY_LENGTH,
				.length = 32 * sizeof(piece)});
	for (size_t i = 0; i < 32; i++)
		rig_send_data(fd, piece, sizeof(piece));
	rig_send_end(fd, NULL);
	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.n_body, 32 * sizeof(piece));
	rig_answer_done(&a);
	(void)close(fd);
	rig_free(r);
	h2_rig_end(pid);
}

static void nginx_is_spoken_to(void **state)
{
	uint16_t port = free_port();
	AUTO_FREE char *conf =
		xasprintf("daemon off; master_process off; pid %s/pid; error_log %s/log;\n"
			  "events {}\nhttp { access_log off; client_body_temp_path %s/b; "
			  "proxy_temp_path %s/p;"
			  " fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
			  "server { listen 127.0.0.1:%u ssl http2; ssl_certificate %s/cert; "
			  "ssl_certificate_key %s/key;\n"
			  "root %s; location /who { if ($http_authorization = \"Bearer " RIG_VALUE
			  "\") { return 200 it-is; } return 200 no; }\n"
			  "location /say { return 200 \"$http_authorization\"; } } }\n",
			folder, folder, folder, folder, folder, folder, folder, port, folder,
			folder, folder);
	AUTO_FREE char *path = xasprintf("%s/conf", folder);
	const char *argv[] = {"/usr/sbin/nginx", "-c", path, "-e", "/dev/null", NULL};
	struct rig *r = rig_new();
	struct rig_answer a;
	pid_t pid;

	write_file("conf", conf, strlen(conf));
	pid = run(argv);
	use_server(r, port);
	ask(r, "/who", NULL, &a);
	assert_string_equal((char *)a.body, "it-is");
	rig_answer_done(&a);
	ask(r, "/say", NULL, &a); /* and it is not echoed */
	assert_int_equal(a.n_body, strlen("Bearer " RIG_VALUE));
	assert_string_equal((char *)a.body, "Bearer *************************");
	rig_answer_done(&a);
	rig_free(r);
	h2_rig_end(pid);
}

static int make_folder(void **state)
{
	AUTO_FREE uint8_t *big = xcalloc(3, MIB);

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	write_pem();
	write_file("big.bin", big, 3 * MIB);
	write_file("small.txt", "small\n", 6);
	return 0;
}

static int remove_folder(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s", folder);

	return system(command) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_arrives_with_the_value),
		cmocka_unit_test(a_value_is_in_no_table),
		cmocka_unit_test(many_exchanges_share_a_line),
		cmocka_unit_test(both_directions_talk_at_once),
		cmocka_unit_test(interim_answers_pass),
		cmocka_unit_test(a_body_is_offered),
		cmocka_unit_test(much_passes_both_ways),
		cmocka_unit_test(a_reader_that_stops_stops_only_itself),
		cmocka_unit_test(a_server_that_reads_slowly_stops_edge),
		cmocka_unit_test(a_refused_request_is_sent_once_more),
		cmocka_unit_test(what_wants_http1_gets_it),
		cmocka_unit_test(content_that_was_taken_is_not_sent_again),
		cmocka_unit_test(a_line_that_goes_away_takes_no_more),
		cmocka_unit_test(the_servers_number_of_streams_holds),
		cmocka_unit_test(a_reset_is_one_exchanges_end),
	};
	const struct CMUnitTest real_servers[] = {
		cmocka_unit_test(nghttpd_is_spoken_to),
		cmocka_unit_test(nginx_is_spoken_to),
	};
	int n_failed;

	rig_make_pki();
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	return n_failed + cmocka_run_group_tests(real_servers, make_folder, remove_folder);
}
