/* SPDX-License-Identifier: Apache-2.0 */
#include "cred_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/rules/audit/audit_read.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/ipc/vault_chan.h"

int cred_vault, cred_listener;
uint16_t cred_port;
int cred_origins[CRED_MAX_ORIGINS];
size_t cred_n_origins;
struct vault_item cred_items[8];
size_t cred_n_items;

static int spawn(struct keeper *k, int sock, struct jail_child *ret, struct err *err)
{
	(void)k;
	(void)err;
	assert_true(cred_n_origins < CRED_MAX_ORIGINS);
	cred_origins[cred_n_origins++] = dup(sock);
	*ret = rig_false_child();
	return 0;
}

static void listen_tcp(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);

	cred_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(cred_listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(cred_listener, 64), 0);
	assert_int_equal(getsockname(cred_listener, (struct sockaddr *)&at, &n), 0);
	cred_port = ntohs(at.sin_port);
}

int cred_connect(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(cred_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static void write_files(void)
{
	AUTO_FREE char *dir = xasprintf("%s/services", rig_dir);
	AUTO_FREE char *path = xasprintf("%s/demo.conf", dir);
	AUTO_FREE char *text = xasprintf(
		"service 1\nname demo\nabout A test\nenv DEMO_KEY dk-proxy-managed-****\nslot api\n"
		"host " CRED_HOST ":%u,*.many.example:%u\nheader authorization Bearer %%s\nend\n",
		cred_port, cred_port);
	AUTO_FREE char *rules = xasprintf("allow network " CRED_HOST ":1-65535 id r1\n"
					  "allow network *.many.example:%u\n"
					  "allow network 127.0.0.0/8:%u\n"
					  "allow network good.example\n",
		cred_port, cred_port);

	assert_int_equal(paths_make(dir, NULL), 0);
	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
	rig_set_policy(rules);
	rig_reload(99, "demo");
	rig_must_get(rig_sbxd, KEEPER_DONE);
}

int cred_up(void **state)
{
	int r = rig_up(state);

	cred_vault = -1;
	cred_n_origins = cred_n_items = 0;
	memset(cred_items, 0, sizeof(cred_items));
	rig_k.origins->spawn = spawn;
	listen_tcp();
	write_files();
	(void)cred_add_item("demo", CRED_SERIAL);
	return r;
}

int cred_down(void **state)
{
	fd_close(&cred_vault);
	fd_close(&cred_listener);
	for (size_t i = 0; i < cred_n_origins; i++)
		fd_close(&cred_origins[i]);
	return rig_down(state);
}

/* ---- the vault ---- */

struct vault_item *cred_add_item(const char *name, uint64_t serial)
{
	struct vault_item *item = &cred_items[cred_n_items++];

	*item = (struct vault_item){.serial = serial};
	(void)!str_copy(item->meta.name, sizeof(item->meta.name), name);
	return item;
}

void cred_accept(void)
{
	int pair[2];

	if (rig_k.vault->sock < 0)
		rig_must_get(rig_sbxd, KEEPER_WANT_VAULT);
	fd_close(&cred_vault);
	assert_int_equal(ipc_pair(pair), 0);
	cred_vault = pair[0];
	assert_int_equal(chan_send_plain(rig_sbxd, KEEPER_VAULT, 0, pair[1]), 0);
	(void)close(pair[1]);
	RIG_UNTIL(rig_k.vault->sock >= 0);
}

void cred_answer_list(void)
{
	const struct vault_done done = {0};
	uint32_t id;

	rig_must_get(cred_vault, VAULT_LIST);
	id = rig_msg.id;
	for (size_t i = 0; i < cred_n_items; i++)
		assert_int_equal(vault_send_item(cred_vault, id, &cred_items[i]), 0);
	assert_int_equal(vault_send_done(cred_vault, id, &done), 0);
	RIG_UNTIL(rig_k.vault->list_id != id);
}

void cred_vault_up(void)
{
	const struct vault_done done = {0};

	if (rig_k.vault->sock < 0)
		vault_start(&rig_k);
	cred_accept();
	assert_int_equal(chan_send_hello(cred_vault, SBX_BUILD), 0);
	rig_must_get(cred_vault, VAULT_WATCH);
	assert_int_equal(vault_send_done(cred_vault, rig_msg.id, &done), 0);
	cred_answer_list();
	assert_true(rig_k.vault->is_current);
}

void cred_changed(void)
{
	assert_int_equal(vault_send_changed(cred_vault, 2), 0);
	cred_answer_list();
}

/* ---- requests ---- */

void cred_ask(uint32_t id, const char *host, const char *method)
{
	struct edge_ask a = {
		.kind = EDGE_ASK_HTTP, .port = cred_port, .tls = true, .target = "/v1?q=a"};

	(void)!str_copy(a.host, sizeof(a.host), host);
	(void)!str_copy(a.method, sizeof(a.method), method);
	assert_int_equal(edge_send_ask(rig_edge, id, &a), 0);
}

int cred_must_open(uint32_t id)
{
	cred_ask(id, CRED_HOST, "GET");
	if (!rig_must_answer(id))
		fail_msg("%s", rig_verdict.reason);
	assert_false(rig_verdict.opened);
	assert_int_equal(rig_msg.fd, -1);
	assert_true(rig_verdict.stream && rig_verdict.channel == rig_channel_id);
	return TAKE_FD(rig_channel);
}

void cred_must_get_policy(int origin)
{
	for (unsigned i = 0; i < POLICY_N_PARTS; i++) {
		uint8_t part;

		rig_must_get(origin, ORIGIN_POLICY);
		assert_int_equal(origin_get_policy(&rig_msg, &part), 0);
		assert_int_equal(part, i);
	}
}

int cred_origin_up(void)
{
	int origin = cred_origins[cred_n_origins - 1];
	struct origin_config config;
	char text[1024] = "";

	assert_int_equal(chan_send_hello(origin, SBX_BUILD), 0);
	rig_must_get(origin, ORIGIN_CONFIG);
	assert_int_equal(origin_get_config(&rig_msg, &config), 0);
	assert_int_equal(config.port, cred_port);
	assert_int_equal(config.has, ORIGIN_HAS_SECRET);
	assert_true(pread(rig_msg.fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "name demo\n"));
	assert_int_equal(write(rig_msg.fd, "x", 1), -1);
	rig_must_get(origin, ORIGIN_ROOTS);
	assert_true(pread(rig_msg.fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "BEGIN CERTIFICATE"));
	cred_must_get_policy(origin);
	return origin;
}

static struct ticket last_ticket;

uint32_t cred_must_get_open(int origin, int *ret_fd)
{
	uint32_t id;

	rig_must_get(origin, ORIGIN_OPEN);
	assert_int_equal(origin_get_open(&rig_msg, &last_ticket), 0);
	id = rig_msg.id;
	*ret_fd = -1;
	if (rig_has_next(origin, ORIGIN_CHANNEL)) {
		rig_must_get(origin, ORIGIN_CHANNEL);
		assert_int_equal(chan_get_plain(&origin_chan, &rig_msg, ORIGIN_CHANNEL), 0);
		*ret_fd = TAKE_FD(rig_msg.fd);
	}
	return id;
}

/* Of what cred_ask asks. */
static void check_ticket(void)
{
	const struct ticket_request asked = {.tls = true,
		.method = slice_from_str("GET"),
		.host = slice_from_str(CRED_HOST),
		.port = cred_port,
		.path = slice_from_str("/v1"),
		.query = slice_from_str("q=a"),
		.has_query = true};

	assert_true(ticket_is_for(&last_ticket, &asked));
}

struct cred_run cred_run_up(void)
{
	struct cred_run run;

	if (rig_k.vault->sock < 0)
		cred_vault_up();
	if (!rig_k.egress->worker.alive)
		rig_bring_egress_up();
	run.edge_fd = cred_must_open(1000 + (uint32_t)cred_n_origins);
	run.origin = cred_origin_up();
	run.exchange = cred_must_get_open(run.origin, &run.origin_fd);
	assert_true(run.origin_fd >= 0);
	assert_int_equal(run.exchange, rig_verdict.stream);
	check_ticket();
	return run;
}

void cred_run_down(struct cred_run *run)
{
	fd_close(&run->edge_fd);
	fd_close(&run->origin_fd);
}

uint32_t cred_must_get_socket_open(void)
{
	struct egress_open open;

	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_int_equal(egress_get_open(&rig_msg, &open), 0);
	assert_int_equal(open.kind, EGRESS_SOCKET);
	assert_int_equal(open.port, cred_port);
	return rig_msg.id;
}

enum egress_outcome cred_must_get_socket(int origin, uint32_t id)
{
	struct egress_result result;

	rig_must_get(origin, ORIGIN_SOCKET);
	assert_int_equal(rig_msg.id, id);
	assert_int_equal(origin_get_socket(&rig_msg, &result), 0);
	return result.outcome;
}

enum egress_outcome cred_want(int origin, uint32_t id)
{
	const struct egress_result result = {EGRESS_CONNECTED, "127.0.0.1", "connected"};
	AUTO_CLOSE int fd = cred_connect();
	uint32_t exchange;

	assert_int_equal(chan_send_plain(origin, ORIGIN_WANT, id, -1), 0);
	exchange = cred_must_get_socket_open();
	assert_int_equal(egress_send_result(rig_egress, exchange, &result, fd), 0);
	assert_int_equal(egress_send_closed(rig_egress, exchange, 0, 0), 0);
	return cred_must_get_socket(origin, id);
}

void cred_need(int origin, uint32_t id, uint32_t conn)
{
	const struct origin_need need = {.conn = conn, .cert = {1, 2, 3}};

	assert_int_equal(origin_send_need(origin, id, &need), 0);
}

void cred_must_get_release(const char *name, uint64_t serial)
{
	char got[VAULT_MAX_NAME];
	uint64_t got_serial;

	rig_must_get(cred_vault, VAULT_RELEASE);
	assert_int_equal(vault_get_release(&rig_msg, got, &got_serial), 0);
	assert_string_equal(got, name);
	assert_int_equal(got_serial, serial);
}

struct origin_value cred_must_get_value(int origin, uint32_t id)
{
	struct origin_value value;

	rig_must_get(origin, ORIGIN_VALUE);
	assert_int_equal(rig_msg.id, id);
	assert_int_equal(origin_get_value(&rig_msg, &value), 0);
	return value;
}

static int see(void *arg, const struct audit_record *rec, struct slice line)
{
	struct seen *s = arg;

	(void)line;
	if (rec->ev.kind != AUDIT_KIND_CREDENTIAL_USE)
		return 0;
	s->n++;
	s->decision = rec->ev.decision;
	(void)!slice_to_cstr(rec->ev.rule, s->rule, sizeof(s->rule));
	(void)!slice_to_cstr(rec->ev.reason, s->reason, sizeof(s->reason));
	(void)!slice_to_cstr(rec->ev.action, s->action, sizeof(s->action));
	return 0;
}

struct seen cred_last_use(void)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/audit", rig_dir);
	struct seen s = {0};
	struct audit_expect expect = {
		.pub = audit_key_pub(rig_k.record->key), .sandbox = RIG_ID, .fn = see, .arg = &s};
	struct audit_reader *rd = NULL;

	(void)rig_run_until(-1, 20);
	assert_int_equal(audit_reader_open(path, RIG_ID, &expect, &rd, NULL), 0);
	assert_true(audit_reader_pump(rd, NULL) >= 0);
	audit_reader_close(rd);
	return s;
}
