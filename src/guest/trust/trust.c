/* SPDX-License-Identifier: Apache-2.0 */
#include "trust.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "browser.h"
#include "certname.h"
#include "pem.h"
#include "lib/base/mem.h"

#define CERTS "/etc/ssl/certs"
#define LOCAL "/usr/local/share/ca-certificates/sbx.crt"
#define LINK "sbx.pem" /* the name that update-ca-certificates gives it */
#define JAVA_STORE CERTS "/java/cacerts"
#define SUDOERS "/etc/sudoers.d/sbx-trust"
#define JAVA_ALIAS "debian:" LINK /* as Debian calls it */
#define MARK "# sbx: the CA of this sandbox"
#define MARK_LINE MARK ", another one after the next start\n"
#define MAX_SAME_HASH 10
#define MAX_JAVA 64 /* our certificates in Debian's store */

const struct trust_paths trust_of_guest = {
	.ca = TRUST_CA,
	.bundle = TRUST_BUNDLE,
	.jks = TRUST_JKS,
};

/* Variables that add a file to the program's own list, and variables that replace it. */
static const char *const for_ca[] = {"NODE_EXTRA_CA_CERTS", "DENO_CERT"};
static const char *const for_bundle[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
	"REQUESTS_CA_BUNDLE", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO"};

void trust_env(struct env *e, const struct trust_paths *paths)
{
	const char *java = env_get(e, "JAVA_TOOL_OPTIONS");
	AUTO_FREE char *options = xasprintf(
		"%s%s-Djavax.net.ssl.trustStore=%s", java ? java : "", java ? " " : "", paths->jks);

	for (size_t i = 0; i < ARRAY_LEN(for_ca); i++)
		env_set(e, for_ca[i], paths->ca);
	for (size_t i = 0; i < ARRAY_LEN(for_bundle); i++)
		env_set(e, for_bundle[i], paths->bundle);
	env_set(e, "JAVA_TOOL_OPTIONS", options);
}

/* Returns the position after the block that begins here. */
static const char *block_end(const char *begin)
{
	const char *line = strchr(begin, '\n'), *end;

	if (!line)
		return begin + strlen(begin);
	if (strncmp(line + 1, PEM_BEGIN, strlen(PEM_BEGIN)) != 0)
		return line + 1;
	end = strstr(line, PEM_END);
	if (!end)
		return line + 1;
	end += strlen(PEM_END);
	return *end == '\n' ? end + 1 : end;
}

/* Length of the certificate that begins here; guest_ctl.h guarantees that nothing is in between. */
static size_t certificate_len(const char *pem)
{
	const char *end = strstr(pem, PEM_END "\n");

	return end ? (size_t)(end - pem) + strlen(PEM_END "\n") : strlen(pem);
}

static size_t count_certificates(const char *pem)
{
	size_t n = 0;

	for (; *pem; pem += certificate_len(pem))
		n++;
	return n;
}

char *trust_bundle(const char *old, const char *ca_pem)
{
	size_t room =
		strlen(old) + strlen(MARK_LINE) * count_certificates(ca_pem) + strlen(ca_pem) + 2;
	char *text = xmalloc(room);
	size_t n = 0, len;

	while (*old) {
		const char *next = strchr(old, '\n');

		next = strncmp(old, MARK, strlen(MARK)) == 0 ? block_end(old)
		       : next				     ? next + 1
							     : old + strlen(old);
		if (strncmp(old, MARK, strlen(MARK)) != 0) {
			memcpy(text + n, old, (size_t)(next - old));
			n += (size_t)(next - old);
		}
		old = next;
	}
	for (; *ca_pem; ca_pem += len) {
		const char *gap = n > 0 && text[n - 1] != '\n' ? "\n" : "";

		len = certificate_len(ca_pem);
		n += (size_t)snprintf(
			text + n, room - n, "%s" MARK_LINE "%.*s", gap, (int)len, ca_pem);
	}
	text[n] = '\0';
	return text;
}

static char *below_trust(const char *root, const char *path)
{
	return xasprintf("%s%s", root, path);
}

/* The text, or "" for a file that does not exist. */
static int read_or_empty(const char *path, char **ret, struct err *err)
{
	int r = file_read(path, ret);

	if (r == -ENOENT) {
		*ret = xstrdup("");
		return 0;
	}
	return r < 0 ? err_errno(err, r, "cannot read %s in the guest", path) : 0;
}

static int remove_file(const char *path, struct err *err)
{
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, -errno, "cannot remove %s in the guest", path);
	return 0;
}

/* Empty text removes the file. */
static int say_or_remove(const char *path, const char *text, struct err *err)
{
	int r;

	if (!text[0])
		return remove_file(path, err);
	r = file_make_parents(path, err);
	return r < 0 ? r : file_say(path, text, err);
}

