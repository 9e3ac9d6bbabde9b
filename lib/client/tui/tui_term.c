/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal of tui.h: ncurses, signals, the loop of keys. Draws cells only. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

/* Macros of curses.h whose names we use, too. */
#undef tab
#undef lines
#undef columns

#include "tui_paint.h"

#define MAX_LEAVE 256

/* Those before SIGTSTP kill the process. */
static const int hooked[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGHUP, SIGTERM, SIGINT,
	SIGQUIT, SIGTSTP, SIGWINCH};

/* The one terminal. */
static struct {
	SCREEN *screen;
	struct termios saved;
	char leave[MAX_LEAVE]; /* what a terminal needs to be as before */
	volatile sig_atomic_t n_leave;
	volatile sig_atomic_t is_shown, is_stopped;
	struct sigaction before[ARRAY_LEN(hooked)];
	sigset_t mask;
} term;

bool tui_is_usable(void)
{
	const char *name = getenv("TERM");
	int result = 0;
	bool can_move;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !name || !name[0])
		return false;
	if (setupterm(name, STDOUT_FILENO, &result) != OK)
		return false;
	can_move = cursor_address && clear_screen;
	(void)del_curterm(cur_term);
	return can_move;
}

/* ---- the way back ---- */

static int add_leave(int c)
{
	if (term.n_leave < MAX_LEAVE)
		term.leave[term.n_leave++] = (char)c;
	return c;
}

/* In the order of endwin(3). */
static void make_leave(void)
{
	const char *const texts[] = {
		exit_attribute_mode, orig_pair, cursor_normal, keypad_local, exit_ca_mode};

	term.n_leave = 0;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i])
			(void)tputs(texts[i], 1, add_leave);
}

/* Calls only what a signal handler may call. */
static void restore_at_signal(void)
{
	if (!term.is_shown)
		return;
	term.is_shown = 0;
	if (write(STDOUT_FILENO, term.leave, (size_t)term.n_leave) < 0)
		return; /* the terminal is gone */
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &term.saved);
}

static void on_deadly(int signo)
{
	restore_at_signal();
	(void)raise(signo); /* SA_RESETHAND: now it kills */
}

static void on_stop(int signo)
{
	(void)signo;
	term.is_stopped = 1;
}

/* Only wakes wait_key: draw_model reads the size. */
static void on_resize(int signo)
{
	(void)signo;
}

/* After curses has set its own handlers. SIGTSTP and SIGWINCH arrive only in wait_key. */
static void hook_signals(void)
{
	struct sigaction die = {.sa_handler = on_deadly, .sa_flags = SA_RESETHAND | SA_NODEFER};
	struct sigaction stop = {.sa_handler = on_stop}, resize = {.sa_handler = on_resize};
	sigset_t late;

	for (size_t i = 0; hooked[i] != SIGTSTP; i++)
		(void)sigaction(hooked[i], &die, NULL);
	(void)sigaction(SIGTSTP, &stop, NULL);
	(void)sigaction(SIGWINCH, &resize, NULL);
	(void)sigemptyset(&late);
	(void)sigaddset(&late, SIGTSTP);
	(void)sigaddset(&late, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &late, &term.mask);
}

static void unhook_signals(void)
{
	for (size_t i = 0; i < ARRAY_LEN(hooked); i++)
		(void)sigaction(hooked[i], &term.before[i], NULL);
	(void)sigprocmask(SIG_SETMASK, &term.mask, NULL);
}

/* ---- open and close ---- */

static void start_colors(void)
{
	static const short colors[TUI_N_STYLES] = {[TUI_GREEN] = COLOR_GREEN,
		[TUI_RED] = COLOR_RED,
		[TUI_CYAN] = COLOR_CYAN,
		[TUI_YELLOW] = COLOR_YELLOW};
	const char *no = getenv("NO_COLOR");

	if ((no && no[0]) || !has_colors() || start_color() == ERR || use_default_colors() == ERR)
		return;
	/* A pair that is not set would be black. */
	for (int i = 1; i < TUI_N_STYLES; i++)
		(void)init_pair((short)i, colors[i] ? colors[i] : (short)-1, -1);
}

static int open_terminal(struct err *err)
{
	if (tcgetattr(STDIN_FILENO, &term.saved) < 0)
		return err_errno(err, -errno, "cannot read the terminal settings");
	for (size_t i = 0; i < ARRAY_LEN(hooked); i++)
		(void)sigaction(hooked[i], NULL, &term.before[i]);
	(void)setlocale(LC_CTYPE, "");
	term.screen = newterm(NULL, stdout, stdin);
	if (!term.screen)
		return err_set(err, -ENOTSUP, "cannot use the terminal: unknown type");
	make_leave();
	term.is_shown = 1;
	hook_signals();
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	(void)set_escdelay(25);
	(void)curs_set(0);
	start_colors();
	return 0;
}

