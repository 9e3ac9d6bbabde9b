/* SPDX-License-Identifier: Apache-2.0 */
#include "park_image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/guest/setup/setup.h"
#include "src/guest/trust/trust.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

/* Dropping caches frees memory that makes more caches droppable. */
#define ROUNDS 2
/* Of one file that is read again. */
#define MAX_WANTED (8 << 20)

/* Files that every start and the first login shell read: cached, so the disk is not read. */
static const char *const wanted[] = {"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/hosts",
	"/etc/hostname", "/etc/machine-id", "/etc/resolv.conf", "/etc/nsswitch.conf",
	"/etc/ld.so.cache", "/etc/profile", "/etc/bash.bashrc",
	"/etc/ssl/certs/ca-certificates.crt", "/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6",
	"/lib/x86_64-linux-gnu/libtinfo.so.6", "/lib64/ld-linux-x86-64.so.2",
	"/lib/x86_64-linux-gnu/libselinux.so.1", "/lib/x86_64-linux-gnu/libpcre2-8.so.0",
	"/usr/bin/id", "/usr/bin/run-parts", "/etc/profile.d/bash_completion.sh",
	"/home/agent/.profile", "/home/agent/.bashrc"};

static void read_again(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char buf[16384];
	size_t n = 0;
	ssize_t k;

	while (fd >= 0 && n < MAX_WANTED && (k = read(fd, buf, sizeof(buf))) > 0)
		n += (size_t)k;
}

/* Directories that /setup and /trust write to. The first file of a boot reads the disk's maps of
 * free blocks and inodes: creating and removing a file here caches them. */
static const char *const written[] = {
	"/etc", "/etc/ssl/certs", "/etc/sudoers.d", "/usr/local/share/ca-certificates", TRUST_DIR};

static void rehearse_image(const char *folder)
{
	AUTO_FREE char *path = xasprintf("%s/.sbx-rehearsal", folder);

	(void)!file_replace(path, "\n", NULL);
	(void)unlink(path);
}

static int sync_all(struct err *err)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root < 0 || syncfs(root) < 0)
		return err_errno(err, -errno, "cannot sync the disks");
	return 0;
}

static void drop_caches(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		(void)!file_poke("/proc/sys/vm/drop_caches", "3");
		(void)!file_poke("/proc/sys/vm/compact_memory", "1");
	}
}

int park_image(const struct facts *f, const struct netproc *net, const struct guest_parking *p,
	struct err *err)
{
	int r;

	if (f->id)
		return err_set(err, -EPERM, "the guest is already set up and cannot be a snapshot");
	if (!net->ready)
		return err_set(err, -EAGAIN, "the guest's network is not ready yet");
	r = setup_user(p->uid, p->gid, err);
	if (r == 0)
		r = sync_all(err);
	if (r < 0)
		return r;
	drop_caches();
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		read_again(wanted[i]);
	(void)mkdir(TRUST_DIR, 0755);
	for (size_t i = 0; i < ARRAY_LEN(written); i++)
		rehearse_image(written[i]);
	return sync_all(err);
}
