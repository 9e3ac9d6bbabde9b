/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guard adds to a create: the calls of a process with virtiofsd's filter, a supervisor, a
 * hand and the list of the installation, against the same calls without a filter.
 *
 * usage:  guard_bench [CREATES [ROUNDS]]
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "filter_rig.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/share/guard_internal.h"
#include "lib/vm/share/hide.h"

#define MAX_ROUNDS 99

static char top[] = "/tmp/sbx-guard-bench-XXXXXX";
static char *ws, *guard_dir;
static unsigned n_creates = 3000;

static int measure(int dir)
{
	static unsigned serial;
	uint64_t from = clock_mono_us();
	char name[32];

	for (unsigned i = 0; i < n_creates; i++) {
		long fd;

		(void)snprintf(name, sizeof(name), "n%d-%u", getpid(), serial++);
		fd = syscall(SYS_openat, dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0)
			abort();
		(void)close((int)fd);
	}
	return (int)((clock_mono_us() - from) * 1000 / n_creates);
}

static int open_dir(const char *path, int flags)
{
	int fd = open(path, flags | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

/* An int in: one round. An int out: its nanoseconds; the first one is the listener. */
static void __attribute__((noreturn)) be_filtered(int in, int out)
{
	int dir = open_dir(ws, O_PATH), order;

	filter_rig_enter(in, out, &order, sizeof(order));
	while (read(in, &order, sizeof(order)) == sizeof(order)) {
		int ns = measure(dir);

		if (write(out, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static void start_guard(
	pid_t child, int theirs, struct jail_child *supervisor, struct jail_child *hand)
{
	AUTO_AUTORUN struct autorun_list *list = NULL;
	CLEANUP(guard_free) struct guard *g = NULL;
	AUTO_CLOSE int dir = open_dir(guard_dir, O_RDONLY);
	AUTO_CLOSE int pin = open_dir(ws, O_PATH);
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	int listener = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	struct hide_ask ask = {.room = {.sock = -1}};
	struct scaffold s = {.n = 1};
	struct err err = {0};

	s.pins[0] = (struct scaffold_pin){.fd = pin, .host = ws, .guest = ws, .dir = true};
	if (listener < 0 || autorun_load(&list, &err) < 0)
		abort();
	const struct guard_config cfg = {
		.level = GUARD_DEFAULT, .list = list, .dir_fd = dir, .event_fd = -1};
	if (guard_new(&cfg, &s, &g, &err) < 0 || guard_start_hand(g, hand, &err) < 0)
		abort();
	ask.guard = g;
	if (hide_start(&listener, &ask, supervisor, &err) < 0)
		abort();
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void print_figure(const char *what, int *ns, unsigned n)
{
	qsort(ns, n, sizeof(ns[0]), compare_ints);
	(void)printf("%s: %.1f us a create (%.1f to %.1f)\n", what, ns[n / 2] / 1e3, ns[0] / 1e3,
		ns[n - 1] / 1e3);
}

static void compare(int in, int out, unsigned rounds)
{
	int with[MAX_ROUNDS], without[MAX_ROUNDS], more[MAX_ROUNDS];
	AUTO_CLOSE int dir = open_dir(ws, O_PATH);

	for (unsigned i = 0; i < rounds; i++) {
		without[i] = measure(dir);
		if (write(in, &i, sizeof(i)) != sizeof(i) ||
			read(out, &with[i], sizeof(with[i])) != sizeof(with[i]))
			abort();
		more[i] = with[i] - without[i];
	}
	print_figure("without", without, rounds);
	print_figure("guarded", with, rounds);
	print_figure("difference", more, rounds);
}

int main(int argc, char **argv)
{
	struct jail_child supervisor = {0, -1, -1, 0}, hand = {0, -1, -1, 0};
	unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 9;
	AUTO_FREE char *remove = xasprintf("rm -rf '%s'", mkdtemp(top) ? top : "");
	int in[2], out[2], theirs;
	pid_t child;

	n_creates = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : n_creates;
	ws = xasprintf("%s/ws", top);
	guard_dir = xasprintf("%s/guard", top);
	if (!n_creates || !rounds || rounds > MAX_ROUNDS || mkdir(ws, 0755) < 0 ||
		mkdir(guard_dir, 0700) < 0 || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return 2;
	child = fork();
	if (child == 0)
		be_filtered(in[0], out[1]);
	if (read(out[0], &theirs, sizeof(theirs)) != sizeof(theirs))
		return 1;
	start_guard(child, theirs, &supervisor, &hand);
	if (write(in[1], &theirs, sizeof(theirs)) != sizeof(theirs))
		return 1;
	compare(in[1], out[0], rounds);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	jail_child_kill(&supervisor);
	jail_child_kill(&hand);
	free(ws);
	free(guard_dir);
	return system(remove) == 0 ? 0 : 1;
}
