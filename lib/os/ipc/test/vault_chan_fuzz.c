/* SPDX-License-Identifier: Apache-2.0 */
/* A run of packets (u16 length, bytes; the length's top bit says that an fd came along) as both
 * sides see them: phase check, decoder, phase after. What is decoded has its bounds. */
#include "lib/os/ipc/vault_scanned.h"
#include "lib/os/ipc/vault_chan.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static int decode_set_ref(const struct ipc_msg *m)
{
	static struct vault_meta meta;
	static struct vault_ref ref;
	int r = vault_get_set_ref(m, &meta, &ref);

	check(r < 0 || (ref.kind != VAULT_REF_NONE && ref.program[0] == '/' &&
			       ref.n_args <= VAULT_MAX_ARGS && vault_name_is_good(meta.name)));
	return r;
}

static int decode_answer(const struct ipc_msg *m)
{
	static struct vault_item item;
	struct vault_status status;
	static struct vault_scanned scanned;
	struct vault_done done;
	char build[CHAN_MAX_BUILD];
	uint64_t number;
	int r;

	switch (m->type) {
	case VAULT_HELLO:
		return chan_get_hello(m, build);
	case VAULT_ITEM:
		return vault_get_item(m, &item);
	case VAULT_CHANGED:
		return vault_get_changed(m, &number);
	case VAULT_SCANNED:
		r = vault_get_scanned(m, &scanned);
		check(r < 0 || scanned.n <= VAULT_MAX_FOUND);
		return r;
	case VAULT_STATUS_IS:
		return vault_get_status(m, &status);
	default:
		return vault_get_done(m, &done);
	}
}

static int decode(const struct ipc_msg *m)
{
	static struct vault_meta meta;
	char name[VAULT_MAX_NAME], scope[VAULT_MAX_SCOPE], control[VAULT_MAX_CONTROL + 1];
	uint64_t number;
	int r;

	switch (m->type) {
	case VAULT_CHANNEL:
		r = vault_get_channel(m, scope);
		check(r < 0 || (vault_name_is_good(scope) && m->fd >= 0));
		return r;
	case VAULT_SET:
		r = vault_get_set(m, &meta);
		check(r < 0 || (vault_name_is_good(meta.name) && m->fd >= 0));
		return r;
	case VAULT_SET_REF:
		return decode_set_ref(m);
	case VAULT_REMOVE:
		return vault_get_remove(m, name, scope);
	case VAULT_STORE:
		r = vault_get_store(m, name);
		check(r < 0 || vault_name_is_token(name));
		return r;
	case VAULT_RELEASE:
		r = vault_get_release(m, name, &number);
		check(r < 0 || (number && m->fd >= 0));
		return r;
	case VAULT_SCAN:
		r = vault_get_scan(m, control);
		check(r < 0 || (m->fd >= 0 && vault_control_is_good(control)));
		return r;
	case VAULT_ADMIN:
	case VAULT_UNLOCK:
	case VAULT_LIST:
	case VAULT_WATCH:
	case VAULT_STATUS:
	case VAULT_STOP:
		return chan_get_plain(&vault_chan, m, m->type);
	default:
		return decode_answer(m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct ipc_msg msg;
	struct rd rd = rd_init(slice_of(p, n));
	enum vault_phase phase = VAULT_PHASE_START;

	for (unsigned i = 0; i < 64 && rd.n && !rd.bad; i++) {
		uint16_t head = rd_u16(&rd);
		struct slice packet = rd_bytes(&rd, head & 0x7fff);
		bool peer, vault;

		if (rd.bad || ipc_parse(packet, &msg) < 0)
			return 0;
		msg.fd = head & 0x8000 ? 1 << 20 : -1;
		peer = chan_allows(&vault_chan, phase, VAULT_FROM_PEER, msg.type);
		vault = chan_allows(&vault_chan, phase, VAULT_FROM_VAULT, msg.type);
		/* No message is for both to say. */
		check(!peer || !vault);
		if (decode(&msg) < 0 || !(peer || vault))
			return 0;
		phase = chan_after(&vault_chan, phase, msg.type);
		check(phase < VAULT_N_PHASES);
	}
	return 0;
}
