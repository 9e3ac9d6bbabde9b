/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/client/api/sandbox.h"

#define HELD_MS 500

static uint8_t flags_of(const struct attach *a)
{
	return (uint8_t)((a->tty ? EXEC_F_TTY : 0) | (a->detach ? EXEC_F_DETACHED : 0) |
			 (a->in ? EXEC_F_STDIN : 0) |
			 (a->session ? EXEC_F_KEEP | EXEC_F_ATTACH : 0));
}

static enum session_where where_attach(void *ctx)
{
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = sandbox_get(ctx, &s, &p);

	if (r == -ENOENT)
		return SESSION_GONE;
	if (r < 0)
		return SESSION_CHANGES; /* sbxd is not running: not the sandbox's fault */
	if (sandbox_is(s, "running"))
		return SESSION_RUNS;
	if (sandbox_is(s, "paused"))
		return SESSION_PAUSED;
	if (sandbox_is(s, "suspended"))
		return SESSION_SUSPENDED;
	return sandbox_is(s, "stopped") ? SESSION_GONE : SESSION_CHANGES;
}

static int open_again(void *ctx, struct problem *p)
{
	return api_stream(ctx, API_TIMEOUT_MS, p);
}

static int wake_attach(void *ctx, struct problem *p)
{
	return sandbox_start(ctx, NULL, NULL, p);
}

/* A short wait: the session stands still meanwhile. */
static int count_held(void *ctx)
{
	AUTO_FREE char *quoted = api_quote(ctx);
	AUTO_FREE char *path = xasprintf("/v1/holds?sandbox=%s", quoted);
	AUTO_JSON json_t *list = NULL;
	struct problem p = {0};
	const json_t *hold;
	int n = 0;
	size_t i;

	if (api_peek("GET", path, HELD_MS, &list, &p) < 0)
		return -1;
	json_array_foreach (json_object_get(list, "holds"), i, hold)
		n += strcmp(api_str(hold, "state"), "open") == 0;
	return n;
}

/* The setting ask.bell. */
static bool shows_held(void)
{
	AUTO_SETTINGS struct settings set = {0};

	return settings_load(&set, NULL) == 0 &&
	       strcmp(settings_get(&set, SETTINGS_ASK_BELL), "true") == 0;
}

struct session_link attach_link(const char *ref)
{
	return (struct session_link){
		.ctx = (void *)ref, .where = where_attach, .open = open_again, .wake = wake_attach};
}

/* TERM for curses programs. The guest has the descriptions of these families only; any other
 * terminal is replaced by the usual one, which nearly all of them understand. */
static const char *guest_term(void)
{
	static const char *const known[] = {
		"xterm", "screen", "tmux", "linux", "rxvt", "vt", "dumb"};
	const char *term = getenv("TERM");

	for (size_t i = 0; term && i < ARRAY_LEN(known); i++)
		if (str_starts(term, known[i]))
			return term;
	return "xterm-256color";
}

static int add_term(struct env *env, struct err *err)
{
	AUTO_FREE char *word = xasprintf("TERM=%s", guest_term());

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], "TERM=", 5) == 0)
			return 0;
	return env_add(env, word, err);
}

static int say_stopped(const char *ref, struct problem *p)
{
	(void)err_set(&p->err, -ESRCH, "sandbox '%s' is stopped", ref);
	return problem_hint(p, -ESRCH, "sbx run %s", ref);
}

static int open_stream(const struct attach *a, struct problem *p)
{
	AUTO_JSON json_t *s = NULL;
	int r = a->only ? sandbox_get(a->ref, &s, p) : 0;

	if (r < 0)
		return r;
	if (s && sandbox_is(s, "stopped"))
		return say_stopped(a->ref, p);
	r = sandbox_start(a->ref, a->accel, NULL, p);
	return r < 0 ? r : api_stream(a->ref, API_TIMEOUT_MS, p);
}

