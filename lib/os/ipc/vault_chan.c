/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_chan.h"

#include <errno.h>

#define IN(phase) (1U << VAULT_PHASE_##phase)
#define MANAGE (IN(ADMIN) | IN(OWNER))
#define ALL (MANAGE | IN(SANDBOX))

static const struct chan_row rows[VAULT_N_MSGS] = {
	[VAULT_HELLO] = {"HELLO", VAULT_FROM_VAULT, IN(START), VAULT_PHASE_ROLE, 0},
	[VAULT_ADMIN] = {"ADMIN", VAULT_FROM_PEER, IN(ROLE), VAULT_PHASE_ADMIN, 0},
	[VAULT_CHANNEL] = {"CHANNEL", VAULT_FROM_PEER, IN(OWNER), 0, CHAN_FD},
	[VAULT_SET] = {"SET", VAULT_FROM_PEER, MANAGE, 0, CHAN_FD | CHAN_ID},
	[VAULT_SET_REF] = {"SET_REF", VAULT_FROM_PEER, MANAGE, 0, CHAN_ID},
	[VAULT_REMOVE] = {"REMOVE", VAULT_FROM_PEER, MANAGE, 0, CHAN_ID},
	[VAULT_UNLOCK] = {"UNLOCK", VAULT_FROM_PEER, MANAGE, 0, CHAN_FD | CHAN_ID},
	[VAULT_LIST] = {"LIST", VAULT_FROM_PEER, ALL, 0, CHAN_ID},
	[VAULT_ITEM] = {"ITEM", VAULT_FROM_VAULT, ALL, 0, CHAN_ID},
	[VAULT_RELEASE] = {"RELEASE", VAULT_FROM_PEER, IN(SANDBOX), 0, CHAN_FD | CHAN_ID},
	[VAULT_STORE] = {"STORE", VAULT_FROM_PEER, IN(SANDBOX), 0, CHAN_FD | CHAN_ID},
	[VAULT_WATCH] = {"WATCH", VAULT_FROM_PEER, ALL, 0, CHAN_ID},
	[VAULT_CHANGED] = {"CHANGED", VAULT_FROM_VAULT, ALL, 0, 0},
	[VAULT_STATUS] = {"STATUS", VAULT_FROM_PEER, ALL, 0, CHAN_ID},
	[VAULT_STATUS_IS] = {"STATUS_IS", VAULT_FROM_VAULT, ALL, 0, CHAN_ID},
	[VAULT_SCAN] = {"SCAN", VAULT_FROM_PEER, MANAGE, 0, CHAN_FD | CHAN_ID},
	[VAULT_SCANNED] = {"SCANNED", VAULT_FROM_VAULT, MANAGE, 0, CHAN_ID},
	[VAULT_DONE] = {"DONE", VAULT_FROM_VAULT, ALL, 0, CHAN_ID},
	[VAULT_STOP] = {"STOP", VAULT_FROM_PEER, MANAGE, VAULT_PHASE_END, 0},
};

const struct chan vault_chan = {.sides = {"peer", "vault"},
	.rows = rows,
	.n_rows = VAULT_N_MSGS,
	.n_phases = VAULT_N_PHASES};

const char *vault_key_text(enum vault_key key)
{
	static const char *const texts[VAULT_N_KEYS] = {
		[VAULT_KEY_NONE] = "none",
		[VAULT_KEY_FILE] = "a file beside it, protected by its permissions alone",
		[VAULT_KEY_SECRET_SERVICE] = "the Secret Service of the desktop",
		[VAULT_KEY_SYSTEMD_CREDS] = "systemd-creds (host key or TPM)",
		[VAULT_KEY_PASSPHRASE] = "a passphrase",
	};

	return key < VAULT_N_KEYS ? texts[key] : "unknown";
}

