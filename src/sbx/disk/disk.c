/* SPDX-License-Identifier: Apache-2.0 */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/client/api/api.h"
#include "lib/client/api/daemon.h"
#include "lib/client/cli/follow.h"
#include "lib/client/cli/search_path.h"

#define MAX_EXTRA 8
#define MAX_RECIPE 128
#define RECIPE_MS 30000

void template_show(void *arg, unsigned percent, const char *text)
{
	ui_progress(percent, text);
}

json_t *template_manifest(const char *name)
{
	json_t *list = template_list(), *one, *found = NULL;
	size_t i;

	json_array_foreach (list, i, one)
		if (strcmp(api_str(one, "name"), name) == 0) {
			found = json_incref(one);
		}
	json_decref(list);
	return found;
}

bool template_is_there(const char *name)
{
	AUTO_JSON json_t *m = template_manifest(name);

	return m && !json_object_get(m, "broken");
}

/* In the child: fd 3 is the progress, stdout is our stderr. */
static void become_helper(
	const char *program, const char *out, const char *const *extra, int progress)
{
	const char *argv[4 + MAX_EXTRA] = {"template-build", "--out", out};
	AUTO_FREE char *path = search_path_make(getenv("PATH"));
	int copy = fcntl(progress, F_DUPFD, 10);

	for (size_t i = 0; extra && extra[i] && i < MAX_EXTRA; i++)
		argv[3 + i] = extra[i];
	if (copy < 0 || dup2(copy, 3) < 0 || dup2(2, 1) < 0 || close_range(4, ~0u, 0) < 0 ||
		setenv("PATH", path, 1) < 0)
		_exit(127);
	(void)execv(program, (char *const *)argv);
	(void)fprintf(stderr, "sbx: cannot run %s: %s\n", program, strerror(errno));
	_exit(127);
}

static void show_lines(int fd)
{
	char line[TEMPLATE_MAX_LINE];
	FILE *f = fdopen(fd, "r");
	int percent, at;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%d%n", &percent, &at) == 1 && percent >= 0 && percent <= 100)
			ui_progress((unsigned)percent, line + at + strspn(line + at, " "));
	}
	(void)fclose(f);
	ui_progress_end();
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The helper's last output begins on its own line, below the bar. */
static void on_interrupt(int sig)
{
	ssize_t ignored = ui_is_terminal() ? write(STDERR_FILENO, "\n", 1) : sig;

	(void)ignored;
}

/* Ctrl-C reaches the helper too, which cleans up: its output and ours must precede the next
 * prompt. */
static void hold_interrupt(bool on)
{
	struct sigaction sa = {.sa_handler = on ? on_interrupt : SIG_DFL, .sa_flags = SA_RESTART};

	(void)sigaction(SIGINT, &sa, NULL);
}

static int say_failed(const char *name, int status, struct problem *p)
{
	if (status != 128 + SIGINT)
		return err_set(
			&p->err, -EIO, "cannot build template '%s' (status %d)", name, status);
	(void)err_set(&p->err, -EINTR, "interrupted: template '%s' was not built", name);
	return problem_hint(p, -EINTR, "sbx template build");
}

static int run_helper(
	const char *name, const char *out, const char *const *extra, struct problem *p)
{
	AUTO_FREE char *program = daemon_helper_path("template-build");
	int pipefd[2], status;
	pid_t pid;

	if (access(program, X_OK) < 0)
		return err_errno(&p->err, -errno, "cannot find the helper %s", program);
	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return err_errno(&p->err, -errno, "cannot create a pipe");
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_helper(program, out, extra, pipefd[1]);
	hold_interrupt(true);
	(void)close(pipefd[1]);
	show_lines(pipefd[0]);
	status = pid < 0 ? 127 : wait_for(pid);
	hold_interrupt(false);
	return status == 0 ? 0 : say_failed(name, status, p);
}

static void keep_recipe(void *arg, char *line)
{
	(void)snprintf(arg, MAX_RECIPE, "%s", line);
}

