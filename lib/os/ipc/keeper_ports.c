/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper_ports.h"

#include <assert.h>
#include <errno.h>
#include "lib/base/str.h"

#define MAX_BODY (1 + KEEPER_MAX_PORTS * (2 + KEEPER_MAX_IP + 2 + 2 + 2 + 4))
static_assert(MAX_BODY <= IPC_MAX_BODY, "a full list fits");

static int send_list(int sock, uint16_t type, uint32_t id, const struct keeper_ports *ports)
{
	uint8_t buf[MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));

	if (ports->n > KEEPER_MAX_PORTS)
		return -EMSGSIZE;
	wr_u8(&wr, (uint8_t)ports->n);
	for (size_t i = 0; i < ports->n; i++) {
		const struct keeper_port *p = &ports->v[i];

		wr_cstr(&wr, p->ip);
		wr_u16(&wr, p->host_port);
		wr_u16(&wr, p->port);
		if (type == KEEPER_PORTS)
			continue;
		wr_u16(&wr, p->bound);
		wr_u32(&wr, (uint32_t)p->code);
	}
	return ipc_send_wr(sock, type, id, &wr, -1);
}

int keeper_ask_ports(int sock, uint32_t id, const struct keeper_ports *ports)
{
	return send_list(sock, KEEPER_PORTS, id, ports);
}

int keeper_send_ports(int sock, uint32_t id, const struct keeper_ports *ports)
{
	return send_list(sock, KEEPER_PORTS_ARE, id, ports);
}

static int get_list(const struct ipc_msg *msg, uint16_t type, struct keeper_ports *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	bool is_bad = false;

	ret->n = rd_u8(&rd);
	if (ret->n > KEEPER_MAX_PORTS)
		return -EBADMSG;
	for (size_t i = 0; i < ret->n; i++) {
		struct keeper_port *p = &ret->v[i];

		*p = (struct keeper_port){0};
		rd_cstr(&rd, p->ip, sizeof(p->ip));
		p->host_port = rd_u16(&rd);
		p->port = rd_u16(&rd);
		if (type == KEEPER_PORTS_ARE) {
			p->bound = rd_u16(&rd);
			p->code = (int32_t)rd_u32(&rd);
		}
		is_bad = is_bad || !p->port || p->code > 0 || p->code < -4095 ||
			 (p->code == 0 && type == KEEPER_PORTS_ARE && !p->bound) ||
			 !str_is_printable(p->ip);
	}
	return is_bad ? -EBADMSG : chan_finish(&keeper_chan, msg, type, &rd);
}

int keeper_get_ports(const struct ipc_msg *msg, struct keeper_ports *ret)
{
	return get_list(msg, KEEPER_PORTS, ret);
}

int keeper_get_ports_are(const struct ipc_msg *msg, struct keeper_ports *ret)
{
	return get_list(msg, KEEPER_PORTS_ARE, ret);
}
