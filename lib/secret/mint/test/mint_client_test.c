/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TLS clients say about a leaf: OpenSSL's own over memory, and the programs there are (openssl
 * verify, openssl s_client, curl, python3 with its strict flags, node) over loopback.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <openssl/ssl.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/secret/mint/mint.h"

#define TIMEOUT_MS 20000

struct rig {
	struct mint *mint;
	SSL_CTX *server;
	char dir[64];
	char ca[96], leaf[96];
};

static void write_file(const char *path, struct slice s)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(s.p, 1, s.n, f), s.n);
	assert_int_equal(fclose(f), 0);
}

static struct slice leaf_of(struct rig *rig, const char *name)
{
	struct slice der;
	struct host h;

	assert_int_equal(host_from_wire(slice_from_str(name), &h, NULL), 0);
	assert_int_equal(mint_leaf(rig->mint, &h, (uint64_t)time(NULL), &der, NULL), 0);
	return der;
}

static int set_up(void **state)
{
	struct rig *rig = xcalloc(1, sizeof(*rig));

	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(mint_new("demo", (uint64_t)time(NULL), &rig->mint, NULL), 0);
	rig->server = SSL_CTX_new(TLS_server_method());
	assert_non_null(rig->server);
	(void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/sbx-mint-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	(void)snprintf(rig->ca, sizeof(rig->ca), "%s/ca.pem", rig->dir);
	(void)snprintf(rig->leaf, sizeof(rig->leaf), "%s/leaf.der", rig->dir);
	write_file(rig->ca, mint_ca_pem(rig->mint));
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	(void)unlink(rig->ca);
	(void)unlink(rig->leaf);
	(void)rmdir(rig->dir);
	SSL_CTX_free(rig->server);
	mint_free(rig->mint);
	free(rig);
	return 0;
}

static SSL *server_for(struct rig *rig, const char *name)
{
	struct slice der = leaf_of(rig, name);
	SSL *ssl = SSL_new(rig->server);
	X509 *cert = NULL;

	assert_non_null(ssl);
	assert_int_equal(mint_x509(rig->mint, der, &cert), 0);
	assert_int_equal(SSL_use_certificate(ssl, cert), 1);
	X509_free(cert);
	assert_int_equal(SSL_use_PrivateKey(ssl, mint_leaf_key(rig->mint)), 1);
	return ssl;
}

/* ---- in this process, over memory ---- */

static SSL_CTX *client_context(struct rig *rig)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct slice der = mint_ca_der(rig->mint);
	const uint8_t *p = der.p;
	X509 *ca = d2i_X509(NULL, &p, (long)der.n);

	assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca), 1);
	X509_free(ca);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return ctx;
}

/* X509_V_OK when the client took the certificate, else why not. */
static long shake_hands(struct rig *rig, const char *leaf, const char *wanted, int version)
{
	SSL_CTX *ctx = client_context(rig);
	SSL *server = server_for(rig, leaf), *client = SSL_new(ctx);
	BIO *a, *b;
	int done = 0;
	long r;

	assert_int_equal(SSL_set_max_proto_version(client, version), 1);
	assert_int_equal(BIO_new_bio_pair(&a, 0, &b, 0), 1);
	SSL_set_bio(server, a, a);
	SSL_set_bio(client, b, b);
	SSL_set_accept_state(server);
	SSL_set_connect_state(client);
	if (!X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(client), wanted))
		assert_int_equal(SSL_set1_host(client, wanted), 1);
	for (int i = 0; i < 10 && done < 2; i++)
		done = (SSL_do_handshake(client) == 1) + (SSL_do_handshake(server) == 1);
	r = SSL_get_verify_result(client);
	if (r == X509_V_OK)
		assert_int_equal(done, 2);
	SSL_free(client);
	SSL_free(server);
	SSL_CTX_free(ctx);
	return r;
}

static void openssl_takes_the_right_host_only(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		assert_int_equal(
			shake_hands(*state, "api.example.com", "api.example.com", versions[i]),
			X509_V_OK);
		assert_int_equal(shake_hands(*state, "api.example.com", "example.com", versions[i]),
			X509_V_ERR_HOSTNAME_MISMATCH);
		assert_int_equal(
			shake_hands(*state, "192.0.2.1", "192.0.2.1", versions[i]), X509_V_OK);
		assert_int_equal(
			shake_hands(*state, "2001:db8::1", "2001:db8::1", versions[i]), X509_V_OK);
		assert_int_equal(shake_hands(*state, "192.0.2.1", "192.0.2.2", versions[i]),
			X509_V_ERR_IP_ADDRESS_MISMATCH);
	}
}

/* ---- other programs ---- */

static bool is_there(const char *program)
{
	AUTO_FREE char *command = xasprintf("command -v %s >/dev/null 2>&1", program);

	return system(command) == 0;
}

