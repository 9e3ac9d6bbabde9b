/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "child.h"
#include "lib/base/fs/fd.h"

/* PID 1's end and the child's end of each connection. */
struct ends {
	int status, in, out, err;
};

static void ends_done(struct ends *e)
{
	fd_close(&e->status);
	fd_close(&e->in);
	fd_close(&e->out);
	fd_close(&e->err);
}

#define AUTO_ENDS CLEANUP(ends_done)
#define NO_ENDS                \
	{                      \
		-1, -1, -1, -1 \
	}

void spawn_resize(int pty, uint16_t rows, uint16_t cols)
{
	struct winsize ws = {.ws_row = rows, .ws_col = cols};

	if (rows > 0 && cols > 0)
		(void)ioctl(pty, TIOCSWINSZ, &ws);
}

static int make_pipe(int *ret_read, int *ret_write, int *mine)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = fds[0];
	*ret_write = fds[1];
	return fd_set_nonblock(*mine, true);
}

static int dup_fd(int fd)
{
	int r = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return r < 0 ? -errno : r;
}

static int open_terminal(const struct exec_spec *spec, struct ends *mine, struct ends *theirs)
{
	mine->out = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (mine->out < 0 || unlockpt(mine->out) < 0)
		return -errno;
	spawn_resize(mine->out, spec->rows, spec->cols);
	theirs->in = ioctl(mine->out, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (theirs->in < 0)
		return -errno;
	theirs->out = dup_fd(theirs->in);
	theirs->err = dup_fd(theirs->in);
	if (theirs->out < 0 || theirs->err < 0)
		return -EMFILE;
	if (!(spec->flags & EXEC_F_STDIN))
		return 0;
	/* A second fd for the same terminal: reading and writing wait for different events. */
	mine->in = dup_fd(mine->out);
	return mine->in < 0 ? mine->in : 0;
}

static int open_null(int *ret)
{
	*ret = open("/dev/null", O_RDWR | O_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

static int open_pipes(const struct exec_spec *spec, struct ends *mine, struct ends *theirs)
{
	bool detached = spec->flags & EXEC_F_DETACHED;
	int r;

	if (!detached && spec->flags & EXEC_F_STDIN)
		r = make_pipe(&theirs->in, &mine->in, &mine->in);
	else
		r = open_null(&theirs->in);
	if (r == 0)
		r = detached ? open_null(&theirs->out)
			     : make_pipe(&mine->out, &theirs->out, &mine->out);
	if (r == 0)
		r = detached ? open_null(&theirs->err)
			     : make_pipe(&mine->err, &theirs->err, &mine->err);
	return r;
}

static int open_ends(const struct exec_spec *spec, struct ends *mine, struct ends *theirs)
{
	int r = make_pipe(&mine->status, &theirs->status, &mine->status);

	if (r < 0)
		return r;
	if (spec->flags & EXEC_F_TTY && !(spec->flags & EXEC_F_DETACHED))
		return open_terminal(spec, mine, theirs);
	return open_pipes(spec, mine, theirs);
}

int spawn_start(
	const struct exec_spec *spec, const struct facts *facts, struct spawn *ret, struct err *err)
{
	AUTO_ENDS struct ends mine = NO_ENDS;
	AUTO_ENDS struct ends theirs = NO_ENDS;
	int r = open_ends(spec, &mine, &theirs);
	pid_t pid;

	if (r < 0)
		return err_errno(err, r, "cannot create the pipes of a program in the sandbox");
	pid = fork();
	if (pid < 0)
		return err_errno(err, -errno, "cannot start a process in the sandbox");
	if (pid == 0)
		child_run(&(struct child){
			.spec = spec,
			.facts = facts,
			.in = theirs.in,
			.out = theirs.out,
			.err = theirs.err,
			.status = theirs.status,
		});
	*ret = (struct spawn){
		.pid = pid,
		.status = TAKE_FD(mine.status),
		.in = TAKE_FD(mine.in),
		.out = TAKE_FD(mine.out),
		.err = TAKE_FD(mine.err),
	};
	return 0;
}
