/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner of sbxd: programs, signals and connections, and rejected requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "src/sbxd/hands/hands_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

#define ID "0123456789ab"
#define OTHER_ID "ba9876543210"
#define STALE_ID "00112233aabb"
#define EXITS "000000000007" /* the program below exits immediately */
#define GONE_MS 10000

static char dir[] = "/tmp/sbx-hands-XXXXXX";
static char log_path[64];

/* Prints how it was started, then waits; replaces sbx-keeper, sbx-vault-run and sbx-notify. */
static const char program[] =
	"#!/bin/sh\n"
	"echo \"args $*\"\n"
	"for n in 0 1 2 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$n ] || echo \"fd $n $(readlink "
	"/proc/$$/fd/$n)\"; done\n"
	"grep NoNewPrivs /proc/$$/status\n"
	"echo \"secret ${SECRET:-none} home ${HOME:-none} run ${XDG_RUNTIME_DIR:-none}\"\n"
	"[ \"$2\" != " EXITS " ] || exit 7\n"
	"echo ready\n"
	"while :; do sleep 1; done\n";

static int new_log(void)
{
	int fd = open(
		log_path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* Returns the output of the program, once it contains `word`. */
static char *wait_for(const char *word)
{
	for (int i = 0; i < GONE_MS / 20; i++) {
		char *text = NULL;
		size_t n;

		assert_int_equal(file_load(log_path, 65536, &text, &n, NULL), 0);
		if (strstr(text, word))
			return text;
		free(text);
		(void)usleep(20000);
	}
	fail_msg("the program never said %s", word);
	return NULL;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, GONE_MS) == 1;
}

static bool runs(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 100) == 0;
}

