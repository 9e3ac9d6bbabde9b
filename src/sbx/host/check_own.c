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
	char missing[256] = "";

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = daemon_helper_path(names[i]);

		if (access(path, X_OK) < 0)
			(void)snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				" %s", path);
	}
	if (!missing[0]) {
		check_set(c, CHECK_PASS, "all there");
		return;
	}
	check_set(c, CHECK_FAIL, "some are missing");
	check_detail(c, "%s", missing + 1);
	check_hint(c, "install sbx again, or set SBX_LIBEXEC to their folder");
}

static void check_settings(struct check *c)
{
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};

	if (settings_load(&s, &err) == 0) {
		check_set(c, CHECK_PASS, "readable");
		return;
	}
	check_set(c, CHECK_FAIL, "the file has a mistake");
	check_detail(c, "%s", err.text);
	check_hint(c, "correct that line by hand");
}

/* Ours alone, and writable. */
static bool folder_is_right(const char *dir, struct check *c)
{
	struct stat st;

	if (stat(dir, &st) < 0 && errno == ENOENT)
		return true; /* made on first use */
	if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || access(dir, W_OK | X_OK) < 0)
		check_set(c, CHECK_FAIL, "'%.100s' cannot be used: %s", dir, strerror(errno));
	else if (st.st_uid != getuid())
		check_set(c, CHECK_FAIL, "'%.100s' belongs to somebody else", dir);
	else if (st.st_mode & 022)
		check_set(c, CHECK_FAIL, "others may write in '%.100s'", dir);
	else
		return true;
	check_hint(c, "chmod go-w '%.200s', and check its owner", dir);
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
	check_set(c, CHECK_PASS, "yours and writable");
}

/* Of the nearest folder that is there already. */
static int free_bytes(char *dir, uint64_t *ret)
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

		if (free_bytes(dir, &bytes) < 0)
			continue;
		str_from_size(bytes, size, sizeof(size));
		check_set(c, bytes < WANTED_FREE ? CHECK_WARN : CHECK_PASS, "%s free", size);
		check_detail(c, "%s", dir);
		if (c->status == CHECK_WARN) {
			check_hint(c, "sbx prune, or free at least 5 GiB");
			return;
		}
	}
}

static void check_template(struct check *c)
{
	AUTO_JSON json_t *m = template_manifest(SANDBOX_TEMPLATE);

	if (!m) {
		check_set(c, CHECK_WARN, "'%s' is not there yet", SANDBOX_TEMPLATE);
		check_hint(c, "sbx template build");
		return;
	}
	check_set(c, CHECK_PASS, "'%s' of %.40s", SANDBOX_TEMPLATE, api_str(m, "created"));
	check_detail(c, "content %.80s", api_str(m, "content"));
}

/* The verdict of this boot of the host: a line with its key, which begins with the boot's id, and
 * "ok" or why not. */
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
		check_set(c, CHECK_SKIP, "no self-test boot since this machine was started");
		check_hint(c, "the first start of a sandbox with KVM makes one");
	} else if (strcmp(verdict, "ok") == 0) {
		check_set(c, CHECK_PASS, "a kernel boots under KVM");
	} else {
		check_set(c, CHECK_WARN, "no kernel boots under KVM on this host");
		check_detail(c, "%s", verdict);
		check_hint(c, "sbx settings set vm.accel tcg runs sandboxes in software emulation");
	}
}

static void check_daemon(struct check *c)
{
	AUTO_JSON json_t *v = NULL;
	AUTO_FREE char *log = daemon_log_path();
	struct problem p = {0};
	int r = api_peek("GET", "/v1/version", CHECK_WAIT_MS, &v, &p);

	if (r == 0) {
		check_set(c, CHECK_PASS, "answers (process %lld)", api_int(v, "pid"));
	} else if (r == -ECONNREFUSED) {
		check_set(c, CHECK_SKIP, "not running; it starts when it is needed");
		check_hint(c, "sbx daemon start");
	} else {
		check_set(c, CHECK_FAIL, "%.150s", p.err.text);
		check_hint(c, "read %s", log);
	}
}

static void check_version(struct check *c)
{
	AUTO_JSON json_t *v = NULL;
	struct problem p = {0};
	int r = api_peek("GET", "/v1/version", CHECK_WAIT_MS, &v, &p);

	if (r < 0) {
		check_set(c, CHECK_SKIP, "sbxd does not answer");
	} else if (strcmp(api_str(v, "version"), SBX_VERSION) == 0) {
		check_set(c, CHECK_PASS, "sbx and sbxd are both " SBX_VERSION);
	} else {
		check_set(c, CHECK_WARN, "sbx is " SBX_VERSION ", sbxd is %.40s",
			api_str(v, "version"));
		check_hint(c, "any command replaces sbxd, sandboxes go on: sbx ls");
	}
}

/* Looks at a vault that is there; makes none. */
static void check_vault(struct check *c)
{
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = api_peek("GET", "/v1/secrets/status", CHECK_WAIT_MS, &s, &p);
	const char *state = api_str(s, "state"), *key = api_str(s, "key");

	if (r == -ECONNREFUSED) {
		check_set(c, CHECK_SKIP, "sbxd does not run");
	} else if (r < 0) {
		check_set(c, CHECK_FAIL, "%.150s", p.err.text);
		check_hint(c, "sbx secret status");
	} else if (strcmp(state, "empty") == 0) {
		check_set(c, CHECK_SKIP, "no credential was set yet");
		check_hint(c, "sbx secret set SERVICE");
	} else if (strcmp(state, "ready") != 0) {
		check_set(c, CHECK_WARN, "%.40s: %.110s", state, api_str(s, "text"));
		check_hint(c, "sbx secret %s", strcmp(state, "locked") == 0 ? "unlock" : "status");
	} else {
		bool weak = strcmp(key, "file") == 0;

		check_set(c, weak ? CHECK_WARN : CHECK_PASS, "%lld credentials, their key: %.80s",
			api_int(s, "secrets"), api_str(s, "key_text"));
		check_detail(c, "memory: %.200s", api_str(s, "memory_text"));
		if (weak)
			check_hint(c, "whoever reads your files can read it; a desktop keyring or "
				      "systemd-creds would hold it better (setting vault.key)");
	}
}

const struct check_row check_own_rows[] = {
	{"Installation", "CLI binary", check_cli},
	{"Installation", "Helper programs", check_helpers},
	{"Installation", "Settings", check_settings},
	{"Storage", "Folders", check_folders},
	{"Storage", "Free space", check_space},
	{"Storage", "Template", check_template},
	{"Engine", "KVM self-test", check_selftest},
	{"Connection", "Daemon", check_daemon},
	{"Connection", "Version match", check_version},
	{"Credentials", "Vault", check_vault},
	{0},
};