static int read_keys(const struct attach *a, struct detach_keys *ret, struct problem *p)
{
	AUTO_SETTINGS struct settings set = {0};
	int r = 0;

	if (!a->session)
		return 0;
	if (!a->detach_keys)
		r = settings_load(&set, &p->err);
	if (r == 0)
		r = detach_keys_parse(
			a->detach_keys ? a->detach_keys : settings_get(&set, SETTINGS_DETACH_KEYS),
			ret, &p->err);
	return r;
}

static int run_session(
	struct attach *a, int conn, const struct detach_keys *keys, struct problem *p)
{
	struct session_link link = attach_link(a->ref);
	struct session s = {
		.spec = {.flags = flags_of(a),
			.rows = 24,
			.cols = 80,
			.user = (char *)(a->user ? a->user : ""),
			.cwd = (char *)(a->cwd ? a->cwd : ""),
			.argv = (char **)a->argv,
			.env = a->env ? a->env->v : NULL},
		.attach = a->only,
		.starting = a->starting,
		.link = a->detach ? NULL : &link,
		.keys = *keys,
		.in_fd = a->in ? STDIN_FILENO : -1,
		.out_fd = STDOUT_FILENO,
		.err_fd = STDERR_FILENO,
		.tty = a->tty && a->in && isatty(STDIN_FILENO),
		.detach = a->detach,
	};
	int r;

	if (a->session && shows_held())
		link.held = count_held;
	if (a->session)
		(void)snprintf(s.spec.session, sizeof(s.spec.session), "%s", a->session);
	r = session_run(&s, conn, p);
	a->left = s.left;
	return r;
}

/* Prints the command to reattach. */
static void say_left(const struct attach *a)
{
	bool agent = strcmp(a->session, ATTACH_AGENT) == 0;
	AUTO_FREE char *other = xasprintf("sbx attach %s --session %s", a->ref, a->session);
	AUTO_FREE char *back = xasprintf("sbx run %s", a->ref);
	const char *what = agent ? "the agent" : "the session", *how = agent ? back : other;

	if (a->left == SESSION_TAKEN_OVER)
		ui_note("Detached from %s: another terminal attached to %s. Reattach with: %s",
			a->ref, what, how);
	else
		ui_note("Detached from %s; %s keeps running. Reattach with: %s", a->ref, what, how);
}

static int check_attach(const struct attach *a, struct problem *p)
{
	if (a->tty && a->in && !isatty(STDIN_FILENO)) {
		(void)err_set(&p->err, -ENOTTY, "%s requires a terminal: stdin is not a terminal",
			a->session ? "a session" : "-t with -i");
		return problem_hint(p, -ENOTTY,
			a->session ? "sbx exec %s true" : "sbx exec -i %s true", a->ref);
	}
	if (a->session && !exec_session_is_valid(a->session)) {
		(void)err_set(&p->err, -EINVAL,
			"invalid session name '%s': use a-z, 0-9 and -, at most %d characters",
			a->session, EXEC_MAX_SESSION);
		return problem_hint(p, -EINVAL, "sbx inspect %s", a->ref);
	}
	return 0;
}

static int say_no_session(const struct attach *a, struct problem *p)
{
	(void)err_set(
		&p->err, -ESRCH, "session '%s' in sandbox '%s' has exited", a->session, a->ref);
	return problem_hint(p, -ESRCH, "sbx run %s", a->ref);
}

int attach_run(struct attach *a)
{
	struct detach_keys keys = {0};
	struct problem p = {0};
	int r = check_attach(a, &p);

	if (r == 0)
		r = read_keys(a, &keys, &p);
	if (r == 0 && a->tty && a->env)
		r = add_term(a->env, &p.err);
	if (r == 0)
		r = open_stream(a, &p);
	if (r >= 0)
		r = run_session(a, r, &keys, &p);
	if (r == -ESRCH && a->session && !p.hint[0])
		r = say_no_session(a, &p);
	if (a->left)
		say_left(a);
	if (r >= 0)
		return a->left ? EXIT_OK : r;
	(void)ui_problem(&p, r);
	return EXIT_OURS;
}
