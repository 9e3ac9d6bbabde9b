#include "attach.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "sandbox.h"
#include "session.h"
#include "verb.h"

static uint8_t flags_of(const struct attach *a)
{
	return (uint8_t)((a->tty ? EXEC_F_TTY : 0) | (a->detach ? EXEC_F_DETACHED : 0) |
			 (a->in ? EXEC_F_STDIN : 0));
}

/* What curses programs need to know. The guest has the descriptions of these families only; any
 * other terminal is taken for the usual one, which nearly all of them understand. */
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

static int open_stream(const struct attach *a, struct problem *p)
{
	int r = sandbox_start(a->ref, a->accel, NULL, p);

	return r < 0 ? r : api_stream(a->ref, API_TIMEOUT_MS, p);
}

static int run_session(struct attach *a, int conn, struct problem *p)
{
	struct session s = {
		.spec = {.flags = flags_of(a),
			.rows = 24,
			.cols = 80,
			.user = (char *)(a->user ? a->user : ""),
			.cwd = (char *)(a->cwd ? a->cwd : ""),
			.argv = (char **)a->argv,
			.env = a->env->v},
		.in_fd = a->in ? STDIN_FILENO : -1,
		.out_fd = STDOUT_FILENO,
		.err_fd = STDERR_FILENO,
		.tty = a->tty && a->in && isatty(STDIN_FILENO),
		.detach = a->detach,
	};

	return session_run(&s, conn, p);
}

int attach_run(struct attach *a)
{
	struct problem p = {0};
	int r = 0;

	if (a->tty && a->in && !isatty(STDIN_FILENO)) {
		(void)err_set(&p.err, -ENOTTY, "-t with -i needs a terminal, and stdin is none");
		r = problem_hint(&p, -ENOTTY, "leave out -t");
	}
	if (r == 0 && a->tty)
		r = add_term(a->env, &p.err);
	if (r == 0)
		r = open_stream(a, &p);
	if (r >= 0)
		r = run_session(a, r, &p);
	if (r >= 0)
		return r;
	(void)ui_problem(&p, r);
	return EXIT_OURS;
}
