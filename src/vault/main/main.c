/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-vault: stores the credentials of one user. sbx-vault-run starts it, and it enters the jail
 * JAIL_VAULT itself. fd 3 is its listening socket, fd 4 is connected to sbx-vault-run, fd 5 to the
 * sbxd that started it. */
#include "vault.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/os/jail/jail.h"

static struct vault vault;

static void dispatch_event(struct vault *v, const struct loop_event *ev)
{
	switch ((enum vault_ev)ev->key.kind) {
	case EV_LISTEN:
		peer_on_listen(v);
		break;
	case EV_PEER:
		peer_on_event(v, ev);
		break;
	case EV_PEER_TIMER:
		peer_on_timer(v, ev->key);
		break;
	case EV_OP:
		op_on_event(v, ev);
		break;
	case EV_OP_TIMER:
	case EV_SCAN:
		op_on_timer(v, ev->key);
		break;
	case EV_JOB:
		job_on_event(v, ev);
		break;
	case EV_JOB_TIMER:
		job_on_timer(v, ev->key);
		break;
	case EV_RUNNER:
		job_on_runner(v);
		break;
	}
}

struct options {
	enum vault_key key;
	bool accept_old;
	const char *dir;
};

static void parse_options(int argc, char **argv, struct options *o)
{
	static const char *const keys[VAULT_N_KEYS] = {"--key=auto", "--key=file",
		"--key=secret-service", "--key=systemd-creds", "--key=passphrase"};

	for (int i = 1; i < argc; i++) {
		bool known = false;

		for (unsigned k = 0; k < VAULT_N_KEYS; k++) {
			if (strcmp(argv[i], keys[k]) == 0) {
				o->key = (enum vault_key)k;
				known = true;
			}
		}
		if (strcmp(argv[i], "--accept-old") == 0)
			o->accept_old = known = true;
		/* for the test that reads its memory */
		if (strcmp(argv[i], "--no-hidden-memory") == 0) {
			secret_forbid_hidden();
			known = true;
		}
		if (str_starts(argv[i], "--dir=/")) {
			o->dir = argv[i] + 6;
			known = true;
		}
		if (!known)
			die("unknown argument (this program is started by sbx-vault-run)");
	}
}

/* Returns the path of the vault's directory. */
static const char *enter_jail(const struct options *o)
{
	const struct jail_mount mount = {o->dir, VAULT_DIR, JAIL_MOUNT_RW};
	struct err err = {0};
	int r = jail_go_in(JAIL_VAULT, &mount, 1, &err);

	if (r < 0)
		die("%s", err_text(&err, r));
	return jail_place(&mount);
}

static void start_vault(struct vault *v, const struct options *o)
{
	peer_look_for_owner(v);
	/* no configuration file, and everything that reads one is done before the seal */
	if (!OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_ADD_ALL_CIPHERS, NULL))
		die("cannot initialize OpenSSL");
	if (loop_init(&v->loop) < 0 ||
		loop_add(&v->loop, VAULT_RUN_FD, EPOLLIN, (struct loop_key){.kind = EV_RUNNER}) < 0)
		die("fd %d: not a channel (this program is started by sbx-vault-run)",
			VAULT_RUN_FD);
	peer_init(v);
	v->wanted = o->key;
	open_start(v, enter_jail(o), o->accept_old);
}

int main(int argc, char **argv)
{
	struct options options = {.key = VAULT_KEY_NONE};

	log_init("sbx-vault");
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return vault_selftest();
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-vault " SBX_VERSION) < 0;
	parse_options(argc, argv, &options);
	if (!options.dir)
		die("missing --dir (this program is started by sbx-vault-run)");
	start_vault(&vault, &options);
	while (!vault.done) {
		struct loop_event ev;

		loop_next(&vault.loop, &ev);
		dispatch_event(&vault, &ev);
	}
	book_done(&vault.book);
	safe_done(&vault.safe);
	return vault.status;
}
