/* SPDX-License-Identifier: Apache-2.0 */
/* The first program of the VM in guard_random.c: as guest root, two processes at a time do
 * random operations in a directory of the share. Arguments: the seed, the number of batches, the
 * sequences of a process in a batch. Between batches the host looks at the directory. Static. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest_rig.h"

#define N_KNOWN 8
#define N_CALLS 10
#define N_WORKERS 2
#define MAX_PATH 40
#define EVIL "[core]\n\tfsmonitor = evil\n"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const names[] = {".git", "config", "config.lock", "hooks", "x", "x.sample",
	".envrc", ".claude", "a", "b", "a", "b", "Makefile", "HEAD", "modules", "commondir"};
static const char *const contents[] = {EVIL, "[user]\n\tname = guest\n", "../../a\n"};

static int tty = -1;
static int known[N_KNOWN]; /* directories and files, by O_PATH */
static int handle = -1;	   /* open for writing */
static uint64_t seed;
static unsigned long n_done, n_refused;

static unsigned pick(size_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

static const char *some_name(void)
{
	return names[pick(COUNT(names))];
}

/* One to three components. */
static const char *some_path(void)
{
	static char paths[2][MAX_PATH * 3];
	static unsigned next;
	char *p = paths[next++ % 2];

	(void)snprintf(p, sizeof(paths[0]), "%s", some_name());
	for (unsigned n = pick(3); n > 0; n--) {
		size_t k = strlen(p);

		(void)snprintf(p + k, sizeof(paths[0]) - k, "/%s", some_name());
	}
	return p;
}

static int some_dir(void)
{
	int fd = known[pick(N_KNOWN)];
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? fd : known[0];
}

static void learn(void)
{
	unsigned i = 1 + pick(N_KNOWN - 1);
	int fd = openat(some_dir(), some_path(), O_PATH | O_NOFOLLOW);

	if (fd < 0)
		return;
	if (known[i] >= 0)
		(void)close(known[i]);
	known[i] = fd;
}

static void write_to(int fd)
{
	const char *text = contents[pick(COUNT(contents))];

	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	if (handle >= 0)
		(void)close(handle);
	handle = fd;
}

static long open_some(void)
{
	static const int flags[] = {O_WRONLY | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC,
		O_WRONLY | O_CREAT | O_EXCL, O_RDWR, O_WRONLY | O_TRUNC,
		O_RDWR | O_CREAT | O_APPEND};
	int fd = openat(some_dir(), some_path(), flags[pick(COUNT(flags))] | O_NOFOLLOW, 0755);

	write_to(fd);
	return fd;
}

/* A file that the guest knows by its descriptor. */
static long reopen_some(void)
{
	char link[32];
	int fd;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", known[pick(N_KNOWN)]);
	if (pick(4) == 0)
		return chmod(link, 0777);
	if (pick(4) == 0)
		return linkat(AT_FDCWD, link, some_dir(), some_path(), AT_SYMLINK_FOLLOW);
	fd = open(link, pick(2) ? O_WRONLY : O_WRONLY | O_TRUNC);
	write_to(fd);
	return fd;
}

static long rename_some(void)
{
	static const unsigned flags[] = {0, 0, 0, 1, 2, 4};

	return syscall(SYS_renameat2, some_dir(), some_path(), some_dir(), some_path(),
		flags[pick(COUNT(flags))]);
}

static long do_some(void)
{
	switch (pick(12)) {
	case 0:
	case 1:
		return open_some();
	case 2:
		return reopen_some();
	case 3:
	case 4:
	case 5:
		return rename_some();
	case 6:
		return unlinkat(some_dir(), some_path(), pick(2) ? AT_REMOVEDIR : 0);
	case 7:
		return linkat(some_dir(), some_path(), some_dir(), some_path(), 0);
	case 8:
		return symlinkat(pick(2) ? "../a" : "b", some_dir(), some_path());
	case 9:
		return mknodat(some_dir(), some_path(), S_IFREG | 0755, 0);
	case 10:
		return fchmodat(some_dir(), some_path(), 0777, 0);
	default:
		return handle < 0 ? 0 : pwrite(handle, EVIL, strlen(EVIL), 0);
	}
}

static void do_sequence(void)
{
	for (int i = 0; i < N_CALLS; i++) {
		learn();
		if (pick(3) == 0)
			(void)!mkdirat(some_dir(), some_name(), 0755);
		if (do_some() < 0)
			n_refused++;
		else
			n_done++;
	}
}

static void __attribute__((noreturn)) work(const char *dir, unsigned long n, int report)
{
	unsigned long sums[2];

	memset(known, 0xff, sizeof(known));
	n_done = n_refused = 0;
	known[0] = open(dir, O_PATH | O_DIRECTORY);
	while (known[0] >= 0 && n-- > 0)
		do_sequence();
	sums[0] = n_done;
	sums[1] = n_refused;
	_exit(write(report, sums, sizeof(sums)) == sizeof(sums) ? 0 : 1);
}

static void run_batch(unsigned long batch, unsigned long n)
{
	unsigned long sums[2];
	int report[2];
	char dir[64];

	(void)snprintf(dir, sizeof(dir), "/mnt/work/t%lu", batch);
	if (pipe(report) < 0)
		return;
	for (unsigned i = 0; i < N_WORKERS; i++) {
		(void)pick(2);
		seed ^= (uint64_t)(i + 1) << 40;
		if (fork() == 0)
			work(dir, n, report[1]);
	}
	(void)close(report[1]);
	while (read(report[0], sums, sizeof(sums)) == sizeof(sums)) {
		n_done += sums[0];
		n_refused += sums[1];
	}
	(void)close(report[0]);
	while (wait(NULL) > 0)
		;
}

static void say(const char *line)
{
	(void)!write(tty, line, strlen(line));
	(void)!write(tty, "\n", 1);
}

static void set_up(void)
{
	(void)umask(0);
	tty = guest_rig_start();
	say("");
	if (mount("sbx", "/mnt", "virtiofs", 0, NULL) < 0)
		say("FAIL mount");
}

int main(int argc, char **argv)
{
	unsigned long n_batches = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long n = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	char line[128], c;

	seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	set_up();
	for (unsigned long i = 0; i < n_batches; i++) {
		(void)snprintf(line, sizeof(line), "host make %lu", i);
		say(line);
		if (read(tty, &c, 1) != 1)
			break;
		run_batch(i, n);
		(void)snprintf(line, sizeof(line), "host look %lu", i);
		say(line);
		if (read(tty, &c, 1) != 1)
			break;
	}
	(void)snprintf(line, sizeof(line), "%lu sequences: %lu calls done, %lu failed",
		n_batches * n * N_WORKERS, n_done, n_refused);
	say(line);
	say("end");
	(void)reboot(RB_POWER_OFF);
	return 0;
}
