/* SPDX-License-Identifier: Apache-2.0 */
#include "vdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/virtio_config.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/guest/probe/verb/verb.h"
#include "lib/base/fs/dir.h"

#define BUS "/sys/bus/pci/devices"
#define DRIVER "/sys/bus/pci/drivers/virtio-pci"
#define RING_SIZE 32 /* descriptors, available and used all fit into one page */
#define AVAIL_AT 1024
#define USED_AT 2048
#define N_PAGES (1 + 2 * VDEV_BYTES / VDEV_PAGE)
#define BAR_MAX (1 << 20)

static int put_vdev(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	(void)close(fd);
	return n < 0 ? -1 : 0;
}

static bool find_vdev(struct vdev *d, const char *id)
{
	AUTO_DIR DIR *dir = opendir(BUS);
	const struct dirent *e;
	char path[300], text[16];

	d->name[0] = '\0';
	while (!d->name[0] && (e = dir_next(dir))) {
		FILE *f;

		(void)snprintf(path, sizeof(path), BUS "/%s/device", e->d_name);
		f = fopen(path, "re");
		if (f && fgets(text, sizeof(text), f) && strncmp(text, id, strlen(id)) == 0 &&
			strlen(e->d_name) < sizeof(d->name))
			(void)snprintf(d->name, sizeof(d->name), "%.31s", e->d_name);
		if (f)
			(void)fclose(f);
	}
	return d->name[0];
}

static void take_cap(struct vdev *d, const uint8_t *cap, int *bar)
{
	uint32_t offset;

	memcpy(&offset, cap + 8, sizeof(offset));
	if (cap[3] == VIRTIO_PCI_CAP_COMMON_CFG) {
		d->common = offset;
		*bar = cap[4];
	} else if (cap[3] == VIRTIO_PCI_CAP_NOTIFY_CFG) {
		d->notify = offset;
		memcpy(&d->multiplier, cap + 16, sizeof(d->multiplier));
	}
}

static int read_caps(struct vdev *d, int *ret_bar)
{
	char path[300];
	uint8_t config[256];
	uint16_t command = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	int fd, left = 48;

	*ret_bar = -1;
	(void)snprintf(path, sizeof(path), BUS "/%s/config", d->name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || pread(fd, config, sizeof(config), 0) != sizeof(config) ||
		pwrite(fd, &command, sizeof(command), PCI_COMMAND) != sizeof(command))
		return probe_refused("PCI configuration");
	(void)close(fd);
	for (uint8_t p = config[PCI_CAPABILITY_LIST]; p && p < 232 && left--; p = config[p + 1])
		if (config[p] == PCI_CAP_ID_VNDR)
			take_cap(d, config + p, ret_bar);
	return *ret_bar < 0 || *ret_bar > 5 ? PROBE_REFUSED : 0;
}

static int map_bar(struct vdev *d, int bar)
{
	char path[300];
	struct stat st;
	int fd;

	(void)snprintf(path, sizeof(path), BUS "/%s/resource%d", d->name, bar);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return probe_refused(path);
	d->bar_size = (size_t)MIN(st.st_size, BAR_MAX);
	d->bar = mmap(NULL, d->bar_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	return d->bar == MAP_FAILED ? probe_refused("mapping the registers") : 0;
}

static volatile struct virtio_pci_common_cfg *common_vdev(const struct vdev *d)
{
	return (volatile void *)(d->bar + d->common);
}

static uint64_t physical_vdev(const void *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	off_t at = (off_t)((uintptr_t)p / VDEV_PAGE * sizeof(entry));

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, sizeof(entry), at) != sizeof(entry))
		entry = 0;
	(void)close(fd);
	return entry >> 63 ? (entry & ((1ULL << 55) - 1)) * VDEV_PAGE + (uintptr_t)p % VDEV_PAGE
			   : 0;
}

static int make_memory(struct vdev *d)
{
	uint8_t *p = mmap(NULL, N_PAGES * VDEV_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);

	if (p == MAP_FAILED)
		return probe_refused("locked memory");
	(void)madvise(p, N_PAGES * VDEV_PAGE, MADV_NOHUGEPAGE);
	memset(p, 1, N_PAGES * VDEV_PAGE); /* gives each page its own memory */
	memset(p, 0, N_PAGES * VDEV_PAGE);
	d->ring = p;
	d->out = p + VDEV_PAGE;
	d->in = d->out + VDEV_BYTES;
	return physical_vdev(d->ring) ? 0 : probe_refused("physical addresses");
}

