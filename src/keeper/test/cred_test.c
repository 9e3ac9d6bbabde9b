/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with a credential: from edge's ask to the vault's value and its record. */
#include "cred_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <errno.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/rules/gate/release.h"
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/rules/settings/settings_net.h"
#include "lib/rules/policy/test/policy_text.h"

static void what_is_bound_is_opened(void **state)
{
	rig_bring_egress_up();
	cred_vault_up();
	rig_ask(1, EDGE_ASK_TUNNEL, CRED_HOST, cred_port);
	assert_true(rig_must_answer(1));
	assert_true(rig_verdict.opened);
	assert_int_equal(rig_msg.fd, -1);
	rig_must_be_quiet(rig_egress);
	/* others are unchanged */
	rig_ask(2, EDGE_ASK_TUNNEL, "good.example", 443);
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_true(rig_must_answer(2));
	assert_false(rig_verdict.opened);
	assert_true(rig_msg.fd >= 0);
	assert_int_equal(cred_n_origins, 0);
}

static void plain_text_is_refused(void **state)
{
	rig_bring_egress_up();
	cred_vault_up();
	rig_ask(1, EDGE_ASK_HTTP, CRED_HOST, 80);
	assert_false(rig_must_answer(1));
	assert_string_equal(
		rig_verdict.reason, CRED_HOST " is intercepted in this sandbox: use https");
	rig_ask(2, EDGE_ASK_HTTP, CRED_HOST, cred_port);
	assert_false(rig_must_answer(2));
	rig_ask(3, EDGE_ASK_TUNNEL, CRED_HOST, 80);
	assert_false(rig_must_answer(3));
	cred_ask(4, CRED_HOST, "TRACE");
	assert_false(rig_must_answer(4));
	assert_int_equal(cred_n_origins, 0);
	rig_must_be_quiet(rig_egress);
	/* without the item it is an ordinary host */
	cred_n_items = 0;
	cred_changed();
	rig_ask(5, EDGE_ASK_HTTP, CRED_HOST, 80);
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_true(rig_must_answer(5));
}

static void edge_and_origin_are_joined(void **state)
{
	struct cred_run run = cred_run_up();
	int second;
	char buf[8];

	assert_int_equal(write(run.edge_fd, "there", 5), 5);
	assert_int_equal(read(run.origin_fd, buf, sizeof(buf)), 5);
	fd_close(&run.edge_fd);
	assert_int_equal(read(run.origin_fd, buf, sizeof(buf)), 0); /* the keeper has no copy */
	/* the next request uses the same process */
	run.edge_fd = cred_must_open(2);
	(void)cred_must_get_open(run.origin, &second);
	fd_close(&second);
	assert_int_equal(cred_n_origins, 1);
	cred_run_down(&run);
}

static void the_value_goes_from_the_vault_to_origin(void **state)
{
	struct cred_run run = cred_run_up();
	struct origin_result result = {
		.status = 200, .used = true, .serial = CRED_SERIAL, .slot = "api"};
	const struct vault_done done = {.number = CRED_SERIAL};
	struct err err = {0};
	struct seen s;
	char buf[16];

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	assert_true(rig_msg.fd >= 0);
	cred_need(run.origin, 9, 1);
	cred_must_get_release("demo", CRED_SERIAL);
	s = cred_last_use(); /* the record precedes the value */
	assert_string_equal(s.action, "release");
	assert_string_equal(s.rule, "demo");
	assert_int_equal(s.decision, AUDIT_ALLOW);
	assert_non_null(strstr(s.reason, "127.0.0.1, certificate 010203"));
	assert_int_equal(write(rig_msg.fd, "frame", 5), 5);
	fd_close(&rig_msg.fd);
	assert_int_equal(vault_send_done(cred_vault, rig_msg.id, &done), 0);
	assert_true(cred_must_get_value(run.origin, 9).given);
	assert_int_equal(read(rig_msg.fd, buf, sizeof(buf)), 5);
	assert_int_equal(read(rig_msg.fd, buf, sizeof(buf)), 0);
	assert_int_equal(origin_send_result(run.origin, run.exchange, &result), 0);
	RIG_UNTIL(rig_k.origins->list[0].exchanges[0].has_result);
	s = cred_last_use();
	assert_string_equal(s.action, "use");
	assert_non_null(strstr(s.reason, "used in slot api, serial 41; status 200"));
	assert_int_equal(suspend_begin_checkpoint(&rig_k, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "a request with a credential is in progress"));
	assert_int_equal(origin_send_closed(run.origin, run.exchange, 1, 2), 0);
	RIG_UNTIL(rig_k.origins->list[0].n_exchanges == 0);
	assert_true(rig_k.origins->list[0].worker.alive);
	assert_false(origins_are_busy(&rig_k));
	assert_int_equal(cred_last_use().n, 2);
	cred_run_down(&run);
}