static int set_up(void **state)
{
	struct err err = {0};

	if (hands_start(&err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down(void **state)
{
	spawner_stop();
	return 0;
}

/* ---- programs ---- */

static struct hands_child start_keeper(const char *id, enum hands_way way)
{
	AUTO_CLOSE int log_fd = new_log(), ours = -1, theirs = -1;
	struct hands_child c = {.pidfd = -1};
	struct err err = {0};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ours = pair[0];
	theirs = pair[1];
	if (hands_keeper(id, way, theirs, log_fd, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static void end(struct hands_child *c)
{
	hands_signal(c->pidfd, HANDS_KILL_GROUP);
	hands_reap_killed(c);
	fd_close(&c->pidfd);
}

static void a_keeper_has_its_id_its_channel_and_a_session(void **state)
{
	AUTO_FREE char *want = xasprintf("args --id " ID " --state=%s/state/sbx --cold\n", dir);
	struct hands_child c = start_keeper(ID, HANDS_COLD);
	AUTO_FREE char *said = wait_for("ready");

	assert_non_null(strstr(said, want));
	assert_non_null(strstr(said, "fd 0 /dev/null\n"));
	assert_non_null(strstr(said, "fd 3 socket:["));
	assert_null(strstr(said, "fd 4 "));
	/* a program that is registered for a credential may be set-uid */
	assert_non_null(strstr(said, "NoNewPrivs:\t0\n"));
	/* and the rest of the user's environment is not passed */
	assert_non_null(strstr(said, "secret none "));
	assert_int_equal(getsid(c.pid), c.pid);
	assert_int_not_equal(child_parent_of(c.pid), getpid());
	end(&c);
}

static void the_vault_has_its_socket_and_a_channel(void **state)
{
	AUTO_CLOSE int log_fd = new_log(), one = -1, two = -1;
	struct hands_child c = {.pidfd = -1};
	AUTO_FREE char *said = NULL;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	one = pair[0];
	two = pair[1];
	assert_int_equal(hands_vault(one, two, log_fd, &c, NULL), 0);
	said = wait_for("ready");
	assert_non_null(strstr(said, "args --key="));
	assert_non_null(strstr(said, "fd 3 socket:["));
	assert_non_null(strstr(said, "fd 4 socket:["));
	assert_null(strstr(said, "fd 5 "));
	end(&c);
}

static void the_notifier_has_the_way_to_the_session_bus_only(void **state)
{
	AUTO_FREE char *run = xasprintf("%s/run", dir), *bus = xasprintf("%s/run/bus", dir);
	AUTO_FREE char *want = xasprintf("secret none home none run %s\n", run);
	AUTO_CLOSE int log_fd = new_log(), one = -1, two = -1;
	struct hands_child c = {.pidfd = -1};
	AUTO_FREE char *said = NULL;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	one = pair[0];
	two = pair[1];
	assert_int_equal(hands_notify(one, log_fd, &c, NULL), -ENOENT);
	assert_int_equal(file_save(bus, slice_of("", 0), NULL), 0);
	assert_int_equal(hands_notify(one, log_fd, &c, NULL), 0);
	said = wait_for("ready");
	assert_non_null(strstr(said, "args \n"));
	assert_non_null(strstr(said, "fd 3 socket:["));
	assert_null(strstr(said, "fd 4 "));
	assert_non_null(strstr(said, want));
	/* it makes one when it enters its jail */
	assert_int_not_equal(getsid(c.pid), c.pid);
	end(&c);
	assert_int_equal(unlink(bus), 0);
}

static void the_merger_has_lists_of_layers(void **state)
{
	struct layers l[TEMPLATE_N_DISKS] = {{.number = {1, 3, 9999}, .n = 3}, {.n = 0}};
	AUTO_CLOSE int log_fd = new_log();
	struct hands_child c = {.pidfd = -1};
	AUTO_FREE char *said = NULL;

	assert_int_equal(hands_merger(ID, l, log_fd, &c, NULL), 0);
	said = wait_for("ready");
	assert_non_null(strstr(said, "--id " ID " --root 1,3,9999 --docker \n"));
	assert_null(strstr(said, "fd 3 "));
	end(&c);
}

static void the_maker_of_images_has_numbers(void **state)
{
	struct hands_image w = {
		.template = "debian", .cpus = 2, .memory = 1 << 30, .disk = 7, .accel = "tcg"};
	AUTO_CLOSE int log_fd = new_log();
	struct hands_child c = {.pidfd = -1};
	AUTO_FREE char *said = NULL;

	assert_int_equal(hands_maker(&w, log_fd, &c, NULL), 0);
	said = wait_for("ready");
	assert_non_null(strstr(said, "--template debian --cpus 2 --memory 1073741824 --disk 7 "
				     "--accel tcg\n"));
	assert_null(strstr(said, "fd 3 "));
	end(&c);
}

static void the_end_of_a_program_is_told_once(void **state)
{
	struct hands_child c = start_keeper(EXITS, HANDS_WARM);
	struct hands_end how = {0};

	assert_true(has_ended(c.pidfd));
	assert_int_equal(hands_reap(c.pid, &how), 0);
	assert_false(how.was_killed);
	assert_int_equal(how.status, 7);
	assert_int_equal(hands_reap(c.pid, &how), -ESRCH);
	fd_close(&c.pidfd);
	c = start_keeper(ID, HANDS_WARM);
	assert_int_equal(hands_reap(c.pid, &how), -EAGAIN);
	hands_signal(c.pidfd, HANDS_TERM);
	assert_true(has_ended(c.pidfd));
	assert_int_equal(hands_reap(c.pid, &how), 0);
	assert_true(how.was_killed);
	assert_int_equal(how.status, SIGTERM);
	fd_close(&c.pidfd);
}

static void a_keeper_outlives_the_spawner(void **state)
{
	struct hands_child c = start_keeper(ID, HANDS_WARM);

	free(wait_for("ready"));
	spawner_stop();
	assert_true(runs(c.pidfd));
	(void)kill(-c.pid, SIGKILL);
	assert_true(has_ended(c.pidfd));
	fd_close(&c.pidfd);
}

static void a_spawner_that_was_killed_is_seen(void **state)
{
	AUTO_CLOSE int log_fd = new_log();
	struct hands_child c;

	assert_false(worker_is_lost());
	assert_int_equal(pidfd_send_signal(spawner_pidfd(), SIGKILL, NULL, 0), 0);
	assert_true(has_ended(spawner_pidfd()));
	assert_true(hands_vault(log_fd, log_fd, log_fd, &c, NULL) < 0);
	assert_true(worker_is_lost());
}

/* ---- signals ---- */

/* A process of the user that looks like a keeper of that state directory. */
static struct hands_child start_alike(const char *state_dir)
{
	AUTO_FREE char *option = xasprintf("--state=%s", state_dir);
	struct hands_child c = {.pid = fork()};

	if (c.pid == 0) {
		(void)setsid();
		(void)execl("/bin/sh", "sh", "-c", "while :; do sleep 1; done", "--id", ID, option,
			(char *)NULL);
		_exit(127);
	}
	assert_true(c.pid > 0);
	c.pidfd = pidfd_open(c.pid, 0);
	assert_true(c.pidfd >= 0);
	(void)usleep(200000); /* its command line is now that of the shell */
	return c;
}

static void end_alike(struct hands_child *c)
{
	(void)kill(-c->pid, SIGKILL);
	(void)waitpid(c->pid, NULL, 0);
	fd_close(&c->pidfd);
}

static void the_keeper_of_an_earlier_sbxd_is_killed(void **state)
{
	AUTO_FREE char *ours = paths_get(PATHS_STATE, NULL);
	struct hands_child c = start_alike(ours);

	hands_kill_keeper(c.pidfd, -1);
	assert_true(has_ended(c.pidfd));
	end_alike(&c);
}

static void a_stranger_is_not_signalled(void **state)
{
	static struct worker_msg q, a;
	struct hands_child other = start_alike("/elsewhere/sbx"),
			   mine = start_keeper(ID, HANDS_WARM);
	struct err err = {0};

	for (enum hands_signal s = HANDS_TERM; s < HANDS_N_SIGNALS; s++)
		hands_signal(other.pidfd, s);
	assert_true(runs(other.pidfd));
	/* nor together with a permitted one, which it does not save */
	hands_kill_keeper(mine.pidfd, other.pidfd);
	assert_true(runs(other.pidfd) && has_ended(mine.pidfd));
	q = (struct worker_msg){.kind = HANDS_SIGNAL, .n = 1, .n_fds = 1, .fds = {other.pidfd}};
	assert_int_equal(hands_serve(NULL, &q, &a, &err), -EPERM);
	end(&mine);
	end_alike(&other);
}

/* A process with an unrelated command line that listens at a keeper's socket. */
static struct hands_child start_listener(const char *folder)
{
	struct hands_child c = {.pid = fork()};

	if (c.pid == 0) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		struct sockaddr_un sa = {.sun_family = AF_UNIX};

		(void)setsid();
		(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/keeper.sock", folder);
		if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 1) < 0)
			_exit(1);
		(void)poll(NULL, 0, 60000);
		_exit(0);
	}
	c.pidfd = pidfd_open(c.pid, 0);
	assert_true(c.pidfd >= 0);
	return c;
}

static void a_keeper_that_was_connected_to_is_killed_whatever_its_words_are(void **state)
{
	AUTO_FREE char *folder = paths_get(PATHS_RUNTIME, "s/" OTHER_ID);
	struct hands_child c;
	int to = -1;

	assert_int_equal(paths_make(folder, NULL), 0);
	c = start_listener(folder);
	assert_int_equal(keeper_note_save(OTHER_ID, c.pid, NULL), 0);
	for (int i = 0; to < 0 && i < GONE_MS / 20; i++) {
		to = hands_to_keeper(OTHER_ID, NULL);
		(void)usleep(20000);
	}
	assert_true(to >= 0);
	fd_close(&to);
	hands_kill_keeper(c.pidfd, -1);
	assert_true(has_ended(c.pidfd));
	end_alike(&c);
}

/* The kernel names the last process that called listen(). A compromised keeper lets a child do
 * that, whose number another process may have when the next sbxd connects. */
static void a_stranger_that_listens_for_a_keeper_is_not_signalled(void **state)
{
	AUTO_FREE char *folder = paths_get(PATHS_RUNTIME, "s/" STALE_ID);
	struct hands_child c;
	int to = -1;

	assert_int_equal(paths_make(folder, NULL), 0);
	c = start_listener(folder);
	for (int i = 0; to < 0 && i < GONE_MS / 20; i++) {
		to = hands_to_keeper(STALE_ID, NULL);
		(void)usleep(20000);
	}
	assert_true(to >= 0);
	fd_close(&to);
	hands_kill_keeper(c.pidfd, -1);
	assert_true(runs(c.pidfd));
	end_alike(&c);
}

static void a_stranger_with_the_number_of_a_keeper_is_not_signalled(void **state)
{
	AUTO_FREE char *folder = paths_get(PATHS_STATE, "specs/" ID);
	AUTO_FREE char *path = xasprintf("%s/keeper", folder), *note = NULL, *said = NULL;
	unsigned long long start = 0;
	size_t n;
	struct hands_child c = start_alike("/elsewhere/sbx");
	pid_t pid = 0;
	int fd;

	assert_int_equal(keeper_note_save(ID, c.pid, NULL), 0);
	fd = keeper_note_open(ID, &pid);
	assert_true(fd >= 0 && pid == c.pid);
	fd_close(&fd);
	/* the keeper had this pid before */
	assert_int_equal(file_load(path, 64, &said, &n, NULL), 0);
	assert_int_equal(sscanf(said, "%*d %llu", &start), 1);
	note = xasprintf("%d %llu\n", (int)c.pid, start - 1);
	assert_int_equal(file_save(path, slice_from_str(note), NULL), 0);
	assert_int_equal(keeper_note_open(ID, &pid), -ESRCH);
	hands_kill_rest(ID);
	assert_true(runs(c.pidfd));
	end_alike(&c);
}

/* A process that forks another one into its group, prints its number, and exits on request. */
static struct hands_child start_forking(int sock)
{
	struct hands_child c = {.pid = fork()};
	pid_t child;

	if (c.pid == 0) {
		(void)setsid();
		child = fork();
		if (child == 0)
			(void)poll(NULL, 0, 60000);
		else if (write(sock, &child, sizeof(child)) > 0)
			(void)!read(sock, &child, 1);
		_exit(0);
	}
	assert_true(c.pid > 0);
	return c;
}

static void what_a_keeper_has_forked_goes_with_it(void **state)
{
	struct hands_child c;
	pid_t child = 0;
	int pair[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	c = start_forking(pair[1]);
	assert_int_equal(read(pair[0], &child, sizeof(child)), sizeof(child));
	fd = pidfd_open(child, 0);
	assert_true(fd >= 0);
	assert_int_equal(keeper_note_save(ID, c.pid, NULL), 0);
	assert_int_equal(write(pair[0], "x", 1), 1);
	assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
	assert_true(runs(fd));
	hands_kill_rest(ID);
	assert_true(has_ended(fd));
	fd_close(&fd);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* ---- connections ---- */

static void a_keeper_is_connected_to_by_its_id(void **state)
{
	AUTO_FREE char *folder = paths_get(PATHS_RUNTIME, "s/" ID);
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), to = -1;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	assert_int_equal(hands_to_keeper(ID, NULL), -ENOENT);
	assert_int_equal(hands_to_vault(NULL), -ECONNREFUSED);
	assert_int_equal(paths_make(folder, NULL), 0);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/keeper.sock", folder);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	to = hands_to_keeper(ID, NULL);
	assert_true(to >= 0);
}

/* ---- a compromised sbxd ---- */

struct bad {
	unsigned kind;
	const char *body;
	size_t n;
	const char *fds; /* s: a socket, f: a file */
};

#define TEXT(s) s, sizeof(s) - 1
#define STR12 "\x0c\x00"

static const struct bad bad[] = {
	{HANDS_KILL_REST + 1, TEXT(""), ""},
	{999, TEXT(""), ""},
	/* an invalid id, or trailing data */
	{HANDS_KEEPER, TEXT(STR12 "../../../tmp\0"), "sf"},
	{HANDS_KEEPER, TEXT(STR12 "0123456789AB\0"), "sf"},
	{HANDS_KEEPER, TEXT(STR12 "-123456789ab\0"), "sf"},
	{HANDS_KEEPER,
		TEXT("\x0b\x00"
		     "0123456789a\0"),
		"sf"},
	{HANDS_KEEPER,
		TEXT("\x0d\x00"
		     "0123456789abc\0"),
		"sf"},
	{HANDS_KEEPER, TEXT(STR12 ID "\0x"), "sf"},
	{HANDS_KEEPER, TEXT(STR12 ID), "sf"},
	{HANDS_KEEPER, TEXT(STR12 ID "\3"), "sf"},
	/* descriptors: none, too few, too many, of the wrong kind */
	{HANDS_KEEPER, TEXT(STR12 ID "\0"), ""},
	{HANDS_KEEPER, TEXT(STR12 ID "\0"), "s"},
	{HANDS_KEEPER, TEXT(STR12 ID "\0"), "ssf"},
	{HANDS_KEEPER, TEXT(STR12 ID "\0"), "ff"},
	{HANDS_KEEPER, TEXT(STR12 ID "\0"), "ss"},
	{HANDS_KEEPER, TEXT(STR12 ID "\0"), "sffffff"},
	{HANDS_VAULT, TEXT(""), "sf"},
	{HANDS_VAULT, TEXT(""), "sssf"},
	{HANDS_VAULT, TEXT(""), "fsf"},
	{HANDS_VAULT, TEXT("x"), "ssf"},
	{HANDS_NOTIFY, TEXT("x"), "sf"},
	{HANDS_NOTIFY, TEXT(""), "f"},
	{HANDS_NOTIFY, TEXT(""), "ssf"},
	{HANDS_NOTIFY, TEXT(""), "fs"},
	/* 4, 8 and 8 bytes of numbers between the words */
	{HANDS_MAKER,
		TEXT("\6\0debian"
		     "12341234567812345678"
		     "\3\0tcg"),
		""},
	{HANDS_MAKER,
		TEXT("\6\0debian"
		     "12341234567812345678"
		     "\3\0tcg"),
		"ff"},
	{HANDS_MAKER,
		TEXT("\6\0debian"
		     "12341234567812345678"
		     "\3\0tcg"),
		"s"},
	{HANDS_MAKER,
		TEXT("\6\0debian"
		     "12341234567812345678"
		     "\x0c\0tcgtcgtcgtcg"),
		"f"},
	/* layers: none in the lists, too high, 0, more than the message has, no log */
	{HANDS_MERGER, TEXT(STR12 ID), "f"},
	{HANDS_MERGER, TEXT(STR12 ID "\1\x10\x27\0"), "f"},
	{HANDS_MERGER, TEXT(STR12 ID "\1\0\0\0"), "f"},
	{HANDS_MERGER, TEXT(STR12 ID "\x31\1\0\0"), "f"},
	{HANDS_MERGER, TEXT(STR12 ID "\1\1\0\0"), ""},
	{HANDS_MERGER, TEXT(STR12 ID "\1\1\0\0"), "sf"},
	{HANDS_SIGNAL, TEXT("\1"), ""},
	{HANDS_SIGNAL, TEXT("\1"), "fff"},
	{HANDS_SIGNAL, TEXT("\3"), "f"},
	{HANDS_SIGNAL, TEXT(""), "f"},
	{HANDS_SWEEP, TEXT("x"), ""},
	{HANDS_SWEEP, TEXT(""), "f"},
	{HANDS_TO_KEEPER, TEXT(STR12 "../../../tmp"), ""},
	{HANDS_TO_KEEPER, TEXT(STR12 ID), "f"},
	{HANDS_TO_KEEPER, TEXT(STR12 ID "x"), ""},
	{HANDS_KILL_REST, TEXT(STR12 "../../../tmp"), ""},
	{HANDS_KILL_REST, TEXT(STR12 ID), "f"},
	{HANDS_KILL_REST, TEXT(""), ""},
	{HANDS_TO_VAULT, TEXT("x"), ""},
	{HANDS_TO_VAULT, TEXT(""), "f"},
};

static void a_question_out_of_form_ends_the_spawner(void **state)
{
	static struct worker_msg q, a;
	AUTO_CLOSE int file = new_log(), sock = socket(AF_UNIX, SOCK_STREAM, 0);

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = {0};

		q = (struct worker_msg){.kind = (uint16_t)bad[i].kind, .n = bad[i].n};
		memcpy(q.body, bad[i].body, bad[i].n);
		for (const char *f = bad[i].fds; *f; f++)
			q.fds[q.n_fds++] = *f == 's' ? sock : file;
		print_message("row %zu\n", i);
		assert_int_equal(hands_serve(NULL, &q, &a, &err), -EBADMSG);
	}
	/* the same through the socket: the spawner answers this request and then exits */
	q = (struct worker_msg){.kind = HANDS_TO_KEEPER};
	assert_true(worker_ask(&q, NULL) < 0);
	assert_true(has_ended(spawner_pidfd()));
}

/* Texts that sbxd got from keepers and templates. */
static void a_wrong_word_is_refused_and_ends_nothing(void **state)
{
	static const char *const words[][2] = {{"--help", "tcg"}, {"../../", "tcg"},
		{"/etc/x", "tcg"}, {"", "tcg"}, {"debian", "-ab"}, {"debian", ""}};
	AUTO_CLOSE int log_fd = new_log();

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct hands_image w = {.cpus = 1};
		struct hands_child c = {.pidfd = -1};
		struct err err = {0};

		(void)snprintf(w.template, sizeof(w.template), "%s", words[i][0]);
		(void)snprintf(w.accel, sizeof(w.accel), "%s", words[i][1]);
		assert_int_equal(hands_maker(&w, log_fd, &c, &err), -EINVAL);
	}
	assert_true(runs(spawner_pidfd()));
}

/* A jail plan is for the keeper's programs; here no program is listed. */
static void no_other_program_is_started(void **state)
{
	char *argv[] = {(char *)"sh", NULL};
	struct jail_plan plan = {
		.profile = JAIL_QEMU, .program = "/bin/sh", .argv = argv, .log_fd = -1};
	struct jail_child c;

	assert_int_equal(worker_spawn(&plan, &c, NULL), -EPERM);
}

/* Regression Z5: sbxd exited if the home was read-only. */
static void sbxd_is_sealed_without_a_configuration(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)setenv("XDG_CONFIG_HOME", "/proc/none", 1);
		_exit(hands_seal(&(struct err){0}) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void write_program(const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, program, sizeof(program) - 1), 0);
}

static int set_up_all(void **state)
{
	static const char *const vars[] = {"state", "run", "data", "config"};
	static const char *const names[] = {
		"XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"};

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, vars[i]);

		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(setenv(names[i], path, 1), 0);
	}
	assert_int_equal(setenv("SBX_LIBEXEC", dir, 1) | setenv("SECRET", "x", 1), 0);
	(void)snprintf(log_path, sizeof(log_path), "%s/log", dir);
	write_program("sbx-keeper");
	write_program("sbx-vault-run");
	write_program("sbx-notify");
	return unsetenv("DBUS_SESSION_BUS_ADDRESS");
}

