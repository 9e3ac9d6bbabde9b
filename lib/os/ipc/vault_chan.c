/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_chan.h"

#include <errno.h>
#include "lib/base/str.h"

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
		[VAULT_KEY_FILE] =
			"a file in the same directory, protected only by its permissions",
		[VAULT_KEY_SECRET_SERVICE] = "the desktop's Secret Service",
		[VAULT_KEY_SYSTEMD_CREDS] = "systemd-creds (host key or TPM)",
		[VAULT_KEY_PASSPHRASE] = "a passphrase",
	};

	return key < VAULT_N_KEYS ? texts[key] : "unknown";
}

const char *vault_memory_text(enum vault_memory memory)
{
	static const char *const texts[VAULT_N_MEMORIES] = {
		[VAULT_MEMORY_HIDDEN] = "hidden from the kernel, never swapped",
		[VAULT_MEMORY_LOCKED] = "locked, never swapped",
		[VAULT_MEMORY_PLAIN] = "not locked: the locked memory limit (ulimit -l) is too low",
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

/* The name and the scope are before them. */
static const struct field meta_fields[] = {
	FIELD_ENUM(vault_meta, kind, VAULT_N_KINDS),
	FIELD_TEXT(vault_meta, hosts),
	FIELD_TEXT(vault_meta, header),
	FIELD_TEXT(vault_meta, format),
	FIELD_TEXT(vault_meta, env),
	FIELD_TEXT(vault_meta, sentinel),
	{0},
};

void vault_put_meta(struct wr *wr, const struct vault_meta *meta)
{
	wr_cstr(wr, meta->name);
	wr_cstr(wr, meta->scope);
	fields_write(wr, meta_fields, meta);
}

/* A text that people and programs will see. */
static void read_text(struct rd *rd, char *buf, size_t size)
{
	rd_cstr(rd, buf, size);
	if (!rd->bad && !str_is_printable(buf))
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
	fields_read(rd, meta_fields, ret);
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

/* A reference requires a program; a docker one has exactly the server's URL. */
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

/* The meta data is before them. */
static const struct field item_fields[] = {
	FIELD_ENUM(vault_item, ref, VAULT_N_REFS),
	FIELD_TEXT(vault_item, program),
	FIELD_NUMBER(vault_item, refresh_s),
	FIELD_NUMBER(vault_item, serial),
	FIELD_NUMBER(vault_item, created_ms),
	FIELD_NUMBER(vault_item, changed_ms),
	FIELD_NUMBER(vault_item, used_ms),
	FIELD_TEXT(vault_item, mask_head),
	FIELD_TEXT(vault_item, mask_tail),
	{0},
};

int vault_send_item(int sock, uint32_t id, const struct vault_item *item)
{
	uint8_t buf[sizeof(*item) + 64];
	struct wr wr = wr_init(buf, sizeof(buf));

	vault_put_meta(&wr, &item->meta);
	fields_write(&wr, item_fields, item);
	return ipc_send_wr(sock, VAULT_ITEM, id, &wr, -1);
}

static const struct field changed_fields[] = {FIELD_ONE(uint64_t, 0, UINT64_MAX), {0}};

int vault_send_changed(int sock, uint64_t generation)
{
	return chan_send(sock, VAULT_CHANGED, 0, changed_fields, &generation, -1);
}

static const struct field status_fields[] = {
	FIELD_ENUM(vault_status, state, VAULT_N_STATES),
	FIELD_ENUM(vault_status, key, VAULT_N_KEYS),
	FIELD_ENUM(vault_status, memory, VAULT_N_MEMORIES),
	FIELD_NUMBER(vault_status, n_items),
	FIELD_NUMBER(vault_status, generation),
	FIELD_TEXT(vault_status, text),
	{0},
};

int vault_send_status(int sock, uint32_t id, const struct vault_status *status)
{
	return chan_send(sock, VAULT_STATUS_IS, id, status_fields, status, -1);
}

static const struct field done_fields[] = {
	FIELD_CODE(vault_done, code),
	FIELD_NUMBER(vault_done, number),
	FIELD_TEXT(vault_done, text),
	{0},
};

int vault_send_done(int sock, uint32_t id, const struct vault_done *done)
{
	return chan_send(sock, VAULT_DONE, id, done_fields, done, -1);
}

int vault_ask_channel(int sock, const char *sandbox, int fd)
{
	return chan_send_str(sock, VAULT_CHANNEL, 0, sandbox, VAULT_MAX_SCOPE, fd);
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
	return chan_send_str(sock, VAULT_STORE, id, name, VAULT_MAX_NAME, fd);
}

/* ---- decoders ---- */

int vault_get_channel(const struct ipc_msg *msg, char sandbox[VAULT_MAX_SCOPE])
{
	struct rd rd = rd_init(ipc_body(msg));

	read_scope(&rd, sandbox, false);
	return chan_finish(&vault_chan, msg, VAULT_CHANNEL, &rd);
}

int vault_get_set(const struct ipc_msg *msg, struct vault_meta *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	vault_read_meta(&rd, ret);
	return chan_finish(&vault_chan, msg, VAULT_SET, &rd);
}

int vault_get_set_ref(
	const struct ipc_msg *msg, struct vault_meta *ret_meta, struct vault_ref *ret_ref)
{
	struct rd rd = rd_init(ipc_body(msg));

	vault_read_meta(&rd, ret_meta);
	vault_read_ref(&rd, ret_ref);
	return ret_ref->kind == VAULT_REF_NONE ? -EBADMSG
					       : chan_finish(&vault_chan, msg, VAULT_SET_REF, &rd);
}

int vault_get_remove(
	const struct ipc_msg *msg, char name[VAULT_MAX_NAME], char scope[VAULT_MAX_SCOPE])
{
	struct rd rd = rd_init(ipc_body(msg));

	read_name(&rd, name);
	read_scope(&rd, scope, true);
	return chan_finish(&vault_chan, msg, VAULT_REMOVE, &rd);
}

int vault_get_item(const struct ipc_msg *msg, struct vault_item *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	vault_read_meta(&rd, &ret->meta);
	fields_read(&rd, item_fields, ret);
	return chan_finish(&vault_chan, msg, VAULT_ITEM, &rd);
}

int vault_get_release(const struct ipc_msg *msg, char name[VAULT_MAX_NAME], uint64_t *ret_serial)
{
	struct rd rd = rd_init(ipc_body(msg));

	read_name(&rd, name);
	*ret_serial = rd_u64(&rd);
	return *ret_serial ? chan_finish(&vault_chan, msg, VAULT_RELEASE, &rd) : -EBADMSG;
}

int vault_get_store(const struct ipc_msg *msg, char name[VAULT_MAX_NAME])
{
	struct rd rd = rd_init(ipc_body(msg));

	read_name(&rd, name);
	if (!rd.bad && !vault_name_is_token(name))
		return -EBADMSG;
	return chan_finish(&vault_chan, msg, VAULT_STORE, &rd);
}

int vault_get_changed(const struct ipc_msg *msg, uint64_t *ret_generation)
{
	return chan_get(&vault_chan, msg, VAULT_CHANGED, changed_fields, ret_generation);
}

int vault_get_status(const struct ipc_msg *msg, struct vault_status *ret)
{
	return chan_get(&vault_chan, msg, VAULT_STATUS_IS, status_fields, ret);
}

int vault_get_done(const struct ipc_msg *msg, struct vault_done *ret)
{
	return chan_get(&vault_chan, msg, VAULT_DONE, done_fields, ret);
}
