/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reload costs with many sandboxes and no VMs, as one line of JSON. This process does what
 * sbxd does (rulebook, tables, POLICY, RELOAD), and each of the pairs what a keeper and its egress
 * do: they get the files on the real channels, map them, decide once, and answer. `seconds` is from
 * the changed file to the last answer. `memory_mib` is what all processes together have more than
 * before the first policy: Pss of /proc/PID/smaps_rollup, so that shared pages count once, and the
 * files of all tables, whether their pages were read or not.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/egress_chan.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/rules/policy/test/random_rules.h"
#include "src/sbxd/policy/tables.h"

#define MAX_PAIRS 1000

struct pair {
	int sock;
	pid_t keeper, egress;
	struct stat own; /* its table */
};

static struct pair pairs[MAX_PAIRS];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "reload_bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void get(int sock, struct ipc_msg *msg)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int r;

	while ((r = ipc_recv(sock, msg)) == -EAGAIN)
		(void)poll(&p, 1, -1);
	if (r != 1)
		_exit(0);
}

static bool decides(const struct policy *p)
{
	struct policy_op op = {.kind = RULE_NETWORK, .port = 443, .now_ms = 1};
	struct policy_decision d;
	struct host host;

	must(host_from_wire(slice_from_str("changed.example"), &host, NULL) == 0, "host");
	op.host = &host;
	policy_decide(p, &op, &d);
	return d.allowed;
}

/* As src/egress/control.c. */
static void be_egress(int sock)
{
	int files[POLICY_N_PARTS] = {-1, -1, -1};
	struct policy *policy = NULL;

	for (;;) {
		struct ipc_msg msg = {.fd = -1};
		uint8_t part;

		get(sock, &msg);
		must(egress_get_policy(&msg, &part) == 0, "POLICY");
		fd_close(&files[part]);
		files[part] = TAKE_FD(msg.fd);
		if (part != POLICY_OWN)
			continue;
		policy_free(policy);
		policy = policy_open(files);
		for (int i = 0; i < POLICY_N_PARTS; i++)
			fd_close(&files[i]);
		must(egress_send_loaded(sock, msg.id, decides(policy) ? "" : "denied") == 0,
			"LOADED");
	}
}

/* As src/keeper/network/netpolicy.c. */
static void be_keeper(int sock, int egress)
{
	int files[POLICY_N_PARTS] = {-1, -1, -1};
	struct policy *policy = NULL;

	for (;;) {
		struct ipc_msg msg = {.fd = -1};
		char text[EGRESS_MAX_TEXT];
		uint32_t id;
		uint8_t part;

		get(sock, &msg);
		id = msg.id;
		if (msg.type == KEEPER_POLICY) {
			must(keeper_get_policy(&msg, &part) == 0, "POLICY");
			fd_close(&files[part]);
			files[part] = TAKE_FD(msg.fd);
			continue;
		}
		policy_free(policy);
		policy = policy_open(files);
		for (int i = 0; i < POLICY_N_PARTS; i++)
			must(egress_ask_policy(egress, 1, (uint8_t)i, files[i]) == 0, "POLICY");
		get(egress, &msg);
		must(egress_get_loaded(&msg, text) == 0, "LOADED");
		must(keeper_send_done(sock, id, decides(policy) && !text[0] ? 0 : -EACCES, "") == 0,
			"DONE");
	}
}

static pid_t start(void (*be)(int, int), int a, int b)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		be(a, b);
	}
	return pid;
}

static void run_egress(int sock, int unused)
{
	(void)unused;
	be_egress(sock);
}

static void start_pair(struct pair *p)
{
	int to_keeper[2], to_egress[2];

	must(ipc_pair(to_keeper) == 0 && ipc_pair(to_egress) == 0, "socket pair");
	p->egress = start(run_egress, to_egress[1], -1);
	p->keeper = start(be_keeper, to_keeper[1], to_egress[0]);
	p->sock = to_keeper[0];
	fd_close(&to_keeper[1]);
	fd_close(&to_egress[0]);
	fd_close(&to_egress[1]);
}

/* Without the tables, whose files are counted whole. */
static size_t pss_kib(pid_t pid)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/smaps_rollup", (int)pid);
	FILE *f = fopen(path, "r");
	char line[256];
	size_t kib = 0, all = 0;

	must(f != NULL, path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss_Anon: %zu kB", &kib) == 1 ||
			sscanf(line, "Pss_File: %zu kB", &kib) == 1)
			all += kib;
	(void)fclose(f);
	return all;
}

