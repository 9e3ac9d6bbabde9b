/*
 * hostile_edge - stands where sbx-edge stands and misbehaves in the way it was built for.
 *
 * How      Built once per enum hostile value (HOSTILE is a number); tests/e2e/test_hostile_edge.py
 *          puts each in sbx-edge's place. The keeper must kill it, say "worker violation", try
 *          again a few times and then stop the sandbox with nothing left.
 * Trust    A test program in edge's jail: what a guest that has taken edge over can do.
 */
#include <poll.h>
#include <unistd.h>
#include "lib/ipc/edge_chan.h"

#include <sys/socket.h>

enum hostile {
	OUT_OF_PHASE,	/* an answer before the greeting */
	WRONG_BUILD,	/* of another build */
	OVERSIZED,	/* a packet over the limit */
	EXTRA_FD,	/* a descriptor where none belongs */
	READY_TWICE,	/* goes back in the phase table */
	UNKNOWN_STREAM, /* closes what was never opened */
	UNASKED_PONG,	/* answers what nobody asked */
	KEEPERS_WORDS,	/* says what only the keeper may say */
	TRAILING_BYTES, /* a message longer than its fields */
	TRUNCATED_TEXT, /* a string that claims more bytes than there are */
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
	int r = edge_send_hello(CONTROL, EDGE_BUILD);

	if (r < 0)
		return r;
	wait_for_message();
	return edge_send_ready(CONTROL);
}

static int misbehave(enum hostile how)
{
	static uint8_t big[IPC_HEADER + IPC_MAX_BODY + 1];
	static const uint8_t lie[] = {0xff, 0x7f, 'x'};

	switch (how) {
	case OUT_OF_PHASE:
		return edge_send_opened(CONTROL, 1, 200);
	case WRONG_BUILD:
		return edge_send_hello(CONTROL, "not-this-build");
	case OVERSIZED:
		return send(CONTROL, big, sizeof(big), MSG_NOSIGNAL) < 0 ? -1 : 0;
	case EXTRA_FD:
		return ipc_send(CONTROL, EDGE_HELLO, 0, slice_of("\5\0000.1.0", 7), CONTROL);
	case READY_TWICE:
		return greet_and_say_ready() < 0 ? -1 : edge_send_ready(CONTROL);
	case UNKNOWN_STREAM:
		return greet_and_say_ready() < 0 ? -1 : edge_send_closed(CONTROL, 77);
	case UNASKED_PONG:
		return greet_and_say_ready() < 0 ? -1 : edge_send_pong(CONTROL, 1, 1);
	case KEEPERS_WORDS:
		return edge_ask_stop(CONTROL);
	case TRAILING_BYTES:
		return ipc_send(CONTROL, EDGE_HELLO, 0, slice_of("\1\0xyz", 5), -1);
	case TRUNCATED_TEXT:
		return ipc_send(CONTROL, EDGE_HELLO, 0, slice_of(lie, sizeof(lie)), -1);
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
