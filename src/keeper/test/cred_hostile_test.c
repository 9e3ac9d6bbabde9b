/* SPDX-License-Identifier: Apache-2.0 */
/* Origins, an egress and a vault that send false data, disconnect, or violate the order. */
#include "cred_rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/ipc/vault_chan.h"

static void must_be_killed(unsigned n_violations)
{
	RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
	assert_int_equal(rig_k.origins->n_blamed, 1);
	assert_int_equal(rig_k.origins->blamed[0].n_violations, n_violations);
	assert_int_equal(rig_k.origins->blamed[0].n_crashes, 0);
	rig_must_be_quiet(cred_vault);
}

/* Starts over, so that each violation is the first. */
static struct cred_run again(void)
{
	rig_k.origins->n_blamed = 0;
	return cred_run_up();
}

static void every_message_before_its_time(void **state)
{
	struct cred_run run;

	cred_vault_up();
	rig_bring_egress_up();
	for (uint16_t type = 0; type < ORIGIN_N_MSGS + 2; type++) {
		if (type == ORIGIN_HELLO)
			continue;
		rig_k.origins->n_blamed = 0;
		run.edge_fd = cred_must_open(type);
		run.origin = cred_origins[cred_n_origins - 1];
		assert_int_equal(ipc_send(run.origin, type, 0, slice_of(NULL, 0), -1), 0);
		must_be_killed(1);
		fd_close(&run.edge_fd);
	}
}

/* Messages that only the keeper sends, and a second HELLO. */
static void every_message_out_of_its_mouth(void **state)
{
	static const uint16_t types[] = {0, ORIGIN_HELLO, ORIGIN_CONFIG, ORIGIN_ROOTS, ORIGIN_OPEN,
		ORIGIN_SOCKET, ORIGIN_VALUE, ORIGIN_STORED - 1, ORIGIN_N_MSGS, 999};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct cred_run run = again();

		assert_int_equal(ipc_send(run.origin, types[i], 0, slice_of(NULL, 0), -1), 0);
		must_be_killed(1);
		cred_run_down(&run);
	}
}

static void bodies_that_do_not_decode(void **state)
{
	static const uint16_t types[] = {
		ORIGIN_RESULT, ORIGIN_CLOSED, ORIGIN_WANT, ORIGIN_NEED, ORIGIN_TOKENS};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct cred_run run = again();

		assert_int_equal(ipc_send(run.origin, types[i], 1, slice_of("xyz", 3), -1), 0);
		must_be_killed(1);
		cred_run_down(&run);
		run = again();
		/* an unexpected descriptor */
		assert_int_equal(
			ipc_send(run.origin, types[i], 1, slice_of("xyz", 3), run.edge_fd), 0);
		must_be_killed(1);
		cred_run_down(&run);
	}
}

static void another_build(void **state)
{
	struct cred_run run;

	cred_vault_up();
	rig_bring_egress_up();
	run.edge_fd = cred_must_open(1);
	assert_int_equal(chan_send_hello(cred_origins[0], "old"), 0);
	must_be_killed(1);
	fd_close(&run.edge_fd);
}

enum lie {
	LIE_RESULT_OF_NOTHING,
	LIE_RESULT_TWICE,
	LIE_CLOSED_OF_NOTHING,
	LIE_CLOSED_TWICE,
	LIE_USED_WITHOUT_A_VALUE,
	LIE_WANT_TWICE,
	LIE_NEED_TWICE,
	LIE_NEED_WHAT_IT_HAS_NOT,
	N_LIES,
};