const char *vault_memory_text(enum vault_memory memory)
{
	static const char *const texts[VAULT_N_MEMORIES] = {
		[VAULT_MEMORY_HIDDEN] = "hidden from the kernel's own map, never swapped",
		[VAULT_MEMORY_LOCKED] = "locked, never swapped",
		[VAULT_MEMORY_PLAIN] =
			"not locked: the limit of locked memory (ulimit -l) forbids it",
	};

	return memory < VAULT_N_MEMORIES ? texts[memory] : "unknown";
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool vault_name_is_good(const char *name)
{
	if (!is_alnum(name[0]))
		return false;
	for (; *name; name++) {
		if (!is_alnum(*name) && !strchr("._:-", *name))
			return false;
	}
	return true;
}

bool vault_name_is_token(const char *name)
{
	const char *dot = strchr(name, '.');

	if (!dot || dot == name || (strcmp(dot, ".access") != 0 && strcmp(dot, ".refresh") != 0))
		return false;
	for (; name < dot; name++) {
		if (!(*name >= 'a' && *name <= 'z') && !(*name >= '0' && *name <= '9') &&
			*name != '-')
			return false;
	}
	return true;
}

/* ---- fields ---- */

void vault_put_meta(struct wr *wr, const struct vault_meta *meta)
{
	wr_cstr(wr, meta->name);
	wr_cstr(wr, meta->scope);
	wr_u8(wr, (uint8_t)meta->kind);
	wr_cstr(wr, meta->hosts);
	wr_cstr(wr, meta->header);
	wr_cstr(wr, meta->format);
	wr_cstr(wr, meta->env);
	wr_cstr(wr, meta->sentinel);
}

/* A text that people and programs will see. */
static void read_text(struct rd *rd, char *buf, size_t size)
{
	rd_cstr(rd, buf, size);
	if (!rd->bad && !ipc_is_printable(buf))
		rd->bad = true;
}

static unsigned read_enum(struct rd *rd, unsigned n)
{
	uint8_t v = rd_u8(rd);

	if (v >= n)
		rd->bad = true;
	return v < n ? v : 0;
}

static void read_name(struct rd *rd, char buf[VAULT_MAX_NAME])
{
	rd_cstr(rd, buf, VAULT_MAX_NAME);
	if (!rd->bad && !vault_name_is_good(buf))
		rd->bad = true;
}

static void read_scope(struct rd *rd, char buf[VAULT_MAX_SCOPE], bool may_be_global)
{
	rd_cstr(rd, buf, VAULT_MAX_SCOPE);
	if (!rd->bad && !(buf[0] ? vault_name_is_good(buf) : may_be_global))
		rd->bad = true;
}

void vault_read_meta(struct rd *rd, struct vault_meta *ret)
{
	*ret = (struct vault_meta){0};
	read_name(rd, ret->name);
	read_scope(rd, ret->scope, true);
	ret->kind = (enum vault_kind)read_enum(rd, VAULT_N_KINDS);
	read_text(rd, ret->hosts, sizeof(ret->hosts));
	read_text(rd, ret->header, sizeof(ret->header));
	read_text(rd, ret->format, sizeof(ret->format));
	read_text(rd, ret->env, sizeof(ret->env));
	read_text(rd, ret->sentinel, sizeof(ret->sentinel));
}

void vault_put_ref(struct wr *wr, const struct vault_ref *ref)
{
	wr_u8(wr, (uint8_t)ref->kind);
	wr_cstr(wr, ref->program);
	wr_u8(wr, ref->n_args);
	for (size_t i = 0; i < ref->n_args && i < VAULT_MAX_ARGS; i++)
		wr_cstr(wr, ref->args[i]);
	wr_u32(wr, ref->refresh_s);
}

/* A reference without program is none at all; a docker one has exactly the server's URL. */
static bool ref_is_good(const struct vault_ref *ref)
{
	if (ref->refresh_s > VAULT_MAX_REFRESH_S)
		return false;
	if (ref->kind == VAULT_REF_NONE)
		return !ref->program[0] && !ref->n_args && !ref->refresh_s;
	if (ref->program[0] != '/')
		return false;
	return ref->kind != VAULT_REF_DOCKER || (ref->n_args == 1 && ref->args[0][0]);
}

void vault_read_ref(struct rd *rd, struct vault_ref *ret)
{
	*ret = (struct vault_ref){0};
	ret->kind = (enum vault_ref_kind)read_enum(rd, VAULT_N_REFS);
	read_text(rd, ret->program, sizeof(ret->program));
	ret->n_args = rd_u8(rd);
	if (ret->n_args > VAULT_MAX_ARGS) {
		rd->bad = true;
		ret->n_args = 0;
	}
	for (size_t i = 0; i < ret->n_args; i++)
		read_text(rd, ret->args[i], sizeof(ret->args[i]));
	ret->refresh_s = rd_u32(rd);
	if (!rd->bad && !ref_is_good(ret))
		rd->bad = true;
}

/* ---- senders ---- */

int vault_send_item(int sock, uint32_t id, const struct vault_item *item)
{
	uint8_t buf[sizeof(*item) + 64];
	struct wr wr = wr_init(buf, sizeof(buf));

	vault_put_meta(&wr, &item->meta);
	wr_u8(&wr, (uint8_t)item->ref);
	wr_cstr(&wr, item->program);
	wr_u32(&wr, item->refresh_s);
	wr_u64(&wr, item->serial);
	wr_u64(&wr, item->created_ms);
	wr_u64(&wr, item->changed_ms);
	wr_u64(&wr, item->used_ms);
	wr_cstr(&wr, item->mask_head);
	wr_cstr(&wr, item->mask_tail);
	return ipc_send_wr(sock, VAULT_ITEM, id, &wr, -1);
}

int vault_send_changed(int sock, uint64_t generation)
{
	uint8_t buf[8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u64(&wr, generation);
	return ipc_send_wr(sock, VAULT_CHANGED, 0, &wr, -1);
}

int vault_send_status(int sock, uint32_t id, const struct vault_status *status)
{
	uint8_t buf[sizeof(*status) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)status->state);
	wr_u8(&wr, (uint8_t)status->key);
	wr_u8(&wr, (uint8_t)status->memory);
	wr_u16(&wr, status->n_items);
	wr_u64(&wr, status->generation);
	wr_cstr(&wr, status->text);
	return ipc_send_wr(sock, VAULT_STATUS_IS, id, &wr, -1);
}

int vault_send_done(int sock, uint32_t id, const struct vault_done *done)
{
	uint8_t buf[sizeof(*done) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u32(&wr, (uint32_t)done->code);
	wr_u64(&wr, done->number);
	wr_cstr(&wr, done->text);
	return ipc_send_wr(sock, VAULT_DONE, id, &wr, -1);
}

int vault_ask_admin(int sock)
{
	return vault_ask_plain(sock, VAULT_ADMIN, 0, -1);
}

int vault_ask_channel(int sock, const char *sandbox, int fd)
{
	uint8_t buf[VAULT_MAX_SCOPE + 2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, sandbox);
	return ipc_send_wr(sock, VAULT_CHANNEL, 0, &wr, fd);
}

int vault_ask_set(int sock, uint32_t id, const struct vault_meta *meta, int fd)
{
	uint8_t buf[sizeof(*meta) + 32];
	struct wr wr = wr_init(buf, sizeof(buf));

	vault_put_meta(&wr, meta);
	return ipc_send_wr(sock, VAULT_SET, id, &wr, fd);
}

int vault_ask_set_ref(
	int sock, uint32_t id, const struct vault_meta *meta, const struct vault_ref *ref)
{
	uint8_t buf[IPC_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));

	vault_put_meta(&wr, meta);
	vault_put_ref(&wr, ref);
	return ipc_send_wr(sock, VAULT_SET_REF, id, &wr, -1);
}

int vault_ask_remove(int sock, uint32_t id, const char *name, const char *scope)
{
	uint8_t buf[VAULT_MAX_NAME + VAULT_MAX_SCOPE + 4];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, name);
	wr_cstr(&wr, scope);
	return ipc_send_wr(sock, VAULT_REMOVE, id, &wr, -1);
}

