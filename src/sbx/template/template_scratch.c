/* SPDX-License-Identifier: Apache-2.0 */
#include "template_scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/rules/spec/spec.h"
#include "lib/client/api/api.h"
#include "src/sbx/agent/agent.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/disk/disk.h"
#include "src/sbx/sandbox/sandbox.h"

#define OWN "/proc/self/exe"
#define MEMORY (2ull << 30) /* of a build; Docker and a package manager fit */
#define NOBODY "template-build.invalid:443"
#define MAX_ARGS 256
#define BUILD_MS (4 * 3600 * 1000ull)

/* ---- one command ---- */

struct command {
	const char *argv[MAX_ARGS];
	size_t n;
};

static void add_scratch(struct command *c, const char *word)
{
	if (c->n + 1 < MAX_ARGS)
		c->argv[c->n++] = word;
}

static struct command command_scratch(const char *verb)
{
	struct command c = {.argv = {OWN}, .n = 1};

	add_scratch(&c, verb);
	return c;
}

static struct command in_guest(const struct scratch *s, bool input)
{
	struct command c = command_scratch("exec");

	if (input)
		add_scratch(&c, "-i");
	add_scratch(&c, "-u");
	add_scratch(&c, "root");
	add_scratch(&c, "-w");
	add_scratch(&c, "/");
	add_scratch(&c, s->name);
	return c;
}

static void keep_line(void *arg, char *line)
{
	struct scratch *s = arg;

	if (line[0])
		(void)!str_copy(s->tail[s->n_lines++ % SCRATCH_TAIL], FOLLOW_MAX_LINE, line);
}

/* On a terminal the line replaces the previous one; else it stays, as in a log. */
static void show_line(void *arg, char *line)
{
	keep_line(arg, line);
	if (!line[0])
		return;
	if (ui_is_terminal())
		ui_busy(line);
	else
		ui_note("%s", line);
}

static int run_scratch(
	struct scratch *s, const struct command *c, struct follow f, struct problem *p)
{
	f.argv = c->argv;
	f.arg = s;
	if (!f.fn)
		f.fn = keep_line;
	s->n_lines = 0;
	if (follow_caught())
		return err_set(&p->err, -EINTR, "interrupted");
	return follow_run(&f, &p->err);
}

static void show_tail(const struct scratch *s)
{
	size_t n = MIN(s->n_lines, (size_t)SCRATCH_TAIL);

	for (size_t i = s->n_lines - n; i < s->n_lines; i++)
		ui_note("  %s", s->tail[i % SCRATCH_TAIL]);
}

/* Builds an error from a status; the last lines give the reason. */
static int judge_scratch(const struct scratch *s, int status, const char *what, struct problem *p)
{
	if (status <= 0)
		return status;
	ui_progress_end();
	if (follow_caught())
		return err_set(
			&p->err, -EINTR, "%s: interrupted: the scratch sandbox was removed", what);
	show_tail(s);
	return err_set(&p->err, -EIO, "%s failed (status %d)", what, status);
}

/* ---- reachable hosts ---- */

static int add_only(json_t *only, const char *target, struct problem *p)
{
	if (json_array_size(only) >= SPEC_MAX_ONLY)
		return err_set(
			&p->err, -E2BIG, "a build can reach at most %d hosts", SPEC_MAX_ONLY);
	return json_array_append_new(only, json_string(target)) == 0
		       ? 0
		       : err_set(&p->err, -EINVAL, "the host '%s' is not UTF-8", target);
}

/* LIST of --allow-network, comma-separated. */
static int add_allowed(json_t *only, const char *list, struct problem *p)
{
	AUTO_FREE char *copy = xstrdup(list);
	char *one, *rest = copy;
	int r = 0;

	ui_note("The build can reach %s.", list);
	while (r == 0 && (one = strsep(&rest, ", ")))
		if (one[0])
			r = add_only(only, one, p);
	return r;
}

/* The host's own mirror and the hosts that the user named. The list is never empty: a spec without
 * one has the network of the user's policy, and the user's credentials. */
static int make_only(const struct opt_list *allow, json_t *only, struct problem *p)
{
	struct mirrors m = {0};
	int r = add_only(only, NOBODY, p);

	mirror_find(&m);
	for (size_t i = 0; i < m.n && r == 0; i++) {
		ui_note("The build can reach %s, the package mirror of this host.", m.v[i]);
		r = add_only(only, m.v[i], p);
	}
	for (size_t i = 0; i < allow->n && r == 0; i++)
		r = add_allowed(only, allow->v[i], p);
	return r;
}

/* ---- its life ---- */

