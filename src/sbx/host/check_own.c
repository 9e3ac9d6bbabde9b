/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/client/api/api.h"
#include "lib/client/api/daemon.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/disk/disk.h"

#define SELFTEST_CACHE "kvm-selftest" /* written by lib/vm/vmm/selftest.c */
#define WANTED_FREE (5ull << 30)

static void check_cli(struct check *c)
{
	AUTO_FREE char *self = daemon_own_path();

	check_set(c, CHECK_PASS, "version " SBX_VERSION);
	if (self)
		check_detail(c, "%s", self);
}

static void check_helpers(struct check *c)
{
	static const char *const names[] = {"sbxd", "sbx-keeper", "sbx-edge", "sbx-egress",
		"sbx-guest", "sbx-prove", "sbx-vault", "sbx-vault-run", "sbx-vault-keyring",
		"template-build"};
	AUTO_FREE char *dir = paths_get(PATHS_LIBEXEC, NULL);
	char missing[256] = "";

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = daemon_helper_path(names[i]);

		if (access(path, X_OK) < 0)
			(void)snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				" %s", path);
	}
	if (!missing[0]) {
		check_set(c, CHECK_PASS, "complete");
		return;
	}
	check_set(c, CHECK_FAIL,
		"incomplete installation: reinstall sbx, or set SBX_LIBEXEC to the directory of the programs");
	check_detail(c, "%s", missing + 1);
	check_hint(c, "ls -l '%s'", dir);
}

static void check_settings(struct check *c)
{
	AUTO_FREE char *path = paths_get(PATHS_CONFIG, "settings.conf");
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};

	if (settings_load(&s, &err) == 0) {
		check_set(c, CHECK_PASS, "readable");
		return;
	}
	check_set(c, CHECK_FAIL, "invalid settings file");
	check_detail(c, "%s", err.text);
	check_hint(c, "${EDITOR:-vi} '%s'", path);
}

/* Owned by the user, and writable. */
static bool folder_is_right(const char *dir, struct check *c)
{
	const char *remedy = "ls -ld";
	struct stat st;
	bool usable;

	if (stat(dir, &st) < 0 && errno == ENOENT)
		return true; /* created on first use */
	usable = stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && access(dir, W_OK | X_OK) == 0;
	if (!usable)
		check_set(c, CHECK_FAIL, "cannot use '%.100s': %s", dir, strerror(errno));
	else if (st.st_uid != getuid())
		check_set(c, CHECK_FAIL, "'%.100s' is owned by another user", dir);
	else if (st.st_mode & 022)
		check_set(c, CHECK_FAIL, "'%.100s' is writable by other users", dir);
	else
		return true;
	if (usable)
		remedy = st.st_uid != getuid() ? "sudo chown \"$USER\"" : "chmod go-w";
	check_hint(c, "%s '%s'", remedy, dir);
	return false;
}

static void check_folders(struct check *c)
{
	static const enum paths_root roots[] = {
		PATHS_RUNTIME, PATHS_STATE, PATHS_DATA, PATHS_CONFIG};

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		AUTO_FREE char *dir = paths_get(roots[i], NULL);

		if (!folder_is_right(dir, c))
			return;
		(void)snprintf(c->detail + strlen(c->detail), sizeof(c->detail) - strlen(c->detail),
			"%s%s", i ? " " : "", dir);
	}
	check_set(c, CHECK_PASS, "owned by you and writable");
}

int check_free_bytes(char *dir, uint64_t *ret)
{
	struct statvfs vfs;
	char *slash;

	while (statvfs(dir, &vfs) < 0) {
		slash = strrchr(dir, '/');
		if (errno != ENOENT || !slash || slash == dir)
			return -errno;
		*slash = '\0';
	}
	*ret = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	return 0;
}

static void check_space(struct check *c)
{
	static const enum paths_root roots[] = {PATHS_STATE, PATHS_DATA};

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		AUTO_FREE char *dir = paths_get(roots[i], NULL);
		uint64_t bytes = 0;
		char size[32];

		if (check_free_bytes(dir, &bytes) < 0)
			continue;
		str_from_size(bytes, size, sizeof(size));
		check_set(c, bytes < WANTED_FREE ? CHECK_WARN : CHECK_PASS, "%s free", size);
		check_detail(
			c, "%s%s", dir, c->status == CHECK_WARN ? ": free at least 5 GiB" : "");
		if (c->status == CHECK_WARN) {
			check_hint(c, "sbx prune");
			return;
		}
	}
}

static void check_template(struct check *c)
{
	AUTO_JSON json_t *m = template_manifest(SANDBOX_TEMPLATE);

	if (!m) {
		check_set(c, CHECK_WARN, "'%s' is not built", SANDBOX_TEMPLATE);
		check_hint(c, "sbx template build");
		return;
	}
	check_set(c, CHECK_PASS, "'%s' of %.40s", SANDBOX_TEMPLATE, api_str(m, "created"));
	check_detail(c, "content %.80s", api_str(m, "content"));
}

