/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/vault_chan.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

static int pair[2];
static struct ipc_msg msg;
static struct vault_meta meta, got_meta;
static struct vault_ref ref, got_ref;

static int setup(void **state)
{
	msg.fd = -1;
	meta = (struct vault_meta){.name = "github",
		.scope = "sandbox-1",
		.kind = VAULT_CUSTOM,
		.hosts = "api.example.com *.example.org",
		.header = "authorization",
		.format = "Bearer %s",
		.env = "GH_TOKEN GITHUB_TOKEN",
		.sentinel = "gho_proxymanaged"};
	ref = (struct vault_ref){.kind = VAULT_REF_DOCKER,
		.program = "/usr/bin/docker-credential-pass",
		.n_args = 1,
		.args = {"https://registry.example.com"},
		.refresh_s = 60};
	return ipc_pair(pair);
}

static int teardown(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	ipc_msg_done(&msg);
	return 0;
}

static void receive(uint16_t type, uint32_t id)
{
	ipc_msg_done(&msg);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
	assert_int_equal(msg.type, type);
	assert_int_equal(msg.id, id);
}

static void test_vault_to_peer(void **state)
{
	static struct vault_item item, got;
	const struct vault_status status = {.state = VAULT_READY,
		.key = VAULT_KEY_PASSPHRASE,
		.memory = VAULT_MEMORY_LOCKED,
		.n_items = 3,
		.generation = 77,
		.text = "all is well"};
	const struct vault_done done = {.code = -ENOENT, .number = 5, .text = "there is none"};
	struct vault_status got_status;
	struct vault_done got_done;
	char build[CHAN_MAX_BUILD];
	uint64_t generation;

	assert_int_equal(chan_send_hello(pair[0], "build 1"), 0);
	receive(VAULT_HELLO, 0);
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, "build 1");
	item = (struct vault_item){.meta = meta,
		.ref = VAULT_REF_DOCKER,
		.program = "/x",
		.serial = 9,
		.created_ms = 1,
		.changed_ms = 2,
		.used_ms = 3,
		.mask_head = "sk-",
		.mask_tail = "abcd"};
	assert_int_equal(vault_send_item(pair[0], 4, &item), 0);
	receive(VAULT_ITEM, 4);
	assert_int_equal(vault_get_item(&msg, &got), 0);
	assert_memory_equal(&got, &item, sizeof(got));
	assert_int_equal(vault_send_status(pair[0], 5, &status), 0);
	receive(VAULT_STATUS_IS, 5);
	assert_int_equal(vault_get_status(&msg, &got_status), 0);
	assert_int_equal(got_status.key, VAULT_KEY_PASSPHRASE);
	assert_int_equal(got_status.generation, 77);
	assert_int_equal(vault_send_done(pair[0], 6, &done), 0);
	receive(VAULT_DONE, 6);
	assert_int_equal(vault_get_done(&msg, &got_done), 0);
	assert_int_equal(got_done.code, -ENOENT);
	assert_int_equal(got_done.number, 5);
	assert_int_equal(vault_send_changed(pair[0], 8), 0);
	receive(VAULT_CHANGED, 0);
	assert_int_equal(vault_get_changed(&msg, &generation), 0);
	assert_int_equal(generation, 8);
}

static void test_peer_to_vault(void **state)
{
	char name[VAULT_MAX_NAME], scope[VAULT_MAX_SCOPE];
	uint64_t serial;

	assert_int_equal(vault_ask_set(pair[0], 1, &meta, 0), 0);
	receive(VAULT_SET, 1);
	assert_int_equal(vault_get_set(&msg, &got_meta), 0);
	assert_memory_equal(&got_meta, &meta, sizeof(meta));
	assert_true(msg.fd > 2 && fcntl(msg.fd, F_GETFD) == FD_CLOEXEC);
	assert_int_equal(vault_ask_set_ref(pair[0], 2, &meta, &ref), 0);
	receive(VAULT_SET_REF, 2);
	assert_int_equal(vault_get_set_ref(&msg, &got_meta, &got_ref), 0);
	assert_memory_equal(&got_ref, &ref, sizeof(ref));
	assert_int_equal(vault_ask_remove(pair[0], 3, "github", ""), 0);
	receive(VAULT_REMOVE, 3);
	assert_int_equal(vault_get_remove(&msg, name, scope), 0);
	assert_string_equal(scope, "");
	assert_int_equal(vault_ask_release(pair[0], 4, "github", 17, 0), 0);
	receive(VAULT_RELEASE, 4);
	assert_int_equal(vault_get_release(&msg, name, &serial), 0);
	assert_int_equal(serial, 17);
	assert_int_equal(vault_ask_channel(pair[0], "sandbox-1", 0), 0);
	receive(VAULT_CHANNEL, 0);
	assert_int_equal(vault_get_channel(&msg, scope), 0);
	assert_string_equal(scope, "sandbox-1");
	assert_int_equal(vault_ask_channel(pair[0], "sandbox-1", -1), 0);
	receive(VAULT_CHANNEL, 0);
	assert_int_equal(vault_get_channel(&msg, scope), -EBADMSG);
	assert_int_equal(chan_send_plain(pair[0], VAULT_UNLOCK, 5, 0), 0);
	receive(VAULT_UNLOCK, 5);
	assert_int_equal(chan_get_plain(&vault_chan, &msg, VAULT_UNLOCK), 0);
	assert_int_equal(chan_send_plain(pair[0], VAULT_LIST, 6, -1), 0);
	receive(VAULT_LIST, 6);
	assert_int_equal(chan_get_plain(&vault_chan, &msg, VAULT_LIST), 0);
	assert_int_equal(chan_get_plain(&vault_chan, &msg, VAULT_WATCH), -EBADMSG);
}