/* What the scheduler has given to a process. */
static double cpu_s(pid_t pid)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/schedstat", (int)pid);
	FILE *f = fopen(path, "r");
	unsigned long long ns = 0;

	must(f && fscanf(f, "%llu", &ns) == 1, path);
	(void)fclose(f);
	return (double)ns / 1e9;
}

static double all_cpu_s(size_t n)
{
	double s = cpu_s(getpid());

	for (size_t i = 0; i < n; i++)
		s += cpu_s(pairs[i].keeper) + cpu_s(pairs[i].egress);
	return s;
}

static size_t all_pss_kib(size_t n)
{
	size_t kib = pss_kib(getpid());

	for (size_t i = 0; i < n; i++)
		kib += pss_kib(pairs[i].keeper) + pss_kib(pairs[i].egress);
	return kib;
}

static void push(struct tables *tables, struct rulebook *book, size_t i, uint32_t id)
{
	struct spec spec = {0};
	int files[POLICY_N_PARTS];

	(void)snprintf(spec.name, sizeof(spec.name), "box%zu", i);
	must(tables_get(tables, book, &spec, files) == 0, "tables");
	must(fstat(files[POLICY_OWN], &pairs[i].own) == 0, "table");
	for (int part = 0; part < POLICY_N_PARTS; part++)
		must(keeper_send_policy(pairs[i].sock, id, (uint8_t)part, files[part]) == 0,
			"POLICY");
	fd_close(&files[POLICY_OWN]);
	must(keeper_ask_reload(pairs[i].sock, id, spec.name) == 0, "RELOAD");
}

/* Seconds until the last of the keepers has answered that it and its egress use the policy. */
static double reload(struct tables *tables, struct rulebook *book, size_t n, uint32_t id)
{
	double begin = now_s();

	for (size_t i = 0; i < n; i++)
		push(tables, book, i, id);
	for (size_t i = 0; i < n; i++) {
		struct ipc_msg msg = {.fd = -1};
		struct keeper_done done;

		get(pairs[i].sock, &msg);
		must(keeper_get_done(&msg, &done) == 0 && msg.id == id && done.code == 0, "DONE");
	}
	return now_s() - begin;
}

static void save_rules(size_t n)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "policy");
	AUTO_RULES struct rules rules = {0};
	struct random_state rs = {n};
	AUTO_FREE char *text = NULL;

	random_rules_wide(&rs, n, &rules);
	for (size_t i = 0; i < n; i++)
		rules.rule[i].id = xasprintf("%012zx", i);
	text = rules_encode(&rules, RULE_PRINT_ALL);
	must(file_save(path, slice_from_str(text), NULL) == 0, "policy");
}

/* As POST /v1/policy/rules: in memory, a new file, renamed. */
static void add_rule(struct rulebook *book)
{
	AUTO_RULE struct rule rule = {0};

	rulebook_refresh(book);
	must(rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str("changed.example:443"), &rule,
		     NULL) == 0 &&
			rules_add(&book->rules, &rule, NULL) == 0 &&
			rulebook_prepare(book, NULL) == 0 && rulebook_commit(book, NULL) == 0,
		"change");
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	size_t n_rules = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000, before, after;
	AUTO_FREE char *dir = paths_get(PATHS_STATE, NULL);
	struct rulebook book = {0};
	struct tables tables;
	double seconds, again, cpu;
	struct stat table = {0};

	must(n <= MAX_PAIRS && paths_make(dir, NULL) == 0, "directory");
	fd_raise_limit();
	tables_init(&tables);
	for (size_t i = 0; i < n; i++)
		start_pair(&pairs[i]);
	if (fork() == 0) {
		save_rules(n_rules - 1);
		_exit(0);
	}
	(void)wait(NULL);
	before = all_pss_kib(n);
	add_rule(&book);
	seconds = reload(&tables, &book, n, 1);
	add_rule(&book);
	cpu = all_cpu_s(n);
	again = reload(&tables, &book, n, 2);
	cpu = all_cpu_s(n) - cpu;
	must(fstat(tables.all, &table) == 0, "table");
	after = all_pss_kib(n) + (size_t)table.st_blocks / 2;
	for (size_t i = 0; i < n; i++)
		after += (size_t)pairs[i].own.st_blocks / 2;
	printf("{\"keepers\": %zu, \"rules\": %zu, \"seconds\": %.3f, \"seconds_again\": %.3f, "
	       "\"cpu_seconds\": %.3f, \"memory_mib\": %.1f, \"table_mib\": %.1f}\n",
		n, n_rules, seconds, again, cpu, (double)(after - before) / 1024,
		(double)table.st_blocks / 2048);
	return 0;
}