/* If the vault refuses, origin gets the reason and keeps running. */
static void a_vault_that_says_no(void **state)
{
	struct cred_run run = cred_run_up();
	const struct vault_done stale = {.code = -ESTALE, .text = "it was changed"};
	struct origin_value value;

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	cred_need(run.origin, 9, 1);
	cred_must_get_release("demo", CRED_SERIAL);
	assert_int_equal(vault_send_done(cred_vault, rig_msg.id, &stale), 0);
	value = cred_must_get_value(run.origin, 9);
	assert_false(value.given);
	assert_string_equal(value.text, "it was changed");
	assert_int_equal(cred_last_use().decision, AUDIT_DENY);
	/* and may request it again */
	cred_need(run.origin, 10, 1);
	cred_must_get_release("demo", CRED_SERIAL);
	assert_true(rig_k.origins->list[0].worker.alive);
	cred_run_down(&run);
}

static void must_refuse_need(int origin, uint32_t id, uint32_t conn, const char *why)
{
	struct origin_value value;

	cred_need(origin, id, conn);
	value = cred_must_get_value(origin, id);
	assert_false(value.given);
	if (!strstr(value.text, why))
		fail_msg("'%s' is not in '%s'", why, value.text);
	assert_int_equal(cred_last_use().decision, AUDIT_DENY);
	rig_must_be_quiet(cred_vault);
}

static void a_need_that_is_not_for_a_connection_of_ours(void **state)
{
	struct cred_run run = cred_run_up();
	const struct origin_need none = {.conn = 1};

	must_refuse_need(run.origin, 1, 7, release_text(RELEASE_CERT));
	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	must_refuse_need(run.origin, 2, 2, release_text(RELEASE_CERT));
	assert_int_equal(origin_send_need(run.origin, 3, &none), 0); /* no certificate */
	assert_false(cred_must_get_value(run.origin, 3).given);
	rig_must_be_quiet(cred_vault);
	cred_run_down(&run);
}

static void a_need_without_a_request(void **state)
{
	struct cred_run run = cred_run_up();
	struct origin_result result = {.outcome = ORIGIN_GONE};

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	assert_int_equal(origin_send_result(run.origin, run.exchange, &result), 0);
	must_refuse_need(run.origin, 1, 1, release_text(RELEASE_NAMES));
	cred_run_down(&run);
}

/* The current policy applies, though the connection is old. */
static void a_need_after_the_address_was_denied(void **state)
{
	struct cred_run run = cred_run_up();
	AUTO_FREE char *text = xasprintf("policy 1\nallow network " CRED_HOST ":1-65535\nend\n");

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	gate_set_policy(rig_k.gate, policy_load(slice_from_str(text), "policy", "demo"));
	must_refuse_need(run.origin, 1, 1, release_text(RELEASE_ADDRESS));
	gate_set_policy(
		rig_k.gate, policy_load(slice_from_str("policy 1\nend\n"), "policy", "demo"));
	must_refuse_need(run.origin, 2, 1, release_text(RELEASE_HOST));
	cred_run_down(&run);
}

