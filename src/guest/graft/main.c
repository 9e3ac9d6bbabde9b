/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbx-graft - makes the root of a sandbox from an unpacked image: adds the files that it lacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts.h"
#include "jail.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/wire/tar/tree.h"
#include "place.h"

#define MODULES "/usr/lib/modules"
#define CA_FOLDER "/etc/ssl/certs"
#define CA_BUNDLE CA_FOLDER "/ca-certificates.crt"
#define DOCKERD "/usr/sbin/dockerd"
#define MAX_NAME 128

static const char resolv[] = "nameserver 127.0.0.1\n"; /* sbx-guest recognizes it as a default */
static const char sudoers[] =
	"# the sandbox is the isolation boundary, not its user\n"
	"agent ALL=(ALL:ALL) NOPASSWD: ALL\n"
	"# root uses the same proxy and CA settings\n"
	"Defaults env_keep += \"http_proxy https_proxy ftp_proxy all_proxy no_proxy\"\n"
	"Defaults env_keep += \"HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY\"\n"
	"Defaults env_keep += \"SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE\"\n"
	"Defaults env_keep += \"NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO PIP_CERT AWS_CA_BUNDLE\"\n";

/* Files from outside, opened before the tree becomes the root. */
struct kit {
	int modules, ca, sudo;
	char kernel[MAX_NAME];
	char *environment;
};

static int kit_file(const char *dir, const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open %s: %s", path, strerror(errno));
	return fd;
}

static void kit_open(struct kit *k, const char *dir, const char *kernel)
{
	AUTO_FREE char *environment = xasprintf("%s/environment", dir);
	struct err err;

	k->modules = kit_file(dir, "modules.tar");
	k->ca = kit_file(dir, "ca-certificates.crt");
	k->sudo = kit_file(dir, "sudo");
	if (place_read(environment, &k->environment, &err) < 0)
		die("%s", err.text);
	if (strchr(kernel, '/') || kernel[0] == '.' ||
		str_copy(k->kernel, sizeof(k->kernel), kernel) < 0)
		die("invalid kernel version '%s'", kernel);
}

static void say_graft(const char *key, const char *value)
{
	printf("%s=%s\n", key, value);
}

/* /lib is not always /usr/lib, and modprobe searches it. */
static int put_modules(const struct kit *k, struct err *err)
{
	AUTO_FREE char *at = xasprintf("/lib/modules/%s", k->kernel);
	AUTO_FREE char *real = xasprintf(MODULES "/%s", k->kernel);
	AUTO_CLOSE int dir = -1;
	struct tree_count n;
	int r = place_dir(MODULES, 0755, 0, err);

	if (r < 0)
		return r;
	dir = open(MODULES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(err, -errno, "cannot open " MODULES " of the image");
	r = tree_unpack(k->modules, dir, k->kernel, TREE_OWNERS, &n, err);
	if (r < 0)
		return r;
	place_touch(MODULES);
	r = place_dir("/lib/modules", 0755, 0, err);
	return r < 0 ? r : place_link(at, real, err);
}

static int put_folders(struct err *err)
{
	static const struct {
		const char *path;
		mode_t mode;
	} folders[] = {{"/dev", 0755}, {"/proc", 0755}, {"/sys", 0755}, {"/run", 0755},
		{"/etc", 0755}, {"/root", 0700}, {"/home", 0755}, {"/tmp", 01777},
		{"/var/tmp", 01777}, {"/usr/bin", 0755}, {"/usr/sbin", 0755}};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(folders) && r == 0; i++)
		r = place_dir(folders[i].path, folders[i].mode, 0, err);
	return r;
}

