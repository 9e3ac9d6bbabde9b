/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_init - PID 1 of the machines that vmm_boot_test starts.
 *
 * How      Loads /modules, mounts /dev/vda, says R on sbx.ctl, then obeys one-letter commands.
 *          `sbx.panic` and `sbx.selftest` on the kernel command line do what they say.
 * Trust    Test program.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 500
#define PATCHES 1000

static char cmdline[4096];

static void say(const char *what)
{
	printf("%s: %m\n", what);
}

static void mount_kernel_trees(void)
{
	if (mount("dev", "/dev", "devtmpfs", 0, NULL) || mount("proc", "/proc", "proc", 0, NULL) ||
		mount("sys", "/sys", "sysfs", 0, NULL))
		say("mount");
	if (!freopen("/dev/console", "w", stdout))
		return;
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static void read_cmdline(void)
{
	FILE *f = fopen("/proc/cmdline", "r");

	if (!f || !fgets(cmdline, sizeof(cmdline), f))
		say("cmdline");
	if (f)
		fclose(f);
}

static void load_modules(void)
{
	struct dirent **list;
	int n = scandir("/modules", &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		char path[512];
		int fd;

		if (list[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/modules/%s", list[i]->d_name);
		fd = open(path, O_RDONLY);
		if (syscall(SYS_finit_module, fd, "", 0) < 0)
			say(path);
		close(fd);
	}
}

static bool find_port(char *dev, size_t size)
{
	DIR *d = opendir("/sys/class/virtio-ports");
	bool found = false;
	struct dirent *e;

	while (d && !found && (e = readdir(d))) {
		char path[512], name[64] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", e->d_name);
		f = fopen(path, "r");
		found = f && fgets(name, sizeof(name), f) && strcmp(name, "sbx.ctl\n") == 0;
		if (f)
			fclose(f);
		if (found)
			snprintf(dev, size, "/dev/%s", e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

static int open_port(void)
{
	char dev[300];

	for (int i = 0; i < TRIES && !find_port(dev, sizeof(dev)); i++)
		usleep(10000);
	return open(dev, O_RDWR);
}

static void answer(int port, char c)
{
	if (write(port, &c, 1) != 1)
		say("write");
}

static char write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0644);
	bool good = fd >= 0 && write(fd, "kept\n", 5) == 5 && fsync(fd) == 0;

	close(fd);
	return good ? 'W' : '!';
}

/* A hot-plugged device takes a moment to be there. */
static char mount_share(void)
{
	int r = -1;

	mkdir("/share", 0755);
	for (int i = 0; i < TRIES && r < 0; i++) {
		r = mount("sbx", "/share", "virtiofs", 0, NULL);
		if (r < 0)
			usleep(10000);
	}
	return r == 0 && access("/share/w/hello", F_OK) == 0 ? 'S' : '!';
}

/* The host's end closed: reads give 0 until somebody connects again. */
static void wait_for_host(int port)
{
	struct pollfd p = {.fd = port, .events = POLLIN};

	for (int i = 0; i < TRIES; i++) {
		p.revents = 0;
		if (poll(&p, 1, 0) >= 0 && !(p.revents & POLLHUP))
			break;
		usleep(10000);
	}
	answer(port, 'A');
}

/* The port was taken away: another one of that name comes. */
static int renew_port(int port)
{
	close(port);
	port = open_port();
	answer(port, 'N');
	return port;
}

/* Runs through the kernel's scheduler without end. */
static pid_t start_busy(void)
{
	pid_t pid = fork();

	while (pid == 0) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	return pid;
}

/* The kernel patches code of its scheduler, which both processors run meanwhile. */
static char patch_kernel(void)
{
	pid_t busy[2] = {start_busy(), start_busy()};
	int fd = open("/proc/sys/kernel/sched_schedstats", O_WRONLY);
	bool good = fd >= 0;

	for (int i = 0; i < PATCHES && good; i++)
		good = pwrite(fd, i % 2 ? "0" : "1", 1, 0) == 1;
	close(fd);
	for (int i = 0; i < 2; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
	return good ? 'P' : '!';
}

static void leave(int how)
{
	umount("/root");
	sync();
	reboot(how);
}

static void obey(int port, char c)
{
	char name[] = "/root/layer-x";

	switch (c) {
	case 'w':
		answer(port, write_file("/root/vmm-test"));
		break;
	case 'r':
		answer(port, access("/root/vmm-test", F_OK) == 0 ? 'y' : 'n');
		break;
	case '1':
	case '2':
	case '3':
		name[sizeof(name) - 2] = c;
		answer(port, write_file(name));
		break;
	case '4':
	case '5':
	case '6':
		name[sizeof(name) - 2] = (char)(c - 3);
		answer(port, access(name, F_OK) == 0 ? 'y' : 'n');
		break;
	case 'u':
		answer(port, umount("/share") == 0 ? 'U' : '!');
		break;
	case 'd':
		answer(port, access("/dev/vdb", F_OK) == 0 ? 'y' : 'n');
		break;
	case 'p':
		answer(port, patch_kernel());
		break;
	case 's':
		answer(port, mount_share());
		break;
	case 'q':
		leave(RB_POWER_OFF);
		break;
	case 'b':
		leave(RB_AUTOBOOT);
		break;
	default:
		answer(port, c);
	}
}

static void mount_root(void)
{
	for (int i = 0; i < TRIES && access("/dev/vda", F_OK) < 0; i++)
		usleep(10000);
	if (mount("/dev/vda", "/root", "ext4", 0, NULL) < 0)
		say("/dev/vda");
}

int main(void)
{
	int port;

	mount_kernel_trees();
	read_cmdline();
	if (strstr(cmdline, "sbx.panic")) {
		printf("init gives up\033[2J\n");
		return 1; /* the kernel panics when PID 1 ends */
	}
	load_modules();
	if (!strstr(cmdline, "sbx.selftest"))
		mount_root();
	port = open_port();
	if (strstr(cmdline, "sbx.selftest")) {
		if (write(port, "SBX-SELFTEST-OK\n", 16) != 16)
			say("write");
		usleep(100000);
		leave(RB_POWER_OFF);
	}
	answer(port, 'R');
	for (;;) {
		char c;
		ssize_t n = read(port, &c, 1);

		if (n == 1)
			obey(port, c);
		else if (n == 0)
			wait_for_host(port);
		else
			port = renew_port(port);
	}
}
