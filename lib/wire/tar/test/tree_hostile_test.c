/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile archives: what a guest may send when the host copies out of it. Every one is unpacked
 * into a fresh folder beside things that must not change; afterwards those are compared with a
 * picture taken before. Deterministic: a failing number can be run again.
 */
#include "lib/wire/tar/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/fs/fd.h"
#include "lib/wire/tar/tar_internal.h"

#define N_RANDOM 800

static char base[64];
static uint8_t archive[128 << 10];
static size_t n_archive;
static uint64_t dice_state;

static unsigned dice(unsigned sides)
{
	dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(dice_state >> 33) % sides;
}

static void sh(const char *command)
{
	assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
	(void)snprintf(base, sizeof(base), "/tmp/sbx-hostile.XXXXXX");
	if (!mkdtemp(base) || chdir(base) < 0)
		return -1;
	sh("mkdir outside outside/dir && echo secret > outside/secret && echo x > outside/dir/f"
	   " && chmod 600 outside/secret && ln -s secret outside/link");
	return 0;
}

static int teardown(void **state)
{
	char command[160];

	(void)snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", base, base);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* ---- what must not change: everything under base except dest/ ---- */

static size_t picture_of(int dirfd, const char *name, char *out, size_t size, size_t n)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	char content[64];
	struct dirent *e;
	struct stat st;

	assert_non_null(d);
	while ((e = readdir(d))) {
		ssize_t k = 0;

		if (strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, "dest") == 0)
			continue;
		assert_int_equal(fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
		if (S_ISREG(st.st_mode)) {
			int f = openat(fd, e->d_name, O_RDONLY | O_CLOEXEC);

			k = read(f, content, sizeof(content));
			close(f);
		}
		/* base's own time changes because dest is made in it */
		n += (size_t)snprintf(out + n, size - n, "%s/%s %o %u %lld %lld.%ld %.*s\n", name,
			e->d_name, st.st_mode, (unsigned)st.st_nlink,
			S_ISDIR(st.st_mode) ? 0 : (long long)st.st_size,
			strcmp(name, ".") == 0 && strcmp(e->d_name, ".") == 0
				? 0
				: (long long)st.st_mtim.tv_sec,
			strcmp(name, ".") == 0 && strcmp(e->d_name, ".") == 0 ? 0
									      : st.st_mtim.tv_nsec,
			(int)MAX(k, 0), content);
		assert_true(n < size);
		if (S_ISDIR(st.st_mode) && strcmp(e->d_name, ".") != 0)
			n = picture_of(fd, e->d_name, out, size, n);
	}
	closedir(d);
	return n;
}

static void take_picture(char *out, size_t size)
{
	(void)picture_of(AT_FDCWD, ".", out, size, 0);
}

/* ---- making archives ---- */

static void begin(void)
{
	memset(archive, 0, sizeof(archive));
	n_archive = 0;
}

