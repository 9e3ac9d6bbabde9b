/*
 * session - one command in a sandbox: bytes both ways until it ends.
 *
 * How      session_run takes the connection that api_stream gave, sends the SPEC and copies until
 *          EXIT. poll(2), not epoll: stdin may be a plain file, which epoll refuses. Full queues
 *          stop the reading, so nothing grows. stdin and stdout keep their blocking mode, which
 *          other programs share: writes are small enough not to block after POLLOUT.
 * Trust    Everything that comes is the guest's: frames are checked by exec_frame.h; with a
 *          terminal the output goes to it as it is, as with ssh; error texts are cleaned.
 * Owns     Its queues. The fds stay the caller's, the connection is closed.
 * Limits   SESSION_QUEUE bytes a direction; SESSION_SPEC_MS until the command has started;
 *          SESSION_LAST_MS after a forwarded SIGTERM or SIGHUP.
 * See      proto/PROTOCOL.exec
 */
#pragma once

#include "lib/guestapi/exec_frame.h"
#include "ui.h"

#define SESSION_QUEUE (256u << 10)
#define SESSION_SPEC_MS 60000
#define SESSION_LAST_MS 10000

struct session {
	struct exec_spec spec; /* borrowed strings */
	int in_fd;	       /* -1: none */
	int out_fd, err_fd;
	bool tty;	/* in_fd is a terminal: raw mode, RESIZE; else signals are forwarded */
	bool detach;	/* ends when the command has started */
	char *err_text; /* when set, the guest's stderr goes here instead: err_size bytes */
	size_t err_size;
	uint64_t n_in, n_out;		/* bytes so far */
	void (*tick)(struct session *); /* about five times a second, or NULL */
};

/* The exit status to give: the command's, 128 + signal, 126/127 with a message when it could not be
 * started, EXIT_OURS with a filled problem (negative return) when the connection was lost. */
int session_run(struct session *s, int conn, struct problem *p) MUST_CHECK;
