/* SPDX-License-Identifier: Apache-2.0 */
/* A run of packets (u16 length, bytes; the length's top bit says that an fd came along) as both
 * sides see them: phase check, decoder, phase after. What is decoded has its bounds. */
#include "lib/os/ipc/egress_chan.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static int decode_config(const struct ipc_msg *m)
{
	static struct egress_config config;
	int r = egress_get_config(m, &config);

	check(r < 0 || config.n_pins <= EGRESS_MAX_PINS);
	for (size_t i = 0; r == 0 && i < config.n_pins; i++)
		check(config.pins[i].host[0] && config.pins[i].port && config.pins[i].addr_port);
	return r;
}

static int decode_locals(const struct ipc_msg *m)
{
	static struct egress_locals locals;
	int r = egress_get_locals(m, &locals);

	check(r < 0 || locals.n <= EGRESS_MAX_LOCALS);
	for (size_t i = 0; r == 0 && i < locals.n; i++)
		check(locals.list[i].prefix <= locals.list[i].n * 8 && locals.list[i].n <= 16);
	return r;
}

static int decode_direct(const struct ipc_msg *m)
{
	static struct egress_config config;
	int r = egress_get_direct(m, &config);

	check(r < 0 || config.n_direct <= EGRESS_MAX_DIRECT);
	if (r == 0)
		(void)egress_is_direct(&config, "a.example", slice_of("\x0a\0\0\1", 4), 443);
	return r;
}

static int decode(const struct ipc_msg *m)
{
	struct egress_open open;
	struct egress_result result;
	char build[CHAN_MAX_BUILD], text[EGRESS_MAX_TEXT];
	uint64_t up, down;
	uint8_t part;
	int r;

	switch (m->type) {
	case EGRESS_HELLO:
		return chan_get_hello(m, build);
	case EGRESS_CONFIG:
		return decode_config(m);
	case EGRESS_DIRECT:
		return decode_direct(m);
	case EGRESS_RESOLVER:
		return chan_get_plain(&egress_chan, m, EGRESS_RESOLVER);
	case EGRESS_POLICY:
		return egress_get_policy(m, &part);
	case EGRESS_LOCALS:
		return decode_locals(m);
	case EGRESS_LOGIN:
		return chan_get_plain(&egress_chan, m, EGRESS_LOGIN);
	case EGRESS_LOGGED:
		return egress_get_logged(m, text);
	case EGRESS_LOADED:
		return egress_get_loaded(m, text);
	case EGRESS_OPEN:
		r = egress_get_open(m, &open);
		check(r < 0 || (open.kind < EGRESS_N_KINDS && open.host[0] && open.port));
		return r;
	case EGRESS_RESULT:
		r = egress_get_result(m, &result);
		check(r < 0 || egress_outcome_text(result.outcome));
		return r;
	case EGRESS_CLOSED:
		return egress_get_closed(m, &up, &down);
	default:
		return -EBADMSG;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct ipc_msg msg;
	struct rd rd = rd_init(slice_of(p, n));
	enum egress_phase phase = EGRESS_PHASE_START;

	for (unsigned i = 0; i < 64 && rd.n && !rd.bad; i++) {
		uint16_t head = rd_u16(&rd);
		struct slice packet = rd_bytes(&rd, head & 0x7fff);
		bool keeper, egress;

		if (rd.bad || ipc_parse(packet, &msg) < 0)
			return 0;
		msg.fd = head & 0x8000 ? 1 << 20 : -1;
		keeper = chan_allows(&egress_chan, phase, CHAN_FROM_KEEPER, msg.type);
		egress = chan_allows(&egress_chan, phase, CHAN_FROM_WORKER, msg.type);
		/* No message is for both to say. */
		check(!keeper || !egress);
		if (decode(&msg) < 0 || !(keeper || egress))
			return 0;
		phase = chan_after(&egress_chan, phase, msg.type);
		check(phase < EGRESS_N_PHASES);
	}
	return 0;
}
