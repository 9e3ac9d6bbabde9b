/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netpolicy - policy and settings of the network, from sbxd and the files to gate and egress.
 *
 * How      sbxd sends the tables of the policy (lib/rules/policy/table.h) before RELOAD. The
 *          first tables apply at once, later ones at the RELOAD after them. The descriptors are
 *          kept, so an egress that starts later gets exactly the policy of the gate, also while no
 *          sbxd is running. A RELOAD is answered when egress sends LOADED. An egress that does not
 *          send it in time is killed, which closes all its connections.
 * Trust    Tables of sbxd; files of the same user; resolv.conf of the host.
 * Limits   TABLE_MAX_BYTES, RESOLV_MAX_BYTES, KEEPER_MAX_RELOADS, KEEPER_LOAD_MS.
 * Never    Keeps an old policy because the new one is missing or broken: then everything is denied.
 */
#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/policy/locals_read.h"
#include "lib/rules/policy/table.h"
#include "lib/rules/settings/settings_net.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define RESOLV_MAX_BYTES 65536

/* ---- the tables ---- */

/* Whether two files, each of which may be -1, have the same bytes. */
static bool file_has_same(int a, int b)
{
	static uint8_t of_a[16384], of_b[16384];
	off_t at = 0;
	ssize_t n;

	if (a < 0 || b < 0)
		return a == b;
	do {
		n = pread(a, of_a, sizeof(of_a), at);
		if (n < 0 || pread(b, of_b, sizeof(of_b), at) != n)
			return false;
		at += n;
	} while (n > 0 && memcmp(of_a, of_b, (size_t)n) == 0);
	return n == 0;
}

static void close_tables(int table[POLICY_N_PARTS])
{
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		fd_close(&table[i]);
}

void netpolicy_prepare(struct keeper *k)
{
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		k->netpolicy->table[i] = k->netpolicy->next.table[i] = -1;
}

static void drop_next(struct netpolicy *np)
{
	close_tables(np->next.table);
	np->next.is_used = false;
}

/* A sandbox that only installs software: rules for all sandboxes must not allow it more. */
static struct policy *check_closed(struct keeper *k, struct policy *policy)
{
	if (!k->spec.n_only || policy_fault(policy) || policy_is_closed(policy))
		return policy;
	log_error("the policy is not the one of a sandbox that only installs software");
	policy_free(policy);
	close_tables(k->netpolicy->table);
	return policy_open(k->netpolicy->table);
}

/* Packs are only in memory while rules are about APIs. */
static void use_packs(struct keeper *k)
{
	struct netpolicy *np = k->netpolicy;
	struct err err = {0};
	int r;

	gate_set_packs(k->gate, NULL);
	if (np->packs)
		packs_done(np->packs);
	free(TAKE(np->packs));
	if (!gate_has_api(k->gate))
		return;
	np->packs = xcalloc(1, sizeof(*np->packs));
	r = packs_load_installed(np->packs, &err);
	if (r < 0)
		log_error("cannot read the API packs: %s", err_text(&err, r));
	for (size_t i = 0; i < np->packs->n_faults; i++)
		log_warn("an API pack is not used: %s", np->packs->fault[i]);
	gate_set_packs(k->gate, np->packs);
}

/* The tables that sbxd sent last. Without all of them, everything is denied. */
static void use_tables(struct keeper *k)
{
	struct netpolicy *np = k->netpolicy;
	bool is_same = true;

	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		is_same = is_same && file_has_same(np->table[i], np->next.table[i]);
	close_tables(np->table);
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		np->table[i] = TAKE_FD(np->next.table[i]);
	gate_set_policy(k->gate, check_closed(k, policy_open(np->table)));
	use_packs(k);
	if (gate_fault(k->gate))
		log_warn("all traffic is denied: %s", gate_fault(k->gate));
	if (!is_same)
		holds_on_policy(k);
}

/* ---- settings and addresses ---- */

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
	holds_set_limits(k, (uint32_t)settings_get_u64(&s, SETTINGS_ASK_MAX_OPEN),
		(uint32_t)settings_get_u64(&s, SETTINGS_ASK_MAX_HOUR));
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
	record_set_max_bytes(k, settings_get_u64(&none, SETTINGS_AUDIT_MAX_SIZE));
	(void)read_locals(k);
	use_tables(k); /* of a VM of the pool; else they come with the first messages */
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

/* A part that is missing is sent as an empty file, which is not a table. */
static int send_table(
	struct keeper *k, int sock, uint32_t id, enum policy_part part, ask_policy_fn *ask)
{
	AUTO_CLOSE int none = -1;
	int fd = k->netpolicy->table[part];

	if (fd < 0)
		fd = none = sealed_file_make("policy", slice_of(NULL, 0));
	return fd < 0 ? fd : ask(sock, id, (uint8_t)part, fd);
}

int netpolicy_send_tables(struct keeper *k, int sock, uint32_t id, ask_policy_fn *ask)
{
	int r = 0;

	for (size_t i = 0; i < POLICY_N_PARTS && r == 0; i++)
		r = send_table(k, sock, id, (enum policy_part)i, ask);
	return r;
}

static int send_policy(struct keeper *k)
{
	uint32_t id = k->egress->n_sent + 1;
	int r = netpolicy_send_tables(k, k->egress->worker.sock, id, egress_ask_policy);

	if (r < 0)
		return r;
	k->egress->n_sent = id;
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

int netpolicy_take(struct keeper *k, int link, struct ipc_msg *msg)
{
	struct next_policy *next = &k->netpolicy->next;
	uint8_t part;
	int r = keeper_get_policy(msg, &part);

	if (r < 0)
		return r;
	if (part == POLICY_ALL) {
		close_tables(next->table);
		*next = (struct next_policy){.link = link,
			.link_gen = k->links[link].gen,
			.msg = msg->id,
			.table = {TAKE_FD(msg->fd), -1, -1}};
		return 0;
	}
	if (next->table[part - 1] < 0 || next->table[part] >= 0 || next->link != link ||
		next->link_gen != k->links[link].gen || next->msg != msg->id)
		return -EBADMSG;
	next->table[part] = TAKE_FD(msg->fd);
	if (part != POLICY_OWN)
		return 0;
	if (k->gate && k->netpolicy->table[POLICY_ALL] < 0) {
		use_tables(k);
		next->is_used = true;
		resend_policy(k);
	}
	return 0;
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
	if (np->next.link != link || np->next.link_gen != rl.link_gen || np->next.msg != msg)
		drop_next(np);
	if (!np->next.is_used)
		use_tables(k);
	np->next.is_used = false;
	r = read_settings(k, &err);
	if (r < 0)
		log_error("the network settings were not changed: %s", err_text(&err, r));
	resend_policy(k);
	origins_recheck(k);
	clerks_on_policy(k);
	origins_set_policy(k);
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
