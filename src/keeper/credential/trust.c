/* SPDX-License-Identifier: Apache-2.0 */
#include "trust.h"

#include <errno.h>
#include <string.h>
#include "credential.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"
#define LINE 64

void trust_wipe(struct keeper *k)
{
	explicit_bzero(&k->trust->ca, sizeof(k->trust->ca));
	k->trust->has_ca = false;
	free(TAKE(k->trust->extra));
}

/* Writes one certificate, its base64 in lines of 64. Returns false if the text contains anything
 * else. */
static bool put_certificate(struct wr *wr, const char *p, const char *end)
{
	static const char base64[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
	size_t column = 0, n = 0;

	wr_bytes(wr, slice_from_str(BEGIN "\n"));
	for (; p < end; p++) {
		if (strchr(" \t\r\n", *p))
			continue;
		if (!strchr(base64, *p))
			return false;
		wr_u8(wr, (uint8_t)*p);
		n++;
		column = (column + 1) % LINE;
		if (column == 0)
			wr_u8(wr, '\n');
	}
	if (column)
		wr_u8(wr, '\n');
	wr_bytes(wr, slice_from_str(END "\n"));
	return n > 0 && !wr->bad;
}

char *trust_pick(const char *text, size_t max, size_t *ret_left)
{
	char *buf = xmalloc(max + 1);
	struct wr wr = wr_init((uint8_t *)buf, max);
	const char *end;

	*ret_left = 0;
	while ((text = strstr(text, BEGIN)) && (end = strstr(text, END))) {
		struct wr before = wr;

		if (!put_certificate(&wr, text + strlen(BEGIN), end)) {
			wr = before;
			(*ret_left)++;
		}
		text = end;
	}
	buf[wr.n] = '\0';
	return buf;
}

void trust_set_extra(struct keeper *k, const char *text)
{
	size_t left;
	AUTO_FREE char *extra = trust_pick(text, GUEST_MAX_EXTRA_CA, &left);

	if (left)
		log_warn(
			"network.extra-ca: %zu certificates were not sent to the guest: unreadable, or more than %d bytes in total",
			left, GUEST_MAX_EXTRA_CA);
	if (strcmp(extra, k->trust->extra ? k->trust->extra : "") == 0)
		return;
	free(k->trust->extra);
	k->trust->extra = TAKE(extra);
	trust_renew(k);
}

void trust_fill_config(struct keeper *k, struct edge_config *config)
{
	k->trust->is_said = false;
	if (!k->trust->has_ca)
		return;
	config->n_saved = k->trust->ca.n_saved;
	memcpy(config->saved, k->trust->ca.saved, sizeof(config->saved));
}

int trust_on_ca(struct keeper *k, const struct ipc_msg *msg)
{
	struct edge_ca ca;
	int r = edge_get_ca(msg, &ca);

	if (r < 0 || k->trust->is_said) {
		explicit_bzero(&ca, sizeof(ca));
		return -EBADMSG;
	}
	k->trust->is_said = true;
	k->trust->is_due |= !k->trust->has_ca || strcmp(k->trust->ca.pem, ca.pem) != 0;
	k->trust->ca = ca;
	k->trust->has_ca = true;
	explicit_bzero(&ca, sizeof(ca));
	return 0;
}

static size_t make_env(const struct keeper *k, char *env[GUEST_MAX_ENV])
{
	char field[CREDS_MAX_FIELD];
	size_t n = 0;

	while (n < GUEST_MAX_ENV && creds_env(k->creds, n, field))
		env[n++] = xstrdup(field);
	return n;
}

static void on_answer(struct keeper *k, const struct guest_reply *reply)
{
	k->trust->is_asked = false;
	if (!edge_is_alive(k)) /* the next edge sends READY, which sends it again */
		k->trust->is_due = true;
	else if (!reply->ok)
		log_error("the guest does not trust the sandbox's certificate: %s", reply->text);
	k->trust->is_told = edge_is_alive(k) && reply->ok;
	if (k->state.phase != KEEPER_STARTING || !edge_is_alive(k))
		trust_send(k);
	else if (k->trust->is_last)
		k->life->trusted(k);
}

static const struct ask_kind trust_ask = {
	GUEST_PATH_TRUST, .on_reply = on_answer, .is_patient = true};

static int ask_trust(struct keeper *k)
{
	static uint8_t buf[GUEST_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	char *env[GUEST_MAX_ENV];
	struct guest_trust trust = {.ca_pem = k->trust->ca.pem,
		.extra_pem = k->trust->extra,
		.n_env = make_env(k, env),
		.env = env};
	int r = guest_put_trust(&wr, &trust);

	for (size_t i = 0; i < trust.n_env; i++)
		free(env[i]);
	if (r < 0)
		return r;
	return ask_guest(k, &trust_ask, slice_of(buf, wr.n), KEEPER_TRUST_MS, -1, 0);
}

void trust_send(struct keeper *k)
{
	int r;

	if (!k->trust->is_due || !k->trust->has_ca || k->trust->is_asked || !edge_is_up(k))
		return;
	r = ask_trust(k);
	k->trust->is_asked = r == 0;
	k->trust->is_due = r != 0;
	if (r < 0)
		log_warn("cannot send the sandbox CA to the guest: %s", strerror(-r));
}

void trust_send_early(struct keeper *k)
{
	if (k->trust->is_told || k->trust->is_asked || !k->vault->is_listed)
		return;
	k->trust->is_due = true;
	trust_send(k);
}

void trust_forget(struct keeper *k)
{
	k->trust->is_told = k->trust->is_last = false;
}

void trust_renew(struct keeper *k)
{
	k->trust->is_due = true;
	/* Before that, the set-up comes first. */
	if (k->state.phase == KEEPER_RUNNING)
		trust_send(k);
}
