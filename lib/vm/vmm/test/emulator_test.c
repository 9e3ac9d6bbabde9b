/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that answer --version as qemu does, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/vm/vmm/emulator.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/sbx-emulator-XXXXXX";
static char qemu[64], asked[64];

/* Another file each time, as a package's update is. */
static void install(const char *answer)
{
	AUTO_FREE char *text =
		xasprintf("#!/bin/sh\necho x >>%s\n[ \"$*\" = --version ] && %s\n", asked, answer);
	AUTO_FREE char *temp = xasprintf("%s.new", qemu);
	AUTO_CLOSE int fd = open(temp, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0755);

	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	fd_close(&fd);
	assert_int_equal(rename(temp, qemu), 0);
	(void)unlink(asked);
}

static void versions(void **state)
{
	static const struct {
		const char *said;
		bool parallel;
	} rows[] = {
		{"QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2ubuntu6)", false},
		{"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", false},
		{"QEMU emulator version 8.0.4", false},
		{"QEMU emulator version 8.1.0", true},
		{"QEMU emulator version 8.10.0", true},
		{"QEMU emulator version 9.0.2", true},
		{"QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)", true},
		{"QEMU emulator version 9", false},
		{"QEMU emulator version ", false},
		{"qemu-img version 10.0.2", false},
		{"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *answer = xasprintf("echo '%s'", rows[i].said);

		install(answer);
		if (emulator_accel(qemu, NULL) != (rows[i].parallel ? VMM_TCG_PARALLEL : VMM_TCG))
			fail_msg("%s", rows[i].said);
	}
}

static int times_asked(void)
{
	struct stat st;

	return stat(asked, &st) < 0 ? 0 : (int)st.st_size / 2;
}

static void asked_once_for_each_qemu(void **state)
{
	install("echo QEMU emulator version 7.2.22");
	for (int i = 0; i < 3; i++)
		assert_int_equal(emulator_accel(qemu, dir), VMM_TCG);
	assert_int_equal(times_asked(), 1);
	install("echo QEMU emulator version 10.0.2");
	for (int i = 0; i < 3; i++)
		assert_int_equal(emulator_accel(qemu, dir), VMM_TCG_PARALLEL);
	assert_int_equal(times_asked(), 1);
	install("echo QEMU emulator version 8.0.4");
	assert_int_equal(emulator_accel(qemu, dir), VMM_TCG);
}

static void without_a_folder_it_is_asked_again(void **state)
{
	install("echo QEMU emulator version 10.0.2");
	for (int i = 0; i < 2; i++)
		assert_int_equal(emulator_accel(qemu, NULL), VMM_TCG_PARALLEL);
	assert_int_equal(times_asked(), 2);
}

/* What cannot be asked gets the one thread that is right for every version. */
static void no_answer_is_one_thread(void **state)
{
	install("{ echo QEMU emulator version 10.0.2; exit 1; }");
	assert_int_equal(emulator_accel(qemu, NULL), VMM_TCG);
	install("kill -9 $$");
	assert_int_equal(emulator_accel(qemu, NULL), VMM_TCG);
	install("echo warning: QEMU emulator version 10.0.2");
	assert_int_equal(emulator_accel(qemu, NULL), VMM_TCG);
	assert_int_equal(emulator_accel("/nowhere/qemu", dir), VMM_TCG);
}

/* It was one thread for as long as qemu's file stayed the same. */
static void no_answer_is_not_kept(void **state)
{
	AUTO_FREE char *busy = xasprintf("%s/busy", dir);
	AUTO_FREE char *answer =
		xasprintf("{ [ -e %s ] && exit 1; echo QEMU emulator version 10.0.2; }", busy);
	int fd = open(busy, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	fd_close(&fd);
	install(answer);
	assert_int_equal(emulator_accel(qemu, dir), VMM_TCG);
	assert_int_equal(unlink(busy), 0);
	assert_int_equal(emulator_accel(qemu, dir), VMM_TCG_PARALLEL);
}

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(qemu, sizeof(qemu), "%s/qemu", dir);
	snprintf(asked, sizeof(asked), "%s/asked", dir);
	return 0;
}

static int remove_dir(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf %s", dir);

	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(asked_once_for_each_qemu),
		cmocka_unit_test(without_a_folder_it_is_asked_again),
		cmocka_unit_test(no_answer_is_one_thread),
		cmocka_unit_test(no_answer_is_not_kept),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
