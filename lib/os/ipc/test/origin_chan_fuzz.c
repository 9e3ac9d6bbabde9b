/* SPDX-License-Identifier: Apache-2.0 */
/* A run of packets (u16 length, bytes; the length's top bit says that an fd came along) as both
 * sides see them: phase check, decoder, phase after. What is decoded has its bounds. */
#include "lib/os/ipc/origin_chan.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			return false;
	}
	return true;
}

static int decode_config(const struct ipc_msg *m)
{
	struct origin_config config;
	int r = origin_get_config(m, &config);

	check(r < 0 || (config.host[0] && config.port && config.has <= ORIGIN_HAS_ALL));
	return r;
}

static int decode_result(const struct ipc_msg *m)
{
	struct origin_result result;
	int r = origin_get_result(m, &result);

	check(r < 0 || (result.outcome < ORIGIN_N_OUTCOMES && (!result.used || result.slot[0]) &&
			       result.status < 600 && is_printable(result.text)));
	return r;
}

static int decode_value(const struct ipc_msg *m)
{
	struct origin_value value;
	int r = origin_get_value(m, &value);

	check(r < 0 || (value.given == (m->fd >= 0) && is_printable(value.text)));
	return r;
}

static int decode(const struct ipc_msg *m)
{
	struct egress_result socket;
	struct origin_need need;
	struct origin_tokens tokens;
	struct origin_stored stored;
	struct ticket ticket;
	uint8_t has;
	char build[CHAN_MAX_BUILD];
	uint64_t up, down;
	int r;

	switch (m->type) {
	case ORIGIN_HELLO:
		return chan_get_hello(m, build);
	case ORIGIN_CONFIG:
		return decode_config(m);
	case ORIGIN_SOCKET:
		r = origin_get_socket(m, &socket);
		check(r < 0 || (socket.outcome == EGRESS_CONNECTED) == (m->fd >= 0));
		return r;
	case ORIGIN_NEED:
		r = origin_get_need(m, &need);
		check(r < 0 || need.which < ORIGIN_N_WHICH);
		return r;
	case ORIGIN_VALUE:
		return decode_value(m);
	case ORIGIN_TOKENS:
		r = origin_get_tokens(m, &tokens);
		check(r < 0 || tokens.which != ORIGIN_SECRET);
		return r;
	case ORIGIN_OPEN:
		r = origin_get_open(m, &ticket);
		check(r < 0 || ticket.version == TICKET_VERSION);
		return r;
	case ORIGIN_STORED:
		return origin_get_stored(m, &stored);
	case ORIGIN_RENEW:
		r = origin_get_renew(m, &has);
		check(r < 0 || has <= ORIGIN_HAS_ALL);
		return r;
	case ORIGIN_POLICY:
		r = origin_get_policy(m, &has);
		check(r < 0 || has <= 1);
		return r;
	case ORIGIN_RESULT:
		return decode_result(m);
	case ORIGIN_CLOSED:
		return origin_get_closed(m, &up, &down);
	default:
		return chan_get_plain(&origin_chan, m, m->type);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct ipc_msg msg;
	struct rd rd = rd_init(slice_of(p, n));
	enum origin_phase phase = ORIGIN_PHASE_START;

	for (unsigned i = 0; i < 64 && rd.n && !rd.bad; i++) {
		uint16_t head = rd_u16(&rd);
		struct slice packet = rd_bytes(&rd, head & 0x7fff);
		bool keeper, origin;

		if (rd.bad || ipc_parse(packet, &msg) < 0)
			return 0;
		msg.fd = head & 0x8000 ? 1 << 20 : -1;
		keeper = chan_allows(&origin_chan, phase, CHAN_FROM_KEEPER, msg.type);
		origin = chan_allows(&origin_chan, phase, CHAN_FROM_WORKER, msg.type);
		/* No message is for both to say. */
		check(!keeper || !origin);
		if (!(keeper || origin) || decode(&msg) < 0)
			return 0;
		phase = chan_after(&origin_chan, phase, msg.type);
		check(phase < ORIGIN_N_PHASES);
	}
	return 0;
}
