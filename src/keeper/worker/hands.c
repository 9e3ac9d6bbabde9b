/* SPDX-License-Identifier: Apache-2.0 */
#include "hands.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "worker.h"
#include "lib/vm/template/template.h"
#include "lib/base/fs/file.h"
#include "lib/base/process/inventory.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/program/run_places.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/vmm/args.h"
#include "lib/vm/vmm/disk.h"

enum hands_kind {
	HANDS_SHARE = WORKER_OWN,
	HANDS_LISTEN,
	HANDS_CONNECT,
	HANDS_SSH_AGENT,
	HANDS_ASKPASS,
	HANDS_ORIGIN,
	HANDS_DROP_IMAGE,
	HANDS_PUBLISH,
	HANDS_CLAIM,
	HANDS_LEAVE,
};

/* ---- the workspaces ---- */

/* An unreadable settings file permits nothing. */
static bool special_files_are_permitted(void)
{
	AUTO_SETTINGS struct settings s = {0};

	return settings_load(&s, NULL) == 0 &&
	       strcmp(settings_get(&s, SETTINGS_SHARE_SPECIAL_FILES), "true") == 0;
}

const struct spec_workspace *hands_nth_mount(const struct keeper *k, size_t i)
{
	size_t n = k->spec.n_workspaces;

	return i < n ? &k->spec.workspaces[i] : &k->spec.mounts[i - n];
}

static enum guard_level guard_level(enum spec_guard guard)
{
	static const enum guard_level levels[] = {
		[SPEC_GUARD_UNSET] = GUARD_REPORT,
		[SPEC_GUARD_OFF] = GUARD_OFF,
		[SPEC_GUARD_REPORT] = GUARD_REPORT,
		[SPEC_GUARD_DEFAULT] = GUARD_DEFAULT,
		[SPEC_GUARD_STRICT] = GUARD_STRICT,
	};
	static_assert(ARRAY_LEN(levels) == SPEC_N_GUARDS, "a level for each");

	return levels[guard];
}