static int tear_down_all(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s", dir);

	return system(command);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH(a_keeper_has_its_id_its_channel_and_a_session),
		WITH(the_vault_has_its_socket_and_a_channel),
		WITH(the_notifier_has_the_way_to_the_session_bus_only),
		WITH(the_merger_has_lists_of_layers),
		WITH(the_maker_of_images_has_numbers),
		WITH(the_end_of_a_program_is_told_once),
		WITH(a_keeper_outlives_the_spawner),
		WITH(a_spawner_that_was_killed_is_seen),
		WITH(the_keeper_of_an_earlier_sbxd_is_killed),
		WITH(a_stranger_is_not_signalled),
		WITH(a_keeper_is_connected_to_by_its_id),
		WITH(a_question_out_of_form_ends_the_spawner),
		WITH(a_wrong_word_is_refused_and_ends_nothing),
		WITH(a_keeper_that_was_connected_to_is_killed_whatever_its_words_are),
		WITH(a_stranger_that_listens_for_a_keeper_is_not_signalled),
		WITH(a_stranger_with_the_number_of_a_keeper_is_not_signalled),
		WITH(what_a_keeper_has_forked_goes_with_it),
		WITH(no_other_program_is_started),
		WITH(sbxd_is_sealed_without_a_configuration),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
