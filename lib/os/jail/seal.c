/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from jail.c, so that a program which only seals itself links nothing that opens, mounts
 * or executes. */
#include <errno.h>
#include <sys/prctl.h>
#include "filter.h"
#include "unsealed.h"

int jail_seal(enum jail_profile profile, struct err *err)
{
	const struct jail_row *row = jail_row(profile);
	CLEANUP(filter_done) struct filter f = {0};
	int r;

	if (!JAIL_SEALS)
		return 0;
	if (!row->seal)
		return err_set(err, -EINVAL, "%s has no system call list for sealing", row->name);
	r = filter_make_seal(row, &f, err);
	if (r < 0)
		return r;
	/* exec made it dumpable again */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, -errno, "cannot seal the process: prctl");
	r = filter_install(&f, false);
	return r < 0 ? err_errno(err, r, "cannot seal the process: seccomp") : 0;
}

#ifdef SBX_UNSEALED
/* The runtimes of the sanitizers read these. ASAN_OPTIONS has no effect: programs start with an
 * empty environment. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "quarantine_size_mb=2:allocator_release_to_os_interval_ms=0:exitcode=99";
}

const char *__ubsan_default_options(void)
{
	return "halt_on_error=1:print_stacktrace=1";
}
#endif