/* The sealed keeper can write here: no symlink is followed. */
static int open_guard_dir(const struct keeper *k, struct err *err)
{
	AUTO_FREE char *dir = xasprintf("%s/guard", k->dir);
	int fd;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(err, -errno, "cannot create %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(err, -errno, "cannot open %s", dir) : fd;
}

/* Without the list nothing could be denied: the start fails. */
static int load_guard(
	const struct keeper *k, struct autorun_list **ret, int *ret_dir_fd, struct err *err)
{
	int r = autorun_load(ret, err);

	for (size_t i = 0; r == 0 && i < k->spec.n_guard_except; i++)
		r = autorun_except(*ret, k->spec.guard_except[i], err);
	if (r == 0)
		r = *ret_dir_fd = open_guard_dir(k, err);
	return r < 0 ? err_wrap(err, r, "cannot guard the workspaces") : 0;
}

static int start_guarded(const struct keeper *k, struct share_config *config, int event_fd,
	struct share *ret, struct err *err)
{
	AUTO_AUTORUN struct autorun_list *list = NULL;
	AUTO_CLOSE int dir_fd = -1;
	enum guard_level level = guard_level(k->spec.guard);
	int r = level == GUARD_OFF ? 0 : load_guard(k, &list, &dir_fd, err);

	config->guard = (struct guard_config){
		.level = level, .list = list, .dir_fd = dir_fd, .event_fd = event_fd};
	return r < 0 ? r : share_start(config, ret, err);
}

static int do_share(struct keeper *k, int log_fd, int event_fd, struct share *ret, struct err *err)
{
	struct share_mount mounts[SPEC_MAX_WORKSPACES];
	struct share_config config = {.mounts = mounts,
		.n_mounts = k->spec.n_workspaces + k->spec.n_mounts,
		.hide = (const char *const *)k->spec.hide,
		.n_hide = k->spec.n_hide,
		.force = k->spec.force,
		.special_files = special_files_are_permitted(),
		.room = true,
		.log_fd = log_fd};

	for (size_t i = 0; i < config.n_mounts; i++) {
		const struct spec_workspace *w = hands_nth_mount(k, i);

		mounts[i] = (struct share_mount){.host = w->host,
			.guest = w->guest,
			.ro = w->ro || (k->spec.staged && i < k->spec.n_workspaces),
			.own = i >= k->spec.n_workspaces};
	}
	return start_guarded(k, &config, event_fd, ret, err);
}

static void put_child(struct wr *w, const struct jail_child *c)
{
	wr_u32(w, (uint32_t)c->pid);
	wr_u32(w, c->nofile);
}

static struct jail_child get_child(struct rd *rd)
{
	return (struct jail_child){
		.pid = (pid_t)rd_u32(rd), .nofile = rd_u32(rd), .pidfd = -1, .notify_fd = -1};
}

/* The last two exist with hidden names or a guard, and with a guard. */
enum share_fd { SHARE_FD_CHILD, SHARE_FD_VHOST, SHARE_FD_ROOM, SHARE_FD_HIDDEN, SHARE_FD_HAND };

static int serve_share(
	struct keeper *k, struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	struct wr w = wr_init(a->body, sizeof(a->body));
	struct share s = SHARE_EMPTY;
	int event_fd = q->n_fds == 2 ? q->fds[1] : -1;
	int r = q->n_fds == 1 || q->n_fds == 2 ? do_share(k, q->fds[0], event_fd, &s, err)
					       : -EBADMSG;

	if (r == 0)
		r = spawner_keep(s.child.pid, err);
	if (r == 0 && s.hidden.pidfd >= 0)
		r = spawner_keep(s.hidden.pid, err);
	if (r == 0 && s.hand.pidfd >= 0)
		r = spawner_keep(s.hand.pid, err);
	if (r < 0) {
		share_stop(&s);
		return r;
	}
	put_child(&w, &s.child);
	put_child(&w, &s.hidden);
	put_child(&w, &s.hand);
	wr_u32(&w, s.room.nofile);
	wr_u8(&w, s.room.is_socket);
	a->n = w.n;
	a->fds[SHARE_FD_CHILD] = s.child.pidfd;
	a->fds[SHARE_FD_VHOST] = s.vhost_fd;
	a->fds[SHARE_FD_ROOM] = s.room.fd;
	a->fds[SHARE_FD_HIDDEN] = s.hidden.pidfd;
	a->fds[SHARE_FD_HAND] = s.hand.pidfd;
	a->n_fds = s.hand.pidfd >= 0 ? 5 : s.hidden.pidfd >= 0 ? 4 : 3;
	return 0;
}

int hands_share(struct keeper *k, int event_fd, struct share *ret, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_SHARE);
	struct share s = SHARE_EMPTY;
	struct rd rd;
	int r;

	if (!worker_is_on())
		return do_share(k, k->chatter_wr, event_fd, ret, err);
	m->fds[m->n_fds++] = k->chatter_wr;
	if (event_fd >= 0)
		m->fds[m->n_fds++] = event_fd;
	r = worker_ask(m, err);
	if (r < 0)
		return r;
	rd = rd_init(slice_of(m->body, m->n));
	s.child = get_child(&rd);
	s.hidden = get_child(&rd);
	s.hand = get_child(&rd);
	s.room.nofile = rd_u32(&rd);
	s.room.is_socket = rd_u8(&rd);
	s.child.pidfd = worker_take_fd(m, SHARE_FD_CHILD);
	s.vhost_fd = worker_take_fd(m, SHARE_FD_VHOST);
	s.room.fd = worker_take_fd(m, SHARE_FD_ROOM);
	s.hidden.pidfd = worker_take_fd(m, SHARE_FD_HIDDEN);
	s.hand.pidfd = worker_take_fd(m, SHARE_FD_HAND);
	if (rd_finish(&rd) < 0 || s.room.fd < 0) {
		share_stop(&s);
		return err_set(err, -EBADMSG, "the spawner returned no share");
	}
	*ret = s;
	return 0;
}

