/* SPDX-License-Identifier: Apache-2.0 */
/* Random orders of pushes, reports, deaths, answers and new rules, against an oracle: a push passes
 * only if the rules of that moment or an unused approval permit it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "src/keeper/test/cred_rig.h"

#define PUSH "/acme/a.git/git-receive-pack"
#define EVENTS 60
#define MAX_PUSHES 64

enum kind { TO_AGENT, TO_MAIN, TO_OTHER, N_KINDS };
enum main_rule { MAIN_ASKS, MAIN_DENIED, MAIN_ALLOWED, N_RULES };

static const char *const refs[] = {"refs/heads/agent/x", "refs/heads/main", "refs/heads/other"};

struct push {
	int edge_fd, clerk_fd, clerk; /* clerk -1: over */
	enum kind kind;
	bool is_judged;
};

static int clerks[MAX_PUSHES];
static size_t n_clerks;
static struct push pushes[MAX_PUSHES];
static size_t n_pushes, n_origins_up;
static struct hold_msg held;
static enum main_rule now;
static bool is_approved; /* a yes that no push has used */
static unsigned n_passed, n_opened, n_refused, n_total;
static uint32_t random_state;

static unsigned pick(unsigned n)
{
	random_state = random_state * 1103515245 + 12345;
	return (random_state >> 16) % n;
}

static int spawn(struct keeper *k, int sock, struct jail_child *ret, struct err *err)
{
	assert_true(n_clerks < MAX_PUSHES);
	clerks[n_clerks++] = dup(sock);
	*ret = rig_false_child();
	return 0;
}

/* ---- messages that nobody waits for ---- */

static void read_sbxd(void)
{
	while (rig_run_until(rig_sbxd, 0)) {
		ipc_msg_done(&rig_msg);
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
		if (rig_msg.type == KEEPER_HELD)
			assert_int_equal(hold_get_held(&rig_msg, &held), 0);
	}
}

/* A push that was sent is an OPEN with the keeper's word for its content. */
static void read_origins(void)
{
	struct ticket ticket;

	for (; n_origins_up < cred_n_origins; n_origins_up++)
		(void)cred_origin_up();

	for (size_t i = 0; i < cred_n_origins; i++) {
		while (rig_run_until(cred_origins[i], 0)) {
			ipc_msg_done(&rig_msg);
			if (ipc_recv(cred_origins[i], &rig_msg) != 1)
				break;
			if (rig_msg.type != ORIGIN_OPEN)
				continue;
			assert_int_equal(origin_get_open(&rig_msg, &ticket), 0);
			assert_true(ticket.is_judged);
			n_opened++;
		}
	}
}

static bool is_permitted(enum kind kind)
{
	if (kind == TO_AGENT)
		return true;
	if (kind == TO_OTHER || now == MAIN_DENIED)
		return false;
	if (now == MAIN_ALLOWED)
		return true;
	if (!is_approved)
		return false;
	is_approved = false;
	return true;
}

static void end_push(struct push *p)
{
	fd_close(&p->edge_fd);
	fd_close(&p->clerk_fd);
	p->clerk = -1;
}

static void read_clerk(struct push *p)
{
	static struct clerk_decided d;

	while (p->clerk >= 0 && rig_run_until(p->clerk, 0)) {
		ipc_msg_done(&rig_msg);
		if (ipc_recv(p->clerk, &rig_msg) != 1) {
			end_push(p);
			return;
		}
		assert_int_equal(rig_msg.type, CLERK_DECIDED);
		assert_int_equal(clerk_get_decided(&rig_msg, &d), 0);
		assert_true(p->is_judged);
		if (d.allowed && !is_permitted(p->kind))
			fail_msg("%s passed under rules %d", refs[p->kind], now);
		n_passed += d.allowed;
		n_refused += !d.allowed;
		(void)!chan_send_plain(p->clerk, CLERK_DONE, 0, -1);
		end_push(p);
	}
}

