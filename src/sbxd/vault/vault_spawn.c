/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

int vault_spawn(int listener, int channel, struct hands_child *ret, struct err *err)
{
	AUTO_FREE char *log = paths_get(PATHS_STATE, "vault.log");
	AUTO_CLOSE int log_fd = child_open_log(log, err);

	return log_fd < 0 ? log_fd : hands_vault(listener, channel, log_fd, ret, err);
}
