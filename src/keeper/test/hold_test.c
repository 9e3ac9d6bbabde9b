/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that need a person's approval. The gate is played: a host that begins with "ask" needs
 * one, with a digest of the host and the method. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/rules/gate/gate_internal.h"
#include "net_rig.h"

static char asked_host[EDGE_MAX_HOST];
static struct hold_text asked;
static bool is_asked;
static struct hold_msg held;
static uint64_t late_ms; /* added to the clock of the keeper */

void __real_gate_decide_bound(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, uint64_t now_ms, struct edge_verdict *ret);
void __wrap_gate_decide_bound(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, uint64_t now_ms, struct edge_verdict *ret);
const struct hold_text *__wrap_gate_asked(const struct gate *g);
uint64_t __real_clock_mono_ms(void);
uint64_t __wrap_clock_mono_ms(void);

uint64_t __wrap_clock_mono_ms(void)
{
	return __real_clock_mono_ms() + late_ms;
}

/* gate_decide_approved calls it too: with lld also in its own file. */
void __wrap_gate_decide_bound(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, uint64_t now_ms, struct edge_verdict *ret)
{
	is_asked = strncmp(ask->host, "ask", 3) == 0 && !g->is_approved;
	if (!is_asked) {
		__real_gate_decide_bound(g, ask, binding, now_ms, ret);
		return;
	}
	*ret = (struct edge_verdict){0};
	(void)snprintf(asked_host, sizeof(asked_host), "http:get %.200s /\n", ask->host);
	asked = (struct hold_text){.effects = asked_host,
		.rule = "ask http ask*.example/**",
		.preview = "title: \x1b[2Jhello"};
	sha256(slice_from_str(asked_host), asked.digest);
}

const struct hold_text *__wrap_gate_asked(const struct gate *g)
{
	return is_asked ? &asked : NULL;
}

/* ---- helpers ---- */

static int up(void **state)
{
	int r = rig_up(state);

	late_ms = 0;
	rig_set_policy("allow network good.example id r1\nallow network ask*.example id r2\n");
	rig_reload(2, "demo");
	rig_must_get(rig_sbxd, KEEPER_DONE);
	rig_bring_egress_up();
	return r;
}

static void ask_http(uint32_t id, const char *host)
{
	rig_ask(id, EDGE_ASK_HTTP, host, 80);
}

static void must_be_held(void)
{
	rig_must_get(rig_sbxd, KEEPER_HELD);
	assert_int_equal(hold_get_held(&rig_msg, &held), 0);
}

static void must_be_removed(void)
{
	rig_must_get(rig_sbxd, KEEPER_UNHELD);
	assert_int_equal(hold_get_unheld(&rig_msg), 0);
}

/* HELD and UNHELD may come first. */
static void read_until(uint16_t type)
{
	do {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_sbxd, 4000));
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
		if (rig_msg.type == KEEPER_HELD)
			assert_int_equal(hold_get_held(&rig_msg, &held), 0);
	} while (rig_msg.type != type);
}

static int answer_for(enum hold_choice choice, uint32_t seconds, uint8_t first, const char *reason)
{
	struct hold_reply reply = {
		.choice = (uint8_t)choice, .seconds = seconds, .uid = 1000, .where = "/dev/pts/3"};
	struct keeper_done done;

	memcpy(reply.id, held.id, sizeof(reply.id));
	memcpy(reply.digest, held.digest, sizeof(reply.digest));
	reply.digest[0] ^= first;
	(void)snprintf(reply.reason, sizeof(reply.reason), "%s", reason);
	assert_int_equal(hold_send_reply(rig_sbxd, 77, &reply), 0);
	read_until(KEEPER_DONE);
	assert_int_equal(rig_msg.id, 77);
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	return done.code;
}

static int answer_with(enum hold_choice choice, uint8_t first, const char *reason)
{
	return answer_for(choice, choice == HOLD_CHOICE_FOR ? 60 : 0, first, reason);
}

static int answer(enum hold_choice choice)
{
	return answer_with(choice, 0, "");
}

/* It was passed to egress, and edge has its socket. */
static void must_pass(uint32_t id)
{
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_true(rig_must_answer(id));
	assert_true(rig_msg.fd >= 0);
}

