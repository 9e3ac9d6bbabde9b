/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_agent_link - the keeper's side of lib/os/ipc/ssh_agent_chan.h, and the life of sbx-ssh-agent.
 *
 * How      Nothing runs until a client in the guest connects. Then sbx-ssh-agent is spawned in its
 *          jail with a connection to the host's agent, whose socket spec.json names. Earlier
 *          streams wait until it is ready. Each signature is written to the audit log before it is
 *          allowed. With --ssh-agent-confirm the program in SSH_ASKPASS prompts first. When
 *          sbx-ssh-agent exits, its streams break, and the next client starts another one.
 * Trust    Input: data of the guest, parsed by sbx-ssh-agent. Every message is checked against the
 *          phase table. A violation kills the process; after WORKER_MAX_VIOLATIONS it is not
 *          restarted.
 * Limits   SSH_AGENT_MAX_OPEN streams; KEEPER_CONFIRMS prompts at the same time, KEEPER_CONFIRM_MS
 *          each.
 * Never    Allows a signature before its record is written.
 */
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"

/* ---- the process ---- */

static void drop_confirm(struct keeper *k, struct ssh_agent_confirm *c)
{
	if (c->child.pidfd < 0)
		return;
	loop_del(&k->loop, c->child.pidfd);
	worker_end(&c->child);
	loop_timer_clear(&k->loop, &c->timer);
	c->gen++;
}

static void drop_ssh_agent(struct keeper *k, struct worker *w, const char *why)
{
	struct ssh_agent_link *a = k->ssh_agent;

	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++) {
		fd_close(&a->streams[i].fd);
		a->streams[i].used = false;
	}
	for (size_t i = 0; i < KEEPER_CONFIRMS; i++)
		drop_confirm(k, &a->confirms[i]);
}

void ssh_agent_kill(struct keeper *k)
{
	worker_stop(k, &k->ssh_agent->worker, "");
}

void ssh_agent_on_exit(struct keeper *k)
{
	worker_on_exit(k, &k->ssh_agent->worker);
}

/* The next client starts another one, up to a limit. */
static void count_violation(struct keeper *k, struct worker *w)
{
}

/* ---- streams ---- */

static int send_config(struct keeper *k, struct err *err)
{
	static struct ssh_agent_config config;
	const struct spec_ssh *ssh = &k->spec.ssh;
	AUTO_CLOSE int host = hands_ssh_agent(k, err);

	if (host < 0)
		return host;
	config = (struct ssh_agent_config){.n_rules = (uint8_t)ssh->n_keys};
	for (size_t i = 0; i < ssh->n_keys; i++)
		(void)!str_copy(config.rules[i], sizeof(config.rules[i]), ssh->keys[i]);
	return ssh_agent_ask_config(k->ssh_agent->worker.sock, &config, host);
}

static void push_streams(struct keeper *k)
{
	struct ssh_agent_link *a = k->ssh_agent;

	for (uint32_t i = 0; i < SSH_AGENT_MAX_OPEN && a->worker.alive; i++) {
		if (a->streams[i].fd < 0)
			continue;
		/* A few small messages: if they do not fit, the process does not read. */
		if (chan_send_plain(a->worker.sock, SSH_AGENT_OPEN, i + 1, a->streams[i].fd) < 0) {
			ssh_agent_kill(k);
			return;
		}
		fd_close(&a->streams[i].fd);
	}
}

static struct ssh_agent_stream *find_free(struct ssh_agent_link *a)
{
	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++)
		if (!a->streams[i].used)
			return &a->streams[i];
	return NULL;
}

static int refuse_client(struct edge_verdict *v, const char *why)
{
	v->count = 1;
	(void)snprintf(v->reason, sizeof(v->reason), "%s", why);
	return -1;
}

