/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - the state of one running sandbox and the parts of the program that owns it.
 *
 * How      main.c has the loop, events.c the event table; each part below handles the events
 *          named for it. A sandbox goes STARTING -> RUNNING -> STOPPING -> STOPPED, and the
 *          process ends with it.
 * Trust    Sees short fixed messages of edge, egress, origins and the vault, QMP text (lib/vm/vmm)
 *          and answers of the guest to its own small questions (lib/wire/guestapi): all taken as
 *          hostile. Requests of sbxd: same user.
 * Owns     qemu, virtiofsd, edge, egress and origins (they die with it), the sandbox's lock,
 *          folders and audit log, the key of its CA.
 * Limits   KEEPER_MAX_LINKS, KEEPER_MAX_ASKS, EDGE_MAX_ASKS, EGRESS_MAX_OPEN, KEEPER_MAX_ORIGINS,
 *          the times below.
 * Never    Has a credential's value: that goes from the vault to an origin.
 * See      README, proto/PROTOCOL.ipc
 */
#pragma once

#include "src/keeper/credential/credential.h"
#include "src/keeper/guest/guest.h"
#include "src/keeper/link/link.h"
#include "src/keeper/machine/accel.h"
#include "src/keeper/machine/crowd.h"
#include "src/keeper/machine/disks.h"
#include "src/keeper/memory/space.h"
#include "src/keeper/memory/freeze.h"
#include "src/keeper/memory/pool.h"
#include "src/keeper/memory/suspend.h"
#include "src/keeper/memory/warm.h"
#include "src/keeper/network/network.h"
#include "src/keeper/state/events.h"
#include "src/keeper/state/sealed_file.h"
#include "src/keeper/worker/worker.h"
#include "lib/base/clock.h"
#include "lib/os/jail/cgroup.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/gate/gate.h"
#include "lib/rules/gate/release.h"
#include "lib/rules/spec/spec.h"
#include "lib/vm/share/share.h"
#include "lib/vm/vmm/vmm.h"

/* A sandbox's cgroup: its memory and so much more for all its programs; their threads. */
#define KEEPER_CGROUP_MORE (2ull << 30)
#define KEEPER_CGROUP_PIDS 4096

#define KEEPER_BOOT_MS_KVM clock_limit_ms(20000)
#define KEEPER_BOOT_MS_TCG clock_limit_ms(90000)
#define KEEPER_SETUP_MS clock_limit_ms(30000)
#define KEEPER_STOP_MS 10000

/* What the parts below report to life (start.c, stop.c, vm_events.c) and to events.c. */
struct life_ops {
	/* Ends the sandbox; why is for people. finish: now. */
	void (*stop)(struct keeper *k, uint32_t timeout_ms, const char *why);
	void (*finish)(struct keeper *k, const char *why);
	int (*prepared)(struct keeper *k, struct err *err); /* the accelerator is chosen */
	int (*machine)(struct keeper *k, struct err *err);  /* starts the VM again */
	int (*helpers)(struct keeper *k, struct err *err);  /* what a restored VM needs */
	int (*network)(struct keeper *k, struct err *err);
	void (*boot)(struct keeper *k);
	void (*undo)(struct keeper *k);
	void (*ready)(struct keeper *k);     /* the guest answers */
	void (*trusted)(struct keeper *k);   /* it has its certificate, or cannot have it */
	void (*give_time)(struct keeper *k); /* the VM continues after a pause */
	void (*vm_event)(struct keeper *k, const struct vmm_event *ev);
	int (*publish)(struct keeper *k, struct err *err); /* the snapshot that was made */
	void (*dispatch)(struct keeper *k, const struct loop_event *ev);
};

