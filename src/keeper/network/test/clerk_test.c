/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes that sbx-clerk-git reads: the test plays it, also a hostile one, and sbx-origin. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "src/keeper/test/cred_rig.h"

#define PUSH "/acme/a.git/git-receive-pack"
#define MAX_CLERKS 64

static int clerks[MAX_CLERKS]; /* our ends, in start order */
static size_t n_clerks;
static struct hold_msg held;
static struct clerk_decided decided;

static int spawn(struct keeper *k, int sock, struct jail_child *ret, struct err *err)
{
	assert_true(n_clerks < MAX_CLERKS);
	clerks[n_clerks++] = dup(sock);
	*ret = rig_false_child();
	return 0;
}

/* HELD and others of sbxd's connection may come first. */
static void must_get_soon(uint16_t type)
{
	do {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_sbxd, 60000));
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
		if (rig_msg.type == KEEPER_HELD)
			assert_int_equal(hold_get_held(&rig_msg, &held), 0);
	} while (rig_msg.type != type);
}

/* Egress confirms the new policy. */
static void load_at_egress(void)
{
	for (unsigned n = 0; n < POLICY_N_PARTS;) {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_egress, 60000));
		assert_int_equal(ipc_recv(rig_egress, &rig_msg), 1);
		n += rig_msg.type == EGRESS_POLICY;
	}
	assert_int_equal(egress_send_loaded(rig_egress, rig_msg.id, ""), 0);
}

static void set_rules(const char *more)
{
	AUTO_FREE char *rules = xasprintf("allow network " CRED_HOST ":1-65535\n%s", more);

	rig_set_policy(rules);
	rig_reload(98, "demo");
	load_at_egress();
	must_get_soon(KEEPER_DONE);
}

static void set_usual_rules(void)
{
	AUTO_FREE char *rules = xasprintf(
		"allow git " CRED_HOST ":%u/acme/* do fetch\n"
		"allow git " CRED_HOST ":%u/acme/* do push,create ref refs/heads/agent/**\n"
		"ask git " CRED_HOST ":%u/acme/* do push ref refs/heads/main\n",
		cred_port, cred_port, cred_port);

	set_rules(rules);
}

static int up(void **state)
{
	int r = cred_up(state);

	n_clerks = 0;
	held = (struct hold_msg){0};
	rig_k.clerks->spawn = spawn;
	rig_bring_egress_up();
	cred_vault_up();
	set_usual_rules();
	return r;
}

static int down(void **state)
{
	clerks_kill_all(&rig_k, "the test ends");
	for (size_t i = 0; i < n_clerks; i++)
		fd_close(&clerks[i]);
	return cred_down(state);
}

/* ---- helpers ---- */

static void ask(uint32_t id, const char *method, const char *target)
{
	struct edge_ask a = {.kind = EDGE_ASK_HTTP, .port = cred_port, .tls = true};

	(void)!str_copy(a.host, sizeof(a.host), CRED_HOST);
	(void)!str_copy(a.method, sizeof(a.method), method);
	(void)!str_copy(a.target, sizeof(a.target), target);
	assert_int_equal(edge_send_ask(rig_edge, id, &a), 0);
}

/* Edge's end of an allowed push; the clerk has its own. */
struct push {
	int edge_fd, clerk_fd, clerk;
};

static struct push begin_push(uint32_t id)
{
	struct push p;

	ask(id, "POST", PUSH);
	if (!rig_must_answer(id))
		fail_msg("%s", rig_verdict.reason);
	p.edge_fd = TAKE_FD(rig_msg.fd);
	assert_true(p.edge_fd >= 0);
	p.clerk = clerks[n_clerks - 1];
	assert_int_equal(chan_send_hello(p.clerk, SBX_BUILD), 0);
	rig_must_get(p.clerk, CLERK_CONFIG);
	rig_must_get(p.clerk, CLERK_OPEN);
	p.clerk_fd = TAKE_FD(rig_msg.fd);
	assert_int_equal(write(p.edge_fd, "x", 1), 1);
	return p;
}

static void end_push(struct push *p)
{
	fd_close(&p->edge_fd);
	fd_close(&p->clerk_fd);
}

static void report(int clerk, enum clerk_verb verb, const char *ref)
{
	uint8_t buf[2000];
	struct wr wr = wr_init(buf, sizeof(buf));
	const struct clerk_effect e = {.verb = verb, .ref = slice_from_str(ref)};

	clerk_put_effect(&wr, &e);
	assert_int_equal(clerk_send_effects(clerk, slice_of(buf, wr.n)), 0);
}