int vault_ask_release(int sock, uint32_t id, const char *name, uint64_t serial, int fd)
{
	uint8_t buf[VAULT_MAX_NAME + 16];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, name);
	wr_u64(&wr, serial);
	return ipc_send_wr(sock, VAULT_RELEASE, id, &wr, fd);
}

int vault_ask_store(int sock, uint32_t id, const char *name, int fd)
{
	uint8_t buf[VAULT_MAX_NAME + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, name);
	return ipc_send_wr(sock, VAULT_STORE, id, &wr, fd);
}

int vault_ask_plain(int sock, enum vault_msg type, uint32_t id, int fd)
{
	return ipc_send(sock, (uint16_t)type, id, slice_of(NULL, 0), fd);
}

/* ---- decoders ---- */

int vault_get_channel(const struct ipc_msg *msg, char sandbox[VAULT_MAX_SCOPE])
{
	struct rd rd = rd_init(ipc_body(msg));

	read_scope(&rd, sandbox, false);
	return msg->id == 0 ? ipc_finish(msg, VAULT_CHANNEL, &rd, true) : -EBADMSG;
}

int vault_get_set(const struct ipc_msg *msg, struct vault_meta *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	vault_read_meta(&rd, ret);
	return ipc_finish(msg, VAULT_SET, &rd, true);
}