/* ---- the guest's ports ---- */

/* Creates the socket for a guest port. Its name is removed immediately: after that, connecting
 * requires ret_path. */
static int make_port(
	const struct keeper *k, const char *name, int *ret_fd, int *ret_path, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", k->run_dir, name);

	if (fd < 0)
		return err_errno(err, -errno, "cannot create a socket");
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return err_set(err, -ENAMETOOLONG, "%s is too long", k->run_dir);
	(void)unlink(sa.sun_path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 1) < 0)
		return err_errno(err, -errno, "cannot listen on %s", sa.sun_path);
	fd_close(ret_path);
	*ret_path = open(sa.sun_path, O_PATH | O_CLOEXEC);
	(void)unlink(sa.sun_path);
	if (*ret_path < 0)
		return err_errno(err, -errno, "cannot keep %s open", sa.sun_path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int do_listen(struct keeper *k, int fds[HANDS_N_PORTS], struct err *err)
{
	int r = make_port(k, "port", &fds[HANDS_CTL], &k->port_path[HANDS_CTL], err);

	return r < 0 ? r : make_port(k, "net", &fds[HANDS_NET], &k->port_path[HANDS_NET], err);
}

int hands_listen(struct keeper *k, int fds[HANDS_N_PORTS], struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_LISTEN);
	int r;

	if (!worker_is_on())
		return do_listen(k, fds, err);
	r = worker_ask(m, err);
	if (r < 0)
		return r;
	fds[HANDS_CTL] = worker_take_fd(m, HANDS_CTL);
	fds[HANDS_NET] = worker_take_fd(m, HANDS_NET);
	return fds[HANDS_NET] < 0 ? err_set(err, -EBADMSG, "the spawner returned no port") : 0;
}

/* Through /proc: the name was removed from the file system, so no other process can connect. */
static int do_connect(const struct keeper *k, unsigned port, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (port >= HANDS_N_PORTS)
		return -EBADMSG;
	if (fd < 0)
		return err_errno(err, -errno, "cannot create a socket");
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d", k->port_path[port]);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return err_errno(err, -errno, "cannot connect to the port of the guest");
	return TAKE_FD(fd);
}

int hands_connect(struct keeper *k, enum hands_port port, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_CONNECT);

	if (!worker_is_on())
		return do_connect(k, port, err);
	m->body[m->n++] = (uint8_t)port;
	return worker_ask_fd(m, err);
}

/* ---- the host's SSH agent, and the person ---- */

static int do_ssh_agent(const struct keeper *k, struct err *err)
{
	const char *path = k->spec.ssh.socket;
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!path)
		return err_set(err, -ENOENT, "the sandbox has no SSH agent");
	if (fd < 0)
		return err_errno(err, -errno, "cannot create a socket");
	if (str_copy(to.sun_path, sizeof(to.sun_path), path) < 0)
		return err_set(err, -ENAMETOOLONG, "the path of the SSH agent socket is too long");
	/* A Unix socket connects immediately or fails. */
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return err_errno(err, -errno, "cannot connect to the SSH agent at %s", path);
	return TAKE_FD(fd);
}

int hands_ssh_agent(struct keeper *k, struct err *err)
{
	return worker_is_on() ? worker_ask_fd(worker_question(HANDS_SSH_AGENT), err)
			      : do_ssh_agent(k, err);
}

/* As in OpenSSH: the program's exit status is the answer to the prompt. */
static void become_askpass(const struct spec_ssh *ssh, const char *prompt)
	__attribute__((noreturn));
static void become_askpass(const struct spec_ssh *ssh, const char *prompt)
{
	char *env[SPEC_MAX_SSH_ENV + 4];
	char *const argv[] = {ssh->askpass, (char *)prompt, NULL};
	sigset_t none;
	size_t n = 0;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < ssh->n_env; i++)
		env[n++] = ssh->env[i];
	env[n++] = (char *)"SSH_ASKPASS_PROMPT=confirm";
	env[n++] = (char *)"PATH=/usr/local/bin:/usr/bin:/bin";
	env[n] = NULL;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(127);
	(void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	(void)execve(ssh->askpass, argv, env);
	_exit(127);
}

