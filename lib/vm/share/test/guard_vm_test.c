/* SPDX-License-Identifier: Apache-2.0 */
/* A guarded workspace in a real VM, with guard_vm_guest as the guest's init: what guest root cannot
 * plant, and that the real git works. Needs SBX_TEST_KERNEL (a vmlinuz with virtiofs built in);
 * skipped without. A second argument `all` has more of git; `husky` is `npm install` of a project
 * with husky, with the host's npm and its registry; `off` is without guard, to compare the time of
 * a create. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "vm_rig.h"

static int n_failed, n_passed;
static char dir[] = "/tmp/sbx-guard-vm-XXXXXX";

static void result(const char *what, bool ok)
{
	printf("%s %s\n", ok ? "pass" : "FAIL", what);
	n_failed += !ok;
	n_passed += ok;
}

static char *at(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void run(const char *command)
{
	AUTO_FREE char *all = xasprintf("cd '%s' && %s", dir, command);

	if (system(all) != 0)
		abort();
}

static void make_tree(void)
{
	run("mkdir ws guard ws/sub ws/deep && echo plain >ws/plain");
	run("git init -q ws && git init -q ws/deep/repo");
	run("echo '#!/bin/sh' >ws/.git/hooks/pre-commit && chmod 600 ws/.git/hooks/pre-commit");
	run("printf 'all:\\n' >ws/Makefile && cp -r ws/.git git.before");
}

static bool on_line(int con, const char *line)
{
	(void)con;
	if (!strncmp(line, "pass ", 5) || !strncmp(line, "FAIL ", 5))
		result(line + 5, line[0] == 'p');
	else if (*line)
		printf("# %s\n", line);
	return !strcmp(line, "end");
}

static bool has_line(const char *file, const char *text)
{
	AUTO_FREE char *path = at(file);
	AUTO_FREE char *all = NULL;
	size_t n;

	return file_load(path, 1 << 20, &all, &n, NULL) == 0 && strstr(all, text);
}

static bool is_same(const char *a, const char *b)
{
	AUTO_FREE char *command = xasprintf("cd '%s' && cmp -s %s %s", dir, a, b);

	return system(command) == 0;
}

static void look_at_host(int events)
{
	struct guard_event e;
	unsigned denied = 0, reported = 0, checked = 0;

	while (recv(events, &e, sizeof(e), MSG_DONTWAIT) == sizeof(e)) {
		denied += e.what == GUARD_DENIED;
		reported += e.what == GUARD_REPORTED;
		checked += e.what == GUARD_CHECKED;
	}
	printf("# events: %u denied, %u reported, %u checked\n", denied, reported, checked);
	result("host: events", denied > 5 && reported > 1 && checked > 1);
	result("host: the hook is the host's",
		is_same("ws/.git/hooks/pre-commit", "git.before/hooks/pre-commit"));
	result("host: the configuration is the host's",
		is_same("ws/.git/config", "git.before/config"));
	result("host: the Makefile is in the list", has_line("guard/dirty", "/ws Makefile"));
	result("host: its old content is kept", has_line("guard/copy/1", "all:"));
	result("host: git made a repository", has_line("ws/new/.git/config", "[core]"));
	result("host: the linked work tree has the configuration of its repository",
		has_line("ws/new/.git/worktrees/tree/commondir", "../..\n"));
	result("host: no configuration names a program",
		!has_line("ws/new/.git/config", "hooksPath"));
}

/* A project with husky and its packages, but before npm has run husky. */
static void make_husky(const char *version)
{
	AUTO_FREE char *project = xasprintf(
		"echo '{\"name\": \"p\", \"scripts\": {\"prepare\": \"husky%s\"}}' >ws/package.json",
		strcmp(version, "8") == 0 ? " install" : "");
	AUTO_FREE char *install = xasprintf(
		"cd ws && npm install --cache ../npm --ignore-scripts --no-audit --no-fund --silent "
		"--save-dev husky@%s && rm -rf node_modules && mv ../npm .",
		version);

	run(project);
	run(install);
}

static void run_vm(const char *kernel, const struct autorun_list *list, enum guard_level level,
	const char *words)
{
	AUTO_FREE char *ws = at("ws");
	AUTO_FREE char *initrd = at("initrd");
	AUTO_FREE char *guard = at("guard");
	AUTO_CLOSE int guard_fd = open(guard, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct share_mount mounts[] = {{ws, "/work", false}, {"/usr", "/host/usr", true}};
	struct err err = {0};
	int events[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) < 0)
		abort();
	const struct share_config cfg = {.mounts = mounts,
		.n_mounts = ARRAY_LEN(mounts),
		.guard = {level, list, guard_fd, events[1]},
		.program = getenv("SBX_TEST_VIRTIOFSD"),
		.log_fd = STDERR_FILENO};
	r = vm_rig_run(&cfg, kernel, initrd, words, on_line, &err);
	if (r < 0)
		printf("# %s\n", err_text(&err, r));
	result("the guest came to its end", r == 0);
	if (strncmp(words, "guard", 5) == 0)
		look_at_host(events[0]);
	if (strncmp(words, "husky", 5) == 0)
		result("host: only the exception permits hooks",
			has_line("ws/.git/config", "hooksPath") ==
				(strcmp(words, "husky on") == 0));
}

/* husky as it is refused, with the key that the user has set, and with the exception that sbx-why
 * names. */
static void run_husky(const char *kernel, struct autorun_list *list)
{
	static const char *const versions[] = {"8", "9"};
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		run("rm -rf ws guard && mkdir ws guard && git init -q ws");
		make_husky(versions[i]);
		run_vm(kernel, list, GUARD_DEFAULT, "husky");
	}
	run("git -C ws config core.hooksPath .husky/_ && rm -rf ws/node_modules");
	run_vm(kernel, list, GUARD_DEFAULT, "husky on");
	run("git -C ws config --unset core.hooksPath && rm -rf ws/node_modules ws/.husky");
	if (autorun_except(list, ".git/config", &err) < 0)
		abort();
	run_vm(kernel, list, GUARD_DEFAULT, "husky on");
}

int main(int argc, char **argv)
{
	const char *kernel = getenv("SBX_TEST_KERNEL");
	AUTO_AUTORUN struct autorun_list *list = NULL;
	AUTO_FREE char *initrd = NULL;
	AUTO_FREE char *remove = NULL;
	struct err err = {0};

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (!kernel || argc < 2 || access(kernel, R_OK) < 0) {
		printf("skipped: SBX_TEST_KERNEL does not name a kernel\n");
		return 77;
	}
	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 1;
	if (autorun_load(&list, &err) < 0 || !mkdtemp(dir)) {
		printf("%s\n", err.text);
		return 1;
	}
	make_tree();
	initrd = at("initrd");
	vm_rig_make_initrd(initrd, argv[1]);
	if (argc > 2 && strcmp(argv[2], "off") == 0)
		run_vm(kernel, list, GUARD_OFF, "-");
	else if (argc > 2 && strcmp(argv[2], "husky") == 0)
		run_husky(kernel, list);
	else
		run_vm(kernel, list, GUARD_DEFAULT, argc > 2 ? "guard all" : "guard");
	remove = xasprintf("rm -rf '%s'", dir);
	if (system(remove) != 0)
		printf("# left behind: %s\n", dir);
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed ? 1 : 0;
}