static void sign(size_t at)
{
	unsigned sum = 0;

	memset(archive + at + TAR_AT_SUM, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += archive[at + i];
	(void)snprintf((char *)archive + at + TAR_AT_SUM, 8, "%06o", sum);
}

static void add(enum tar_type type, const char *name, const char *link, const char *body)
{
	struct tar_entry e = {.type = type, .mode = 06777, .mtime_s = 99};
	size_t n;

	(void)snprintf(e.name, sizeof(e.name), "%s", name);
	(void)snprintf(e.link, sizeof(e.link), "%s", link);
	e.size = type == TAR_FILE ? strlen(body) : 0;
	if (sizeof(archive) - n_archive < TAR_MAX_HEAD + e.size + 2 * TAR_BLOCK + TAR_END_BYTES)
		return;
	assert_int_equal(tar_write_entry(&e, archive + n_archive, TAR_MAX_HEAD, &n), 0);
	n_archive += n;
	memcpy(archive + n_archive, body, e.size);
	n_archive += e.size + tar_padding(e.size);
}

/* A pax header in front of what is added next: "key=value", or a record as it is. */
static void add_pax(const char *record)
{
	size_t at = n_archive, n = strlen(record) + 3;
	char whole[128];

	(void)snprintf(whole, sizeof(whole), "%zu %s\n", n + (n > 9), record);
	add(TAR_FILE, "PaxHeaders/x", "", record[0] >= '0' && record[0] <= '9' ? record : whole);
	if (n_archive == at)
		return;
	/* mtime 99 needs no pax records of its own, so the header is the first block */
	archive[at + TAR_AT_TYPE] = 'x';
	sign(at);
}

static void add_end(void)
{
	n_archive += TAR_END_BYTES;
}

/* No shell here: hundreds of archives are unpacked. */
static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void make_dest(void)
{
	if (nftw("dest", remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
		assert_int_equal(errno, ENOENT);
	assert_int_equal(mkdir("dest", 0777), 0);
	assert_int_equal(mkdir("dest/in", 0777), 0);
}

static void remove_file(const char *path)
{
	if (unlink(path) < 0)
		assert_int_equal(errno, ENOENT);
}

static int check_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return (st->st_mode & (S_ISUID | S_ISGID)) ||
	       !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
}

static int unpack(const char *as, struct err *err)
{
	AUTO_CLOSE int in = memfd_create("archive", MFD_CLOEXEC);
	AUTO_CLOSE int dest = -1;

	err->text[0] = '\0';
	assert_int_equal(fd_write_all(in, archive, n_archive), 0);
	assert_int_equal(lseek(in, 0, SEEK_SET), 0);
	make_dest();
	assert_int_equal(symlink("../../outside", "dest/in/trap"), 0);
	assert_int_equal(link("outside/dir/f", "dest/in/hard"), 0);
	assert_int_equal(chmod("dest/in", 0755), 0);
	dest = open("dest/in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(dest >= 0);
	return tree_unpack(in, dest, as, 0, NULL, err);
}

/* Unpacks and compares; also no set-id bit, device or fifo may be in the destination. */
static int check(const char *as, struct err *err)
{
	static char before[64 << 10], after[64 << 10];
	int r;

	make_dest();
	assert_int_equal(link("outside/dir/f", "dest/hard"), 0); /* the link count */
	take_picture(before, sizeof(before));
	remove_file("dest/hard");
	r = unpack(as, err);
	/* the planted hard link may be replaced: put the count back */
	remove_file("dest/in/hard");
	assert_int_equal(link("outside/dir/f", "dest/hard"), 0);
	take_picture(after, sizeof(after));
	assert_string_equal(before, after);
	assert_int_equal(nftw("dest/in", check_one, 16, FTW_PHYS), 0);
	return r;
}

static void expect_refused(const char *what)
{
	struct err err;
	int r;

	add_end();
	r = check("t", &err);
	if (r >= 0)
		fail_msg("taken: %s", what);
	r = check(NULL, &err);
	if (r >= 0)
		fail_msg("taken under its own names: %s", what);
}

#define REFUSED(...)                          \
	do {                                  \
		begin();                      \
		add(TAR_DIR, "t", "", "");    \
		__VA_ARGS__;                  \
		expect_refused(#__VA_ARGS__); \
	} while (0)

/* `sbx cp` out of a sandbox wrote outside of its destination in another tool of this kind. */
static void cve_2026_17106_copy_out_stays_in_its_destination(void **state)
{
	REFUSED(add(TAR_SYMLINK, "t/l", "../../../outside", ""); add(TAR_FILE, "t/l/pwn", "", "x"));
	REFUSED(add(TAR_SYMLINK, "t/l", "/tmp", ""); add(TAR_DIR, "t/l/d", "", ""));
	REFUSED(add(TAR_FILE, "../pwn", "", "x"));
	REFUSED(add(TAR_FILE, "t/../../pwn", "", "x"));
	REFUSED(add(TAR_FILE, "t/x/../../../outside/secret", "", "x"));
	REFUSED(add(TAR_FILE, "/tmp/sbx-hostile-pwn", "", "x"));
	REFUSED(add(TAR_DIR, "t/..", "", ""));
	REFUSED(add(TAR_CHAR, "t/null", "", ""));
	REFUSED(add(TAR_BLOCKDEV, "t/sda", "", ""));
	REFUSED(add(TAR_FIFO, "t/fifo", "", ""));
	begin();
	add(TAR_DIR, "t", "", "");
	add(TAR_FILE, "trap/secret", "",
		"overwritten"); /* the link that waits in the destination */
	expect_refused("through a link that was there");
}

/* A layer's symlink wrote to the host in another tool of this kind. */
static void cve_2026_46703_links_are_made_and_never_followed(void **state)
{
	struct err err;

	REFUSED(add(TAR_HARDLINK, "t/h", "../../outside/secret", ""));
	REFUSED(add(TAR_HARDLINK, "t/h", "/etc/passwd", ""));
	REFUSED(add(TAR_HARDLINK, "t/h", "trap/secret", ""));
	REFUSED(add(TAR_HARDLINK, "t/h", "hard", ""));
	REFUSED(add(TAR_SYMLINK, "t/l", "../../../outside", "");
		add(TAR_HARDLINK, "t/h", "t/l/secret", ""));
	REFUSED(add(TAR_SYMLINK, "t/l", "../../../outside/secret", "");
		add(TAR_HARDLINK, "t/h", "t/l", ""));
	REFUSED(add(TAR_FILE, "t/f", "", "x"); add(TAR_HARDLINK, "t/f", "t/f", ""));
	REFUSED(add(TAR_SYMLINK, "t/a", ".", ""); add(TAR_SYMLINK, "t/a/a", "..", "");
		add(TAR_FILE, "t/a/a/a/pwn", "", "x"));
	/* A file in a link's place replaces the link. */
	begin();
	add(TAR_DIR, "t", "", "");
	add(TAR_SYMLINK, "t/l", "../../../outside/secret", "");
	add(TAR_FILE, "t/l", "", "mine");
	add_end();
	assert_int_equal(check("t", &err), 0);
	sh("test -f dest/in/t/l && ! test -L dest/in/t/l && grep -q mine dest/in/t/l");
}

static const char *at_link; /* what another process does right before linkat, or NULL */

int __real_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
	int r;

	if (at_link)
		sh(at_link);
	r = __real_linkat(from_at, from, to_at, to, flags);
	/* Not even for this moment: a guest that opens the link keeps the file. */
	if (at_link)
		sh("! test dest/in/t/h -ef outside/dir/f");
	return r;
}

/* A link to a file that was there before is refused before anything in the destination changes. */
static void a_refused_hard_link_replaces_nothing(void **state)
{
	struct err err = {0};

	begin();
	add(TAR_HARDLINK, "trap", "hard", "");
	add_end();
	assert_int_equal(unpack(NULL, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "a file outside the archive"));
	sh("test -L dest/in/trap && test dest/in/hard -ef outside/dir/f");
	sh("rm -rf dest"); /* the link count of the file outside */
}

/* Unpacks a file and a hard link to it, while another process replaces something on the way. */
static int link_during(const char *command)
{
	struct err err = {0};
	int r;

	begin();
	add(TAR_DIR, "t", "", "");
	add(TAR_DIR, "t/d", "", "");
	add(TAR_FILE, "t/d/f", "", "mine");
	add(TAR_HARDLINK, "t/h", "t/d/f", "");
	add_end();
	at_link = command;
	r = unpack("t", &err);
	at_link = NULL;
	return r;
}

static void a_hard_link_is_to_the_file_that_was_checked(void **state)
{
	assert_int_equal(link_during("mv dest/in/t/d/f dest/in/t/d/moved"
				     " && ln outside/dir/f dest/in/t/d/f"),
		0);
	sh("test dest/in/t/h -ef dest/in/t/d/moved");
	/* The directory, by one that a link leads to. finish_dirs refuses the link then. */
	assert_int_equal(link_during("mv dest/in/t/d dest/in/t/moved"
				     " && ln -s ../../../outside/dir dest/in/t/d"),
		-ELOOP);
	sh("test dest/in/t/h -ef dest/in/t/moved/f");
	sh("rm -rf dest"); /* the link count of the file outside */
}

static void a_hard_link_to_a_removed_file_fails(void **state)
{
	assert_int_equal(
		link_during("rm dest/in/t/d/f && ln outside/dir/f dest/in/t/d/f"), -ENOENT);
	sh("test ! -e dest/in/t/h");
	sh("rm -rf dest"); /* the link count of the file outside */
}

/* The sender has no say about the name under which the person wants it. */
static void the_top_is_named_by_the_receiver(void **state)
{
	struct err err;

	begin();
	add(TAR_FILE, ".bashrc", "", "evil");
	add_end();
	assert_int_equal(check("report.txt", &err), 0);
	sh("grep -q evil dest/in/report.txt && ! test -e dest/in/.bashrc");
	begin();
	add(TAR_FILE, "report.txt", "", "good");
	add(TAR_FILE, ".bashrc", "", "evil");
	add_end();
	assert_int_equal(check("report.txt", &err), -EBADMSG);
	sh("! test -e dest/in/.bashrc");
}

static void sizes_that_lie(void **state)
{
	begin();
	add(TAR_FILE, "t", "", "x");
	memcpy(archive + TAR_AT_SIZE, "77777777777", 12);
	sign(0);
	expect_refused("8 GiB that do not come");
	begin();
	add_pax("size=9223372036854775807");
	add(TAR_FILE, "t", "", "x");
	expect_refused("8 EiB that do not come");
	sh("test $(du -sk dest | cut -f1) -lt 2000");
}

static void bombs_of_names(void **state)
{
	static char long_name[3000];
	static char deep[1000];
	struct err err;

	memset(long_name, 'n', 2999);
	REFUSED(add(TAR_FILE, long_name, "", "x"));
	for (size_t i = 0; i < sizeof(deep) - 1; i++)
		deep[i] = i % 2 ? '/' : 't';
	REFUSED(add(TAR_FILE, deep, "", "x"));
	begin();
	for (unsigned i = 0; i < 50; i++)
		add_pax("comment=01234567");
	expect_refused("many extensions for one entry");
	begin();
	add(TAR_DIR, "t", "", "");
	for (unsigned i = 0; i < 100; i++)
		add(TAR_FILE, "t/same", "", "again");
	add_end();
	assert_int_equal(check("t", &err), 0);
	sh("test $(cat dest/in/t/same) = again");
}

static uint64_t free_bytes; /* of a disk that only dest/in/big fills; 0: the real one */

int __real_fstatvfs64(int fd, struct statvfs *v);
int __wrap_fstatvfs64(int fd, struct statvfs *v);
int __wrap_fstatvfs64(int fd, struct statvfs *v)
{
	struct stat st = {0};
	int r = __real_fstatvfs64(fd, v);

	if (!free_bytes)
		return r;
	(void)!fstatat(fd, "big", &st, 0);
	v->f_frsize = 1;
	v->f_blocks = 1u << 30;
	v->f_bavail = free_bytes - MIN(free_bytes, (uint64_t)st.st_size);
	return r;
}

/* The archive, and then zeros: far more than the disk has. */
static pid_t send_without_end(const int fds[2])
{
	static const uint8_t zeros[1 << 20];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)close(fds[0]);
	(void)!fd_write_all(fds[1], archive, n_archive);
	for (unsigned i = 0; i < 128; i++)
		if (fd_write_all(fds[1], zeros, sizeof(zeros)) < 0)
			break;
	_exit(0);
}

static void a_copy_leaves_the_reserve_of_the_disk_free(void **state)
{
	struct tree_guard guard = {.reserve = 32u << 20};
	struct err err = {0};
	struct stat st;
	int fds[2];
	pid_t pid;

	begin();
	add_pax("size=1099511627776");
	add(TAR_FILE, "big", "", "x");
	sh("rm -rf dest && mkdir -p dest/in");
	assert_int_equal(stat("dest", &st), 0);
	guard.reserve_dev = st.st_dev;
	assert_int_equal(pipe(fds), 0);
	pid = send_without_end(fds);
	close(fds[1]);
	free_bytes = 64u << 20;
	assert_int_equal(
		tree_unpack_guarded(fds[0], -1, "dest/in", "big", &guard, NULL, &err), -ENOSPC);
	free_bytes = 0;
	assert_non_null(strstr(err.text, "disk.reserve"));
	assert_int_equal(stat("dest/in/big", &st), 0);
	assert_in_range(st.st_size, 20 << 20, 32 << 20);
	close(fds[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* R10A4: a copy of 8 MiB to a disk with 4 MiB free, which `guard` is about or not. */
static int copy_to_full_disk(const char *size, dev_t other)
{
	struct tree_guard guard = {.reserve = 32u << 20};
	struct err err = {0};
	struct stat st;
	int r, fds[2];
	pid_t pid;

	begin();
	add_pax(size);
	add(TAR_FILE, "big", "", "");
	sh("rm -rf dest && mkdir -p dest/in");
	assert_int_equal(stat("dest", &st), 0);
	guard.reserve_dev = st.st_dev + other;
	assert_int_equal(pipe(fds), 0);
	pid = send_without_end(fds);
	close(fds[1]);
	free_bytes = 4u << 20;
	r = tree_unpack_guarded(fds[0], -1, "dest/in", "big", &guard, NULL, &err);
	free_bytes = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return r;
}

static void the_reserve_is_that_of_one_disk_and_lets_small_files_through(void **state)
{
	assert_int_equal(copy_to_full_disk("size=8388608", 0), -ENOSPC);
	assert_int_equal(copy_to_full_disk("size=8388608", 1), 0);
	assert_int_equal(copy_to_full_disk("size=1024", 0), 0);
}

/* ---- trees from dice ---- */

static const char *const names[] = {"t", "t/", "t/a", "t/a/b", "t/a/b/c", "t/l", "t/l/x",
	"t/l/secret", "t/../x", "../x", "../../outside/secret", "/etc/sbx-pwn", "..", ".", "",
	"./t/a", "t//a", "t/./a", "t/.../a", "trap", "trap/secret", "trap/dir/f", "t/trap/x",
	"hard", "t/a/../../..", "t/l/l/l", "t/\n", "t/\x1b[2J", "t/a/", "\\..\\x",
	"t/proc/self/root/tmp/x", "x/y/z"};
static const char *const links[] = {"", ".", "..", "/", "../..", "../../outside",
	"../outside/secret", "/tmp", "/proc/self/root", "/proc/self/cwd/../outside", "t/a", "t/l",
	"a", "l", "trap", "../trap", "trap/secret", "hard", "/dev/null", "t/a/b"};
static const char *const records[] = {"path=a", "path=../../outside/x", "size=-1",
	"size=1099511627776", "path=/tmp/sbx-pwn", "linkpath=../../outside", "path=t/l/pwn",
	"99999 path=a\n", "GNU.sparse.major=1", "mtime=-9.5", "linkpath=/proc/self/root",
	"20 comment=012345678"};

static void spoil(void)
{
	size_t at = dice((unsigned)(n_archive / TAR_BLOCK)) * (size_t)TAR_BLOCK;

	switch (dice(6)) {
	case 0:
		n_archive = dice((unsigned)n_archive + 1);
		break;
	case 1:
		archive[at + TAR_AT_TYPE] = (uint8_t) "0123456789SxgLKDMNV\0A"[dice(21)];
		sign(at);
		break;
	case 2:
		memset(archive + at + TAR_AT_SIZE, (int)dice(256), 12);
		sign(at);
		break;
	case 3:
		archive[dice((unsigned)n_archive)] ^= (uint8_t)(1u << dice(8));
		break;
	case 4:
		archive[at + dice(TAR_BLOCK)] = (uint8_t)dice(256);
		sign(at);
		break;
	default:
		break;
	}
}

static void roll_archive(uint64_t seed)
{
	unsigned n;

	dice_state = seed * 7919 + 17;
	n = 1 + dice(8);
	begin();
	if (dice(4))
		add(TAR_DIR, "t", "", "");
	if (dice(3) == 0)
		add(TAR_SYMLINK, "t/l", links[dice(ARRAY_LEN(links))], "");
	for (unsigned i = 0; i < n; i++) {
		if (dice(8) == 0)
			add_pax(records[dice(ARRAY_LEN(records))]);
		/* mostly names that are in order, so that the hostile ones come late */
		add((enum tar_type)(dice(4) ? dice(3) : dice(TAR_N_TYPES)),
			names[dice(dice(3) ? 6 : ARRAY_LEN(names))], links[dice(ARRAY_LEN(links))],
			"body");
	}
	add_end();
	if (dice(3) == 0)
		spoil();
}

static void trees_from_dice(void **state)
{
	unsigned taken = 0;

	for (unsigned seed = 0; seed < N_RANDOM; seed++) {
		static const char *const as[] = {"t", NULL, "."};
		struct err err;
		int r;

		roll_archive(seed);
		r = check(as[seed % 3], &err);
		if (r < 0)
			assert_true(err.text[0] != '\0');
		taken += r == 0;
	}
	print_message("%u archives, %u of them taken\n", N_RANDOM, taken);
	/* If all are refused at their first byte, this test shows nothing. */
	assert_in_range(taken, N_RANDOM / 50, N_RANDOM * 9 / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cve_2026_17106_copy_out_stays_in_its_destination),
		cmocka_unit_test(cve_2026_46703_links_are_made_and_never_followed),
		cmocka_unit_test(a_refused_hard_link_replaces_nothing),
		cmocka_unit_test(a_hard_link_is_to_the_file_that_was_checked),
		cmocka_unit_test(a_hard_link_to_a_removed_file_fails),
		cmocka_unit_test(the_top_is_named_by_the_receiver),
		cmocka_unit_test(sizes_that_lie),
		cmocka_unit_test(bombs_of_names),
		cmocka_unit_test(a_copy_leaves_the_reserve_of_the_disk_free),
		cmocka_unit_test(the_reserve_is_that_of_one_disk_and_lets_small_files_through),
		cmocka_unit_test(trees_from_dice),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
