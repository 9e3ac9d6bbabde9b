/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/program/run_places.h"

#define WAIT_MS 60000

char rig_text[VAULT_MAX_TEXT];
static uint32_t last_id;

/* ---- the programs ---- */

static void make_listener(struct rig *r)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/sock", r->dir);
	r->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(r->listener >= 0);
	assert_int_equal(bind(r->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(r->listener, 64), 0);
}

/* SBX_VAULT_PROGRAMS: paths separated by colons. */
static void link_programs(struct rig *r)
{
	AUTO_FREE char *list = xstrdup(getenv("SBX_VAULT_PROGRAMS"));
	char *rest = NULL;

	for (char *p = strtok_r(list, ":", &rest); p; p = strtok_r(NULL, ":", &rest)) {
		AUTO_FREE char *link = xasprintf("%s/libexec/%s", r->dir, strrchr(p, '/') + 1);

		assert_int_equal(symlink(p, link), 0);
	}
}

static char *inherit(const char *name)
{
	const char *value = getenv(name);

	return xasprintf("%s=%s", value ? name : "UNSET", value ? value : "");
}

static void exec_runner(struct rig *r, const char *const *args)
{
	AUTO_FREE char *program = xasprintf("%s/libexec/sbx-vault-run", r->dir);
	char *argv[8] = {(char *)"sbx-vault-run"};
	int high = fcntl(r->listener, F_DUPFD, 100), owner = fcntl(r->owner_end, F_DUPFD, 100);

	/* first a variable that no program may inherit */
	char *env[] = {(char *)"CANARY_OF_THE_ENVIRONMENT=must-not-be-inherited",
		xasprintf("XDG_STATE_HOME=%s", r->dir), xasprintf("SBX_LIBEXEC=%s/libexec", r->dir),
		inherit("PATH"), inherit("HOME"), inherit("XDG_RUNTIME_DIR"),
		inherit("DBUS_SESSION_BUS_ADDRESS"), NULL};

	for (size_t i = 0; args && args[i] && i < 6; i++)
		argv[i + 1] = (char *)args[i];
	/* a failing test leaves no process behind */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || dup2(r->log, 1) < 0 ||
		dup2(r->log, 2) < 0 || dup2(high, 3) < 0 || dup2(owner, 4) < 0)
		_exit(126);
	(void)close_range(5, ~0U, 0);
	(void)execve(program, argv, env);
	_exit(127);
}

void rig_start(struct rig *r, const char *const *args)
{
	int pair[2];

	assert_int_equal(r->pid, 0);
	fd_close(&r->owner);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	r->owner = pair[0];
	r->owner_end = pair[1];
	r->pid = fork();
	if (r->pid == 0)
		exec_runner(r, args);
	assert_true(r->pid > 0);
	fd_close(&r->owner_end);
}

struct rig *rig_new(const char *const *args)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	char path[96];

	r->owner = r->owner_end = -1;

	(void)snprintf(r->dir, sizeof(r->dir), "/tmp/sbx-vault-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	assert_int_equal(setenv("XDG_STATE_HOME", r->dir, 1), 0);
	assert_int_equal(run_places_prepare(NULL), 0); /* as sbxd does */
	(void)snprintf(path, sizeof(path), "%s/libexec", r->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/log", r->dir);
	r->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(r->log >= 0);
	link_programs(r);
	make_listener(r);
	rig_start(r, args);
	return r;
}

pid_t rig_vault_pid(const struct rig *r)
{
	char path[64], text[32] = "";
	uint64_t end = clock_mono_ms() + WAIT_MS;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)r->pid, (int)r->pid);
	while (clock_mono_ms() < end) {
		AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
			return (pid_t)atoi(text);
		(void)usleep(2000);
	}
	fail_msg("no vault");
	return 0;
}

int rig_wait(struct rig *r)
{
	uint64_t end = clock_mono_ms() + WAIT_MS;
	int status = 0;

	while (clock_mono_ms() < end) {
		if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
			r->pid = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
		}
		(void)usleep(2000);
	}
	fail_msg("it does not end");
	return 0;
}

void rig_kill(struct rig *r)
{
	if (!r->pid)
		return;
	(void)kill(r->pid, SIGKILL);
	(void)rig_wait(r);
}

int rig_stop(struct rig *r)
{
	AUTO_CLOSE int admin = rig_admin(r);

	assert_int_equal(chan_send_plain(admin, VAULT_STOP, 0, -1), 0);
	return rig_wait(r);
}

void rig_free(struct rig *r)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s", r->dir);

	rig_kill(r);
	fd_close(&r->listener);
	fd_close(&r->owner);
	fd_close(&r->log);
	assert_int_equal(system(command), 0);
	free(r);
}

char *rig_file(const struct rig *r, const char *name)
{
	return xasprintf("%s/sbx/vault/%s", r->dir, name);
}

