/* SPDX-License-Identifier: Apache-2.0 */
/* A run of packets (u16 length, bytes; the length's top bit says that an fd came along) as both
 * sides see them: phase check, decoder, phase after. */
#include "lib/os/ipc/edge_chan.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What went through is fit for logs, and of the kind it says. */
static int decode_ask(const struct ipc_msg *m)
{
	static struct edge_ask ask;
	int r = edge_get_ask(m, &ask);

	if (r < 0)
		return r;
	if (m->fd >= 0 || ask.kind >= EDGE_N_ASK_KINDS ||
		strnlen(ask.host, sizeof(ask.host)) == sizeof(ask.host) ||
		strnlen(ask.target, sizeof(ask.target)) == sizeof(ask.target))
		__builtin_trap();
	if (!ask.fault[0] && ask.kind != EDGE_ASK_AGENT &&
		(!ask.host[0] || (ask.kind != EDGE_ASK_DNS && !ask.port)))
		__builtin_trap();
	for (const char *c = ask.target; *c; c++)
		if (*c < ' ' || *c > '~')
			__builtin_trap();
	return 0;
}

static int decode_verdict(const struct ipc_msg *m)
{
	struct edge_verdict verdict;
	int r = edge_get_verdict(m, &verdict);

	if (r == 0 && m->fd >= 0 && (!verdict.allowed || verdict.opened))
		__builtin_trap();
	return r;
}

static int decode(const struct ipc_msg *m)
{
	char build[CHAN_MAX_BUILD], path[EDGE_MAX_PATH], text[EDGE_MAX_TEXT];
	struct edge_config config;
	struct edge_ca ca;
	enum edge_reason reason;
	uint16_t status;

	switch (m->type) {
	case EDGE_HELLO:
		return chan_get_hello(m, build);
	case EDGE_CONFIG:
		return edge_get_config(m, &config);
	case EDGE_OPEN:
		return edge_get_open(m, path);
	case EDGE_OPENED:
		return edge_get_opened(m, &status);
	case EDGE_REFUSED:
		return edge_get_refused(m, &reason);
	case EDGE_LOST:
		return edge_get_lost(m, text);
	case EDGE_NET:
	case EDGE_CHANNEL:
		return chan_get_plain(&edge_chan, m, m->type);
	case EDGE_ASK:
		return decode_ask(m);
	case EDGE_VERDICT:
		return decode_verdict(m);
	case EDGE_CA:
		return edge_get_ca(m, &ca);
	default:
		return chan_get_plain(&edge_chan, m, m->type);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct ipc_msg msg;
	struct rd rd = rd_init(slice_of(p, n));
	enum edge_phase phase = EDGE_PHASE_START;

	for (unsigned i = 0; i < 64 && rd.n && !rd.bad; i++) {
		uint16_t head = rd_u16(&rd);
		struct slice packet = rd_bytes(&rd, head & 0x7fff);
		bool keeper, edge;

		if (rd.bad || ipc_parse(packet, &msg) < 0)
			return 0;
		msg.fd = head & 0x8000 ? 1 << 20 : -1;
		keeper = chan_allows(&edge_chan, phase, CHAN_FROM_KEEPER, msg.type);
		edge = chan_allows(&edge_chan, phase, CHAN_FROM_WORKER, msg.type);
		/* No message is for both to say. */
		if (keeper && edge)
			__builtin_trap();
		if (decode(&msg) < 0 || !(keeper || edge))
			return 0;
		phase = chan_after(&edge_chan, phase, msg.type);
		if (phase >= EDGE_N_PHASES)
			__builtin_trap();
	}
	return 0;
}
