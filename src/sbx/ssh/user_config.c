/* SPDX-License-Identifier: Apache-2.0 */
#include "user_config.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/slice.h"
#include "lib/base/str.h"
#include "lib/client/cli/follow.h"
#include "ssh_home.h"

#define CHECK_MS 30000

void user_config_done(struct user_config *c)
{
	free(c->path);
	free(c->line);
	free(c->text);
}

/* ---- lines ---- */

/* The line that begins at `at`, with its newline. */
static size_t line_length(const struct user_config *c, size_t at)
{
	const char *end = memchr(c->text + at, '\n', c->n - at);

	return end ? (size_t)(end - c->text) + 1 - at : c->n - at;
}

static bool is_ours(const struct user_config *c, size_t at, size_t n)
{
	const char *s = c->text + at;

	while (n > 0 && strchr(" \t\r\n", s[n - 1]))
		n--;
	while (n > 0 && (*s == ' ' || *s == '\t'))
		s++, n--;
	return n == strlen(c->line) && memcmp(s, c->line, n) == 0;
}

static size_t count_ours(const struct user_config *c)
{
	size_t count = 0, n;

	for (size_t at = 0; at < c->n; at += n) {
		n = line_length(c, at);
		count += is_ours(c, at, n);
	}
	return count;
}

bool user_config_has(const struct user_config *c)
{
	return count_ours(c) > 0;
}

bool user_config_is_set(const struct user_config *c)
{
	return c->n > 0 && is_ours(c, 0, line_length(c, 0)) && count_ours(c) == 1;
}

/* The file with the line at its beginning, or without it. */
static char *make_text(const struct user_config *c, bool set, size_t *ret_n)
{
	char *text = xmalloc(c->n + strlen(c->line) + 2);
	size_t to = 0, n;

	if (set) {
		to = strlen(c->line);
		memcpy(text, c->line, to);
		text[to++] = '\n';
	}
	for (size_t at = 0; at < c->n; at += n) {
		n = line_length(c, at);
		if (is_ours(c, at, n))
			continue;
		memcpy(text + to, c->text + at, n);
		to += n;
	}
	*ret_n = to;
	return text;
}

/* ---- the file ---- */

static const char *home_of_user(void)
{
	const char *home = getenv("HOME");
	const struct passwd *pw = home && home[0] ? NULL : getpwuid(getuid());

	return pw ? pw->pw_dir : home;
}

static int find_path(struct user_config *c, struct err *err)
{
	const char *home = home_of_user();
	AUTO_FREE char *path = NULL;
	struct stat st;

	if (!home)
		return err_set(err, -ENOENT, "HOME is not set");
	path = xasprintf("%s/.ssh/config", home);
	c->linked = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	c->path = realpath(path, NULL);
	if (c->path)
		return 0;
	if (c->linked)
		return err_errno(err, -errno, "cannot follow the symbolic link %s", path);
	if (errno != ENOENT)
		return err_errno(err, -errno, "cannot open %s", path);
	c->path = TAKE(path);
	return 0;
}

static int load_text(struct user_config *c, struct err *err)
{
	struct stat st;
	int r = file_load(c->path, USER_CONFIG_MAX, &c->text, &c->n, err);

	c->mode = 0600;
	if (r == -ENOENT)
		return 0;
	if (r == -EFBIG)
		return err_set(err, r, "%s is larger than 1 MiB", c->path);
	if (r < 0)
		return err_wrap(err, r, "cannot read %s", c->path);
	if (stat(c->path, &st) == 0)
		c->mode = st.st_mode & 0777;
	return 0;
}

int user_config_load(const struct ssh_home *h, struct user_config *ret, struct problem *p)
{
	int r = find_path(ret, &p->err);

	ret->line = xasprintf("Include \"%s\"", h->config);
	return r < 0 ? r : load_text(ret, &p->err);
}