static void must_be_refused(uint32_t id, const char *why)
{
	assert_false(rig_must_answer(id));
	if (!strstr(rig_verdict.reason, why))
		fail_msg("the reason is: %s", rig_verdict.reason);
}

/* ---- the tests ---- */

static void a_request_waits_until_a_person_approves_it(void **state)
{
	struct seen s;

	ask_http(1, "ask.example");
	must_be_held();
	assert_int_equal(held.state, HOLD_OPEN);
	assert_string_equal(held.effects, "http:get ask.example /\n");
	assert_string_equal(held.preview, "title: \x1b[2Jhello");
	rig_must_be_quiet(rig_edge);
	rig_must_be_quiet(rig_egress);
	s = rig_last_record();
	assert_int_equal(s.kind, AUDIT_KIND_APPROVAL);
	assert_string_equal(s.action, "ask");
	assert_string_equal(s.rule, "ask http ask*.example/**");
	assert_string_equal(s.effects, "http:get ask.example /");
	assert_string_equal(s.hold, held.id);
	/* Others are not held up. */
	rig_ask(2, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(2));
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	must_pass(1);
	s = rig_last_record();
	assert_int_equal(s.kind, AUDIT_KIND_DECISION);
	assert_int_equal(s.decision, AUDIT_ALLOW);
	assert_string_equal(s.rule, "r2");
	assert_string_equal(s.hold, held.id);
	assert_int_equal(s.n, 5); /* ask, the DNS query, once, use, this */
	assert_int_equal(answer(HOLD_CHOICE_ONCE), -ENOENT);
}

static void the_answer_is_recorded_before_the_request_passes(void **state)
{
	struct seen s;

	ask_http(1, "ask.example");
	must_be_held();
	late_ms = HOLD_INLINE_MS;
	must_be_refused(1, "needs approval");
	assert_int_equal(answer(HOLD_CHOICE_ALWAYS), 0);
	s = rig_last_record();
	assert_int_equal(s.kind, AUDIT_KIND_APPROVAL);
	assert_string_equal(s.action, "always");
	assert_string_equal(s.reason, "uid 1000 /dev/pts/3");
	assert_string_equal(s.effects, "http:get ask.example /");
	assert_string_equal(s.hold, held.id);
	/* Without a log nothing passes, and the approval is lost. */
	record_set_max_bytes(&rig_k, 1);
	ask_http(2, "ask.example");
	must_be_refused(2, "cannot write the audit log");
	rig_must_be_quiet(rig_egress);
	record_set_max_bytes(&rig_k, 0);
	ask_http(3, "ask.example");
	rig_must_be_quiet(rig_egress);
}

static void an_answer_that_cannot_be_recorded_approves_nothing(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	record_close(&rig_k);
	rig_k.record->tried_ms = clock_mono_ms();
	assert_int_equal(answer(HOLD_CHOICE_ONCE), -EIO);
	must_be_refused(1, "cannot write the audit log");
	rig_k.record->tried_ms = 0;
	record_check(&rig_k);
	ask_http(2, "ask.example");
	must_be_held();
	assert_int_equal(held.state, HOLD_OPEN);
	rig_must_be_quiet(rig_egress);
}

static void what_was_not_displayed_is_not_approved(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	assert_int_equal(answer_with(HOLD_CHOICE_ONCE, 1, ""), -ESTALE);
	rig_must_be_quiet(rig_egress);
	assert_int_equal(answer(HOLD_CHOICE_NO), 0);
	assert_int_equal(answer(HOLD_CHOICE_ONCE), -EALREADY);
	must_be_refused(1, "refused by the user");
	rig_must_be_quiet(rig_egress);
}

static void a_no_has_its_reason_and_is_kept(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	assert_int_equal(answer_with(HOLD_CHOICE_NO, 0, "use the other branch"), 0);
	must_be_refused(1, "refused by the user: use the other branch");
	ask_http(2, "ask.example");
	must_be_refused(2, "use the other branch");
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
}

