/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_scanned.h"

#include <assert.h>
#include <errno.h>

#define MAX_BODY \
	(8 + 2 + 2 + 8 + 2 + 1 + VAULT_MAX_FOUND * (2 + VAULT_MAX_NAME + 2 + VAULT_MAX_SCOPE + 8))
static_assert(MAX_BODY <= IPC_MAX_BODY, "a full list fits");

bool vault_control_is_good(const char *control)
{
	size_t n = strlen(control);

	return n == 0 ||
	       (n >= VAULT_MIN_CONTROL && n <= VAULT_MAX_CONTROL && ipc_is_printable(control));
}

int vault_ask_scan(int sock, uint32_t id, const char *control, int fd)
{
	uint8_t buf[2 + VAULT_MAX_CONTROL];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, control);
	return ipc_send_wr(sock, VAULT_SCAN, id, &wr, fd);
}

int vault_get_scan(const struct ipc_msg *msg, char control[VAULT_MAX_CONTROL + 1])
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, control, VAULT_MAX_CONTROL + 1);
	if (!rd.bad && !vault_control_is_good(control))
		return -EBADMSG;
	return ipc_finish(msg, VAULT_SCAN, &rd, true);
}

int vault_send_scanned(int sock, uint32_t id, const struct vault_scanned *scanned)
{
	uint8_t buf[MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));

	if (scanned->n > VAULT_MAX_FOUND)
		return -EMSGSIZE;
	wr_u64(&wr, scanned->bytes);
	wr_u16(&wr, scanned->n_looked);
	wr_u16(&wr, scanned->n_left);
	wr_u64(&wr, scanned->control);
	wr_u16(&wr, scanned->n_found);
	wr_u8(&wr, (uint8_t)scanned->n);
	for (size_t i = 0; i < scanned->n; i++) {
		wr_cstr(&wr, scanned->v[i].name);
		wr_cstr(&wr, scanned->v[i].scope);
		wr_u64(&wr, scanned->v[i].times);
	}
	return ipc_send_wr(sock, VAULT_SCANNED, id, &wr, -1);
}

int vault_get_scanned(const struct ipc_msg *msg, struct vault_scanned *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	bool is_bad;

	ret->bytes = rd_u64(&rd);
	ret->n_looked = rd_u16(&rd);
	ret->n_left = rd_u16(&rd);
	ret->control = rd_u64(&rd);
	ret->n_found = rd_u16(&rd);
	ret->n = rd_u8(&rd);
	if (ret->n > VAULT_MAX_FOUND)
		return -EBADMSG;
	is_bad = ret->n_found > ret->n_looked ||
		 ret->n != (ret->n_found < VAULT_MAX_FOUND ? ret->n_found : VAULT_MAX_FOUND);
	for (size_t i = 0; i < ret->n; i++) {
		struct vault_found *f = &ret->v[i];

		rd_cstr(&rd, f->name, sizeof(f->name));
		rd_cstr(&rd, f->scope, sizeof(f->scope));
		f->times = rd_u64(&rd);
		is_bad = is_bad || rd.bad || !vault_name_is_good(f->name) ||
			 (f->scope[0] && !vault_name_is_good(f->scope)) || !f->times;
	}
	return is_bad ? -EBADMSG : ipc_finish(msg, VAULT_SCANNED, &rd, false);
}