static void without_a_record_there_is_no_release(void **state)
{
	struct cred_run run = cred_run_up();
	struct origin_value value;

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	audit_set_max_bytes(rig_k.record->audit, 1);
	cred_need(run.origin, 1, 1);
	value = cred_must_get_value(run.origin, 1);
	assert_false(value.given);
	assert_string_equal(value.text, release_text(RELEASE_RECORD));
	rig_must_be_quiet(cred_vault);
	/* nor is anything intercepted */
	cred_ask(3, CRED_HOST, "GET");
	assert_false(rig_must_answer(3));
	rig_ask(4, EDGE_ASK_TUNNEL, CRED_HOST, cred_port);
	assert_false(rig_must_answer(4));
	assert_false(rig_verdict.opened);
	cred_run_down(&run);
}

/* ---- connections ---- */

static void an_address_that_no_rule_names(void **state)
{
	struct cred_run run = cred_run_up();
	AUTO_FREE char *text = xasprintf("policy 1\nallow network " CRED_HOST ":1-65535\nend\n");

	gate_set_policy(rig_k.gate, policy_load(slice_from_str(text), "policy", "demo"));
	assert_int_equal(cred_want(run.origin, 1), EGRESS_DENIED_ADDRESS);
	assert_int_equal(rig_msg.fd, -1);
	assert_true(rig_k.egress->worker.alive); /* its policy may be a moment older */
	assert_non_null(strstr(rig_last_record().reason, "127.0.0.1"));
	cred_run_down(&run);
}

static void pins_and_the_proxy_say_where(void **state)
{
	struct cred_run run = cred_run_up();
	struct egress_config *config = &rig_k.egress->config;

	gate_set_policy(rig_k.gate,
		policy_load(slice_from_str("policy 1\nallow network " CRED_HOST ":1-65535\nend\n"),
			"policy", "demo"));
	config->n_pins = 1;
	config->pins[0] = (struct egress_pin){
		.host = CRED_HOST, .port = cred_port, .addr = "127.0.0.1", .addr_port = cred_port};
	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	config->pins[0].addr_port++;
	assert_int_equal(cred_want(run.origin, 2), EGRESS_DENIED_ADDRESS);
	config->pins[0].addr_port--;
	(void)!str_copy(config->pins[0].addr, sizeof(config->pins[0].addr), "127.0.0.2");
	assert_int_equal(cred_want(run.origin, 3), EGRESS_DENIED_ADDRESS);
	config->n_pins = 0;
	(void)!str_copy(config->proxy_host, sizeof(config->proxy_host), "proxy.example");
	config->proxy_port = cred_port;
	assert_int_equal(cred_want(run.origin, 4), EGRESS_CONNECTED);
	config->proxy_port++;
	assert_int_equal(cred_want(run.origin, 5), EGRESS_DENIED_ADDRESS);
	cred_run_down(&run);
}

static void what_egress_meets_is_said(void **state)
{
	struct cred_run run = cred_run_up();
	const struct egress_result result = {EGRESS_REFUSED, "127.0.0.1", "connection refused"};
	uint32_t exchange;

	assert_int_equal(chan_send_plain(run.origin, ORIGIN_WANT, 1, -1), 0);
	exchange = cred_must_get_socket_open();
	assert_int_equal(egress_send_result(rig_egress, exchange, &result, -1), 0);
	assert_int_equal(cred_must_get_socket(run.origin, 1), EGRESS_REFUSED);
	/* egress exits in between */
	assert_int_equal(chan_send_plain(run.origin, ORIGIN_WANT, 2, -1), 0);
	(void)cred_must_get_socket_open();
	egress_kill(&rig_k);
	assert_int_equal(cred_must_get_socket(run.origin, 2), EGRESS_UNREACHABLE);
	/* and is back before its grace is over */
	rig_k.egress->lost_ms = clock_mono_ms();
	assert_int_equal(chan_send_plain(run.origin, ORIGIN_WANT, 3, -1), 0);
	rig_must_be_quiet(run.origin);
	rig_bring_egress_up();
	(void)cred_must_get_socket_open();
	egress_kill(&rig_k);
	assert_int_equal(cred_must_get_socket(run.origin, 3), EGRESS_UNREACHABLE);
	rig_k.egress->lost_ms = 1;
	assert_int_equal(chan_send_plain(run.origin, ORIGIN_WANT, 4, -1), 0);
	assert_int_equal(cred_must_get_socket(run.origin, 4), EGRESS_UNREACHABLE);
	cred_run_down(&run);
}

