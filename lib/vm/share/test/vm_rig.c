/* SPDX-License-Identifier: Apache-2.0 */
#include "vm_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define QEMU "/usr/bin/qemu-system-x86_64"
#define VM_TIMEOUT_MS 240000

static void cpio_entry(FILE *f, const char *name, unsigned mode, const char *data, size_t n)
{
	size_t len = strlen(name) + 1;

	(void)fprintf(f, "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x%s%c", 1,
		mode, 0, 0, 1, 0, n, 0, 0, 0, 0, len, 0, name, 0);
	for (size_t i = 110 + len; i % 4; i++)
		(void)fputc(0, f);
	(void)fwrite(data, 1, n, f);
	for (size_t i = n; i % 4; i++)
		(void)fputc(0, f);
}

void vm_rig_make_initrd(const char *path, const char *program)
{
	AUTO_CLOSE int fd = open(program, O_RDONLY | O_CLOEXEC);
	FILE *f = fopen(path, "wxe");
	struct stat st;

	if (fd < 0 || !f || fstat(fd, &st) < 0)
		abort();
	AUTO_FREE char *bytes = xmalloc((size_t)st.st_size);
	if (fd_read_full(fd, bytes, (size_t)st.st_size) != st.st_size)
		abort();
	cpio_entry(f, "init", 0100755, bytes, (size_t)st.st_size);
	cpio_entry(f, "TRAILER!!!", 0, "", 0);
	(void)fclose(f);
}

bool vm_rig_talk(int con, bool (*on_line)(int con, const char *line))
{
	uint64_t deadline = clock_mono_ms() + VM_TIMEOUT_MS;
	char line[1024];
	size_t n = 0;

	while (clock_mono_ms() < deadline) {
		struct pollfd p = {.fd = con, .events = POLLIN};
		char c;

		if (poll(&p, 1, 1000) <= 0)
			continue;
		if (read(con, &c, 1) != 1)
			return false;
		if (c == '\n') {
			line[n] = '\0';
			n = 0;
			if (on_line(con, line))
				return true;
		} else if (c != '\r' && n < sizeof(line) - 1) {
			line[n++] = c;
		}
	}
	return false;
}

int vm_rig_start(const char *kernel, const char *initrd, const char *words, int vhost_fd,
	int con_fd, struct jail_child *ret_child, struct err *err)
{
	AUTO_FREE char *append = xasprintf("console=none quiet panic=-1 -- %s", words);
	const struct jail_mount mounts[] = {
		{"/usr/lib", "/usr/lib", 0},
		{"/lib", "/lib", JAIL_MOUNT_OPTIONAL},
		{"/lib64", "/lib64", JAIL_MOUNT_OPTIONAL},
		{"/etc/ld.so.cache", "/etc/ld.so.cache", JAIL_MOUNT_OPTIONAL},
		{QEMU, QEMU, 0},
		{"/usr/share/qemu", "/usr/share/qemu", 0},
		{"/usr/share/seabios", "/usr/share/seabios", JAIL_MOUNT_OPTIONAL},
		{kernel, "/kernel", 0},
		{initrd, "/initrd", 0},
	};
	const struct jail_fd fds[] = {{vhost_fd, 3}, {con_fd, 4}};
	/* qemu finds its modules beside its own path, which it knows from argv[0] */
	const char *argv[] = {QEMU, "-M", "pc", "-accel", "tcg", "-cpu", "max,-cx16,-erms", "-m",
		"256M", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-object", "memory-backend-memfd,id=m,size=256M,share=on", "-numa", "node,memdev=m",
		"-kernel", "/kernel", "-initrd", "/initrd", "-append", append, "-chardev",
		"socket,id=con,fd=4", "-serial", "chardev:con", "-chardev", "socket,id=fs,fd=3",
		"-device", "vhost-user-fs-pci,chardev=fs,tag=" SHARE_TAG, "-sandbox",
		"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny", NULL};
	struct jail_plan plan = {.profile = JAIL_QEMU,
		.program = QEMU,
		.argv = (char *const *)(uintptr_t)argv,
		.mounts = mounts,
		.n_mounts = ARRAY_LEN(mounts),
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.log_fd = STDERR_FILENO};

	return jail_spawn(&plan, ret_child, err);
}

int vm_rig_run(const struct share_config *cfg, const char *kernel, const char *initrd,
	const char *words, bool (*on_line)(int con, const char *line), struct err *err)
{
	struct jail_child qemu = {.pidfd = -1, .notify_fd = -1};
	struct share share = SHARE_EMPTY;
	int con[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, con) < 0)
		abort();
	r = share_start(cfg, &share, err);
	if (r == 0)
		r = vm_rig_start(kernel, initrd, words, share.vhost_fd, con[1], &qemu, err);
	(void)close(con[1]);
	if (r == 0 && !vm_rig_talk(con[0], on_line))
		r = err_set(err, -ETIMEDOUT, "the guest did not come to its end");
	(void)close(con[0]);
	jail_child_kill(&qemu);
	share_stop(&share);
	return r;
}
