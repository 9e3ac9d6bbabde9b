/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte says what the rest is: a request, a list of the agent, or data to be signed. */
#include <stdlib.h>
#include "lib/secret/sshagent/sshagent.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool ok)
{
	if (!ok)
		abort();
}

/* What was filtered is a list again, of allowed keys only, and filtering it anew changes
 * nothing. */
static void check_list(struct slice answer)
{
	static const struct sshagent_filter f = {.n_rules = 1, .rules = {"me@example.com"}}, all;
	static uint8_t once[SSHAGENT_MAX_ANSWER], twice[SSHAGENT_MAX_ANSWER];
	struct wr a = wr_init(once, sizeof(once)), b = wr_init(twice, sizeof(twice));
	struct sshagent_key key;

	if (sshagent_filter_list(&f, answer, &a) < 0)
		return;
	check(a.n <= answer.n);
	check(sshagent_filter_list(&f, slice_of(a.p, a.n), &b) == 0);
	check(a.n == b.n && memcmp(once, twice, a.n) == 0);
	if (sshagent_find(&all, answer, slice_of("\0\0\0\3ssh", 7), &key) == 0)
		check(strlen(key.fingerprint) == SSHAGENT_FINGERPRINT - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char text[SSHAGENT_MAX_TEXT];
	struct sshagent_request req;

	if (n < 1)
		return 0;
	struct slice rest = slice_of(p + 1, n - 1);

	switch (p[0] % 4) {
	case 0:
		req = sshagent_parse(rest);
		check(req.kind != SSHAGENT_SIGN || req.key.n + req.data.n + 13 == rest.n);
		check(req.kind != SSHAGENT_LIST || rest.n == 1);
		break;
	case 1:
		check_list(rest);
		break;
	case 2:
		check(sshagent_describe(rest, slice_of("key", 3), text) < SSHAGENT_N_WHATS);
		for (const char *at = text; *at; at++)
			check(*at >= ' ' && *at < 127);
		break;
	default:
		if (sshagent_is_signed(rest))
			check(rest.n >= 1 && rest.p[0] != SSHAGENT_SIGN_REQUEST);
	}
	return 0;
}