static int make_dir(const char *path, struct err *err)
{
	AUTO_FREE char *dir = xstrdup(path);

	*strrchr(dir, '/') = '\0';
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(err, -errno, "cannot create %s", dir);
	return 0;
}

int user_config_save(struct user_config *c, bool set, struct err *err)
{
	AUTO_FILE_NEW struct file_new f = {.fd = -1};
	size_t n;
	AUTO_FREE char *text = make_text(c, set, &n);
	int r = make_dir(c->path, err);

	if (r < 0)
		return r;
	if (!set && n == 0 && !c->linked) /* an empty file is the same as none */
		return unlink(c->path) < 0 ? err_errno(err, -errno, "cannot remove %s", c->path)
					   : 0;
	r = file_new_open(&f, c->path, err);
	if (r == 0 && fd_write_all(f.fd, text, n) < 0)
		r = err_set(err, -EIO, "cannot write %s", c->path);
	if (r == 0)
		r = file_new_keep(&f, c->mode, err);
	if (r == 0 && chmod(c->path, c->mode) < 0) /* whatever the umask is */
		r = err_errno(err, -errno, "cannot change the mode of %s", c->path);
	if (r < 0)
		return r;
	free(c->text);
	c->text = TAKE(text);
	c->n = n;
	return 0;
}

/* ---- what ssh makes of it ---- */

struct effect {
	const struct ssh_home *home;
	char *key; /* "identityfile PATH" */
	bool has_proxy;
	unsigned n_added;
};

/* Keywords whose values are added to ours: the first one does not prevail. */
static bool is_added(const struct effect *e, const char *line)
{
	static const char *const words[] = {"sendenv ", "setenv ", "localforward ",
		"remoteforward ", "dynamicforward ", "certificatefile ", "identityfile "};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_starts(line, words[i]))
			return strcmp(line, e->key) != 0;
	return str_starts(line, "remotecommand ") && strcmp(line, "remotecommand none") != 0;
}

static void take_line(void *arg, char *line)
{
	struct effect *e = arg;

	if (str_starts(line, "proxycommand ") && strstr(line, e->home->self))
		e->has_proxy = true;
	if (!is_added(e, line))
		return;
	if (e->n_added++ == 0)
		ui_warning("your ssh configuration adds these settings to all hosts, also to "
			   "sandboxes:");
	ui_note("  %s", line);
}

static void check_owner(const struct user_config *c)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *home = home_of_user();

	if (pw && home && strcmp(pw->pw_dir, home) != 0)
		ui_warning(
			"HOME is %s, but ssh reads the configuration in %s/.ssh", home, pw->pw_dir);
	if (c->mode & 022) {
		ui_warning("ssh refuses %s: other users can write to it", c->path);
		ui_hint("chmod go-w %s", c->path);
	}
}

void user_config_check(const struct ssh_home *h, const struct user_config *c)
{
	AUTO_FREE char *key = xasprintf("identityfile %s", h->key);
	struct effect e = {.home = h, .key = key};
	const char *argv[] = {
		"/usr/bin/env", "ssh", "-G", "-F", c->path, ("sandbox" SSH_SUFFIX), NULL};
	struct follow f = {.argv = argv,
		.lines = 1,
		.in_fd = -1,
		.out_fd = -1,
		.max_ms = CHECK_MS,
		.fn = take_line,
		.arg = &e};
	struct err ignored = {0};
	int status;

	check_owner(c);
	if (c->mode & 022)
		return;
	status = follow_run(&f, &ignored);
	if (e.n_added)
		ui_note("To exclude sandboxes, write 'Host * !*" SSH_SUFFIX
			"' instead of 'Host *' above them.");
	if (status == 127) {
		ui_warning("program ssh not found");
		ui_hint("sudo apt-get install openssh-client");
	} else if (status != 0 || !e.has_proxy) {
		ui_warning("ssh does not use this configuration for *" SSH_SUFFIX);
		ui_hint("ssh -G sandbox" SSH_SUFFIX);
	}
}
