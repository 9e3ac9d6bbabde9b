/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "builtin.h"
#include "src/guest/docker/docker.h"
#include "src/guest/net/net.h"
#include "spawn.h"
#include "termname.h"
#include "src/guest/trust/trust.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define STATUS_CANNOT 126
#define STATUS_NOT_FOUND 127
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static void __attribute__((noreturn)) fail(const struct child *c, uint8_t status, const char *text)
{
	uint8_t buf[SPAWN_MAX_STATUS];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, status);
	wr_bytes(&wr, slice_of(text, strnlen(text, sizeof(buf) - 1)));
	(void)!fd_write_all(c->status, buf, wr.n);
	_exit(status);
}

/* Own session and process group; with a terminal, that is its controlling one. */
static void take_stdio(const struct child *c, const struct guest_user *u)
{
	bool tty = isatty(c->in);

	(void)setsid();
	if (tty) {
		(void)ioctl(c->in, TIOCSCTTY, 0);
		(void)!fchown(c->in, u->uid, (gid_t)-1);
	}
	if (dup2(c->in, 0) < 0 || dup2(c->out, 1) < 0 || dup2(c->err, 2) < 0)
		fail(c, STATUS_CANNOT, "cannot connect the program's input and output");
}

static void become_child(const struct child *c, const struct guest_user *u)
{
	struct err err;

	if (setgroups(u->n_groups, u->groups) < 0 || setresgid(u->gid, u->gid, u->gid) < 0 ||
		setresuid(u->uid, u->uid, u->uid) < 0) {
		err_errno(&err, -errno, "switching to the user '%s' in the sandbox", u->name);
		fail(c, STATUS_CANNOT, err.text);
	}
}

/* A requested directory must exist; otherwise the workspace, the home or / is used. */
static void enter_folder(const struct child *c, const struct guest_user *u)
{
	const char *asked = c->spec->cwd, *work = c->facts->workdir;
	struct err err;

	if (asked[0]) {
		if (chdir(asked) == 0)
			return;
		err_errno(&err, -errno, "cannot change to the directory %s in the sandbox", asked);
		fail(c, STATUS_CANNOT, err.text);
	}
	if (work && work[0] && chdir(work) == 0)
		return;
	if (chdir(u->home) < 0)
		(void)!chdir("/");
}

void child_env(struct env *e, const struct child *c, const struct guest_user *u)
{
	AUTO_FREE char *own = xasprintf("%s/.local/bin", u->home);
	AUTO_FREE char *path = xasprintf("%s:" PATH_DEFAULT, own);
	const struct facts *f = c->facts;

	env_set(e, "PATH", u->uid == 0 ? PATH_DEFAULT : path);
	env_set(e, "HOME", u->home);
	if (u->name[0]) {
		env_set(e, "USER", u->name);
		env_set(e, "LOGNAME", u->name);
	}
	env_set(e, "SHELL", u->shell[0] ? u->shell : "/bin/sh");
	env_set(e, "LANG", "C.UTF-8");
	imageenv_load(e, u->uid == 0 ? NULL : own);
	/* The sandbox has one user: packages that pip protects (PEP 668) may be changed. */
	env_set(e, "PIP_BREAK_SYSTEM_PACKAGES", "1");
	if (f->name) {
		env_set(e, "SANDBOX_NAME", f->name);
		env_set(e, "SANDBOX_ID", f->id);
		if (f->workdir[0])
			env_set(e, "WORKSPACE_DIR", f->workdir);
	}
	netconf_env(e);
	if (f->has_ca)
		trust_env(e, &trust_of_guest);
	env_put_all(e, f->env.v);
	env_put_all(e, f->trust.v);
	env_put_all(e, c->spec->env);
	if (c->spec->flags & EXEC_F_TTY)
		env_set(e, "TERM", termname_for("", env_get(e, "TERM")));
}

static void exec_program(const struct child *c, char **envp)
{
	const char *name = c->spec->argv[0];
	struct err err;
	int r;

	environ = envp;
	(void)execvp(name, c->spec->argv);
	r = -errno;
	if (r == -ENOENT || r == -ENOTDIR) {
		err_set(&err, r, "program '%s' not found in the sandbox", name);
		fail(c, STATUS_NOT_FOUND, err.text);
	}
	err_errno(&err, r, "running '%s' in the sandbox", name);
	fail(c, STATUS_CANNOT, err.text);
}

/* Builtins run as root and keep numeric owners. Without an exec, the descriptors of PID 1 are not
 * closed automatically, among them the status pipe and the other end of our own input. */
static void run_builtin(const struct child *c)
{
	builtin_fn *fn = builtin_find(c->spec->argv[0]);
	struct guest_user root = {0};

	if (!fn)
		fail(c, STATUS_NOT_FOUND, "unknown builtin of sbx-guest");
	take_stdio(c, &root);
	if (c->spec->cwd[0] && chdir(c->spec->cwd) < 0)
		fail(c, STATUS_CANNOT, "cannot change to the directory in the sandbox");
	(void)close_range(3, ~0u, 0);
	_exit(fn(c->spec->argv, c));
}

void child_run(const struct child *c)
{
	struct env env = {0};
	struct guest_user user;
	struct err err;

	signals_reset();
	(void)umask(022);
	if (c->spec->flags & EXEC_F_BUILTIN)
		run_builtin(c);
	if (users_lookup(c->spec->user, &user, &err) < 0)
		fail(c, STATUS_CANNOT, err.text);
	child_env(&env, c, &user);
	take_stdio(c, &user);
	become_child(c, &user);
	enter_folder(c, &user);
	exec_program(c, env.v);
	_exit(STATUS_CANNOT);
}