/* Everything as long as it may be fits into one message. */
static void test_the_largest_reference(void **state)
{
	memset(meta.name, 'n', sizeof(meta.name) - 1);
	memset(meta.scope, 's', sizeof(meta.scope) - 1);
	memset(meta.hosts, 'h', sizeof(meta.hosts) - 1);
	memset(meta.sentinel, 's', sizeof(meta.sentinel) - 1);
	ref.kind = VAULT_REF_WHOLE;
	memset(ref.program + 1, 'p', sizeof(ref.program) - 2);
	ref.n_args = VAULT_MAX_ARGS;
	for (size_t i = 0; i < VAULT_MAX_ARGS; i++)
		memset(ref.args[i], 'a', sizeof(ref.args[i]) - 1);
	assert_int_equal(vault_ask_set_ref(pair[0], 2, &meta, &ref), 0);
	receive(VAULT_SET_REF, 2);
	assert_int_equal(vault_get_set_ref(&msg, &got_meta, &got_ref), 0);
	assert_memory_equal(&got_ref, &ref, sizeof(ref));
}

static int set_back(void)
{
	assert_int_equal(vault_ask_set(pair[0], 1, &meta, 0), 0);
	receive(VAULT_SET, 1);
	return vault_get_set(&msg, &got_meta);
}

static int set_ref_back(void)
{
	assert_int_equal(vault_ask_set_ref(pair[0], 1, &meta, &ref), 0);
	receive(VAULT_SET_REF, 1);
	return vault_get_set_ref(&msg, &got_meta, &got_ref);
}

static void test_refused_fields(void **state)
{
	static const char *const names[] = {
		"", "-x", "a b", "a/b", "../a", "a\nb", "\xc3\xa9", ".a"};
	const struct vault_meta good = meta;
	const struct vault_ref good_ref = ref;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)memset(meta.name, 0, sizeof(meta.name));
		memcpy(meta.name, names[i], strlen(names[i]));
		assert_int_equal(set_back(), -EBADMSG);
		meta = good;
		memset(meta.scope, 0, sizeof(meta.scope));
		memcpy(meta.scope, names[i], strlen(names[i]));
		assert_int_equal(set_back(), names[i][0] ? -EBADMSG : 0);
		meta = good;
	}
	meta.header[3] = '\r';
	assert_int_equal(set_back(), -EBADMSG);
	meta = good;
	meta.kind = VAULT_N_KINDS;
	assert_int_equal(set_back(), -EBADMSG);
	meta = good;
	ref.program[0] = 'x';
	assert_int_equal(set_ref_back(), -EBADMSG);
	ref = good_ref;
	ref.kind = VAULT_REF_NONE;
	assert_int_equal(set_ref_back(), -EBADMSG);
	ref = good_ref;
	ref.refresh_s = VAULT_MAX_REFRESH_S + 1;
	assert_int_equal(set_ref_back(), -EBADMSG);
	ref = good_ref;
	ref.n_args = 0;
	assert_int_equal(set_ref_back(), -EBADMSG);
	ref = good_ref;
	ref.args[0][0] = '\n';
	assert_int_equal(set_ref_back(), -EBADMSG);
}

