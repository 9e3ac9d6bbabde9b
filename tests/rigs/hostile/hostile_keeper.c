/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_keeper - a keeper without a VM that behaves as the sandbox's env MODE says.
 *
 * How      Speaks keeper_chan on fd 3 and on keeper.sock, holds the lock, echoes streams. MODE in
 *          the spec's env makes it hang, die, flood or lie, so that tests/api can see what sbxd
 *          does about it. Installed nowhere. With --pool it waits for CLAIM first, as the link
 *          "pool" in its folder says: "", die, silent, cold; the MODE of the sandbox that claims it
 *          may be claim-no, claim-mute or claim-die.
 * Trust    Test program.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/ipc/keeper_ports.h"
#include "lib/rules/spec/spec.h"
#include "lib/vm/template/layers.h"

#define MAX_GIVEN 8
#define MAX_STREAMS 64

static struct {
	char id[SPEC_ID_LEN + 1];
	const char *mode;
	int chan, listener, lock;
	bool pooled;
	struct keeper_state state;
	struct keeper_ports ports;
	int stream[MAX_STREAMS];
	size_t n_streams;
	int given[MAX_GIVEN]; /* listening sockets of sbxd; MODE park accepts and echoes */
	size_t n_given;
} kp = {.chan = 3, .listener = -1};

static bool mode_is(const char *mode)
{
	return strcmp(kp.mode, mode) == 0;
}

static void take_lock(void)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/lock", kp.id);

	kp.lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (kp.lock < 0 || flock(kp.lock, LOCK_EX | LOCK_NB) < 0)
		die("lock %s: %s", path, strerror(errno));
}

static void open_listener(void)
{
	AUTO_FREE char *path = paths_get(PATHS_RUNTIME, "s/%s/keeper.sock", kp.id);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	kp.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)unlink(path);
	if (bind(kp.listener, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(kp.listener, 8) < 0)
		die("listen %s: %s", path, strerror(errno));
}

static void say_last(const char *text)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/last", kp.id);
	FILE *f = fopen(path, "w");

	if (!f)
		die("last");
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void say_hello(void)
{
	struct keeper_hello hello = {.build = SBX_VERSION, .pid = (uint32_t)getpid()};

	snprintf(hello.id, sizeof(hello.id), "%s", mode_is("lie-id") ? "ffffffffffff" : kp.id);
	if (mode_is("lie-pid"))
		hello.pid = 1;
	if (!mode_is("nohello"))
		(void)!keeper_send_hello(kp.chan, &hello);
}

static void say_state(uint32_t id)
{
	kp.state.sessions = (uint32_t)kp.n_streams;
	(void)!keeper_send_state(kp.chan, id, &kp.state);
}

static void enter(enum keeper_phase phase, const char *text)
{
	kp.state.phase = phase;
	snprintf(kp.state.text, sizeof(kp.state.text), "%s", text);
	say_state(0);
}

/* What each lie sends once it runs. */
static void tell_lie(void)
{
	uint8_t big[IPC_HEADER + IPC_MAX_BODY + 1] = {KEEPER_STATE};

	if (mode_is("lie-type"))
		(void)!ipc_send(kp.chan, 99, 0, slice_of(NULL, 0), -1);
	if (mode_is("lie-big"))
		(void)!send(kp.chan, big, sizeof(big), 0);
	if (mode_is("lie-fd"))
		(void)!ipc_send(kp.chan, KEEPER_DONE, 0, slice_of("\0\0\0\0\0\0", 6), 0);
	if (mode_is("lie-state"))
		(void)!ipc_send(kp.chan, KEEPER_STATE, 0, slice_of("\x09", 1), -1);
	if (mode_is("lie-twice"))
		say_hello();
	if (mode_is("lie-close"))
		(void)shutdown(kp.chan, SHUT_RDWR);
	if (mode_is("flood"))
		kp.state.progress = 99;
}

static void end(int status, const char *why)
{
	enter(KEEPER_STOPPED, why);
	exit(status);
}