static int put_accounts(struct err *err)
{
	const char *shell = place_is_program("/bin/bash") ? "/bin/bash" : "/bin/sh";
	AUTO_FREE char *passwd = NULL, *group = NULL, *shadow = NULL, *new_passwd = NULL;
	AUTO_FREE char *new_group = NULL, *new_shadow = NULL;
	int r;

	if (!place_is_program("/bin/sh"))
		return err_set(err, -ENOENT,
			"the image has no shell /bin/sh (\"distroless\" and \"scratch\" images "
			"cannot be used)");
	say_graft("shell", shell);
	r = place_read("/etc/passwd", &passwd, err);
	if (r == 0)
		r = place_read("/etc/group", &group, err);
	if (r == 0)
		r = place_read("/etc/shadow", &shadow, err);
	if (r == 0)
		r = accounts_passwd(passwd, shell, &new_passwd, err);
	if (r < 0)
		return r;
	new_group = accounts_group(group);
	new_shadow = accounts_shadow(shadow);
	r = place_text("/etc/passwd", new_passwd, 0644, err);
	if (r == 0)
		r = place_text("/etc/group", new_group, 0644, err);
	if (r == 0 && shadow[0])
		r = place_text("/etc/shadow", new_shadow, 0600, err);
	return r < 0 ? r : place_dir(ACCOUNTS_HOME, 0755, ACCOUNTS_ID, err);
}

static int put_sudo(const struct kit *k, struct err *err)
{
	int r;

	if (!place_is_program("/usr/bin/sudo")) {
		say_graft("sudo", "ours");
		r = place_copy("/usr/bin/sudo", k->sudo, 04755, err);
		/* where /bin is its own directory, an image's PATH may have no other */
		return r < 0 ? r : place_link("/bin/sudo", "/usr/bin/sudo", err);
	}
	say_graft("sudo", "image");
	r = place_dir("/etc/sudoers.d", 0750, 0, err);
	return r < 0 ? r : place_text("/etc/sudoers.d/agent", sudoers, 0440, err);
}

static int put_ca(const struct kit *k, struct err *err)
{
	struct stat st;
	int r;

	if (stat(CA_BUNDLE, &st) == 0) {
		say_graft("certificates", "image");
		return 0;
	}
	say_graft("certificates", "ours");
	r = place_dir(CA_FOLDER, 0755, 0, err);
	return r < 0 ? r : place_copy(CA_BUNDLE, k->ca, 0644, err);
}

/* sbx-guest checks one path only. */
static int put_docker(struct err *err)
{
	static const char *const places[] = {"/usr/bin/dockerd", "/usr/local/bin/dockerd"};

	if (place_is_program(DOCKERD)) {
		say_graft("docker", "yes");
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (place_is_program(places[i])) {
			say_graft("docker", "yes");
			return place_link(DOCKERD, places[i], err);
		}
	say_graft("docker", "no");
	return 0;
}

static int put_settings(const struct kit *k, struct err *err)
{
	int r = place_text("/etc/resolv.conf", resolv, 0644, err);

	if (r == 0)
		r = place_text("/etc/machine-id", "", 0644, err);
	if (r < 0 || !k->environment[0])
		return r;
	r = place_dir("/etc/sbx", 0755, 0, err);
	return r < 0 ? r : place_text("/etc/sbx/environment", k->environment, 0644, err);
}

static int graft_all(const struct kit *k, struct err *err)
{
	int r = put_folders(err);

	if (r == 0)
		r = put_accounts(err);
	if (r == 0)
		r = put_modules(k, err);
	if (r == 0)
		r = put_sudo(k, err);
	if (r == 0)
		r = put_ca(k, err);
	if (r == 0)
		r = put_docker(err);
	if (r == 0)
		r = put_settings(k, err);
	place_touch("/");
	return r;
}

int main(int argc, char **argv)
{
	struct kit kit = {0};
	struct err err;
	uint64_t at;

	log_init("sbx-graft");
	if (argc > 1 && !strcmp(argv[1], "--jail"))
		graft_jail(argv + 2);
	if (argc != 5 || str_to_u64(argv[4], 0, INT32_MAX, &at) < 0)
		die("usage: sbx-graft TREE KIT KERNEL SECONDS | --jail [--ro FROM:TO] "
		    "[--rw FROM:TO] -- PROGRAM...");
	kit_open(&kit, argv[2], argv[3]);
	place_set_time((int64_t)at);
	(void)umask(022);
	/* From here on only the image's tree is visible. */
	if (chroot(argv[1]) < 0 || chdir("/") < 0)
		die("cannot enter %s: %s", argv[1], strerror(errno));
	if (graft_all(&kit, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
