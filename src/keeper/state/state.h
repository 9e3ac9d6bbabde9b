/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the state of one running sandbox that all parts share.
 *
 * How      struct keeper has the common data by value, and one pointer to the state of each part.
 *          Only that part and the parts above it access that state. keeper_init (events.c) sets the
 *          pointers.
 * Trust    Internal.
 */
#pragma once

#include "events.h"
#include "limits.h"
#include "plan.h"
#include "sealed_file.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/jail/cgroup.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/spec/spec.h"
#include "lib/vm/share/share.h"
#include "lib/vm/vmm/image/image.h"
#include "lib/vm/vmm/vmm.h"

struct keeper;

/* Calls from the lower parts to life (start.c, stop.c, vm_events.c) and to events.c. */
struct life_ops {
	/* Stops the sandbox; why is for users. finish: now. */
	void (*stop)(struct keeper *k, uint32_t timeout_ms, const char *why);
	void (*finish)(struct keeper *k, const char *why);
	int (*prepared)(struct keeper *k, struct err *err); /* the accelerator is chosen */
	int (*machine)(struct keeper *k, struct err *err);  /* starts the VM again */
	int (*helpers)(struct keeper *k, struct err *err);  /* starts the workers */
	int (*network)(struct keeper *k, struct err *err);
	void (*boot)(struct keeper *k);
	void (*undo)(struct keeper *k);
	void (*ready)(struct keeper *k);     /* the guest answers */
	void (*trusted)(struct keeper *k);   /* the guest has its certificate, or cannot get it */
	void (*give_time)(struct keeper *k); /* the VM continues after a pause */
	void (*vm_event)(struct keeper *k, const struct vmm_event *ev);
	int (*publish)(struct keeper *k, struct err *err); /* the new snapshot */
	void (*dispatch)(struct keeper *k, const struct loop_event *ev);
};

struct keeper {
	const struct life_ops *life;
	const struct link_ops *link_ops;
	struct loop loop;
	uint32_t vmm_gen, share_gen, image_gen, save_gen, check_gen; /* older events are dropped */
	struct spec spec;
	struct keeper_state state;
	char *dir;     /* state/sandboxes/<id> */
	char *run_dir; /* runtime/s/<id> */
	char *initrd;
	char *stub; /* of the template's kernel, for a VM that is restored; NULL: none */
	struct disks *disks;
	const struct template *template; /* of the disks */
	struct accel *selftest;
	struct warm *warm;
	struct pool *pool;
	struct freeze *freeze;
	enum vmm_accel accel;
	enum start_plan plan;
	int *restore_fd; /* memory of the snapshot to restore, closed once qemu has it; or NULL */
	const char *memory_dir;		   /* where the VM's memory is a file; NULL: a memfd */
	char image_key[IMAGE_KEY_LEN + 1]; /* of the snapshot for this VM */
	uint64_t disk_reserve;		   /* the setting disk.reserve; 0: none */
	struct jail_cgroup cgroup;	   /* of the keeper and all its children */
	int sig_fd, lock_fd, listen_fd;
	int chatter_rd, chatter_wr;
	size_t chatter_left;
	char said[2048],
		qemu_said[200]; /* chatter.c: the incomplete line, and the last one of qemu */
	int port_fd;		/* listening socket of the guest's port sbx.ctl, shared with qemu */
	int net_port_fd;	/* the same of sbx.net */
	int port_path[2];	/* hands.c: their paths; in the spawner if it runs */
	struct vmm *vmm;
	struct share share;
	bool has_share, qemu_ended; /* qemu_ended: before the guest was up */
	struct crowd *crowd;
	struct guard *guard;
	struct denied *denied;
	struct keeper_holds *holds;
	struct edge_link *edge;
	struct egress_link *egress;
	struct ssh_agent_link *ssh_agent;
	struct gate *gate;
	struct netpolicy *netpolicy;
	struct net *net;
	struct clerks *clerks;
	struct record *record;
	struct vault_link *vault;
	struct creds *creds;	   /* NULL: not listed yet */
	struct services *services; /* of the installation, while creds is NULL */
	struct origins *origins;
	struct trust *trust;
	struct suspend *suspend;
	struct idle *idle;
	struct space *space;
	struct ports *ports;
	struct link *links;
	struct ask *asks;
	struct stream *streams;
	struct waiting *waiting;
	unsigned boot_tries;
	uint64_t started_ms;
	struct loop_timer boot_timer, stop_timer, vmm_timer;
	int stop_link; /* of the stop request, -1: none */
	uint32_t stop_link_gen, stop_msg;
	char why[KEEPER_MAX_TEXT]; /* why it stops without a request */
	bool over;		   /* leave the loop */
};