static void an_approval_for_a_minute_is_for_all_equal_requests(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	ask_http(2, "ask.example");
	assert_int_equal(answer(HOLD_CHOICE_FOR), 0);
	must_pass(1);
	must_pass(2);
	ask_http(3, "ask.example");
	must_pass(3);
	assert_int_equal(rig_last_record().decision, AUDIT_ALLOW);
	ask_http(4, "ask2.example");
	must_be_held();
	late_ms = 60000;
	ask_http(5, "ask.example");
	rig_must_be_quiet(rig_egress);
}

static void always_is_for_all_equal_requests_until_the_policy_changes(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	ask_http(2, "ask.example");
	assert_int_equal(answer(HOLD_CHOICE_ALWAYS), 0);
	assert_int_equal(held.state, HOLD_APPROVED);
	assert_int_equal(held.left_ms, HOLD_NO_END);
	must_pass(1);
	must_pass(2);
	late_ms = UINT64_C(400) * 24 * 3600 * 1000;
	ask_http(3, "ask.example");
	must_pass(3);
	rig_set_policy("allow network ask*.example id r2\n");
	rig_reload(3, "demo");
	read_until(KEEPER_UNHELD);
	assert_int_equal(held.state, HOLD_APPROVED);
	assert_true(held.age_ms >= late_ms);
	ask_http(4, "ask.example");
	must_be_held();
	assert_int_equal(held.state, HOLD_OPEN);
}

static void the_time_left_of_a_year_is_sent_whole(void **state)
{
	const uint64_t year_s = UINT64_C(365) * 24 * 3600;

	ask_http(1, "ask.example");
	must_be_held();
	assert_int_equal(answer_for(HOLD_CHOICE_FOR, (uint32_t)year_s, 0, ""), 0);
	assert_in_range(held.left_ms, (year_s - 60) * 1000, year_s * 1000);
}

static void one_approval_is_for_one_of_two_equal_requests(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	ask_http(2, "ask.example");
	rig_must_be_quiet(rig_edge);
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	must_pass(1);
	must_be_refused(2, "an equal request has used the approval");
	rig_must_be_quiet(rig_egress);
}

static void after_a_while_the_request_is_refused_with_an_id(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	late_ms = HOLD_INLINE_MS - 500;
	rig_must_be_quiet(rig_edge);
	late_ms = HOLD_INLINE_MS;
	must_be_refused(1, "needs approval");
	assert_string_equal(rig_verdict.approval, held.id);
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	/* The agent tries again later. */
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	late_ms = HOLD_INLINE_MS + HOLD_USE_MS - 5000;
	ask_http(2, "ask.example");
	must_pass(2);
	ask_http(3, "ask.example");
	rig_must_be_quiet(rig_egress);
}

static void an_answer_to_another_one_does_not_extend_the_wait(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	late_ms = HOLD_INLINE_MS - 1000;
	ask_http(2, "ask2.example");
	must_be_held();
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	must_pass(2);
	late_ms = HOLD_INLINE_MS;
	must_be_refused(1, "needs approval");
}

static void an_approval_expires(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	late_ms = HOLD_INLINE_MS;
	must_be_refused(1, "needs approval");
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	late_ms += HOLD_USE_MS;
	must_be_removed();
	ask_http(2, "ask.example");
	must_be_held();
	rig_must_be_quiet(rig_egress);
}

static void a_new_policy_ends_approvals_but_the_same_one_does_not(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	late_ms = HOLD_INLINE_MS;
	must_be_refused(1, "needs approval");
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	rig_reload(3, "demo");
	(void)rig_run_until(-1, 30);
	assert_int_equal(rig_k.holds->table.list[0].state, HOLD_APPROVED);
	rig_set_policy("allow network ask*.example id r2\n");
	rig_reload(4, "demo");
	must_be_removed();
	ask_http(2, "ask.example");
	must_be_held();
}

static void a_waiting_request_is_decided_by_the_new_policy(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	rig_set_policy("allow network good.example\n");
	rig_reload(3, "demo");
	rig_must_be_quiet(rig_edge); /* the rule that asks still applies */
	/* The approval does not replace what the policy requires. */
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	assert_false(rig_must_answer(1));
	assert_int_equal(rig_k.net->n_free, EGRESS_MAX_OPEN);
}

