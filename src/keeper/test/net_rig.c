/* SPDX-License-Identifier: Apache-2.0 */
#include "net_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/rules/audit/audit_read.h"
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/program/run_places.h"
#include "lib/rules/gate/test/gate_free.h"
#include "lib/rules/policy/test/policy_text.h"

#define EV_TEST 255

struct keeper rig_k;
int rig_edge, rig_egress, rig_sbxd;
struct ipc_msg rig_msg;
struct edge_verdict rig_verdict;
char rig_dir[64];

/* ---- the rig ---- */

struct jail_child rig_false_child(void)
{
	struct jail_child c = {.notify_fd = -1};
	int fds[2];
	char none;

	assert_int_equal(pipe(fds), 0);
	c.pid = fork();
	if (c.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close_range(3, ~0u, 0); /* the log's lock among them */
		for (;;)
			(void)pause();
	}
	fd_close(&fds[1]);
	assert_int_equal(read(fds[0], &none, 1), 0);
	fd_close(&fds[0]);
	c.pidfd = pidfd_open(c.pid, 0);
	assert_true(c.pidfd >= 0);
	return c;
}

static void watch(int sock, int pidfd, uint8_t on_msg, uint8_t on_end, uint32_t gen)
{
	struct loop_key key = {.kind = on_msg, .gen = gen & 0xffffff};

	assert_int_equal(loop_add(&rig_k.loop, sock, EPOLLIN, key), 0);
	key.kind = on_end;
	assert_int_equal(loop_add(&rig_k.loop, pidfd, EPOLLIN, key), 0);
}

void rig_put_edge(enum edge_phase phase)
{
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	fd_close(&rig_edge);
	rig_k.edge->worker.sock = fds[0];
	rig_edge = fds[1];
	rig_k.edge->worker.child = rig_false_child();
	rig_k.edge->worker.alive = true;
	rig_k.edge->worker.phase = phase;
	watch(rig_k.edge->worker.sock, rig_k.edge->worker.child.pidfd, EV_EDGE, EV_EDGE_END,
		rig_k.edge->worker.gen);
}

void rig_put_egress(void)
{
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	fd_close(&rig_egress);
	loop_timer_clear(&rig_k.loop, &rig_k.egress->worker.timer);
	rig_k.egress->worker.sock = fds[0];
	rig_egress = fds[1];
	rig_k.egress->worker.child = rig_false_child();
	rig_k.egress->worker.alive = true;
	rig_k.egress->worker.phase = EGRESS_PHASE_START;
	rig_k.egress->worker.started_ms = clock_mono_ms();
	watch(rig_k.egress->worker.sock, rig_k.egress->worker.child.pidfd, EV_EGRESS, EV_EGRESS_END,
		rig_k.egress->worker.gen);
}

/* No program is restarted, because the test plays them, and no guest reads /denied. */
static void dispatch(const struct loop_event *ev)
{
	uint8_t kind = ev->key.kind;

	if (kind != EV_TIMER_EDGE && kind != EV_TIMER_EGRESS && kind != EV_TIMER_DENIED)
		keeper_dispatch(&rig_k, ev);
	record_arm(&rig_k);
}

/* Runs the keeper until `fd` is readable, or for `ms`. */
bool rig_run_until(int fd, uint32_t ms)
{
	struct loop_timer end = {0};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	bool is_over = false;

	loop_timer_set(&rig_k.loop, &end, clock_mono_ms() + ms, (struct loop_key){.kind = EV_TEST});
	while (!is_over && !(fd >= 0 && poll(&p, 1, 0) == 1)) {
		struct loop_event ev;

		loop_next(&rig_k.loop, &ev);
		is_over = ev.key.kind == EV_TEST;
		if (!is_over)
			dispatch(&ev);
	}
	loop_timer_clear(&rig_k.loop, &end);
	return !is_over;
}

void rig_must_get(int fd, uint16_t type)
{
	do {
		ipc_msg_done(&rig_msg);
		if (!rig_run_until(fd, 4000))
			fail_msg("message %u did not come", type);
		assert_int_equal(ipc_recv(fd, &rig_msg), 1);
		/* Repeated until a vault is connected: not every test has one. */
	} while (fd == rig_sbxd && rig_msg.type == KEEPER_WANT_VAULT && type != KEEPER_WANT_VAULT);
	assert_int_equal(rig_msg.type, type);
}

void rig_must_be_quiet(int fd)
{
	assert_false(rig_run_until(fd, 50));
}

void rig_set_policy(const char *rules)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/policy", rig_dir);
	AUTO_FREE char *text = xasprintf("policy 2\n%send\n", rules);

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
}

