/*
 * keeper - the state of one running sandbox and the parts of the program that owns it.
 *
 * How      main.c has the loop and its switch; each part below handles the events named for it.
 *          A sandbox goes STARTING -> RUNNING -> STOPPING -> STOPPED, and the process ends with it.
 * Trust    Sees short fixed messages of edge, QMP text (lib/vmm) and answers of the guest to its
 *          own small questions (lib/guestapi): all taken as hostile. Requests of sbxd: same user.
 * Owns     qemu, virtiofsd and edge (they die with it), the sandbox's lock and folders.
 * Limits   KEEPER_MAX_LINKS, KEEPER_MAX_ASKS, the times below.
 * See      README, proto/PROTOCOL.ipc
 */
#pragma once

#include "lib/guestapi/guest_ctl.h"
#include "lib/ipc/edge_chan.h"
#include "lib/ipc/keeper_chan.h"
#include "lib/jail/jail.h"
#include "lib/loop/loop.h"
#include "lib/share/share.h"
#include "lib/spec/spec.h"
#include "lib/vmm/vmm.h"

#define KEEPER_MAX_LINKS 4
#define KEEPER_MAX_ASKS 8
#define KEEPER_MAX_STREAMS 256
#define KEEPER_MAX_WAITING 64
#define KEEPER_LOG_BUDGET (1 << 20) /* bytes of the children's chatter kept for one run */

#define KEEPER_BOOT_MS_KVM 20000
#define KEEPER_BOOT_MS_TCG 90000
#define KEEPER_SETUP_MS 30000
#define KEEPER_ASK_MS 4000
#define KEEPER_WAIT_MS 4000
#define KEEPER_STOP_MS 10000
#define KEEPER_EDGE_GAP_MS 250	  /* the guest must see the port closed before it opens again */
#define KEEPER_EDGE_READY_MS 1500 /* a new edge on a running guest; then it is tried again */
#define KEEPER_EDGE_TRIES 20	  /* edges lost one after the other before the sandbox is stopped */
#define KEEPER_EDGE_VIOLATIONS 3

enum keeper_ev {
	EV_SIGNAL,
	EV_LISTEN,
	EV_LINK, /* idx: which connection of sbxd */
	EV_QMP,
	EV_QEMU_END,
	EV_SHARE_END,
	EV_EDGE,
	EV_EDGE_END,
	EV_ASK, /* idx: which question */
	EV_CHATTER,
	EV_TIMER_BOOT,
	EV_TIMER_STOP,
	EV_TIMER_VMM,
	EV_TIMER_EDGE,
	EV_TIMER_WAIT, /* idx: which stream that waits */
	EV_TIMER_ASK,  /* idx: which question */
};

/* A question to the guest: the body goes out on a socket pair that edge bridges to a stream. */
enum ask_kind { ASK_NONE, ASK_SETUP, ASK_STATS, ASK_POWER };

struct ask {
	enum ask_kind kind;
	uint32_t gen;
	int fd;
	uint32_t stream;
	size_t n;
	uint8_t body[GUEST_MAX_TEXT + 64];
	int link; /* which connection of sbxd wants to know, -1: the keeper itself */
	uint32_t link_gen, link_msg;
	struct loop_timer timer;
};

struct link {
	int fd;
	uint32_t gen;
};

/* A stream that edge bridges: who asked, so that the sessions can be counted. */
struct stream {
	bool used;
	bool session; /* a user's, not one of our questions */
	uint32_t gen;
};

/* A stream that a user asked for while there is no edge. */
struct waiting {
	int fd; /* -1: free */
	uint32_t gen;
	int link;
	uint32_t link_gen, msg;
	struct loop_timer timer;
};

struct edge_link {
	bool alive;
	enum edge_phase phase;
	struct jail_child child;
	int sock;
	uint32_t gen;
	unsigned tries;	     /* lost one after the other */
	unsigned violations; /* over the whole run */
	struct loop_timer timer;
};