static void tell(struct cred_run *run, enum lie lie)
{
	const struct origin_result done = {.status = 200}, used = {.status = 200,
								   .used = true,
								   .serial = CRED_SERIAL,
								   .slot = "api"};
	const struct origin_need refresh = {.which = ORIGIN_REFRESH, .cert = {1}};
	int s = run->origin, r = 0;

	switch (lie) {
	case LIE_RESULT_OF_NOTHING:
		r = origin_send_result(s, run->exchange + 1, &done);
		break;
	case LIE_RESULT_TWICE:
		r = origin_send_result(s, run->exchange, &done) |
		    origin_send_result(s, run->exchange, &done);
		break;
	case LIE_CLOSED_OF_NOTHING:
		r = origin_send_closed(s, run->exchange + (1u << 8), 0, 0);
		break;
	case LIE_CLOSED_TWICE:
		r = origin_send_closed(s, run->exchange, 0, 0) |
		    origin_send_closed(s, run->exchange, 0, 0);
		break;
	case LIE_USED_WITHOUT_A_VALUE:
		r = origin_send_result(s, run->exchange, &used);
		break;
	case LIE_WANT_TWICE:
		r = chan_send_plain(s, ORIGIN_WANT, 5, -1);
		(void)cred_must_get_socket_open();
		r |= chan_send_plain(s, ORIGIN_WANT, 5, -1);
		break;
	case LIE_NEED_TWICE:
		assert_int_equal(cred_want(s, 1), EGRESS_CONNECTED);
		cred_need(s, 1, 1);
		cred_must_get_release("demo", CRED_SERIAL);
		cred_need(s, 2, 1);
		break;
	case LIE_NEED_WHAT_IT_HAS_NOT:
		r = origin_send_need(s, 1, &refresh);
		break;
	case N_LIES:
		break;
	}
	assert_int_equal(r, 0);
}

static void an_origin_that_lies_is_killed(void **state)
{
	for (unsigned i = 0; i < N_LIES; i++) {
		struct cred_run run = again();

		tell(&run, (enum lie)i);
		must_be_killed(1);
		cred_run_down(&run);
	}
	assert_true(rig_k.egress->worker.alive);
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
}

static void too_many_connections_are_wanted(void **state)
{
	struct cred_run run = cred_run_up();

	for (uint32_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		assert_int_equal(chan_send_plain(run.origin, ORIGIN_WANT, i, -1), 0);
		(void)cred_must_get_socket_open();
	}
	assert_true(rig_k.origins->list[0].worker.alive);
	assert_int_equal(chan_send_plain(run.origin, ORIGIN_WANT, 1000, -1), 0);
	must_be_killed(1);
	cred_run_down(&run);
}

static void after_three_its_host_is_refused(void **state)
{
	struct cred_run run;

	for (unsigned i = 1; i <= KEEPER_ORIGIN_VIOLATIONS; i++) {
		run = cred_run_up();
		assert_int_equal(origin_send_closed(run.origin, 77, 0, 0), 0);
		must_be_killed(i);
		assert_int_equal(rig_last_record().n > 0, 1);
		cred_run_down(&run);
	}
	cred_ask(9, CRED_HOST, "GET");
	assert_false(rig_must_answer(9));
	assert_non_null(strstr(rig_verdict.reason, "violated its protocol repeatedly"));
	assert_int_equal(cred_n_origins, KEEPER_ORIGIN_VIOLATIONS);
	/* the sandbox and other hosts are not affected */
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
	cred_ask(10, "h1.many.example", "GET");
	assert_true(rig_must_answer(10));
}

static void a_violation_is_in_the_log(void **state)
{
	struct cred_run run = cred_run_up();
	struct seen s;

	assert_int_equal(origin_send_closed(run.origin, 77, 0, 0), 0);
	must_be_killed(1);
	s = rig_last_record(); /* the record of the broken request is the last */
	assert_int_equal(s.kind, AUDIT_KIND_CREDENTIAL_USE);
	assert_non_null(strstr(s.reason, "sbx-origin violated its protocol"));
	cred_run_down(&run);
}

static void an_origin_that_ends_by_itself(void **state)
{
	struct cred_run run = {.edge_fd = -1, .origin_fd = -1};
	char none;

	for (unsigned i = 1; i <= KEEPER_ORIGIN_CRASHES; i++) {
		run = cred_run_up();
		assert_int_equal(kill(rig_k.origins->list[0].worker.child.pid, SIGKILL), 0);
		RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
		assert_int_equal(rig_k.origins->blamed[0].n_crashes, i);
		assert_int_equal(rig_k.origins->blamed[0].n_violations, 0);
		fd_close(&run.origin_fd);
		assert_int_equal(recv(run.edge_fd, &none, 1, 0), 0);
		cred_run_down(&run);
	}
	assert_non_null(strstr(cred_last_use().reason, "sbx-origin ended"));
	cred_ask(9, CRED_HOST, "GET");
	assert_false(rig_must_answer(9));
	assert_non_null(strstr(rig_verdict.reason, "exited repeatedly"));
}

