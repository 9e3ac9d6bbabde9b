/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of sigv4_rig.h. What is signed carries no sentinel and no token of the guest's, is
 * canonical still, and its body is as long as it was; what is refused has a sentence; the secret is
 * in nothing that is sent but as a signature.
 */
#include <assert.h>
#include "sigv4_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char SECRET[] = "secretsecretsecretsecret";

static bool has(struct slice in, struct slice what)
{
	return in.n > 0 && memmem(in.p, in.n, what.p, what.n);
}

static void check_sent(const struct sigv4_rig *rig, struct slice all)
{
	struct slice secret = slice_from_str(SECRET);
	size_t at;

	assert(canon_check_req(&rig->req) == 0);
	assert(rig->n_sent == rig->n_body);
	if (!has(all, secret)) /* the guest may have guessed it */
		for (size_t i = 0; i < rig->req.headers.n; i++)
			assert(!has(rig->req.headers.list[i].value, secret));
	assert(has(all, secret) || !has(rig->req.query, secret));
	if (rig->s.form == SIGV4_UNSIGNED)
		return;
	if (rig->s.form == SIGV4_HEADER) {
		assert(canon_find_header(&rig->req.headers, "authorization", &at) == 0);
		assert(has(rig->req.headers.list[at].value, slice_from_str("Credential=REALID/")));
		assert(canon_find_header(&rig->req.headers, "x-amz-security-token", &at) == 0);
		assert(slice_eq_str(rig->req.headers.list[at].value, "token+/="));
		return;
	}
	assert(canon_find_header(&rig->req.headers, "x-amz-security-token", &at) < 0);
	assert(has(rig->req.query, slice_from_str("X-Amz-Credential=REALID%2F")));
	assert(has(rig->req.query, slice_from_str("X-Amz-Security-Token=token%2B%2F%3D")));
	assert(rig->s.expires_s >= 1 && rig->s.expires_s <= SIGV4_MAX_EXPIRES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice all = slice_of(data, size);
	struct err err = {0};
	struct sigv4_rig rig;

	sigv4_rig_init(&rig);
	while (all.n > 0) {
		const uint8_t *end = memchr(all.p, '\n', all.n);
		size_t n = end ? (size_t)(end - all.p) : all.n;

		(void)sigv4_rig_line(&rig, slice_of(all.p, n));
		all = canon_text_cut(all, end ? n + 1 : n, all.n);
	}
	rig.cred = slice_from_str("REALID:secretsecretsecretsecret:token+/=");
	rig.check.sentinel = slice_from_str("AKIAPROXYMANAGED2222");
	switch (sigv4_rig_run(&rig, &err)) {
	case 0:
		check_sent(&rig, slice_of(data, size));
		break;
	default:
		assert(err.text[0] || !rig.s.stamp.p);
	}
	sigv4_rig_done(&rig);
	return 0;
}
