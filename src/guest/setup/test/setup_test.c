/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes of the host become random numbers of the guest. Only root of a VM can do that, so
 * the kernel is simulated here. */
#include "src/guest/setup/setup.h"

#include <errno.h>
#include <linux/random.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static unsigned long asked[4];
static size_t n_asked;
static uint8_t given[GUEST_ENTROPY];

int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	assert_true(n_asked < ARRAY_LEN(asked));
	asked[n_asked++] = request;
	if (request == RNDADDENTROPY)
		memcpy(given, ((struct rand_pool_info *)arg)->buf, sizeof(given));
	return 0;
}

int mounts_apply(struct mounts *m, const struct guest_mounts *mounts, struct err *err)
{
	return err_set(err, -ENOSYS, "no machine");
}

/* Regression ZM3: an initialized generator uses them at its next reseed, up to a minute later. */
static void the_bytes_of_the_host_count_at_once(void **state)
{
	uint8_t bytes[GUEST_ENTROPY];

	memset(bytes, 7, sizeof(bytes));
	setup_entropy(bytes);
	assert_int_equal(n_asked, 2);
	assert_int_equal(asked[0], RNDADDENTROPY);
	assert_memory_equal(given, bytes, sizeof(bytes));
	assert_int_equal(asked[1], RNDRESEEDCRNG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_of_the_host_count_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