int vault_get_set_ref(
	const struct ipc_msg *msg, struct vault_meta *ret_meta, struct vault_ref *ret_ref)
{
	struct rd rd = rd_init(ipc_body(msg));

	vault_read_meta(&rd, ret_meta);
	vault_read_ref(&rd, ret_ref);
	return ret_ref->kind == VAULT_REF_NONE ? -EBADMSG
					       : ipc_finish(msg, VAULT_SET_REF, &rd, false);
}

int vault_get_remove(
	const struct ipc_msg *msg, char name[VAULT_MAX_NAME], char scope[VAULT_MAX_SCOPE])
{
	struct rd rd = rd_init(ipc_body(msg));

	read_name(&rd, name);
	read_scope(&rd, scope, true);
	return ipc_finish(msg, VAULT_REMOVE, &rd, false);
}

int vault_get_item(const struct ipc_msg *msg, struct vault_item *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	vault_read_meta(&rd, &ret->meta);
	ret->ref = (enum vault_ref_kind)read_enum(&rd, VAULT_N_REFS);
	read_text(&rd, ret->program, sizeof(ret->program));
	ret->refresh_s = rd_u32(&rd);
	ret->serial = rd_u64(&rd);
	ret->created_ms = rd_u64(&rd);
	ret->changed_ms = rd_u64(&rd);
	ret->used_ms = rd_u64(&rd);
	read_text(&rd, ret->mask_head, sizeof(ret->mask_head));
	read_text(&rd, ret->mask_tail, sizeof(ret->mask_tail));
	return ipc_finish(msg, VAULT_ITEM, &rd, false);
}

int vault_get_release(const struct ipc_msg *msg, char name[VAULT_MAX_NAME], uint64_t *ret_serial)
{
	struct rd rd = rd_init(ipc_body(msg));

	read_name(&rd, name);
	*ret_serial = rd_u64(&rd);
	return *ret_serial ? ipc_finish(msg, VAULT_RELEASE, &rd, true) : -EBADMSG;
}

int vault_get_store(const struct ipc_msg *msg, char name[VAULT_MAX_NAME])
{
	struct rd rd = rd_init(ipc_body(msg));

	read_name(&rd, name);
	if (!rd.bad && !vault_name_is_token(name))
		return -EBADMSG;
	return ipc_finish(msg, VAULT_STORE, &rd, true);
}

int vault_get_changed(const struct ipc_msg *msg, uint64_t *ret_generation)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_generation = rd_u64(&rd);
	return msg->id == 0 ? ipc_finish(msg, VAULT_CHANGED, &rd, false) : -EBADMSG;
}

int vault_get_status(const struct ipc_msg *msg, struct vault_status *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	ret->state = (enum vault_state)read_enum(&rd, VAULT_N_STATES);
	ret->key = (enum vault_key)read_enum(&rd, VAULT_N_KEYS);
	ret->memory = (enum vault_memory)read_enum(&rd, VAULT_N_MEMORIES);
	ret->n_items = rd_u16(&rd);
	ret->generation = rd_u64(&rd);
	read_text(&rd, ret->text, sizeof(ret->text));
	return ipc_finish(msg, VAULT_STATUS_IS, &rd, false);
}

int vault_get_done(const struct ipc_msg *msg, struct vault_done *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	ret->code = (int32_t)rd_u32(&rd);
	ret->number = rd_u64(&rd);
	read_text(&rd, ret->text, sizeof(ret->text));
	if (ret->code > 0 || ret->code < -4095)
		return -EBADMSG;
	return ipc_finish(msg, VAULT_DONE, &rd, false);
}
