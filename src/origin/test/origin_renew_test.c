/* SPDX-License-Identifier: Apache-2.0 */
/* A credential changes during a request: the value sent with the request is not in its answer, with
 * a real sbx-origin, over HTTP/1.1 and HTTP/2. The server echoes its input. */
#include "line_h2_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define V1 "oat-CANARY-access-71c2-first"
#define V2 "oat-CANARY-access-93d4-second"
#define R1 "ort-CANARY-refresh-88d1-first"
#define S_REFRESH "dm-ort01-proxy-managed"
#define ASKS_REFRESH "grant_type=refresh_token&refresh_token=" S_REFRESH
#define TOKEN_PATH "/oauth/token"

static const char tokens[] = "service 1\nname demo\nabout Demo\n"
			     "token api.example.com:443 " TOKEN_PATH "\n"
			     "field access access_token dm-oat01-proxy-managed\n"
			     "field refresh refresh_token " S_REFRESH "\n"
			     "slot api\nhost api.example.com:443\n"
			     "header authorization Bearer %s\nvalue access\nend\n";

static char head[8192];

/* The server of one test: HTTP/1.1 is the test itself, HTTP/2 a separate process. */
struct server {
	bool is_h2;
	SSL *ssl;
	pid_t pid;
};

static void serve(struct rig *r, struct server *s)
{
	if (s->is_h2)
		s->pid = h2_rig_serve(r, NULL);
	else
		s->ssl = rig_serve(r);
}

static void until_sent(struct server *s)
{
	if (s->is_h2)
		(void)usleep(300000); /* if it is late the test shows nothing, but does not fail */
	else
		assert_true(rig_read_http(s->ssl, head, sizeof(head)));
}

static void say_back(struct server *s, const char *status, const char *value)
{
	AUTO_FREE char *text = NULL;

	if (s->is_h2)
		return; /* /dump does this itself */
	text = xasprintf("HTTP/1.1 %s\r\nx-echo: Bearer %s\r\ncontent-length: %zu\r\n\r\nyou: %s",
		status, value, strlen(value) + 5, value);
	rig_write(s->ssl, text);
}

static void end(struct rig *r, struct server *s)
{
	if (s->is_h2)
		h2_rig_end(s->pid);
	else
		rig_hang_up(s->ssl);
	rig_free(r);
}

/* Waits until origin has read all earlier messages of the keeper. */
static void until_heard(struct rig *r)
{
	int fd = rig_open(r, &(struct rig_req){0});

	(void)close(fd);
	rig_until_closed(r, r->n_ids);
}

static void must_be_clean(int fd)
{
	struct rig_answer a;

	rig_read_answer(fd, &a);
	assert_true(a.ended);
	assert_int_equal(rig_count(a.headers, "CANARY"), 0);
	assert_int_equal(rig_count((char *)a.body, "CANARY"), 0);
	/* it was present, and was removed */
	assert_true(rig_count((char *)a.body, "*****") > 0);
	rig_answer_done(&a);
	(void)close(fd);
}

static const struct rig_req slow = {
	.method = "POST", .path = "/dump", .body = HTTP_BODY_CHUNKED, .headers = "x-a: b\n"};

static void renewed(bool is_h2)
{
	struct rig *r = rig_start(NULL);
	struct server s = {.is_h2 = is_h2};
	int fd;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH, tokens);
	fd = rig_ask(r, &slow);
	serve(r, &s);
	rig_give_value(r, V1);
	until_sent(&s);
	assert_int_equal(origin_ask_renew(r->keeper, ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH), 0);
	until_heard(r);
	rig_send_end(fd, NULL);
	say_back(&s, "200 OK", V1);
	must_be_clean(fd);
	end(r, &s);
}

static void test_renewed_while_a_request_is_under_way(void **state)
{
	renewed(false);
}

static void test_renewed_while_a_request_is_under_way_h2(void **state)
{
	renewed(true);
}

/* A reference is requested again after its expiry: the old value is wiped before the new one
 * arrives. */
static void asked_again(bool is_h2)
{
	struct rig *r = rig_start(NULL);
	struct server s = {.is_h2 = is_h2}, other = {.is_h2 = false};
	int fd, second;

	rig_up(r, RIG_HOST, ORIGIN_HAS_SECRET);
	fd = rig_ask(r, &slow);
	serve(r, &s);
	rig_send_value(r, rig_expect(r, ORIGIN_NEED), V1, 1);
	until_sent(&s);
	(void)usleep(1100000);
	second = rig_ask(r, &(struct rig_req){.path = "/silent"});
	if (!is_h2)
		serve(r, &other);
	(void)rig_expect(r, ORIGIN_NEED);
	rig_send_end(fd, NULL);
	say_back(&s, "200 OK", V1);
	must_be_clean(fd);
	(void)close(second);
	if (!is_h2)
		rig_hang_up(other.ssl);
	end(r, &s);
}

