/* SPDX-License-Identifier: Apache-2.0 */
/* --jail-selftest: see lib/os/jail/selftest.h. */
#include "vault.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/os/jail/selftest.h"

/* Ordinary operation: a value in its own memory, a cipher, a pipe. */
static long try_work(int fd)
{
	static const struct seal_head head = {.source = VAULT_KEY_FILE, .generation = 1};
	AUTO_SECRET struct secret key = {0};
	AUTO_SECRET struct secret plain = {0};
	uint8_t *file = NULL;
	size_t n = 0;
	int pipes[2];

	if (secret_init(&key, SEAL_KEY, NULL) < 0 || seal_random(key.p, SEAL_KEY) < 0)
		return -1;
	key.n = SEAL_KEY;
	if (seal_write(&key, &head, slice_of("x", 1), &file, &n, NULL) < 0 ||
		seal_open(&key, slice_of(file, n), &plain, NULL) < 0 || plain.n != 1)
		return -1;
	free(file);
	return pipe2(pipes, O_CLOEXEC) == 0 && write(pipes[1], "x", 1) == 1 && clock_mono_ms() ? 0
											       : -1;
}

int vault_selftest(void)
{
	const struct jail_selftest t = {.profile = JAIL_VAULT,
		.tables = {jail_selftest_sockets, jail_selftest_any},
		.work = try_work};

	return jail_selftest_run(&t);
}