void tui_pause(void)
{
	(void)endwin();
	term.is_shown = 0;
	unhook_signals();
}

void tui_resume(void)
{
	hook_signals();
	term.is_shown = 1;
	(void)clearok(curscr, TRUE);
	(void)refresh();
	(void)flushinp();
}

static void close_terminal(void)
{
	tui_pause();
	delscreen(term.screen);
	term.screen = NULL;
	(void)setlocale(LC_CTYPE, "C");
}

/* ---- output ---- */

static attr_t attr_of(const struct tui_cell *c)
{
	attr_t a = A_NORMAL;

	if (c->style == TUI_BOLD)
		a = A_BOLD;
	else if (c->style == TUI_DIM)
		a = A_DIM;
	return c->is_reverse ? a | A_REVERSE : a;
}

static void show_grid(const struct tui_grid *g)
{
	(void)erase();
	for (unsigned y = 0; y < g->rows; y++) {
		for (unsigned x = 0; x < g->cols; x++) {
			const struct tui_cell *c = tui_grid_at(g, y, x);
			cchar_t cc;

			if (c->is_tail)
				continue;
			if (setcchar(&cc, c->ch, attr_of(c), (short)c->style, NULL) != ERR)
				(void)mvadd_wch((int)y, (int)x, &cc);
		}
	}
	(void)refresh();
}

static void fit_size(struct tui_model *m)
{
	struct winsize ws = {0};

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws);
	if (ws.ws_row && ws.ws_col &&
		(ws.ws_row != getmaxy(stdscr) || ws.ws_col != getmaxx(stdscr)))
		(void)resizeterm(ws.ws_row, ws.ws_col);
	tui_resize(m, MIN((unsigned)MAX(getmaxy(stdscr), 0), TUI_GRID_MAX),
		MIN((unsigned)MAX(getmaxx(stdscr), 0), TUI_GRID_MAX));
}

static void draw_model(struct tui_model *m, struct tui_grid *g)
{
	fit_size(m);
	tui_load(m);
	tui_paint(m, g);
	show_grid(g);
}

/* ---- input ---- */

static uint32_t translate_key(wint_t key)
{
	static const struct {
		wint_t from;
		enum tui_key to;
	} keys[] = {
		{KEY_UP, TUI_KEY_UP},
		{KEY_DOWN, TUI_KEY_DOWN},
		{KEY_LEFT, TUI_KEY_LEFT},
		{KEY_RIGHT, TUI_KEY_RIGHT},
		{KEY_PPAGE, TUI_KEY_PAGE_UP},
		{KEY_NPAGE, TUI_KEY_PAGE_DOWN},
		{KEY_HOME, TUI_KEY_HOME},
		{KEY_END, TUI_KEY_END},
		{KEY_BACKSPACE, TUI_KEY_BACKSPACE},
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (key == keys[i].from)
			return keys[i].to;
	return key == KEY_ENTER ? '\n' : TUI_KEY_OTHER;
}

/* With the signals as they were before, the process stops here. */
static void stop_process(void)
{
	term.is_stopped = 0;
	tui_pause();
	(void)raise(SIGTSTP);
	tui_resume();
}

/* 1: there is something to read or to draw. */
static int wait_key(struct tui_model *m, struct err *err)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	int ms = m->src->tick_ms;
	struct timespec tick = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	int n = ppoll(&p, 1, m->src->tick ? &tick : NULL, &term.mask);

	if (n < 0 && errno != EINTR)
		return err_errno(err, -errno, "cannot wait for a key");
	if (n > 0 && p.revents & (POLLHUP | POLLERR | POLLNVAL))
		return err_set(err, -EIO, "the terminal was closed");
	if (term.is_stopped)
		stop_process();
	if (n == 0)
		tui_tick(m);
	return 1;
}

/* Takes all keys that have been pressed. Returns 0 if one of them closes the view. */
static int take_keys(struct tui_model *m)
{
	wint_t key;
	int r;

	while ((r = get_wch(&key)) != ERR) {
		bool was_asking = m->is_asking;

		if (r == KEY_CODE_YES && key == KEY_RESIZE)
			continue;
		if (!tui_press(m, r == KEY_CODE_YES ? translate_key(key) : (uint32_t)key))
			return 0;
		/* A question is answered by a key that is pressed after it is seen. */
		if (m->is_asking && !was_asking)
			(void)flushinp();
	}
	return 1;
}

int tui_run(struct tui_source *src, struct err *err)
{
	struct tui_grid grid = {0};
	struct tui_model model;
	int r = open_terminal(err);

	if (r < 0)
		return r;
	tui_model_init(&model, src);
	for (r = 1; r > 0;) {
		draw_model(&model, &grid);
		r = wait_key(&model, err);
		if (r > 0)
			r = take_keys(&model);
	}
	close_terminal();
	tui_grid_done(&grid);
	tui_model_done(&model);
	return r;
}