static int make_body(const struct scratch *s, const char *template, const char *share,
	const struct opt_list *allow, json_t **ret, struct problem *p)
{
	CLEANUP(workspace_done) struct workspace w = {0};
	AUTO_SETTINGS struct settings settings = {0};
	AUTO_JSON json_t *only = json_array();
	const char *accel = NULL;
	int r = workspace_parse(share, false, &w, p);

	if (r == 0)
		r = settings_load(&settings, &p->err);
	if (r == 0)
		r = settings_accel(&settings, &accel, &p->err);
	if (r == 0)
		r = make_only(allow, only, p);
	if (r < 0)
		return r;
	*ret = json_pack("{s:s, s:s, s:s, s:s, s:I, s:O, s:[{s:s, s:s, s:s, s:b, s:b}]}", "name",
		s->name, "agent", "shell", "template", template, "accel", accel, "memory",
		(json_int_t)MEMORY, "only", only, "workspaces", "host", w.host, "typed", w.typed,
		"guest", w.guest, "ro", w.ro, "file", w.file);
	return *ret ? 0 : err_set(&p->err, -EINVAL, "the path '%s' is not UTF-8", share);
}

int scratch_start(struct scratch *s, const char *template, const char *share,
	const struct opt_list *allow, struct problem *p)
{
	AUTO_JSON json_t *body = NULL;
	char id[9];
	int r = policy_require(p);

	str_random_hex(id, 4);
	(void)snprintf(s->name, sizeof(s->name), "template-build-%s", id);
	if (r == 0)
		r = make_body(s, template, share, allow, &body, p);
	if (r == 0)
		r = sandbox_create(body, NULL, p);
	if (r < 0)
		s->name[0] = '\0'; /* nothing to remove */
	return r;
}

static int make_memory(const char *text, int *ret, struct problem *p)
{
	AUTO_CLOSE int fd = memfd_create("sbx-build", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return err_errno(&p->err, r, "cannot create a file in memory");
	*ret = TAKE_FD(fd);
	return 0;
}

int scratch_put(struct scratch *s, const char *path, const char *text, struct problem *p)
{
	struct command c = in_guest(s, true);
	AUTO_CLOSE int fd = -1;
	int r = make_memory(text, &fd, p);

	if (r < 0)
		return r;
	add_scratch(&c, "sh");
	add_scratch(&c, "-c");
	add_scratch(&c, "mkdir -p \"${0%/*}\" && cat >\"$0\"");
	add_scratch(&c, path);
	return judge_scratch(s, run_scratch(s, &c, (struct follow){.lines = 1, .in_fd = fd}, p),
		"sending files to the sandbox", p);
}

int scratch_get(struct scratch *s, const char *path, size_t max, char **ret, struct problem *p)
{
	struct command c = in_guest(s, false);
	AUTO_CLOSE int fd = -1;
	AUTO_FREE char *text = NULL;
	char limit[32];
	ssize_t n;
	int r = make_memory("", &fd, p);

	if (r < 0)
		return r;
	(void)snprintf(limit, sizeof(limit), "%zu", max);
	add_scratch(&c, "head");
	add_scratch(&c, "-c");
	add_scratch(&c, limit);
	add_scratch(&c, path);
	r = judge_scratch(s,
		run_scratch(s, &c,
			(struct follow){.lines = 3, .in_fd = -1, .out_fd = fd, .max_bytes = max},
			p),
		"reading from the sandbox", p);
	if (r < 0)
		return r;
	text = xcalloc(1, max + 1);
	n = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_full(fd, text, max);
	if (n < 0)
		return err_errno(&p->err, (int)n, "cannot read the response of the sandbox");
	*ret = TAKE(text);
	return 0;
}

int scratch_run(struct scratch *s, const char *const *argv, struct problem *p)
{
	struct command c = in_guest(s, false);
	int r;

	while (*argv)
		add_scratch(&c, *argv++);
	r = run_scratch(s, &c,
		(struct follow){.lines = 1, .in_fd = -1, .max_ms = BUILD_MS, .fn = show_line}, p);
	if (!ui_is_terminal())
		s->n_lines = 0; /* already printed */
	r = judge_scratch(s, r, "building the Dockerfile in a sandbox", p);
	if (r == -EIO)
		ui_note("If a build step needs a network host, add --allow-network HOST.");
	return r;
}

int scratch_save_image(struct scratch *s, const char *image, int out_fd, struct problem *p)
{
	struct command c = in_guest(s, false);

	add_scratch(&c, "docker");
	add_scratch(&c, "save");
	add_scratch(&c, image);
	return judge_scratch(s,
		run_scratch(s, &c,
			(struct follow){.lines = 3,
				.in_fd = -1,
				.out_fd = out_fd,
				.max_bytes = SCRATCH_MAX_IMAGE},
			p),
		"copying the image out of the sandbox", p);
}

int scratch_save(struct scratch *s, const char *name, const json_t *facts, struct problem *p)
{
	if (follow_caught())
		return err_set(&p->err, -EINTR, "interrupted");
	return template_save(s->name, name, facts, p);
}

void scratch_done(struct scratch *s)
{
	struct command c = command_scratch("rm");
	struct follow f = {.argv = c.argv, .lines = 1, .in_fd = -1};

	if (!s->name[0])
		return;
	add_scratch(&c, "-f");
	add_scratch(&c, s->name);
	follow_ignore();
	ui_busy("removing the scratch sandbox");
	(void)!follow_run(&f, &(struct err){0});
	ui_progress_end();
	s->name[0] = '\0';
}
