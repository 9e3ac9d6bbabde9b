/* SPDX-License-Identifier: Apache-2.0 */
/* A spawner and its broker: what is started, what is refused, and who dies with whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/os/jail/broker.h"
#include "lib/os/worker/spawner.h"
#include "lib/os/worker/worker_internal.h"

#define SHELL "/bin/sh"
#define GONE_MS 5000

static char dir[] = "/tmp/sbx-worker-XXXXXX";
static char place[64], outside[64], lnk[64];

enum { COUNT_FDS = WORKER_OWN, WHO_AM_I, TRY_REFUSED, START_TWO, COUNT_CHILDREN, GIVE_FDS };

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

/* How many of the calls, and no_new_privs, are not as they should be. */
static int try_refused(void)
{
	static const long calls[] = {SYS_ptrace, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_setns,
		SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_keyctl,
		SYS_add_key, SYS_init_module, SYS_kexec_load, SYS_reboot, SYS_clock_settime};
	int wrong = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;

	/* Arguments that the kernel itself refuses with something else, so that nothing is done. */
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (syscall(calls[i], -1L, -1L, -1L, -1L, -1L, -1L) != -1 || errno != EPERM)
			wrong++;
	return wrong;
}

/* As a share with hidden names: two processes, and the descriptor of the first. */
static int start_two(struct worker_msg *a, struct err *err)
{
	struct wr w = wr_init(a->body, sizeof(a->body));

	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)pause();
		}
		if (spawner_keep(pid, err) < 0)
			return -EAGAIN;
		wr_u32(&w, (uint32_t)pid);
	}
	a->n = w.n;
	a->fds[a->n_fds++] = dup(1);
	return 0;
}

static int count_children(void)
{
	siginfo_t si = {0};

	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD ? 0 : 1;
}

static int own(void *ctx, struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	if (q->kind == START_TWO)
		return start_two(a, err);
	if (q->kind == GIVE_FDS) {
		for (uint8_t i = 0; i < q->body[0]; i++)
			if (worker_give_fd(a, dup(1)) < 0)
				return -EMFILE;
		return 0;
	}
	if (q->kind == COUNT_CHILDREN)
		return count_children();
	if (q->kind == COUNT_FDS)
		return count_fds();
	if (q->kind == WHO_AM_I)
		return (int)getpid();
	if (q->kind == TRY_REFUSED)
		return try_refused();
	return -EBADMSG;
}

static const struct spawner_program programs[] = {{JAIL_QEMU, SHELL}, {JAIL_QEMU, "/bin/sleep"}};
static struct jail_root roots[] = {{"/usr", false}, {"/lib", false}, {"/lib64", false},
	{"/dev/null", true}, {"/etc/ld.so.cache", false}, {NULL, true}};
static const struct spawner_rules rules = {.programs = programs,
	.n_programs = ARRAY_LEN(programs),
	.roots = roots,
	.n_roots = ARRAY_LEN(roots),
	.own = own};

#define LIBRARIES                                                           \
	{"/usr/lib", "/usr/lib", 0}, {"/lib", "/lib", JAIL_MOUNT_OPTIONAL}, \
	{                                                                   \
		"/lib64", "/lib64", JAIL_MOUNT_OPTIONAL                     \
	}
#define N_LIBRARIES 3

static int start_with(const struct jail_mount *more, const char *script, int log_fd,
	struct jail_child *ret, struct err *err)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)script, NULL};
	struct jail_mount mounts[] = {LIBRARIES, {0}};
	struct jail_plan plan = {.profile = JAIL_QEMU,
		.program = SHELL,
		.argv = argv,
		.mounts = mounts,
		.n_mounts = more ? N_LIBRARIES + 1 : N_LIBRARIES,
		.log_fd = log_fd};

	if (more)
		mounts[N_LIBRARIES] = *more;
	return worker_spawn(&plan, ret, err);
}

static struct jail_child start(const char *script)
{
	struct jail_child c = {0};
	struct err err = {0};

