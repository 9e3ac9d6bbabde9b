/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netpolicy - policy and settings of the network, from the files to lib/rules/gate and to egress.
 *
 * How      Reads state/policy and the settings at the start and on RELOAD. The text of the policy
 *          is kept as a sealed memfd, so an egress that starts later gets exactly the policy of the
 *          gate. A RELOAD is answered when egress sends LOADED. An egress that does not send it in
 *          time is killed, which closes all its connections.
 * Trust    Files of the same user; resolv.conf of the host.
 * Limits   RULES_MAX_BYTES, RESOLV_MAX_BYTES, KEEPER_MAX_RELOADS, KEEPER_LOAD_MS.
 * Never    Keeps an old policy because the new one is broken: then everything is denied.
 */
#include "network.h"
#include "closed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/policy/locals_read.h"
#include "lib/rules/settings/settings_net.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define RESOLV_MAX_BYTES 65536

static void read_policy(struct keeper *k)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "policy");
	AUTO_FREE char *text = NULL, *closed = NULL;
	AUTO_CLOSE int fd = -1;
	struct slice s = slice_of(NULL, 0);
	struct err err = {0};
	size_t n = 0;
	int r = fd = hands_policy(k, &err);

	if (fd >= 0)
		r = file_read(fd, path, RULES_MAX_BYTES, &text, &n, &err);
	if (r == 0)
		s = slice_of(text, n);
	else if (r != -ENOENT)
		log_error("%s", err_text(&err, r));
	if (r == 0 && k->spec.n_only) {
		closed = closed_policy(&k->spec, s);
		s = slice_from_str(closed);
	}
	gate_set_policy(k->gate, s, path);
	fd_close(&k->netpolicy->text);
	r = sealed_file_make("policy", s);
	if (r < 0)
		log_error("cannot store the policy for sbx-egress: %s", strerror(-r));
	k->netpolicy->text = r < 0 ? -1 : r;
	if (gate_fault(k->gate))
		log_warn("all traffic is denied: %s", gate_fault(k->gate));
}

/* On an error the previous settings stay; without any, all traffic is denied. */
static int read_settings(struct keeper *k, struct err *err)
{
	AUTO_SETTINGS struct settings s = {0};
	static struct egress_config config;
	int r = settings_load(&s, err);

	if (r == 0)
		r = settings_net_config(&s, &config, err);
	if (r < 0)
		return r;
	record_set_max_bytes(k, settings_get_u64(&s, SETTINGS_AUDIT_MAX_SIZE));
	k->disk_reserve = settings_get_u64(&s, SETTINGS_DISK_RESERVE);
	k->egress->config = config;
	k->netpolicy->fault[0] = '\0';
	roots_read(k, settings_get(&s, SETTINGS_NETWORK_EXTRA_CA));
	vault_set_rules(k, strcmp(settings_get(&s, SETTINGS_CREDENTIALS_OAUTH), "false") != 0,
		strcmp(settings_get(&s, SETTINGS_CREDENTIALS_INTERCEPT), "true") == 0);
	return 0;
}

/* Returns true if the addresses of the host changed. On an error the previous ones stay; a
 * connection to the host itself is recognized without them. */
static bool read_locals(struct keeper *k)
{
	static struct addr_locals locals;
	int r = locals_read(&locals);

	if (r < 0) {
		log_warn("cannot read the addresses of the host: %s", strerror(-r));
		return false;
	}
	return gate_set_locals(k->gate, &locals);
}

void netpolicy_init(struct keeper *k)
{
	const struct settings none = {0};
	struct err err = {0};
	int r;

	k->gate = gate_new(k->spec.name, NULL);
	k->netpolicy->text = -1;
	record_set_max_bytes(k, settings_get_u64(&none, SETTINGS_AUDIT_MAX_SIZE));
	(void)read_locals(k);
	read_policy(k);
	r = read_settings(k, &err);
	if (r < 0) {
		(void)snprintf(
			k->netpolicy->fault, sizeof(k->netpolicy->fault), "%s", err_text(&err, r));
		log_error("all traffic is denied: %s", k->netpolicy->fault);
	}
}

static int send_resolver(struct keeper *k)
{
	AUTO_FREE char *text = NULL;
	AUTO_CLOSE int fd = -1, again = -1;
	struct stat st = {0};
	size_t n = 0;
	int r;

	/* stat before reading: a change between the two is noticed at the next check. */
	(void)!stat(RESOLV_CONF, &st);
	r = file_load(RESOLV_CONF, RESOLV_MAX_BYTES, &text, &n, NULL);
	if (r < 0)
		log_warn("cannot read " RESOLV_CONF ": %s", strerror(-r));
	fd = sealed_file_make("resolv.conf", slice_of(text, r < 0 ? 0 : n));
	if (fd < 0)
		return fd;
	again = sealed_file_open(fd);
	if (again < 0)
		return again;
	r = chan_send_plain(k->egress->worker.sock, EGRESS_RESOLVER, 0, again);
	if (r == 0)
		k->netpolicy->resolver = st;
	return r;
}

