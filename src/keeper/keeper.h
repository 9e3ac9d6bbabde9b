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

#include <sys/stat.h>
#include "src/keeper/credential/creds.h"
#include "src/keeper/machine/space.h"
#include "src/keeper/memory/suspend.h"
#include "src/keeper/machine/disks.h"
#include "src/keeper/memory/warm.h"
#include "src/keeper/memory/freeze.h"
#include "src/keeper/network/ask.h"
#include "src/keeper/machine/crowd.h"
#include "src/keeper/network/denied.h"
#include "lib/base/clock.h"
#include "lib/rules/gate/gate.h"
#include "lib/rules/gate/release.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/os/ipc/agent_chan.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/os/ipc/egress_chan.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/jail/cgroup.h"
#include "lib/os/jail/jail.h"
#include "lib/os/loop/loop.h"
#include "lib/vm/share/share.h"
#include "lib/rules/spec/spec.h"
#include "lib/vm/vmm/vmm.h"
#include "src/keeper/worker/hands.h"
#include "src/keeper/worker/worker.h"
#include "src/keeper/network/ports.h"
#include "src/keeper/memory/pool.h"
#include "src/keeper/machine/accel.h"

/* A sandbox's cgroup: its memory and so much more for all its programs; their threads. */
#define KEEPER_CGROUP_MORE (2ull << 30)
#define KEEPER_CGROUP_PIDS 4096
#define KEEPER_MAX_LINKS 4
#define KEEPER_MAX_ASKS 8
#define KEEPER_MAX_STREAMS 256
#define KEEPER_MAX_WAITING 64
#define KEEPER_LOG_BUDGET (1 << 20) /* bytes of the children's chatter kept for one run */
/* Lines of the keeper's own: a guest can cause some of them as often as it likes. */
#define KEEPER_LOG_LINES 1000
#define KEEPER_LOG_PER_MINUTE 30

#define KEEPER_BOOT_MS_KVM clock_limit_ms(20000)
#define KEEPER_BOOT_MS_TCG clock_limit_ms(90000)
#define KEEPER_SETUP_MS clock_limit_ms(30000)
#define KEEPER_ASK_MS clock_limit_ms(4000)
#define KEEPER_TRUST_MS clock_limit_ms(15000) /* for the guest to build its bundles anew */
#define KEEPER_WAIT_MS clock_limit_ms(4000)
#define KEEPER_STOP_MS 10000
#define KEEPER_EDGE_GAP_MS 250 /* the guest must see the port closed before it opens again */
#define KEEPER_EDGE_READY_MS \
	clock_limit_ms(1500) /* a new edge on a running guest; then it is tried again */
#define KEEPER_EDGE_TRIES 20 /* edges lost one after the other before the sandbox is stopped */

#define KEEPER_EGRESS_GAP_MS 100      /* before another egress; doubled each time ... */
#define KEEPER_EGRESS_MAX_GAP_MS 5000 /* ... up to this */
#define KEEPER_EGRESS_STEADY_MS 10000 /* one that lived so long begins with the short gap again */
#define KEEPER_EGRESS_GRACE_MS \
	clock_limit_ms(2000)	/* what is asked without an egress waits so long for one */
#define KEEPER_CONFIRMS 4	/* questions to a person at once */
#define KEEPER_CONFIRM_MS 30000 /* no answer within it is a no */
#define KEEPER_LOAD_MS clock_limit_ms(3000) /* for egress to take a policy over */
#define KEEPER_RESOLVER_MS 1000 /* between two looks at resolv.conf and the host's addresses */
#define KEEPER_RECORD_MS 1000	/* between two tries to open the audit log */
#define KEEPER_MAX_RELOADS 8	/* that wait for egress */
#define KEEPER_NET_BATCH 32	/* asks answered in one turn of the loop */
#define KEEPER_ASK_BURST 20000	/* asks answered as fast as they come; then ... */
#define KEEPER_ASK_RATE 2000	/* ... so many a second */
#define KEEPER_ASK_PAUSE_MS 10