/* The hash of the next certificate; *pem moves after it. -ENOENT after the last. */
static int next_hash(const char **pem, uint32_t *ret)
{
	size_t n;
	AUTO_FREE uint8_t *der = pem_next(pem, &n);

	return der ? certname_hash(slice_of(der, n), ret) : -ENOENT;
}

static bool points_to(const char *path, const char *target)
{
	char buf[256];
	ssize_t n = readlink(path, buf, sizeof(buf) - 1);

	if (n < 0)
		return false;
	buf[n] = '\0';
	return !strcmp(buf, target);
}

static void drop_hashes(const char *root, const char *pem)
{
	uint32_t hash;
	int r;

	while ((r = next_hash(&pem, &hash)) != -ENOENT) {
		for (unsigned i = 0; r == 0 && i < MAX_SAME_HASH; i++) {
			AUTO_FREE char *path = xasprintf("%s" CERTS "/%08x.%u", root, hash, i);

			if (points_to(path, LINK))
				(void)unlink(path);
		}
	}
}

/* OpenSSL tries .0, .1 and so on until there is none. */
static int link_hash(const char *root, uint32_t hash, struct err *err)
{
	for (unsigned i = 0; i < MAX_SAME_HASH; i++) {
		AUTO_FREE char *path = xasprintf("%s" CERTS "/%08x.%u", root, hash, i);

		if (points_to(path, LINK) || symlink(LINK, path) == 0)
			return 0;
		if (errno != EEXIST)
			return err_errno(err, -errno, "cannot create %s in the guest", path);
	}
	return err_set(err, -EEXIST, "no free name for %08x in " CERTS, hash);
}

/* Each link points to the file of all of them: OpenSSL reads every certificate in it. A certificate
 * of the user with an unreadable name is in the bundle anyway. */
static int link_hashes(const char *root, const char *pem, struct err *err)
{
	uint32_t hash;
	int r = next_hash(&pem, &hash), linked;

	if (r < 0)
		return err_set(err, -EBADMSG, "cannot parse the sandbox CA");
	for (; r != -ENOENT; r = next_hash(&pem, &hash)) {
		linked = r == 0 ? link_hash(root, hash, err) : 0;
		if (linked < 0)
			return linked;
	}
	return 0;
}

static int write_local(const char *root, const char *ca_pem, struct err *err)
{
	AUTO_FREE char *path = below_trust(root, LOCAL), *old = NULL;
	AUTO_FREE char *text = trust_bundle("", ca_pem);
	int r = read_or_empty(path, &old, err);

	if (r < 0)
		return r;
	if (strcmp(old, text) != 0)
		drop_hashes(root, old);
	return say_or_remove(path, text, err);
}

static int write_links(const char *root, const char *ca_pem, struct err *err)
{
	AUTO_FREE char *path = below_trust(root, CERTS "/" LINK);
	int r;

	if (!ca_pem[0])
		return remove_file(path, err);
	r = file_make_parents(path, err);
	if (r < 0)
		return r;
	if (!points_to(path, LOCAL)) {
		(void)unlink(path);
		if (symlink(LOCAL, path) < 0)
			return err_errno(err, -errno, "cannot create %s in the guest", path);
	}
	return link_hashes(root, ca_pem, err);
}

static int write_bundle(const char *root, const char *ca_pem, char **ret, struct err *err)
{
	AUTO_FREE char *path = below_trust(root, TRUST_BUNDLE), *old = NULL;
	int r = read_or_empty(path, &old, err);

	if (r < 0)
		return r;
	*ret = trust_bundle(old, ca_pem);
	return strcmp(old, *ret) ? say_or_remove(path, *ret, err) : 0;
}

/* Adds the next certificate under the alias of its number, or removes that alias. *ret_more: there
 * is another certificate, or was an entry of an earlier start. */
static int put_java(uint8_t **store, size_t *n, unsigned number, const char **pem, bool *ret_more)
{
	AUTO_FREE char *alias =
		number ? xasprintf("debian:sbx-%u.pem", number) : xstrdup(JAVA_ALIAS);
	AUTO_FREE uint8_t *new = NULL;
	size_t n_der = 0, n_new;
	AUTO_FREE uint8_t *der = pem_next(pem, &n_der);
	int r = jks_put(slice_of(*store, *n), alias, slice_of(der, der ? n_der : 0), &new, &n_new);

	if (r < 0)
		return r;
	*ret_more = der || n_new != *n;
	free(*store);
	*store = TAKE(new);
	*n = n_new;
	return 0;
}

/* Debian's store, if a JVM is installed and the store is readable: other JVMs use the one in
 * TRUST_DIR. */