static pid_t start(const char *command)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(TIMEOUT_MS / 1000);
		(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run(const char *command)
{
	return end_of(start(command));
}

static void openssl_verify_takes_it_strictly(void **state)
{
	static const char *const names[] = {"api.example.com", "192.0.2.1", "2001:db8::1"};
	struct rig *rig = *state;

	if (!is_there("openssl"))
		skip();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *kind = i == 0 ? "hostname" : "ip";
		AUTO_FREE char *yes =
			xasprintf("openssl verify -x509_strict -purpose sslserver "
				  "-check_ss_sig -CAfile %s -verify_%s %s %s >%s 2>&1",
				rig->ca, kind, names[i], rig->leaf, "/dev/null");
		AUTO_FREE char *no =
			xasprintf("openssl verify -CAfile %s -verify_%s %s %s >%s 2>&1", rig->ca,
				kind, i == 0 ? "example.com" : "192.0.2.7", rig->leaf, "/dev/null");

		write_file(rig->leaf, leaf_of(rig, names[i]));
		assert_int_equal(run(yes), 0);
		assert_int_not_equal(run(no), 0);
	}
}

static int listen_on_loopback(uint16_t *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

/* One connection: the handshake, a request, an answer. */
static void serve(struct rig *rig, int listener, const char *leaf)
{
	static const char answer[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n";
	const struct timeval limit = {.tv_sec = TIMEOUT_MS / 1000};
	SSL *ssl = server_for(rig, leaf);
	char buf[4096];
	AUTO_CLOSE int fd = -1;

	assert_int_equal(
		poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, TIMEOUT_MS), 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(SSL_set_fd(ssl, fd), 1);
	if (SSL_accept(ssl) == 1 && SSL_read(ssl, buf, sizeof(buf)) > 0 &&
		SSL_write(ssl, answer, sizeof(answer) - 1) > 0)
		(void)SSL_shutdown(ssl);
	SSL_free(ssl);
}

/* %1$s host, %2$u port, %3$s file of the CA. */
static const struct client {
	const char *program, *command;
} clients[] = {
	{"curl", "curl -sS --noproxy '*' --cacert %3$s --connect-to %1$s:443:127.0.0.1:%2$u "
		 "https://%1$s/ "
		 ">/dev/null 2>&1"},
	{"openssl", "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -no_ign_eof "
		    "-verify_return_error -x509_strict -verify_hostname %1$s -servername %1$s "
		    "-CAfile %3$s "
		    "-connect 127.0.0.1:%2$u >/dev/null 2>&1"},
	{"python3", "python3 -c 'import socket, ssl, sys\n"
		    "c = ssl.create_default_context(cafile=\"%3$s\")\n"
		    "c.verify_flags |= ssl.VERIFY_X509_STRICT\n"
		    "s = c.wrap_socket(socket.create_connection((\"127.0.0.1\", %2$u), 10), "
		    "server_hostname=\"%1$s\")\n"
		    "s.sendall(b\"GET / HTTP/1.0\\r\\n\\r\\n\")\n"
		    "sys.exit(0 if s.recv(99).startswith(b\"HTTP/1.1 200\") else 9)' 2>/dev/null"},
	{"node", "NODE_EXTRA_CA_CERTS=%3$s node -e 'require(\"https\").get({host: \"127.0.0.1\", "
		 "port: %2$u, "
		 "servername: \"%1$s\", agent: false}, (r) => process.exit(r.statusCode == 200 ? 0 "
		 ": 9))"
		 ".on(\"error\", () => process.exit(8))' 2>/dev/null"},
};

static int ask(struct rig *rig, const struct client *client, const char *leaf, const char *wanted)
{
	uint16_t port;
	AUTO_CLOSE int listener = listen_on_loopback(&port);
	AUTO_FREE char *command = NULL;
	pid_t pid;

	/* The format is one of the table above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	command = xasprintf(client->command, wanted, port, rig->ca);
#pragma GCC diagnostic pop
	pid = start(command);
	serve(rig, listener, leaf);
	return end_of(pid);
}

static void real_clients_take_the_right_host_only(void **state)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		const struct client *c = &clients[i];
		int r;

		if (!is_there(c->program))
			continue;
		n++;
		r = ask(*state, c, "api.example.com", "api.example.com");
		if (r != 0)
			fail_msg("%s refuses the certificate of its host: %d", c->program, r);
		r = ask(*state, c, "api.example.com", "other.example.com");
		if (r == 0)
			fail_msg("%s takes the certificate of another host", c->program);
	}
	assert_true(n > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			openssl_takes_the_right_host_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			openssl_verify_takes_it_strictly, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			real_clients_take_the_right_host_only, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