#define KEEPER_MAX_ORIGINS 32
#define KEEPER_ORIGIN_CONNS 64 /* connections of one origin that are remembered */
#define KEEPER_ORIGIN_LOOK_MS 1000
#define KEEPER_ORIGIN_START_MS clock_limit_ms(5000) /* from its start to its HELLO */
#define KEEPER_ORIGIN_IDLE_MS 60000
#define KEEPER_ORIGIN_VIOLATIONS 3
#define KEEPER_ORIGIN_CRASHES 10 /* ends that nobody wanted, of one host in one run */
#define KEEPER_MAX_BLAMED 64	 /* hosts whose origins did wrong */

#define KEEPER_VAULT_GAP_MS 250 /* before the vault is tried again; doubled each time ... */
#define KEEPER_VAULT_MAX_GAP_MS 5000
#define KEEPER_VAULT_MS clock_limit_ms(10000) /* for HELLO (sbxd starts the vault) and for LIST */
#define KEEPER_VAULT_RELIST_MS 1000	      /* when the vault is not open yet */
#define KEEPER_RELEASE_MS 35000		      /* a program that has the value has 30 s */
#define KEEPER_MAX_RELEASES (KEEPER_MAX_ORIGINS * ORIGIN_N_WHICH)
#define KEEPER_STORE_MS 15000
#define KEEPER_MAX_STORES 64	/* tokens on their way to the vault */
#define KEEPER_ORIGIN_TOKENS 32 /* of one origin, until it has heard of them */
#define KEEPER_MAX_GIVEN 64	/* values that one origin was given last */

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
	EV_EGRESS,
	EV_EGRESS_END,
	EV_TIMER_EGRESS,
	EV_TIMER_LOAD,
	EV_TIMER_NET,
	EV_TIMER_RECORD,
	EV_AGENT,
	EV_AGENT_END,
	EV_CONFIRM, /* idx: which question to a person */
	EV_TIMER_CONFIRM,
	EV_VAULT,
	EV_TIMER_VAULT,
	EV_TIMER_RELEASE, /* idx: which release */
	EV_TIMER_STORE,	  /* idx: which store */
	EV_ORIGIN,	  /* idx: which origin */
	EV_ORIGIN_END,	  /* idx: which origin */
	EV_TIMER_ORIGINS,
	EV_SUSPEND_SAVED,   /* the child that packs the memory has ended */
	EV_SUSPEND_CHECKED, /* the one that reads it */
	EV_TIMER_SUSPEND,
	EV_TIMER_IDLE,
	EV_TIMER_SPACE,
	EV_IMAGE, /* the process that checks or packs a memory image has ended */
	EV_TIMER_MAKE,
	EV_PORT, /* idx: which listener */
	EV_TIMER_PORTS,
	EV_CROWD, /* a lookup of virtiofsd waits */
	EV_TIMER_CROWD,
	EV_SELFTEST, /* the child that tests KVM has ended */
	EV_TIMER_SELFTEST,
	EV_TIMER_DENIED,
	KEEPER_N_EVENTS,
};

struct keeper;

struct link {
	int fd;
	uint32_t gen;
	bool is_first; /* of the sbxd that started this keeper */
};

/* A stream that edge bridges to the guest. */
struct stream {
	const struct stream_kind *kind; /* NULL: free */
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
	struct worker worker;
	const struct edge_ops *ops;
};

struct egress_link {
	struct worker worker;
	const struct egress_ops *ops;
	uint64_t lost_ms;	   /* since when there is none that has a policy */
	uint32_t n_sent, n_loaded; /* POLICY messages, over all egresses; equal: all taken over */
	bool has_policy;	   /* this one has loaded its first */
	struct loop_timer load_timer;
};

/* A client of the guest at sbx-ssh-agent. */
struct agent_stream {
	bool used;
	int fd; /* until OPEN was said */
};

/* A signature that a person is asked about. */
struct agent_confirm {
	struct jail_child child; /* the program that asks; pidfd -1: free */
	uint32_t gen, id;
	struct agent_ask ask;
	struct loop_timer timer;
};

struct agent_link {
	struct worker worker;
	struct agent_stream streams[AGENT_MAX_OPEN];
	struct agent_confirm confirms[KEEPER_CONFIRMS];
};

