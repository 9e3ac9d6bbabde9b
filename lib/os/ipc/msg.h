/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msg - one message between two of our processes: one SOCK_SEQPACKET packet, at most one fd.
 *
 * How      Header of 12 bytes (u16 type, u16 flags = 0, u32 id echoed in the answer, u32 body
 *          length), then a body of fixed fields. The files of each channel (edge_chan.h ...) define
 *          the types, their phases and their fields. After ipc_trace each message of the socket is
 *          a line of the trace: its name from the channel's table, id and size.
 * Trust    The other end may be compromised by the guest: everything is bounded and checked, and
 *          any violation is an error after which the caller drops the peer.
 * Owns     A received fd belongs to the struct ipc_msg until TAKE_FD'd; ipc_msg_done closes it.
 * Limits   IPC_MAX_BODY bytes, one fd; FD_MAX_MANY messages in a batch.
 * See      proto/PROTOCOL.ipc, msg_test.c, msg_fuzz.c
 */
#pragma once

#include "lib/base/fs/fd.h"
#include "lib/base/slice.h"

#define IPC_MAX_BODY 16384
#define IPC_HEADER 12
#define IPC_MAX_LABEL 80

struct ipc_msg {
	uint16_t type;
	uint32_t id;
	int fd; /* -1 when none came */
	size_t n;
	uint8_t body[IPC_MAX_BODY];
};

/* A connected pair, CLOEXEC, non-blocking. */
int ipc_pair(int fds[2]) MUST_CHECK;
/* -EAGAIN if the peer does not read, -EPIPE if it closed. pass_fd: -1, or stays the caller's. */
int ipc_send(int sock, uint16_t type, uint32_t id, struct slice body, int pass_fd) MUST_CHECK;
/* 1 with a message, 0 at the end, -EAGAIN, -EBADMSG on any violation (fds are closed). */
int ipc_recv(int sock, struct ipc_msg *ret_msg) MUST_CHECK;
/* Packets that arrived together. */
struct ipc_batch {
	struct fd_packet list[FD_MAX_MANY];
	size_t n, at;
	uint8_t packets[FD_MAX_MANY][IPC_HEADER + IPC_MAX_BODY];
};
/* Receives what is there, up to FD_MAX_MANY packets; the last ones must have been taken or dropped.
 * 0, -EAGAIN, or the error of the socket. */
int ipc_batch_recv(int sock, struct ipc_batch *b) MUST_CHECK;
/* The next one as ipc_recv returns it, -EAGAIN after the last. */
int ipc_batch_next(int sock, struct ipc_batch *b, struct ipc_msg *ret_msg) MUST_CHECK;
/* Drops the others: their descriptors are closed. */
void ipc_batch_done(struct ipc_batch *b);
/* Decodes a packet that is already in memory: what ipc_recv does after recvmsg. */
int ipc_parse(struct slice packet, struct ipc_msg *ret_msg) MUST_CHECK;
void ipc_msg_done(struct ipc_msg *msg);

struct chan;
/* If SBX_TRACE has ipc, this side (chan.h) traces the messages of the channel from now on. `label`
 * follows the names of both sides: "" or "for HOST:PORT ". */
void ipc_trace(int sock, const struct chan *chan, unsigned side, const char *label);

/* For the files of the channels. */
/* ipc_send of what was written, if all of it fitted. */
int ipc_send_wr(int sock, uint16_t type, uint32_t id, const struct wr *wr, int pass_fd) MUST_CHECK;

static inline struct slice ipc_body(const struct ipc_msg *msg)
{
	return slice_of(msg->body, msg->n);
}
