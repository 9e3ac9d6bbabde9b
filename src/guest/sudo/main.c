/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbx-sudo - runs a command as another user inside a sandbox, for images without sudo.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/attr.h"

#define PATH_OF_ROOT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define GUEST "sbx-guest"
#define MAX_LINE 1024
#define MAX_ID 0xfffffffeul

struct who {
	char name[64], home[256], shell[256];
	uid_t uid;
	gid_t gid;
};

static void __attribute__((noreturn)) fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "sudo: %s: %s\n", what, why);
	exit(1);
}

static int to_id(const char *s, unsigned *ret)
{
	char *end;
	unsigned long v;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoul(s, &end, 10);
	if (errno || *end || v > MAX_ID)
		return -EINVAL;
	*ret = (unsigned)v;
	return 0;
}

/* Splits the line at its colons; returns the number of fields. */
static size_t cut_sudo(char *line, char **fields, size_t max)
{
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	while (line && n < max)
		fields[n++] = strsep(&line, ":");
	return n;
}

static int take_sudo(char *line, const char *name, struct who *ret)
{
	char *f[7];

	if (cut_sudo(line, f, ARRAY_LEN(f)) != ARRAY_LEN(f) ||
		(strcmp(f[0], name) != 0 && !(name[0] == '#' && !strcmp(f[2], name + 1))) ||
		to_id(f[2], &ret->uid) < 0 || to_id(f[3], &ret->gid) < 0)
		return -ENOENT;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", f[0]);
	(void)snprintf(ret->home, sizeof(ret->home), "%s", f[5]);
	(void)snprintf(ret->shell, sizeof(ret->shell), "%s", f[6][0] ? f[6] : "/bin/sh");
	return 0;
}

/* "name" or "#uid". No name service: a static program would load the image's code for it. */
static struct who find_user(const char *name)
{
	struct who who = {0};
	char line[MAX_LINE];
	FILE *f = fopen("/etc/passwd", "re");
	int r = -ENOENT;

	while (f && r < 0 && fgets(line, sizeof(line), f))
		r = take_sudo(line, name, &who);
	if (f)
		(void)fclose(f);
	if (r < 0)
		fail(name, "unknown user");
	return who;
}

static gid_t find_group(const char *name)
{
	char line[MAX_LINE], *v[3];
	FILE *f = fopen("/etc/group", "re");
	unsigned gid;
	int r = name[0] == '#' ? to_id(name + 1, &gid) : -ENOENT;

	while (f && r < 0 && fgets(line, sizeof(line), f))
		if (cut_sudo(line, v, ARRAY_LEN(v)) == ARRAY_LEN(v) && !strcmp(v[0], name))
			r = to_id(v[2], &gid);
	if (f)
		(void)fclose(f);
	if (r < 0)
		fail(name, "unknown group");
	return gid;
}

static void become_sudo(const struct who *who)
{
	gid_t gid = who->gid;

	if (setgroups(1, &gid) < 0 || setresgid(gid, gid, gid) < 0 ||
		setresuid(who->uid, who->uid, who->uid) < 0)
		fail(who->name, strerror(errno));
	(void)setenv("HOME", who->home[0] ? who->home : "/", 1);
	(void)setenv("USER", who->name, 1);
	(void)setenv("LOGNAME", who->name, 1);
	(void)setenv("SHELL", who->shell, 1);
	if (who->uid == 0)
		(void)setenv("PATH", PATH_OF_ROOT, 1);
}

struct wish {
	const char *user, *group;
	int login, shell, nothing, background;
};

static void usage_sudo(void)
{
	(void)fprintf(
		stderr, "usage: sudo [-EHbins] [-u USER] [-g GROUP] [NAME=VALUE...] COMMAND\n");
	exit(1);
}

/* Options about passwords, prompts or the environment have no effect here. */
static int parse_sudo(int argc, char **argv, struct wish *w)
{
	int c;

	while ((c = getopt(argc, argv, "+EHSknbivlsu:g:p:")) != -1)
		switch (c) {
		case 'u':
			w->user = optarg;
			break;
		case 'g':
			w->group = optarg;
			break;
		case 'i':
			w->login = 1;
			break;
		case 's':
			w->shell = 1;
			break;
		case 'v':
		case 'l':
			w->nothing = 1;
			break;
		case 'b':
			w->background = 1;
			break;
		case '?':
			usage_sudo();
		}
	return optind;
}

static void run_shell(const struct who *who, int login)
{
	char dash[sizeof(who->shell) + 1];
	const char *name = strrchr(who->shell, '/');

	(void)snprintf(dash, sizeof(dash), "%s%s", login ? "-" : "", name ? name + 1 : who->shell);
	(void)execl(who->shell, dash, (char *)NULL);
	fail(who->shell, strerror(errno));
}

static int is_sandbox(void)
{
	char name[sizeof(GUEST)] = "";
	FILE *f = fopen("/proc/1/comm", "re");
	size_t n = f ? fread(name, 1, sizeof(name) - 1, f) : 0;

	if (f)
		(void)fclose(f);
	return n == strlen(GUEST) && !strcmp(name, GUEST);
}

int main(int argc, char **argv)
{
	struct wish w = {.user = "root"};
	struct who who;
	int i;

	if (!is_sandbox())
		fail("sudo of a sandbox", "cannot run outside a sandbox");
	i = parse_sudo(argc, argv, &w);
	who = find_user(w.user);
	if (w.group)
		who.gid = find_group(w.group);
	become_sudo(&who);
	for (; argv[i] && strchr(argv[i], '=') && argv[i][0] != '='; i++)
		if (putenv(argv[i]) != 0)
			fail(argv[i], strerror(errno));
	if (w.nothing)
		return 0;
	if (w.background && fork() != 0)
		return 0;
	if (w.login && chdir(who.home) < 0)
		(void)!chdir("/");
	if ((w.login || w.shell) && !argv[i])
		run_shell(&who, w.login);
	if (!argv[i])
		usage_sudo();
	(void)execvp(argv[i], argv + i);
	(void)fprintf(stderr, "sudo: %s: %s\n", argv[i],
		errno == ENOENT ? "command not found" : strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