static void a_dead_egress_uses_the_approval_and_nothing_is_sent(void **state)
{
	ask_http(1, "ask.example");
	must_be_held();
	assert_int_equal(kill(rig_k.egress->worker.child.pid, SIGKILL), 0);
	RIG_UNTIL(!rig_k.egress->worker.alive);
	rig_k.egress->lost_ms = 0;
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	must_be_refused(1, "sbx-egress is not running");
}

/* Of sbxd only the connection is seen. */
static void the_next_sbxd_gets_the_holds(void **state)
{
	char id[HOLD_ID];
	int fds[2];

	ask_http(1, "ask.example");
	must_be_held();
	memcpy(id, held.id, sizeof(id));
	fd_close(&rig_sbxd);
	(void)rig_run_until(-1, 30);
	assert_int_equal(ipc_pair(fds), 0);
	link_add(&rig_k, fds[0], false);
	rig_sbxd = fds[1];
	rig_must_get(rig_sbxd, KEEPER_HELLO);
	rig_must_get(rig_sbxd, KEEPER_STATE);
	must_be_held();
	assert_string_equal(held.id, id);
	assert_int_equal(answer(HOLD_CHOICE_ONCE), 0);
	must_pass(1);
}

/* While the sbxd that started the keeper lives. */
static void another_process_of_the_user_cannot_answer(void **state)
{
	AUTO_CLOSE int other = -1;
	struct hold_reply reply = {.choice = HOLD_CHOICE_ONCE};
	int fds[2];

	ask_http(1, "ask.example");
	must_be_held();
	assert_int_equal(ipc_pair(fds), 0);
	link_add(&rig_k, fds[0], false);
	other = fds[1];
	memcpy(reply.id, held.id, sizeof(reply.id));
	memcpy(reply.digest, held.digest, sizeof(reply.digest));
	assert_int_equal(hold_send_reply(other, 5, &reply), 0);
	rig_must_be_quiet(rig_egress);
	assert_int_equal(rig_k.holds->table.list[0].state, HOLD_OPEN);
}

static void a_slow_sbxd_gets_all_of_them_in_the_end(void **state)
{
	static char long_text[HOLD_MAX_PREVIEW + 1];
	unsigned n = 0;

	memset(long_text, 'p', HOLD_MAX_PREVIEW);
	hold_limits(&rig_k.holds->table, HOLD_MOST_OPEN, HOLD_MOST_HOUR);
	for (uint8_t i = 0; i < HOLD_MOST_OPEN; i++) {
		struct hold_text t = {
			.effects = "http:get a /\n", .rule = "", .preview = long_text};
		struct edge_verdict v;
		const struct edge_ask ask = {.host = "ask.example", .port = 80};

		t.digest[0] = i;
		assert_int_equal(holds_take(&rig_k, &t, &ask, 0, &v), HOLDS_WAIT);
	}
	assert_int_not_equal(rig_k.holds->unsent[0], 0); /* the socket was full */
	while (rig_run_until(rig_sbxd, 200) && ipc_recv(rig_sbxd, &rig_msg) == 1) {
		n += rig_msg.type == KEEPER_HELD;
		ipc_msg_done(&rig_msg);
		if (n == HOLD_MOST_OPEN)
			break;
	}
	assert_int_equal(n, HOLD_MOST_OPEN);
}

static void so_many_wait_and_the_others_get_the_id(void **state)
{
	for (uint32_t i = 0; i < KEEPER_MAX_HELD; i++)
		ask_http(i, "ask.example");
	must_be_held();
	RIG_UNTIL(rig_k.net->n_held == KEEPER_MAX_HELD);
	ask_http(100, "ask.example");
	must_be_refused(100, "needs approval");
	assert_string_equal(rig_verdict.approval, held.id);
	rig_ask(5, EDGE_ASK_DNS, "good.example", 0); /* the id of one that waits */
	RIG_MUST_KILL_EDGE();
	assert_int_equal(rig_k.net->n_held, 0);
}