static void reset_vdev(struct vdev *d)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	common_vdev(d)->device_status = 0;
	for (int i = 0; i < VDEV_WAIT_MS && common_vdev(d)->device_status != 0; i++)
		(void)nanosleep(&ms, NULL);
}

static void set_address(volatile __le32 *lo, volatile __le32 *hi, uint64_t address)
{
	*lo = (uint32_t)address;
	*hi = (uint32_t)(address >> 32);
}

static int start_vdev(struct vdev *d)
{
	volatile struct virtio_pci_common_cfg *c = common_vdev(d);
	uint64_t ring = physical_vdev(d->ring);

	reset_vdev(d);
	c->device_status = VIRTIO_CONFIG_S_ACKNOWLEDGE;
	c->device_status = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;
	c->guest_feature_select = 0;
	c->guest_feature = 0;
	c->guest_feature_select = 1;
	c->guest_feature = 1U << (VIRTIO_F_VERSION_1 - 32);
	c->device_status =
		VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_FEATURES_OK;
	if (!(c->device_status & VIRTIO_CONFIG_S_FEATURES_OK))
		return PROBE_REFUSED;
	c->msix_config = 0xffff;
	c->queue_select = d->queue;
	c->queue_size = RING_SIZE;
	c->queue_msix_vector = 0xffff;
	set_address(&c->queue_desc_lo, &c->queue_desc_hi, ring);
	set_address(&c->queue_avail_lo, &c->queue_avail_hi, ring + AVAIL_AT);
	set_address(&c->queue_used_lo, &c->queue_used_hi, ring + USED_AT);
	d->kick = d->bar + d->notify + (size_t)c->queue_notify_off * d->multiplier;
	c->queue_enable = 1;
	c->device_status = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |
			   VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK;
	return 0;
}

int vdev_open(struct vdev *d, const char *id, uint16_t queue)
{
	int bar, r;

	*d = (struct vdev){.queue = queue, .size = RING_SIZE};
	if (!find_vdev(d, id)) {
		printf("device %s not found\n", id);
		return PROBE_REFUSED;
	}
	if (put_vdev(DRIVER "/unbind", d->name) < 0 && errno != ENODEV)
		return probe_refused("unbind");
	r = read_caps(d, &bar);
	if (r == 0)
		r = map_bar(d, bar);
	if (r == 0)
		r = make_memory(d);
	if (r == 0)
		r = start_vdev(d);
	if (r != 0)
		vdev_close(d);
	return r;
}

void vdev_close(struct vdev *d)
{
	if (d->bar && d->bar != MAP_FAILED) {
		reset_vdev(d);
		(void)munmap((void *)(uintptr_t)d->bar, d->bar_size);
	}
	if (d->name[0] && put_vdev(DRIVER "/bind", d->name) < 0)
		(void)probe_refused("bind");
}

static uint16_t add_vdev(struct vdev *d, uint16_t at, const uint8_t *buf, size_t n, uint16_t flags)
{
	struct vring_desc *desc = (void *)d->ring;

	for (size_t done = 0; done < n; done += VDEV_PAGE, at++)
		desc[at] = (struct vring_desc){.addr = physical_vdev(buf + done),
			.len = (uint32_t)MIN(n - done, (size_t)VDEV_PAGE),
			.flags = (uint16_t)(flags | VRING_DESC_F_NEXT),
			.next = (uint16_t)(at + 1)};
	return at;
}

long vdev_ask(struct vdev *d, size_t n_out, size_t n_in)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct vring_desc *desc = (void *)d->ring;
	volatile struct vring_avail *avail = (volatile void *)(d->ring + AVAIL_AT);
	volatile struct vring_used *used = (volatile void *)(d->ring + USED_AT);
	uint16_t end;

	memset(d->in, 0, VDEV_BYTES);
	end = add_vdev(d, 0, d->out, MIN(n_out, VDEV_BYTES), 0);
	end = add_vdev(d, end, d->in, MIN(n_in, VDEV_BYTES), VRING_DESC_F_WRITE);
	desc[end - 1].flags &= (uint16_t)~VRING_DESC_F_NEXT;
	avail->ring[d->next % d->size] = 0;
	__sync_synchronize();
	avail->idx = ++d->next;
	__sync_synchronize();
	*(volatile uint16_t *)d->kick = d->queue;
	for (int i = 0; i < VDEV_WAIT_MS; i++) {
		__sync_synchronize();
		if (used->idx == d->next)
			return (long)used->ring[(uint16_t)(d->next - 1) % d->size].len;
		(void)nanosleep(&ms, NULL);
	}
	return -1;
}