/* The result of this boot of the host: a line with its key, which begins with the boot's id, and
 * "ok" or the reason. */
static bool read_verdict(char *buf, size_t size)
{
	AUTO_FREE char *path = paths_get(PATHS_RUNTIME, SELFTEST_CACHE);
	FILE *f = fopen(path, "re"), *id = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[64] = "", key[512] = "";
	bool known = f && id && fgets(boot, sizeof(boot), id) && fgets(key, sizeof(key), f) &&
		     fgets(buf, (int)size, f) && strncmp(key, boot, 36) == 0;

	if (f)
		(void)fclose(f);
	if (id)
		(void)fclose(id);
	return known;
}

static void check_selftest(struct check *c)
{
	char verdict[400];

	if (!read_verdict(verdict, sizeof(verdict))) {
		check_set(c, CHECK_SKIP,
			"not run since the host was booted: runs at the first start with KVM");
	} else if (strcmp(verdict, "ok") == 0) {
		check_set(c, CHECK_PASS, "a kernel boots under KVM");
	} else {
		check_set(c, CHECK_WARN, "kernels do not boot under KVM on this host");
		check_detail(c, "%s", verdict);
		check_hint(c, "sbx settings set vm.accel tcg");
	}
}

static void check_daemon(struct check *c)
{
	AUTO_JSON json_t *v = NULL;
	AUTO_FREE char *log = daemon_log_path();
	struct problem p = {0};
	int r = api_peek("GET", "/v1/version", CHECK_WAIT_MS, &v, &p);

	if (r == 0) {
		check_set(c, CHECK_PASS, "running (process %lld)", api_int(v, "pid"));
	} else if (r == -ECONNREFUSED) {
		check_set(c, CHECK_SKIP, "not running (started on demand)");
		check_hint(c, "sbx daemon start");
	} else {
		check_set(c, CHECK_FAIL, "%.150s", p.err.text);
		check_hint(c, "cat '%s'", log);
	}
}

static void check_version(struct check *c)
{
	AUTO_JSON json_t *v = NULL;
	struct problem p = {0};
	int r = api_peek("GET", "/v1/version", CHECK_WAIT_MS, &v, &p);

	if (r < 0) {
		check_set(c, CHECK_SKIP, "sbxd is not responding");
	} else if (strcmp(api_str(v, "version"), SBX_VERSION) == 0) {
		check_set(c, CHECK_PASS, "sbx and sbxd are both " SBX_VERSION);
	} else {
		check_set(c, CHECK_WARN, "sbx is " SBX_VERSION ", sbxd is %.40s",
			api_str(v, "version"));
		check_detail(
			c, "the next command restarts sbxd; running sandboxes are not affected");
		check_hint(c, "sbx ls");
	}
}

/* Checks an existing vault; creates none. */
static void check_vault(struct check *c)
{
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = api_peek("GET", "/v1/secrets/status", CHECK_WAIT_MS, &s, &p);
	const char *state = api_str(s, "state"), *key = api_str(s, "key");

	if (r == -ECONNREFUSED) {
		check_set(c, CHECK_SKIP, "sbxd is not running");
	} else if (r < 0) {
		check_set(c, CHECK_FAIL, "%.150s", p.err.text);
		check_hint(c, "sbx secret status");
	} else if (strcmp(state, "empty") == 0) {
		check_set(c, CHECK_SKIP, "no credentials are set");
		check_hint(c, "sbx secret services");
	} else if (strcmp(state, "ready") != 0) {
		check_set(c, CHECK_WARN, "%.40s: %.110s", state, api_str(s, "text"));
		check_hint(c, "sbx secret %s", strcmp(state, "locked") == 0 ? "unlock" : "status");
	} else {
		bool weak = strcmp(key, "file") == 0;

		check_set(c, weak ? CHECK_WARN : CHECK_PASS, "%lld credentials, key: %.80s",
			api_int(s, "secrets"), api_str(s, "key_text"));
		check_detail(c, "memory: %.200s%s", api_str(s, "memory_text"),
			weak ? "; any process that can read your files can read the key" : "");
		check_hint(c, "man sbx-secret");
	}
}

const struct check_row check_own_rows[] = {
	{"Installation", "CLI binary", check_cli},
	{"Installation", "Helper programs", check_helpers},
	{"Installation", "Settings", check_settings},
	{"Storage", "Folders", check_folders},
	{"Storage", "Free space", check_space},
	{"Storage", "Guest memory", check_memory},
	{"Storage", "Snapshots", check_snapshots},
	{"Storage", "Template", check_template},
	{"Engine", "KVM self-test", check_selftest},
	{"Connection", "Daemon", check_daemon},
	{"Connection", "Version match", check_version},
	{"Credentials", "Vault", check_vault},
	{0},
};
