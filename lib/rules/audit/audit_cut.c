/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_cut.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"

static void put_hex(struct wr *wr, const char *before, const uint8_t *b, size_t n)
{
	char hex[2 * AUDIT_SIG_LEN];

	hex_encode(b, n, hex);
	wr_bytes(wr, slice_from_str(before));
	wr_bytes(wr, slice_of(hex, 2 * n));
}

static void put_number(struct wr *wr, const char *before, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	wr_bytes(wr, slice_from_str(before));
	wr_bytes(wr, slice_from_str(text));
}

int audit_cut_encode(struct wr *wr, struct audit_cut *cut, const struct audit_key *key)
{
	size_t from = wr->n;
	int r;

	wr_bytes(wr, slice_from_str(AUDIT_CUT_BEGIN "\"sandbox\":\""));
	wr_bytes(wr, slice_from_str(cut->sandbox));
	put_hex(wr, "\",\"log\":\"", cut->log, sizeof(cut->log));
	put_number(wr, "\",\"segment\":", cut->segment);
	put_number(wr, ",\"seq\":", cut->seq);
	put_number(wr, ",\"until\":", cut->until_ms);
	put_number(wr, ",\"time\":", cut->time_ms);
	put_hex(wr, ",\"record\":\"", cut->hash, sizeof(cut->hash));
	wr_bytes(wr, slice_from_str("\""));
	r = wr_finish(wr);
	if (r == 0)
		r = audit_sign_cut(key, slice_of(wr->p + from, wr->n - from), cut->sig);
	if (r < 0)
		return r;
	put_hex(wr, ",\"sig\":\"", cut->sig, sizeof(cut->sig));
	wr_bytes(wr, slice_from_str("\"}\n"));
	return wr_finish(wr);
}

static void take_cut(struct rd *in, const char *text)
{
	in->bad |= !slice_eq_str(rd_bytes(in, strlen(text)), text);
}

static void take_hex(struct rd *in, const char *before, uint8_t *ret, size_t n)
{
	take_cut(in, before);
	in->bad |= hex_decode(rd_bytes(in, 2 * n), ret) < 0;
}

static void take_word(struct rd *in, char ret[AUDIT_MAX_WORD + 1])
{
	size_t n = 0;

	while (n < in->n && n <= AUDIT_MAX_WORD && in->p[n] != '"')
		n++;
	if (!audit_is_word(slice_of(in->p, n)) ||
		slice_to_cstr(rd_bytes(in, n), ret, AUDIT_MAX_WORD + 1) < 0)
		in->bad = true;
}

/* From 1, without a sign or a leading zero. */
static uint64_t take_number(struct rd *in, const char *before)
{
	uint64_t v = 0;

	take_cut(in, before);
	while (!in->bad && in->n && in->p[0] >= '0' && in->p[0] <= '9') {
		v = v * 10 + (uint64_t)(rd_u8(in) - '0');
		in->bad |= v == 0 || v > AUDIT_MAX_NUMBER;
	}
	in->bad |= v == 0;
	return v;
}

int audit_cut_decode(struct slice line, struct audit_cut *ret)
{
	struct rd in = rd_init(line);

	*ret = (struct audit_cut){0};
	take_cut(&in, AUDIT_CUT_BEGIN "\"sandbox\":\"");
	take_word(&in, ret->sandbox);
	take_hex(&in, "\",\"log\":\"", ret->log, sizeof(ret->log));
	ret->segment = take_number(&in, "\",\"segment\":");
	ret->seq = take_number(&in, ",\"seq\":");
	ret->until_ms = take_number(&in, ",\"until\":");
	ret->time_ms = take_number(&in, ",\"time\":");
	take_hex(&in, ",\"record\":\"", ret->hash, sizeof(ret->hash));
	take_cut(&in, "\"");
	ret->n_signed = line.n - in.n;
	take_hex(&in, ",\"sig\":\"", ret->sig, sizeof(ret->sig));
	take_cut(&in, "\"}\n");
	return rd_finish(&in) < 0 || ret->segment < 2 ? -EBADMSG : 0;
}

int audit_cut_check(struct slice line, const struct audit_pub *pub, struct audit_cut *ret)
{
	int r = audit_cut_decode(line, ret);

	return r < 0 ? r : audit_check_cut(pub, slice_of(line.p, ret->n_signed), ret->sig);
}

char *audit_cut_path(const char *dir, const char *sandbox)
{
	return xasprintf("%s/cuts/%s", dir, sandbox);
}

int audit_cut_load(const char *dir, const char *sandbox, char **ret, size_t *ret_n, struct err *err)
{
	AUTO_FREE char *path = audit_cut_path(dir, sandbox);

	return file_load(path, AUDIT_MAX_CUT, ret, ret_n, err);
}
