/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of GraphQL that sbx-clerk reads: the test plays it, also a hostile one, and sbx-origin. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/clerk/clerk_call.h"
#include "src/keeper/test/cred_rig.h"

static const char pack_form[] =
	"api 1\nservice test\nabout a test\nhost " CRED_HOST ":%u\nobject all all\n"
	"object node node/{node}\nop read all.read GET /all on all\n"
	"case GET /all = read all.read all\ncase POST /all = unknown\ngraphql /graphql\n"
	"op read all.query query * on all\n"
	"case POST /graphql body {\"query\": \"{a}\"} = read all.query all\n"
	"case POST /graphql body {\"query\": \"subscription {a}\"} = unknown\n"
	"op write thing.create mutation createThing on node show node=arg:/id\n"
	"case POST /graphql body {\"query\": \"mutation {createThing(id: 1)}\"} = write "
	"thing.create node/1\n"
	"case POST /graphql body {\"query\": \"mutation {createThin(id: 1)}\"} = unknown\n"
	"op danger thing.delete mutation deleteThing on node show node=arg:/id\n"
	"case POST /graphql body {\"query\": \"mutation {deleteThing(id: 1)}\"} = danger "
	"thing.delete node/1\n"
	"case POST /graphql body {\"query\": \"mutation {deleteThin(id: 1)}\"} = unknown\nend\n";

static int clerk, n_clerks; /* our end of the last one */
static struct hold_msg held;
static struct clerk_decided decided;

static int spawn(struct keeper *k, int sock, struct jail_child *ret, struct err *err)
{
	fd_close(&clerk);
	clerk = dup(sock);
	n_clerks++;
	*ret = rig_false_child();
	return 0;
}

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

static void set_rules(const char *more)
{
	AUTO_FREE char *rules = xasprintf("allow network " CRED_HOST ":1-65535\n%s", more);

	rig_set_policy(rules);
	rig_reload(98, "demo");
	for (unsigned n = 0; n < POLICY_N_PARTS;) {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_egress, 60000));
		assert_int_equal(ipc_recv(rig_egress, &rig_msg), 1);
		n += rig_msg.type == EGRESS_POLICY;
	}
	assert_int_equal(egress_send_loaded(rig_egress, rig_msg.id, ""), 0);
	must_get_soon(KEEPER_DONE);
}

static int up(void **state)
{
	int r = cred_up(state);
	AUTO_FREE char *dir = xasprintf("%s/sbx/apis", rig_dir);
	AUTO_FREE char *path = xasprintf("%s/test.api", dir);
	AUTO_FREE char *text = xasprintf(pack_form, (unsigned)cred_port);

	assert_int_equal(paths_make(dir, NULL), 0);
	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
	clerk = -1;
	n_clerks = 0;
	held = (struct hold_msg){0};
	rig_k.clerks->spawn = spawn;
	rig_bring_egress_up();
	cred_vault_up();
	set_rules("allow api test do any risk read\nallow api test do thing.create\n");
	return r;
}

static int down(void **state)
{
	struct packs *packs = TAKE(rig_k.netpolicy->packs);

	clerks_kill_all(&rig_k, "the test ends");
	fd_close(&clerk);
	gate_set_packs(rig_k.gate, NULL);
	if (packs)
		packs_done(packs);
	free(packs);
	return cred_down(state);
}

/* ---- helpers ---- */

static void ask(uint32_t id, const char *target)
{
	struct edge_ask a = {.kind = EDGE_ASK_HTTP, .port = cred_port, .tls = true};
	char wants[EDGE_MAX_WANTS];

	(void)!str_copy(a.host, sizeof(a.host), CRED_HOST);
	(void)!str_copy(a.method, sizeof(a.method), "POST");
	(void)!str_copy(a.target, sizeof(a.target), target);
	a.wants_id = gate_get_wants(rig_k.gate, &a, clock_wall_ms(), wants);
	assert_int_equal(edge_send_ask(rig_edge, id, &a), 0);
}

/* Edge's end of an allowed request; the clerk has its own. */
struct request {
	int edge_fd, clerk_fd;
};

static struct request begin(uint32_t id)
{
	struct request q;
	char text[64] = "";

	ask(id, "/graphql");
	if (!rig_must_answer(id))
		fail_msg("%s", rig_verdict.reason);
	q.edge_fd = TAKE_FD(rig_msg.fd);
	assert_true(q.edge_fd >= 0);
	assert_int_equal(chan_send_hello(clerk, SBX_BUILD), 0);
	rig_must_get(clerk, CLERK_CONFIG);
	assert_true(pread(rig_msg.fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "service test\n"));
	rig_must_get(clerk, CLERK_OPEN);
	q.clerk_fd = TAKE_FD(rig_msg.fd);
	return q;
}

static void end(struct request *q)
{
	fd_close(&q->edge_fd);
	fd_close(&q->clerk_fd);
}

static void report(enum clerk_call_type type, const char *field, const char *object)
{
	uint8_t buf[2000];
	struct wr wr = wr_init(buf, sizeof(buf));
	const struct clerk_call call = {type, slice_from_str(field), slice_from_str(object)};

	clerk_put_call(&wr, &call);
	assert_int_equal(clerk_send_effects(clerk, slice_of(buf, wr.n)), 0);
}

