/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_agent - the parts of sbx-ssh-agent: main.c (start, seal, dispatch), control.c (messages of
 *        the keeper), stream.c (requests of the guest), host.c (SSH agent of the host), selftest.c.
 *
 * How      Each OPEN is a struct stream with one request at a time. The request is read, waits for
 *          the host's SSH agent (one request at a time, in order) and, for a signature, for the
 *          keeper's VERDICT, and is answered. The list of keys is requested from the host's agent
 *          for each request, so a key that was removed there is not offered any more.
 * Trust    Parses untrusted input of the guest and data of the host's agent. Holds no secrets and
 *          no files.
 * Owns     The sockets, fd CONTROL_FD.
 * Limits   SSH_AGENT_MAX_OPEN streams, SSHAGENT_MAX_REQUEST and SSHAGENT_MAX_ANSWER bytes,
 *          SSH_AGENT_*_MS.
 * Never    Requests a signature before VERDICT has allowed it, or with a key that the filter does
 *          not allow.
 * See      README, lib/os/ipc/ssh_agent_chan.h, lib/secret/sshagent/sshagent.h
 */
#pragma once

#include "lib/os/ipc/ssh_agent_chan.h"
#include "lib/os/worker/control.h"
#include "lib/secret/sshagent/sshagent.h"

#define SSH_AGENT_ASK_MS 45000	/* for VERDICT: the keeper waits 30 s for the user */
#define SSH_AGENT_HOST_MS 60000 /* for the host's agent, which may prompt the user */
#define SSH_AGENT_WRITE_MS 10000

enum ssh_agent_ev {
	SSH_AGENT_EV_CONTROL,
	SSH_AGENT_EV_HOST,
	SSH_AGENT_EV_HOST_TIMER,
	SSH_AGENT_EV_STREAM,
	SSH_AGENT_EV_TIMER
};

/* The exit status if the host's agent fails; the others are enum control_exit. */
#define SSH_AGENT_EXIT_HOST 5

enum stream_state {
	STREAM_FREE,
	STREAM_READ,   /* a request is awaited */
	STREAM_WAIT,   /* for its turn at the host's agent */
	STREAM_HOST,   /* the host's agent was queried */
	STREAM_ASK,    /* the keeper was queried */
	STREAM_WRITE,  /* sending the answer */
	STREAM_CLOSED, /* the report to the keeper is due */
};

struct stream {
	enum stream_state state;
	uint32_t id, gen;
	int fd;
	uint64_t order; /* position in the queue */
	bool may_sign;	/* the keeper allowed it: the signature is requested next */
	uint8_t *in;	/* length and request */
	size_t n_in;
	uint8_t *out;
	size_t n_out, at_out;
	uint32_t ask_id;
	bool ask_due, closed_due; /* the keeper did not read */
	struct ssh_agent_ask ask;
	struct loop_timer timer;
};

struct ssh_agent {
	struct loop loop;
	struct control control;
	struct sshagent_filter filter;
	struct stream streams[SSH_AGENT_MAX_OPEN];
	uint64_t n_orders;
	uint32_t n_asks;
	/* the host's agent */
	int host_fd;
	bool is_busy;	      /* an answer is awaited */
	struct stream *asker; /* NULL: closed, the answer is dropped */
	struct loop_timer host_timer;
	uint8_t *in;
	size_t n_in;
	const uint8_t *out; /* of the asker's request, or the request for the list */
	size_t n_out, at_out;
};

/* control.c */
extern const struct control_ops ssh_agent_control;
/* Sends due reports of a stream, or later if the keeper does not read. */
void control_report(struct ssh_agent *a, struct stream *s);

/* stream.c */
void stream_open(struct ssh_agent *a, uint32_t id, int fd);
void stream_on_event(struct ssh_agent *a, struct loop_key key, uint32_t events);
void stream_on_timer(struct ssh_agent *a, struct loop_key key);
/* Handles the answer of the host's agent. */
void stream_on_host(struct ssh_agent *a, struct stream *s, struct slice answer);
/* -EBADMSG: there is no such request. */
int stream_on_verdict(struct ssh_agent *a, uint32_t ask_id, bool allowed) MUST_CHECK;

/* host.c */
int host_begin(struct ssh_agent *a, int fd) MUST_CHECK;
/* Sends the request of the first waiting stream, if none is under way. */
void host_serve(struct ssh_agent *a);
void host_on_event(struct ssh_agent *a, uint32_t events);
/* The stream was closed. */
void host_forget(struct ssh_agent *a, const struct stream *s);

/* selftest.c */
int ssh_agent_selftest(void);
