/* SPDX-License-Identifier: Apache-2.0 */
#include "session_kill.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/str.h"

/* Jobs of an interactive shell have their own groups, but its session. */
void session_kill(pid_t session, int signo)
{
	AUTO_DIR DIR *d = opendir("/proc");
	struct dirent *e;
	uint64_t pid;

	while ((e = dir_next(d)))
		if (str_to_u64(e->d_name, 2, INT32_MAX, &pid) == 0 && getsid((pid_t)pid) == session)
			(void)kill((pid_t)pid, signo);
}
