/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hands - operations that a sealed keeper cannot do itself and its spawner does for it.
 *
 * How      hands_start forks the spawner (lib/os/worker/spawner.h) when the disks exist and before
 *          the VM starts. Each function below requests one fixed operation. The spawner uses its
 *          own copy of the sandbox's spec: no path comes from the keeper. Without a spawner (tests)
 *          the function does the work directly. hands_seal is the last step before the VM starts:
 *          no_new_privs, Landlock and the system call list JAIL_KEEPER (lib/os/jail/broker.h). A VM
 *          of the pool gives up access to the other audit logs when it is claimed.
 * Trust    The spawner treats the keeper as compromised.
 * Owns     In the spawner: the paths of the sockets for the guest's ports.
 * Limits   One share, two ports; HANDS_MAX_PROMPT.
 * See      lib/os/worker/worker.h, keeper.h
 */
#pragma once

#include "lib/rules/spec/spec.h"
#include "lib/vm/share/share.h"
#include "lib/os/worker/spawner.h"

#define HANDS_MAX_PROMPT 512

enum hands_port { HANDS_CTL, HANDS_NET, HANDS_N_PORTS };

struct keeper;

int hands_start(struct keeper *k, struct err *err) MUST_CHECK;
int hands_seal(struct keeper *k, struct err *err) MUST_CHECK;
/* Its Landlock part again, with less access. waits: a VM of the pool. */
int hands_seal_files(struct keeper *k, bool waits, struct err *err) MUST_CHECK;
/* Removes the socket and the directory of the running sandbox. */
void hands_leave(struct keeper *k);
/* The workspaces, then the mounts in the agent's home. */
const struct spec_workspace *hands_nth_mount(const struct keeper *k, size_t i);
/* The workspaces of the spec. Their guard sends events to event_fd; -1: none. */
int hands_share(struct keeper *k, int event_fd, struct share *ret, struct err *err) MUST_CHECK;
/* Recreates the listening sockets for the guest's ports. */
int hands_listen(struct keeper *k, int ret_fds[HANDS_N_PORTS], struct err *err) MUST_CHECK;
/* A connection to one of them. */
int hands_connect(struct keeper *k, enum hands_port port, struct err *err) MUST_CHECK;
/* A connection to the host's SSH agent of the spec. */
int hands_ssh_agent(struct keeper *k, struct err *err) MUST_CHECK;
/* Runs the program of the spec that prompts the user; its exit status is the answer. */
int hands_askpass(
	struct keeper *k, const char *prompt, struct jail_child *ret, struct err *err) MUST_CHECK;
/* sbx-origin with its end of the channel. */
int hands_origin(struct keeper *k, int sock, struct jail_child *ret, struct err *err) MUST_CHECK;
/* Publishes the snapshot of this keeper under its name, once. No other snapshot can be written. */
int hands_publish(struct keeper *k, struct err *err) MUST_CHECK;
/* The snapshot for this start no longer exists. */
void hands_drop_image(struct keeper *k);
/* The spec of the sandbox that claimed this VM of the pool: read by both processes, once. */
int hands_claim(struct keeper *k, struct err *err) MUST_CHECK;