static void take_stream(struct ipc_msg *msg)
{
	char path[KEEPER_MAX_PATH];

	if (keeper_get_stream(msg, path) < 0 || strcmp(path, "/exec") != 0)
		die("bad stream");
	if (mode_is("refuse")) {
		(void)!keeper_send_done(kp.chan, msg->id, -EIO, "edge is not there");
		return;
	}
	if (kp.n_streams == MAX_STREAMS)
		die("too many streams");
	kp.stream[kp.n_streams++] = TAKE_FD(msg->fd);
	if (mode_is("mute"))
		return;
	if (mode_is("lie-answer")) {
		struct keeper_stats stats = {0};

		(void)!keeper_send_stats(kp.chan, msg->id, &stats);
	}
	(void)!keeper_send_done(kp.chan, msg->id, 0, "");
	say_state(0);
}

static void take_stop(const struct ipc_msg *msg)
{
	uint32_t ms;

	if (keeper_get_stop(msg, &ms) < 0)
		die("bad stop");
	if (mode_is("stubborn")) {
		say_state(0);
		return;
	}
	enter(KEEPER_STOPPING, "");
	(void)!keeper_send_done(kp.chan, msg->id, 0, "");
	end(0, "");
}

/* Each is noted, so that tests can see who was told what. */
static void take_reload(const struct ipc_msg *msg)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/reloads", kp.id);
	char name[KEEPER_MAX_NAME];
	FILE *f = fopen(path, "a");

	if (!f || keeper_get_reload(msg, name) < 0)
		die("bad reload");
	fprintf(f, "%s\n", name);
	fclose(f);
	if (mode_is("reload-slow"))
		(void)usleep(500000);
	if (mode_is("reload-no"))
		(void)!keeper_send_done(kp.chan, msg->id, -EIO, "the policy is too heavy");
	else if (!mode_is("reload-mute"))
		(void)!keeper_send_done(kp.chan, msg->id, 0, "");
}

/* Opens nothing: 6666 is in use, what is below 1024 may not be had, the rest is as wished. */
static void say_ports(uint32_t id)
{
	for (size_t i = 0; i < kp.ports.n; i++) {
		struct keeper_port *p = &kp.ports.v[i];

		p->code = p->host_port == 6666			? -EADDRINUSE
			  : p->host_port && p->host_port < 1024 ? -EACCES
								: 0;
		p->bound = p->code ? 0 : p->host_port ? p->host_port : (uint16_t)(40000 + i);
	}
	(void)!keeper_send_ports(kp.chan, id, &kp.ports);
}

static void take_ports(const struct ipc_msg *msg)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/ports", kp.id);
	FILE *f = fopen(path, "a");

	if (!f || keeper_get_ports(msg, &kp.ports) < 0)
		die("bad ports");
	for (size_t i = 0; i < kp.ports.n; i++)
		fprintf(f, "%s:%u:%u ", kp.ports.v[i].ip, kp.ports.v[i].host_port,
			kp.ports.v[i].port);
	fprintf(f, "\n");
	fclose(f);
	if (mode_is("ports-lie"))
		(void)!ipc_send(kp.chan, KEEPER_PORTS_ARE, msg->id, slice_of("\x09", 1), -1);
	else if (!mode_is("ports-mute"))
		say_ports(msg->id);
}

/* The files of a checkpoint with memory. */
static void put_memory(const char *dir, uint64_t seq)
{
	static const char *const names[] = {
		"state", "memory", "memory.sums", "ca", "root.qcow2", "docker.qcow2", "image.json"};
	AUTO_FREE char *to = xasprintf("%s/memory.%llu", dir, (unsigned long long)seq);

	if (mkdir(to, 0700) < 0)
		die("memory");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", to, names[i]);
		const char *text = strcmp(names[i], "image.json") == 0
					   ? "{\"version\":3,\"disks\":[]}"
					   : names[i];

		if (file_save(path, slice_from_str(text), NULL) < 0)
			die("memory");
	}
}

