/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig - a sandbox's network without a VM: the real sbx-edge and sbx-egress, keeper and guest played
 * here.
 *
 * How      keeper.c starts both programs as the keeper does and starts them again when they end;
 *          asks are decided by lib/rules/gate with a real policy and a real audit log. guest.c is
 *          the guest's end of sbx.net (lib/wire/wire as client); whoever opens a stream there gives
 *          a struct rig_guest_ops. serve.c makes a stream of each connection to a unix socket, see
 *          its head for the lines. rig_step waits once and moves everything; the caller's own fds
 *          get their events by on_event.
 * Trust    Test program. Edge and egress are believed nothing: a message out of phase ends the rig.
 * Owns     Both processes, which die with it, and a folder for the audit log.
 * Limits   RIG_STREAMS streams, RIG_BUF bytes each way for each.
 * See      README, netrig.c, tests/rigs/rig.py, bench/proxy
 */
#pragma once

#include "lib/base/bufq.h"
#include "lib/rules/gate/gate.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/os/ipc/egress_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/wire/wire.h"

#define RIG_STREAMS WIRE_NET_STREAMS
#define RIG_BUF WIRE_STREAM_WINDOW
#define RIG_OUT 65536
#define RIG_ALL UINT32_MAX
#define RIG_BRIDGES 16
#define RIG_ENDINGS 65536 /* how so many last streams ended can be asked for */

enum rig_ev {
	RIG_EV_EDGE,
	RIG_EV_EDGE_END,
	RIG_EV_EGRESS,
	RIG_EV_EGRESS_END,
	RIG_EV_CTL,
	RIG_EV_NET,
	RIG_EV_LISTEN,
	RIG_EV_CLIENT,
	RIG_EV_BRIDGE,
	RIG_EV_AUDIT,
	RIG_EV_SIGNAL,
	RIG_EV_USER, /* and above: the caller's own */
};

struct rig_options {
	const char *edge, *egress; /* programs */
	const char *policy;	   /* a file; NULL: none, all is denied */
	const char *resolver;	   /* a file like resolv.conf; NULL: none is given */
	const char *connect_to;	   /* HOST:PORT=ADDR:PORT,... */
	const char *proxy;	   /* HOST:PORT of a company's proxy; socks5://HOST:PORT */
	const char *folder;	   /* for the audit log */
	const char *cpu_list;	   /* processors for edge and egress, as a mask in hex; NULL: any */
	bool jailed;
	bool raw; /* the rig plays no guest; rig_give_wire gives edge its wire */
};

struct rig_worker {
	pid_t pid; /* 0: none */
	int pidfd, sock;
	uint32_t gen;
	unsigned starts, ends;
	/* The largest ru_maxrss of those that ended. What the rig itself had when it forked
	 * counts as theirs. */
	uint64_t ended_peak_kib;
};

struct rig_stats {
	uint64_t asks[EDGE_N_ASK_KINDS], allowed, refused, faults;
	uint64_t opens, closed, up, down, results[EGRESS_N_OUTCOMES];
	uint64_t lost, violations, streams, resets;
};

/* An ask that egress works on, by the id of its OPEN. */
struct rig_exchange {
	bool used;
	uint32_t gen;
	struct edge_ask ask;
};

/* The guest's side of one stream; slot is the index that rig_guest_open was given. */
struct rig_guest_ops {
	void (*on_data)(void *ctx, uint32_t slot, struct slice bytes);
	void (*on_end)(void *ctx, uint32_t slot);
	/* RIG_ALL: the wire is gone, and every stream with it. */
	void (*on_close)(void *ctx, uint32_t slot, bool reset);
	ssize_t (*pull)(void *ctx, uint32_t slot, uint8_t *buf, size_t n);
};

struct rig_wire {
	int fd;
	struct wire *wire;
	uint8_t *out;
	size_t n_out, out_at;
	bool blocked, ready;
};

struct rig {
	struct rig_options o;
	struct loop loop;
	struct rig_worker edge, egress;
	enum edge_phase edge_phase;
	struct edge_ca ca; /* of the last edge: the next one goes on with it */
	enum egress_phase egress_phase;
	struct audit_key *key;
	struct audit *audit;
	struct gate *gate;
	char *policy_text;
	size_t n_policy_text;
	struct egress_config config;
	bool loaded; /* egress has the policy */
	struct rig_exchange exchanges[EGRESS_MAX_OPEN];
	uint32_t next_exchange;
	struct rig_wire ctl, net;
	int raw_fd;			/* what edge gets as sbx.net when raw */
	const struct wire_ops *ctl_ops; /* of a guest that answers; NULL: all is refused */
	/* Lines of serve.c that only this rig knows; false: nor does it. */
	bool (*on_line)(struct rig *r, const char *line, char *buf, size_t size);
	const struct rig_guest_ops *guest_ops;
	void *guest_ctx;
	struct rig_stats stats;
	struct loop_timer audit_timer;
	bool stopping;
	char why[ERR_MAX_TEXT]; /* of a fault that ends the rig */
};

/* keeper.c. NULL with a sentence. Both programs are started, but see rig_is_up. */
struct rig *rig_new(const struct rig_options *o, struct err *err);
void rig_free(struct rig *r);
/* Both programs run, have said what they must, and the guest's wire is there. */
bool rig_is_up(const struct rig *r);
/* An event of the loop that is the rig's own; false when it is not. */
bool rig_on_event(struct rig *r, const struct loop_event *ev);
/* Sends what is to be sent; before every wait. */
void rig_flush(struct rig *r);
/* The policy file again, to gate and egress. */
int rig_reload(struct rig *r, struct err *err) MUST_CHECK;
/* Raw: fd (taken) becomes sbx.net of a new edge. */
int rig_give_wire(struct rig *r, int fd, struct err *err) MUST_CHECK;

/* memory.c: kilobytes of a field of /proc/PID/status. */
uint64_t rig_memory(pid_t pid, const char *field);

/* spawn.c */
int rig_spawn(struct rig *r, bool egress, struct rig_worker *w, struct err *err) MUST_CHECK;
void rig_kill(struct rig *r, struct rig_worker *w);

/* guest.c */
void rig_guest_set(struct rig *r, const struct rig_guest_ops *ops, void *ctx);
int rig_guest_open(struct rig *r, const char *path, uint32_t slot, uint32_t *ret_id) MUST_CHECK;
int rig_wire_start(struct rig *r, struct rig_wire *w, bool net, int fd) MUST_CHECK;
void rig_wire_stop(struct rig *r, struct rig_wire *w);
void rig_wire_event(struct rig *r, struct rig_wire *w, uint32_t events);
void rig_wire_flush(struct rig *r, struct rig_wire *w);

/* serve.c */
struct rig_server;
struct rig_server *rig_serve(struct rig *r, const char *path, struct err *err);
void rig_server_free(struct rig_server *s);
bool rig_server_event(struct rig_server *s, const struct loop_event *ev);
/* Before every wait, after which rig_flush. */
void rig_server_flush(struct rig_server *s);
void rig_print_stats(struct rig *r, char *buf, size_t size);
