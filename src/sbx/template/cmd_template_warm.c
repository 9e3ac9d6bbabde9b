/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/rules/spec/spec.h"
#include "lib/client/api/daemon.h"
#include "lib/client/cli/ui.h"
#include "template_verbs.h"

#define EXIT_BUSY 75
#define MAX_LINE 512

const struct opt_def template_warm_opts[] = {
	{0, "cpus", "N", "number of virtual CPUs (setting vm.cpus)"},
	{'m', "memory", "SIZE", "memory size, for example 2g (setting vm.memory)"},
	{0, "disk", "SIZE", "root disk size, for example 40g (setting vm.disk)"},
	{0},
};

/* The class of VMs of a sandbox with these options. */
struct class
{
	char cpus[16], memory[32], disk[32];
	const char *accel;
};

static int read_class(
	const struct opts *o, struct settings *set, struct class *ret, struct err *err)
{
	const char *cpus = opts_value(o, "cpus"), *memory = opts_value(o, "memory");
	const char *disk = opts_value(o, "disk");
	AUTO_SPEC struct spec spec = {0};
	uint64_t n_cpus, n_memory, n_disk;
	int r = settings_load(set, err);

	if (r == 0)
		r = settings_accel(set, &ret->accel, err);
	if (r < 0)
		return r;
	n_cpus = settings_get_u64(set, SETTINGS_VM_CPUS);
	n_memory = settings_get_u64(set, SETTINGS_VM_MEMORY);
	n_disk = settings_get_u64(set, SETTINGS_VM_DISK);
	if (cpus && str_to_u64(cpus, 1, SPEC_MAX_CPUS, &n_cpus) < 0)
		return err_set(
			err, -EINVAL, "invalid --cpus '%s': expected a number such as 2", cpus);
	if (memory && str_to_size(memory, &n_memory) < 0)
		return err_set(err, -EINVAL,
			"invalid --memory '%s': expected a size such as 512m or 2g", memory);
	if (disk && (str_to_size(disk, &n_disk) < 0 || n_disk < SPEC_MIN_DISK ||
			    n_disk > SPEC_MAX_DISK))
		return err_set(err, -EINVAL,
			"invalid --disk '%s': expected 1g to 1t, for example 40g", disk);
	spec_set_defaults(&spec, (uint32_t)n_cpus, n_memory);
	(void)snprintf(ret->cpus, sizeof(ret->cpus), "%" PRIu32, spec.cpus);
	(void)snprintf(ret->memory, sizeof(ret->memory), "%" PRIu64, spec.memory);
	(void)snprintf(ret->disk, sizeof(ret->disk), "%" PRIu64, n_disk);
	return 0;
}

static void become_maker(
	const char *program, const char *name, const struct class *c, const char *log, int out)
{
	const char *const argv[] = {"sbx-keeper", "--make-image", "--template", name, "--cpus",
		c->cpus, "--memory", c->memory, "--disk", c->disk, "--accel", c->accel, NULL};
	int err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (err < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || close_range(3, ~0u, 0) < 0)
		_exit(127);
	(void)execv(program, (char *const *)argv);
	_exit(127);
}

/* Shows the reason in its last output. */
static void show_lines(int fd, char *why, size_t size, unsigned long long *bytes)
{
	char line[MAX_LINE];
	FILE *f = fdopen(fd, "r");
	int percent, at;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (str_starts(line, "error "))
			(void)snprintf(why, size, "%s", line + 6);
		else if (sscanf(line, "size %llu", bytes) == 1)
			continue;
		else if (sscanf(line, "%d %n", &percent, &at) == 1 && percent >= 0 &&
			 percent <= 100)
			ui_progress((unsigned)percent, line + at);
	}
	(void)fclose(f);
	ui_progress_end();
}

static int make_warm(
	const char *name, const struct class *c, unsigned long long *ret_bytes, struct problem *p)
{
	AUTO_FREE char *program = daemon_helper_path("sbx-keeper");
	AUTO_FREE char *dir = paths_get(PATHS_STATE, NULL), *log = xasprintf("%s/images.log", dir);
	char why[MAX_LINE] = "cannot run sbx-keeper";
	int pipefd[2], status = 0;
	pid_t pid;

	if (paths_make(dir, &p->err) < 0)
		return -EIO;
	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return err_errno(&p->err, -errno, "cannot create a pipe");
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_maker(program, name, c, log, pipefd[1]);
	(void)close(pipefd[1]);
	show_lines(pipefd[0], why, sizeof(why), ret_bytes);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return err_set(&p->err, -EIO, "cannot start %s", program);
	if (status == 0)
		return 0;
	(void)err_set(&p->err, -EIO, "cannot create the snapshot: %s", why);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_BUSY)
		return problem_hint(p, -EBUSY, "sbx template warm %s", name);
	return problem_hint(p, -EIO, "tail %s", log);
}

int template_warm_run(struct opts *o)
{
	const char *name = o->args.n ? o->args.v[0] : "debian";
	AUTO_SETTINGS struct settings set = {0};
	unsigned long long bytes = 0;
	struct problem p = {0};
	struct class c = {0};
	char size[32];
	int r = read_class(o, &set, &c, &p.err);

	if (r < 0)
		return ui_problem(&p, r);
	r = make_warm(name, &c, &bytes, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (bytes == 0) {
		printf("%s Template '%s' already has this snapshot\n", ui_tick(), name);
		return EXIT_OK;
	}
	str_from_size(bytes, size, sizeof(size));
	printf("%s Created a snapshot of template '%s' (%s) for sandboxes with %s CPUs and this "
	       "memory. Start one with: sbx run shell\n",
		ui_tick(), name, size, c.cpus);
	return EXIT_OK;
}
