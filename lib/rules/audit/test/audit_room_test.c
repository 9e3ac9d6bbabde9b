/* SPDX-License-Identifier: Apache-2.0 */
/* A file system that really is full, in a mount namespace of each test. */
#include "audit_fixture.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define KIB 1024

static struct fixture f;

static void fill_disk(const char *path)
{
	static const char block[4096];
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, block, sizeof(block)) > 0)
		;
}

static int write_proc(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("/proc/self/%s", name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int enter_namespace(void)
{
	AUTO_FREE char *uid = xasprintf("0 %u 1", geteuid());
	AUTO_FREE char *gid = xasprintf("0 %u 1", getegid());

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	return write_proc("uid_map", uid) | write_proc("setgroups", "deny") |
	       write_proc("gid_map", gid);
}

static void in_namespace(int (*fn)(void))
{
	int status;

	fixture_up(&f);
	if (fork() == 0) {
		if (enter_namespace() < 0)
			_exit(1);
		if (mount("audit", f.dir, "tmpfs", 0, "size=1m,mode=700") < 0)
			_exit(2);
		_exit(fn());
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	fixture_down(&f);
}

static int life(struct audit *a, const char *action)
{
	struct audit_event ev = {.kind = AUDIT_KIND_LIFECYCLE, .action = slice_from_str(action)};

	return audit_append(a, &ev, NULL, NULL);
}

static bool has_last(const char *action)
{
	AUTO_FREE char *want = xasprintf("\"%s\"", action);
	AUTO_FREE char *text = NULL;
	size_t n = 0;

	for (unsigned i = 9; i > 0; i--) {
		AUTO_FREE char *path = fixture_segment(&f, FIXTURE_ID, i);

		if (file_load(path, 1 << 20, &text, &n, NULL) == 0 && n > 0)
			return memmem(text, n, want, strlen(want)) != NULL;
	}
	return false;
}

/* A guest goes on asking until its records are refused; then the sandbox stops. */
static int the_guest_cannot_use_it_up(void)
{
	AUTO_FREE char *filler = xasprintf("%s/filler", f.dir);
	struct audit *a = fixture_open_room(&f, FIXTURE_ID, 64 * KIB);
	int r;

	fixture_fill(a, 50);
	fill_disk(filler);
	while ((r = fixture_append(a, 1, NULL)) == 0)
		;
	if (r != -ENOSPC)
		return 3;
	for (int i = 0; i < 20; i++)
		if (life(a, "pause") < 0 || audit_sync(a, NULL) < 0)
			return 4;
	if (fixture_append(a, 1, NULL) != -ENOSPC)
		return 5;
	if (life(a, "stop") < 0)
		return 6;
	if (audit_close(a, NULL) < 0)
		return 7;
	if (!has_last("stop") || fixture_verify(&f, FIXTURE_ID).bad != AUDIT_OK)
		return 8;
	return 0;
}

/* The segment is as long as one may be, and another file cannot be made. */
static int no_other_segment_is_needed(void)
{
	AUTO_FREE char *filler = xasprintf("%s/filler", f.dir);
	struct audit *a;

	f.segment_bytes = 8 * KIB;
	a = fixture_open_room(&f, FIXTURE_ID, 64 * KIB);
	while (a->size < f.segment_bytes)
		fixture_fill(a, 1);
	fill_disk(filler);
	for (int i = 0; i < 20; i++)
		if (life(a, "pause") < 0)
			return 3;
	if (a->segment != 1 || a->size <= f.segment_bytes)
		return 8;
	if (life(a, "stop") < 0 || audit_close(a, NULL) < 0)
		return 4;
	if (!has_last("stop") || fixture_verify(&f, FIXTURE_ID).bad != AUDIT_OK)
		return 5;
	/* The next start goes on, with a segment of its own. */
	(void)unlink(filler);
	a = fixture_open_room(&f, FIXTURE_ID, 64 * KIB);
	fixture_fill(a, 10);
	if (a->segment < 2 || audit_close(a, NULL) < 0)
		return 6;
	return fixture_verify(&f, FIXTURE_ID).bad == AUDIT_OK ? 0 : 7;
}

static uint64_t free_kib(void)
{
	AUTO_FREE char *cmd = xasprintf("df -k --output=avail %s | tail -1", f.dir);
	char line[64] = "";
	FILE *p = popen(cmd, "re");

	if (!fgets(line, sizeof(line), p))
		line[0] = '\0';
	(void)pclose(p);
	return strtoull(line, NULL, 10);
}

/* What a running log keeps is given back when it is closed, also after segments have changed. */
static int it_is_given_back(void)
{
	AUTO_FREE char *spare = xasprintf("%s/heads/." FIXTURE_ID ".spare", f.dir);
	uint64_t before, during;
	struct audit *a;

	f.segment_bytes = 16 * KIB;
	a = fixture_open_room(&f, FIXTURE_ID, 64 * KIB);
	before = free_kib();
	fixture_fill(a, 200);
	during = free_kib();
	/* 200 records have about 80 KiB; one segment of them all has room behind it. */
	if (a->segment < 4 || before - during > 160)
		return 3;
	if (access(spare, F_OK) < 0 || audit_close(a, NULL) < 0 || access(spare, F_OK) == 0)
		return 4;
	return free_kib() >= during + 64 ? 0 : 5;
}

static void with_0_bytes_free_the_host_is_recorded(void **state)
{
	in_namespace(the_guest_cannot_use_it_up);
}

static void a_full_segment_takes_the_last_records(void **state)
{
	in_namespace(no_other_segment_is_needed);
}

static void a_closed_log_keeps_no_room(void **state)
{
	in_namespace(it_is_given_back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_0_bytes_free_the_host_is_recorded),
		cmocka_unit_test(a_full_segment_takes_the_last_records),
		cmocka_unit_test(a_closed_log_keeps_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
