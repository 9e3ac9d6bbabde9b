/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_edge - stands where sbx-edge stands and misbehaves in the way it was built for.
 *
 * How      Built once per enum hostile value (HOSTILE is a number); tests/e2e/test_hostile_edge.py
 *          puts each in sbx-edge's place. The keeper must kill it, say "worker violation", try
 *          again a few times and then stop the sandbox with nothing left.
 * Trust    A test program in edge's jail: what a guest that has taken edge over can do.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include "lib/os/ipc/edge_chan.h"

#include <sys/socket.h>

enum hostile {
	OUT_OF_PHASE,	/* an answer before the greeting */
	WRONG_BUILD,	/* of another build */
	OVERSIZED,	/* a packet over the limit */
	EXTRA_FD,	/* a descriptor where none belongs */
	READY_TWICE,	/* goes back in the phase table */
	UNKNOWN_STREAM, /* closes what was never opened */
	UNUSED_NUMBER,	/* sends a number that no message has */
	KEEPERS_WORDS,	/* says what only the keeper may say */
	TRAILING_BYTES, /* a message longer than its fields */
	TRUNCATED_TEXT, /* a string that claims more bytes than there are */
	EARLY_ASK,	/* wants the network before the greeting */
	ASK_WITH_FD,	/* passes a descriptor along with a question */
	ASK_TWICE,	/* two questions under one number */
	ASK_FLOOD,	/* asks without end and reads no answer */
	OWN_VERDICT,	/* allows itself what it wants */
};

#define CONTROL 3

static void wait_for_message(void)
{
	struct pollfd p = {.fd = CONTROL, .events = POLLIN};
	static struct ipc_msg msg;

	if (poll(&p, 1, 20000) == 1 && ipc_recv(CONTROL, &msg) > 0)
		ipc_msg_done(&msg);
}

static int greet_and_say_ready(void)
{
	int r = chan_send_hello(CONTROL, SBX_BUILD);

	if (r < 0)
		return r;
	wait_for_message();
	return chan_send_plain(CONTROL, EDGE_READY, 0, -1);
}

static struct edge_ask some_ask(enum edge_ask_kind kind)
{
	return (struct edge_ask){
		.kind = kind, .host = "a.example", .port = kind == EDGE_ASK_DNS ? 0 : 443};
}

/* Reads no answer, so that at some time questions stay unanswered. */
static int ask_for_ever(uint32_t n_ids)
{
	struct edge_ask ask = some_ask(EDGE_ASK_DNS);
	struct pollfd p = {.fd = CONTROL, .events = POLLOUT};
	int r = greet_and_say_ready();

	for (uint32_t i = 0; i < 1000000 && (r == 0 || r == -EAGAIN); i++) {
		r = edge_send_ask(CONTROL, i % n_ids, &ask);
		if (r == -EAGAIN)
			(void)poll(&p, 1, 1000);
	}
	return r;
}

static int misbehave(enum hostile how)
{
	const struct edge_ask ask = some_ask(EDGE_ASK_TUNNEL);
	const struct edge_verdict yes = {.allowed = true};
	static uint8_t big[IPC_HEADER + IPC_MAX_BODY + 1];
	static const uint8_t lie[] = {0xff, 0x7f, 'x'};

	switch (how) {
	case OUT_OF_PHASE:
		return edge_send_opened(CONTROL, 1, 200);
	case WRONG_BUILD:
		return chan_send_hello(CONTROL, "not-this-build");
	case OVERSIZED:
		return send(CONTROL, big, sizeof(big), MSG_NOSIGNAL) < 0 ? -1 : 0;
	case EXTRA_FD:
		return ipc_send(CONTROL, EDGE_HELLO, 0, slice_of("\5\0000.1.0", 7), CONTROL);
	case READY_TWICE:
		return greet_and_say_ready() < 0 ? -1 : chan_send_plain(CONTROL, EDGE_READY, 0, -1);
	case UNKNOWN_STREAM:
		return greet_and_say_ready() < 0 ? -1
						 : chan_send_plain(CONTROL, EDGE_CLOSED, 77, -1);
	case UNUSED_NUMBER:
		return greet_and_say_ready() < 0
			       ? -1
			       : ipc_send(CONTROL, EDGE_CLOSED + 1, 1, slice_of("", 0), -1);
	case KEEPERS_WORDS:
		return edge_ask_open(CONTROL, 1, "/x", CONTROL);
	case TRAILING_BYTES:
		return ipc_send(CONTROL, EDGE_HELLO, 0, slice_of("\1\0xyz", 5), -1);
	case TRUNCATED_TEXT:
		return ipc_send(CONTROL, EDGE_HELLO, 0, slice_of(lie, sizeof(lie)), -1);
	case EARLY_ASK:
		return edge_send_ask(CONTROL, 1, &ask);
	case ASK_WITH_FD:
		return greet_and_say_ready() < 0
			       ? -1
			       : ipc_send(CONTROL, EDGE_ASK, 1, slice_of("\0\0\0", 3), CONTROL);
	case ASK_TWICE:
		return ask_for_ever(2);
	case ASK_FLOOD:
		return ask_for_ever(UINT32_MAX);
	case OWN_VERDICT:
		return greet_and_say_ready() < 0 ? -1 : edge_answer_ask(CONTROL, 1, &yes, -1);
	}
	return -1;
}

int main(void)
{
	(void)!misbehave(HOSTILE);
	/* Stays: only the keeper may end it. */
	for (int i = 0; i < 60; i++)
		(void)poll(NULL, 0, 1000);
	return 0;
}