/* Killed between release and send: the value is lost, and the answer is dropped. */
static void killed_while_its_value_is_on_its_way(void **state)
{
	struct cred_run run = cred_run_up(), next;
	const struct vault_done done = {.number = CRED_SERIAL};
	AUTO_CLOSE int stream = -1;
	uint32_t id;
	char none;

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	cred_need(run.origin, 1, 1);
	cred_must_get_release("demo", CRED_SERIAL);
	id = rig_msg.id;
	stream = TAKE_FD(rig_msg.fd);
	assert_int_equal(kill(rig_k.origins->list[0].worker.child.pid, SIGKILL), 0);
	RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
	assert_int_equal(recv(stream, &none, 1, 0), 0); /* the other end is closed */
	for (size_t i = 0; i < KEEPER_MAX_RELEASES; i++)
		assert_int_equal(rig_k.vault->releases[i].id, 0);
	next = cred_run_up();
	assert_int_equal(vault_send_done(cred_vault, id, &done), 0);
	rig_must_be_quiet(next.origin); /* the answer does not go to the new one */
	assert_true(rig_k.vault->is_current);
	cred_run_down(&run);
	cred_run_down(&next);
}

static void one_that_does_not_start(void **state)
{
	struct cred_run run;

	cred_vault_up();
	rig_bring_egress_up();
	run.edge_fd = cred_must_open(1);
	rig_k.origins->list[0].worker.started_ms -= KEEPER_ORIGIN_START_MS;
	origins_on_timer(&rig_k);
	assert_false(rig_k.origins->list[0].worker.alive);
	assert_int_equal(rig_k.origins->blamed[0].n_crashes, 1);
	fd_close(&run.edge_fd);
}

/* ---- egress ---- */

static void lie_about(struct cred_run *run, const char *addr, int fd)
{
	struct egress_result result = {.outcome = EGRESS_CONNECTED};
	uint32_t exchange;

	(void)!str_copy(result.addr, sizeof(result.addr), addr);
	assert_int_equal(chan_send_plain(run->origin, ORIGIN_WANT, 1, -1), 0);
	exchange = cred_must_get_socket_open();
	assert_int_equal(egress_send_result(rig_egress, exchange, &result, fd), 0);
}

static void an_egress_that_lies_about_a_connection(void **state)
{
	for (unsigned i = 0; i < 5; i++) {
		struct cred_run run = cred_run_up();
		AUTO_CLOSE int fd = cred_connect();
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		rig_k.egress->worker.violations = 0;
		if (i == 0)
			lie_about(&run, "93.184.216.34", fd); /* another address */
		else if (i == 1)
			lie_about(&run, "127.0.0.1", pair[0]); /* to egress itself */
		else if (i == 2)
			lie_about(&run, "127.0.0.1", cred_listener);
		else if (i == 3)
			lie_about(&run, "127.0.0.1", -1); /* no socket */
		else
			lie_about(&run, "", fd);
		RIG_UNTIL(!rig_k.egress->worker.alive);
		assert_int_equal(rig_k.egress->worker.violations, 1);
		(void)close(pair[0]);
		(void)close(pair[1]);
		cred_run_down(&run);
		origins_kill_all(&rig_k, "the test ends");
	}
}

static void a_connection_that_nobody_wanted(void **state)
{
	const struct egress_result result = {EGRESS_CONNECTED, "127.0.0.1", "connected"};
	AUTO_CLOSE int fd = cred_connect(), a = -1, b = -1;
	uint32_t id;

	rig_bring_egress_up();
	id = rig_must_open(1, &a, &b);
	assert_int_equal(egress_send_result(rig_egress, id, &result, fd), 0);
	RIG_UNTIL(!rig_k.egress->worker.alive);
	assert_int_equal(rig_k.egress->worker.violations, 1);
}

/* Its connection arrives after the origin was replaced. */
static void a_connection_for_an_origin_that_has_ended(void **state)
{
	const struct egress_result result = {EGRESS_CONNECTED, "127.0.0.1", "connected"};
	struct cred_run run = cred_run_up(), next;
	AUTO_CLOSE int fd = cred_connect();
	AUTO_CLOSE int server = accept(cred_listener, NULL, NULL);
	uint32_t exchange;
	char none;

	assert_int_equal(chan_send_plain(run.origin, ORIGIN_WANT, 1, -1), 0);
	exchange = cred_must_get_socket_open();
	assert_int_equal(kill(rig_k.origins->list[0].worker.child.pid, SIGKILL), 0);
	RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
	next = cred_run_up();
	assert_int_equal(chan_send_plain(next.origin, ORIGIN_WANT, 1, -1), 0);
	(void)cred_must_get_socket_open();
	assert_int_equal(egress_send_result(rig_egress, exchange, &result, fd), 0);
	fd_close(&fd);
	rig_must_be_quiet(next.origin);
	assert_int_equal(recv(server, &none, 1, 0), 0); /* and is closed */
	assert_true(rig_k.egress->worker.alive);
	cred_run_down(&run);
	cred_run_down(&next);
}

