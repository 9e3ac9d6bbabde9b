/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_debug - a report about one sandbox for a person who helps: states, rules, logs, traces.
 *
 * How      Parts are the output of other sbx commands, the list of the sandbox's processes, and the
 *          end of log files. Each part is limited, and a part that fails has the reason instead.
 * Trust    Log files may be written by a compromised keeper: links are not followed, and only
 *          regular files are read. Control characters are replaced.
 * Never    Queries the vault for a value. Contains values of environment variables, command lines,
 *          paths of URLs, or output of the guest: lines of the guest console are omitted.
 * Limits   MAX_PART bytes of a file, MAX_LINES of a command, MAX_PROCESSES.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/rules/spec/spec.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/api/out_place.h"
#include "lib/client/cli/follow.h"
#include "host.h"

#define MAX_PART (1 << 20)
#define MAX_LINES 2000
#define MAX_PROCESSES 65536
#define MAX_DEPTH 8
#define COMMAND_MS 60000
#define CONSOLE "sbx-keeper[%*d] info: console: %n" /* a line that the guest wrote */

static const struct opt_def opts[] = {
	{'o', "output", "FILE", "write the report to FILE (default: stdout)"},
	{0},
};

static void print_title(FILE *out, const char *title)
{
	(void)fprintf(out, "\n==== %s ====\n", title);
}

/* ---- commands ---- */

struct lines {
	FILE *out;
	size_t n;
};

static void print_line(void *arg, char *line)
{
	struct lines *l = arg;

	if (l->n++ < MAX_LINES)
		(void)fprintf(l->out, "%s\n", line);
}

static void print_command(FILE *out, const char *ref, const char *const *words)
{
	const char *argv[8] = {"/proc/self/exe"};
	struct lines lines = {.out = out};
	struct follow f = {.argv = argv,
		.lines = 1,
		.in_fd = -1,
		.out_fd = -1,
		.max_ms = COMMAND_MS,
		.fn = print_line,
		.arg = &lines};
	struct err err = {0};
	int r;

	(void)fprintf(out, "\n==== sbx");
	for (size_t i = 0; words[i]; i++) {
		argv[i + 1] = strcmp(words[i], "SANDBOX") == 0 ? ref : words[i];
		(void)fprintf(out, " %s", argv[i + 1]);
	}
	(void)fprintf(out, " ====\n");
	r = follow_run(&f, &err);
	if (lines.n > MAX_LINES)
		(void)fprintf(out, "(%zu more lines omitted)\n", lines.n - MAX_LINES);
	if (r != 0)
		(void)fprintf(out, "(failed: %s)\n", r < 0 ? err_text(&err, r) : "see above");
}

static void print_commands(FILE *out, const char *ref)
{
	static const char *const all[][6] = {{"version"}, {"inspect", "SANDBOX"},
		{"policy", "ls", "--wide", "SANDBOX"},
		{"policy", "log", "--limit", "50", "SANDBOX"}, {"settings", "list"}, {"diagnose"}};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		print_command(out, ref, all[i]);
}

/* ---- processes ---- */

struct process {
	int pid, parent;
	bool is_listed;
	char text[128];
};

/* Not the command line: it contains paths of the user. */
static bool read_process(const char *name, struct process *ret)
{
	AUTO_FREE char *path = xasprintf("/proc/%s/stat", name), *text = NULL;
	unsigned long user, kernel;
	char state, *after, *comm;
	long threads, pages;
	size_t n;

	if (name[0] < '1' || name[0] > '9' || file_load(path, 4096, &text, &n, NULL) < 0)
		return false;
	comm = strchr(text, '(');
	after = strrchr(text, ')');
	if (!comm || !after ||
		sscanf(after + 1,
			" %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d "
			"%*d %*d %*d %ld %*d %*u %*u %ld",
			&state, &ret->parent, &user, &kernel, &threads, &pages) != 6)
		return false;
	*after = '\0';
	ret->pid = atoi(name);
	ret->is_listed = false;
	(void)snprintf(ret->text, sizeof(ret->text),
		"%-16.16s state %c, %ld threads, %ld MiB, %lu s of CPU time", comm + 1, state,
		threads, pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024,
		(user + kernel) / (unsigned long)sysconf(_SC_CLK_TCK));
	ui_clean(ret->text);
	return true;
}

static size_t read_processes(struct process **ret)
{
	AUTO_DIR DIR *dir = opendir("/proc");
	struct process one;
	struct dirent *e;
	size_t n = 0;

	while (n < MAX_PROCESSES && (e = dir_next(dir)))
		if (read_process(e->d_name, &one)) {
			if ((n & (n - 1)) == 0)
				*ret = xrealloc(*ret, (n ? 2 * n : 1) * sizeof(one));
			(*ret)[n++] = one;
		}
	return n;
}

/* A process and its descendants. */
static void print_tree(FILE *out, struct process *all, size_t n, struct process *one, int depth)
{
	one->is_listed = true;
	(void)fprintf(out, "%*s%d %s\n", 2 * depth, "", one->pid, one->text);
	for (size_t i = 0; i < n && depth < MAX_DEPTH; i++)
		if (all[i].parent == one->pid && !all[i].is_listed)
			print_tree(out, all, n, &all[i], depth + 1);
}

