/* SPDX-License-Identifier: Apache-2.0 */
/* One frame through an AF_XDP socket: bypasses filters, routes and queues of the kernel, to the
 * driver of an interface. */
#include <errno.h>
#include <linux/if_xdp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "net.h"

#define CHUNK 4096
#define RING 2 /* a power of two */

/* The memory of the frames, and its three rings. */
static int give_memory(int fd, void *area)
{
	struct xdp_umem_reg reg = {
		.addr = (uintptr_t)area, .len = RING * CHUNK, .chunk_size = CHUNK};
	int n = RING;

	if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) < 0 ||
		setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &n, sizeof(n)) < 0 ||
		setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &n, sizeof(n)) < 0 ||
		setsockopt(fd, SOL_XDP, XDP_TX_RING, &n, sizeof(n)) < 0)
		return -errno;
	return 0;
}

/* Puts the first chunk on the ring and notifies the kernel. */
static int send_chunk(int fd, uint32_t len)
{
	struct xdp_mmap_offsets at;
	socklen_t n = sizeof(at);
	struct xdp_desc *desc;
	size_t size;
	uint8_t *ring;
	int r = 0;

	if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &n) < 0)
		return -errno;
	size = at.tx.desc + RING * sizeof(*desc);
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		XDP_PGOFF_TX_RING);
	if (ring == MAP_FAILED)
		return -errno;
	desc = (struct xdp_desc *)(void *)(ring + at.tx.desc);
	desc[0] = (struct xdp_desc){.addr = 0, .len = len};
	__atomic_store_n((uint32_t *)(void *)(ring + at.tx.producer), 1, __ATOMIC_RELEASE);
	if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)
		r = -errno;
	(void)munmap(ring, size);
	return r;
}

int xdp_send(unsigned index, const uint8_t *frame, size_t n)
{
	AUTO_CLOSE int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct sockaddr_xdp sa = {
		.sxdp_family = AF_XDP, .sxdp_ifindex = index, .sxdp_flags = XDP_COPY};
	void *area;
	int r;

	if (fd < 0)
		return -errno;
	area = mmap(NULL, RING * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return -errno;
	memcpy(area, frame, n);
	r = give_memory(fd, area);
	if (r == 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		r = -errno;
	if (r == 0)
		r = send_chunk(fd, (uint32_t)n);
	(void)munmap(area, RING * CHUNK);
	return r;
}