struct keeper {
	struct loop loop;
	struct spec spec;
	struct keeper_state state;
	char *dir;     /* state/sandboxes/<id> */
	char *run_dir; /* runtime/s/<id> */
	char *initrd;
	enum vmm_accel accel;
	int sig_fd, lock_fd, listen_fd;
	int chatter_rd, chatter_wr;
	size_t chatter_left;
	int port_fd; /* listening socket behind the guest's port, shared with qemu */
	int port_path_fd;
	struct vmm *vmm;
	struct share share;
	bool has_share;
	struct edge_link edge;
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

/* start.c: the steps from nothing to a booting machine, and their undo. */
int start_prepare(struct keeper *k, struct err *err) MUST_CHECK;
/* Only the choice of the accelerator, for `sbx diagnose`. */
int start_selftest(struct keeper *k, struct err *err) MUST_CHECK;
int start_machine(struct keeper *k, struct err *err) MUST_CHECK;
void start_undo(struct keeper *k);
void start_unwatch_share(struct keeper *k);
void start_on_ready(struct keeper *k); /* edge sees the guest: send /setup */
void start_on_setup_answer(struct keeper *k, const struct guest_reply *reply);
void start_on_timeout(struct keeper *k);

/* machine.c: what qemu and virtiofsd do. */
void machine_on_qmp(struct keeper *k);
void machine_on_qemu_end(struct keeper *k);
void machine_on_share_end(struct keeper *k);
bool machine_is_stalled(const struct keeper *k);

/* stop.c: the way down. */
void stop_begin(struct keeper *k, uint32_t timeout_ms, const char *why);
void stop_on_timeout(struct keeper *k);
void stop_finish(struct keeper *k, const char *why);

/* edge_link.c: the edge process and its messages. */
int edge_start(struct keeper *k, struct err *err) MUST_CHECK;
void edge_on_readable(struct keeper *k);
void edge_on_end(struct keeper *k);
void edge_on_timer(struct keeper *k);
void edge_kill(struct keeper *k);
/* Takes fd. Gives the number of the stream. */
int edge_open_stream(
	struct keeper *k, const char *path, int fd, bool session, uint32_t *ret_stream) MUST_CHECK;

bool edge_is_up(const struct keeper *k);

/* waiting.c: streams that wait for a new edge. */
void waiting_init(struct keeper *k);
/* Takes fd. */
int waiting_add(struct keeper *k, int link, uint32_t msg, int fd) MUST_CHECK;
void waiting_flush(struct keeper *k);
void waiting_drop_all(struct keeper *k);
void waiting_on_timeout(struct keeper *k, uint32_t idx);

/* ask.c: questions to the guest. */
void ask_init(struct keeper *k);
int ask_guest(struct keeper *k, enum ask_kind kind, struct slice body, uint32_t timeout_ms,
	int link, uint32_t link_msg) MUST_CHECK;
void ask_on_readable(struct keeper *k, uint32_t idx);
void ask_on_timeout(struct keeper *k, uint32_t idx);
void ask_drop_all(struct keeper *k);
void ask_on_refused(struct keeper *k, uint32_t stream);

/* sbxd_link.c: the connections of sbxd. */
int link_listen(struct keeper *k, struct err *err) MUST_CHECK;
void link_add(struct keeper *k, int fd);
void link_on_accept(struct keeper *k);
void link_on_readable(struct keeper *k, uint32_t idx);
void link_push_state(struct keeper *k);
void link_answer(
	struct keeper *k, int link, uint32_t link_gen, uint32_t msg, int code, const char *text);
/* Sets what is being done and tells sbxd. */
void link_progress(struct keeper *k, unsigned percent, const char *text);

/* chatter.c: what the children print, bounded. */
int chatter_open(struct keeper *k) MUST_CHECK;
void chatter_on_readable(struct keeper *k);