static int try_open(struct keeper *k, struct edge_verdict *ret)
{
	struct ssh_agent_link *a = k->ssh_agent;
	struct ssh_agent_stream *s = find_free(a);
	struct err err = {0};
	int fds[2];

	*ret = (struct edge_verdict){.allowed = false};
	(void)!str_copy(ret->sandbox, sizeof(ret->sandbox), k->spec.name);
	if (!k->spec.ssh.socket)
		return refuse_client(ret, "the sandbox was created without --ssh-agent");
	if (a->worker.violations >= WORKER_MAX_VIOLATIONS)
		return refuse_client(
			ret, "sbx-ssh-agent violated its protocol repeatedly: see keeper.log");
	if (!s)
		return refuse_client(ret, "too many clients of the SSH agent");
	if (!a->worker.alive && worker_start(k, &a->worker, &err) < 0) {
		log_error("sbx-ssh-agent: %s", err.text);
		return refuse_client(ret, "cannot start sbx-ssh-agent: see keeper.log");
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return refuse_client(ret, "no file descriptors available on the host");
	s->used = true;
	s->fd = fds[1];
	ret->allowed = true;
	if (a->worker.phase == SSH_AGENT_PHASE_RUN)
		push_streams(k);
	return fds[0];
}

/* Records a client that was accepted or denied. */
static bool record_client(struct keeper *k, const struct edge_verdict *v)
{
	struct audit_event ev = {.kind = AUDIT_KIND_DECISION,
		.decision = v->allowed ? AUDIT_ALLOW : AUDIT_DENY,
		.action = slice_from_str("ssh-agent"),
		.type = slice_from_str("ssh-agent"),
		.reason = slice_from_str(v->reason)};
	struct err err = {0};
	int r;

	record_check(k);
	r = k->record->audit ? audit_append(k->record->audit, &ev, NULL, &err) : -ENOENT;
	if (r < 0)
		log_error("the SSH agent request is denied: %s", err_text(&err, r));
	return r == 0;
}

int ssh_agent_open(struct keeper *k, struct edge_verdict *ret)
{
	int fd = try_open(k, ret);

	if (!record_client(k, ret) && fd >= 0) {
		fd_close(&fd);
		*ret = (struct edge_verdict){.allowed = false};
		return refuse_client(ret, "cannot write to the audit log");
	}
	return fd;
}

/* ---- signatures ---- */

static const char *what_text(enum ssh_agent_what what)
{
	return what == SSH_AGENT_LOGIN ? "login as" : what == SSH_AGENT_FILE ? "file for" : "data";
}

/* Whether it was recorded: without a record nothing is signed. */
static bool record_sign(
	struct keeper *k, const struct ssh_agent_ask *ask, bool allowed, const char *why)
{
	struct audit_event ev = {.kind = AUDIT_KIND_SIGNATURE,
		.decision = allowed ? AUDIT_ALLOW : AUDIT_DENY,
		.action = slice_from_str("ssh-sign"),
		.rule = slice_from_str(ask->fingerprint),
		.host = slice_from_str(ask->comment),
		.reason = slice_from_str(why)};
	char op[SSH_AGENT_MAX_TEXT + 16];
	struct err err = {0};
	int r;

	(void)snprintf(op, sizeof(op), "%s %s", what_text(ask->what), ask->text);
	ev.op = slice_from_str(op);
	record_check(k);
	r = k->record->audit ? audit_append(k->record->audit, &ev, NULL, &err) : -ENOENT;
	if (r < 0)
		log_error("the signature is denied: %s", err_text(&err, r));
	return r == 0;
}

static void answer_sign(
	struct keeper *k, uint32_t id, const struct ssh_agent_ask *ask, bool yes, const char *why)
{
	yes = record_sign(k, ask, yes, why) && yes;
	if (ssh_agent_answer_ask(k->ssh_agent->worker.sock, id, yes) < 0)
		ssh_agent_kill(k);
}

static int ask_person(struct keeper *k, struct ssh_agent_confirm *c)
{
	char prompt[HANDS_MAX_PROMPT];
	struct loop_key key = {.kind = EV_CONFIRM,
		.gen = c->gen & 0xffffff,
		.idx = (uint32_t)(c - k->ssh_agent->confirms)};
	int r;

	(void)snprintf(prompt, sizeof(prompt),
		"Allow sandbox %s to use the key %s (%s)?\n"
		"Data to sign: %s %s",
		k->spec.name, c->ask.comment, c->ask.fingerprint, what_text(c->ask.what),
		c->ask.text);
	r = hands_askpass(k, prompt, &c->child, NULL);
	if (r < 0)
		return r;
	r = loop_add(&k->loop, c->child.pidfd, EPOLLIN, key);
	if (r < 0) {
		worker_end(&c->child);
		return r;
	}
	key.kind = EV_TIMER_CONFIRM;
	loop_timer_set(&k->loop, &c->timer, clock_mono_ms() + KEEPER_CONFIRM_MS, key);
	return 0;
}

static void confirm_sign(struct keeper *k, uint32_t id, const struct ssh_agent_ask *ask)
{
	struct ssh_agent_confirm *c = NULL;

	for (size_t i = 0; i < KEEPER_CONFIRMS && !c; i++)
		if (k->ssh_agent->confirms[i].child.pidfd < 0)
			c = &k->ssh_agent->confirms[i];
	if (!c) {
		answer_sign(k, id, ask, false, "other confirmations are pending");
		return;
	}
	c->id = id;
	c->ask = *ask;
	if (ask_person(k, c) < 0)
		answer_sign(k, id, ask, false, "cannot prompt for confirmation");
}

static void end_confirm(struct keeper *k, struct ssh_agent_confirm *c, bool yes, const char *why)
{
	struct ssh_agent_ask ask = c->ask;
	uint32_t id = c->id;

	drop_confirm(k, c);
	answer_sign(k, id, &ask, yes, why);
}

void ssh_agent_on_confirm(struct keeper *k, const struct loop_event *ev)
{
	struct ssh_agent_confirm *c = &k->ssh_agent->confirms[ev->key.idx];
	bool yes;

	if (c->child.pidfd < 0 || (c->gen & 0xffffff) != ev->key.gen)
		return;
	yes = worker_reap(&c->child) == 0;
	end_confirm(k, c, yes, yes ? "confirmed" : "not confirmed");
}

void ssh_agent_on_confirm_timeout(struct keeper *k, const struct loop_event *ev)
{
	struct ssh_agent_confirm *c = &k->ssh_agent->confirms[ev->key.idx];

	if (c->child.pidfd >= 0 && (c->gen & 0xffffff) == ev->key.gen)
		end_confirm(k, c, false, "no confirmation within the timeout");
}

static int on_ask(struct keeper *k, const struct ipc_msg *msg)
{
	struct ssh_agent_ask ask;
	int r = ssh_agent_get_ask(msg, &ask);

	if (r < 0)
		return r;
	if (k->spec.ssh.confirm)
		confirm_sign(k, msg->id, &ask);
	else
		answer_sign(k, msg->id, &ask, true, "");
	return 0;
}

/* ---- messages ---- */

static int configure_ssh_agent(struct keeper *k, struct worker *w, struct err *err)
{
	struct err why = {0};
	int r = send_config(k, &why);

	if (r < 0) { /* waiting clients see the close */
		log_error("%s", err_text(&why, r));
		ssh_agent_kill(k);
		return 0;
	}
	w->phase = chan_after(&ssh_agent_chan, w->phase, SSH_AGENT_CONFIG);
	push_streams(k);
	return 0;
}

static int on_closed(struct keeper *k, const struct ipc_msg *msg)
{
	struct ssh_agent_link *a = k->ssh_agent;

	if (chan_get_plain(&ssh_agent_chan, msg, SSH_AGENT_CLOSED) < 0 || msg->id == 0 ||
		msg->id > SSH_AGENT_MAX_OPEN || !a->streams[msg->id - 1].used ||
		a->streams[msg->id - 1].fd >= 0)
		return -EBADMSG;
	a->streams[msg->id - 1].used = false;
	return 0;
}

static int take_message(struct keeper *k, struct worker *w, struct ipc_msg *msg, struct err *err)
{
	return msg->type == SSH_AGENT_CLOSED ? on_closed(k, msg) : on_ask(k, msg);
}

static const struct worker_ops ssh_agent_worker = {
	.program = "sbx-ssh-agent",
	.profile = JAIL_SSH_AGENT,
	.ev_message = EV_SSH_AGENT,
	.ev_end = EV_SSH_AGENT_END,
	.chan = &ssh_agent_chan,
	.on_hello = configure_ssh_agent,
	.on_message = take_message,
	.on_end = drop_ssh_agent,
	.on_violation = count_violation,
};

void ssh_agent_init(struct keeper *k)
{
	struct ssh_agent_link *a = k->ssh_agent;

	worker_init(&a->worker, &ssh_agent_worker, 0);
	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++)
		a->streams[i].fd = -1;
	for (size_t i = 0; i < KEEPER_CONFIRMS; i++)
		a->confirms[i].child.pidfd = -1;
}

bool ssh_agent_is_live(const struct keeper *k, struct loop_key key)
{
	return worker_is_current(&k->ssh_agent->worker, key);
}

void ssh_agent_on_event(struct keeper *k, const struct loop_event *ev)
{
	worker_on_event(k, &k->ssh_agent->worker, ev);
}