static void judge(const char *why)
{
	struct clerk_judged judged = {.preview = "create the thing\n"};

	(void)!str_copy(judged.text, sizeof(judged.text), why);
	assert_int_equal(clerk_send_judged(clerk, &judged), 0);
}

static bool must_be_decided(void)
{
	rig_must_get(clerk, CLERK_DECIDED);
	assert_int_equal(clerk_get_decided(&rig_msg, &decided), 0);
	return decided.allowed;
}

static size_t count_alive(void)
{
	size_t n = 0;

	for (size_t i = 0; i < KEEPER_N_CLERKS; i++)
		n += rig_k.clerks->list[i].worker.alive;
	return n;
}

static void must_be_killed(unsigned n_violations)
{
	RIG_UNTIL(count_alive() == 0);
	assert_int_equal(rig_k.clerks->n_call_violations, n_violations);
	assert_int_equal(rig_k.clerks->n_violations, 0);
	assert_int_equal(cred_n_origins, 0);
}

static void answer(enum hold_choice choice)
{
	struct hold_reply reply = {.choice = (uint8_t)choice, .where = "api"};
	struct keeper_done done;

	memcpy(reply.id, held.id, sizeof(reply.id));
	memcpy(reply.digest, held.digest, sizeof(reply.digest));
	assert_int_equal(hold_send_reply(rig_sbxd, 5, &reply), 0);
	must_get_soon(KEEPER_DONE);
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	assert_int_equal(done.code, 0);
}

/* ---- good ones ---- */

static void permitted_calls_get_a_socket_for_this_request(void **state)
{
	const struct ticket_request want = {.tls = true,
		.method = slice_from_str("POST"),
		.host = slice_from_str(CRED_HOST),
		.port = cred_port,
		.path = slice_from_str("/graphql")};
	struct request q = begin(1);
	struct ticket ticket;
	int origin, line, fd;
	char c;

	assert_int_equal(cred_n_origins, 0);
	report(CLERK_QUERY, "*", "all");
	report(CLERK_MUTATION, "createThing", "node/1");
	judge("");
	assert_true(must_be_decided());
	line = TAKE_FD(rig_msg.fd);
	assert_non_null(
		strstr(rig_last_record().effects, "api:thing.create test node/1 risk=write"));
	assert_int_equal(rig_last_record().decision, AUDIT_ALLOW);
	origin = cred_origins[cred_n_origins - 1];
	assert_int_equal(chan_send_hello(origin, SBX_BUILD), 0);
	do {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(origin, 60000));
		assert_int_equal(ipc_recv(origin, &rig_msg), 1);
	} while (rig_msg.type != ORIGIN_OPEN);
	assert_int_equal(origin_get_open(&rig_msg, &ticket), 0);
	assert_true(ticket.is_judged);
	assert_true(ticket_is_for(&ticket, &want));
	fd = TAKE_FD(rig_msg.fd);
	assert_int_equal(write(line, "y", 1), 1);
	assert_int_equal(read(fd, &c, 1), 1);
	assert_int_equal(chan_send_plain(clerk, CLERK_DONE, 0, -1), 0);
	RIG_UNTIL(count_alive() == 0);
	fd_close(&fd);
	fd_close(&line);
	end(&q);
}

static void held_calls_are_sent_after_the_answer(void **state)
{
	struct request q;

	set_rules("allow api test do any risk read\nask api test do thing.create\n");
	q = begin(1);
	report(CLERK_MUTATION, "createThing", "node/1");
	judge("");
	must_get_soon(KEEPER_HELD);
	assert_non_null(strstr(held.effects, "api:thing.create test node/1"));
	assert_string_equal(held.preview, "create the thing\n");
	rig_must_be_quiet(clerk);
	assert_int_equal(cred_n_origins, 0);
	answer(HOLD_CHOICE_ONCE);
	assert_true(must_be_decided());
	fd_close(&rig_msg.fd);
	end(&q);
}

/* The verdict of the pack that applies then: the old one may be gone. */
static void a_new_policy_decides_calls_that_wait(void **state)
{
	struct request q;

	set_rules("ask api test do thing.create\n");
	q = begin(1);
	report(CLERK_MUTATION, "createThing", "node/1");
	judge("");
	must_get_soon(KEEPER_HELD);
	set_rules("allow api test do thing.delete\n");
	assert_false(must_be_decided());
	assert_non_null(strstr(decided.report, "api:thing.create test node/1 risk=write"));
	end(&q);
}

/* ---- what is not permitted ---- */

static void each_call_must_be_permitted(void **state)
{
	struct request q = begin(1);

	report(CLERK_MUTATION, "createThing", "node/1");
	report(CLERK_MUTATION, "deleteThing", "node/1");
	judge("");
	assert_false(must_be_decided());
	assert_non_null(strstr(decided.report, "api:thing.delete test node/1 risk=danger"));
	assert_non_null(strstr(decided.report, "allowed: allow api test"));
	assert_non_null(strstr(decided.report,
		"sbx policy allow api test --do thing.delete --on 'node/1' --sandbox demo"));
	assert_int_equal(cred_n_origins, 0);
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	end(&q);
}