char *rig_log(struct rig *r)
{
	AUTO_FREE char *path = xasprintf("%s/log", r->dir);
	char *text = NULL;
	size_t n;

	assert_int_equal(file_load(path, 1 << 20, &text, &n, NULL), 0);
	return text;
}

/* ---- peers ---- */

void rig_next(int peer, struct ipc_msg *ret)
{
	struct pollfd p = {.fd = peer, .events = POLLIN};
	int r;

	ret->fd = -1;
	if (poll(&p, 1, WAIT_MS) <= 0)
		fail_msg("the vault says nothing");
	r = ipc_recv(peer, ret);
	if (r != 1)
		fail_msg("instead of a message: %d", r);
}

static void must_hear_hello(int fd)
{
	static struct ipc_msg msg;
	char build[CHAN_MAX_BUILD];

	rig_next(fd, &msg);
	assert_int_equal(msg.type, VAULT_HELLO);
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, SBX_BUILD);
}

int rig_knock(struct rig *r)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/sock", r->dir);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

int rig_connect(struct rig *r)
{
	int fd = rig_knock(r);

	must_hear_hello(fd);
	return fd;
}

int rig_admin(struct rig *r)
{
	int fd = rig_connect(r);

	assert_int_equal(chan_send_plain(fd, VAULT_ADMIN, 0, -1), 0);
	return fd;
}

int rig_keeper(struct rig *r, const char *sandbox)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vault_ask_channel(r->owner, sandbox, pair[1]), 0);
	(void)close(pair[1]);
	must_hear_hello(pair[0]);
	return pair[0];
}

bool rig_is_dropped(int peer)
{
	static struct ipc_msg msg;
	struct pollfd p = {.fd = peer, .events = POLLIN};

	for (unsigned i = 0; i < 100; i++) {
		if (poll(&p, 1, WAIT_MS) <= 0)
			return false;
		if (ipc_recv(peer, &msg) != 1)
			return true;
		ipc_msg_done(&msg);
	}
	return false;
}

void rig_done(int peer, uint32_t id, struct vault_done *ret)
{
	static struct ipc_msg msg;

	do
		rig_next(peer, &msg);
	while (msg.type == VAULT_CHANGED);
	assert_int_equal(msg.type, VAULT_DONE);
	assert_int_equal(msg.id, id);
	assert_int_equal(vault_get_done(&msg, ret), 0);
	memcpy(rig_text, ret->text, sizeof(rig_text));
}

static int code_of(int peer, uint32_t id)
{
	struct vault_done done;

	rig_done(peer, id, &done);
	/* an error has a reason */
	assert_true(done.code == 0 || done.text[0]);
	return done.code;
}

static void fill(struct vault_meta *meta, const char *name, const char *scope)
{
	*meta = (struct vault_meta){
		.kind = VAULT_CUSTOM, .header = "authorization", .format = "Bearer %s"};
	(void)snprintf(meta->name, sizeof(meta->name), "%s", name);
	(void)snprintf(meta->scope, sizeof(meta->scope), "%s", scope);
}

int rig_set(int admin, const char *name, const char *scope, const void *value, size_t n)
{
	struct vault_meta meta;
	uint32_t id = ++last_id;
	int fds[2];

	fill(&meta, name, scope);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(vault_ask_set(admin, id, &meta, fds[0]), 0);
	(void)close(fds[0]);
	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t at = 0; at < n;) { /* the vault stops reading a value that is too long */
		ssize_t m = write(fds[1], (const char *)value + at, n - at);

		if (m <= 0)
			break;
		at += (size_t)m;
	}
	(void)close(fds[1]);
	return code_of(admin, id);
}

int rig_set_str(int admin, const char *name, const char *scope, const char *value)
{
	return rig_set(admin, name, scope, value, strlen(value));
}

int rig_set_ref(int admin, const char *name, enum vault_ref_kind kind, const char *program,
	const char *arg, uint32_t refresh_s)
{
	static struct vault_ref ref;
	struct vault_meta meta;
	struct vault_done done;
	uint32_t id = ++last_id;

	fill(&meta, name, "");
	ref = (struct vault_ref){.kind = kind, .n_args = arg ? 1 : 0, .refresh_s = refresh_s};
	(void)snprintf(ref.program, sizeof(ref.program), "%s", program);
	if (arg)
		(void)snprintf(ref.args[0], sizeof(ref.args[0]), "%s", arg);
	assert_int_equal(vault_ask_set_ref(admin, id, &meta, &ref), 0);
	rig_done(admin, id, &done);
	/* as sbxd does */
	if (done.code == 0)
		assert_int_equal(run_ref_save(done.number, &ref, NULL), 0);
	return done.code;
}

