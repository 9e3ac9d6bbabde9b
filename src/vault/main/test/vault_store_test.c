/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens from a sandbox's keeper: stored for that sandbox only, under their own names. */
#include "vault_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"

#define TOKEN "oat-CANARY-of-a-sandbox-0123"

static const char *const by_file[] = {"--key=file", NULL};
static struct rig *r;

static int setup(void **state)
{
	r = rig_new(by_file);
	return 0;
}

static int teardown(void **state)
{
	rig_free(r);
	return 0;
}

/* The contents of the pipe, which may differ from the message. */
struct said {
	const char *name; /* NULL: as the message */
	const char *header;
	uint64_t serial;
	size_t cut; /* bytes missing at the end */
	const char *more;
};

static void write_frame(int fd, const char *name, struct slice value, const struct said *said)
{
	static uint8_t buf[VAULT_FRAME_MAX + 64];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct vault_frame frame = {.serial = said->serial, .value = value};

	(void)snprintf(frame.name, sizeof(frame.name), "%s", said->name ? said->name : name);
	(void)snprintf(frame.header, sizeof(frame.header), "%s", said->header ? said->header : "");
	assert_int_equal(vault_frame_head(&frame, &wr), 0);
	wr_bytes(&wr, value);
	if (said->more)
		wr_bytes(&wr, slice_from_str(said->more));
	assert_int_equal(fd_write_all(fd, buf, wr.n - said->cut), 0);
}

static int store_as(int keeper, const char *name, struct slice value, const struct said *said)
{
	static uint32_t id = 1000;
	struct vault_done done;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, 1 << 18) > 0);
	write_frame(fds[1], name, value, said);
	(void)close(fds[1]);
	assert_int_equal(vault_ask_store(keeper, ++id, name, fds[0]), 0);
	(void)close(fds[0]);
	rig_done(keeper, id, &done);
	return done.code;
}

static int store(int keeper, const char *name, const char *value)
{
	return store_as(keeper, name, slice_from_str(value), &(struct said){0});
}

static void test_a_token_is_kept(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s1"), other = rig_keeper(r, "s2");
	AUTO_FREE char *value = NULL, *again = NULL, *none = NULL;
	static struct vault_item items[RIG_MAX_ITEMS];

	assert_int_equal(store(keeper, "demo.access", TOKEN), 0);
	assert_int_equal(store(keeper, "demo.refresh", "r-" TOKEN), 0);
	assert_int_equal(rig_list(keeper, items), 2);
	assert_string_equal(items[0].meta.name, "demo.access");
	assert_string_equal(items[0].meta.scope, "s1");
	assert_int_equal(items[0].meta.kind, VAULT_SERVICE);
	assert_int_equal(rig_release(keeper, "demo.access", 0, &value, NULL), 0);
	assert_string_equal(value, TOKEN);
	/* not visible to others */
	assert_int_equal(rig_list(other, NULL), 0);
	assert_int_equal(rig_release(other, "demo.access", items[0].serial, &none, NULL), -ENOENT);
	/* a newer one has another serial */
	assert_int_equal(store(keeper, "demo.access", "new-" TOKEN), 0);
	assert_int_equal(rig_release(keeper, "demo.access", items[0].serial, &none, NULL), -ESTALE);
	assert_int_equal(rig_release(keeper, "demo.access", 0, &again, NULL), 0);
	assert_string_equal(again, "new-" TOKEN);
	assert_int_equal(rig_list(keeper, NULL), 2);
}

static void test_it_is_there_after_a_restart(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s1"), later = -1;
	AUTO_FREE char *value = NULL;

	assert_int_equal(store(keeper, "demo.refresh", TOKEN), 0);
	rig_kill(r);
	rig_start(r, by_file);
	later = rig_keeper(r, "s1");
	assert_int_equal(rig_release(later, "demo.refresh", 0, &value, NULL), 0);
	assert_string_equal(value, TOKEN);
}

static void test_names_of_others_drop_the_peer(void **state)
{
	static const char *const names[] = {"demo", "demo.access.x", ".access", "demo.accessx",
		"Demo.access", "a.b.access", "demo.secret", "custom:x.access"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		AUTO_CLOSE int keeper = rig_keeper(r, "s1");
		int fds[2];

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		assert_int_equal(vault_ask_store(keeper, 1, names[i], fds[0]), 0);
		assert_true(rig_is_dropped(keeper));
		(void)close(fds[0]);
		(void)close(fds[1]);
	}
}

static void test_frames_that_say_something_else(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s1");
	static char large[VAULT_MAX_TOKEN + 2];
	struct slice token = slice_from_str(TOKEN);

	memset(large, 'a', sizeof(large) - 1);
	assert_int_equal(
		store_as(keeper, "demo.access", token, &(struct said){.name = "other.access"}),
		-EINVAL);
	assert_int_equal(
		store_as(keeper, "demo.access", token, &(struct said){.name = "demo.refresh"}),
		-EINVAL);
	assert_int_equal(store_as(keeper, "demo.access", token, &(struct said){.header = "x-evil"}),
		-EINVAL);
	assert_int_equal(
		store_as(keeper, "demo.access", token, &(struct said){.serial = 1}), -EINVAL);
	assert_int_equal(store_as(keeper, "demo.access", token, &(struct said){.cut = 1}), -EINVAL);
	assert_int_equal(
		store_as(keeper, "demo.access", token, &(struct said){.more = "x"}), -EINVAL);
	assert_int_equal(store_as(keeper, "demo.access", slice_of(large, VAULT_MAX_TOKEN + 1),
				 &(struct said){0}),
		-EMSGSIZE);
	/* a frame must have its value: without one it is truncated */
	assert_int_equal(
		store_as(keeper, "demo.access", token, &(struct said){.cut = sizeof(TOKEN) - 1}),
		-EINVAL);
	assert_int_equal(rig_list(keeper, NULL), 0);
	assert_int_equal(store_as(keeper, "demo.access", slice_of(large, VAULT_MAX_TOKEN),
				 &(struct said){0}),
		0);
}