/* Opens the pidfd of pid; kills pid on failure. */
static int watch_pid(pid_t pid, struct jail_child *ret, struct err *err)
{
	int r;

	*ret = (struct jail_child){.pid = pid, .pidfd = -1, .notify_fd = -1};
	if (pid < 0)
		return err_errno(err, -errno, "fork");
	ret->pidfd = pidfd_open(pid, 0);
	if (ret->pidfd >= 0)
		return 0;
	r = -errno;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return err_errno(err, r, "pidfd_open");
}

static int do_askpass(struct keeper *k, const char *prompt, struct jail_child *ret, struct err *err)
{
	pid_t pid;
	int r;

	if (!k->spec.ssh.confirm || !k->spec.ssh.askpass)
		return err_set(err, -ENOENT, "the sandbox does not prompt for signatures");
	r = run_places_permit_program(k->spec.ssh.askpass, err);
	if (r < 0)
		return r;
	pid = fork();
	if (pid == 0)
		become_askpass(&k->spec.ssh, prompt);
	return watch_pid(pid, ret, err);
}

/* ---- sbx-origin ---- */

static void exec_origin(const char *program, int sock, int log_fd) __attribute__((noreturn));
static void exec_origin(const char *program, int sock, int log_fd)
{
	char *const argv[] = {(char *)"sbx-origin", NULL}, *const no_env[] = {NULL};
	int high = fcntl(sock, F_DUPFD, 100), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int out = log_fd >= 0 ? fcntl(log_fd, F_DUPFD, 100) : null;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (high < 0 || null < 0 || out < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
		dup2(out, 2) < 0 || dup2(high, 3) < 0 || close_range(4, ~0U, 0) < 0)
		_exit(127);
	(void)execve(program, argv, no_env);
	_exit(127);
}

/* Started outside the jail: sbx-origin enters it itself, hidden from the user's other processes. */
static int do_origin(int sock, int log_fd, struct jail_child *ret, struct err *err)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "sbx-origin");
	pid_t parent = getpid(), pid;

	if (access(program, X_OK) < 0)
		return err_errno(err, -errno, "%s", program);
	pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(127);
		exec_origin(program, sock, log_fd);
	}
	return watch_pid(pid, ret, err);
}

/* ---- questions whose answer is a process ---- */

static int give_child(int r, struct jail_child *c, struct worker_msg *a, struct err *err)
{
	struct wr w = wr_init(a->body, sizeof(a->body));

	if (r == 0)
		r = spawner_keep(c->pid, err);
	if (r < 0) {
		worker_end(c);
		return r;
	}
	put_child(&w, c);
	a->n = w.n;
	a->fds[a->n_fds++] = c->pidfd;
	return 0;
}

static int ask_child(struct worker_msg *m, struct jail_child *ret, struct err *err)
{
	int fd = worker_ask_fd(m, err);
	struct rd rd = rd_init(slice_of(m->body, m->n));

	if (fd < 0)
		return fd;
	*ret = get_child(&rd);
	ret->pidfd = fd;
	return rd_finish(&rd);
}

int hands_askpass(struct keeper *k, const char *prompt, struct jail_child *ret, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_ASKPASS);

	if (!worker_is_on())
		return do_askpass(k, prompt, ret, err);
	m->n = strnlen(prompt, HANDS_MAX_PROMPT - 1);
	memcpy(m->body, prompt, m->n);
	return ask_child(m, ret, err);
}

int hands_origin(struct keeper *k, int sock, struct jail_child *ret, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_ORIGIN);

	if (!worker_is_on())
		return do_origin(sock, k->chatter_wr, ret, err);
	m->fds[m->n_fds++] = sock;
	m->fds[m->n_fds++] = k->chatter_wr;
	return ask_child(m, ret, err);
}