static int send_locals(struct keeper *k)
{
	static struct egress_locals locals;

	gate_put_locals(k->gate, &locals);
	return egress_ask_locals(k->egress->worker.sock, &locals);
}

static int send_policy(struct keeper *k)
{
	AUTO_CLOSE int fd = sealed_file_open(k->netpolicy->text);
	int r;

	if (fd < 0)
		return fd;
	r = egress_ask_policy(k->egress->worker.sock, k->egress->n_sent + 1, k->spec.name, fd);
	if (r < 0)
		return r;
	k->egress->n_sent++;
	loop_timer_set(&k->loop, &k->egress->load_timer, clock_mono_ms() + KEEPER_LOAD_MS,
		(struct loop_key){.kind = EV_TIMER_LOAD});
	return 0;
}

int netpolicy_send(struct keeper *k)
{
	int r = egress_ask_config(k->egress->worker.sock, &k->egress->config);

	if (r < 0)
		return r;
	k->egress->worker.phase = chan_after(&egress_chan, k->egress->worker.phase, EGRESS_CONFIG);
	r = send_resolver(k);
	if (r == 0)
		r = send_locals(k);
	return r < 0 ? r : send_policy(k);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void netpolicy_check_host(struct keeper *k)
{
	uint64_t now = clock_mono_ms();
	struct stat st = {0};

	if (now - k->netpolicy->resolver_ms < KEEPER_RESOLVER_MS)
		return;
	k->netpolicy->resolver_ms = now;
	(void)!stat(RESOLV_CONF, &st);
	/* If it cannot be sent now, the next check sees the change again. */
	if (!is_same_file(&st, &k->netpolicy->resolver))
		(void)!send_resolver(k);
	k->netpolicy->locals_due = read_locals(k) || k->netpolicy->locals_due;
	if (k->netpolicy->locals_due)
		k->netpolicy->locals_due = send_locals(k) < 0;
}

static void answer_reloads(struct keeper *k, const char *text)
{
	struct netpolicy *np = k->netpolicy;
	size_t kept = 0;

	for (size_t i = 0; i < np->n_reloads; i++) {
		struct reload rl = np->reloads[i];

		if ((int32_t)(rl.policy - k->egress->n_loaded) > 0)
			np->reloads[kept++] = rl;
		else
			link_answer(k, rl.link, rl.link_gen, rl.msg, 0, text);
	}
	np->n_reloads = kept;
}

static const char *fault_text(const struct keeper *k)
{
	const char *fault = gate_fault(k->gate);

	return fault ? fault : "";
}

/* Sends everything to a running egress. A new egress gets it after HELLO. */
static void resend_policy(struct keeper *k)
{
	int r;

	if (!k->egress->worker.alive || k->egress->worker.phase != EGRESS_PHASE_RUN)
		return;
	r = netpolicy_send(k);
	if (r < 0)
		egress_restart(k, "does not accept a new policy");
}

void netpolicy_reload(struct keeper *k, int link, uint32_t msg, const char *name)
{
	struct netpolicy *np = k->netpolicy;
	struct reload rl = {.link = link, .link_gen = k->links[link].gen, .msg = msg};
	struct err err = {0};
	int r;

	if (name[0])
		(void)!str_copy(k->spec.name, sizeof(k->spec.name), name);
	gate_set_name(k->gate, k->spec.name);
	if (k->record->audit && audit_set_name(k->record->audit, k->spec.name) < 0)
		log_warn("cannot rename the sandbox in the audit log");
	read_policy(k);
	r = read_settings(k, &err);
	if (r < 0)
		log_error("the network settings were not changed: %s", err_text(&err, r));
	resend_policy(k);
	origins_recheck(k);
	rl.policy = k->egress->n_sent;
	if (r < 0)
		link_answer(k, link, rl.link_gen, msg, r, err_text(&err, r));
	else if (!k->egress->worker.alive || k->egress->n_loaded == k->egress->n_sent)
		link_answer(k, link, rl.link_gen, msg, 0, fault_text(k));
	else if (np->n_reloads == KEEPER_MAX_RELOADS)
		link_answer(k, link, rl.link_gen, msg, -EBUSY, "too many concurrent reloads");
	else
		np->reloads[np->n_reloads++] = rl;
}

void netpolicy_on_loaded(struct keeper *k, const char *text)
{
	if (k->egress->n_loaded == k->egress->n_sent)
		loop_timer_clear(&k->loop, &k->egress->load_timer);
	if (text[0] && !gate_fault(k->gate))
		log_error("sbx-egress denies all traffic: %s", text);
	answer_reloads(k, text[0] ? text : fault_text(k));
}

void netpolicy_on_egress_end(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->egress->load_timer);
	/* Connections of the old egress are closed; the next egress starts with the new policy. */
	answer_reloads(k, fault_text(k));
}

void netpolicy_on_load_timeout(struct keeper *k)
{
	egress_restart(k, "does not confirm the new policy");
}
