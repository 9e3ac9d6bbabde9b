#include "template.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "api.h"
#include "daemon.h"

#define MAX_EXTRA 8

static char *manifest_path(const char *name)
{
	return paths_get(PATHS_DATA, "templates/%s/manifest.json", name);
}

bool template_is_there(const char *name)
{
	AUTO_FREE char *path = manifest_path(name);

	return access(path, R_OK) == 0;
}

json_t *template_manifest(const char *name)
{
	AUTO_FREE char *path = manifest_path(name);

	return json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_template(const struct dirent *e)
{
	return e->d_name[0] != '.' && template_is_there(e->d_name);
}

json_t *template_names(void)
{
	AUTO_FREE char *dir = paths_get(PATHS_DATA, "templates");
	struct dirent **found = NULL;
	json_t *names = json_array();
	int n = scandir(dir, &found, is_template, by_name);

	for (int i = 0; i < n; i++) {
		(void)json_array_append_new(names, json_string(found[i]->d_name));
		free(found[i]);
	}
	free(found);
	return names;
}

/* A template is a folder of plain files. */
int template_remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int r = 0;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			unlinkat(dirfd(d), e->d_name, 0) < 0)
			r = -errno;
	(void)closedir(d);
	if (r == 0 && rmdir(dir) < 0)
		r = -errno;
	return r;
}

/* In the child: fd 3 is the progress, stdout goes to our stderr. */
static void become_helper(
	const char *program, const char *out, const char *const *extra, int progress)
{
	const char *argv[4 + MAX_EXTRA] = {"template-build", "--out", out};
	int copy = fcntl(progress, F_DUPFD, 10);

	for (size_t i = 0; extra && extra[i] && i < MAX_EXTRA; i++)
		argv[3 + i] = extra[i];
	if (copy < 0 || dup2(copy, 3) < 0 || dup2(2, 1) < 0 || close_range(4, ~0u, 0) < 0)
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

int template_build(const char *name, const char *const *extra, struct problem *p)
{
	AUTO_FREE char *program = daemon_helper_path("template-build");
	AUTO_FREE char *dir = paths_get(PATHS_DATA, "templates"),
		       *out = paths_get(PATHS_DATA, "templates/%s", name);
	int pipefd[2], status;
	pid_t pid;

	if (access(program, X_OK) < 0)
		return err_errno(&p->err, -errno, "looking for the helper %s", program);
	if (paths_make(dir, &p->err) < 0)
		return -EIO;
	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return err_errno(&p->err, -errno, "making a pipe");
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_helper(program, out, extra, pipefd[1]);
	(void)close(pipefd[1]);
	show_lines(pipefd[0]);
	status = pid < 0 ? 127 : wait_for(pid);
	if (status != 0)
		return err_set(&p->err, -EIO, "building the template '%s' failed (status %d)", name,
			status);
	return template_is_there(name)
		       ? 0
		       : err_set(&p->err, -EIO, "the template '%s' was built but is not in %s",
				 name, out);
}

int template_require(const char *name, struct problem *p)
{
	if (template_is_there(name))
		return 0;
	(void)err_set(&p->err, -ENOENT, "there is no template '%s' on this machine yet", name);
	(void)problem_hint(p, -ENOENT, "sbx template build");
	if (strcmp(name, "debian") != 0)
		return problem_hint(p, -ENOENT, "sbx template ls");
	if (!ui_can_ask() ||
		!ui_confirm("There is no template '%s' yet. Build it now? It takes some "
			    "minutes and downloads Debian packages.",
			name))
		return -ENOENT;
	p->hint[0] = '\0';
	return template_build(name, NULL, p);
}
