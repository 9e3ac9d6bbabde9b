/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdev - drives a virtio PCI device from user space without a kernel driver.
 *
 * How      The kernel's driver is unbound, the device's registers are mapped through sysfs, and one
 *          ring and its buffers are in locked pages whose physical addresses come from
 *          /proc/self/pagemap. One request at a time; responses are polled.
 * Trust    Runs as root in the guest: the attacker. It does not run on the host.
 * Owns     struct vdev, until vdev_close, which resets the device and gives it back to the kernel's
 *          driver.
 * Limits   VDEV_BYTES each way; VDEV_WAIT_MS for an answer.
 * See      Virtual I/O Device (VIRTIO) 1.2, 4.1; fuse.c
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/attr.h"

#define VDEV_PAGE 4096
#define VDEV_BYTES ((size_t)4 * VDEV_PAGE)
#define VDEV_WAIT_MS 3000

struct vdev {
	char name[32];	       /* on the PCI bus */
	volatile uint8_t *bar; /* its mapped registers */
	size_t bar_size;
	uint32_t common, notify, multiplier; /* where in it */
	volatile uint8_t *kick;
	uint16_t queue, size, next;
	uint8_t *ring, *out, *in; /* a page, VDEV_BYTES, VDEV_BYTES */
};

/* The first device with this PCI id, unbound and ready. Prints the reason on failure. */
int vdev_open(struct vdev *d, const char *id, uint16_t queue) MUST_CHECK;
/* Sends n_out bytes of d->out and receives up to n_in into d->in. Returns the number received, -1
 * on a timeout. */
long vdev_ask(struct vdev *d, size_t n_out, size_t n_in) MUST_CHECK;
void vdev_close(struct vdev *d);
