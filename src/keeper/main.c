/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbx-keeper - owns one running sandbox; see README in this directory.
 *
 * How      sbxd starts `sbx-keeper --id ID` with a connection on fd 3. The keeper outlives sbxd and
 *          exits with its sandbox. One loop, one switch.
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/log.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/base/trace.h"
#include "lib/os/jail/broker.h"
#include "lib/os/jail/sweep.h"

#define SBXD_FD 3

/* Each connection of the guest passes two sockets through. The kernel counts the sockets that this
 * user's processes have sent and not yet received, and compares that with the sender's limit. The
 * keeper's limit is above that of jailed programs (lib/os/jail/profiles.c) and below that of sbxd:
 * a compromised keeper cannot prevent sbxd from killing it. */
static void raise_file_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	r.rlim_cur = MIN(r.rlim_max - r.rlim_max / 16, (rlim_t)524288);
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

/* The keys of the audit logs and of the sandbox CA must not get into a core file. A limit of 0
 * would still feed a core_pattern that is a pipe; 1 disables files and pipes. */
static void forbid_core(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_CORE, &r) < 0)
		die("cannot set the limit of core files: %s", strerror(errno));
	r.rlim_cur = r.rlim_max = MIN(r.rlim_max, (rlim_t)1);
	if (setrlimit(RLIMIT_CORE, &r) < 0)
		die("cannot disable core files: %s", strerror(errno));
}

/* One keeper per sandbox: the lock is held until the process exits. */
static void take_lock(struct keeper *k)
{
	AUTO_FREE char *path = xasprintf("%s/lock", k->dir);
	struct err err = {0};

	/* The last keeper of this sandbox may have been compromised and have created a symlink. */
	k->lock_fd = file_lock(path, 0, &err);
	if (k->lock_fd == -EBUSY)
		die("another sbx-keeper is running for this sandbox (%s)", path);
	if (k->lock_fd < 0)
		die("%s", err.text);
}

static void load_spec(struct keeper *k, const char *id)
{
	AUTO_FREE char *path = NULL;
	struct err err = {0};
	int r;

	k->dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	k->run_dir = paths_get(PATHS_RUNTIME, "s/%s", id);
	take_lock(k);
	path = spec_path(id);
	r = spec_load(path, &k->spec, &err);
	if (r < 0)
		die("cannot read %s: %s", path, err_text(&err, r));
	if (strcmp(k->spec.id, id) != 0)
		die("%s belongs to another sandbox", path);
	r = paths_make(k->run_dir, &err);
	if (r < 0)
		die("%s", err_text(&err, r));
}

/* Before any child is started: children inherit it. */
static void enter_cgroup(struct keeper *k)
{
	const struct jail_cgroup_limits limits = {
		.memory_max = k->spec.memory + KEEPER_CGROUP_MORE, .pids_max = KEEPER_CGROUP_PIDS};
	struct err err = {0};
	int r = jail_cgroup_enter(NULL, k->spec.id, &limits, &k->cgroup, &err);

	if (r < 0)
		log_info("no memory limit: %s", err_text(&err, r));
}

/* Before the keeper seals itself. */
static void open_trace(const struct keeper *k)
{
	AUTO_FREE char *path = xasprintf("%s/trace.log", k->dir);

	trace_open(path);
}

static void open_loop(struct keeper *k)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1};

	if (loop_init(&k->loop) < 0 || chatter_open(k) < 0)
		die("cannot create the event loop");
	k->sig_fd = loop_signalfd(signals, ARRAY_LEN(signals));
	if (k->sig_fd < 0 ||
		loop_add(&k->loop, k->sig_fd, EPOLLIN, (struct loop_key){.kind = EV_SIGNAL}) < 0)
		die("cannot receive signals");
}

static void open_links(struct keeper *k)
{
	struct err err = {0};
	int r = link_listen(k, &err);

	if (r < 0)
		die("%s", err_text(&err, r));
	if (fcntl(SBXD_FD, F_GETFD) >= 0 && fd_set_cloexec(SBXD_FD, true) == 0)
		link_add(k, SBXD_FD, true);
}

static void run_loop(struct keeper *k)
{
	struct err err = {0};
	int r = start_prepare(k, &err);

	if (r == 0)
		r = start_go_on(k, &err);
	if (r < 0)
		stop_begin(k, 0, err_text(&err, r));
	while (!k->over) {
		struct loop_event ev;

		loop_next(&k->loop, &ev);
		keeper_dispatch(k, &ev);
		record_arm(k);
	}
}

