/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker - provides the Docker socket from boot and starts the engine on the first connection.
 *
 * How      PID 1 listens on DOCKER_SOCK. The first connection mounts the data disk and starts
 *          dockerd with the listening socket (dockerd starts its own containerd, whose data and
 *          state are below dockerd's). PID 1 keeps a copy of the socket, so that it listens again
 *          when dockerd exits, with a growing pause if dockerd keeps exiting early.
 * Trust    Programs of the guest.
 * Owns     The listening socket.
 */
#pragma once

#include "imageenv.h"
#include "lib/os/loop/loop.h"
#include "oci.h"

#define DOCKER_SOCK "/run/docker.sock"
#define DOCKER_DATA "/var/lib/docker"
#define DOCKER_DISK "/dev/vdb"
#define DOCKER_LOG "/var/log/dockerd.log"

struct docker {
	struct loop *loop;
	int sock;
	pid_t pid; /* 0 while it does not run */
	uint64_t started_ms;
	unsigned pause_ms;
	struct loop_timer again;
};

/* Without dockerd in the image there is no socket. */
void docker_start(struct docker *d, struct loop *loop);
void docker_on_connection(struct docker *d);
void docker_on_timer(struct docker *d);
/* Returns true if pid was dockerd. */
bool docker_on_exit(struct docker *d, pid_t pid);