static void judge(int clerk)
{
	static const struct clerk_judged judged = {.preview = "push refs/heads/x: 1 commits\n"};

	assert_int_equal(clerk_send_judged(clerk, &judged), 0);
}

static bool must_be_decided(int clerk)
{
	rig_must_get(clerk, CLERK_DECIDED);
	assert_int_equal(clerk_get_decided(&rig_msg, &decided), 0);
	return decided.allowed;
}

static size_t count_alive(void)
{
	size_t n = 0;

	for (size_t i = 0; i < KEEPER_MAX_CLERKS; i++)
		n += rig_k.clerks->list[i].worker.alive;
	return n;
}

static void must_be_killed(unsigned n_violations)
{
	RIG_UNTIL(count_alive() == 0);
	assert_int_equal(rig_k.clerks->n_violations, n_violations);
	assert_int_equal(cred_n_origins, 0);
}

/* Nothing more will come from the process: edge sees the end. */
static void must_be_over(struct push *p)
{
	char c;

	fd_close(&p->clerk_fd);
	(void)rig_run_until(-1, 10);
	assert_true(recv(p->edge_fd, &c, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN);
	fd_close(&p->edge_fd);
}

static int answer(enum hold_choice choice)
{
	struct hold_reply reply = {.choice = (uint8_t)choice, .where = "api"};
	struct keeper_done done;

	memcpy(reply.id, held.id, sizeof(reply.id));
	memcpy(reply.digest, held.digest, sizeof(reply.digest));
	assert_int_equal(hold_send_reply(rig_sbxd, 5, &reply), 0);
	must_get_soon(KEEPER_DONE);
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	return done.code;
}

/* ---- a good one ---- */

static void a_permitted_push_gets_a_socket_to_its_origin(void **state)
{
	const struct ticket_request want = {.tls = true,
		.method = slice_from_str("POST"),
		.host = slice_from_str(CRED_HOST),
		.port = cred_port,
		.path = slice_from_str(PUSH)};
	struct push p = begin_push(1);
	struct ticket ticket;
	char c;
	int origin, fd, line;

	assert_int_equal(cred_n_origins, 0);
	report(p.clerk, CLERK_CREATE, "refs/heads/agent/x");
	judge(p.clerk);
	assert_true(must_be_decided(p.clerk));
	line = TAKE_FD(rig_msg.fd);
	assert_non_null(strstr(rig_last_record().effects, "git:create " CRED_HOST));
	assert_int_equal(rig_last_record().decision, AUDIT_ALLOW);
	origin = cred_origin_up();
	rig_must_get(origin, ORIGIN_OPEN);
	assert_int_equal(origin_get_open(&rig_msg, &ticket), 0);
	assert_true(ticket.is_judged);
	assert_true(ticket_is_for(&ticket, &want));
	fd = TAKE_FD(rig_msg.fd);
	assert_int_equal(write(line, "y", 1), 1);
	assert_int_equal(read(fd, &c, 1), 1);
	assert_int_equal(chan_send_plain(p.clerk, CLERK_DONE, 0, -1), 0);
	RIG_UNTIL(count_alive() == 0);
	assert_int_equal(rig_k.clerks->n_violations, 0);
	fd_close(&fd);
	fd_close(&line);
	end_push(&p);
}

static void other_refs_are_refused_and_nothing_is_opened(void **state)
{
	struct push p = begin_push(1);

	report(p.clerk, CLERK_CREATE, "refs/heads/agent/x");
	report(p.clerk, CLERK_FORCE, "refs/heads/agent/y");
	judge(p.clerk);
	assert_false(must_be_decided(p.clerk));
	assert_non_null(strstr(decided.report, "git:force " CRED_HOST));
	assert_int_equal(cred_n_origins, 0);
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	end_push(&p);
}

static void what_is_not_known_is_refused(void **state)
{
	static const struct clerk_judged unknown = {
		.is_unknown = true, .text = "the pack is malformed"};
	struct push p = begin_push(1);

	assert_int_equal(clerk_send_judged(p.clerk, &unknown), 0);
	assert_false(must_be_decided(p.clerk));
	assert_string_equal(rig_last_record().reason, "the pack is malformed");
	assert_int_equal(cred_n_origins, 0);
	end_push(&p);
}

static void the_list_of_refs_passes_at_once(void **state)
{
	int fd;

	ask(1, "GET", "/acme/a.git/info/refs?service=git-receive-pack");
	assert_true(rig_must_answer(1));
	fd = TAKE_FD(rig_msg.fd);
	assert_int_equal(chan_send_hello(clerks[0], SBX_BUILD), 0);
	rig_must_get(clerks[0], CLERK_CONFIG);
	rig_must_get(clerks[0], CLERK_OPEN);
	assert_true(must_be_decided(clerks[0]));
	assert_int_equal(cred_n_origins, 1);
	fd_close(&fd);
}

static void it_may_fetch_what_the_guest_may_fetch(void **state)
{
	const struct ticket_request want = {.tls = true,
		.method = slice_from_str("POST"),
		.host = slice_from_str(CRED_HOST),
		.port = cred_port,
		.path = slice_from_str("/acme/a.git/git-upload-pack")};
	struct push p = begin_push(1);
	struct clerk_line line;
	struct ticket ticket;

	assert_int_equal(clerk_send_want(p.clerk, ""), 0);
	rig_must_get(p.clerk, CLERK_LINE);
	assert_int_equal(clerk_get_line(&rig_msg, &line), 0);
	assert_true(line.given);
	assert_non_null(strstr(rig_last_record().effects, "git:fetch " CRED_HOST));
	rig_must_get(cred_origin_up(), ORIGIN_OPEN);
	assert_int_equal(origin_get_open(&rig_msg, &ticket), 0);
	assert_false(ticket.is_judged);
	assert_true(ticket_is_for(&ticket, &want));
	end_push(&p);
}

static void it_may_not_fetch_what_the_guest_may_not(void **state)
{
	AUTO_FREE char *rules = xasprintf("allow git " CRED_HOST ":%u/acme/* do push\n", cred_port);
	struct clerk_line line;
	struct push p;

	set_rules(rules);
	p = begin_push(1);
	assert_int_equal(clerk_send_want(p.clerk, ""), 0);
	rig_must_get(p.clerk, CLERK_LINE);
	assert_int_equal(clerk_get_line(&rig_msg, &line), 0);
	assert_false(line.given);
	assert_int_equal(cred_n_origins, 0);
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	end_push(&p);
}

/* ---- hostile ones ---- */

static void effects_after_the_judgement_are_a_violation(void **state)
{
	struct push p = begin_push(1);

	report(p.clerk, CLERK_PUSH, "refs/heads/main"); /* held */
	judge(p.clerk);
	must_get_soon(KEEPER_HELD);
	report(p.clerk, CLERK_PUSH, "refs/heads/agent/x");
	must_be_killed(1);
	must_be_over(&p);
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	assert_int_equal(cred_n_origins, 0);
}

static void it_cannot_judge_twice_or_decide(void **state)
{
	static const struct clerk_decided yes = {.allowed = true};
	struct push p = begin_push(1);

	report(p.clerk, CLERK_PUSH, "refs/heads/main");
	judge(p.clerk);
	judge(p.clerk);
	must_be_killed(1);
	must_be_over(&p);
	p = begin_push(2);
	assert_int_equal(clerk_answer_judged(p.clerk, &yes, rig_edge), 0);
	must_be_killed(2);
	must_be_over(&p);
}

static void it_cannot_pass_descriptors(void **state)
{
	struct push p = begin_push(1);

	assert_int_equal(chan_send_plain(p.clerk, CLERK_DONE, 0, p.clerk_fd), 0);
	must_be_killed(1);
	must_be_over(&p);
}

static void its_wants_and_effects_are_limited(void **state)
{
	uint8_t buf[IPC_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	const struct clerk_effect e = {.verb = CLERK_PUSH, .ref = slice_from_str("r")};
	AUTO_FREE char *rules = xasprintf("allow git " CRED_HOST ":%u/acme/* do push\n", cred_port);
	struct push p = begin_push(1);

	for (unsigned i = 0; i < 1000; i++)
		clerk_put_effect(&wr, &e);
	for (unsigned i = 0; i <= CLERK_MAX_EFFECTS / 1000; i++) {
		assert_int_equal(clerk_send_effects(p.clerk, slice_of(buf, wr.n)), 0);
		(void)rig_run_until(-1, 1);
	}
	must_be_killed(1);
	must_be_over(&p);
	set_rules(rules); /* no fetch: no origin is started */
	p = begin_push(2);
	for (unsigned i = 0; i < CLERK_MAX_WANTS; i++) {
		assert_int_equal(clerk_send_want(p.clerk, ""), 0);
		rig_must_get(p.clerk, CLERK_LINE);
	}
	assert_int_equal(clerk_send_want(p.clerk, ""), 0);
	must_be_killed(2);
	must_be_over(&p);
}

static void the_list_of_refs_has_no_effects(void **state)
{
	int fd;

	ask(1, "GET", "/acme/a.git/info/refs?service=git-receive-pack");
	assert_true(rig_must_answer(1));
	fd = TAKE_FD(rig_msg.fd);
	assert_int_equal(chan_send_hello(clerks[0], SBX_BUILD), 0);
	rig_must_get(clerks[0], CLERK_CONFIG);
	rig_must_get(clerks[0], CLERK_OPEN);
	assert_true(must_be_decided(clerks[0]));
	report(clerks[0], CLERK_PUSH, "refs/heads/agent/x");
	RIG_UNTIL(count_alive() == 0);
	assert_int_equal(rig_k.clerks->n_violations, 1);
	fd_close(&fd);
}

static void after_three_violations_no_push_is_read(void **state)
{
	for (uint32_t i = 0; i < KEEPER_CLERK_VIOLATIONS; i++) {
		struct push p = begin_push(i + 1);

		assert_int_equal(chan_send_hello(p.clerk, "another build"), 0);
		must_be_killed(i + 1);
		must_be_over(&p);
	}
	ask(9, "POST", PUSH);
	assert_false(rig_must_answer(9));
	assert_non_null(strstr(rig_verdict.reason, "violated its protocol"));
	/* other requests are not affected */
	ask(10, "POST", "/acme/a.git/git-upload-pack");
	assert_true(rig_must_answer(10));
	fd_close(&rig_msg.fd);
}

/* ---- deaths, rules and people ---- */

static void a_death_before_the_decision_sends_nothing(void **state)
{
	struct push p = begin_push(1);

	report(p.clerk, CLERK_CREATE, "refs/heads/agent/x");
	assert_int_equal(kill(rig_k.clerks->list[0].worker.child.pid, SIGKILL), 0);
	must_be_killed(0);
	must_be_over(&p);
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	assert_string_equal(rig_last_record().reason, "sbx-clerk-git ended");
}

static void a_death_during_a_hold_leaves_the_approval(void **state)
{
	struct push p = begin_push(1);
	int line;

	report(p.clerk, CLERK_PUSH, "refs/heads/main");
	judge(p.clerk);
	must_get_soon(KEEPER_HELD);
	assert_non_null(strstr(held.effects, "git:push " CRED_HOST));
	assert_string_equal(held.preview, "push refs/heads/x: 1 commits\n");
	rig_must_be_quiet(p.clerk);
	assert_int_equal(kill(rig_k.clerks->list[0].worker.child.pid, SIGKILL), 0);
	must_be_killed(0);
	must_be_over(&p);
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	assert_int_equal(cred_n_origins, 0);
	/* the same push again */
	p = begin_push(2);
	report(p.clerk, CLERK_PUSH, "refs/heads/main");
	judge(p.clerk);
	assert_true(must_be_decided(p.clerk));
	line = TAKE_FD(rig_msg.fd);
	assert_string_equal(rig_last_record().hold, held.id);
	fd_close(&line);
	end_push(&p);
}

static void one_approval_is_for_one_of_two_equal_pushes(void **state)
{
	struct push a = begin_push(1), b = begin_push(2);

	report(a.clerk, CLERK_PUSH, "refs/heads/main");
	judge(a.clerk);
	must_get_soon(KEEPER_HELD);
	report(b.clerk, CLERK_PUSH, "refs/heads/main");
	judge(b.clerk);
	(void)rig_run_until(-1, 20);
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	assert_true(must_be_decided(a.clerk));
	fd_close(&rig_msg.fd);
	assert_false(must_be_decided(b.clerk));
	end_push(&a);
	end_push(&b);
}

static void a_no_has_its_reason(void **state)
{
	struct push p = begin_push(1);

	report(p.clerk, CLERK_PUSH, "refs/heads/main");
	judge(p.clerk);
	must_get_soon(KEEPER_HELD);
	assert_int_equal(answer(HOLD_CHOICE_NO), 0);
	assert_false(must_be_decided(p.clerk));
	assert_non_null(strstr(decided.why, "refused by the user"));
	end_push(&p);
}

static void a_new_policy_decides_a_push_that_waits(void **state)
{
	struct push p = begin_push(1);

	report(p.clerk, CLERK_PUSH, "refs/heads/main");
	judge(p.clerk);
	must_get_soon(KEEPER_HELD);
	set_rules("deny git ** do push\n");
	assert_false(must_be_decided(p.clerk));
	assert_int_equal(cred_n_origins, 0);
	end_push(&p);
}

static void a_new_policy_ends_a_push_that_is_being_sent(void **state)
{
	struct push p = begin_push(1);

	report(p.clerk, CLERK_CREATE, "refs/heads/agent/x");
	judge(p.clerk);
	assert_true(must_be_decided(p.clerk));
	fd_close(&rig_msg.fd);
	set_usual_rules();
	assert_int_equal(count_alive(), 1);
	set_rules("deny git ** do create\n");
	assert_int_equal(count_alive(), 0);
	end_push(&p);
}

/* The direct channel of its host is closed before the policy is confirmed. */
static void a_push_that_must_be_read_from_now_on_ends_with_its_channel(void **state)
{
	int origin, end;
	uint32_t id;

	set_rules("");
	ask(1, "POST", PUSH);
	assert_true(rig_must_answer(1));
	assert_true(rig_msg.fd < 0 && rig_verdict.stream > 0);
	assert_int_equal(n_clerks, 0);
	origin = cred_origin_up();
	id = cred_must_get_open(origin, &end);
	assert_int_equal(id, rig_verdict.stream);
	set_usual_rules(); /* about this repository */
	assert_false(rig_k.origins->list[0].worker.alive);
	assert_int_equal(rig_k.origins->list[0].channel, 0);
	assert_int_equal(rig_k.origins->n_blamed, 0);
	assert_non_null(strstr(rig_last_record().reason, "the policy no longer allows a request"));
	fd_close(&end);
}

static void a_client_that_leaves_ends_the_wait(void **state)
{
	struct push p = begin_push(1);

	report(p.clerk, CLERK_PUSH, "refs/heads/main");
	judge(p.clerk);
	must_get_soon(KEEPER_HELD);
	assert_int_equal(chan_send_plain(p.clerk, CLERK_DONE, 0, -1), 0);
	must_be_killed(0);
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	assert_int_equal(cred_n_origins, 0);
	end_push(&p);
}

static void few_pushes_are_read_at_the_same_time(void **state)
{
	struct push p[KEEPER_MAX_CLERKS];

	for (uint32_t i = 0; i < KEEPER_MAX_CLERKS; i++)
		p[i] = begin_push(i + 1);
	ask(9, "POST", PUSH);
	assert_false(rig_must_answer(9));
	assert_non_null(strstr(rig_verdict.reason, "pushes at the same time"));
	for (uint32_t i = 0; i < KEEPER_MAX_CLERKS; i++)
		end_push(&p[i]);
}

#define CLERK_TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLERK_TEST(a_permitted_push_gets_a_socket_to_its_origin),
		CLERK_TEST(other_refs_are_refused_and_nothing_is_opened),
		CLERK_TEST(what_is_not_known_is_refused),
		CLERK_TEST(the_list_of_refs_passes_at_once),
		CLERK_TEST(it_may_fetch_what_the_guest_may_fetch),
		CLERK_TEST(it_may_not_fetch_what_the_guest_may_not),
		CLERK_TEST(effects_after_the_judgement_are_a_violation),
		CLERK_TEST(it_cannot_judge_twice_or_decide),
		CLERK_TEST(it_cannot_pass_descriptors),
		CLERK_TEST(its_wants_and_effects_are_limited),
		CLERK_TEST(the_list_of_refs_has_no_effects),
		CLERK_TEST(after_three_violations_no_push_is_read),
		CLERK_TEST(a_death_before_the_decision_sends_nothing),
		CLERK_TEST(a_death_during_a_hold_leaves_the_approval),
		CLERK_TEST(one_approval_is_for_one_of_two_equal_pushes),
		CLERK_TEST(a_no_has_its_reason),
		CLERK_TEST(a_new_policy_decides_a_push_that_waits),
		CLERK_TEST(a_new_policy_ends_a_push_that_is_being_sent),
		CLERK_TEST(a_push_that_must_be_read_from_now_on_ends_with_its_channel),
		CLERK_TEST(a_client_that_leaves_ends_the_wait),
		CLERK_TEST(few_pushes_are_read_at_the_same_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
