/* SPDX-License-Identifier: Apache-2.0 */
#include "egress_chan.h"

#include <errno.h>
#include "lib/base/str.h"

#define IN(phase) (1U << EGRESS_PHASE_##phase)

static const struct chan_row rows[EGRESS_N_MSGS] = {
	[EGRESS_HELLO] = {"HELLO", CHAN_FROM_WORKER, IN(START), EGRESS_PHASE_CONFIG, 0},
	[EGRESS_CONFIG] = {"CONFIG", CHAN_FROM_KEEPER, IN(CONFIG) | IN(RUN), EGRESS_PHASE_RUN, 0},
	[EGRESS_RESOLVER] = {"RESOLVER", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_FD},
	[EGRESS_POLICY] = {"POLICY", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_FD | CHAN_ID},
	[EGRESS_LOADED] = {"LOADED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[EGRESS_OPEN] = {"OPEN", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_MAY_FD | CHAN_ID},
	[EGRESS_RESULT] = {"RESULT", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_MAY_FD | CHAN_ID},
	[EGRESS_CLOSED] = {"CLOSED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[EGRESS_DIRECT] = {"DIRECT", CHAN_FROM_KEEPER, IN(RUN), 0, 0},
	[EGRESS_LOCALS] = {"LOCALS", CHAN_FROM_KEEPER, IN(RUN), 0, 0},
	[EGRESS_LOGIN] = {"LOGIN", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_FD | CHAN_ID},
	[EGRESS_LOGGED] = {"LOGGED", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_ID},
};

const struct chan egress_chan = {.sides = {"keeper", "egress"},
	.rows = rows,
	.n_rows = EGRESS_N_MSGS,
	.n_phases = EGRESS_N_PHASES};

const char *egress_outcome_text(enum egress_outcome outcome)
{
	static const char *const texts[EGRESS_N_OUTCOMES] = {
		[EGRESS_CONNECTED] = "connected",
		[EGRESS_DENIED_POLICY] = "denied by policy",
		[EGRESS_DENIED_ADDRESS] = "the name resolves to an address that no rule allows",
		[EGRESS_BAD_REQUEST] = "the request does not match the allowed one",
		[EGRESS_NO_NAME] = "the name does not exist",
		[EGRESS_NO_RESOLVER] = "no DNS server of the host responds",
		[EGRESS_REFUSED] = "connection refused",
		[EGRESS_UNREACHABLE] = "host unreachable",
		[EGRESS_TIMEOUT] = "connection timed out",
		[EGRESS_PROXY_REFUSED] = "refused by the upstream proxy",
		[EGRESS_BUSY] = "too many connections of this sandbox",
		[EGRESS_GONE] = "canceled before the connection was established",
		[EGRESS_PROXY_DOWN] = "the upstream proxy cannot be reached",
		[EGRESS_PROXY_LOGIN] = "the upstream proxy refused the login",
	};

	return outcome < EGRESS_N_OUTCOMES ? texts[outcome] : "unknown outcome";
}

static int send_text(int sock, enum egress_msg type, uint32_t id, const char *text)
{
	uint8_t buf[EGRESS_MAX_TEXT + 2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_str(&wr, slice_of(text, strnlen(text, EGRESS_MAX_TEXT - 1)));
	return ipc_send_wr(sock, type, id, &wr, -1);
}

static int get_text(const struct ipc_msg *msg, enum egress_msg type, char text[EGRESS_MAX_TEXT])
{
	int r = chan_get_str(&egress_chan, msg, type, text, EGRESS_MAX_TEXT);

	return r == 0 && !str_is_printable(text) ? -EBADMSG : r;
}

int egress_send_loaded(int sock, uint32_t id, const char *text)
{
	return send_text(sock, EGRESS_LOADED, id, text);
}

int egress_send_login(int sock, uint32_t id, int fd)
{
	return chan_send_plain(sock, EGRESS_LOGIN, id, fd);
}

int egress_ask_logged(int sock, uint32_t id, const char *text)
{
	return send_text(sock, EGRESS_LOGGED, id, text);
}

const struct field egress_result_fields[] = {
	FIELD_ENUM(egress_result, outcome, EGRESS_N_OUTCOMES),
	FIELD_TEXT(egress_result, addr),
	FIELD_TEXT(egress_result, text),
	{0},
};

int egress_send_result(int sock, uint32_t id, const struct egress_result *result, int fd)
{
	return chan_send(sock, EGRESS_RESULT, id, egress_result_fields, result, fd);
}

int egress_send_closed(int sock, uint32_t id, uint64_t up, uint64_t down)
{
	uint8_t buf[16];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u64(&wr, up);
	wr_u64(&wr, down);
	return ipc_send_wr(sock, EGRESS_CLOSED, id, &wr, -1);
}

static const struct field pin_fields[] = {
	FIELD_STR(egress_pin, host),
	FIELD_RANGE(egress_pin, port, 1, UINT16_MAX),
	FIELD_STR(egress_pin, addr),
	FIELD_RANGE(egress_pin, addr_port, 1, UINT16_MAX),
	{0},
};

static int ask_direct(int sock, const struct egress_config *config)
{
	uint8_t buf[IPC_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u16(&wr, config->n_direct);
	for (size_t i = 0; i < config->n_direct; i++) {
		const struct egress_direct *d = &config->direct[i];

		wr_cstr(&wr, d->host);
		wr_u8(&wr, d->is_below);
		wr_u8(&wr, d->n);
		wr_bytes(&wr, slice_of(d->addr, d->n));
		wr_u8(&wr, d->prefix);
		wr_u16(&wr, d->port);
	}
	return ipc_send_wr(sock, EGRESS_DIRECT, 0, &wr, -1);
}

int egress_ask_config(int sock, const struct egress_config *config)
{
	uint8_t buf[IPC_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r;

	wr_u8(&wr, (uint8_t)config->proxy);
	wr_cstr(&wr, config->proxy_host);
	wr_u16(&wr, config->proxy_port);
	wr_cstr(&wr, config->proxy_user);
	wr_u16(&wr, config->n_pins);
	for (size_t i = 0; i < config->n_pins; i++)
		fields_write(&wr, pin_fields, &config->pins[i]);
	r = ipc_send_wr(sock, EGRESS_CONFIG, 0, &wr, -1);
	return r < 0 ? r : ask_direct(sock, config);
}

const struct field egress_policy_fields[] = {FIELD_ONE(uint8_t, 0, 2), {0}};

int egress_ask_policy(int sock, uint32_t id, uint8_t part, int table)
{
	return chan_send(sock, EGRESS_POLICY, id, egress_policy_fields, &part, table);
}

const struct field egress_ticket_fields[] = {
	FIELD_RANGE(ticket, version, TICKET_VERSION, TICKET_VERSION),
	FIELD_BYTES(ticket, digest),
	FIELD_BOOL(ticket, is_judged),
	{0},
};

static const struct field open_fields[] = {
	FIELD_ENUM(egress_open, kind, EGRESS_N_KINDS),
	FIELD_STR(egress_open, host),
	FIELD_RANGE(egress_open, port, 1, UINT16_MAX),
	{0},
};

int egress_ask_open(int sock, uint32_t id, const struct egress_open *open, int fd)
{
	UNINITIALIZED uint8_t buf[sizeof(*open) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	fields_write(&wr, open_fields, open);
	if (open->kind == EGRESS_HTTP)
		fields_write(&wr, egress_ticket_fields, &open->ticket);
	return ipc_send_wr(sock, EGRESS_OPEN, id, &wr, fd);
}

int egress_ask_locals(int sock, const struct egress_locals *locals)
{
	uint8_t buf[IPC_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u16(&wr, locals->n);
	for (size_t i = 0; i < locals->n; i++) {
		const struct egress_local *l = &locals->list[i];

		wr_u8(&wr, l->is_own);
		wr_u8(&wr, l->n);
		wr_bytes(&wr, slice_of(l->addr, l->n));
		wr_u8(&wr, l->prefix);
	}
	return ipc_send_wr(sock, EGRESS_LOCALS, 0, &wr, -1);
}

static bool get_pin(struct rd *rd, struct egress_pin *ret)
{
	fields_read(rd, pin_fields, ret);
	return ret->host[0] && ret->addr[0];
}

int egress_get_config(const struct ipc_msg *msg, struct egress_config *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t proxy = rd_u8(&rd);

	rd_cstr(&rd, ret->proxy_host, sizeof(ret->proxy_host));
	ret->proxy_port = rd_u16(&rd);
	rd_cstr(&rd, ret->proxy_user, sizeof(ret->proxy_user));
	ret->n_pins = rd_u16(&rd);
	if (!ret->proxy_host[0] != !ret->proxy_port || ret->n_pins > EGRESS_MAX_PINS ||
		proxy >= EGRESS_N_PROXIES || ((proxy || ret->proxy_user[0]) && !ret->proxy_host[0]))
		return -EBADMSG;
	ret->proxy = (enum egress_proxy)proxy;
	for (size_t i = 0; i < ret->n_pins; i++) {
		if (!get_pin(&rd, &ret->pins[i]))
			return -EBADMSG;
	}
	return chan_finish(&egress_chan, msg, EGRESS_CONFIG, &rd);
}

/* A name, or an address with a prefix. */
static bool get_direct(struct rd *rd, struct egress_direct *ret)
{
	uint8_t is_below;
	struct slice addr;

	*ret = (struct egress_direct){0};
	rd_cstr(rd, ret->host, sizeof(ret->host));
	is_below = rd_u8(rd);
	ret->is_below = is_below == 1;
	ret->n = rd_u8(rd);
	if (is_below > 1 || (ret->n != 0 && ret->n != 4 && ret->n != 16))
		return false;
	addr = rd_bytes(rd, ret->n);
	if (addr.n == ret->n && addr.n)
		memcpy(ret->addr, addr.p, addr.n);
	ret->prefix = rd_u8(rd);
	ret->port = rd_u16(rd);
	return !ret->host[0] == (ret->n > 0) && ret->prefix <= ret->n * 8 &&
	       !(ret->n && ret->is_below);
}

int egress_get_direct(const struct ipc_msg *msg, struct egress_config *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	ret->n_direct = rd_u16(&rd);
	if (ret->n_direct > EGRESS_MAX_DIRECT)
		return -EBADMSG;
	for (size_t i = 0; i < ret->n_direct; i++) {
		if (!get_direct(&rd, &ret->direct[i]))
			return -EBADMSG;
	}
	return chan_finish(&egress_chan, msg, EGRESS_DIRECT, &rd);
}

static bool is_in(const struct egress_direct *d, struct slice addr)
{
	for (size_t i = 0; i < d->prefix; i++) {
		uint8_t bit = (uint8_t)(0x80 >> i % 8);

		if ((d->addr[i / 8] ^ addr.p[i / 8]) & bit)
			return false;
	}
	return true;
}

bool egress_is_direct(
	const struct egress_config *config, const char *host, struct slice addr, uint16_t port)
{
	size_t n = strlen(host);

	for (size_t i = 0; i < config->n_direct; i++) {
		const struct egress_direct *d = &config->direct[i];
		size_t n_host = strlen(d->host);
		bool is_it;

		if (d->n)
			is_it = d->n == addr.n && is_in(d, addr);
		else if (d->is_below)
			is_it = n > n_host + 1 && host[n - n_host - 1] == '.' &&
				strcmp(host + n - n_host, d->host) == 0;
		else
			is_it = strcmp(host, d->host) == 0;
		if (is_it && (!d->port || d->port == port))
			return true;
	}
	return false;
}

static bool get_local(struct rd *rd, struct egress_local *ret)
{
	uint8_t is_own = rd_u8(rd);
	struct slice addr;

	*ret = (struct egress_local){.is_own = is_own == 1, .n = rd_u8(rd)};
	if (is_own > 1 || (ret->n != 4 && ret->n != 16))
		return false;
	addr = rd_bytes(rd, ret->n);
	if (addr.n == ret->n)
		memcpy(ret->addr, addr.p, addr.n);
	ret->prefix = rd_u8(rd);
	return ret->prefix <= ret->n * 8;
}

int egress_get_locals(const struct ipc_msg *msg, struct egress_locals *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	ret->n = rd_u16(&rd);
	if (ret->n > EGRESS_MAX_LOCALS)
		return -EBADMSG;
	for (size_t i = 0; i < ret->n; i++) {
		if (!get_local(&rd, &ret->list[i]))
			return -EBADMSG;
	}
	return chan_finish(&egress_chan, msg, EGRESS_LOCALS, &rd);
}

int egress_get_policy(const struct ipc_msg *msg, uint8_t *ret_part)
{
	return chan_get(&egress_chan, msg, EGRESS_POLICY, egress_policy_fields, ret_part);
}

int egress_get_loaded(const struct ipc_msg *msg, char text[EGRESS_MAX_TEXT])
{
	return get_text(msg, EGRESS_LOADED, text);
}

int egress_get_logged(const struct ipc_msg *msg, char text[EGRESS_MAX_TEXT])
{
	return get_text(msg, EGRESS_LOGGED, text);
}

int egress_get_open(const struct ipc_msg *msg, struct egress_open *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	int r;

	fields_read(&rd, open_fields, ret);
	ret->ticket = (struct ticket){0};
	if (!rd.bad && ret->kind == EGRESS_HTTP)
		fields_read(&rd, egress_ticket_fields, &ret->ticket);
	r = chan_finish(&egress_chan, msg, EGRESS_OPEN, &rd);
	return r == 0 && (!ret->host[0] || (msg->fd >= 0) != (ret->kind != EGRESS_SOCKET))
		       ? -EBADMSG
		       : r;
}

int egress_get_result(const struct ipc_msg *msg, struct egress_result *ret)
{
	int r = chan_get(&egress_chan, msg, EGRESS_RESULT, egress_result_fields, ret);

	return msg->fd >= 0 && ret->outcome != EGRESS_CONNECTED ? -EBADMSG : r;
}

int egress_get_closed(const struct ipc_msg *msg, uint64_t *ret_up, uint64_t *ret_down)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_up = rd_u64(&rd);
	*ret_down = rd_u64(&rd);
	return chan_finish(&egress_chan, msg, EGRESS_CLOSED, &rd);
}
