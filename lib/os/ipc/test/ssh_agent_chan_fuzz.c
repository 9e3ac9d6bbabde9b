/* SPDX-License-Identifier: Apache-2.0 */
/* One packet; the first byte says whether an fd came along. What is decoded has its bounds. */
#include "lib/os/ipc/ssh_agent_chan.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static void check_text(const char *s)
{
	for (; *s; s++)
		check(*s >= ' ' && *s <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct ipc_msg msg;
	static struct ssh_agent_config config;
	struct ssh_agent_ask ask;
	char build[CHAN_MAX_BUILD];
	bool allowed;

	if (n < 1 || ipc_parse(slice_of(p + 1, n - 1), &msg) < 0)
		return 0;
	msg.fd = p[0] & 1 ? 1 << 20 : -1;
	if (ssh_agent_get_config(&msg, &config) == 0) {
		check(config.n_rules <= SSH_AGENT_MAX_RULES && msg.fd >= 0);
		for (size_t i = 0; i < config.n_rules; i++)
			check(config.rules[i][0] != '\0');
	}
	if (ssh_agent_get_ask(&msg, &ask) == 0) {
		check(ask.what < SSH_AGENT_N_WHATS && ask.fingerprint[0] && msg.fd < 0);
		check_text(ask.fingerprint);
		check_text(ask.comment);
		check_text(ask.text);
	}
	if (ssh_agent_get_verdict(&msg, &allowed) == 0 || chan_get_hello(&msg, build) == 0)
		check(msg.fd < 0);
	if (chan_get_plain(&ssh_agent_chan, &msg, SSH_AGENT_OPEN) == 0)
		check(msg.fd >= 0);
	return 0;
}