static int write_java(const char *root, const char *ca_pem, struct err *err)
{
	AUTO_FREE char *path = below_trust(root, JAVA_STORE), *old = NULL;
	AUTO_FREE uint8_t *now = NULL;
	size_t n_old, n_now;
	bool is_more = true;

	if (file_read_bytes(path, &old, &n_old) < 0)
		return 0;
	n_now = n_old;
	now = xmalloc(n_old ? n_old : 1);
	memcpy(now, old, n_old);
	for (unsigned i = 0; is_more && i < MAX_JAVA; i++) {
		if (put_java(&now, &n_now, i, &ca_pem, &is_more) < 0)
			return 0;
	}
	if (slice_eq(slice_of(old, n_old), slice_of(now, n_now)))
		return 0;
	return file_replace_bytes(path, slice_of(now, n_now), err);
}

/* The store is rebuilt if the CA is new, which is the case after each start. */
static int write_own(const char *root, const char *ca_pem, const char *bundle, struct err *err)
{
	AUTO_FREE char *ca = below_trust(root, TRUST_CA), *jks = below_trust(root, TRUST_JKS),
		       *old = NULL;
	AUTO_FREE uint8_t *store = NULL;
	size_t n;
	int r;

	if (!ca_pem[0]) {
		r = remove_file(jks, err);
		return r < 0 ? r : remove_file(ca, err);
	}
	if (file_read(ca, &old) == 0 && !strcmp(old, ca_pem) && access(jks, F_OK) == 0)
		return 0;
	if (jks_from_pem(bundle, &store, &n) < 0)
		return err_set(err, -EMSGSIZE, "too many certificates in the guest for Java");
	r = file_make_parents(jks, err);
	if (r == 0)
		r = file_replace_bytes(jks, slice_of(store, n), err);
	return r < 0 ? r : file_replace(ca, ca_pem, err);
}

static bool is_plain_variable(const char *assignment)
{
	size_t n = strcspn(assignment, "=");

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)assignment[i]) && assignment[i] != '_')
			return false;
	for (const char *p = assignment + n; *p; p++)
		if (iscntrl((unsigned char)*p))
			return false;
	return n > 0 && !isdigit((unsigned char)assignment[0]);
}

/* For containers (oci.h). */
static int write_variables(const char *root, const struct guest_trust *t, struct err *err)
{
	AUTO_FREE char *path = below_trust(root, TRUST_VARIABLES), *text = xstrdup("");

	for (size_t i = 0; i < t->n_env; i++) {
		char *more;

		if (!is_plain_variable(t->env[i]))
			continue;
		more = xasprintf("%s%s\n", text, t->env[i]);
		free(text);
		text = more;
	}
	return say_or_remove(path, text, err);
}

static char *add_name(char *text, const char *assignment)
{
	char *more = is_plain_variable(assignment)
			     ? xasprintf("%s %.*s", text, (int)strcspn(assignment, "="), assignment)
			     : xstrdup(text);

	free(text);
	return more;
}

/* sudo drops unknown variables; an error in this file would disable sudo, so it contains only plain
 * names. */
static int write_sudoers(const char *root, const struct guest_trust *t, struct err *err)
{
	AUTO_FREE char *path = below_trust(root, SUDOERS), *names = xstrdup(""), *text = NULL;
	struct env env = {0};
	int r;

	if (t->ca_pem[0])
		trust_env(&env, &trust_of_guest);
	for (size_t i = 0; i < env.n; i++)
		names = add_name(names, env.v[i]);
	for (size_t i = 0; i < t->n_env; i++)
		names = add_name(names, t->env[i]);
	env_done(&env);
	text = names[0] ? xasprintf("# root trusts the same\nDefaults env_keep += \"%s\"\n",
				  names + 1)
			: xstrdup("");
	r = say_or_remove(path, text, err);
	if (r == 0 && text[0])
		(void)chmod(path, 0440);
	return r;
}

/* Keeps the first failure. */
static void note_trust(int *first, struct err *err, int r, const struct err *now)
{
	if (r < 0 && *first == 0) {
		*first = r;
		err_set(err, r, "%s", err_text(now, r));
	}
}

int trust_write(const char *root, const struct guest_trust *t, struct err *err)
{
	AUTO_FREE char *bundle = NULL;
	AUTO_FREE char *all = xasprintf("%s%s", t->ca_pem, t->extra_pem ? t->extra_pem : "");
	struct err now = {0};
	int first = 0;

	note_trust(&first, err, write_local(root, all, &now), &now);
	note_trust(&first, err, write_links(root, all, &now), &now);
	note_trust(&first, err, write_bundle(root, all, &bundle, &now), &now);
	note_trust(&first, err, write_own(root, all, bundle ? bundle : all, &now), &now);
	note_trust(&first, err, write_java(root, all, &now), &now);
	note_trust(&first, err, browser_write(root, all, &now), &now);
	note_trust(&first, err, write_variables(root, t, &now), &now);
	note_trust(&first, err, write_sudoers(root, t, &now), &now);
	return first;
}