	if (start_with(NULL, script, -1, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static int set_up(void **state)
{
	struct err err = {0};

	if (spawner_start(&rules, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down(void **state)
{
	spawner_stop();
	return 0;
}

static int ask(unsigned kind)
{
	static struct worker_msg m;

	m = (struct worker_msg){.kind = (uint16_t)kind};
	assert_int_equal(worker_ask(&m, NULL), 0);
	return m.code;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, GONE_MS) == 1;
}

/* ---- */

static void the_exit_status_comes_back(void **state)
{
	struct jail_child c = start("exit 7");

	assert_int_equal(worker_reap(&c), 7);
	/* once: it is not a child of the spawner any more */
	assert_int_equal(worker_reap(&c), -1);
	worker_end(&c);
	c = start("while :; do :; done");
	worker_kill(&c);
	assert_int_equal(worker_reap(&c), -1);
	assert_true(has_ended(c.pidfd));
	worker_end(&c);
	assert_int_equal(c.pidfd, -1);
}

static void the_child_is_the_spawners(void **state)
{
	struct jail_child c = start("while :; do :; done");
	char path[64], text[512] = "";
	int parent = 0;
	AUTO_CLOSE int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)c.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_int_equal(sscanf(strrchr(text, ')') + 1, " %*c %d", &parent), 1);
	assert_int_equal(parent, ask(WHO_AM_I));
	assert_int_not_equal(parent, getpid());
	worker_end(&c);
}

/* Descriptors of the plan arrive, and the broker's other ones do not. */
static void descriptors_are_passed(void **state)
{
	struct jail_child c = {0};
	char said[64] = "";
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(start_with(NULL, "echo hello", p[1], &c, NULL), 0);
	fd_close(&p[1]);
	assert_int_equal(fd_read_full(p[0], said, sizeof(said) - 1), 6);
	assert_string_equal(said, "hello\n");
	fd_close(&p[0]);
	worker_end(&c);
}

static void other_programs_are_refused(void **state)
{
	static const struct spawner_program rows[] = {{JAIL_QEMU, "/bin/cat"},
		{JAIL_TEMPLATE, SHELL}, {JAIL_QEMU, "/bin/../bin/sh"}, {JAIL_QEMU, ""}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *argv[] = {(char *)"x", NULL};
		struct jail_plan plan = {.profile = rows[i].profile,
			.program = rows[i].path,
			.argv = argv,
			.log_fd = -1};
		struct jail_child c;
		struct err err = {0};

		assert_int_equal(worker_spawn(&plan, &c, &err), -EPERM);
		assert_non_null(strstr(err.text, "is not permitted"));
	}
}

static void mounts_come_from_the_listed_places_only(void **state)
{
	const struct {
		struct jail_mount m;
		int r;
	} rows[] = {{{place, "/x", JAIL_MOUNT_RW}, 0}, {{place, "/x", 0}, 0},
		{{outside, "/x", 0}, -EPERM}, {{lnk, "/x", 0}, -EPERM},
		{{lnk, "/x", JAIL_MOUNT_RW}, -EPERM}, {{"/usr", "/x", JAIL_MOUNT_RW}, -EPERM},
		{{dir, "/x", 0}, -EPERM}, {{"/", "/x", 0}, -EPERM}, {{"/usrx", "/x", 0}, -ENOENT},
		{{"/proc/self/root", "/x", JAIL_MOUNT_RW}, -EPERM}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct jail_child c = {.pidfd = -1, .notify_fd = -1};
		struct err err = {0};
		int r = start_with(&rows[i].m, "exit 0", -1, &c, &err);

		if (r != rows[i].r)
			fail_msg("%s: %d, %s", rows[i].m.from, r, err.text);
		worker_end(&c);
	}
}

static void only_own_children_are_touched(void **state)
{
	pid_t pid = fork();
	struct jail_child c = {.pid = pid, .notify_fd = -1};

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	c.pidfd = pidfd_open(pid, 0);
	worker_kill(&c);
	assert_int_equal(poll(&(struct pollfd){.fd = c.pidfd, .events = POLLIN}, 1, 100), 0);
	assert_int_equal(worker_written(pid), 0);
	(void)kill(pid, SIGKILL);
	assert_int_equal(worker_reap(&c), -1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	fd_close(&c.pidfd);
}

static void what_a_child_has_written_is_told(void **state)
{
	struct jail_child c = {0};
	char byte;
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(
		start_with(NULL, "echo 123456789; while :; do :; done", p[1], &c, NULL), 0);
	assert_int_equal(read(p[0], &byte, 1), 1);
	assert_in_range(worker_written(c.pid), 10, 10000);
	worker_end(&c);
	fd_close(&p[0]);
	fd_close(&p[1]);
}

static void no_descriptor_is_left_open(void **state)
{
	struct jail_mount bad = {outside, "/x", 0};
	int ours = count_fds(), theirs = ask(COUNT_FDS);

	for (int i = 0; i < 10; i++) {
		struct jail_child c = start("exit 0");

		worker_end(&c);
		assert_int_equal(start_with(&bad, "exit 0", 1, &c, NULL), -EPERM);
	}
	assert_int_equal(count_fds(), ours);
	assert_int_equal(ask(COUNT_FDS), theirs);
	/* stdin, stdout, stderr, its socket and the broker; and what count_fds opens, `.` and
	 * `..` */
	assert_int_equal(theirs, 5 + 3);
}

static void signals_to_the_group_leave_the_spawner(void **state)
{
	pid_t spawner = ask(WHO_AM_I);

	(void)kill(spawner, SIGTERM);
	(void)kill(spawner, SIGINT);
	(void)kill(spawner, SIGHUP);
	assert_int_equal(ask(WHO_AM_I), spawner);
}

static void the_spawners_end_ends_its_children(void **state)
{
	struct jail_child c = start("while :; do :; done"), none;
	struct err err = {0};

	assert_int_equal(kill(ask(WHO_AM_I), SIGKILL), 0);
	assert_true(has_ended(spawner_pidfd()));
	assert_true(has_ended(c.pidfd));
	assert_int_equal(start_with(NULL, "exit 0", -1, &none, &err), -EPIPE);
	/* and it is not done without one */
	assert_true(worker_is_on());
	assert_int_equal(start_with(NULL, "exit 0", -1, &none, &err), -ENOTCONN);
	worker_end(&c);
}

/* The broker is killed: nothing that it had started is left. */
/* From Landlock 6 on a sealed broker cannot even signal its spawner by dying, and a fork that
 * has its socket keeps the end of the socket away. */
static void the_end_of_a_sealed_broker_that_forked_ends_the_spawner(void **state)
{
	static struct jail_root kept[] = {{"/proc", false}, {"/dev/null", true}};
	pid_t broker, pids[2];
	int p[2], fd;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	broker = fork();
	if (broker == 0) {
		if (spawner_start(&rules, NULL) < 0)
			_exit(1);
		pids[0] = ask(WHO_AM_I);
		if (jail_broker(JAIL_KEEPER, kept, ARRAY_LEN(kept), NULL) < 0)
			_exit(1);
		pids[1] = fork();
		if (pids[1])
			(void)!write(p[1], pids, sizeof(pids));
		(void)poll(NULL, 0, 60000);
		_exit(0);
	}
	fd_close(&p[1]);
	assert_int_equal(fd_read_full(p[0], pids, sizeof(pids)), sizeof(pids));
	fd_close(&p[0]);
	fd = pidfd_open(pids[0], 0);
	assert_true(fd >= 0);
	(void)kill(broker, SIGKILL);
	assert_int_equal(waitpid(broker, NULL, 0), broker);
	assert_true(has_ended(fd));
	assert_int_equal(kill(pids[1], 0), 0); /* it was there all the time */
	(void)kill(pids[1], SIGKILL);
	fd_close(&fd);
}

static void the_brokers_end_ends_all(void **state)
{
	pid_t broker, pids[2];
	int p[2], fds[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	broker = fork();
	if (broker == 0) {
		struct jail_child c;

		if (spawner_start(&rules, NULL) < 0 ||
			start_with(NULL, "while :; do :; done", -1, &c, NULL) < 0)
			_exit(1);
		pids[0] = ask(WHO_AM_I);
		pids[1] = c.pid;
		(void)!write(p[1], pids, sizeof(pids));
		(void)pause();
		_exit(0);
	}
	fd_close(&p[1]);
	assert_int_equal(fd_read_full(p[0], pids, sizeof(pids)), sizeof(pids));
	fd_close(&p[0]);
	for (int i = 0; i < 2; i++) {
		fds[i] = pidfd_open(pids[i], 0);
		assert_true(fds[i] >= 0);
	}
	(void)kill(broker, SIGKILL);
	assert_int_equal(waitpid(broker, NULL, 0), broker);
	for (int i = 0; i < 2; i++) {
		assert_true(has_ended(fds[i]));
		fd_close(&fds[i]);
	}
}

/* ---- descriptors in flight, which the kernel counts for all processes of the user ---- */

/* Below the limits of everybody else, so that no other program of the user is held up. */
#define FLIGHT 200
#define FEW 100

static void set_files(pid_t pid, rlim_t most)
{
	struct rlimit limit;

	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), 0);
	limit.rlim_cur = most;
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

static void fill_flight(int pair[2])
{
	struct worker_msg m = {.kind = 1, .n_fds = WORKER_MAX_FDS};

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (size_t i = 0; i < WORKER_MAX_FDS; i++)
		m.fds[i] = 1;
	for (unsigned n = 0; n < FLIGHT; n += WORKER_MAX_FDS)
		assert_int_equal(packet_send(pair[0], &m), 0);
}

static void too_many_descriptors_in_flight_end_nobody(void **state)
{
	static struct worker_msg two;
	struct jail_child c = {.pidfd = -1, .notify_fd = -1};
	struct rlimit limit;
	struct err err = {0};
	pid_t spawner = ask(WHO_AM_I);
	int pair[2];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	fill_flight(pair);
	/* the question has a descriptor, which the broker cannot send */
	set_files(0, FEW);
	assert_int_equal(start_with(NULL, "exit 0", 1, &c, &err), -ETOOMANYREFS);
	assert_string_equal(err.text, WORKER_CROWDED);
	set_files(0, limit.rlim_cur);
	/* the answer has one, which the spawner cannot send: the child does not run */
	set_files(spawner, FEW);
	assert_int_equal(start_with(NULL, "exit 0", -1, &c, &err), -EAGAIN);
	assert_int_equal(ask(WHO_AM_I), spawner);
	/* R10A5: the second of two ran on */
	two.kind = START_TWO;
	assert_int_equal(worker_ask(&two, &err), -EAGAIN);
	assert_int_equal(ask(COUNT_CHILDREN), 0);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	c = start("exit 7");
	assert_int_equal(worker_reap(&c), 7);
	worker_end(&c);
}

/* ---- packets of a broker that was taken over ---- */

/* How a spawner ends that gets these bytes: 0 when it waits for more, 1 when it gave up. */
static int serve_bytes(const void *bytes, size_t n, int pass_fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	int pair[2], status = 0;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		fd_close(&pair[0]);
		_exit(spawner_serve(&rules, pair[1], pidfd_open(getppid(), 0)));
	}
	fd_close(&pair[1]);
	if (pass_fd >= 0) {
		struct cmsghdr *c;

		mh.msg_control = ctl.buf;
		mh.msg_controllen = sizeof(ctl.buf);
		c = CMSG_FIRSTHDR(&mh);
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(c), &pass_fd, sizeof(int));
	}
	assert_int_equal(sendmsg(pair[0], &mh, MSG_NOSIGNAL), n);
	(void)shutdown(pair[0], SHUT_WR);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fd_close(&pair[0]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void bad_packets_end_the_spawner(void **state)
{
	static uint8_t large[WORKER_MAX_BODY + 64];
	const uint16_t kill_nobody[] = {WORKER_KILL, 0, 0, 0, 9999, 9999};

	assert_int_equal(serve_bytes(kill_nobody, sizeof(kill_nobody), -1), 0); /* a plain no */
	assert_int_equal(serve_bytes(kill_nobody, sizeof(kill_nobody), 0), 1);	/* with an fd */
	assert_int_equal(serve_bytes(kill_nobody, 10, -1), 1);			/* cut */
	assert_int_equal(serve_bytes(kill_nobody, 3, -1), 1);
	memcpy(large, kill_nobody, sizeof(kill_nobody));
	assert_int_equal(serve_bytes(large, sizeof(large), -1), 1);
	for (unsigned kind = 0; kind < 300; kind += kind < 8 ? 1 : 97) {
		const uint16_t head[] = {(uint16_t)kind, 0, 0, 0};

		assert_int_equal(serve_bytes(head, sizeof(head), -1), 1);
	}
}

/* Each cut of a plan is refused, and the whole one is what it was. */
static void a_plan_is_whole_or_refused(void **state)
{
	static struct worker_msg m;
	static struct plan_box box;
	char *argv[] = {(char *)"a", (char *)"", (char *)"c", NULL},
	     *envp[] = {(char *)"E=1", NULL};
	struct jail_mount mounts[] = {{"/from", "/to", JAIL_MOUNT_RW}};
	struct jail_fd fds[] = {{5, 3}, {6, 4}};
	struct jail_plan plan = {.profile = JAIL_QEMU,
		.program = "/bin/x",
		.argv = argv,
		.envp = envp,
		.mounts = mounts,
		.n_mounts = 1,
		.fds = fds,
		.n_fds = 2,
		.log_fd = 7,
		.notify_full = true};
	size_t n;

	assert_int_equal(plan_put(&plan, &m, NULL), 0);
	assert_int_equal(plan_get(&m, &box), 0);
	assert_int_equal(box.plan.profile, JAIL_QEMU);
	assert_string_equal(box.plan.program, "/bin/x");
	assert_string_equal(box.plan.argv[1], "");
	assert_null(box.plan.argv[3]);
	assert_string_equal(box.plan.envp[0], "E=1");
	assert_string_equal(box.plan.mounts[0].to, "/to");
	assert_int_equal(box.plan.mounts[0].flags, JAIL_MOUNT_RW);
	assert_int_equal(box.plan.fds[1].from, 6);
	assert_int_equal(box.plan.fds[1].to, 4);
	assert_int_equal(box.plan.log_fd, 7);
	assert_true(box.plan.notify_full && !box.plan.notify_paths && !box.plan.special_files);
	n = m.n;
	for (m.n = 0; m.n < n; m.n++)
		assert_int_equal(plan_get(&m, &box), -EBADMSG);
	m.n = n;
	m.n_fds--;
	assert_int_equal(plan_get(&m, &box), -EBADMSG);
	m.n_fds++;
	m.body[0] = JAIL_N_PROFILES;
	assert_int_equal(plan_get(&m, &box), -EBADMSG);
}

static void without_a_spawner_it_is_done_directly(void **state)
{
	struct jail_child c = start("exit 3");

	assert_false(worker_is_on());
	assert_int_equal(worker_reap(&c), 3);
	worker_end(&c);
}

static int filters_of(pid_t pid)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/status", (int)pid), *text = NULL;
	const char *at;
	size_t n;

	assert_int_equal(file_load(path, 8192, &text, &n, NULL), 0);
	at = strstr(text, "Seccomp_filters:");
	return at ? atoi(at + 16) : -1;
}

static void the_spawner_is_refused_what_it_does_not_need(void **state)
{
	struct jail_child c;

	assert_int_equal(ask(TRY_REFUSED), 0);
	c = start("exec sleep 20");
	/* what it starts has that list and its own */
	assert_int_equal(filters_of(ask(WHO_AM_I)), 1);
	assert_int_equal(filters_of(c.pid), 2);
	worker_end(&c);
}

static void an_answer_of_one_descriptor_leaves_no_other_open(void **state)
{
	struct err err = {0};
	int before = count_fds();

	for (uint8_t n = 0; n < 4; n++) {
		struct worker_msg *m = worker_question(GIVE_FDS);
		int fd;

		m->body[m->n++] = n;
		fd = worker_ask_fd(m, &err);
		if (n == 0)
			assert_int_equal(fd, -EBADMSG);
		else
			assert_true(fd >= 0);
		fd_close(&fd);
		assert_int_equal(count_fds(), before);
	}
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH(the_exit_status_comes_back),
		WITH(the_child_is_the_spawners),
		WITH(descriptors_are_passed),
		WITH(other_programs_are_refused),
		WITH(mounts_come_from_the_listed_places_only),
		WITH(only_own_children_are_touched),
		WITH(what_a_child_has_written_is_told),
		WITH(no_descriptor_is_left_open),
		WITH(an_answer_of_one_descriptor_leaves_no_other_open),
		WITH(signals_to_the_group_leave_the_spawner),
		WITH(the_spawners_end_ends_its_children),
		WITH(the_spawner_is_refused_what_it_does_not_need),
		WITH(too_many_descriptors_in_flight_end_nobody),
		cmocka_unit_test(the_brokers_end_ends_all),
		cmocka_unit_test(the_end_of_a_sealed_broker_that_forked_ends_the_spawner),
		cmocka_unit_test(bad_packets_end_the_spawner),
		cmocka_unit_test(a_plan_is_whole_or_refused),
		cmocka_unit_test(without_a_spawner_it_is_done_directly),
	};
	int r;

	if (!mkdtemp(dir))
		return 1;
	(void)snprintf(place, sizeof(place), "%s/place", dir);
	(void)snprintf(outside, sizeof(outside), "%s/outside", dir);
	(void)snprintf(lnk, sizeof(lnk), "%s/place/link", dir);
	if (mkdir(place, 0700) < 0 || mkdir(outside, 0700) < 0 || symlink(outside, lnk) < 0)
		return 1;
	roots[ARRAY_LEN(roots) - 1].path = place;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(lnk);
	(void)rmdir(place);
	(void)rmdir(outside);
	(void)rmdir(dir);
	return r;
}