/* All consequences of the last event. */
static void settle(void)
{
	(void)rig_run_until(-1, 2);
	for (size_t i = 0; i < n_pushes; i++)
		read_clerk(&pushes[i]);
	read_sbxd();
	read_origins();
	/* no push that the rules decide alone waits */
	for (size_t i = 0; i < n_pushes; i++) {
		const struct push *p = &pushes[i];

		if (p->clerk >= 0 && p->is_judged)
			assert_true(p->kind == TO_MAIN && now == MAIN_ASKS && !is_approved);
	}
}

/* ---- events ---- */

static void begin_push(void)
{
	struct edge_ask a = {.kind = EDGE_ASK_HTTP, .port = cred_port, .tls = true};
	struct push *p = &pushes[n_pushes];
	size_t n = 0;

	for (size_t i = 0; i < KEEPER_MAX_CLERKS; i++)
		n += rig_k.clerks->list[i].worker.alive;
	if (n == KEEPER_MAX_CLERKS || n_clerks == MAX_PUSHES)
		return;
	(void)!str_copy(a.host, sizeof(a.host), CRED_HOST);
	(void)!str_copy(a.method, sizeof(a.method), "POST");
	(void)!str_copy(a.target, sizeof(a.target), PUSH);
	assert_int_equal(edge_send_ask(rig_edge, (uint32_t)n_pushes + 1, &a), 0);
	if (!rig_must_answer((uint32_t)n_pushes + 1))
		fail_msg("%s", rig_verdict.reason);
	*p = (struct push){.edge_fd = TAKE_FD(rig_msg.fd),
		.clerk = clerks[n_clerks - 1],
		.kind = (enum kind)pick(N_KINDS)};
	assert_int_equal(chan_send_hello(p->clerk, SBX_BUILD), 0);
	rig_must_get(p->clerk, CLERK_CONFIG);
	rig_must_get(p->clerk, CLERK_OPEN);
	p->clerk_fd = TAKE_FD(rig_msg.fd);
	n_pushes++;
	n_total++;
}

static struct push *pick_push(void)
{
	for (unsigned tries = 0; n_pushes && tries < 20; tries++) {
		struct push *p = &pushes[pick((unsigned)n_pushes)];

		if (p->clerk >= 0)
			return p;
	}
	return NULL;
}

static void judge(struct push *p)
{
	static const struct clerk_judged judged = {.preview = ""};
	uint8_t buf[200];
	struct wr wr = wr_init(buf, sizeof(buf));
	const struct clerk_effect e = {.verb = CLERK_PUSH, .ref = slice_from_str(refs[p->kind])};

	if (p->is_judged)
		return;
	clerk_put_effect(&wr, &e);
	assert_int_equal(clerk_send_effects(p->clerk, slice_of(buf, wr.n)), 0);
	assert_int_equal(clerk_send_judged(p->clerk, &judged), 0);
	p->is_judged = true;
}

static void kill_one(const struct worker *w)
{
	if (w->alive)
		assert_int_equal(kill(w->child.pid, SIGKILL), 0);
}

/* A process dies, its client leaves, or it breaks the protocol. */
static void lose(struct push *p)
{
	unsigned how = pick(rig_k.clerks->n_violations + 1 < KEEPER_CLERK_VIOLATIONS ? 3 : 2);

	if (how == 0)
		assert_int_equal(chan_send_plain(p->clerk, CLERK_DONE, 0, -1), 0);
	else if (how == 2)
		assert_int_equal(chan_send_hello(p->clerk, "x"), 0);
	else
		kill_one(&rig_k.clerks->list[pick(KEEPER_MAX_CLERKS)].worker);
}

