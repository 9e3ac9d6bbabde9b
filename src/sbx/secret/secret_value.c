/* SPDX-License-Identifier: Apache-2.0 */
#include "secret_value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "src/sbx/session/session.h"

#define ROOM (SECRET_MAX + 4096)
#define KEY_END 4    /* Ctrl-D */
#define KEY_KILL 21  /* Ctrl-U */
#define KEY_BACK 127 /* and Ctrl-H */

int secret_value_init(struct secret_value *v, struct problem *p)
{
	void *m = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*v = (struct secret_value){0};
	if (m == MAP_FAILED)
		return err_errno(&p->err, -errno, "cannot allocate memory for the value");
	/* if the limit forbids it, the value may be swapped out; it exists only for a moment */
	(void)mlock(m, ROOM);
	(void)madvise(m, ROOM, MADV_DONTDUMP);
	(void)madvise(m, ROOM, MADV_DONTFORK);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	v->p = m;
	return 0;
}

void secret_value_done(struct secret_value *v)
{
	if (!v->p)
		return;
	explicit_bzero(v->p, ROOM);
	(void)munmap(v->p, ROOM);
	*v = (struct secret_value){0};
}

static int too_long(struct problem *p)
{
	(void)err_set(&p->err, -E2BIG,
		"the value is longer than %d bytes: expected a key or token, not a file",
		SECRET_MAX);
	return problem_hint(p, -E2BIG, "sbx help secret set");
}

int secret_value_append(struct secret_value *v, const char *text, struct problem *p)
{
	size_t n = strlen(text);

	if (n > SECRET_MAX - v->n)
		return too_long(p);
	memcpy(v->p + v->n, text, n);
	v->n += n;
	v->p[v->n] = '\0';
	return 0;
}

int secret_value_read(struct secret_value *v, int fd, struct problem *p)
{
	for (;;) {
		/* one byte more than allowed detects an oversized value */
		ssize_t n = read(fd, v->p + v->n, SECRET_MAX + 3 - v->n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(&p->err, -errno, "cannot read the value from stdin");
		if (n == 0)
			break;
		v->n += (size_t)n;
		if (v->n > SECRET_MAX + 2)
			return too_long(p);
	}
	v->p[v->n] = '\0';
	return 0;
}

/* Handles one key. Returns 1 at the end of the line, 0 for more. */
static int take_key(struct secret_value *v, char c, struct problem *p)
{
	if (c == '\n' || c == '\r')
		return 1;
	if (c == KEY_END)
		return v->n ? 1 : -ECANCELED;
	if (c == KEY_KILL)
		v->n = 0;
	else if (c == KEY_BACK || c == '\b')
		v->n -= v->n > 0;
	else if (v->n == SECRET_MAX)
		return too_long(p);
	else
		v->p[v->n++] = c;
	return 0;
}

/* A terminal in line mode would truncate a long line. */
static int read_line(struct secret_value *v, struct problem *p)
{
	int r = 0;

	while (r == 0) {
		char c;
		ssize_t n = read(STDIN_FILENO, &c, 1);

		if (n < 0 && errno == EINTR)
			continue;
		r = n <= 0 ? -ECANCELED : take_key(v, c, p);
		explicit_bzero(&c, sizeof(c));
	}
	v->p[v->n] = '\0';
	return r < 0 ? r : 0;
}

int secret_value_ask(struct secret_value *v, const char *prompt, struct problem *p)
{
	int r = term_hide(STDIN_FILENO, &p->err);

	if (r < 0)
		return r;
	(void)fprintf(stderr, "%s", prompt);
	(void)fflush(stderr);
	r = read_line(v, p);
	term_restore();
	(void)fputc('\n', stderr);
	if (r == -ECANCELED)
		(void)err_set(&p->err, r, "no value entered: credential unchanged");
	return r;
}

bool secret_value_chomp(struct secret_value *v)
{
	size_t before = v->n;

	if (v->n && v->p[v->n - 1] == '\n')
		v->n--;
	if (v->n < before && v->n && v->p[v->n - 1] == '\r')
		v->n--;
	v->p[v->n] = '\0';
	return v->n < before;
}

bool secret_value_is_placeholder(const char *text)
{
	return strcasestr(text, "proxy-managed") || strcasestr(text, "proxymanaged");
}

int secret_value_check(const struct secret_value *v, struct problem *p)
{
	if (v->n == 0) {
		(void)err_set(&p->err, -EINVAL, "the value is empty: credential unchanged");
		return problem_hint(p, -EINVAL, "sbx help secret set");
	}
	if (v->n > SECRET_MAX)
		return too_long(p);
	for (size_t i = 0; i < v->n; i++) {
		unsigned char c = (unsigned char)v->p[i];

		if (c >= ' ' && c != 0x7f)
			continue;
		(void)err_set(&p->err, -EINVAL,
			"the value contains %s, which a request cannot contain: credential unchanged. Enter only the key or token, on one line",
			c == '\n' || c == '\r' ? "a line break" : "a control character");
		return problem_hint(p, -EINVAL, "sbx help secret set");
	}
	if (secret_value_is_placeholder(v->p)) {
		(void)err_set(&p->err, -EINVAL,
			"the value is the placeholder that sandboxes see, not the credential: credential unchanged");
		return problem_hint(p, -EINVAL, "sbx help secret set");
	}
	return 0;
}

void secret_value_mask(const char *text, char ret[SECRET_MASK])
{
	size_t n = strlen(text), head = 0;

	for (size_t i = 4; n >= 20 && i >= 2 && !head; i--)
		if (text[i - 1] == '-' || text[i - 1] == '_')
			head = i;
	(void)snprintf(
		ret, SECRET_MASK, "%.*s****%s", (int)head, text, n >= 20 ? text + n - 4 : "");
}

int secret_value_pass(const struct secret_value *v, struct problem *p)
{
	AUTO_CLOSE int mine = -1, theirs = -1;
	int pair[2];
	ssize_t n;

	/* a pipe may be as small as a page; a socket takes all of it */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(&p->err, -errno, "cannot create a socket for the value");
	mine = pair[0];
	theirs = pair[1];
	n = send(mine, v->p, v->n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 || (size_t)n != v->n)
		return err_set(&p->err, -EIO, "cannot send the value to sbxd");
	return TAKE_FD(theirs);
}