/* What was asked, as small as it can be kept. */
struct asked;

/* An ASK that has no VERDICT yet. */
struct net_ask {
	uint32_t id;
	struct asked *what;
};

/* An allowed one that egress has. */
struct exchange {
	struct asked *what; /* NULL: free */
	uint32_t gen;
	bool has_result;
	/* Of the kind SOCKET: who WANTs it. */
	bool is_socket;
	uint32_t origin, origin_gen, want;
};

/* The verdict that is on its way to edge, after OPEN to egress: either may have to wait. */
struct net_pending {
	bool used;
	uint32_t ask;
	struct edge_verdict verdict;
	int edge_fd;
	int egress_fd; /* -1: OPEN was said, or there is none */
	uint32_t exchange;
	struct egress_open open;
};

struct net {
	struct net_ask asks[EDGE_MAX_ASKS]; /* a ring */
	size_t first, n_asks;
	struct exchange exchanges[EGRESS_MAX_OPEN];
	uint16_t free[EGRESS_MAX_OPEN]; /* a stack of places */
	size_t n_free;
	struct net_pending pending;
	uint64_t spent_us; /* when the asks so far would have been answered at KEEPER_ASK_RATE */
	struct loop_timer timer;
};

/* A RELOAD that waits until egress has the policy. */
struct reload {
	int link;
	uint32_t link_gen, msg, policy;
};

/* What the user said about the network, as it was read last. */
struct netpolicy {
	int text; /* the policy as a sealed memfd */
	struct egress_config config;
	char fault[ERR_MAX_TEXT]; /* why the settings cannot be used; "": they can */
	struct stat resolver;	  /* of resolv.conf when it was passed */
	uint64_t resolver_ms;	  /* last look */
	bool locals_due;	  /* egress has not taken the host's new addresses */
	struct reload reloads[KEEPER_MAX_RELOADS];
	size_t n_reloads;
};

struct record {
	struct audit_key *key;
	struct audit *audit; /* NULL: everything is refused */
	uint64_t tried_ms;
	uint64_t max_bytes; /* audit.max-size */
	bool is_bad;	    /* the last sync failed, and keeper.log says so */
	bool is_full;	    /* the same of the log's size */
	struct loop_timer timer;
};

/* A RELEASE that the vault has not answered. */
struct release {
	uint32_t id; /* of the message; 0: free */
	uint32_t gen;
	uint32_t origin, origin_gen;
	enum origin_which which;
	struct loop_timer timer;
};

/* A STORE for an origin: until the vault has answered, and then until the bindings have it. */
struct store {
	uint32_t id; /* of the message; 0: free */
	uint32_t gen;
	uint32_t origin, origin_gen;
	uint32_t token; /* origin's number of TOKENS */
	char name[VAULT_MAX_NAME];
	bool is_kept;
	struct loop_timer timer;
};

struct vault_link {
	int sock; /* -1: away */
	enum vault_phase phase;
	uint32_t gen;
	uint32_t last_id;
	uint32_t list_id; /* 0: no LIST is under way */
	bool is_listed;	  /* ever: creds is what the vault said last */
	bool is_current;  /* by this connection */
	bool is_dirty;	  /* CHANGED came while a LIST was under way */
	unsigned tries;
	struct vault_item *items, *known; /* of the LIST under way, and of the last one */
	size_t n_items, n_known;
	char fault[VAULT_MAX_TEXT]; /* what it said when it could not list */
	struct release releases[KEEPER_MAX_RELEASES];
	struct store stores[KEEPER_MAX_STORES];
	bool no_logins, all; /* credentials.oauth is false, credentials.intercept */
	char *own_services;  /* a list of lib/secret/service/own.h; NULL: not read yet */
	struct loop_timer timer;
};

struct origin_exchange {
	struct asked *what; /* NULL: free */
	uint32_t gen;
	bool has_result;
	int fd; /* origin's end, until OPEN is said */
};

enum origin_conn_state { CONN_FREE, CONN_WANTED, CONN_ASKED, CONN_DUE, CONN_GIVEN };

