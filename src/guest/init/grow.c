/* SPDX-License-Identifier: Apache-2.0 */
#include "grow.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"

#ifndef EXT4_IOC_RESIZE_FS
#define EXT4_IOC_RESIZE_FS _IOW('f', 16, uint64_t)
#endif

#define EXT4_MAGIC 0xef53
#define EXT4_64BIT 0x80
#define MAX_BLOCK_SHIFT 6 /* 64 KiB */
/* Less than a group of blocks is not useful, and the kernel may refuse it. */
#define LEAST_BYTES (128ull << 20)

/* Offsets of the superblock's fields. */
enum {
	AT_BLOCKS_LOW = 0x04,
	AT_BLOCK_SHIFT = 0x18,
	AT_MAGIC = 0x38,
	AT_INCOMPATIBLE = 0x60,
	AT_BLOCKS_HIGH = 0x150,
};

static uint32_t get32_grow(const uint8_t *from, size_t at)
{
	uint32_t v;

	memcpy(&v, from + at, sizeof(v));
	return le32toh(v);
}

uint64_t grow_blocks(const uint8_t superblock[GROW_SUPERBLOCK_BYTES], uint64_t disk_bytes)
{
	uint64_t has = get32_grow(superblock, AT_BLOCKS_LOW);
	uint32_t shift = get32_grow(superblock, AT_BLOCK_SHIFT);

	if ((get32_grow(superblock, AT_MAGIC) & 0xffff) != EXT4_MAGIC || shift > MAX_BLOCK_SHIFT)
		return 0;
	shift += 10;
	if (get32_grow(superblock, AT_INCOMPATIBLE) & EXT4_64BIT)
		has |= (uint64_t)get32_grow(superblock, AT_BLOCKS_HIGH) << 32;
	if (disk_bytes >> shift <= has || (disk_bytes >> shift) - has < LEAST_BYTES >> shift)
		return 0;
	return disk_bytes >> shift;
}

void grow_file_system(const char *disk, const char *mounted)
{
	AUTO_CLOSE int dev = open(disk, O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int root = open(mounted, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint8_t superblock[GROW_SUPERBLOCK_BYTES];
	uint64_t bytes = 0, blocks;

	if (dev < 0 || root < 0 || ioctl(dev, BLKGETSIZE64, &bytes) < 0 ||
		pread(dev, superblock, sizeof(superblock), GROW_SUPERBLOCK_AT) !=
			(ssize_t)sizeof(superblock)) {
		log_warn("cannot read the size of the disk %s: %s", disk, strerror(errno));
		return;
	}
	blocks = grow_blocks(superblock, bytes);
	if (blocks && ioctl(root, EXT4_IOC_RESIZE_FS, &blocks) < 0)
		log_warn("cannot grow the file system of %s: %s", disk, strerror(errno));
}
