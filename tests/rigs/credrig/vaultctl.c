/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vaultctl - one question to a vault as ADMIN, over its real socket; values come by standard input.
 *
 *   vaultctl set NAME SCOPE            the credential of a service; the vault reads the value
 *   vaultctl custom NAME SCOPE HOSTS HEADER FORMAT ENV SENTINEL
 *   vaultctl proxy HOST:PORT SCHEME USER
 *   vaultctl rm NAME SCOPE
 *   vaultctl stop
 *   vaultctl registry HOST [USER TOKEN-SERVICE]     without a vault: prints a service file
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/ipc/vault_sock.h"
#include "lib/secret/service/registry.h"

#define WAIT_MS 60000
#define ID 7

static void next(int vault, struct ipc_msg *msg)
{
	struct pollfd p = {.fd = vault, .events = POLLIN};

	if (poll(&p, 1, WAIT_MS) <= 0 || ipc_recv(vault, msg) != 1)
		die("the vault says nothing");
}

static void copy(char *to, size_t size, const char *text)
{
	if (str_copy(to, size, text) < 0)
		die("%s is too long", text);
}

static int ask_set(int vault, int argc, char **argv)
{
	static struct vault_meta meta;

	copy(meta.name, sizeof(meta.name), argv[2]);
	copy(meta.scope, sizeof(meta.scope), argv[3]);
	if (argc == 9) {
		meta.kind = VAULT_CUSTOM;
		copy(meta.hosts, sizeof(meta.hosts), argv[4]);
		copy(meta.header, sizeof(meta.header), argv[5]);
		copy(meta.format, sizeof(meta.format), argv[6]);
		copy(meta.env, sizeof(meta.env), argv[7]);
		copy(meta.sentinel, sizeof(meta.sentinel), argv[8]);
	}
	return vault_ask_set(vault, ID, &meta, STDIN_FILENO);
}

/* proxy HOST:PORT SCHEME USER */
static int ask_proxy(int vault, char **argv)
{
	static struct vault_meta meta = {.kind = VAULT_PROXY, .name = VAULT_PROXY_NAME};

	copy(meta.hosts, sizeof(meta.hosts), argv[2]);
	copy(meta.header, sizeof(meta.header), strcmp(argv[3], "http") == 0 ? "http" : "socks5");
	copy(meta.format, sizeof(meta.format), argv[4]);
	return vault_ask_set(vault, ID, &meta, STDIN_FILENO);
}

static int ask(int vault, int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if ((strcmp(verb, "set") == 0 && argc == 4) || (strcmp(verb, "custom") == 0 && argc == 9))
		return ask_set(vault, argc, argv);
	if (strcmp(verb, "proxy") == 0 && argc == 5)
		return ask_proxy(vault, argv);
	if (strcmp(verb, "rm") == 0 && argc == 4)
		return vault_ask_remove(vault, ID, argv[2], argv[3]);
	if (strcmp(verb, "stop") == 0)
		return chan_send_plain(vault, VAULT_STOP, ID, -1);
	die("what?");
}

/* What `sbx secret set --registry` writes. */
static int print_registry(int argc, char **argv)
{
	const struct registry reg = {.host = argv[2],
		.user = argc == 5 ? argv[3] : NULL,
		.token = argc == 5 ? argv[4] : NULL};
	AUTO_FREE char *text = NULL;
	struct err err = {0};

	if (registry_text(&reg, &text, &err) < 0)
		die("%s", err.text);
	(void)fputs(text, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static struct ipc_msg msg;
	struct vault_done done;
	struct err err = {0};
	int vault;

	log_init("vaultctl");
	if (argc > 2 && strcmp(argv[1], "registry") == 0)
		return print_registry(argc, argv);
	vault = vault_sock_connect(&err);
	if (vault < 0)
		die("%s", err.text);
	next(vault, &msg);
	if (msg.type != VAULT_HELLO || chan_send_plain(vault, VAULT_ADMIN, 0, -1) < 0 ||
		ask(vault, argc, argv) < 0)
		die("the vault does not take it");
	do
		next(vault, &msg);
	while (msg.type != VAULT_DONE || msg.id != ID);
	if (vault_get_done(&msg, &done) < 0)
		die("the vault's answer does not decode");
	if (done.code < 0)
		die("%s", done.text);
	(void)printf("%lu\n", done.number);
	return 0;
}
