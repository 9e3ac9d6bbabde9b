/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fs/fd.h"
#include "log.h"
#include "log_internal.h"
#include "mem.h"

static const char *const kind_names[TRACE_N_KINDS] = {
	[TRACE_IPC] = "ipc", [TRACE_NET] = "net", [TRACE_VM] = "vm", [TRACE_EXEC] = "exec"};

static unsigned kinds_on; /* bits */
/* Set by trace_open: a program that never opens a file links no function that could
 * (tests/lint/links). NULL: stderr. */
static void (*write_line)(const char *line, size_t n);
static struct {
	int fd;
	pid_t owner;
	char *path;
	size_t n;
} file = {.fd = -1};

static unsigned find_kind(const char *word, size_t n)
{
	for (unsigned i = 0; i < TRACE_N_KINDS; i++)
		if (strlen(kind_names[i]) == n && strncmp(kind_names[i], word, n) == 0)
			return 1U << i;
	return 0;
}

int trace_init(struct err *err)
{
	const char *text = getenv("SBX_TRACE"), *p = text;
	unsigned all = 0;

	kinds_on = 0;
	if (!p || !*p)
		return 0;
	for (;; p++) {
		size_t n = strcspn(p, ",");
		unsigned one = find_kind(p, n);

		if (!one)
			return err_set(err, -EINVAL,
				"invalid SBX_TRACE '%.80s': expected a comma-separated list of "
				"ipc, net, vm and exec",
				text);
		all |= one;
		p += n;
		if (!*p)
			break;
	}
	kinds_on = all;
	return 0;
}

const char *trace_words(void)
{
	static char text[32];
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < TRACE_N_KINDS; i++)
		if (kinds_on & 1U << i)
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, "%s%s", n ? "," : "", kind_names[i]);
	return text;
}

bool trace_on(enum trace_kind kind)
{
	return kinds_on & 1U << kind;
}

/* ---- the file ---- */

static void open_file(void)
{
	struct stat st;

	/* A FIFO without a reader must not block the program. */
	file.fd = open(file.path,
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (file.fd >= 0 && fstat(file.fd, &st) == 0 && S_ISREG(st.st_mode)) {
		file.n = (size_t)st.st_size;
		return;
	}
	errno = file.fd >= 0 ? EINVAL : errno;
	fd_close(&file.fd);
	kinds_on = 0;
	log_error("tracing is off: cannot open %s: %s", file.path, strerror(errno));
}

static void rotate_file(void)
{
	AUTO_FREE char *old = xasprintf("%s.1", file.path);

	fd_close(&file.fd);
	if (rename(file.path, old) < 0) {
		kinds_on = 0;
		log_error("tracing is off: cannot rename %s: %s", file.path, strerror(errno));
		return;
	}
	open_file();
}

static void write_file(const char *line, size_t n)
{
	if (getpid() != file.owner)
		return;
	if (file.n + n > TRACE_MAX_BYTES)
		rotate_file();
	if (file.fd >= 0 && write(file.fd, line, n) == (ssize_t)n)
		file.n += n;
}

void trace_open(const char *path)
{
	if (!kinds_on)
		return;
	fd_close(&file.fd);
	free(file.path);
	file.path = xstrdup(path);
	file.owner = getpid();
	write_line = write_file;
	open_file();
}

void trace_line(enum trace_kind kind, const char *fmt, ...)
{
	char line[LOG_MAX_LINE], word[16];
	va_list ap;
	size_t n;

	if (!trace_on(kind))
		return;
	(void)snprintf(word, sizeof(word), "trace %s", kind_names[kind]);
	va_start(ap, fmt);
	n = log_format(line, word, fmt, ap);
	va_end(ap);
	if (write_line)
		write_line(line, n);
	else
		(void)!write(STDERR_FILENO, line, n);
}