struct origin_conn {
	enum origin_conn_state state;
	uint32_t id;	   /* origin's */
	uint32_t exchange; /* CONN_ASKED: egress's */
	struct addr addr;  /* CONN_DUE and later: getpeername's word */
	bool is_own;	   /* getsockname gives the same: it leads to this host */
	uint16_t port;
	int fd; /* CONN_DUE */
	struct egress_result result;
};

struct origin_asked_value {
	bool used;
	bool is_due; /* the answer waits for room */
	uint32_t id;
	uint64_t serial; /* that was decided about */
	int fd;		 /* origin's end of the stream */
	struct origin_value value;
};

/* STORED, when origin reads. */
struct origin_kept {
	uint32_t id;
	struct origin_stored stored;
};

/* One sbx-origin. */
struct origin {
	struct worker worker; /* the first member */
	char host[ORIGIN_MAX_HOST];
	uint16_t port;
	struct binding binding; /* a copy: what it was started with */
	uint64_t used_ms;
	struct origin_exchange *exchanges; /* ORIGIN_MAX_OPEN */
	size_t n_exchanges;
	struct origin_conn *conns; /* KEEPER_ORIGIN_CONNS */
	size_t next_conn;
	struct origin_asked_value values[ORIGIN_N_WHICH];
	uint64_t given[KEEPER_MAX_GIVEN]; /* serials, a ring */
	size_t n_given;
	bool is_renew_due; /* RENEW is to be said */
	struct origin_kept kept[KEEPER_ORIGIN_TOKENS];
	size_t n_kept;
};

/* A host whose origins broke the protocol or ended by themselves. */
struct blamed {
	char host[ORIGIN_MAX_HOST];
	uint16_t port;
	unsigned n_violations, n_crashes;
};

struct origins {
	struct origin list[KEEPER_MAX_ORIGINS];
	struct blamed blamed[KEEPER_MAX_BLAMED];
	size_t n_blamed;
	int roots; /* a sealed memfd; -1: the certificates cannot be read */
	struct loop_timer timer;
	/* Starts the program with its end of the channel; tests have another one. */
	int (*spawn)(struct keeper *k, int sock, struct jail_child *ret, struct err *err);
};

struct trust {
	bool has_ca;
	bool is_said;  /* this edge has sent its CA */
	bool is_due;   /* the guest does not know all of it yet */
	bool is_asked; /* and is being told */
	bool is_told;  /* it has been told something, since this machine started */
	bool is_last;  /* the set-up is done: the sandbox runs once the guest is told */
	struct edge_ca ca;
	char *extra; /* the user's own CAs as the guest is told them; NULL: none */
};

