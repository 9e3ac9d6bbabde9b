/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_scanned.h"

#include <assert.h>
#include <errno.h>
#include "lib/base/str.h"
#include "vault_chan.h"

#define MAX_BODY \
	(8 + 2 + 2 + 8 + 2 + 1 + VAULT_MAX_FOUND * (2 + VAULT_MAX_NAME + 2 + VAULT_MAX_SCOPE + 8))
static_assert(MAX_BODY <= IPC_MAX_BODY, "a full list fits");

bool vault_control_is_good(const char *control)
{
	size_t n = strlen(control);

	return n == 0 ||
	       (n >= VAULT_MIN_CONTROL && n <= VAULT_MAX_CONTROL && str_is_printable(control));
}

int vault_ask_scan(int sock, uint32_t id, const char *control, int fd)
{
	return chan_send_str(sock, VAULT_SCAN, id, control, VAULT_MAX_CONTROL, fd);
}

int vault_get_scan(const struct ipc_msg *msg, char control[VAULT_MAX_CONTROL + 1])
{
	int r = chan_get_str(&vault_chan, msg, VAULT_SCAN, control, VAULT_MAX_CONTROL + 1);

	return r == 0 && !vault_control_is_good(control) ? -EBADMSG : r;
}

/* The list follows. */
static const struct field scanned_fields[] = {
	FIELD_NUMBER(vault_scanned, bytes),
	FIELD_NUMBER(vault_scanned, n_looked),
	FIELD_NUMBER(vault_scanned, n_left),
	FIELD_NUMBER(vault_scanned, control),
	FIELD_NUMBER(vault_scanned, n_found),
	{0},
};
static const struct field found_fields[] = {
	FIELD_STR(vault_found, name),
	FIELD_STR(vault_found, scope),
	FIELD_RANGE(vault_found, times, 1, UINT64_MAX),
	{0},
};

int vault_send_scanned(int sock, uint32_t id, const struct vault_scanned *scanned)
{
	uint8_t buf[MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));

	if (scanned->n > VAULT_MAX_FOUND)
		return -EMSGSIZE;
	fields_write(&wr, scanned_fields, scanned);
	wr_u8(&wr, (uint8_t)scanned->n);
	for (size_t i = 0; i < scanned->n; i++)
		fields_write(&wr, found_fields, &scanned->v[i]);
	return ipc_send_wr(sock, VAULT_SCANNED, id, &wr, -1);
}

int vault_get_scanned(const struct ipc_msg *msg, struct vault_scanned *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	bool is_bad;

	fields_read(&rd, scanned_fields, ret);
	ret->n = rd_u8(&rd);
	if (ret->n > VAULT_MAX_FOUND)
		return -EBADMSG;
	is_bad = ret->n_found > ret->n_looked ||
		 ret->n != (ret->n_found < VAULT_MAX_FOUND ? ret->n_found : VAULT_MAX_FOUND);
	for (size_t i = 0; i < ret->n; i++) {
		struct vault_found *f = &ret->v[i];

		fields_read(&rd, found_fields, f);
		is_bad = is_bad || rd.bad || !vault_name_is_good(f->name) ||
			 (f->scope[0] && !vault_name_is_good(f->scope));
	}
	return is_bad ? -EBADMSG : chan_finish(&vault_chan, msg, VAULT_SCANNED, &rd);
}