/* `sbx-keeper --selftest`: checks that KVM really runs a VM. One line, exit status 0 or 1. */
static int run_selftest(struct keeper *k)
{
	AUTO_FREE char *run_dir = paths_get(PATHS_RUNTIME, NULL);
	struct err err = {0};
	int r = paths_make(run_dir, &err);

	(void)!str_copy(k->spec.template, sizeof(k->spec.template), "debian");
	if (r == 0)
		r = start_selftest(k, &err);
	printf("%s\n", r < 0 ? err_text(&err, r) : "KVM booted a machine");
	return r < 0 ? 1 : 0;
}

struct options {
	const char *id;
	const char *state;	   /* its installation, for readers of the process list */
	const char *jail;	   /* the program whose system call list is tested */
	const char *root, *docker; /* layers to merge */
	bool selftest, cold, make_image, pool, merge;
	struct make_options make;
};

static struct options parse_options(int argc, char **argv)
{
	static const struct option options[] = {{"id", required_argument, NULL, 'i'},
		{"selftest", no_argument, NULL, 's'}, {"cold", no_argument, NULL, 'C'},
		{"make-image", no_argument, NULL, 'M'}, {"template", required_argument, NULL, 't'},
		{"cpus", required_argument, NULL, 'c'}, {"memory", required_argument, NULL, 'm'},
		{"accel", required_argument, NULL, 'a'}, {"disk", required_argument, NULL, 'd'},
		{"pool", no_argument, NULL, 'P'}, {"jail-selftest", required_argument, NULL, 'j'},
		{"state", required_argument, NULL, 'S'}, {"merge", no_argument, NULL, 'G'},
		{"root", required_argument, NULL, 'r'}, {"docker", required_argument, NULL, 'k'},
		{0}};
	struct options o = {0};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'i')
			o.id = optarg;
		else if (c == 't')
			o.make.template = optarg;
		else if (c == 'c')
			o.make.cpus = optarg;
		else if (c == 'm')
			o.make.memory = optarg;
		else if (c == 'd')
			o.make.disk = optarg;
		else if (c == 'a')
			o.make.accel = optarg;
		else if (c == 'j')
			o.jail = optarg;
		else if (c == 'S')
			o.state = optarg;
		else if (c == 'r')
			o.root = optarg;
		else if (c == 'k')
			o.docker = optarg;
		o.selftest |= c == 's';
		o.merge |= c == 'G';
		o.cold |= c == 'C';
		o.make_image |= c == 'M';
		o.pool |= c == 'P';
	}
	if (!o.selftest && !o.jail && !o.make_image && (!o.id || !spec_is_id(o.id)))
		die("usage: sbx-keeper --id ID [--state=DIR] [--cold | --pool] (started by sbxd), "
		    "sbx-keeper --merge --id ID [--root N,...] [--docker N,...], "
		    "sbx-keeper --selftest, sbx-keeper --jail-selftest PROGRAM "
		    "or sbx-keeper --make-image [--template NAME] [--cpus N] [--memory BYTES] "
		    "[--disk BYTES]");
	return o;
}

/* The user's other programs must not read the keys in this memory. */
static void close_to_others(const struct options *o)
{
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);
	struct err err = {0};
	int r = jail_broker_close(&err);

	if (r < 0)
		die("%s", err_text(&err, r));
	if (o->state && strcmp(o->state, state) != 0)
		die("--state is %s, but the environment has %s", o->state, state);
}

int main(int argc, char **argv)
{
	static struct keeper k;
	struct err err = {0};
	struct options o;

	log_init("sbx-keeper");
	if (trace_init(&err) < 0)
		die("%s", err.text);
	(void)umask(0077);
	if (getuid() == 0)
		die("sbx runs as an ordinary user: root is never needed");
	o = parse_options(argc, argv);
	if (o.jail)
		return jail_sweep_named(o.jail);
	close_to_others(&o);
	keeper_init(&k);
	if (o.selftest)
		return run_selftest(&k);
	raise_file_limit();
	forbid_core();
	if (o.merge)
		return merge_main(o.id, o.root, o.docker);
	if (o.make_image) {
		open_loop(&k);
		return make_main(&k, &o.make);
	}
	k.plan = o.pool ? START_POOL : o.cold ? START_COLD : START_WARM;
	load_spec(&k, o.id);
	open_trace(&k);
	enter_cgroup(&k);
	open_loop(&k);
	open_links(&k);
	if (!o.pool)
		netpolicy_init(&k); /* else at the claim */
	run_loop(&k);
	jail_cgroup_leave(&k.cgroup);
	return 0;
}