/* ---- exit ---- */

static void a_removed_credential_kills_its_origin(void **state)
{
	struct cred_run run = cred_run_up();
	pid_t pid = rig_k.origins->list[0].worker.child.pid;
	struct seen s;
	char none;

	cred_n_items = 0;
	cred_changed();
	assert_false(rig_k.origins->list[0].worker.alive);
	assert_int_equal(kill(pid, 0), -1);
	s = cred_last_use(); /* the request in flight has its record */
	assert_non_null(strstr(s.reason, "the credential was changed or removed"));
	fd_close(&run.origin_fd);
	assert_int_equal(recv(run.edge_fd, &none, 1, 0), 0);
	/* a second request on the connection that lost its binding */
	cred_ask(2, CRED_HOST, "GET");
	assert_false(rig_must_answer(2));
	assert_string_equal(
		rig_verdict.reason, "the credential for " CRED_HOST " was removed: reconnect");
	assert_int_equal(cred_n_origins, 1);
	cred_run_down(&run);
}

static void another_value_is_another_origin(void **state)
{
	struct cred_run run = cred_run_up(), next;

	cred_changed(); /* unchanged: nothing happens */
	assert_true(rig_k.origins->list[0].worker.alive);
	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	cred_need(run.origin, 1, 1);
	cred_must_get_release("demo", CRED_SERIAL);
	cred_items[0].serial++;
	cred_changed(); /* while it is being released */
	assert_false(rig_k.origins->list[0].worker.alive);
	next = cred_run_up();
	assert_int_equal(cred_n_origins, 2);
	assert_int_equal(cred_want(next.origin, 1), EGRESS_CONNECTED);
	cred_need(next.origin, 1, 1);
	cred_must_get_release("demo", CRED_SERIAL + 1);
	cred_run_down(&run);
	cred_run_down(&next);
}

static void the_policy_ends_an_origin(void **state)
{
	struct cred_run run = cred_run_up();

	rig_set_policy("allow network good.example\n");
	rig_reload(5, "demo");
	RIG_UNTIL(!rig_k.origins->list[0].worker.alive);
	cred_ask(2, CRED_HOST, "GET");
	assert_false(rig_must_answer(2));
	cred_run_down(&run);
}

/* A rule about the address of its connection, or a changed pin. */
static void the_policy_of_an_address_ends_an_origin(void **state)
{
	struct cred_run run = cred_run_up();

	assert_int_equal(cred_want(run.origin, 1), EGRESS_CONNECTED);
	origins_on_timer(&rig_k);
	assert_true(rig_k.origins->list[0].worker.alive);
	gate_set_policy(rig_k.gate,
		policy_load(slice_from_str("policy 1\nallow network " CRED_HOST ":1-65535\nend\n"),
			"policy", "demo"));
	origins_on_timer(&rig_k);
	assert_false(rig_k.origins->list[0].worker.alive);
	cred_run_down(&run);
}

static void an_idle_one_ends(void **state)
{
	struct cred_run run = cred_run_up();
	struct origin *o = &rig_k.origins->list[0];

	o->used_ms -= KEEPER_ORIGIN_IDLE_MS;
	origins_on_timer(&rig_k);
	assert_true(o->worker.alive); /* it has an open request */
	assert_int_equal(origin_send_closed(run.origin, run.exchange, 0, 0), 0);
	RIG_UNTIL(o->n_exchanges == 0);
	origins_on_timer(&rig_k);
	assert_true(o->worker.alive);
	o->used_ms -= KEEPER_ORIGIN_IDLE_MS;
	origins_on_timer(&rig_k);
	assert_false(o->worker.alive);
	assert_int_equal(rig_k.origins->n_blamed, 0);
	cred_run_down(&run);
}