static void answer(void)
{
	struct hold_reply reply = {
		.choice = pick(3) ? HOLD_CHOICE_ONCE : HOLD_CHOICE_NO, .where = "api"};
	static struct keeper_done done;

	if (!held.id[0])
		return;
	memcpy(reply.id, held.id, sizeof(reply.id));
	memcpy(reply.digest, held.digest, sizeof(reply.digest));
	reply.digest[0] ^= pick(4) == 0;
	/* the answer counts before a push that waits is decided */
	assert_int_equal(hold_send_reply(rig_sbxd, 5, &reply), 0);
	done.code = -1;
	for (unsigned i = 0; i < 4000; i++) {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_sbxd, 60000));
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
		if (rig_msg.type == KEEPER_HELD)
			assert_int_equal(hold_get_held(&rig_msg, &held), 0);
		if (rig_msg.type == KEEPER_DONE)
			break;
	}
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	assert_false(done.code == 0 && memcmp(reply.digest, held.digest, sizeof(reply.digest)));
	is_approved = is_approved || (done.code == 0 && reply.choice == HOLD_CHOICE_ONCE);
}

static void set_rules(enum main_rule rules)
{
	static const char *const words[] = {"ask", "deny", "allow"};
	AUTO_FREE char *text = xasprintf(
		"allow network " CRED_HOST ":1-65535\n"
		"allow git " CRED_HOST ":%u/acme/* do push,create ref refs/heads/agent/**\n"
		"%s git " CRED_HOST ":%u/acme/* do push ref refs/heads/main\n",
		cred_port, words[rules], cred_port);
	bool is_new = rules != now;
	unsigned n = 0;

	rig_set_policy(text);
	rig_reload(98, "demo");
	while (n < POLICY_N_PARTS) {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_egress, 60000));
		assert_int_equal(ipc_recv(rig_egress, &rig_msg), 1);
		n += rig_msg.type == EGRESS_POLICY;
	}
	assert_int_equal(egress_send_loaded(rig_egress, rig_msg.id, ""), 0);
	now = rules;
	if (is_new) /* answers count under the rules that they were given under */
		is_approved = false;
}

static void run_event(void)
{
	struct push *p = pick_push();
	unsigned what = pick(100);

	if (what < 35)
		begin_push();
	else if (what < 65 && p)
		judge(p);
	else if (what < 75 && p)
		lose(p);
	else if (what < 92)
		answer();
	else
		set_rules((enum main_rule)pick(N_RULES));
}

/* ---- a sequence ---- */

static void run_sequence(uint32_t seed)
{
	random_state = seed;
	n_clerks = n_pushes = n_origins_up = 0;
	n_passed = n_opened = n_refused = 0;
	is_approved = false;
	held = (struct hold_msg){0};
	assert_int_equal(cred_up(NULL), 0);
	rig_k.clerks->spawn = spawn;
	rig_bring_egress_up();
	cred_vault_up();
	holds_set_limits(&rig_k, HOLD_MOST_OPEN, HOLD_MOST_HOUR);
	now = N_RULES;
	set_rules(MAIN_ASKS);
	settle();
	for (unsigned i = 0; i < EVENTS; i++) {
		run_event();
		settle();
	}
	(void)rig_run_until(-1, 20);
	settle();
	if (n_opened != n_passed)
		fail_msg("seed %u: %u were sent, %u were permitted", seed, n_opened, n_passed);
	clerks_kill_all(&rig_k, "the test ends");
	for (size_t i = 0; i < n_pushes; i++)
		end_push(&pushes[i]);
	for (size_t i = 0; i < n_clerks; i++)
		fd_close(&clerks[i]);
	(void)cred_down(NULL);
}

static unsigned n_sequences = 10, first_seed = 1;

static void random_orders_pass_what_is_permitted(void **state)
{
	unsigned all_passed = 0, all_refused = 0;

	for (unsigned i = 0; i < n_sequences; i++) {
		run_sequence(first_seed + i);
		all_passed += n_passed;
		all_refused += n_refused;
	}
	printf("%u pushes, %u passed, %u refused\n", n_total, all_passed, all_refused);
	assert_true(all_passed > n_sequences && all_refused > n_sequences);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_orders_pass_what_is_permitted),
	};

	if (argc > 1)
		n_sequences = (unsigned)atoi(argv[1]);
	if (argc > 2)
		first_seed = (unsigned)atoi(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
