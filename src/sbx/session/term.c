/* SPDX-License-Identifier: Apache-2.0 */
#include "term.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

static struct {
	struct termios saved;
	volatile sig_atomic_t fd; /* -1: nothing to restore */
	bool hooked;
} term = {.fd = -1};

/* tcsetattr is safe in a signal handler. */
void term_restore(void)
{
	int fd = term.fd, kept = errno;

	if (fd < 0)
		return;
	term.fd = -1;
	(void)tcsetattr(fd, TCSADRAIN, &term.saved);
	errno = kept;
}

static void on_deadly(int signo)
{
	term_restore();
	(void)raise(signo); /* SA_RESETHAND: now it kills */
}

static void hook_exits(void)
{
	static const int deadly[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGHUP, SIGTERM, SIGINT, SIGQUIT};
	struct sigaction sa = {.sa_handler = on_deadly, .sa_flags = SA_RESETHAND | SA_NODEFER};

	if (term.hooked)
		return;
	term.hooked = true;
	(void)atexit(term_restore);
	for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
		(void)sigaction(deadly[i], &sa, NULL);
}

static int change_term(int fd, bool raw, struct err *err)
{
	struct termios new;

	if (tcgetattr(fd, &term.saved) < 0)
		return err_errno(err, -errno, "cannot read the terminal settings");
	hook_exits();
	new = term.saved;
	if (raw)
		cfmakeraw(&new);
	else
		new.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON);
	term.fd = fd;
	if (tcsetattr(fd, TCSADRAIN, &new) < 0)
		return err_errno(err, -errno, "cannot change the terminal settings");
	return 0;
}

int term_raw(int fd, struct err *err)
{
	return change_term(fd, true, err);
}

int term_hide(int fd, struct err *err)
{
	return change_term(fd, false, err);
}

void term_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct winsize ws = {0};

	(void)ioctl(fd, TIOCGWINSZ, &ws);
	*ret_rows = ws.ws_row ? ws.ws_row : 24;
	*ret_cols = ws.ws_col ? ws.ws_col : 80;
}