static void test_what_the_user_set_stays(void **state)
{
	AUTO_CLOSE int admin = rig_admin(r), keeper = rig_keeper(r, "s1");
	AUTO_FREE char *value = NULL;

	/* a global one coexists, and a sandbox cannot write it */
	assert_int_equal(rig_set_str(admin, "demo.access", "", "the user's own"), 0);
	assert_int_equal(rig_set_str(admin, "demo", "", "the user's key"), 0);
	assert_int_equal(store(keeper, "demo.access", TOKEN), 0);
	assert_int_equal(rig_list(admin, NULL), 3);
	assert_int_equal(rig_remove(admin, "demo.access", "s1"), 0);
	assert_int_equal(rig_release(keeper, "demo.access", 0, &value, NULL), 0);
	assert_string_equal(value, "the user's own");
}

static void test_an_admin_cannot(void **state)
{
	AUTO_CLOSE int admin = rig_admin(r);
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(vault_ask_store(admin, 1, "demo.access", fds[0]), 0);
	assert_true(rig_is_dropped(admin));
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void test_their_number_is_bounded(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s1");
	char name[32];

	for (int i = 0; i < VAULT_MAX_TOKENS; i++) {
		(void)snprintf(name, sizeof(name), "demo-%d.access", i);
		assert_int_equal(store(keeper, name, TOKEN), 0);
	}
	assert_int_equal(store(keeper, "one-more.access", TOKEN), -ENOSPC);
	assert_int_equal(store(keeper, "demo-0.access", "another-" TOKEN), 0);
}

/* Only input with an end is read; a file could be anything. */
static void test_no_files(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s1"), file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct vault_done done;

	assert_int_equal(vault_ask_store(keeper, 1, "demo.access", file), 0);
	rig_done(keeper, 1, &done);
	assert_int_equal(done.code, -EINVAL);
}

static void watch(int peer)
{
	struct vault_done done;

	assert_int_equal(chan_send_plain(peer, VAULT_WATCH, 1, -1), 0);
	rig_done(peer, 1, &done);
}

static void a_token_is_told_to_its_sandbox_only(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s1"), other = rig_keeper(r, "s2"),
		       admin = rig_admin(r);
	static struct ipc_msg msg;
	struct vault_status status;

	watch(keeper);
	watch(other);
	watch(admin);
	assert_int_equal(rig_store(keeper, "demo.access", TOKEN, NULL), 0);
	rig_status(other, &status); /* fails if CHANGED arrives first */
	rig_next(admin, &msg);
	assert_int_equal(msg.type, VAULT_CHANGED);
	assert_int_equal(rig_remove(admin, "demo.access", "s1"), 0);
	rig_status(other, &status);
	/* a global change is sent to all */
	assert_int_equal(rig_set_str(admin, "demo", "", "v"), 0);
	rig_next(other, &msg);
	assert_int_equal(msg.type, VAULT_CHANGED);
}

static void the_same_token_again_changes_nothing(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s1");
	uint64_t first = 0, again = 0, other = 0;
	struct vault_status before, after;

	assert_int_equal(rig_store(keeper, "demo.access", TOKEN, &first), 0);
	watch(keeper);
	rig_status(keeper, &before);
	assert_int_equal(rig_store(keeper, "demo.access", TOKEN, &again), 0);
	rig_status(keeper, &after);
	assert_int_equal(again, first);
	assert_int_equal(after.generation, before.generation);
	assert_int_equal(rig_store(keeper, "demo.access", TOKEN "x", &other), 0);
	assert_int_not_equal(other, first);
}

/* Each one writes the sealed file, and all sandboxes wait for that. */
static void tokens_in_a_row_wait(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s1"), other = rig_keeper(r, "s2"), again = -1;
	uint64_t begin;

	for (int i = 0; i < VAULT_MAX_TOKENS; i++)
		assert_int_equal(store(keeper, "demo.access", i % 2 ? TOKEN : "x" TOKEN), 0);
	begin = clock_mono_ms();
	for (int i = 0; i < 4; i++)
		assert_int_equal(store(keeper, "demo.access", i % 2 ? TOKEN : "x" TOKEN), 0);
	assert_in_range(clock_mono_ms() - begin, 700, 30000);
	/* Regression R10A2: a new channel had a new burst */
	again = rig_keeper(r, "s1");
	begin = clock_mono_ms();
	for (int i = 0; i < 4; i++)
		assert_int_equal(store(again, "demo.access", i % 2 ? TOKEN : "x" TOKEN), 0);
	assert_in_range(clock_mono_ms() - begin, 700, 30000);
	/* a delayed peer delays no other */
	assert_int_equal(store(again, "demo.access", "y" TOKEN), 0);
	assert_int_equal(store(other, "demo.access", TOKEN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_token_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_it_is_there_after_a_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_names_of_others_drop_the_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_frames_that_say_something_else, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_the_user_set_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_admin_cannot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_their_number_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_files, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_token_is_told_to_its_sandbox_only, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_same_token_again_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(tokens_in_a_row_wait, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