int template_is_current(const char *name, struct err *err)
{
	AUTO_JSON json_t *m = template_manifest(name);
	AUTO_FREE char *program = daemon_helper_path("template-build");
	const char *argv[] = {program, "--recipe", NULL};
	char recipe[MAX_RECIPE] = "";
	struct follow f = {.argv = argv,
		.lines = 1,
		.in_fd = -1,
		.out_fd = -1,
		.max_ms = RECIPE_MS,
		.fn = keep_recipe,
		.arg = recipe};
	int status = follow_run(&f, err);

	if (status < 0)
		return status;
	if (status > 0 || !recipe[0])
		return err_set(err, -EIO, "%s --recipe failed: %s", program, recipe);
	return strcmp(api_str(m, "recipe"), recipe) == 0;
}

/* Facts reported by the helper; its list of files is rebuilt. */
static json_t *read_facts(const char *dir)
{
	AUTO_FREE char *path = xasprintf("%s/manifest.json", dir);
	json_t *facts = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(facts)) {
		json_decref(facts);
		facts = json_object();
	}
	(void)json_object_set_new(facts, "kind", json_string("base"));
	return facts;
}

static int publish_folder(const char *name, const char *dir, struct problem *p)
{
	static const char *const parts[] = {"root.img", "docker.img", "vmlinuz", "modules.cpio"};
	AUTO_DRAFT struct template_draft draft = {0};
	AUTO_TEMPLATE struct template t = {0};
	AUTO_JSON json_t *facts = read_facts(dir);
	int r = template_draft_begin(&draft, &p->err);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, parts[i]);

		r = template_draft_take(&draft, parts[i], path, &p->err);
	}
	return r < 0 ? r : template_publish(&draft, name, facts, &t, p);
}

int template_publish(struct template_draft *draft, const char *name, const json_t *facts,
	struct template *ret, struct problem *p)
{
	bool moves = template_is_there(name);
	int r = 0;

	/* Old sandboxes store the name only: they get the id before the name changes. */
	if (moves) {
		AUTO_TEMPLATE struct template old = {0};

		(void)!template_open_shown(name, template_show, NULL, &old, NULL);
		r = template_collect_unused(p);
	}
	if (r == 0)
		r = template_draft_publish(draft, name, facts, template_show, NULL, ret, &p->err);
	ui_progress_end();
	return r == 0 && moves ? template_collect_unused(p) : r;
}

int template_collect_unused(struct problem *p)
{
	return api_call("POST", "/v1/templates/collect", NULL, API_TIMEOUT_MS, NULL, p);
}

int template_build(const char *name, const char *const *extra, struct problem *p)
{
	/* A fixed path, so that the helper finds the files of a killed one. */
	AUTO_FREE char *out = paths_get(PATHS_DATA, "templates/.store/.build.%s", name),
		       *store = paths_get(PATHS_DATA, "templates/.store");
	int r;

	if (paths_make(store, &p->err) < 0)
		return -EIO;
	(void)!template_remove(out, NULL);
	r = run_helper(name, out, extra, p);
	if (r == 0)
		r = publish_folder(name, out, p);
	(void)!template_remove(out, NULL);
	return r;
}

int template_require(const char *name, struct problem *p)
{
	AUTO_TEMPLATE struct template t = {0};
	int r = template_open_shown(name, template_show, NULL, &t, &p->err);

	ui_progress_end();
	if (r != -ENOENT)
		return r;
	(void)err_set(&p->err, -ENOENT, "template '%s' not found", name);
	(void)problem_hint(p, -ENOENT, "sbx template build");
	if (strcmp(name, "debian") != 0)
		return problem_hint(p, -ENOENT, "sbx template ls");
	if (!ui_can_ask() ||
		!ui_confirm(
			"Template '%s' not found. Build it now? This takes some minutes and downloads Debian packages.",
			name))
		return -ENOENT;
	p->hint[0] = '\0';
	return template_build(name, NULL, p);
}
