#include "trust.h"

#include <errno.h>
#include <string.h>
#include "keeper.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

void trust_wipe(struct keeper *k)
{
	explicit_bzero(&k->trust.ca, sizeof(k->trust.ca));
	k->trust.has_ca = false;
}

int trust_on_ca(struct keeper *k, const struct ipc_msg *msg)
{
	struct edge_ca ca;
	int r = edge_get_ca(msg, &ca);

	if (r < 0 || k->edge.has_said_ca) {
		explicit_bzero(&ca, sizeof(ca));
		return -EBADMSG;
	}
	k->edge.has_said_ca = true;
	k->trust.is_due |= !k->trust.has_ca || strcmp(k->trust.ca.pem, ca.pem) != 0;
	k->trust.ca = ca;
	k->trust.has_ca = true;
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

static int ask(struct keeper *k)
{
	static uint8_t buf[GUEST_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	char *env[GUEST_MAX_ENV];
	struct guest_trust trust = {
		.ca_pem = k->trust.ca.pem, .n_env = make_env(k, env), .env = env};
	int r = guest_put_trust(&wr, &trust);

	for (size_t i = 0; i < trust.n_env; i++)
		free(env[i]);
	if (r < 0)
		return r;
	return ask_guest(k, ASK_TRUST, slice_of(buf, wr.n), KEEPER_TRUST_MS, -1, 0);
}

void trust_send(struct keeper *k)
{
	int r;

	if (!k->trust.is_due || !k->trust.has_ca || k->trust.is_asked || !edge_is_up(k))
		return;
	r = ask(k);
	k->trust.is_asked = r == 0;
	k->trust.is_due = r != 0;
	if (r < 0)
		log_warn("the guest cannot be told its certificate: %s", strerror(-r));
}

void trust_send_early(struct keeper *k)
{
	if (k->trust.is_told || k->trust.is_asked || !k->vault.is_listed)
		return;
	k->trust.is_due = true;
	trust_send(k);
}

void trust_forget(struct keeper *k)
{
	k->trust.is_told = k->trust.is_last = false;
}

void trust_renew(struct keeper *k)
{
	k->trust.is_due = true;
	/* Before it runs the set-up comes first. */
	if (k->state.phase == KEEPER_RUNNING)
		trust_send(k);
}

void trust_on_answer(struct keeper *k, const struct guest_reply *reply)
{
	k->trust.is_asked = false;
	if (!k->edge.alive) /* the next one says READY, and it is sent again */
		k->trust.is_due = true;
	else if (!reply->ok)
		log_error("the guest does not trust the sandbox's certificate: %s", reply->text);
	k->trust.is_told = k->edge.alive && reply->ok;
	if (k->state.phase != KEEPER_STARTING || !k->edge.alive)
		trust_send(k);
	else if (k->trust.is_last)
		start_on_trusted(k);
}