/* The top becomes the next layer, as a keeper does it; a top that is not there is made. */
static void take_freeze(const struct ipc_msg *msg)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", kp.id);
	struct keeper_frozen f = {.seq = 40, .pause_ms = 12};

	if (keeper_get_freeze(msg, f.label) < 0)
		die("bad freeze");
	if (mode_is("freeze-full"))
		f.code = -EMLINK;
	for (enum template_disk i = 0; f.code == 0 && i < TEMPLATE_N_DISKS; i++) {
		AUTO_FREE char *top = layers_path(dir, i, 0), *layer = NULL;
		struct layers l;
		int fd = open(top, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0 || write(fd, f.label, strlen(f.label)) < 0 ||
			layers_find(dir, i, &l) < 0)
			die("freeze");
		(void)close(fd);
		f.layers[i] = (uint16_t)(layers_last(&l) + 1);
		layer = layers_path(dir, i, f.layers[i]);
		if (rename(top, layer) < 0)
			die("freeze");
	}
	if (mode_is("freeze-lie"))
		snprintf(f.label, sizeof(f.label), "../../x");
	f.seq += f.layers[0];
	if (msg->type == KEEPER_MEMORY && f.code == 0)
		put_memory(dir, f.seq);
	if (mode_is("freeze-late"))
		(void)usleep(1000000);
	if (!mode_is("freeze-mute"))
		(void)!keeper_send_frozen(kp.chan, msg->id, &f);
}

/* MODE idle: suspends. MODE park: as its idle timeout does. MODE idle-fail: cannot, and wakes the
 * programs again. Else it is in use. */
static void take_suspend_idle(const struct ipc_msg *msg)
{
	static const char *const names[] = {"memory", "by", "image.json"};
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s/suspend", kp.id);

	if (!mode_is("idle") && !mode_is("idle-fail") && !mode_is("park")) {
		(void)!keeper_send_done(kp.chan, msg->id,
			msg->type == KEEPER_SUSPEND ? -EAGAIN : -EBUSY, "the sandbox is in use");
		return;
	}
	enter(KEEPER_STOPPING, "suspending");
	if (mode_is("idle-fail")) {
		(void)!keeper_send_done(kp.chan, msg->id, -EIO, "cannot freeze a program");
		enter(KEEPER_STARTING, "resuming");
		(void)usleep(300000);
		if (poll(&(struct pollfd){.fd = kp.chan, .events = POLLIN}, 1, 0) > 0)
			say_last("stopped while it resumes");
		enter(KEEPER_RUNNING, "");
		return;
	}
	if (mkdir(dir, 0700) < 0)
		die("suspend");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, names[i]);

		const char *text = strcmp(names[i], "by") != 0 ? "{}"
				   : mode_is("park")	       ? "idle"
							       : "stop";

		if (file_save(path, slice_from_str(text), NULL) < 0)
			die("suspend");
	}
	(void)!keeper_send_done(kp.chan, msg->id, 0, "");
	end(0, "");
}

static void start(void);
static char *read_mode(void);

static void take_claim(const struct ipc_msg *msg)
{
	if (!kp.pooled || keeper_get_nothing(msg) < 0)
		die("bad claim");
	kp.mode = read_mode();
	if (mode_is("claim-die"))
		exit(4);
	if (mode_is("claim-no"))
		(void)!keeper_send_done(kp.chan, msg->id, -EAGAIN, "not today");
	if (mode_is("claim-no") || mode_is("claim-mute"))
		return;
	kp.pooled = false;
	(void)!keeper_send_done(kp.chan, msg->id, 0, "");
	start();
}

/* Restored, and nobody's. */
static void wait_in_pool(void)
{
	AUTO_FREE char *link = xasprintf("%s/pool", getenv("SBX_LIBEXEC"));
	char how[16] = "";

	if (readlink(link, how, sizeof(how) - 1) < 0)
		how[0] = '\0';
	say_hello();
	snprintf(kp.state.accel, sizeof(kp.state.accel), "tcg");
	if (strcmp(how, "die") == 0)
		exit(5);
	if (strcmp(how, "cold") == 0) {
		snprintf(kp.state.cold_why, sizeof(kp.state.cold_why), "no memory image");
		enter(KEEPER_STOPPED, "no memory image");
		exit(0);
	}
	if (strcmp(how, "silent") == 0)
		return;
	kp.state.how = KEEPER_HOW_POOL;
	enter(KEEPER_STARTING, "waiting for a sandbox");
}

