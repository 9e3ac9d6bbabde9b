/* SPDX-License-Identifier: Apache-2.0 */
/* The managed policy of the host, and whether a desktop can show requests for approval. */
#include "check.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/daemon.h"
#include "lib/rules/managed/managed.h"
#include "lib/rules/settings/settings.h"

static void check_managed(struct check *c)
{
	AUTO_MANAGED struct managed m = {0};
	const struct stat *st = &m.seen[1];

	(void)managed_refresh(&m);
	if (!m.exists) {
		check_set(c, CHECK_SKIP, "none: only the policy of each user applies");
		check_detail(c, MANAGED_FILE " does not exist");
	} else if (m.fault.text[0]) {
		check_set(c, CHECK_FAIL, "cannot be used: everything is denied");
		check_detail(c, "%s", m.fault.text);
		check_hint(c, "ls -ld " MANAGED_DIR " " MANAGED_FILE);
	} else {
		check_set(c, CHECK_PASS, "%zu rules limit all policies", m.rules.n);
		check_detail(
			c, MANAGED_FILE " of user %u, mode %04o", st->st_uid, st->st_mode & 07777);
	}
}

/* The socket of the session bus, as sbx-notify finds it. */
static bool find_bus(char *buf, size_t size)
{
	const char *bus = getenv("DBUS_SESSION_BUS_ADDRESS"), *run = getenv("XDG_RUNTIME_DIR");
	static const char unix_path[] = "unix:path=";
	int n = 0;

	if (bus && str_starts(bus, unix_path))
		n = snprintf(buf, size, "%.*s", (int)strcspn(bus + strlen(unix_path), ",;"),
			bus + strlen(unix_path));
	else if (!bus && run)
		n = snprintf(buf, size, "%s/bus", run);
	return n > 0 && (size_t)n < size;
}

static bool can_connect(const char *path)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	return fd >= 0 && str_copy(sa.sun_path, sizeof(sa.sun_path), path) == 0 &&
	       connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
}

/* A process of this user that sbxd has started; 0: none. */
static int find_notifier(void)
{
	AUTO_DIR DIR *dir = opendir("/proc");
	struct dirent *e;

	while ((e = dir_next(dir))) {
		AUTO_FREE char *path = xasprintf("/proc/%s/status", e->d_name), *text = NULL;
		AUTO_FREE char *uid = xasprintf("\nUid:\t%u\t", getuid());
		size_t n;

		if (isdigit((unsigned char)e->d_name[0]) &&
			file_load(path, 65536, &text, &n, NULL) == 0 &&
			str_starts(text, "Name:\tsbx-notify\n") && strstr(text, uid))
			return atoi(e->d_name);
	}
	return 0;
}

static bool is_wanted(void)
{
	AUTO_SETTINGS struct settings set = {0};

	return settings_load(&set, NULL) < 0 ||
	       strcmp(settings_get(&set, SETTINGS_ASK_NOTIFY), "true") == 0;
}

static void check_desktop(struct check *c)
{
	AUTO_FREE char *program = daemon_helper_path("sbx-notify");
	char bus[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int pid;

	check_hint(c, "sbx approve --watch");
	if (!is_wanted()) {
		check_set(c, CHECK_SKIP, "off: the setting ask.notify is false");
		check_hint(c, "sbx settings set ask.notify true");
	} else if (access(program, X_OK) < 0) {
		check_set(c, CHECK_WARN, "sbx-notify is not installed");
		check_detail(c, "%s", program);
	} else if (!find_bus(bus, sizeof(bus)) || access(bus, F_OK) < 0) {
		check_set(c, CHECK_SKIP, "no session bus: no desktop to show requests on");
	} else if (!can_connect(bus)) {
		check_set(c, CHECK_WARN, "cannot connect to the session bus");
		check_detail(c, "%s", bus);
	} else {
		pid = find_notifier();
		check_set(c, CHECK_PASS, "the session bus is reachable");
		check_detail(c,
			pid ? "sbx-notify runs (process %d)"
			    : "sbx-notify starts when a request waits",
			pid);
	}
}

const struct check_row check_policy_rows[] = {
	{"Policy", "Managed policy", check_managed},
	{"Policy", "Notifications", check_desktop},
	{0},
};