/* ---- the vault ---- */

static void put_sealed(void)
{
	AUTO_FREE char *dir = xasprintf("%s/sbx/vault", rig_dir);
	AUTO_FREE char *path = xasprintf("%s/sealed", dir);

	assert_int_equal(paths_make(dir, NULL), 0);
	assert_int_equal(file_save(path, slice_from_str("x"), NULL), 0);
}

static void before_the_vault_has_answered(void **state)
{
	rig_bring_egress_up();
	/* a user who has never stored a credential does not wait */
	rig_ask(1, EDGE_ASK_TUNNEL, CRED_HOST, cred_port);
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_true(rig_must_answer(1));
	assert_false(rig_verdict.opened);
	put_sealed();
	rig_ask(2, EDGE_ASK_TUNNEL, CRED_HOST, cred_port);
	assert_false(rig_must_answer(2));
	assert_string_equal(rig_verdict.reason,
		"cannot use credential demo: the vault is not available, try again");
	cred_ask(3, CRED_HOST, "GET");
	assert_false(rig_must_answer(3));
	rig_ask(4, EDGE_ASK_TUNNEL, "good.example", 443);
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_true(rig_must_answer(4));
	cred_vault_up();
	rig_ask(5, EDGE_ASK_TUNNEL, CRED_HOST, cred_port);
	assert_true(rig_must_answer(5));
	assert_true(rig_verdict.opened);
}

static void a_vault_that_dies_in_the_middle(void **state)
{
	struct cred_run run = cred_run_up();
	struct origin_value value;
	uint64_t at;

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	cred_need(run.origin, 1, 1);
	cred_must_get_release("demo", CRED_SERIAL);
	ipc_msg_done(&rig_msg);
	fd_close(&cred_vault);
	value = cred_must_get_value(run.origin, 1);
	assert_false(value.given);
	assert_string_equal(value.text, "the vault disconnected");
	/* open exchanges continue, new ones are denied, and nothing is tunneled */
	assert_true(rig_k.origins->list[0].worker.alive);
	cred_ask(2, CRED_HOST, "GET");
	assert_false(rig_must_answer(2));
	assert_non_null(strstr(rig_verdict.reason, "the vault is not available"));
	rig_ask(3, EDGE_ASK_TUNNEL, CRED_HOST, cred_port);
	assert_false(rig_must_answer(3));
	rig_must_be_quiet(rig_egress);
	cred_need(run.origin, 2, 1);
	assert_false(cred_must_get_value(run.origin, 2).given);
	/* retried after the shortest pause */
	at = clock_mono_ms();
	cred_vault_up();
	assert_true(clock_mono_ms() - at < KEEPER_VAULT_MAX_GAP_MS - 500);
	assert_true(rig_k.origins->list[0].worker.alive); /* no change */
	cred_need(run.origin, 3, 1);
	cred_must_get_release("demo", CRED_SERIAL);
	cred_run_down(&run);
}

static void what_was_removed_while_it_was_away(void **state)
{
	struct cred_run run = cred_run_up();

	fd_close(&cred_vault);
	RIG_UNTIL(rig_k.vault->sock == -1);
	cred_n_items = 0;
	cred_vault_up();
	assert_false(rig_k.origins->list[0].worker.alive);
	cred_run_down(&run);
}

static void a_change_while_it_lists(void **state)
{
	const struct vault_done done = {0};
	uint32_t id;

	cred_vault_up();
	assert_int_equal(vault_send_changed(cred_vault, 2), 0);
	rig_must_get(cred_vault, VAULT_LIST);
	id = rig_msg.id;
	assert_int_equal(vault_send_item(cred_vault, id, &cred_items[0]), 0);
	assert_int_equal(vault_send_changed(cred_vault, 3), 0);
	assert_int_equal(vault_send_changed(cred_vault, 4), 0);
	rig_must_be_quiet(cred_vault); /* one at a time */
	assert_int_equal(vault_send_done(cred_vault, id, &done), 0);
	cred_n_items = 0;
	cred_answer_list();
	rig_must_be_quiet(cred_vault);
	assert_null(creds_find(rig_k.creds, CRED_HOST, cred_port));
}