static void print_processes(FILE *out, const char *id)
{
	AUTO_FREE char *dir = spec_dir(id), *note = xasprintf("%s/keeper", dir), *text = NULL;
	AUTO_FREE struct process *all = NULL;
	size_t n = read_processes(&all), len;

	print_title(out, "processes");
	if (file_load_no_link(note, 64, &text, &len, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++)
		if (all[i].pid == atoi(text)) {
			print_tree(out, all, n, &all[i], 0);
			return;
		}
	(void)fprintf(out, "(sbx-keeper is not running)\n");
}

/* ---- files ---- */

static bool is_console(const char *line)
{
	int end = 0;

	(void)sscanf(line, "%*s " CONSOLE, &end);
	return end > 0;
}

static void print_lines(FILE *out, char *text)
{
	size_t omitted = 0;

	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (is_console(line)) {
			omitted++;
			continue;
		}
		ui_clean(line);
		(void)fprintf(out, "%s\n", line);
	}
	if (omitted)
		(void)fprintf(out, "(%zu lines of the guest console omitted)\n", omitted);
}

/* The end of a file, from the beginning of a line. */
static int load_tail(const char *path, char **ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	AUTO_FREE char *text = NULL;
	struct stat st;
	off_t from;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	from = MAX(st.st_size - MAX_PART, (off_t)0);
	text = xcalloc(1, MAX_PART + 1);
	n = pread(fd, text, MAX_PART, from);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	for (ssize_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : '?';
	*ret = from > 0 && strchr(text, '\n') ? xstrdup(strchr(text, '\n') + 1) : TAKE(text);
	return 0;
}

static void print_file(FILE *out, const char *path)
{
	AUTO_FREE char *text = NULL;
	int r = load_tail(path, &text);

	if (r == -ENOENT)
		return;
	print_title(out, path);
	if (r < 0)
		(void)fprintf(out, "(cannot be read: %s)\n", strerror(-r));
	else
		print_lines(out, text);
}

static void print_files(FILE *out, const char *id)
{
	static const char *const of_sandbox[] = {"keeper.log", "trace.log.1", "trace.log"};
	static const char *const of_user[] = {"sbxd.log", "sbxd-trace.log", "vault.log"};

	for (size_t i = 0; i < ARRAY_LEN(of_sandbox); i++) {
		AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/%s", id, of_sandbox[i]);

		print_file(out, path);
	}
	for (size_t i = 0; i < ARRAY_LEN(of_user); i++) {
		AUTO_FREE char *path = paths_get(PATHS_STATE, "%s", of_user[i]);

		print_file(out, path);
	}
}

/* ---- the report ---- */

static void print_report(FILE *out, const char *ref, const char *id)
{
	struct utsname host = {0};
	time_t t = time(NULL);
	struct tm tm = {0};
	char now[32] = "";

	(void)uname(&host);
	(void)strftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&t, &tm));
	(void)fprintf(out,
		"sbx debug report for sandbox %s\n"
		"created %s by sbx " SBX_VERSION " on %s %s %s\n\n"
		"This report has no credentials, no values of environment variables, no command\n"
		"lines and no output of the guest. It has names: of hosts, credentials, workspaces\n"
		"and other sandboxes. Read it before you pass it on.\n",
		id, now, host.sysname, host.release, host.machine);
	print_commands(out, ref);
	print_processes(out, id);
	print_files(out, id);
}

/* Complete or not at all, mode 0600. */
static int write_report(const char *path, const char *ref, const char *id, struct problem *p)
{
	AUTO_FILE_NEW struct file_new f = {.fd = -1};
	AUTO_OUT_PLACE struct out_place place = {.dir = -1};
	FILE *out = NULL;
	int r = out_place_find(path, &place, p);

	if (r >= 0)
		r = file_new_open(&f, place.path, &p->err);
	if (r >= 0)
		out = fdopen(dup(f.fd), "w");
	if (!out)
		return r < 0 ? r : err_errno(&p->err, -errno, "cannot open %s", path);
	print_report(out, ref, id);
	r = ferror(out) ? -EIO : 0;
	if (fclose(out) != 0 || r < 0)
		return err_errno(&p->err, -errno, "cannot write %s", path);
	r = file_new_keep(&f, 0600, &p->err);
	if (r >= 0)
		ui_note("Wrote %s. Read it before you pass it on.", path);
	return r;
}

static int run_debug(struct opts *o)
{
	const char *ref = o->args.v[0], *file = opts_value(o, "output"), *id;
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = sandbox_get(ref, &s, &p);

	/* An sbxd that does not respond is a reason for a report. */
	if (r < 0 && (strcmp(p.code, "not-found") == 0 || !spec_is_id(ref)))
		return ui_problem(&p, r);
	id = r < 0 ? ref : api_str(s, "id");
	if (!file) {
		print_report(stdout, ref, id);
		return EXIT_OK;
	}
	p = (struct problem){0};
	r = write_report(file, ref, id, &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_debug = {
	.name = "debug",
	.group = "management",
	.args = "SANDBOX",
	.summary = "write a report about a sandbox for debugging",
	.about =
		"Collects the state of a sandbox, its rules and requests, the settings, the checks "
		"of\n"
		"sbx diagnose, its processes, and the ends of its logs and traces. The report has "
		"no\n"
		"credentials, no values of environment variables and no output of the guest. "
		"SANDBOX\n"
		"can be an ID if sbxd does not respond.",
	.examples = "  sbx debug demo -o report.txt\n  sbx debug demo | less\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_debug,
};