static int serve_askpass(
	struct keeper *k, const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	struct jail_child c = {.pidfd = -1, .notify_fd = -1};
	char prompt[HANDS_MAX_PROMPT];

	if (slice_to_cstr(slice_of(q->body, q->n), prompt, sizeof(prompt)) < 0)
		return -EBADMSG;
	return give_child(do_askpass(k, prompt, &c, err), &c, a, err);
}

static int serve_origin(const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	struct jail_child c = {.pidfd = -1, .notify_fd = -1};

	if (q->n_fds != 2)
		return -EBADMSG;
	return give_child(do_origin(q->fds[0], q->fds[1], &c, err), &c, a, err);
}

/* ---- files of the installation ---- */

void hands_drop_image(struct keeper *k)
{
	if (!worker_is_on())
		image_remove(k->image_key);
	else
		(void)!worker_ask(worker_question(HANDS_DROP_IMAGE), NULL);
}

int hands_publish(struct keeper *k, struct err *err)
{
	return worker_is_on() ? worker_ask(worker_question(HANDS_PUBLISH), err)
			      : k->life->publish(k, err);
}

/* The keeper sent the key before it was sealed. */
static int serve_publish(struct keeper *k, struct err *err)
{
	return k->plan == START_MAKE ? k->life->publish(k, err) : -EBADMSG;
}

/* Reads the spec of the claiming sandbox, which replaces the spec of the pool class. */
static int read_claimed_spec(struct keeper *k, struct err *err)
{
	AUTO_FREE char *path = spec_path(k->spec.id);
	AUTO_SPEC struct spec spec = {0};
	struct spec was = k->spec;
	int r = spec_load(path, &spec, err);

	if (r < 0)
		return err_wrap(err, r, "cannot read %s", path);
	if (strcmp(spec.id, was.id) != 0 || spec.cpus != was.cpus || spec.memory != was.memory ||
		spec.disk != was.disk || strcmp(spec.template_id, was.template_id) != 0)
		return err_set(err, -ESTALE, "the sandbox requires a VM with other values");
	k->spec = spec;
	spec = was; /* freed */
	return 0;
}

int hands_claim(struct keeper *k, struct err *err)
{
	int r = read_claimed_spec(k, err);

	if (r < 0 || !worker_is_on())
		return r;
	r = worker_ask(worker_question(HANDS_CLAIM), err);
	return r < 0 ? r : hands_seal_files(k, false, err);
}

static int serve_claim(struct keeper *k, struct err *err)
{
	int r;

	if (k->plan != START_POOL)
		return err_set(err, -EALREADY, "the VM was already claimed");
	r = read_claimed_spec(k, err);
	if (r == 0)
		k->plan = START_WARM;
	return r;
}

static void do_leave(const struct keeper *k)
{
	AUTO_FREE char *sock = xasprintf("%s/keeper.sock", k->run_dir);
	AUTO_FREE char *inventory = xasprintf("%s/" INVENTORY_NAME, k->run_dir);
	/* The sealed maker has the lock and cannot remove the directory. */
	struct image_draft draft = {
		.dir = k->plan == START_MAKE ? xstrdup(k->dir) : NULL, .lock_fd = -1};

	image_draft_done(&draft);
	(void)unlink(sock);
	(void)unlink(inventory);
	(void)rmdir(k->run_dir);
}

void hands_leave(struct keeper *k)
{
	if (!worker_is_on() || worker_ask(worker_question(HANDS_LEAVE), NULL) < 0)
		do_leave(k);
}

/* ---- the spawner's side ---- */

static int serve_listen(struct keeper *k, struct worker_msg *a, struct err *err)
{
	int fds[HANDS_N_PORTS] = {-1, -1}, r = do_listen(k, fds, err);

	if (r < 0) {
		fd_close(&fds[HANDS_CTL]);
		return r;
	}
	a->fds[HANDS_CTL] = fds[HANDS_CTL];
	a->fds[HANDS_NET] = fds[HANDS_NET];
	a->n_fds = HANDS_N_PORTS;
	return 0;
}

