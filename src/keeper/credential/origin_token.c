/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_token - tokens that origins intercept at token endpoints, and their way to the vault.
 *
 * How      TOKENS carries the read end of a pipe with a frame. The vault gets it with the name from
 *          the binding, SERVICE.access or SERVICE.refresh. When the vault has stored the token and
 *          the next LIST has updated the bindings, origin gets RENEW and then STORED. Only then
 *          does origin forward the response, so the guest's next request finds the token.
 * Trust    A compromised origin can replace the tokens of its own service in this sandbox only. The
 *          vault checks the frame.
 * Limits   KEEPER_ORIGIN_TOKENS, KEEPER_MAX_STORES, KEEPER_STORE_MS.
 * Never    Reads the pipe.
 */
#include "credential.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/log.h"
#include "lib/secret/service/service_match.h"

int tokens_push(struct origin *o)
{
	int r = 0;

	if (o->is_renew_due)
		r = origin_ask_renew(o->worker.sock, o->binding.has);
	if (r < 0)
		return r;
	o->is_renew_due = false;
	while (o->n_kept) {
		r = origin_answer_tokens(o->worker.sock, o->kept[0].id, &o->kept[0].stored);
		if (r < 0)
			return r;
		memmove(&o->kept[0], &o->kept[1], --o->n_kept * sizeof(o->kept[0]));
	}
	return 0;
}

/* There is room: tokens are accepted only while they can be answered. */
static void answer_tokens(struct keeper *k, struct origin *o, uint32_t id, const char *why_not)
{
	struct origin_kept *kept = &o->kept[o->n_kept++];

	*kept = (struct origin_kept){.id = id, .stored.kept = !why_not};
	(void)snprintf(kept->stored.text, sizeof(kept->stored.text), "%s", why_not ? why_not : "");
	for (char *p = kept->stored.text; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	origins_push(k, o);
}

/* Writes one record per token: stored for this sandbox, or the reason why not. */
static void record_token(
	struct keeper *k, const struct origin *o, const char *name, const char *why_not)
{
	struct gate_use use = {
		.credential = name, .host = o->host, .port = o->port, .why = why_not};

	if (why_not)
		log_warn("the token %s of %s was not stored: %s", name, o->host, why_not);
	gate_record_kept(k->gate, &use);
}

int tokens_on_tokens(struct keeper *k, struct origin *o, const struct ipc_msg *msg, struct err *err)
{
	const struct binding *b = creds_find(k->creds, o->host, o->port);
	struct service_request where = {.port = o->port};
	struct origin_tokens tokens;
	struct err why = {0};
	struct host host;
	int r = origin_get_tokens(msg, &tokens);

	if (r < 0)
		return err_set(err, r, "sent tokens that do not decode");
	if (o->n_kept + vault_count_stores(k, o) >= KEEPER_ORIGIN_TOKENS)
		return err_set(err, -EBADMSG, "sent more tokens than it waits for");
	where.host = &host;
	if (!b || host_from_wire(slice_from_str(o->host), &host, NULL) < 0 ||
		!service_is_endpoint_host(b->service, &where))
		return err_set(err, -EBADMSG, "sent tokens of a host that gives none");
	r = vault_store(k, o, tokens.which, msg->id, msg->fd, &why);
	if (r < 0) {
		record_token(k, o, o->binding.name, err_text(&why, r));
		answer_tokens(k, o, msg->id, err_text(&why, r));
	}
	return 0;
}

void tokens_on_stored(struct keeper *k, const struct store *store, int code, const char *text)
{
	struct origin *o = origins_find(k, store->origin, store->origin_gen);
	const char *why_not = code == 0 ? NULL : text[0] ? text : strerror(-code);

	if (!o)
		return;
	record_token(k, o, store->name, why_not);
	answer_tokens(k, o, store->token, why_not);
}