struct keeper {
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
/* The workspaces, then what is below the agent's home. */
const struct spec_workspace *start_nth_mount(const struct keeper *k, size_t i);
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

/* machine.c: what qemu and virtiofsd do. */
int machine_watch(struct keeper *k) MUST_CHECK;
void machine_on_qmp(struct keeper *k);
void machine_on_qemu_end(struct keeper *k);
void machine_on_share_end(struct keeper *k);
bool machine_is_stalled(const struct keeper *k);

/* stop.c: the way down. */
void stop_begin(struct keeper *k, uint32_t timeout_ms, const char *why);
void stop_on_timeout(struct keeper *k);
void stop_finish(struct keeper *k, const char *why);

/* What a stream is for. */
struct stream_kind {
	bool is_session; /* a user's: counted in state.sessions */
	bool is_quiet;	 /* refusals are not logged */
	void (*on_refused)(struct keeper *k, uint32_t stream);
	void (*on_closed)(struct keeper *k);
};

/* edge_link.c: the edge process and its messages. */
struct edge_ops {
	void (*fill_ca)(struct keeper *k, struct edge_config *config);
	void (*on_ready)(struct keeper *k);
	int (*on_ask)(struct keeper *k, const struct ipc_msg *msg, struct err *err);
	int (*on_ca)(struct keeper *k, const struct ipc_msg *msg);
	void (*on_room)(struct keeper *k);
	void (*on_end)(struct keeper *k);
};

void edge_init(struct keeper *k, const struct edge_ops *ops);
int edge_start(struct keeper *k, struct err *err) MUST_CHECK;
void edge_on_event(struct keeper *k, const struct loop_event *ev);
void edge_on_exit(struct keeper *k);
void edge_on_timer(struct keeper *k);
void edge_kill(struct keeper *k);
/* Takes fd. Gives the number of the stream. */
int edge_open_stream(struct keeper *k, const char *path, int fd, const struct stream_kind *kind,
	uint32_t *ret_stream) MUST_CHECK;
/* The process runs; and it has reached the guest. */
bool edge_is_alive(const struct keeper *k);
bool edge_is_up(const struct keeper *k);
/* The guest's network is connected: with its configuration, or when it is claimed. */
int edge_send_net(struct keeper *k, struct err *err) MUST_CHECK;
/* Calls on_room when edge takes messages again. */
void edge_want_room(struct keeper *k);

/* egress_link.c: the egress process and its messages. */
struct egress_ops {
	int (*configure)(struct keeper *k); /* settings, resolver and policy */
	void (*on_loaded)(struct keeper *k, const char *text);
	int (*on_result)(struct keeper *k, struct ipc_msg *msg);
	int (*on_closed)(struct keeper *k, const struct ipc_msg *msg);
	void (*on_room)(struct keeper *k);
	void (*on_end)(struct keeper *k);
};

void egress_init(struct keeper *k, const struct egress_ops *ops);
/* Never fails: what does not work is tried again, and asks are refused meanwhile. */
void egress_start(struct keeper *k);
void egress_on_event(struct keeper *k, const struct loop_event *ev);
void egress_on_exit(struct keeper *k);
void egress_kill(struct keeper *k);
/* Kills it, and another one is started: for one that does not do its work. */
void egress_restart(struct keeper *k, const char *why);
bool egress_is_alive(const struct keeper *k);
/* It has a policy and can be given exchanges. */
bool egress_is_up(const struct keeper *k);
void egress_want_room(struct keeper *k);

/* agent_link.c: the process before the host's SSH agent. */
void agent_init(struct keeper *k);
/* A client of the guest: the socket for edge and an allowed verdict, or -1 and why not. */
int agent_open(struct keeper *k, struct edge_verdict *ret) MUST_CHECK;
void agent_on_event(struct keeper *k, const struct loop_event *ev);
void agent_on_exit(struct keeper *k);
void agent_on_confirm(struct keeper *k, const struct loop_event *ev);
void agent_on_confirm_timeout(struct keeper *k, const struct loop_event *ev);
void agent_kill(struct keeper *k);

/* net.c: what edge asks. */
void net_init(struct keeper *k);
int net_on_ask(struct keeper *k, const struct ipc_msg *msg, struct err *err) MUST_CHECK;
/* Takes the fd of a SOCKET's. */
int net_on_result(struct keeper *k, struct ipc_msg *msg) MUST_CHECK;
int net_on_closed(struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
/* Answers what can be answered now. */
void net_run(struct keeper *k);
void net_on_edge_end(struct keeper *k);
void net_on_egress_end(struct keeper *k);
/* The connection for an origin: by egress's OPEN of the kind SOCKET. -EAGAIN: tried again when
 * egress takes messages (origins_on_room). */
int net_open_socket(
	struct keeper *k, struct origin *o, uint32_t want, uint32_t *ret_exchange) MUST_CHECK;

/* net_asks.c: what was asked and not answered, and what is open at egress. */
struct asked *asked_new(const struct edge_ask *ask);
void asked_get(const struct asked *a, struct edge_ask *ret);
/* -EEXIST: the id is in use. -EOVERFLOW: more than EDGE_MAX_ASKS. */
int asks_add(struct net *n, uint32_t id, const struct edge_ask *ask) MUST_CHECK;
bool asks_is_empty(const struct net *n);
/* Whether the first one needs egress, if it is allowed. */
bool asks_first_is_open(const struct net *n);
void asks_take(struct net *n, uint32_t *ret_id, struct edge_ask *ret);
void asks_clear(struct net *n);
void exchanges_init(struct net *n);
/* -EMFILE: EGRESS_MAX_OPEN are open. */
int exchanges_add(struct net *n, const struct edge_ask *ask, uint32_t *ret_id) MUST_CHECK;
struct exchange *exchanges_find(struct net *n, uint32_t id);
void exchanges_get_ask(const struct exchange *ex, struct edge_ask *ret);
void exchanges_remove(struct net *n, uint32_t id);
void exchanges_clear(struct net *n);

/* netpolicy.c: policy and settings of the network, from the files to gate and egress. */
void netpolicy_init(struct keeper *k);
/* Everything that egress needs to know; < 0: it does not take it. */
int netpolicy_send(struct keeper *k) MUST_CHECK;
/* Whether resolv.conf or the host's addresses have changed; egress is told then. */
void netpolicy_check_host(struct keeper *k);
/* Reads everything anew; DONE is sent when it counts. */
void netpolicy_reload(struct keeper *k, int link, uint32_t msg, const char *name);
void netpolicy_on_loaded(struct keeper *k, const char *text);
void netpolicy_on_egress_end(struct keeper *k);
void netpolicy_on_load_timeout(struct keeper *k);
/* A file that nobody can change, not even who holds it; and the same for reading only, with a place
 * to read from of its own. */
int netpolicy_make_file(const char *name, struct slice text) MUST_CHECK;
int netpolicy_open_again(int fd) MUST_CHECK;

#include "src/keeper/credential/vault_link.h"
#include "src/keeper/credential/origins.h"
#include "src/keeper/credential/trust.h"

/* record.c: the audit log of this sandbox. */
void record_open(struct keeper *k);
/* Tries to open the log again when there is none; not more often than KEEPER_RECORD_MS. */
void record_check(struct keeper *k);
void record_set_max_bytes(struct keeper *k, uint64_t max_bytes);
void record_life(struct keeper *k, const char *action, const char *why);
void record_violation(struct keeper *k, const char *program, const char *what);
/* Sets the timer for what is not signed and synced yet: called after every event. */
void record_arm(struct keeper *k);
void record_on_timer(struct keeper *k);
void record_close(struct keeper *k);

/* waiting.c: streams that wait for a new edge. */
extern const struct stream_kind session_stream;
void waiting_init(struct keeper *k);
/* Takes fd. */
int waiting_add(struct keeper *k, int link, uint32_t msg, int fd) MUST_CHECK;
void waiting_flush(struct keeper *k);
void waiting_drop_all(struct keeper *k);
void waiting_on_timeout(struct keeper *k, const struct loop_event *ev);

/* ask.c: questions to the guest. */
void ask_init(struct keeper *k);
int ask_guest(struct keeper *k, const struct ask_kind *kind, struct slice body, uint32_t timeout_ms,
	int link, uint32_t link_msg) MUST_CHECK;
void ask_on_readable(struct keeper *k, const struct loop_event *ev);
void ask_on_timeout(struct keeper *k, const struct loop_event *ev);
/* The machine continues after a pause: what was asked has all of its time again. */
void ask_give_time(struct keeper *k);
void ask_drop_all(struct keeper *k);

/* sbxd_link.c: the connections of sbxd. */
int link_listen(struct keeper *k, struct err *err) MUST_CHECK;
void link_add(struct keeper *k, int fd, bool is_first);
void link_on_accept(struct keeper *k);
/* False: there is no connection to sbxd. */
bool link_want_vault(struct keeper *k);
void link_on_readable(struct keeper *k, const struct loop_event *ev);
void link_push_state(struct keeper *k);
void link_push_ports(struct keeper *k, const struct link *but);
void link_answer(
	struct keeper *k, int link, uint32_t link_gen, uint32_t msg, int code, const char *text);
/* Sets what is being done and tells sbxd. */
void link_progress(struct keeper *k, unsigned percent, const char *text);

/* chatter.c: what the children print, bounded. */
int chatter_open(struct keeper *k) MUST_CHECK;
void chatter_on_readable(struct keeper *k);
void chatter_drain(struct keeper *k); /* all of it until now */
