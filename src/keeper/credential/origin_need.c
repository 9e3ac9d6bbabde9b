/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_need - credentials for origins: the release gates, then the vault.
 *
 * How      A NEED is answered with a stream to which the vault has written the value, or with an
 *          error text. This file collects the facts of lib/rules/gate/release.h. If only the record
 *          is missing, it is written and the gates are checked again. The vault gets the serial of
 *          the decision, so a credential that was replaced meanwhile is not released.
 * Trust    NEED comes from an origin that its server may have compromised. The origin gets only the
 *          credential of its host, which it would get anyway.
 * Owns     The origin's end of the stream, until VALUE is sent.
 * Never    Reads the stream.
 */
#include "credential.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/rules/gate/release.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

void needs_drop(struct origin *o)
{
	for (size_t i = 0; i < ORIGIN_N_WHICH; i++) {
		fd_close(&o->values[i].fd);
		o->values[i].used = o->values[i].is_due = false;
	}
}

int needs_push(struct origin *o)
{
	for (unsigned i = 0; i < ORIGIN_N_WHICH; i++) {
		struct origin_asked_value *v = &o->values[i];
		int r;

		if (!v->is_due)
			continue;
		r = origin_answer_need(
			o->worker.sock, v->id, &v->value, v->value.given ? v->fd : -1);
		if (r < 0)
			return r;
		if (v->value.given)
			o->given[o->n_given++ % KEEPER_MAX_GIVEN] = v->serial;
		fd_close(&v->fd);
		v->used = v->is_due = false;
	}
	return 0;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	uint8_t all = 0;

	for (size_t i = 0; i < n; i++)
		all |= p[i];
	return all == 0;
}

static void put_request(struct release_facts *f, const struct origin *o, struct edge_ask *ask)
{
	const struct origin_exchange *ex = origins_first_waiting(o);

	if (!ex)
		return;
	ask_copy_get(ex->what, ask);
	f->names_agree = !ask->fault[0];
	f->asked = (struct release_target){ask->host, ask->port};
	f->is_tls = ask->tls;
	f->method = ask->method;
}

static void put_connection(struct keeper *k, struct release_facts *f, const struct origin *o,
	const struct origin_need *need)
{
	const struct origin_conn *c = conns_find_given(o, need->conn);

	if (!c)
		return;
	f->is_verified = !is_zero(need->cert, sizeof(need->cert));
	/* Again: the policy may have changed since the connection. */
	f->address_passed = conns_may_lead(k, o, c);
	f->connected = (struct release_target){o->host, o->port};
}

static struct release_facts get_facts(struct keeper *k, const struct origin *o,
	const struct origin_need *need, struct edge_ask *ask)
{
	const struct binding *b = creds_find(k->creds, o->host, o->port);
	struct release_facts f = {.serves = {o->host, o->port},
		.decided_serial = o->binding.value[need->which].serial};

	if (b) {
		f.is_bound =
			strcmp(b->value[need->which].name, o->binding.value[need->which].name) == 0;
		f.bound_serial = b->value[need->which].serial;
		f.has_service = strcmp(b->text, o->binding.text) == 0;
	}
	gate_look(k->gate, o->host, o->port, clock_wall_ms(), &f.host_allowed, &f.port_allowed);
	put_request(&f, o, ask);
	put_connection(k, &f, o, need);
	return f;
}

static void refuse_need(
	struct keeper *k, struct origin *o, enum origin_which which, const char *why)
{
	struct origin_asked_value *v = &o->values[which];
	struct gate_use use = {.credential = o->binding.value[which].name,
		.host = o->host,
		.port = o->port,
		.why = why};

	log_warn("credential %s was not released for %s: %s", use.credential, o->host, why);
	/* On an error there is nothing left to deny. */
	(void)!gate_record_release(k->gate, &use, NULL);
	fd_close(&v->fd);
	v->value = (struct origin_value){0};
	(void)snprintf(v->value.text, sizeof(v->value.text), "%s", why);
	for (char *p = v->value.text; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	v->is_due = true;
}

/* Writes the record if nothing else is missing. Returns the first closed gate. */
static enum release_gate decide_need(
	struct keeper *k, struct origin *o, const struct origin_need *need)
{
	static struct edge_ask ask;
	struct release_facts f = get_facts(k, o, need, &ask);
	const struct origin_conn *c = conns_find_given(o, need->conn);
	enum release_gate gate = release_check(&f);
	struct gate_use use = {.credential = o->binding.value[need->which].name,
		.host = o->host,
		.port = o->port,
		.serial = f.decided_serial,
		.cert = need->cert};
	struct err err = {0};

	if (gate != RELEASE_RECORD || !c)
		return gate;
	use.addr = c->result.addr;
	record_check(k);
	f.is_recorded = gate_record_release(k->gate, &use, &err) == 0;
	return release_check(&f);
}

static int ask_vault(struct keeper *k, struct origin *o, enum origin_which which, struct err *err)
{
	AUTO_CLOSE int vaults = -1;
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return err_set(err, -errno, "no file descriptors available on the host");
	vaults = fds[0];
	o->values[which].fd = fds[1];
	r = vault_release(k, o, which, vaults, err);
	if (r < 0)
		fd_close(&o->values[which].fd);
	return r;
}

int needs_on_need(struct keeper *k, struct origin *o, const struct ipc_msg *msg)
{
	struct origin_asked_value *v;
	struct origin_need need;
	enum release_gate gate;
	struct err err = {0};
	int r = origin_get_need(msg, &need);

	/* CONFIG listed the available values. */
	if (r < 0 || !(o->binding.has & 1u << need.which) || o->values[need.which].used)
		return -EBADMSG;
	v = &o->values[need.which];
	*v = (struct origin_asked_value){.used = true,
		.id = msg->id,
		.serial = o->binding.value[need.which].serial,
		.fd = -1};
	gate = decide_need(k, o, &need);
	if (gate != RELEASE_N_GATES) {
		refuse_need(k, o, need.which, release_text(gate));
	} else {
		r = ask_vault(k, o, need.which, &err);
		if (r < 0)
			refuse_need(k, o, need.which, err_text(&err, r));
	}
	origins_push(k, o);
	return 0;
}

void needs_on_released(struct keeper *k, const struct release *rel, int code, const char *text)
{
	struct origin *o = origins_find(k, rel->origin, rel->origin_gen);
	struct origin_asked_value *v = o ? &o->values[rel->which] : NULL;

	if (!v || !v->used || v->is_due)
		return;
	if (code == 0) {
		v->value = (struct origin_value){
			.given = true, .use_s = o->binding.value[rel->which].use_s};
		v->is_due = true;
	} else {
		refuse_need(k, o, rel->which, text[0] ? text : strerror(-code));
	}
	origins_push(k, o);
}
