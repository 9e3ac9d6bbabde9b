/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_qcow2 - checks the header of a qcow2 layer before qemu opens it.
 *
 * How      docs/interop/qcow2 of QEMU: 72 bytes, 104 in version 3, big-endian. Only images as
 *          disk_make creates them are accepted. qemu gets the whole chain by name and never follows
 *          a name in the header; rejecting such names is a second layer of defense.
 * Trust    Input: possibly an untrusted file (template_import).
 * Never    Parses tables: qemu does, in its jail.
 */
#include "template_internal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"

#define HEAD_BYTES 104
#define MAX_BACKING_NAME 1023

/* Where the fields are. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_BACKING_OFFSET = 8,
	AT_BACKING_LEN = 16,
	AT_CLUSTER_BITS = 20,
	AT_SIZE = 24,
	AT_CRYPT = 32,
	AT_SNAPSHOTS = 60,
	AT_INCOMPATIBLE = 72,
	AT_AUTOCLEAR = 88,
};

static uint32_t get32_qcow2(const uint8_t *head, size_t at)
{
	uint32_t v;

	memcpy(&v, head + at, sizeof(v));
	return be32toh(v);
}

static uint64_t get64_qcow2(const uint8_t *head, size_t at)
{
	uint64_t v;

	memcpy(&v, head + at, sizeof(v));
	return be64toh(v);
}

static const char *fault_qcow2(const uint8_t *head)
{
	uint32_t bits = get32_qcow2(head, AT_CLUSTER_BITS);
	uint64_t size = get64_qcow2(head, AT_SIZE);

	if (get32_qcow2(head, AT_MAGIC) != 0x514649fb || get32_qcow2(head, AT_VERSION) != 3)
		return "is not a qcow2 image of version 3";
	if (get64_qcow2(head, AT_BACKING_OFFSET) != 0 || get32_qcow2(head, AT_BACKING_LEN) != 0)
		return "has another backing file";
	if (get32_qcow2(head, AT_CRYPT) != 0)
		return "is encrypted";
	if (get32_qcow2(head, AT_SNAPSHOTS) != 0)
		return "contains snapshots";
	if (get64_qcow2(head, AT_INCOMPATIBLE) != 0)
		return "requires an external data file or unknown features";
	if (get64_qcow2(head, AT_AUTOCLEAR) != 0)
		return "has unknown features";
	if (bits < 9 || bits > 21 || size == 0 || size > TEMPLATE_MAX_DISK)
		return "has sizes that are out of range";
	return NULL;
}

static int read_head(const char *path, int flags, uint8_t *head, int *ret_fd, struct err *err)
{
	AUTO_CLOSE int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	n = fd_read_full(fd, head, HEAD_BYTES);
	if (n < 0)
		return err_errno(err, (int)n, "cannot read %s", path);
	if (n != HEAD_BYTES)
		return err_set(err, -EUCLEAN, "layer %s is not a qcow2 image", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int template_qcow2_check(const char *path, uint64_t *ret_size, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	uint8_t head[HEAD_BYTES];
	int r = read_head(path, O_RDONLY, head, &fd, err);
	const char *why;

	if (r < 0)
		return r;
	why = fault_qcow2(head);
	if (ret_size)
		*ret_size = get64_qcow2(head, AT_SIZE);
	return why ? err_set(err, -EUCLEAN, "layer %s %s: rejected", path, why) : 0;
}

int template_qcow2_strip(const char *path, struct err *err)
{
	static const uint8_t zeros[MAX_BACKING_NAME];
	AUTO_CLOSE int fd = -1, out = -1;
	uint8_t head[HEAD_BYTES];
	uint64_t at;
	uint32_t n;
	int r = read_head(path, O_RDONLY, head, &fd, err);

	if (r < 0)
		return r;
	at = get64_qcow2(head, AT_BACKING_OFFSET);
	n = get32_qcow2(head, AT_BACKING_LEN);
	if (get32_qcow2(head, AT_MAGIC) != 0x514649fb || at == 0)
		return 0; /* no layer, which the check finds, or no name */
	/* The name is after the header in the first cluster. */
	if (n > MAX_BACKING_NAME || at < HEAD_BYTES || at + n > TEMPLATE_BLOCK)
		return err_set(err, -EUCLEAN, "the header of layer %s is corrupt", path);
	out = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	if (pwrite(out, zeros, 12, AT_BACKING_OFFSET) != 12 ||
		pwrite(out, zeros, n, (off_t)at) != (ssize_t)n)
		return err_set(err, -EIO, "cannot write the header of %s", path);
	return 0;
}