/* The tables of the file, as sbxd sends them. */
static void send_policy(uint32_t id, const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/policy", rig_dir);
	AUTO_FREE char *text = NULL;
	struct table_wish unset = {.part = POLICY_ALL, .unset = true};
	int files[POLICY_N_PARTS], r;
	size_t n = 0;

	r = file_load(path, RULES_MAX_BYTES, &text, &n, NULL);
	policy_text_files(
		r == -ENOENT ? slice_from_str("policy 1\nend\n") : slice_of(text ? text : "", n),
		"policy", name, files);
	if (r == -ENOENT) {
		fd_close(&files[POLICY_ALL]);
		files[POLICY_ALL] = table_make(&unset);
	}
	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		assert_int_equal(keeper_send_policy(rig_sbxd, id, (uint8_t)i, files[i]), 0);
		fd_close(&files[i]);
	}
}

void rig_reload(uint32_t id, const char *name)
{
	send_policy(id, name);
	assert_int_equal(keeper_ask_reload(rig_sbxd, id, name), 0);
}

/* HELLO and the configuration, until egress accepts exchanges. */
void rig_bring_egress_up(void)
{
	rig_put_egress();
	assert_int_equal(chan_send_hello(rig_egress, SBX_BUILD), 0);
	rig_must_get(rig_egress, EGRESS_CONFIG);
	rig_must_get(rig_egress, EGRESS_DIRECT);
	rig_must_get(rig_egress, EGRESS_RESOLVER);
	rig_must_get(rig_egress, EGRESS_LOCALS);
	for (unsigned i = 0; i < POLICY_N_PARTS; i++)
		rig_must_get(rig_egress, EGRESS_POLICY);
	assert_false(egress_is_up(&rig_k));
	assert_int_equal(egress_send_loaded(rig_egress, rig_msg.id, ""), 0);
	(void)rig_run_until(-1, 20);
	assert_true(egress_is_up(&rig_k));
}

/* Names that the keeper adds to each service. */
static void put_auth_names(void)
{
	AUTO_FREE char *dir = xasprintf("%s/services", rig_dir);
	AUTO_FREE char *path = xasprintf("%s/auth-names", dir);

	assert_int_equal(paths_make(dir, NULL), 0);
	assert_int_equal(file_save(path, slice_from_str("known header x-some-key\n"), NULL), 0);
}

int rig_up(void **state)
{
	AUTO_FREE char *state_dir = NULL;
	int fds[2];

	(void)snprintf(rig_dir, sizeof(rig_dir), "/tmp/net_test.XXXXXX");
	assert_non_null(mkdtemp(rig_dir));
	setenv("XDG_STATE_HOME", rig_dir, 1);
	setenv("XDG_CONFIG_HOME", rig_dir, 1);
	setenv("XDG_RUNTIME_DIR", rig_dir, 1);
	setenv("SBX_LIBEXEC", rig_dir, 1);
	setenv("SBX_SHARE", rig_dir, 1);
	put_auth_names();
	state_dir = xasprintf("%s/sbx/sandboxes/" RIG_ID, rig_dir);
	memset(&rig_k, 0, sizeof(rig_k));
	assert_int_equal(paths_make(state_dir, NULL), 0);
	assert_int_equal(run_places_prepare(NULL), 0);
	keeper_init(&rig_k);
	rig_k.dir = TAKE(state_dir);
	rig_k.run_dir = xasprintf("%s/run", rig_dir);
	rig_msg.fd = rig_edge = rig_egress = -1;
	(void)!str_copy(rig_k.spec.id, sizeof(rig_k.spec.id), RIG_ID);
	(void)!str_copy(rig_k.spec.name, sizeof(rig_k.spec.name), "demo");
	rig_k.state.phase = KEEPER_RUNNING;
	assert_int_equal(loop_init(&rig_k.loop), 0);
	rig_set_policy("allow network good.example id r1\nallow network ssh.example:22\n");
	netpolicy_init(&rig_k);
	record_check(&rig_k);
	assert_int_equal(ipc_pair(fds), 0);
	link_add(&rig_k, fds[0], true);
	rig_sbxd = fds[1];
	rig_must_get(rig_sbxd, KEEPER_HELLO);
	rig_must_get(rig_sbxd, KEEPER_STATE);
	send_policy(1, "demo");
	while (rig_k.netpolicy->table[POLICY_OWN] < 0)
		assert_false(rig_run_until(-1, 1));
	rig_put_edge(EDGE_PHASE_RUN);
	return 0;
}

void rig_close_tables(void)
{
	struct netpolicy *np = rig_k.netpolicy;

	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		fd_close(&np->table[i]);
		fd_close(&np->next.table[i]);
	}
}

