/* SPDX-License-Identifier: Apache-2.0 */
/* One packet; the first byte says whether an fd came along. What is decoded has its bounds. */
#include "lib/os/ipc/notify/notify_chan.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static void check_text(const char *s)
{
	check(*s != '\0');
	for (; *s; s++)
		check(*s >= ' ' && *s <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct ipc_msg msg;
	struct notify_show show;

	if (n < 1 || ipc_parse(slice_of(p + 1, n - 1), &msg) < 0)
		return 0;
	msg.fd = p[0] & 1 ? 1 << 20 : -1;
	if (notify_get_show(&msg, &show) == 0) {
		check(msg.fd < 0 && msg.id != 0);
		check_text(show.sandbox);
		check_text(show.hold);
		check_text(show.effect);
	}
	if (notify_get_plain(&msg, NOTIFY_CLOSE) == 0 || notify_get_plain(&msg, NOTIFY_REFUSE) == 0)
		check(msg.fd < 0 && msg.id != 0 && msg.n == 0);
	return 0;
}