/* A clerk that lies about its row gets no other verb: rows are those of the keeper. */
static void rows_that_do_not_exist_are_unknown(void **state)
{
	static const struct {
		enum clerk_call_type type;
		const char *field;
	} list[] = {{CLERK_MUTATION, "no_such"}, {CLERK_QUERY, "createThing"},
		{CLERK_SUBSCRIPTION, "createThing"}, {CLERK_UNKNOWN, ""}};

	set_rules("allow api test do thing.create\n");
	for (uint32_t i = 0; i < ARRAY_LEN(list); i++) {
		struct request q = begin(i + 1);

		report(list[i].type, list[i].field, list[i].field[0] ? "all" : "");
		judge(list[i].field[0] ? "" : "the document is cut off");
		assert_false(must_be_decided());
		end(&q);
	}
	assert_non_null(strstr(decided.report, "unknown:api test - why=body"));
	assert_non_null(strstr(decided.report, ": the document is cut off"));
	assert_non_null(strstr(rig_last_record().reason, ": the document is cut off"));
	assert_int_equal(cred_n_origins, 0);
}

static void no_effect_at_all_is_unknown(void **state)
{
	struct request q = begin(1);

	judge("");
	assert_false(must_be_decided());
	assert_non_null(strstr(decided.report, "unknown:api test - why=body"));
	end(&q);
	set_rules("allow api test do any,unknown\ndeny api test do thing.delete\n");
	q = begin(2);
	judge("");
	assert_false(must_be_decided());
	end(&q);
}

/* ---- hostile ones ---- */

static void records_of_pushes_and_wants_are_violations(void **state)
{
	uint8_t buf[64];
	struct wr wr = wr_init(buf, sizeof(buf));
	const struct clerk_effect e = {.verb = CLERK_PUSH, .ref = slice_from_str("refs/heads/x")};
	struct request q = begin(1);

	assert_int_equal(clerk_send_want(clerk, ""), 0);
	must_be_killed(1);
	end(&q);
	q = begin(2);
	clerk_put_effect(&wr, &e);
	assert_int_equal(clerk_send_effects(clerk, slice_of(buf, wr.n)), 0);
	must_be_killed(2);
	end(&q);
	q = begin(3);
	report(CLERK_MUTATION, "createThing", "node/1");
	judge("");
	judge("");
	RIG_UNTIL(count_alive() == 0);
	assert_int_equal(rig_k.clerks->n_call_violations, 3);
	end(&q);
	ask(9, "/graphql");
	assert_false(rig_must_answer(9));
	assert_non_null(strstr(rig_verdict.reason, "sbx-clerk violated its protocol"));
	assert_int_equal(rig_k.clerks->n_violations, 0);
}

static void a_death_before_the_decision_sends_nothing(void **state)
{
	struct request q = begin(1);

	report(CLERK_MUTATION, "createThing", "node/1");
	assert_int_equal(kill(rig_k.clerks->list[KEEPER_MAX_CLERKS].worker.child.pid, SIGKILL), 0);
	must_be_killed(0);
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	assert_string_equal(rig_last_record().reason, "sbx-clerk ended");
	end(&q);
}

static void some_calls_are_read_at_the_same_time(void **state)
{
	struct request q[KEEPER_MAX_CALLS];

	for (uint32_t i = 0; i < KEEPER_MAX_CALLS; i++)
		q[i] = begin(i + 1);
	ask(99, "/graphql");
	assert_false(rig_must_answer(99));
	assert_non_null(strstr(rig_verdict.reason, "requests to GraphQL at the same time"));
	for (uint32_t i = 0; i < KEEPER_MAX_CALLS; i++)
		end(&q[i]);
}

static void other_paths_have_no_clerk(void **state)
{
	static const char *const paths[] = {
		"/graphql?a=b", "/graphql/", "/GraphQL", "/all", "//graphql", "/graphql;a"};

	for (uint32_t i = 0; i < ARRAY_LEN(paths); i++) {
		ask(i + 1, paths[i]);
		if (i == 0) { /* the clerk refuses a query */
			assert_true(rig_must_answer(i + 1));
			fd_close(&rig_msg.fd);
			continue;
		}
		assert_false(rig_must_answer(i + 1));
	}
	assert_int_equal(n_clerks, 1);
}

#define CALLS_TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CALLS_TEST(permitted_calls_get_a_socket_for_this_request),
		CALLS_TEST(held_calls_are_sent_after_the_answer),
		CALLS_TEST(a_new_policy_decides_calls_that_wait),
		CALLS_TEST(each_call_must_be_permitted),
		CALLS_TEST(rows_that_do_not_exist_are_unknown),
		CALLS_TEST(no_effect_at_all_is_unknown),
		CALLS_TEST(records_of_pushes_and_wants_are_violations),
		CALLS_TEST(a_death_before_the_decision_sends_nothing),
		CALLS_TEST(some_calls_are_read_at_the_same_time),
		CALLS_TEST(other_paths_have_no_clerk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