static void a_sandbox_cannot_flood_the_person(void **state)
{
	char host[32];

	for (unsigned i = 0; i < HOLD_DEFAULT_OPEN + 1; i++) {
		(void)snprintf(host, sizeof(host), "ask%u.example", i);
		ask_http(i, host);
		if (i < HOLD_DEFAULT_OPEN)
			must_be_held();
	}
	must_be_refused(HOLD_DEFAULT_OPEN, "too many requests of this sandbox");
	rig_must_be_quiet(rig_sbxd);
	assert_string_equal(rig_verdict.approval, "");
}

#define HOLD_TEST(f) cmocka_unit_test_setup_teardown(f, up, rig_down)

/* ---- links ---- */

#define URL "https://login.example/authorize?state=1"

static bool ask_link(uint32_t id, const char *url)
{
	struct edge_ask a = {.kind = EDGE_ASK_LINK, .port = 443, .host = "login.example"};

	(void)!str_copy(a.target, sizeof(a.target), url);
	assert_int_equal(edge_send_ask(rig_edge, id, &a), 0);
	return rig_must_answer(id);
}

static void a_link_is_shown_and_opened_once(void **state)
{
	assert_true(ask_link(1, URL));
	assert_non_null(strstr(rig_verdict.reason, "sbx open "));
	must_be_held();
	assert_int_equal(held.kind, HOLD_LINK);
	assert_string_equal(held.effects, URL);
	assert_string_equal(rig_last_record().action, "ask");
	/* Again: the same one. */
	assert_true(ask_link(2, URL));
	assert_non_null(strstr(rig_verdict.reason, held.id));
	assert_int_equal(answer_with(HOLD_CHOICE_OPEN, 1, ""), -ESTALE);
	assert_int_equal(answer(HOLD_CHOICE_OPEN), 0);
	assert_string_equal(rig_last_record().action, "open");
	assert_int_equal(answer(HOLD_CHOICE_OPEN), -ENOENT);
	assert_int_equal(rig_k.holds->table.list[0].state, HOLD_FREE);
}

static void only_open_is_a_yes(void **state)
{
	assert_true(ask_link(1, URL));
	must_be_held();
	assert_int_equal(answer(HOLD_CHOICE_ONCE), -EINVAL);
	assert_int_equal(answer(HOLD_CHOICE_FOR), -EINVAL);
	assert_int_equal(answer(HOLD_CHOICE_ALWAYS), -EINVAL);
	assert_int_equal(rig_k.holds->table.list[0].state, HOLD_OPEN);
}

static void a_refused_link_is_not_shown_again(void **state)
{
	assert_true(ask_link(1, URL));
	must_be_held();
	assert_int_equal(answer(HOLD_CHOICE_NO), 0);
	assert_false(ask_link(2, URL));
	assert_string_equal(rig_verdict.reason, "refused by the user");
	assert_true(ask_link(3, URL "&other=1"));
}

static void a_guest_cannot_flood_the_user(void **state)
{
	char url[64];

	for (uint32_t i = 0; i < HOLD_MAX_LINKS; i++) {
		(void)snprintf(url, sizeof(url), "https://login.example/%u", i);
		assert_true(ask_link(i, url));
		must_be_held();
	}
	assert_false(ask_link(50, URL));
	assert_non_null(strstr(rig_verdict.reason, "too many"));
	/* Refused ones make room, until there were too many in the hour. */
	for (uint32_t i = 0; i < HOLD_DEFAULT_HOUR - HOLD_MAX_LINKS; i++) {
		assert_int_equal(answer(HOLD_CHOICE_NO), 0);
		(void)snprintf(url, sizeof(url), "https://login.example/x%u", i);
		assert_true(ask_link(100 + i, url));
		must_be_held();
	}
	assert_int_equal(answer(HOLD_CHOICE_NO), 0);
	assert_false(ask_link(200, URL));
	assert_non_null(strstr(rig_verdict.reason, "last hour"));
}

static bool may_connect(uint16_t port)
{
	return holds_use_callback(&rig_k, port);
}