/* The snapshot that the VM continues from. */
struct restore {
	bool is_on;
	int *memory_fd; /* closed once qemu has it */
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
	struct disks disks;
	struct accel selftest;
	struct warm warm;
	struct pool pool;
	struct freeze freeze;
	enum vmm_accel accel;
	bool is_unclaimed; /* --pool, and no sandbox has claimed it */
	struct restore restore;
	bool is_making;		   /* --make-image */
	struct jail_cgroup cgroup; /* of it and of all that it starts */
	int sig_fd, lock_fd, listen_fd;
	int chatter_rd, chatter_wr;
	size_t chatter_left;
	char said[2048], qemu_said[200]; /* chatter.c: the line that is coming, and qemu's last */
	int port_fd;	 /* listening socket behind the guest's port sbx.ctl, shared with qemu */
	int net_port_fd; /* the same of sbx.net */
	int port_path
		[HANDS_N_PORTS]; /* hands.c: the way to both; in the spawner when there is one */
	struct vmm *vmm;
	struct share share;
	bool has_share, qemu_ended; /* qemu: by itself, before the guest was up */
	struct crowd crowd;
	struct denied denied;
	struct edge_link edge;
	struct egress_link egress;
	struct agent_link agent;
	struct gate *gate;
	struct netpolicy netpolicy;
	struct net net;
	struct record record;
	struct vault_link vault;
	struct creds *creds;	   /* NULL: nothing was listed yet */
	struct services *services; /* all of the installation, for while nothing was listed */
	struct origins origins;
	struct trust trust;
	struct suspend suspend;
	struct idle idle;
	struct space space;
	struct ports ports;
	struct link links[KEEPER_MAX_LINKS];
	struct ask asks[KEEPER_MAX_ASKS];
	struct stream streams[KEEPER_MAX_STREAMS];
	struct waiting waiting[KEEPER_MAX_WAITING];
	unsigned boot_tries;
	uint64_t started_ms;
	struct loop_timer boot_timer, stop_timer, vmm_timer;
	int stop_link; /* who asked for the stop, -1 nobody */
	uint32_t stop_link_gen, stop_msg;
	char why[KEEPER_MAX_TEXT]; /* why it ends when nobody asked for it */
	bool over;		   /* leave the loop */
};

/* events.c: an empty keeper, and the handling of one event of its loop. */
void keeper_init(struct keeper *k);
void keeper_dispatch(struct keeper *k, const struct loop_event *ev);

/* requests.c: what sbxd asks for. */
extern const struct link_ops requests_ops;

/* start.c: the steps from nothing to a booting machine, and their undo. */
/* 1: accel.h decides meanwhile, and calls start_go_on. */
int start_prepare(struct keeper *k, struct err *err) MUST_CHECK;
int start_go_on(struct keeper *k, struct err *err) MUST_CHECK;
/* Only the choice of the accelerator, for `sbx diagnose`. */
int start_selftest(struct keeper *k, struct err *err) MUST_CHECK;
/* What a restored machine needs besides qemu. */
int start_helpers(struct keeper *k, struct err *err) MUST_CHECK;
int start_machine(struct keeper *k, struct err *err) MUST_CHECK;
void start_undo(struct keeper *k);
/* The machine as it is started; what it points to is the keeper's. */
void start_fill_config(const struct keeper *k, struct vmm_config *ret);
/* The name of a memory image of this machine (lib/vm/vmm/image/image.h). */
int start_image_key(
	const struct keeper *k, char key[IMAGE_KEY_LEN + 1], struct err *err) MUST_CHECK;
/* virtiofsd, without qemu knowing of it yet; and its end. */
int start_share(struct keeper *k, struct err *err) MUST_CHECK;
void start_stop_share(struct keeper *k);
/* The workspaces as /setup and /wake have them; gives how many. */
size_t start_fill_mounts(const struct keeper *k, struct guest_mount mounts[SPEC_MAX_WORKSPACES]);
void start_unwatch_share(struct keeper *k);
void start_on_ready(struct keeper *k); /* edge sees the guest: send /setup */
extern const struct ask_kind start_setup_ask;
/* The guest knows the CA, or cannot: it runs. */
void start_on_trusted(struct keeper *k);
void start_on_timeout(struct keeper *k);
/* The machine continues after a pause: the start has all of its time again. */
void start_give_time(struct keeper *k);

/* For suspend.c and resume.c: the same steps in another order. */
int start_port(struct keeper *k, struct err *err) MUST_CHECK;
int start_qemu(struct keeper *k, struct err *err) MUST_CHECK;
int start_network(struct keeper *k, struct err *err) MUST_CHECK;
/* Boots, whatever there was before. */
void start_boot(struct keeper *k);

/* vm.c: qemu and virtiofsd. */
int machine_find_template(struct keeper *k, struct err *err) MUST_CHECK;
int machine_make_initrd(struct keeper *k, struct err *err) MUST_CHECK;
void machine_end_qemu(struct keeper *k);
int machine_watch(struct keeper *k) MUST_CHECK;
void machine_on_qmp(struct keeper *k);
/* vm_events.c: what their events lead to. */
void vm_on_event(struct keeper *k, const struct vmm_event *ev);
void machine_on_qemu_end(struct keeper *k);
void machine_on_share_end(struct keeper *k);
bool machine_is_stalled(const struct keeper *k);

/* stop.c: the way down. */
void stop_begin(struct keeper *k, uint32_t timeout_ms, const char *why);
void stop_on_timeout(struct keeper *k);
void stop_finish(struct keeper *k, const char *why);
