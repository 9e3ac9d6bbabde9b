/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-vault-keyring: one request to the desktop's Secret Service. stdin has a struct keyring_ask,
 * stdout gets a struct keyring_answer; both are the same socket, connected to the vault. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/secret/secret/keyring.h"
#include "lib/secret/secret/secret.h"
/* last: it redefines our MIN and MAX */
#include <libsecret/secret.h>

static const SecretSchema schema = {
	.name = "org.sbx.VaultKey",
	.flags = SECRET_SCHEMA_NONE,
	.attributes = {{"installation", SECRET_SCHEMA_ATTRIBUTE_STRING}, {NULL, 0}},
};

static void set_status(struct keyring_answer *a, enum keyring_status status, const char *text)
{
	a->status = status;
	(void)snprintf(a->text, sizeof(a->text), "%s", text);
	str_make_printable(a->text);
}

static void set_error(struct keyring_answer *a, const GError *e)
{
	bool none = e->domain == G_IO_ERROR ||
		    g_error_matches(e, G_DBUS_ERROR, G_DBUS_ERROR_SERVICE_UNKNOWN) ||
		    g_error_matches(e, G_DBUS_ERROR, G_DBUS_ERROR_SPAWN_SERVICE_NOT_FOUND);
	bool locked = e->domain == SECRET_ERROR && e->code == SECRET_ERROR_IS_LOCKED;

	set_status(a,
		locked ? KEYRING_LOCKED
		: none ? KEYRING_NO_SERVICE
		       : KEYRING_FAILED,
		e->message);
}

/* Without a prompt: the user may be absent, and the vault waits 15 s. */
static bool is_usable(SecretService *service, struct keyring_answer *a)
{
	SecretCollection *c = secret_collection_for_alias_sync(
		service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE, NULL, NULL);
	bool locked = c && secret_collection_get_locked(c);

	if (!c)
		set_status(a, KEYRING_NO_SERVICE, "no default keyring exists");
	else if (locked)
		set_status(a, KEYRING_LOCKED, "the keyring is locked: unlock it and try again");
	if (c)
		g_object_unref(c);
	return c && !locked;
}

static void put_key(SecretService *service, const struct keyring_ask *ask, GHashTable *attributes,
	struct keyring_answer *a)
{
	SecretValue *value = secret_value_new(
		(const char *)ask->value.p, (gssize)ask->value.n, "application/octet-stream");
	GError *e = NULL;

	if (secret_service_store_sync(service, &schema, attributes, SECRET_COLLECTION_DEFAULT,
		    "sbx: key of the vault", value, NULL, &e))
		set_status(a, KEYRING_OK, "");
	else
		set_error(a, e);
	secret_value_unref(value);
	g_clear_error(&e);
}

static void get_key(SecretService *service, GHashTable *attributes, struct secret *copy,
	struct keyring_answer *a)
{
	GError *e = NULL;
	SecretValue *value = secret_service_lookup_sync(service, &schema, attributes, NULL, &e);
	const char *bytes;
	gsize n;

	if (e) {
		set_error(a, e);
		g_clear_error(&e);
		return;
	}
	if (!value) {
		set_status(a, KEYRING_NOT_FOUND, "the keyring has no key for this installation");
		return;
	}
	bytes = secret_value_get(value, &n);
	if (n == 0 || n > KEYRING_MAX_VALUE || secret_copy(copy, slice_of(bytes, n), NULL) < 0) {
		set_status(a, KEYRING_FAILED, "the stored item is not an sbx key");
	} else {
		set_status(a, KEYRING_OK, "");
		a->value = secret_slice(copy);
	}
	secret_value_unref(value); /* libsecret wipes it */
}

static void ask_service(
	const struct keyring_ask *ask, struct secret *copy, struct keyring_answer *a)
{
	GHashTable *attributes = g_hash_table_new(g_str_hash, g_str_equal);
	GError *e = NULL;
	SecretService *service = secret_service_get_sync(
		SECRET_SERVICE_OPEN_SESSION | SECRET_SERVICE_LOAD_COLLECTIONS, NULL, &e);

	(void)g_hash_table_insert(
		attributes, (gpointer) "installation", (gpointer)(uintptr_t)ask->name);
	if (!service) {
		set_error(a, e);
		g_clear_error(&e);
	} else if (is_usable(service, a)) {
		if (ask->op == KEYRING_PUT)
			put_key(service, ask, attributes, a);
		else
			get_key(service, attributes, copy, a);
	}
	if (service)
		g_object_unref(service);
	g_hash_table_unref(attributes);
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = {0};
	AUTO_SECRET struct secret in = {0}, out = {0}, copy = {0};
	struct keyring_answer answer = {0};
	struct keyring_ask ask;
	struct wr wr;
	ssize_t n;

	log_init("sbx-vault-keyring");
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-vault-keyring " SBX_VERSION) < 0;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0 ||
		secret_init(&in, KEYRING_MAX, NULL) < 0 || secret_init(&out, KEYRING_MAX, NULL) < 0)
		return 1;
	n = fd_read_full(STDIN_FILENO, in.p, KEYRING_MAX);
	if (n < 0 || keyring_get_ask(slice_of(in.p, (size_t)n), &ask) < 0)
		die("no valid request on stdin (this program is started by sbx-vault-run)");
	ask_service(&ask, &copy, &answer);
	wr = wr_init(out.p, KEYRING_MAX);
	if (keyring_put_answer(&wr, &answer) < 0 || fd_write_all(STDOUT_FILENO, out.p, wr.n) < 0)
		return 1;
	return 0;
}