static void on_message(void)
{
	struct ipc_msg msg = {.fd = -1};
	struct keeper_stats stats = {.uptime_ms = 5, .processes = 3};
	int r = ipc_recv(kp.chan, &msg);

	if (r == 0 || (r < 0 && r != -EAGAIN)) {
		if (kp.pooled)
			exit(0);
		fd_close(&kp.chan);
		return;
	}
	if (r < 0)
		return;
	if (msg.type == KEEPER_PING)
		say_state(msg.id);
	else if (msg.type == KEEPER_STREAM)
		take_stream(&msg);
	else if (msg.type == KEEPER_STOP)
		take_stop(&msg);
	else if (msg.type == KEEPER_SUSPEND_IDLE || msg.type == KEEPER_SUSPEND)
		take_suspend_idle(&msg);
	else if (msg.type == KEEPER_STATS && !mode_is("mute"))
		(void)!keeper_send_stats(kp.chan, msg.id, &stats);
	else if (msg.type == KEEPER_RELOAD)
		take_reload(&msg);
	else if (msg.type == KEEPER_PORTS)
		take_ports(&msg);
	else if (msg.type == KEEPER_FREEZE || msg.type == KEEPER_MEMORY)
		take_freeze(&msg);
	else if (msg.type == KEEPER_LISTENER && kp.n_given < MAX_GIVEN)
		kp.given[kp.n_given++] = TAKE_FD(msg.fd);
	else if (msg.type == KEEPER_CLAIM)
		take_claim(&msg);
	ipc_msg_done(&msg);
}

static void on_accept(void)
{
	int fd = accept4(kp.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	fd_close(&kp.chan);
	kp.chan = fd;
	say_hello();
	say_state(0);
}

/* The guest of this keeper echoes. */
static void on_stream(size_t i)
{
	char buf[4096];
	ssize_t n = read(kp.stream[i], buf, sizeof(buf));

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0) {
		(void)!write(kp.stream[i], buf, (size_t)n);
		return;
	}
	fd_close(&kp.stream[i]);
	kp.stream[i] = kp.stream[--kp.n_streams];
	say_state(0);
}