static void a_vault_that_is_locked(void **state)
{
	const struct vault_done locked = {.code = -ENOKEY, .text = "the vault is locked"};

	put_sealed();
	vault_start(&rig_k);
	cred_accept();
	assert_int_equal(chan_send_hello(cred_vault, SBX_BUILD), 0);
	rig_must_get(cred_vault, VAULT_WATCH);
	rig_must_get(cred_vault, VAULT_LIST);
	assert_int_equal(vault_send_done(cred_vault, rig_msg.id, &locked), 0);
	RIG_UNTIL(rig_k.vault->fault[0]);
	rig_ask(1, EDGE_ASK_TUNNEL, CRED_HOST, cred_port);
	assert_false(rig_must_answer(1));
	assert_string_equal(rig_verdict.reason, "cannot use credential demo: the vault is locked");
	/* requested again, and then it works */
	cred_answer_list();
	RIG_UNTIL(rig_k.vault->is_current);
	rig_ask(2, EDGE_ASK_TUNNEL, CRED_HOST, cred_port);
	assert_true(rig_must_answer(2));
}

static void must_be_dropped(void)
{
	RIG_UNTIL(rig_k.vault->sock == -1);
	assert_false(rig_k.vault->is_current);
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
}

static void a_vault_against_the_protocol(void **state)
{
	const struct vault_done done = {0};

	vault_start(&rig_k);
	cred_accept();
	assert_int_equal(vault_send_done(cred_vault, 1, &done), 0); /* before HELLO */
	must_be_dropped();
	cred_accept();
	assert_int_equal(chan_send_hello(cred_vault, "old"), 0);
	must_be_dropped();
	cred_vault_up();
	assert_int_equal(vault_send_item(cred_vault, 1, &cred_items[0]), 0); /* not requested */
	must_be_dropped();
	cred_vault_up();
	assert_int_equal(ipc_send(cred_vault, VAULT_CHANGED, 0, slice_of("x", 1), -1), 0);
	must_be_dropped();
	cred_vault_up();
	assert_int_equal(ipc_send(cred_vault, VAULT_RELEASE, 1, slice_of("x", 1), -1), 0);
	must_be_dropped();
	cred_vault_up();
	/* a DONE without a request, as for a dropped release, is ignored */
	assert_int_equal(vault_send_done(cred_vault, 12345, &done), 0);
	(void)rig_run_until(-1, 30);
	assert_true(rig_k.vault->is_current);
}

/* A second connection to the keeper, as any process of the same user can open one. */
static int second_link(void)
{
	int pair[2];

	assert_int_equal(ipc_pair(pair), 0);
	link_add(&rig_k, pair[0], false);
	rig_must_get(pair[1], KEEPER_HELLO);
	rig_must_get(pair[1], KEEPER_STATE);
	return pair[1];
}

static void give_vault_over(int link)
{
	int pair[2];

	assert_int_equal(ipc_pair(pair), 0);
	fd_close(&cred_vault);
	cred_vault = pair[0];
	assert_int_equal(chan_send_plain(link, KEEPER_VAULT, 0, pair[1]), 0);
	(void)close(pair[1]);
}

static bool is_closed(int fd)
{
	return rig_run_until(fd, 2000) && ipc_recv(fd, &rig_msg) == 0;
}

static void another_process_cannot_be_the_vault(void **state)
{
	AUTO_CLOSE int link = second_link();

	vault_start(&rig_k);
	rig_must_get(rig_sbxd, KEEPER_WANT_VAULT);
	rig_must_be_quiet(link); /* the second link gets no request either */
	give_vault_over(link);
	assert_true(is_closed(cred_vault));
	assert_true(is_closed(link));
	assert_int_equal(rig_k.vault->sock, -1);
	cred_vault_up();
}

/* Connections that fill all slots do not displace the sbxd that started this keeper. */
static void nor_push_the_first_sbxd_out(void **state)
{
	int links[2 * KEEPER_MAX_LINKS];

	cred_vault_up();
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		links[i] = second_link();
	assert_true(rig_k.links[0].is_first);
	fd_close(&cred_vault);
	must_be_dropped();
	vault_start(&rig_k);
	give_vault_over(links[ARRAY_LEN(links) - 1]);
	(void)rig_run_until(-1, 50);
	assert_int_equal(rig_k.vault->sock, -1);
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		fd_close(&links[i]);
}