static int must_open_many(uint32_t i)
{
	char host[64];

	(void)snprintf(host, sizeof(host), "h%u.many.example", i);
	cred_ask(i, host, "GET");
	return rig_must_answer(i) ? TAKE_FD(rig_channel) : -1;
}

static void at_most_so_many_and_the_least_used_ends(void **state)
{
	int fds[KEEPER_MAX_ORIGINS + 1], origin, fd;

	rig_bring_egress_up();
	cred_vault_up();
	for (uint32_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		fds[i] = must_open_many(i);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(cred_n_origins, KEEPER_MAX_ORIGINS);
	/* all have a request: the next host is refused, and none is killed */
	assert_true(must_open_many(KEEPER_MAX_ORIGINS) < 0);
	assert_non_null(strstr(rig_verdict.reason, "32 intercepted hosts"));
	/* two are idle; the least recently used one makes room */
	for (uint32_t i = 5; i < 7; i++) {
		origin = cred_origins[i];
		assert_int_equal(chan_send_hello(origin, SBX_BUILD), 0);
		rig_must_get(origin, ORIGIN_CONFIG);
		rig_must_get(origin, ORIGIN_ROOTS);
		cred_must_get_policy(origin);
		assert_int_equal(
			origin_send_closed(origin, cred_must_get_open(origin, &fd), 0, 0), 0);
		RIG_UNTIL(rig_k.origins->list[i].n_exchanges == 0);
		fd_close(&fd);
	}
	rig_k.origins->list[5].used_ms = 2;
	rig_k.origins->list[6].used_ms = 1;
	fds[KEEPER_MAX_ORIGINS] = must_open_many(100);
	assert_true(fds[KEEPER_MAX_ORIGINS] >= 0);
	assert_string_equal(rig_k.origins->list[6].host, "h100.many.example");
	assert_string_equal(rig_k.origins->list[5].host, "h5.many.example");
	assert_true(rig_k.origins->list[5].worker.alive);
	for (size_t i = 0; i <= KEEPER_MAX_ORIGINS; i++)
		fd_close(&fds[i]);
}

/* A burst larger than the socket buffer waits for this origin and delays no other. */
static void an_origin_that_does_not_read(void **state)
{
	struct cred_run run = cred_run_up();
	AUTO_CLOSE int a = -1, b = -1;
	int fd, edge_fds[ORIGIN_MAX_OPEN];

	for (uint32_t i = 1; i < ORIGIN_MAX_OPEN; i++)
		edge_fds[i] = cred_must_open(i);
	cred_ask(999, CRED_HOST, "GET");
	assert_false(rig_must_answer(999));
	assert_non_null(strstr(rig_verdict.reason, "too many concurrent requests"));
	(void)rig_must_open(1001, &a, &b); /* good.example */
	for (uint32_t i = 1; i < ORIGIN_MAX_OPEN; i++) {
		(void)cred_must_get_open(run.origin, &fd);
		fd_close(&fd);
		fd_close(&edge_fds[i]);
	}
	rig_must_be_quiet(run.origin);
	cred_run_down(&run);
}

/* ---- CA certificates for servers ---- */

static void put_extra(const char *path, const char *text)
{
	AUTO_FREE char *pem = xasprintf("-----BEGIN CERTIFICATE-----\n%s", text);

	assert_int_equal(file_save(path, slice_from_str(pem), NULL), 0);
	assert_int_equal(settings_change(SETTINGS_NETWORK_EXTRA_CA, path, NULL), 0);
}

/* The file ends with the user's certificate, regardless of the system's bundle. */
static void roots_must_end_with(const char *text)
{
	char end[64] = "";
	off_t n = lseek(rig_k.origins->roots, 0, SEEK_END);

	assert_true(n > 1000);
	assert_int_equal(pread(rig_k.origins->roots, end, strlen(text), n - (off_t)strlen(text)),
		(ssize_t)strlen(text));
	assert_string_equal(end, text);
	assert_true(fcntl(rig_k.origins->roots, F_GET_SEALS) & F_SEAL_WRITE);
}

static void other_roots_end_the_origins(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/extra.pem", rig_dir);
	AUTO_FREE char *copy = settings_net_ca_copy();
	struct cred_run run = cred_run_up(), next;

	roots_read(&rig_k, "");
	assert_true(rig_k.origins->list[0].worker.alive); /* unchanged */
	put_extra(path, "own certificate one");
	roots_read(&rig_k, path);
	assert_false(rig_k.origins->list[0].worker.alive);
	roots_must_end_with("own certificate one");
	next = cred_run_up();
	roots_read(&rig_k, path);
	assert_true(rig_k.origins->list[0].worker.alive);
	put_extra(path, "own certificate two"); /* of the same length */
	roots_read(&rig_k, path);
	assert_false(rig_k.origins->list[0].worker.alive);
	roots_must_end_with("own certificate two");
	/* Only the copy is used, not the source. If the copy is missing, the certificates must not
	 * be reduced. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	roots_read(&rig_k, path);
	roots_must_end_with("own certificate two");
	assert_int_equal(unlink(copy), 0);
	assert_int_equal(mkfifo(copy, 0600), 0);
	roots_read(&rig_k, path);
	cred_ask(5, CRED_HOST, "GET");
	assert_false(rig_must_answer(5));
	assert_non_null(strstr(rig_verdict.reason, "cannot verify servers"));
	cred_run_down(&run);
	cred_run_down(&next);
}

/* ---- the real start ---- */

static void the_program_has_nothing_but_its_channel(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/sbx-origin", rig_dir);
	static const char script[] = "#!/bin/sh\nexec sleep 60\n";
	struct jail_child child;
	char proc[64], buf[4096];
	struct err err = {0};
	AUTO_CLOSE int env = -1;
	int fds[2], extra = open("/dev/null", O_RDONLY); /* without close-on-exec */

	assert_int_equal(ipc_pair(fds), 0);
	assert_true(hands_origin(&rig_k, fds[1], &child, &err) < 0);
	assert_int_equal(file_save(path, slice_from_str(script), NULL), 0);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(hands_origin(&rig_k, fds[1], &child, &err), 0);
	(void)usleep(300000);
	(void)snprintf(proc, sizeof(proc), "/proc/%d/fd/3", (int)child.pid);
	assert_true(readlink(proc, buf, sizeof(buf)) > 0);
	(void)snprintf(proc, sizeof(proc), "/proc/%d/fd/%d", (int)child.pid, extra);
	assert_int_equal(readlink(proc, buf, sizeof(buf)), -1);
	(void)snprintf(proc, sizeof(proc), "/proc/%d/environ", (int)child.pid);
	env = open(proc, O_RDONLY);
	memset(buf, 0, sizeof(buf));
	assert_true(read(env, buf, sizeof(buf) - 1) >= 0);
	assert_null(strstr(buf, "XDG_"));
	jail_child_kill(&child);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	fd_close(&extra);
}

/* ---- the CA ---- */

static void must_trust(const char *pem, const char *env)
{
	struct guest_trust trust = {0};
	static uint8_t body[GUEST_MAX_BODY];
	char path[EDGE_MAX_PATH];
	AUTO_CLOSE int fd = -1;
	uint8_t reply[64];
	struct wr wr = wr_init(reply, sizeof(reply));
	size_t n = 0;
	ssize_t r;

	rig_must_get(rig_edge, EDGE_OPEN);
	assert_int_equal(edge_get_open(&rig_msg, path), 0);
	assert_string_equal(path, GUEST_PATH_TRUST);
	fd = TAKE_FD(rig_msg.fd);
	while ((r = read(fd, body + n, sizeof(body) - n)) > 0)
		n += (size_t)r;
	assert_int_equal(guest_get_trust(slice_of(body, n), &trust), 0);
	assert_string_equal(trust.ca_pem, pem);
	assert_int_equal(trust.n_env, env ? 1 : 0);
	if (env)
		assert_string_equal(trust.env[0], env);
	guest_trust_done(&trust);
	assert_int_equal(guest_put_reply(&wr, true, ""), 0);
	assert_int_equal(fd_write_all(fd, reply, wr.n), 0);
	fd_close(&fd);
	RIG_UNTIL(!rig_k.trust->is_asked);
}

#define PEM "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

static void the_guest_is_told_what_to_trust(void **state)
{
	const struct edge_ca ca = {.pem = PEM, .n_saved = 3, .saved = "key"};

	edge_kill(&rig_k);
	rig_put_edge(EDGE_PHASE_CONNECT);
	assert_int_equal(edge_send_ca(rig_edge, &ca), 0);
	RIG_UNTIL(rig_k.trust->has_ca);
	assert_int_equal(chan_send_plain(rig_edge, EDGE_READY, 0, -1), 0);
	must_trust(PEM, NULL);
	cred_vault_up();
	must_trust(PEM, "DEMO_KEY=dk-proxy-managed-0123");
	cred_n_items = 0;
	cred_changed();
	must_trust(PEM, NULL);
	/* a second time is a protocol violation */
	edge_kill(&rig_k);
	rig_k.trust->is_said = false;
	rig_put_edge(EDGE_PHASE_CONNECT);
	assert_int_equal(edge_send_ca(rig_edge, &ca), 0);
	RIG_UNTIL(rig_k.trust->is_said);
	assert_true(rig_k.edge->worker.alive);
	assert_int_equal(edge_send_ca(rig_edge, &ca), 0);
	RIG_UNTIL(!rig_k.edge->worker.alive);
	assert_int_equal(rig_k.edge->worker.violations, 1);
	trust_wipe(&rig_k);
	assert_int_equal(rig_k.trust->ca.saved[0], 0);
	assert_false(rig_k.trust->has_ca);
}

/* A sandbox runs when its guest has answered /trust, not before. */
static void trust_comes_before_the_sandbox_runs(void **state)
{
	const struct edge_ca ca = {.pem = PEM, .n_saved = 3, .saved = "key"};
	const struct guest_reply ok = {.ok = true};

	edge_kill(&rig_k);
	rig_put_edge(EDGE_PHASE_CONNECT);
	assert_int_equal(edge_send_ca(rig_edge, &ca), 0);
	RIG_UNTIL(rig_k.trust->has_ca);
	rig_k.edge->worker.phase = EDGE_PHASE_RUN;
	rig_k.state.phase = KEEPER_STARTING;
	start_setup_ask.on_reply(&rig_k, &ok);
	assert_int_equal(rig_k.state.phase, KEEPER_STARTING);
	must_trust(PEM, NULL);
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
	/* without a CA nothing is awaited */
	trust_wipe(&rig_k);
	rig_k.state.phase = KEEPER_STARTING;
	start_setup_ask.on_reply(&rig_k, &ok);
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRED_TEST(what_is_bound_is_opened),
		CRED_TEST(plain_text_is_refused),
		CRED_TEST(edge_and_origin_are_joined),
		CRED_TEST(the_value_goes_from_the_vault_to_origin),
		CRED_TEST(a_vault_that_says_no),
		CRED_TEST(a_need_that_is_not_for_a_connection_of_ours),
		CRED_TEST(a_need_without_a_request),
		CRED_TEST(a_need_after_the_address_was_denied),
		CRED_TEST(without_a_record_there_is_no_release),
		CRED_TEST(an_address_that_no_rule_names),
		CRED_TEST(pins_and_the_proxy_say_where),
		CRED_TEST(what_egress_meets_is_said),
		CRED_TEST(a_removed_credential_kills_its_origin),
		CRED_TEST(another_value_is_another_origin),
		CRED_TEST(the_policy_ends_an_origin),
		CRED_TEST(the_policy_of_an_address_ends_an_origin),
		CRED_TEST(an_idle_one_ends),
		CRED_TEST(at_most_so_many_and_the_least_used_ends),
		CRED_TEST(an_origin_that_does_not_read),
		CRED_TEST(other_roots_end_the_origins),
		CRED_TEST(the_program_has_nothing_but_its_channel),
		CRED_TEST(the_guest_is_told_what_to_trust),
		CRED_TEST(trust_comes_before_the_sandbox_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
