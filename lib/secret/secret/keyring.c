/* SPDX-License-Identifier: Apache-2.0 */
#include "keyring.h"

#include <errno.h>
#include "lib/base/str.h"

int keyring_put_ask(struct wr *wr, const struct keyring_ask *ask)
{
	wr_u8(wr, (uint8_t)ask->op);
	wr_cstr(wr, ask->name);
	wr_str(wr, ask->value);
	return wr_finish(wr);
}

int keyring_get_ask(struct slice bytes, struct keyring_ask *ret)
{
	struct rd rd = rd_init(bytes);
	uint8_t op = rd_u8(&rd);

	rd_cstr(&rd, ret->name, sizeof(ret->name));
	ret->value = rd_str(&rd);
	if (op == 0 || op >= KEYRING_N_OPS || !ret->name[0] || ret->value.n > KEYRING_MAX_VALUE ||
		(ret->value.n != 0) != (op == KEYRING_PUT))
		return -EBADMSG;
	ret->op = (enum keyring_op)op;
	return rd_finish(&rd);
}

int keyring_put_answer(struct wr *wr, const struct keyring_answer *answer)
{
	wr_u8(wr, (uint8_t)answer->status);
	wr_cstr(wr, answer->text);
	wr_str(wr, answer->value);
	return wr_finish(wr);
}

int keyring_get_answer(struct slice bytes, struct keyring_answer *ret)
{
	struct rd rd = rd_init(bytes);
	uint8_t status = rd_u8(&rd);

	rd_cstr(&rd, ret->text, sizeof(ret->text));
	ret->value = rd_str(&rd);
	if (status >= KEYRING_N_STATUS || ret->value.n > KEYRING_MAX_VALUE ||
		(ret->value.n != 0 && status != KEYRING_OK) || !str_is_printable(ret->text))
		return -EBADMSG;
	ret->status = (enum keyring_status)status;
	return rd_finish(&rd);
}