static int serve_request(void *ctx, struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	struct keeper *k = ctx;

	switch ((enum hands_kind)q->kind) {
	case HANDS_SHARE:
		return serve_share(k, q, a, err);
	case HANDS_LISTEN:
		return serve_listen(k, a, err);
	case HANDS_CONNECT:
		return worker_give_fd(a, q->n == 1 ? do_connect(k, q->body[0], err) : -EBADMSG);
	case HANDS_SSH_AGENT:
		return worker_give_fd(a, do_ssh_agent(k, err));
	case HANDS_ASKPASS:
		return serve_askpass(k, q, a, err);
	case HANDS_ORIGIN:
		return serve_origin(q, a, err);
	case HANDS_DROP_IMAGE:
		image_remove(k->image_key);
		return 0;
	case HANDS_PUBLISH:
		return serve_publish(k, err);
	case HANDS_CLAIM:
		return serve_claim(k, err);
	case HANDS_LEAVE:
		do_leave(k);
		return 0;
	}
	return -EBADMSG;
}

/* ---- */

/* Resolved: the spawner compares with where a mount's source really is. */
static void add_root(struct jail_root *roots, size_t *n, const char *path, bool rw)
{
	char *real = realpath(path, NULL);

	if (real)
		roots[(*n)++] = (struct jail_root){real, rw};
}

#define MAX_ROOTS (16 + VMM_N_DISKS * VMM_MAX_LAYERS)

int hands_start(struct keeper *k, struct err *err)
{
	static const char *const readable[] = {"/usr/lib", "/usr/lib64", "/lib", "/lib64",
		"/etc/ld.so.cache", "/usr/share/qemu", "/usr/share/seabios", ARGS_QEMU};
	AUTO_FREE char *edge = paths_get(PATHS_LIBEXEC, "sbx-edge");
	AUTO_FREE char *egress = paths_get(PATHS_LIBEXEC, "sbx-egress");
	AUTO_FREE char *ssh_agent = paths_get(PATHS_LIBEXEC, "sbx-ssh-agent");
	AUTO_FREE char *clerk_git = paths_get(PATHS_LIBEXEC, "sbx-clerk-git");
	AUTO_FREE char *clerk = paths_get(PATHS_LIBEXEC, "sbx-clerk");
	struct jail_root roots[MAX_ROOTS];
	struct spawner_program programs[] = {
		{JAIL_EDGE, edge},
		{JAIL_EGRESS, egress},
		{JAIL_SSH_AGENT, ssh_agent},
		{JAIL_CLERK_GIT, clerk_git},
		{JAIL_CLERK, clerk},
		{JAIL_QEMU, ARGS_QEMU},
		{JAIL_QEMU, DISK_QEMU_IMG},
	};
	struct spawner_rules rules = {.programs = programs,
		.n_programs = ARRAY_LEN(programs),
		.roots = roots,
		.own = serve_request,
		.ctx = k};
	int r;

	for (size_t i = 0; i < ARRAY_LEN(readable); i++)
		add_root(roots, &rules.n_roots, readable[i], false);
	add_root(roots, &rules.n_roots, "/dev/null", true);
	add_root(roots, &rules.n_roots, "/dev/kvm", true);
	add_root(roots, &rules.n_roots, k->initrd, false);
	if (k->stub)
		add_root(roots, &rules.n_roots, k->stub, false);
	add_root(roots, &rules.n_roots, k->template->kernel, false);
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		for (size_t n = 0; n < k->template->disks[i].n; n++)
			add_root(roots, &rules.n_roots, k->template->disks[i].files[n], false);
	add_root(roots, &rules.n_roots, k->dir, true);
	r = spawner_start(&rules, err); /* the spawner has its own copies */
	for (size_t i = 0; i < rules.n_roots; i++)
		free((void *)roots[i].path);
	return r;
}