int rig_store(int keeper, const char *name, const char *value, uint64_t *ret_serial)
{
	uint8_t buf[VAULT_FRAME_MAX_HEAD + 256];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct vault_frame frame = {.value = slice_from_str(value)};
	struct vault_done done;
	uint32_t id = ++last_id;
	int fds[2];

	(void)snprintf(frame.name, sizeof(frame.name), "%s", name);
	assert_int_equal(vault_frame_head(&frame, &wr), 0);
	wr_bytes(&wr, frame.value);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fd_write_all(fds[1], buf, wr.n), 0);
	(void)close(fds[1]);
	assert_int_equal(vault_ask_store(keeper, id, name, fds[0]), 0);
	(void)close(fds[0]);
	rig_done(keeper, id, &done);
	if (ret_serial)
		*ret_serial = done.number;
	return done.code;
}

int rig_remove(int admin, const char *name, const char *scope)
{
	uint32_t id = ++last_id;

	assert_int_equal(vault_ask_remove(admin, id, name, scope), 0);
	return code_of(admin, id);
}

int rig_unlock(int admin, const char *passphrase)
{
	uint32_t id = ++last_id;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	/* first: a vault that expects none closes its end immediately */
	assert_int_equal(fd_write_all(fds[1], passphrase, strlen(passphrase)), 0);
	(void)close(fds[1]);
	assert_int_equal(chan_send_plain(admin, VAULT_UNLOCK, id, fds[0]), 0);
	(void)close(fds[0]);
	return code_of(admin, id);
}

int rig_scan(int admin, int fd, const char *control, struct vault_scanned *ret)
{
	static struct ipc_msg msg;
	struct vault_done done;
	uint32_t id = ++last_id;

	assert_int_equal(vault_ask_scan(admin, id, control, fd), 0);
	do
		rig_next(admin, &msg);
	while (msg.type == VAULT_CHANGED);
	assert_int_equal(msg.id, id);
	if (msg.type == VAULT_SCANNED) {
		assert_int_equal(vault_get_scanned(&msg, ret), 0);
		return 0;
	}
	assert_int_equal(vault_get_done(&msg, &done), 0);
	assert_true(done.code < 0);
	return done.code;
}

size_t rig_list(int peer, struct vault_item *items)
{
	static struct ipc_msg msg;
	static struct vault_item item;
	uint32_t id = ++last_id;
	size_t n = 0;

	assert_int_equal(chan_send_plain(peer, VAULT_LIST, id, -1), 0);
	for (;;) {
		rig_next(peer, &msg);
		if (msg.type == VAULT_CHANGED)
			continue;
		assert_int_equal(msg.id, id);
		if (msg.type == VAULT_DONE)
			return n;
		assert_int_equal(msg.type, VAULT_ITEM);
		assert_int_equal(vault_get_item(&msg, &item), 0);
		assert_true(n < RIG_MAX_ITEMS);
		if (items)
			items[n] = item;
		n++;
	}
}

static uint64_t serial_of(int peer, const char *name)
{
	static struct vault_item items[RIG_MAX_ITEMS];
	size_t n = rig_list(peer, items);
	uint64_t serial = 1;

	for (size_t i = 0; i < n; i++) { /* an item of the sandbox takes precedence */
		if (strcmp(items[i].meta.name, name) == 0 &&
			(serial == 1 || items[i].meta.scope[0]))
			serial = items[i].serial;
	}
	return serial;
}

int rig_release(int keeper, const char *name, uint64_t serial, char **ret_value,
	struct vault_frame *ret_frame)
{
	static uint8_t buf[VAULT_FRAME_MAX + 1];
	struct vault_frame frame;
	uint32_t id = ++last_id;
	int fds[2], code;
	ssize_t n;

	*ret_value = NULL;
	if (!serial)
		serial = serial_of(keeper, name);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(vault_ask_release(keeper, id, name, serial, fds[1]), 0);
	(void)close(fds[1]);
	code = code_of(keeper, id);
	n = fd_read_full(fds[0], buf, sizeof(buf)); /* the vault has closed: end-of-file follows */
	(void)close(fds[0]);
	assert_true(n >= 0);
	if (code < 0) {
		assert_int_equal(n, 0);
		return code;
	}
	assert_int_equal(vault_frame_split(slice_of(buf, (size_t)n), &frame), 0);
	*ret_value = xstrndup((const char *)frame.value.p, frame.value.n);
	explicit_bzero(buf, sizeof(buf));
	frame.value = slice_of(NULL, 0);
	if (ret_frame)
		*ret_frame = frame;
	return 0;
}

void rig_status(int peer, struct vault_status *ret)
{
	static struct ipc_msg msg;
	uint32_t id = ++last_id;

	assert_int_equal(chan_send_plain(peer, VAULT_STATUS, id, -1), 0);
	rig_next(peer, &msg);
	assert_int_equal(msg.type, VAULT_STATUS_IS);
	assert_int_equal(vault_get_status(&msg, ret), 0);
}