static void nor_replace_one_that_is_there(void **state)
{
	int was;

	cred_vault_up();
	was = rig_k.vault->sock;
	TAKE_FD(cred_vault);
	give_vault_over(rig_sbxd);
	assert_true(is_closed(cred_vault));
	assert_int_equal(rig_k.vault->sock, was);
	assert_true(rig_k.vault->is_current);
}

/* sbxd died and another one has adopted the sandbox: the keeper requests a channel from it. */
static void a_new_sbxd_gives_a_channel(void **state)
{
	AUTO_CLOSE int link = -1;

	cred_vault_up();
	fd_close(&rig_sbxd);
	(void)rig_run_until(-1, 20);
	assert_true(rig_k.vault->is_current); /* works without sbxd */
	fd_close(&cred_vault);
	must_be_dropped();
	link = second_link();
	rig_must_get(link, KEEPER_WANT_VAULT);
	give_vault_over(link);
	RIG_UNTIL(rig_k.vault->sock >= 0);
	assert_int_equal(chan_send_hello(cred_vault, SBX_BUILD), 0);
	rig_must_get(cred_vault, VAULT_WATCH);
}

static void what_comes_with_a_vault_is_a_channel(void **state)
{
	vault_start(&rig_k);
	assert_int_equal(chan_send_plain(rig_sbxd, KEEPER_VAULT, 0, -1), 0);
	RIG_UNTIL(rig_k.links[0].fd < 0);
	assert_int_equal(rig_k.vault->sock, -1);
}

static void a_vault_that_does_not_answer(void **state)
{
	vault_start(&rig_k);
	cred_accept();
	vault_on_timer(&rig_k); /* KEEPER_VAULT_MS later */
	must_be_dropped();
	cred_vault_up();
	assert_int_equal(vault_send_changed(cred_vault, 2), 0);
	rig_must_get(cred_vault, VAULT_LIST);
	vault_on_timer(&rig_k);
	must_be_dropped();
}

static void a_release_that_takes_too_long(void **state)
{
	struct cred_run run = cred_run_up();
	const struct vault_done done = {.number = CRED_SERIAL};
	struct origin_value value;
	uint32_t id;

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	cred_need(run.origin, 1, 1);
	cred_must_get_release("demo", CRED_SERIAL);
	id = rig_msg.id;
	vault_on_release_timeout(&rig_k, &(struct loop_event){0});
	value = cred_must_get_value(run.origin, 1);
	assert_false(value.given);
	assert_string_equal(value.text, "timed out waiting for the vault");
	assert_int_equal(vault_send_done(cred_vault, id, &done), 0); /* too late */
	rig_must_be_quiet(run.origin);
	assert_int_equal(rig_k.origins->list[0].n_given, 0);
	cred_run_down(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRED_TEST(every_message_before_its_time),
		CRED_TEST(every_message_out_of_its_mouth),
		CRED_TEST(bodies_that_do_not_decode),
		CRED_TEST(another_build),
		CRED_TEST(an_origin_that_lies_is_killed),
		CRED_TEST(too_many_connections_are_wanted),
		CRED_TEST(after_three_its_host_is_refused),
		CRED_TEST(a_violation_is_in_the_log),
		CRED_TEST(an_origin_that_ends_by_itself),
		CRED_TEST(killed_while_its_value_is_on_its_way),
		CRED_TEST(one_that_does_not_start),
		CRED_TEST(an_egress_that_lies_about_a_connection),
		CRED_TEST(a_connection_that_nobody_wanted),
		CRED_TEST(a_connection_for_an_origin_that_has_ended),
		CRED_TEST(before_the_vault_has_answered),
		CRED_TEST(a_vault_that_dies_in_the_middle),
		CRED_TEST(what_was_removed_while_it_was_away),
		CRED_TEST(a_change_while_it_lists),
		CRED_TEST(a_vault_that_is_locked),
		CRED_TEST(a_vault_against_the_protocol),
		CRED_TEST(another_process_cannot_be_the_vault),
		CRED_TEST(nor_push_the_first_sbxd_out),
		CRED_TEST(nor_replace_one_that_is_there),
		CRED_TEST(a_new_sbxd_gives_a_channel),
		CRED_TEST(what_comes_with_a_vault_is_a_channel),
		CRED_TEST(a_vault_that_does_not_answer),
		CRED_TEST(a_release_that_takes_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
