/* SPDX-License-Identifier: Apache-2.0 */
/* The part of oci.h that uses files and runs runc. */
#include "oci.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "docker.h"
#include "src/guest/base/base.h"
#include "jedit.h"
#include "src/guest/trust/trust.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/hash/sha1.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"

#define MAX_PATH 4096

const struct oci_host oci_host = {
	.ca = TRUST_CA,
	.variables = TRUST_VARIABLES,
	.bundle = TRUST_BUNDLE,
	.dir = OCI_DIR,
};

static const struct trust_paths in_container = {
	.ca = OCI_PLACE "/ca.pem",
	.bundle = OCI_PLACE "/ca-bundle.pem",
	.jks = OCI_PLACE "/cacerts",
};

/* wget of Debian reads only this variable, which names its settings. */
#define WGETRC "WGETRC=" OCI_PLACE "/wgetrc"
#define WGETRC_TEXT "ca_certificate = " OCI_PLACE "/ca-bundle.pem\n"

static const char *const files[] = {"ca.pem", "ca-bundle.pem", "cacerts", "wgetrc"};

/* Paths of the systems' bundles. */
static const char *const places[OCI_MAX_BINDS] = {"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

/* Programs that rewrite the bundle, or package managers that install one. */
static const char *const writers[] = {"/usr/sbin/update-ca-certificates",
	"/usr/bin/update-ca-trust", "/usr/bin/dpkg", "/usr/bin/rpm", "/sbin/apk", "/usr/bin/apk",
	"/usr/bin/pacman"};

/* ---- the container's files ---- */

/* Symlinks in the container are resolved inside the container. */
static int open_in(int root, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static bool exists_in(int root, const char *path)
{
	AUTO_CLOSE int fd = open_in(root, path);

	return fd >= 0;
}

static char *read_in(int root, const char *path)
{
	AUTO_CLOSE int fd = open_in(root, path);
	char self[32], *text = NULL;

	if (fd < 0)
		return NULL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return file_read(self, &text) < 0 ? NULL : text;
}

static bool can_write_bundle(int root)
{
	for (size_t i = 0; i < ARRAY_LEN(writers); i++)
		if (exists_in(root, writers[i]))
			return true;
	return false;
}

static int open_root(const char *bundle, const char *config)
{
	struct slice text = slice_from_str(config);
	char path[MAX_PATH];
	struct jedit v;
	AUTO_FREE char *below = NULL;
	int fd;

	if (jedit_check(text, &v) < 0 || !jedit_member(text, v, "root", &v) ||
		!jedit_member(text, v, "path", &v) || jedit_string(text, v, path, sizeof(path)) < 0)
		return -EBADMSG;
	below = path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", bundle, path);
	fd = open(below, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ---- the directory that containers with the same bundle share ---- */

static char *folder_name(const char *dir, const char *bundle)
{
	uint8_t sum[SHA1_BYTES];
	char hex[2 * SHA1_BYTES + 1];
	struct sha1 s;

	sha1_init(&s);
	sha1_add(&s, slice_from_str(bundle));
	sha1_end(&s, sum);
	hex_print(sum, SHA1_BYTES, hex);
	return xasprintf("%s/%s", dir, hex);
}

static size_t count_entries(const char *dir)
{
	AUTO_DIR DIR *d = opendir(dir);
	size_t n = 0;

	while (dir_next(d))
		n++;
	return n;
}

static int fill_folder(const char *folder, const char *ca, const char *bundle, struct err *err)
{
	AUTO_FREE uint8_t *store = NULL;
	size_t n = 0;
	struct slice texts[ARRAY_LEN(files)] = {
		slice_from_str(ca), slice_from_str(bundle), {0}, slice_from_str(WGETRC_TEXT)};
	int r = chmod(folder, 0755) < 0 ? -errno : jks_from_pem(bundle, &store, &n);

	if (r < 0)
		return err_errno(err, r, "cannot create %s", folder);
	texts[2] = slice_of(store, n);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", folder, files[i]);

		r = file_replace_bytes(path, texts[i], err);
	}
	return r;
}

static void remove_folder(const char *folder)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", folder, files[i]);

		(void)unlink(path);
	}
	(void)rmdir(folder);
}

/* Another runc may create the same directory at this moment: the first one wins. */
static int make_folder(
	const char *dir, const char *ca, const char *bundle, char **ret, struct err *err)
{
	AUTO_FREE char *name = folder_name(dir, bundle), *tmp = xasprintf("%s/new-XXXXXX", dir);
	int r;

	if (access(name, F_OK) == 0) {
		*ret = TAKE(name);
		return 0;
	}
	r = file_make_parents(name, err);
	if (r < 0)
		return r;
	if (count_entries(dir) >= OCI_MAX_FOLDERS)
		return err_set(err, -ENOSPC, "more than %d different bundles", OCI_MAX_FOLDERS);
	if (!mkdtemp(tmp))
		return err_errno(err, -errno, "cannot create a directory in %s", dir);
	r = fill_folder(tmp, ca, bundle, err);
	if (r == 0 && rename(tmp, name) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		r = err_errno(err, -errno, "cannot create %s", name);
	remove_folder(tmp);
	if (r == 0)
		*ret = TAKE(name);
	return r;
}

/* ---- additions ---- */

struct plan {
	struct oci_add add;
	char *folder, *bundle; /* owned */
};

static void plan_done(struct plan *p)
{
	env_done(&p->add.env);
	free(p->folder);
	free(p->bundle);
}

/* Adds placeholder credentials. */
static void add_variables(const struct oci_host *host, struct env *env)
{
	AUTO_FREE char *text = NULL;
	char *save = NULL;

	if (file_read(host->variables, &text) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		env_put(env, line);
}

static void add_ca_variables(struct env *env)
{
	trust_env(env, &in_container);
	env_put(env, WGETRC);
}

/* The container's own bundle, or the guest's. */
static char *base_of(const struct oci_host *host, int root)
{
	char *text = NULL;

	for (size_t i = 0; !text && i < ARRAY_LEN(places); i++)
		text = read_in(root, places[i]);
	if (!text && file_read(host->bundle, &text) < 0)
		text = xstrdup("");
	return text;
}

static int plan_ca(const struct oci_host *host, const char *config, const struct oci_args *args,
	struct plan *p, struct err *err)
{
	AUTO_FREE char *ca = NULL, *base = NULL, *bundle = NULL;
	AUTO_CLOSE int root = -1;
	int r;

	if (file_read(host->ca, &ca) < 0)
		return 0; /* not present */
	root = open_root(args->bundle, config);
	if (root < 0)
		return err_errno(
			err, root, "cannot open the root of the container in %s", args->bundle);
	base = base_of(host, root);
	bundle = trust_bundle(base, ca);
	r = make_folder(host->dir, ca, bundle, &p->folder, err);
	if (r < 0)
		return r;
	p->bundle = xasprintf("%s/ca-bundle.pem", p->folder);
	p->add.bundle = p->bundle;
	if (oci_has_dev(config)) {
		p->add.folder = p->folder;
		add_ca_variables(&p->add.env);
	}
	if (args->kind == OCI_RUN || can_write_bundle(root))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (exists_in(root, places[i]))
			p->add.binds[p->add.n_binds++] = places[i];
	return 0;
}

static int edit_container(const struct oci_host *host, const struct oci_args *args, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/config.json", args->bundle), *old = NULL, *new = NULL;
	CLEANUP(plan_done) struct plan p = {0};
	int r = file_read(path, &old);

	if (r < 0)
		return err_errno(err, r, "cannot read %s", path);
	r = plan_ca(host, old, args, &p, err);
	if (r < 0)
		return r;
	add_variables(host, &p.add.env);
	if (oci_edit(old, &p.add, &new) < 0)
		return err_set(err, -EBADMSG, "%s is not a container's config", path);
	return strcmp(old, new) ? file_replace(path, new, err) : 0;
}

/* Whether the container was created with the directory: checks its config, in the directory where
 * runc is called. */
static bool has_folder(const char *bundle)
{
	AUTO_FREE char *path = xasprintf("%s/config.json", bundle), *text = NULL;

	return file_read(path, &text) == 0 &&
	       strstr(text, "{\"destination\":\"" OCI_PLACE "\"") != NULL;
}

static int edit_exec(const struct oci_host *host, const struct oci_args *args, struct err *err)
{
	AUTO_FREE char *old = NULL, *new = NULL;
	struct env env = {0};
	int r = file_read(args->process, &old);

	if (r < 0)
		return err_errno(err, r, "cannot read %s", args->process);
	if (has_folder(args->bundle))
		add_ca_variables(&env);
	add_variables(host, &env);
	r = oci_edit_process(old, &env, &new);
	env_done(&env);
	if (r < 0)
		return err_errno(err, r, "cannot change %s", args->process);
	return strcmp(old, new) ? file_replace(args->process, new, err) : 0;
}

int oci_prepare(const struct oci_host *host, const struct oci_args *args, struct err *err)
{
	if (args->kind == OCI_CREATE || args->kind == OCI_RUN)
		return edit_container(host, args, err);
	return args->kind == OCI_EXEC && args->process ? edit_exec(host, args, err) : 0;
}

/* ---- the program ---- */

int oci_install(struct err *err)
{
	static const char path[] = OCI_BIN "/" OCI_RUNC;
	int r = file_make_parents(path, err);

	if (r < 0)
		return r;
	(void)unlink(path);
	/* The file itself is not on any disk that the guest can see. */
	return symlink("/proc/1/exe", path) < 0 ? err_errno(err, -errno, "cannot create %s", path)
						: 0;
}

static void complain_run(const struct err *err, int r)
{
	AUTO_CLOSE int fd = open(DOCKER_LOG, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FREE char *line =
		xasprintf("sbx: container starts without the sandbox CA: %s\n", err_text(err, r));

	if (fd >= 0)
		(void)!fd_write_all(fd, line, strlen(line));
}

/* The next one in PATH. */
static void become_runc(char **argv)
{
	const char *env = getenv("PATH");
	AUTO_FREE char *path = xstrdup(env ? env : "/usr/sbin:/usr/bin:/sbin:/bin");
	char *save = NULL;

	for (char *dir = strtok_r(path, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
		AUTO_FREE char *file = xasprintf("%s/" OCI_RUNC, dir);

		if (strcmp(dir, OCI_BIN) != 0)
			(void)execv(file, argv);
	}
}

int oci_main(int argc, char **argv)
{
	struct oci_args args;
	struct err err = {0};
	int r;

	oci_parse(argc, argv, &args);
	r = oci_prepare(&oci_host, &args, &err);
	if (r < 0)
		complain_run(&err, r);
	become_runc(argv);
	fputs("sbx: runc not found in the guest\n", stderr);
	return 127;
}