static void accept_given(void)
{
	for (size_t i = 0; i < kp.n_given && kp.n_streams < MAX_STREAMS; i++) {
		int fd = accept4(kp.given[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			kp.stream[kp.n_streams++] = fd;
	}
}

static void wait_once(int timeout_ms)
{
	struct pollfd p[MAX_STREAMS + 2] = {
		{.fd = kp.chan, .events = POLLIN}, {.fd = kp.listener, .events = POLLIN}};
	size_t n;

	if (kp.n_given && kp.state.phase == KEEPER_RUNNING)
		accept_given();
	n = kp.n_streams;
	for (size_t i = 0; i < n; i++)
		p[i + 2] = (struct pollfd){.fd = kp.stream[i], .events = POLLIN};
	if (poll(p, n + 2, kp.n_given ? 20 : timeout_ms) <= 0)
		return;
	for (size_t i = n; i-- > 0;)
		if (p[i + 2].revents)
			on_stream(i);
	if (p[1].revents)
		on_accept();
	if (p[0].revents && kp.chan >= 0)
		on_message();
}

/* Resumes for a second, or fails if there is a file `fail`. Notes each start. */
static void resume(void)
{
	static const char *const names[] = {"memory", "by", "image.json"};
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", kp.id),
		       *starts = xasprintf("%s/starts", dir), *fail = xasprintf("%s/fail", dir),
		       *kept = xasprintf("%s/suspend", dir);
	FILE *f = fopen(starts, "a");

	if (!f || fputs("start\n", f) < 0 || fclose(f) < 0)
		die("starts");
	enter(KEEPER_STARTING, "reading the snapshot");
	for (int i = 0; i < 50 && access(kept, F_OK) == 0; i++)
		wait_once(20);
	if (access(fail, F_OK) == 0)
		end(1, "cannot resume");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", kept, names[i]);

		(void)unlink(path);
	}
	(void)rmdir(kept);
}

static void start(void)
{
	if (mode_is("silent"))
		(void)pause();
	if (mode_is("lie-early"))
		say_state(0);
	if (kp.state.how != KEEPER_HOW_POOL)
		say_hello();
	if (mode_is("slow"))
		for (kp.state.progress = 0; kp.state.progress < 50; kp.state.progress++) {
			enter(KEEPER_STARTING, "booting");
			wait_once(20);
		}
	if (mode_is("park"))
		resume();
	if (mode_is("fail")) {
		say_last("the kernel did not start");
		end(1, "the kernel did not start");
	}
	kp.state.boot_ms = 7;
	snprintf(kp.state.accel, sizeof(kp.state.accel), "tcg");
	kp.state.stalled = mode_is("stall");
	kp.state.progress = 100;
	if (kp.ports.n)
		say_ports(0);
	enter(KEEPER_RUNNING, mode_is("stall") ? "qemu is stopped by a signal" : "");
	tell_lie();
}

/* The last MODE of the spec's env; "" when it has none. */
static char *read_mode(void)
{
	AUTO_FREE char *path = spec_path(kp.id);
	AUTO_SPEC struct spec spec = {0};
	struct err err = {0};

	if (spec_load(path, &spec, &err) < 0)
		die("%s", err.text);
	kp.ports.n = spec.n_ports;
	for (size_t i = 0; i < spec.n_ports; i++) {
		snprintf(kp.ports.v[i].ip, sizeof(kp.ports.v[i].ip), "%s", spec.ports[i].host_ip);
		kp.ports.v[i].host_port = spec.ports[i].host_port;
		kp.ports.v[i].port = spec.ports[i].port;
	}
	for (size_t i = 0; i < spec.n_env; i++)
		if (strncmp(spec.env[i], "MODE=", 5) == 0)
			return xstrdup(spec.env[i] + 5);
	return xstrdup("");
}

/* --merge STATE --id ID --root LIST --docker LIST: notes the lists. MODE merge-hang: never ends. */
static int merge(char **argv)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/merges", argv[4]);
	FILE *f = fopen(path, "a");

	snprintf(kp.id, sizeof(kp.id), "%s", argv[4]);
	kp.mode = read_mode();
	take_lock();
	if (!f)
		die("merges");
	fprintf(f, "root %s docker %s\n", argv[6], argv[8]);
	fclose(f);
	while (mode_is("merge-hang"))
		(void)pause();
	return mode_is("merge-fail");
}

int main(int argc, char **argv)
{
	bool cold;

	log_init("hostile-keeper");
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 9 && strcmp(argv[1], "--merge") == 0)
		return merge(argv);
	kp.pooled = argc == 5 && strcmp(argv[4], "--pool") == 0;
	cold = argc == 5 && strcmp(argv[4], "--cold") == 0;
	if ((argc != 4 && !kp.pooled && !cold) || strcmp(argv[1], "--id") != 0 ||
		!spec_is_id(argv[2]) || strncmp(argv[3], "--state=/", 9) != 0)
		die("usage: --id ID --state=DIR [--pool|--cold]");
	if (cold)
		snprintf(kp.state.cold_why, sizeof(kp.state.cold_why), KEEPER_COLD_ASKED);
	snprintf(kp.id, sizeof(kp.id), "%s", argv[2]);
	kp.mode = read_mode();
	if (mode_is("late"))
		(void)usleep(1000000);
	take_lock();
	if (!mode_is("nolisten"))
		open_listener();
	if (kp.pooled)
		wait_in_pool();
	else
		start();
	if (mode_is("die")) {
		say_last("qemu fell over\nsecond line");
		return 3;
	}
	for (;;) {
		if (mode_is("deaf"))
			(void)pause();
		if (mode_is("flood")) {
			kp.state.progress ^= 1;
			say_state(0);
		}
		wait_once(mode_is("flood") ? 0 : -1);
	}
}
