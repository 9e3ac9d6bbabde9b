/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_run - one command in a sandbox: copies data both ways until it exits or is detached.
 *
 * How      session_run takes the connection from api_stream, sends SPEC or ATTACH and copies until
 *          EXIT. poll(2), not epoll: stdin may be a regular file, which epoll rejects. Full queues
 *          stop the reading, so nothing grows. stdin and stdout keep their blocking mode, which
 *          other programs share: writes are small enough not to block after POLLOUT.
 *
 *          A session with a `link` reconnects when its stream breaks: input that the guest has not
 *          accepted is kept here, output that was not acknowledged is kept there. A kept session
 *          (spec.session) retries for SESSION_AGAIN_MS; any session waits for the end of a
 *          suspension. Detach keys, a closed terminal and another client leave a kept session
 *          running.
 * Trust    All input comes from the guest: frames are checked by exec_frame.h; with a terminal the
 *          output goes to it unchanged, as with ssh; error texts are cleaned.
 * Owns     Its queues. The fds stay the caller's, the connection is closed.
 * Limits   SESSION_QUEUE bytes per direction; SESSION_SPEC_MS until the command has started;
 *          SESSION_LAST_MS after a forwarded SIGTERM or SIGHUP.
 * See      proto/PROTOCOL.exec, session_test.c
 */
#pragma once

#include "lib/wire/guestapi/exec_frame.h"
#include "lib/rules/settings/detach_keys.h"
#include "lib/client/cli/ui.h"

#define SESSION_QUEUE (256u << 10)
#define SESSION_SPEC_MS 60000
#define SESSION_LAST_MS 10000
#define SESSION_AGAIN_MS 30000
#define SESSION_SUSPEND_MS 310000 /* while its memory is written, or read */
/* A shorter break is not reported on the screen. */
#define SESSION_QUIET_MS 1500
#define SESSION_LOOK_MS 250
/* A sandbox that is silent this long may be paused: it is checked, more often at first. */
#define SESSION_SILENT_MS 1000
#define SESSION_SILENT_OFTEN 5
#define SESSION_HELD_MS 2000 /* between two reads of the requests that wait for approval */
#define SESSION_SILENT_LATER_MS 10000
/* Until the guest has sent DETACHED. */
#define SESSION_DETACH_MS 3000
#define SESSION_ACK_STEP (32u << 10)

/* State of a sandbox whose stream broke. */
enum session_where {
	SESSION_RUNS,
	SESSION_CHANGES, /* starting, stopping, being suspended: check again */
	SESSION_SUSPENDED,
	SESSION_PAUSED, /* the host's disk is full */
	SESSION_GONE,	/* stopped or removed */
};

/* Reconnects; ctx is the caller's. */
struct session_link {
	void *ctx;
	enum session_where (*where)(void *ctx);
	/* A new connection, or a negative errno. */
	int (*open)(void *ctx, struct problem *p);
	/* Resumes a suspended sandbox: the user typed. */
	int (*wake)(void *ctx, struct problem *p);
	/* The number of requests that wait for approval; < 0: not known. NULL: not shown. */
	int (*held)(void *ctx);
};

enum session_left {
	SESSION_NOT_LEFT,
	SESSION_DETACHED, /* by keys, or the terminal was closed */
	SESSION_TAKEN_OVER,
};

struct session {
	struct exec_spec spec; /* borrowed strings; with a link the token is filled in here */
	bool attach;	       /* ATTACH to spec.session instead: argv is not used */
	const struct session_link *link; /* NULL: no reconnect */
	struct detach_keys keys;
	struct slice first; /* input before that of in_fd; less than SESSION_QUEUE bytes */
	int in_fd;	    /* -1: none */
	int out_fd, err_fd;
	bool tty; /* in_fd is a terminal: raw mode, RESIZE; else signals are forwarded */
	const char *starting; /* "starting NAME ..." is shown until its first byte; NULL: none */
	bool detach;	      /* returns when the command has started */
	char *err_text;	      /* if set, receives the guest's stderr: err_size bytes */
	size_t err_size;
	uint64_t max_out;		/* more bytes on stdout fail with -EFBIG; 0: no limit */
	uint64_t max_ms;		/* a longer run fails with -ETIMEDOUT; 0: no limit */
	uint64_t n_in, n_out;		/* bytes so far */
	void (*tick)(struct session *); /* about five times a second, or NULL */
	enum session_left left;		/* the program keeps running; the status is then unused */
};

/* Returns the exit status: the command's, 128 + signal, 126/127 with a message if it could not be
 * started, EXIT_OURS with a filled problem (negative return) if the connection was lost. -ESRCH
 * with `attach` if the session does not exist. */
int session_run(struct session *s, int conn, struct problem *p) MUST_CHECK;