static void the_port_of_an_opened_link_is_open_for_a_while(void **state)
{
	assert_true(ask_link(1, URL "&redirect_uri=http://localhost:54545/callback"));
	must_be_held();
	assert_false(may_connect(54545));
	assert_int_equal(answer(HOLD_CHOICE_OPEN), 0);
	assert_false(may_connect(54546));
	for (int i = 0; i < HOLDS_CALLBACK_CONNS; i++)
		assert_true(may_connect(54545));
	assert_false(may_connect(54545));
	assert_true(ask_link(2, URL "&redirect_uri=http://localhost:54545/callback"));
	must_be_held();
	assert_int_equal(answer(HOLD_CHOICE_OPEN), 0);
	late_ms += HOLDS_CALLBACK_MS;
	assert_false(may_connect(54545));
}

static void a_refused_link_opens_no_port(void **state)
{
	assert_true(ask_link(1, URL "&redirect_uri=http://localhost:54545/callback"));
	must_be_held();
	assert_int_equal(answer(HOLD_CHOICE_NO), 0);
	assert_false(may_connect(54545));
	assert_false(may_connect(0));
}

/* sbx-edge may be compromised: the keeper parses the link again. */
static void a_hostile_edge_shows_no_other_link(void **state)
{
	static const char *const urls[] = {"file:///etc/passwd", "http://127.0.0.1/",
		"http://[::1]/", "https://u@a.example/", "https://a.example/a b",
		"HTTPS://a.example/", "https://a.example"};

	for (uint32_t i = 0; i < ARRAY_LEN(urls); i++)
		if (ask_link(i, urls[i]))
			fail_msg("shown: %s", urls[i]);
	rig_must_be_quiet(rig_sbxd);
}

static void must_kill_edge(const char *url)
{
	struct edge_ask a = {.kind = EDGE_ASK_LINK, .port = 443, .host = "login.example"};

	(void)!str_copy(a.target, sizeof(a.target), url);
	assert_int_equal(edge_send_ask(rig_edge, 1, &a), 0);
	RIG_MUST_KILL_EDGE();
}

static void a_link_without_a_url_kills_edge(void **state)
{
	must_kill_edge("");
}

static void a_link_that_is_not_printable_kills_edge(void **state)
{
	must_kill_edge("https://a.example/\x1b[2J");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOLD_TEST(a_request_waits_until_a_person_approves_it),
		HOLD_TEST(the_answer_is_recorded_before_the_request_passes),
		HOLD_TEST(an_answer_that_cannot_be_recorded_approves_nothing),
		HOLD_TEST(what_was_not_displayed_is_not_approved),
		HOLD_TEST(a_no_has_its_reason_and_is_kept),
		HOLD_TEST(an_approval_for_a_minute_is_for_all_equal_requests),
		HOLD_TEST(always_is_for_all_equal_requests_until_the_policy_changes),
		HOLD_TEST(the_time_left_of_a_year_is_sent_whole),
		HOLD_TEST(one_approval_is_for_one_of_two_equal_requests),
		HOLD_TEST(after_a_while_the_request_is_refused_with_an_id),
		HOLD_TEST(an_answer_to_another_one_does_not_extend_the_wait),
		HOLD_TEST(an_approval_expires),
		HOLD_TEST(a_new_policy_ends_approvals_but_the_same_one_does_not),
		HOLD_TEST(a_waiting_request_is_decided_by_the_new_policy),
		HOLD_TEST(a_dead_egress_uses_the_approval_and_nothing_is_sent),
		HOLD_TEST(the_next_sbxd_gets_the_holds),
		HOLD_TEST(another_process_of_the_user_cannot_answer),
		HOLD_TEST(a_slow_sbxd_gets_all_of_them_in_the_end),
		HOLD_TEST(so_many_wait_and_the_others_get_the_id),
		HOLD_TEST(a_sandbox_cannot_flood_the_person),
		HOLD_TEST(a_link_is_shown_and_opened_once),
		HOLD_TEST(only_open_is_a_yes),
		HOLD_TEST(a_refused_link_is_not_shown_again),
		HOLD_TEST(a_guest_cannot_flood_the_user),
		HOLD_TEST(the_port_of_an_opened_link_is_open_for_a_while),
		HOLD_TEST(a_refused_link_opens_no_port),
		HOLD_TEST(a_hostile_edge_shows_no_other_link),
		HOLD_TEST(a_link_without_a_url_kills_edge),
		HOLD_TEST(a_link_that_is_not_printable_kills_edge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
