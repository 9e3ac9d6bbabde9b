/* SPDX-License-Identifier: Apache-2.0 */
#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/cli/search_path.h"

bool browser_has_display(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	return (x && x[0]) || (wayland && wayland[0]);
}

/* `%s` in a word stands for the URL. */
static char *put_url(char *word, const char *url, bool *done)
{
	if (strcmp(word, "%s") != 0)
		return word;
	*done = true;
	return (char *)url;
}

bool browser_choose(struct browser *b, const char *value, bool has_display, const char *url)
{
	bool done = false;
	size_t n = 0;
	char *save;

	*b = (struct browser){0};
	if (!value || !value[0])
		value = has_display ? "xdg-open" : "";
	b->words = xstrdup(value);
	b->words[strcspn(b->words, ":")] = '\0';
	for (char *w = strtok_r(b->words, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (n == BROWSER_MAX_WORDS)
			return false;
		b->argv[n++] = put_url(w, url, &done);
	}
	if (n == 0)
		return false;
	if (!done)
		b->argv[n] = (char *)url;
	return true;
}

void browser_done(struct browser *b)
{
	free(b->words);
	*b = (struct browser){0};
}

static void become_browser(const struct browser *b, int report)
{
	AUTO_FREE char *path = search_path_make(getenv("PATH"));
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r;

	if (null < 0 || setenv("PATH", path, 1) < 0)
		_exit(127);
	(void)setsid();
	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execvp(b->argv[0], b->argv);
	r = errno;
	(void)!write(report, &r, sizeof(r));
	_exit(127);
}

/* Its status, or 0 if it still runs after BROWSER_WAIT_MS. */
static int wait_browser(pid_t pid)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int status = 0;

	if (fd < 0 || poll(&p, 1, BROWSER_WAIT_MS) <= 0 || waitpid(pid, &status, 0) != pid)
		return 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int browser_start(const struct browser *b, struct err *err)
{
	AUTO_CLOSE int from = -1, to = -1;
	int fds[2], failed, status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(err, -errno, "cannot start %s", b->argv[0]);
	from = fds[0];
	to = fds[1];
	pid = fork();
	if (pid == 0)
		become_browser(b, to);
	if (pid < 0)
		return err_errno(err, -errno, "cannot start %s", b->argv[0]);
	fd_close(&to);
	if (read(from, &failed, sizeof(failed)) == sizeof(failed)) {
		(void)waitpid(pid, NULL, 0);
		return err_errno(err, -failed, "cannot start %s", b->argv[0]);
	}
	status = wait_browser(pid);
	return status == 0 ? 0
			   : err_set(err, -ECHILD, "%s failed: exit status %d", b->argv[0], status);
}