int rig_down(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", rig_dir);

	edge_kill(&rig_k);
	origins_kill_all(&rig_k, "the test ends");
	egress_kill(&rig_k);
	vault_stop(&rig_k);
	fd_close(&rig_k.origins->roots);
	record_close(&rig_k);
	asks_clear(rig_k.net);
	holds_done(&rig_k);
	for (size_t i = 0; i < rig_k.denied->n; i++)
		free(rig_k.denied->texts[i]);
	gate_free(rig_k.gate);
	rig_close_tables();
	fd_close(&rig_k.links[0].fd);
	ipc_msg_done(&rig_msg);
	fd_close(&rig_edge);
	fd_close(&rig_egress);
	fd_close(&rig_sbxd);
	loop_done(&rig_k.loop);
	free(rig_k.dir);
	free(rig_k.run_dir);
	return system(rm);
}

int rig_sealed_open(bool waits, const char *path, int flags)
{
	pid_t pid = fork();
	struct err err = {0};
	int status;

	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			hands_seal_files(&rig_k, waits, &err) < 0)
			_exit(255);
		_exit(open(path, flags | O_CLOEXEC, 0600) >= 0 ? 0 : errno);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* ---- asks ---- */

void rig_ask(uint32_t id, enum edge_ask_kind kind, const char *host, uint16_t port)
{
	struct edge_ask a = {.kind = kind, .port = port};

	(void)!str_copy(a.host, sizeof(a.host), host);
	if (kind == EDGE_ASK_HTTP)
		(void)!str_copy(a.method, sizeof(a.method), "GET");
	assert_int_equal(edge_send_ask(rig_edge, id, &a), 0);
}

int rig_channel = -1;
uint32_t rig_channel_id;

bool rig_has_next(int fd, uint16_t type)
{
	uint16_t next;

	return recv(fd, &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT) == sizeof(next) &&
	       next == type;
}

/* Those that come before a VERDICT. */
static void take_channels(void)
{
	while (rig_run_until(rig_edge, 4000) && rig_has_next(rig_edge, EDGE_CHANNEL)) {
		rig_must_get(rig_edge, EDGE_CHANNEL);
		assert_int_equal(chan_get_plain(&edge_chan, &rig_msg, EDGE_CHANNEL), 0);
		rig_channel_id = rig_msg.id;
		fd_close(&rig_channel);
		rig_channel = TAKE_FD(rig_msg.fd);
	}
}

bool rig_must_answer(uint32_t id)
{
	take_channels();
	rig_must_get(rig_edge, EDGE_VERDICT);
	assert_int_equal(rig_msg.id, id);
	assert_int_equal(edge_get_verdict(&rig_msg, &rig_verdict), 0);
	return rig_verdict.allowed;
}

/* Asks for an allowed tunnel; returns the number of the exchange. */
uint32_t rig_must_open(uint32_t id, int *ret_edge_fd, int *ret_egress_fd)
{
	struct egress_open open;
	uint32_t exchange;

	rig_ask(id, EDGE_ASK_TUNNEL, "good.example", 443);
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_int_equal(egress_get_open(&rig_msg, &open), 0);
	assert_string_equal(open.host, "good.example");
	assert_int_equal(open.port, 443);
	assert_int_equal(open.kind, EGRESS_TUNNEL);
	exchange = rig_msg.id;
	*ret_egress_fd = TAKE_FD(rig_msg.fd);
	assert_true(rig_must_answer(id));
	*ret_edge_fd = TAKE_FD(rig_msg.fd);
	assert_true(*ret_edge_fd >= 0);
	return exchange;
}

static int see(void *arg, const struct audit_record *rec, struct slice line)
{
	struct seen *s = arg;

	if (rec->ev.kind < AUDIT_KIND_DECISION)
		return 0;
	s->n++;
	s->kind = rec->ev.kind;
	s->decision = rec->ev.decision;
	(void)!slice_to_cstr(rec->ev.rule, s->rule, sizeof(s->rule));
	(void)!slice_to_cstr(rec->ev.reason, s->reason, sizeof(s->reason));
	(void)!slice_to_cstr(rec->ev.action, s->action, sizeof(s->action));
	(void)!slice_to_cstr(rec->ev.effects, s->effects, sizeof(s->effects));
	(void)!slice_to_cstr(rec->ev.hold, s->hold, sizeof(s->hold));
	return 0;
}

struct seen rig_last_record(void)
{
	AUTO_FREE char *path = xasprintf("%s/sbx/audit", rig_dir);
	struct seen s = {0};
	struct audit_expect expect = {
		.pub = audit_key_pub(rig_k.record->key), .sandbox = RIG_ID, .fn = see, .arg = &s};
	struct audit_reader *rd = NULL;

	assert_int_equal(audit_reader_open(path, RIG_ID, &expect, &rd, NULL), 0);
	assert_true(audit_reader_pump(rd, NULL) >= 0);
	audit_reader_close(rd);
	return s;
}
