/* SPDX-License-Identifier: Apache-2.0 */
/* A process in the real filter asks about descriptors; the test is the keeper or the supervisor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/os/jail/filter.h"
#include "lib/vm/share/room.h"

#define FULL_AT 100
#define WAIT_MS 5000

struct rig {
	pid_t pid;
	int go, said; /* pipes to and from the process in the filter */
	struct room room;
};

static int ask_about(int number)
{
	struct statx sx;

	if (dup2(0, number) != number)
		return -1;
	return (int)syscall(SYS_statx, number, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &sx);
}

/* Each byte is a descriptor to ask about; the answer is a byte too. */
static void __attribute__((noreturn)) filtered(int go, int said)
{
	struct filter f = {0};
	uint8_t byte;
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (filter_make_notify(&(struct filter_notify){.full_at = FULL_AT}, &f, NULL) < 0)
		_exit(1);
	fd = filter_install(&f, true);
	byte = (uint8_t)fd;
	if (fd < 0 || write(said, &byte, 1) != 1)
		_exit(1);
	while (read(go, &byte, 1) == 1) {
		byte = ask_about(byte) == 0;
		(void)!write(said, &byte, 1);
	}
	_exit(0);
}

static uint8_t heard(const struct rig *r, int ms)
{
	struct pollfd p = {.fd = r->said, .events = POLLIN};
	uint8_t byte = 0xff;

	if (poll(&p, 1, ms) > 0)
		assert_int_equal(read(r->said, &byte, 1), 1);
	return byte;
}

static void ask(const struct rig *r, uint8_t number)
{
	assert_int_equal(write(r->go, &number, 1), 1);
}

static int set_up(void **state)
{
	static struct rig r;
	int go[2], said[2], pidfd;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	r.pid = fork();
	if (r.pid == 0)
		filtered(go[0], said[1]);
	(void)close(go[0]);
	(void)close(said[1]);
	r.go = go[1];
	r.said = said[0];
	pidfd = (int)syscall(SYS_pidfd_open, r.pid, 0);
	r.room = (struct room){
		.fd = (int)syscall(SYS_pidfd_getfd, pidfd, heard(&r, WAIT_MS), 0), .nofile = 133};
	fd_close(&pidfd);
	if (r.room.fd < 0)
		return -1;
	*state = &r;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *r = *state;

	fd_close(&r->go);
	fd_close(&r->said);
	fd_close(&r->room.fd);
	(void)kill(r->pid, SIGKILL);
	(void)waitpid(r->pid, NULL, 0);
	return 0;
}

static void low_numbers_wait_for_nobody(void **state)
{
	struct rig *r = *state;
	struct room_wait w;

	ask(r, FULL_AT - 1);
	assert_int_equal(heard(r, WAIT_MS), 1);
	assert_int_equal(room_next(&r->room, &w), -EAGAIN);
}

static void high_numbers_wait_until_they_may_go_on(void **state)
{
	struct rig *r = *state;
	struct pollfd p = {.fd = r->room.fd, .events = POLLIN};
	struct room_wait w;

	for (uint8_t number = FULL_AT; number < FULL_AT + 3; number++) {
		ask(r, number);
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		assert_int_equal(room_next(&r->room, &w), 0);
		assert_int_equal(w.number, number);
		assert_int_equal(heard(r, 50), 0xff);
		room_go_on(&r->room, w.id);
		assert_int_equal(heard(r, WAIT_MS), 1);
		assert_int_equal(room_next(&r->room, &w), -EAGAIN);
	}
}

static void who_is_gone_waits_no_more(void **state)
{
	struct rig *r = *state;
	struct pollfd p = {.fd = r->room.fd, .events = POLLIN};
	struct room_wait w;

	ask(r, FULL_AT);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(room_next(&r->room, &w), 0);
	(void)kill(r->pid, SIGKILL);
	assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
	room_go_on(&r->room, w.id);
	assert_int_equal(room_next(&r->room, &w), -EPIPE);
}

/* ---- by way of the supervisor ---- */

static struct seccomp_notif about(int nr, uint64_t number)
{
	return (struct seccomp_notif){.data = {.nr = nr, .args = {number}}};
}

static void the_supervisor_asks_and_waits(void **state)
{
	struct room room = {.fd = -1};
	struct room_ask a = {.full_at = FULL_AT};
	struct seccomp_notif other = about(SYS_openat, FULL_AT),
			     low = about(SYS_statx, FULL_AT - 1);
	struct seccomp_notif high = about(SYS_statx, FULL_AT),
			     cwd = about(SYS_statx, (uint32_t)AT_FDCWD);
	struct room_wait w;
	uint64_t begin, quickest = ROOM_WAIT_MS;

	assert_int_equal(room_pair(&room, &a, NULL), 0);
	room_ask(&a, &other);
	room_ask(&a, &low);
	room_ask(&a, &cwd);
	assert_int_equal(room_next(&room, &w), -EAGAIN);
	/* an answer that nobody waits for any more is not the answer to the next one */
	room_go_on(&room, 0);
	begin = clock_mono_ms();
	room_ask(&a, &high);
	assert_true(clock_mono_ms() - begin >= ROOM_WAIT_MS - 1);
	assert_int_equal(room_next(&room, &w), 0);
	assert_int_equal(w.number, FULL_AT);
	fd_close(&room.fd);
	(void)signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < 10 && quickest >= ROOM_WAIT_MS; i++) {
		begin = clock_mono_ms();
		room_ask(&a, &high);
		quickest = clock_mono_ms() - begin;
	}
	assert_true(quickest < ROOM_WAIT_MS);
	fd_close(&a.sock);
}

static void the_supervisor_is_answered(void **state)
{
	struct room room = {.fd = -1};
	struct room_ask a = {.full_at = FULL_AT};
	struct seccomp_notif high = about(SYS_statx, FULL_AT);
	struct pollfd p;
	struct room_wait w;
	int status;
	pid_t pid;

	assert_int_equal(room_pair(&room, &a, NULL), 0);
	pid = fork();
	if (pid == 0) {
		uint64_t begin = clock_mono_ms();

		room_ask(&a, &high);
		_exit(clock_mono_ms() - begin < ROOM_WAIT_MS ? 0 : 1);
	}
	p = (struct pollfd){.fd = room.fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(room_next(&room, &w), 0);
	room_go_on(&room, w.id);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fd_close(&a.sock);
	assert_int_equal(room_next(&room, &w), -EPIPE);
	fd_close(&room.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(low_numbers_wait_for_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			high_numbers_wait_until_they_may_go_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_is_gone_waits_no_more, set_up, tear_down),
		cmocka_unit_test(the_supervisor_asks_and_waits),
		cmocka_unit_test(the_supervisor_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
