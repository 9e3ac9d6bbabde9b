/* SPDX-License-Identifier: Apache-2.0 */
#include "docker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "src/guest/net/net.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define DOCKERD "/usr/sbin/dockerd"
#define PAUSE_FIRST_MS 500
#define PAUSE_MAX_MS 30000
#define YOUNG_MS 10000

static const struct loop_key sock_key = {.kind = GUEST_EV_DOCKER_SOCK};
static const struct loop_key timer_key = {.kind = GUEST_EV_DOCKER_TIMER};

static int make_socket(void)
{
	AUTO_CLOSE int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = DOCKER_SOCK};
	gid_t gid = 0;

	if (s < 0)
		return -errno;
	(void)unlink(DOCKER_SOCK);
	if (bind(s, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	if (users_group_id("docker", &gid) < 0)
		gid = 0;
	if (chown(DOCKER_SOCK, 0, gid) < 0 || chmod(DOCKER_SOCK, 0660) < 0 || listen(s, 4096) < 0)
		return -errno;
	return TAKE_FD(s);
}

static void listen_again(struct docker *d)
{
	if (d->sock >= 0 && loop_add(d->loop, d->sock, EPOLLIN, sock_key) < 0)
		log_warn("waiting for Docker's first connection failed");
}

void docker_start(struct docker *d, struct loop *loop)
{
	*d = (struct docker){.loop = loop, .sock = -1, .pause_ms = PAUSE_FIRST_MS};
	if (access(DOCKERD, X_OK) < 0)
		return;
	d->sock = make_socket();
	if (d->sock < 0)
		log_warn("cannot create %s: %s", DOCKER_SOCK, strerror(-d->sock));
	listen_again(d);
}

static int mount_data(void)
{
	struct stat root, data;

	(void)mkdir(DOCKER_DATA, 0710);
	if (stat("/", &root) < 0 || stat(DOCKER_DATA, &data) < 0)
		return -errno;
	if (root.st_dev != data.st_dev || access(DOCKER_DISK, F_OK) < 0)
		return 0;
	return mount(DOCKER_DISK, DOCKER_DATA, "ext4", MS_NOATIME, "discard") < 0 ? -errno : 0;
}

/* Only containers need them, and each costs milliseconds of a boot. */
static void enable_controllers(void)
{
	static const char *const names[] = {"+cpu", "+memory", "+pids", "+io", "+cpuset"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)!file_poke("/sys/fs/cgroup/cgroup.subtree_control", names[i]);
}

/* For a daemon.json of the user without proxy settings. */
static void put_proxies(void)
{
	struct env env = {0};

	netconf_env(&env);
	for (size_t i = 0; i < env.n; i++)
		(void)putenv(env.v[i]); /* must stay valid until the exec */
}

/* dockerd, its containerd and its builder all search runc in PATH. */
static void put_runc(void)
{
	const char *path = getenv("PATH");
	struct err err;

	if (oci_install(&err) < 0)
		log_warn("%s: containers do not trust the sandbox CA", err.text);
	else
		(void)putenv(xasprintf("PATH=" OCI_BIN ":%s", path ? path : "/usr/sbin:/usr/bin"));
}

static void become_dockerd(int sock)
{
	char pid[16];
	int out = open(DOCKER_LOG, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0640);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	signals_reset();
	(void)setsid();
	(void)dup2(null, 0);
	(void)dup2(out >= 0 ? out : null, 1);
	(void)dup2(out >= 0 ? out : null, 2);
	/* Socket activation expects the socket at fd 3; dup2 drops CLOEXEC. */
	if (sock == 3 ? fd_set_cloexec(3, false) < 0 : dup2(sock, 3) < 0)
		_exit(126);
	(void)!fd_set_nonblock(3, false);
	snprintf(pid, sizeof(pid), "%d", getpid());
	(void)setenv("LISTEN_PID", pid, 1);
	(void)setenv("LISTEN_FDS", "1", 1);
	(void)setenv("HOME", "/root", 1);
	put_proxies();
	put_runc();
	(void)!file_poke("/proc/self/oom_score_adj", "-500");
	execl(DOCKERD, "dockerd", "-H", "fd://", "--data-root", DOCKER_DATA, (char *)NULL);
	_exit(127);
}

static void pause_listening(struct docker *d)
{
	loop_timer_set(d->loop, &d->again, clock_mono_ms() + d->pause_ms, timer_key);
	d->pause_ms = MIN(d->pause_ms * 2, PAUSE_MAX_MS);
}

void docker_on_connection(struct docker *d)
{
	pid_t pid;
	int r;

	if (d->pid)
		return;
	loop_del(d->loop, d->sock);
	enable_controllers();
	r = mount_data();
	if (r < 0)
		log_warn("cannot mount %s at %s: %s", DOCKER_DISK, DOCKER_DATA, strerror(-r));
	pid = r < 0 ? -1 : fork();
	if (pid == 0)
		become_dockerd(d->sock);
	if (pid < 0) {
		pause_listening(d);
		return;
	}
	d->pid = pid;
	d->started_ms = clock_mono_ms();
}

void docker_on_timer(struct docker *d)
{
	if (!d->pid)
		listen_again(d);
}

bool docker_on_exit(struct docker *d, pid_t pid)
{
	if (pid == 0 || pid != d->pid)
		return false;
	d->pid = 0;
	if (clock_mono_ms() - d->started_ms > YOUNG_MS)
		d->pause_ms = PAUSE_FIRST_MS;
	log_warn("dockerd exited; see %s", DOCKER_LOG);
	pause_listening(d);
	return true;
}
