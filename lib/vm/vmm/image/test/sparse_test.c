/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a snapshot is hashed and copied by several processes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/vm/vmm/test/memory_fixture.h"

#define MEMORY (256 << 20)
#define FAR (MEMORY - 4096)
#define N_PIECES (MEMORY / IMAGE_PIECE)

/* Of every third piece the first page, and one of the last. */
static int guest_memory(void)
{
	int fd = vmm_memory_new(MEMORY, NULL, NULL);

	assert_true(fd >= 0);
	for (size_t i = 0; i < N_PIECES; i += 3)
		assert_int_equal(pwrite(fd, &i, 1, (off_t)(i * IMAGE_PIECE) + 1), 1);
	assert_int_equal(pwrite(fd, "first", 5, 0), 5);
	assert_int_equal(pwrite(fd, "far", 3, FAR), 3);
	return fd;
}

/* With one processor there is one process, otherwise several: no difference in what is kept. */
static void several_processes_do_the_same_as_one(void **state)
{
	uint8_t tables[2][N_PIECES * IMAGE_HASH_BYTES] = {{0}, {0}};
	AUTO_CLOSE int memory = guest_memory(), copy = memfd_create("copy", MFD_CLOEXEC);
	cpu_set_t all, one;
	int bad = -1;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(image_copy_pieces(memory, -1, MEMORY, tables[0], false, NULL), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(ftruncate(copy, MEMORY), 0);
	for (size_t i = 0; i < 20; i++) {
		memset(tables[1], 0, sizeof(tables[1]));
		assert_int_equal(
			image_copy_pieces(memory, copy, MEMORY, tables[1], false, NULL), 0);
		assert_memory_equal(tables[0], tables[1], sizeof(tables[0]));
		assert_int_equal(image_copy_pieces(copy, -1, MEMORY, tables[0], true, &bad), 0);
	}
	tables[0][FAR / IMAGE_PIECE * IMAGE_HASH_BYTES] ^= 1;
	assert_int_equal(image_copy_pieces(copy, -1, MEMORY, tables[0], true, &bad), -EUCLEAN);
	assert_int_equal(bad, FAR / IMAGE_PIECE);
}

static bool is_child_killed;

static void kill_child(void)
{
	if (is_child_killed)
		(void)raise(SIGKILL);
}

/* The kernel may kill it for lack of memory: nobody knows which pieces it has done. */
static void a_killed_process_is_an_error(void **state)
{
	uint8_t table[N_PIECES * IMAGE_HASH_BYTES] = {0};
	AUTO_CLOSE int memory = guest_memory();
	cpu_set_t all;
	int bad = -1;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2)
		skip(); /* one process does it */
	assert_int_equal(image_copy_pieces(memory, -1, MEMORY, table, false, NULL), 0);
	assert_int_equal(pthread_atfork(NULL, NULL, kill_child), 0);
	is_child_killed = true;
	assert_int_equal(image_copy_pieces(memory, -1, MEMORY, table, true, &bad), -EIO);
	is_child_killed = false;
	assert_int_equal(image_copy_pieces(memory, -1, MEMORY, table, true, &bad), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_processes_do_the_same_as_one),
		cmocka_unit_test(a_killed_process_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