static void test_asked_again_while_a_request_is_under_way(void **state)
{
	asked_again(false);
}

static void test_asked_again_while_a_request_is_under_way_h2(void **state)
{
	asked_again(true);
}

/* A log of earlier requests, which some servers show: the previous token is often still valid. */
static void test_the_value_before_is_removed_too(void **state)
{
	struct rig *r = rig_start(NULL);
	struct server s = {0};
	int fd;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_ACCESS, tokens);
	fd = rig_ask(r, &(struct rig_req){.path = "/"});
	serve(r, &s);
	rig_give_value(r, V1);
	until_sent(&s);
	say_back(&s, "200 OK", V1);
	must_be_clean(fd);
	assert_int_equal(origin_ask_renew(r->keeper, ORIGIN_HAS_ACCESS), 0);
	fd = rig_ask(r, &(struct rig_req){.path = "/"});
	rig_give_value(r, V2);
	until_sent(&s);
	say_back(&s, "200 OK", V1);
	must_be_clean(fd);
	end(r, &s);
}

/* The same for a reference: it expired, another value arrived, and the response of a later request
 * contains the first one. */
static void test_the_value_before_is_removed_when_it_has_expired(void **state)
{
	struct rig *r = rig_start(NULL);
	struct server s = {0};
	int fd;

	rig_up(r, RIG_HOST, ORIGIN_HAS_SECRET);
	fd = rig_ask(r, &(struct rig_req){.path = "/"});
	serve(r, &s);
	rig_send_value(r, rig_expect(r, ORIGIN_NEED), V1, 1);
	until_sent(&s);
	say_back(&s, "200 OK", V1);
	must_be_clean(fd);
	(void)usleep(1100000);
	fd = rig_ask(r, &(struct rig_req){.path = "/"});
	rig_give_value(r, V2);
	until_sent(&s);
	say_back(&s, "200 OK", V1);
	must_be_clean(fd);
	end(r, &s);
}

/* More values were added since than are kept: the value sent with a request is still searched
 * for. */
static void test_replaced_many_times_while_a_request_is_under_way(void **state)
{
	struct rig *r = rig_start(NULL);
	struct server s = {0}, other = {0};
	char value[40];
	int fd, next;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_ACCESS, tokens);
	fd = rig_ask(r, &slow);
	serve(r, &s);
	rig_give_value(r, V1);
	until_sent(&s);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(origin_ask_renew(r->keeper, ORIGIN_HAS_ACCESS), 0);
		until_heard(r);
		next = rig_ask(r, &(struct rig_req){.path = "/"});
		if (i == 0)
			serve(r, &other);
		(void)snprintf(value, sizeof(value), "oat-CANARY-access-%u-later", i);
		rig_give_value(r, value);
		until_sent(&other);
		say_back(&other, "200 OK", value);
		must_be_clean(next);
	}
	rig_send_end(fd, NULL);
	say_back(&s, "200 OK", V1);
	must_be_clean(fd);
	rig_hang_up(other.ssl);
	end(r, &s);
}

static int refresh(struct rig *r)
{
	int fd = rig_ask(r, &(struct rig_req){.method = "POST",
				    .path = TOKEN_PATH,
				    .headers = "content-type: application/x-www-form-urlencoded\n",
				    .body = HTTP_BODY_LENGTH,
				    .length = strlen(ASKS_REFRESH)});

	rig_send_data(fd, ASKS_REFRESH, strlen(ASKS_REFRESH));
	rig_send_end(fd, NULL);
	return fd;
}

/* An error page repeats the refresh token, after another login has replaced it. One more exchange
 * waits for the same answer. */
static void test_renewed_while_a_refresh_is_under_way(void **state)
{
	struct rig *r = rig_start(NULL);
	struct server s = {0};
	int fd, waits;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH, tokens);
	fd = refresh(r);
	serve(r, &s);
	rig_give_value(r, R1);
	until_sent(&s);
	waits = refresh(r);
	until_heard(r);
	assert_int_equal(origin_ask_renew(r->keeper, ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH), 0);
	until_heard(r);
	say_back(&s, "400 Bad Request", R1);
	must_be_clean(fd);
	must_be_clean(waits);
	end(r, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_renewed_while_a_request_is_under_way),
		cmocka_unit_test(test_renewed_while_a_request_is_under_way_h2),
		cmocka_unit_test(test_asked_again_while_a_request_is_under_way),
		cmocka_unit_test(test_asked_again_while_a_request_is_under_way_h2),
		cmocka_unit_test(test_the_value_before_is_removed_too),
		cmocka_unit_test(test_the_value_before_is_removed_when_it_has_expired),
		cmocka_unit_test(test_replaced_many_times_while_a_request_is_under_way),
		cmocka_unit_test(test_renewed_while_a_refresh_is_under_way),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