/* A descriptor exactly where the table says so; every message cut anywhere; something behind it. */
static void test_fds_and_lengths(void **state)
{
	static const char *const no_tokens[] = {
		"demo", "Demo.access", ".access", "a.b.access", "a.accessx", "a.secret"};
	static struct ipc_msg cut;
	uint64_t serial;
	char name[VAULT_MAX_NAME];

	assert_int_equal(vault_ask_set(pair[0], 1, &meta, -1), 0);
	receive(VAULT_SET, 1);
	assert_int_equal(vault_get_set(&msg, &got_meta), -EBADMSG);
	for (size_t i = 0; i < sizeof(no_tokens) / sizeof(no_tokens[0]); i++) {
		assert_int_equal(vault_ask_store(pair[0], 1, no_tokens[i], 0), 0);
		receive(VAULT_STORE, 1);
		assert_int_equal(vault_get_store(&msg, name), -EBADMSG);
	}
	assert_int_equal(vault_ask_store(pair[0], 1, "a.access", -1), 0);
	receive(VAULT_STORE, 1);
	assert_int_equal(vault_get_store(&msg, name), -EBADMSG);
	assert_int_equal(vault_ask_store(pair[0], 1, "open-ai2.refresh", 0), 0);
	receive(VAULT_STORE, 1);
	assert_int_equal(vault_get_store(&msg, name), 0);
	assert_string_equal(name, "open-ai2.refresh");
	assert_int_equal(vault_ask_release(pair[0], 1, "a", 1, -1), 0);
	receive(VAULT_RELEASE, 1);
	assert_int_equal(vault_get_release(&msg, name, &serial), -EBADMSG);
	assert_int_equal(vault_ask_release(pair[0], 1, "a", 0, 0), 0);
	receive(VAULT_RELEASE, 1);
	assert_int_equal(vault_get_release(&msg, name, &serial), -EBADMSG);
	assert_int_equal(chan_send_plain(pair[0], VAULT_LIST, 1, 0), 0);
	receive(VAULT_LIST, 1);
	assert_int_equal(chan_get_plain(&vault_chan, &msg, VAULT_LIST), -EBADMSG);
	assert_int_equal(chan_send_plain(pair[0], VAULT_STOP, 1, -1), 0);
	receive(VAULT_STOP, 1);
	assert_int_equal(chan_get_plain(&vault_chan, &msg, VAULT_STOP), -EBADMSG);
	assert_int_equal(vault_ask_set_ref(pair[0], 2, &meta, &ref), 0);
	receive(VAULT_SET_REF, 2);
	cut = msg;
	for (cut.n = 0; cut.n < msg.n; cut.n++)
		assert_int_equal(vault_get_set_ref(&cut, &got_meta, &got_ref), -EBADMSG);
	cut.n = msg.n + 1;
	assert_int_equal(vault_get_set_ref(&cut, &got_meta, &got_ref), -EBADMSG);
}

static void test_phases(void **state)
{
	/* what a sandbox's keeper may say, and nothing more */
	static const uint16_t of_sandbox[] = {
		VAULT_LIST, VAULT_RELEASE, VAULT_STORE, VAULT_WATCH, VAULT_STATUS};
	enum vault_phase p = VAULT_PHASE_START;

	for (uint16_t t = 0; t <= VAULT_N_MSGS + 1; t++) {
		bool listed = false;

		for (size_t i = 0; i < ARRAY_LEN(of_sandbox); i++)
			listed |= of_sandbox[i] == t;
		assert_int_equal(
			chan_allows(&vault_chan, VAULT_PHASE_SANDBOX, VAULT_FROM_PEER, t), listed);
		assert_false(chan_allows(&vault_chan, VAULT_PHASE_START, VAULT_FROM_PEER, t));
		assert_false(chan_allows(&vault_chan, VAULT_PHASE_END, VAULT_FROM_PEER, t));
		assert_int_equal(chan_allows(&vault_chan, VAULT_PHASE_ROLE, VAULT_FROM_PEER, t),
			t == VAULT_ADMIN);
		/* the owner can do what an admin can, and create channels */
		assert_int_equal(chan_allows(&vault_chan, VAULT_PHASE_OWNER, VAULT_FROM_PEER, t),
			t == VAULT_CHANNEL ||
				chan_allows(&vault_chan, VAULT_PHASE_ADMIN, VAULT_FROM_PEER, t));
	}
	assert_false(chan_allows(&vault_chan, VAULT_PHASE_ADMIN, VAULT_FROM_PEER, VAULT_CHANNEL));
	/* who manages credentials cannot have one released */
	assert_false(chan_allows(&vault_chan, VAULT_PHASE_OWNER, VAULT_FROM_PEER, VAULT_RELEASE));
	assert_false(chan_allows(&vault_chan, VAULT_PHASE_ADMIN, VAULT_FROM_PEER, VAULT_RELEASE));
	assert_false(chan_allows(&vault_chan, VAULT_PHASE_ADMIN, VAULT_FROM_PEER, VAULT_STORE));
	p = chan_after(&vault_chan, p, VAULT_HELLO);
	/* a peer cannot make itself a sandbox or the owner */
	for (uint16_t t = 0; t < VAULT_N_MSGS; t++) {
		assert_int_not_equal(chan_after(&vault_chan, p, t), VAULT_PHASE_SANDBOX);
		assert_int_not_equal(chan_after(&vault_chan, p, t), VAULT_PHASE_OWNER);
	}
	p = chan_after(&vault_chan, p, VAULT_ADMIN);
	assert_int_equal(p, VAULT_PHASE_ADMIN);
	assert_int_equal(chan_after(&vault_chan, p, VAULT_SET), VAULT_PHASE_ADMIN);
	assert_int_equal(chan_after(&vault_chan, p, VAULT_STOP), VAULT_PHASE_END);
}

static void test_texts(void **state)
{
	for (unsigned i = 0; i < VAULT_N_KEYS; i++)
		assert_true(vault_key_text((enum vault_key)i)[0]);
	for (unsigned i = 0; i < VAULT_N_MEMORIES; i++)
		assert_true(vault_memory_text((enum vault_memory)i)[0]);
	assert_string_equal(vault_key_text(VAULT_N_KEYS), "unknown");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_vault_to_peer),
		TEST(test_peer_to_vault),
		TEST(test_the_largest_reference),
		TEST(test_refused_fields),
		TEST(test_fds_and_lengths),
		TEST(test_phases),
		TEST(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
