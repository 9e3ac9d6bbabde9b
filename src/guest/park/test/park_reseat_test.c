/* SPDX-License-Identifier: Apache-2.0 */
/* Child programs whose directory and files are replaced while they run: what park_reseat does in a
 * VM, without the share. Their waits must continue unaffected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "src/guest/park/park_reseat.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char top[64];
static char old_dir[80], new_dir[80];

static char *in(const char *dir, const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

/* f is one file in both directories, as it is one file of the host in both shares. */
static int make_folders(void **state)
{
	AUTO_FREE char *a = NULL;
	AUTO_FREE char *b = NULL;
	AUTO_CLOSE int fd = -1;

	snprintf(top, sizeof(top), "/tmp/sbx-reseat-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(old_dir, sizeof(old_dir), "%s/old", top);
	snprintf(new_dir, sizeof(new_dir), "%s/new", top);
	assert_int_equal(mkdir(old_dir, 0755) | mkdir(new_dir, 0755), 0);
	a = in(old_dir, "f");
	b = in(new_dir, "f");
	fd = open(a, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(link(a, b), 0);
	return 0;
}

static int remove_folders(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf %s", top);

	return system(cmd);
}

/* ---- programs ---- */

struct program {
	pid_t pid;
	int to, from; /* pipes */
};

typedef void body_fn(int from_test, int to_test);

static struct program start(body_fn *body)
{
	struct program p;
	int a[2], b[2];
	char c;

	assert_int_equal(pipe2(a, O_CLOEXEC) | pipe2(b, O_CLOEXEC), 0);
	p.pid = fork();
	if (p.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(a[1]);
		(void)close(b[0]);
		body(a[0], b[1]);
		_exit(0);
	}
	(void)close(a[0]);
	(void)close(b[1]);
	p.to = a[1];
	p.from = b[0];
	assert_int_equal(read(p.from, &c, 1), 1);
	return p;
}

/* Waits for a program that exits without a message. */
static int end_of(struct program *p)
{
	int status;

	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	fd_close(&p->to);
	fd_close(&p->from);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int finish(struct program *p)
{
	assert_int_equal(write(p->to, "g", 1), 1);
	return end_of(p);
}

static bool is_at(const char *dir)
{
	char cwd[256];

	return getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, dir);
}

static bool has_path(int fd, const char *want)
{
	AUTO_FREE char *link = xasprintf("/proc/self/fd/%d", fd);
	char path[256];
	ssize_t n = readlink(link, path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	return !strcmp(path, want);
}

/* ---- the list, by hand ---- */

static void add(struct park_list *l, struct park_item it)
{
	it.opened = -1;
	if (it.same == SIZE_MAX)
		it.same = l->n_items;
	l->items = xrealloc(l->items, (l->n_items + 1) * sizeof(*l->items));
	l->items[l->n_items++] = it;
}

static uint64_t ino_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void add_cwd(struct park_list *l, pid_t pid)
{
	add(l, (struct park_item){.kind = PARK_CWD,
		       .pid = pid,
		       .flags = O_PATH | O_DIRECTORY,
		       .is_dir = true,
		       .path = new_dir,
		       .same = SIZE_MAX});
}

static void add_fd(struct park_list *l, pid_t pid, int fd, char *path, size_t same)
{
	AUTO_FREE char *info = xasprintf("/proc/%d/fdinfo/%d", pid, fd);
	struct park_item it = {.kind = PARK_FD,
		.pid = pid,
		.fd = fd,
		.path = path,
		.ino = ino_of(path),
		.same = same};
	char text[1024];
	AUTO_CLOSE int f = open(info, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(f, text, sizeof(text) - 1);

	assert_true(n > 0);
	text[n] = '\0';
	assert_int_equal(park_list_fdinfo(text, &it), 0);
	add(l, it);
}

static void reseat(struct park_list *l)
{
	struct park_reseat rs;

	park_reseat_open(l);
	park_reseat_hold(&rs, l);
	park_reseat_run(&rs);
	for (size_t i = 0; i < l->n_items; i++)
		if (l->items[i].opened >= 0)
			(void)close(l->items[i].opened);
	free(TAKE(l->items));
}

static void must_be_well(const struct park_list *l)
{
	if (l->lost.n)
		fail_msg("%s", l->lost.text);
}

/* ---- tests ---- */

#define FD 50

/* Waits in a read of a pipe that the stop interrupts. */
static void reader(int from, int to)
{
	AUTO_FREE char *f = in(old_dir, "f");
	AUTO_FREE char *now = in(new_dir, "f");
	int fd = open(f, O_RDWR | O_APPEND | O_CLOEXEC);
	char c;

	if (chdir(old_dir) < 0 || dup3(fd, FD, O_CLOEXEC) < 0 || write(FD, "12345", 5) != 5)
		_exit(9);
	(void)!write(to, "r", 1);
	if (read(from, &c, 1) != 1)
		_exit(1);
	if (!is_at(new_dir))
		_exit(2);
	if (!has_path(FD, now) || fcntl(FD, F_GETFD) != FD_CLOEXEC)
		_exit(3);
	if ((fcntl(FD, F_GETFL) & (O_APPEND | O_ACCMODE)) != (O_APPEND | O_RDWR))
		_exit(4);
	if (lseek(FD, 0, SEEK_CUR) != 5 || write(FD, "6", 1) != 1 || lseek(FD, 0, SEEK_END) != 6)
		_exit(5);
}

static void test_folder_and_file(void **state)
{
	AUTO_FREE char *f = in(new_dir, "f");
	struct program p = start(reader);
	struct park_list l = {0};

	add_cwd(&l, p.pid);
	add_fd(&l, p.pid, FD, f, SIZE_MAX);
	reseat(&l);
	must_be_well(&l);
	assert_int_equal(finish(&p), 0);
}

/* It must wake neither early nor late. */
static void sleeper(int from, int to)
{
	struct timespec nap = {.tv_nsec = 700000000}, rest = {0};
	uint64_t t = clock_mono_ms();
	int r;

	if (chdir(old_dir) < 0)
		_exit(9);
	(void)!write(to, "r", 1);
	r = nanosleep(&nap, &rest);
	t = clock_mono_ms() - t;
	_exit(r != 0 ? 1 : t < 700 ? 2 : !is_at(new_dir) ? 3 : 0);
}

static void test_sleep_goes_on(void **state)
{
	struct program p = start(sleeper);
	struct park_list l = {0};

	add_cwd(&l, p.pid);
	reseat(&l);
	must_be_well(&l);
	assert_int_equal(end_of(&p), 0);
}

static uint64_t count;

static void *spin(void *arg)
{
	for (;;)
		__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	return arg;
}

/* Threads that compute: registers must be unchanged. */
static void threads(int from, int to)
{
	pthread_t t[3];
	volatile uint64_t a = 1, b = 2, c = 3;
	uint64_t i;

	if (chdir(old_dir) < 0)
		_exit(9);
	for (size_t k = 0; k < 3; k++)
		if (pthread_create(&t[k], NULL, spin, NULL) != 0)
			_exit(8);
	(void)!write(to, "r", 1);
	(void)!fcntl(from, F_SETFL, O_NONBLOCK);
	for (i = 0;; i++) {
		char ch;
		double d = (double)a * 3.5;

		b = b * 6364136223846793005ull + 1;
		c = b ^ (uint64_t)d;
		if (c != (b ^ 3u))
			_exit(1);
		if (i % 1000 == 0 && read(from, &ch, 1) == 1)
			break;
	}
	_exit(is_at(new_dir) ? 0 : 2);
}

static void test_threads_go_on(void **state)
{
	struct program p = start(threads);
	struct park_list l = {0};

	add_cwd(&l, p.pid);
	reseat(&l);
	must_be_well(&l);
	assert_int_equal(finish(&p), 0);
}

/* Parent and child write through one description, and neither overwrites the other. */
static void family(int from, int to)
{
	AUTO_FREE char *f = in(old_dir, "f");
	int fd = open(f, O_RDWR | O_TRUNC | O_CLOEXEC);
	pid_t pid;
	char c;
	int status;

	if (dup3(fd, FD, 0) < 0)
		_exit(9);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (lseek(FD, 0, SEEK_CUR) == 0)
			(void)usleep(1000);
		_exit(write(FD, "child", 5) == 5 ? 0 : 1);
	}
	if (dprintf(to, "%c", 'r') != 1 || write(to, &pid, sizeof(pid)) != sizeof(pid) ||
		read(from, &c, 1) != 1 || write(FD, "parent", 6) != 6)
		_exit(2);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		_exit(3);
	_exit(lseek(FD, 0, SEEK_CUR) == 11 ? 0 : 4);
}

static void test_shared_description(void **state)
{
	AUTO_FREE char *f = in(new_dir, "f");
	struct program p = start(family);
	struct park_list l = {0};
	pid_t child;

	assert_int_equal(read(p.from, &child, sizeof(child)), sizeof(child));
	add_fd(&l, p.pid, FD, f, SIZE_MAX);
	add_fd(&l, child, FD, f, 0);
	reseat(&l);
	must_be_well(&l);
	assert_int_equal(finish(&p), 0);
}

/* A signal that arrives while it is held is handled once, afterwards, and poll returns EINTR. */
static volatile sig_atomic_t n_signals;

static void on_usr1(int sig)
{
	n_signals++;
}

static void waits_for_signal(int from, int to)
{
	struct sigaction sa = {.sa_handler = on_usr1};
	int r;

	(void)sigaction(SIGUSR1, &sa, NULL);
	if (chdir(old_dir) < 0)
		_exit(9);
	(void)!write(to, "r", 1);
	r = poll(NULL, 0, 20000);
	if (r != -1 || errno != EINTR || n_signals != 1)
		_exit(1);
	_exit(is_at(new_dir) ? 0 : 2);
}

static void test_signal_meanwhile(void **state)
{
	struct program p = start(waits_for_signal);
	struct park_list l = {0};
	struct park_reseat rs;

	(void)usleep(100000); /* it is in poll now */
	add_cwd(&l, p.pid);
	park_reseat_open(&l);
	park_reseat_hold(&rs, &l);
	assert_int_equal(kill(p.pid, SIGUSR1), 0);
	park_reseat_run(&rs);
	must_be_well(&l);
	assert_int_equal(end_of(&p), 0);
	free(l.items);
}

/* Locks of all three kinds are restored. */
static void locker(int from, int to)
{
	AUTO_FREE char *f = in(old_dir, "f");
	struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
	int fd = open(f, O_RDWR | O_CLOEXEC);
	char c;

	if (dup3(fd, FD, 0) < 0)
		_exit(9);
	(void)close(fd);
	if (flock(FD, LOCK_EX) < 0 || fcntl(FD, F_SETLK, &lk) < 0)
		_exit(8);
	(void)!write(to, "r", 1);
	(void)!read(from, &c, 1);
	_exit(0);
}

static void test_locks(void **state)
{
	AUTO_FREE char *f = in(new_dir, "g");
	AUTO_CLOSE int fd = open(f, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	struct program p = start(locker);
	struct park_list l = {0};
	struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 1};

	add_fd(&l, p.pid, FD, f, SIZE_MAX);
	assert_int_equal(l.items[0].n_locks, 2);
	reseat(&l);
	must_be_well(&l);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(fcntl(fd, F_SETLK, &lk), -1);
	lk.l_start = 20;
	assert_int_equal(fcntl(fd, F_SETLK, &lk), 0);
	assert_int_equal(finish(&p), 0);
}

/* A failure is reported, and the program keeps running. */
static void test_replaced_file(void **state)
{
	AUTO_FREE char *f = in(new_dir, "f");
	AUTO_FREE char *h = in(new_dir, "h");
	struct program p = start(reader);
	struct park_list l = {0};
	int fd;

	add_fd(&l, p.pid, FD, f, SIZE_MAX);
	fd = open(h, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	fd_close(&fd);
	l.items[0].path = h;
	reseat(&l);
	assert_int_equal(l.lost.n, 1);
	assert_non_null(strstr(l.lost.text, "is another file now"));
	assert_int_equal(finish(&p), 2);
}

static void test_program_is_gone(void **state)
{
	struct program p = start(reader);
	struct park_list l = {0};

	add_cwd(&l, p.pid);
	assert_int_equal(kill(p.pid, SIGKILL), 0);
	assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
	reseat(&l);
	must_be_well(&l);
	fd_close(&p.to);
	fd_close(&p.from);
}

/* A program stopped by job control stays stopped. */
static void test_stopped_stays_stopped(void **state)
{
	struct program p = start(reader);
	struct park_list l = {0};
	AUTO_FREE char *path = xasprintf("/proc/%d/stat", p.pid);
	AUTO_FREE char *f = in(new_dir, "f");
	AUTO_CLOSE int fd = -1;
	char text[256] = "";
	int status;

	assert_int_equal(kill(p.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(p.pid, &status, WUNTRACED), p.pid);
	add_cwd(&l, p.pid);
	add_fd(&l, p.pid, FD, f, SIZE_MAX);
	reseat(&l);
	must_be_well(&l);
	(void)usleep(50000);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_int_equal(strrchr(text, ')')[2], 'T');
	assert_int_equal(kill(p.pid, SIGCONT), 0);
	assert_int_equal(finish(&p), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_folders, remove_folders)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_folder_and_file),
		T(test_sleep_goes_on),
		T(test_threads_go_on),
		T(test_shared_description),
		T(test_signal_meanwhile),
		T(test_locks),
		T(test_replaced_file),
		T(test_program_is_gone),
		T(test_stopped_stays_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
