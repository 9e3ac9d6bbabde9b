/* SPDX-License-Identifier: Apache-2.0 */
#include "browser.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "lib/base/mem.h"
#include "pem.h"
#include "trust.h"

#define FIREFOX_CA TRUST_DIR "/browser-ca-" /* and a number, .pem */

static const char *const chromium[] = {
	"/etc/chromium/policies/managed/sbx.json", "/etc/opt/chrome/policies/managed/sbx.json"};
static const char *const firefox[] = {
	"/etc/firefox/policies/policies.json", "/etc/firefox-esr/policies/policies.json"};
static const char *const firefox_prefs[] = {
	"/etc/firefox/defaults/pref/sbx.js", "/etc/firefox-esr/defaults/pref/sbx.js"};
static const char prefs[] = "// sbx: a hidden server name is refused\n"
			    "pref(\"network.dns.echconfig.enabled\", false);\n"
			    "pref(\"network.dns.http3_echconfig.enabled\", false);\n"
			    "pref(\"security.tls.ech.grease_probability\", 0);\n"
			    "pref(\"security.tls.ech.grease_http3\", false);\n";

/* Writes the base64 of the next certificate without its lines; false after the last. *pem moves
 * after it. */
static bool put_base64(FILE *out, const char **pem)
{
	const char *begin = strstr(*pem, PEM_BEGIN), *end;

	if (!begin)
		return false;
	begin += strlen(PEM_BEGIN);
	end = strstr(begin, PEM_END);
	if (!end)
		return false;
	for (; begin < end; begin++)
		if (*begin != '\n')
			fputc(*begin, out);
	*pem = end;
	return true;
}

static char *chromium_policy(const char *pem)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	const char *comma = "";

	if (!out)
		return NULL;
	fputs("{\n\t\"EncryptedClientHelloEnabled\": false,\n\t\"CACertificates\": [", out);
	while (strstr(pem, PEM_BEGIN)) {
		fprintf(out, "%s\n\t\t\"", comma);
		if (!put_base64(out, &pem))
			break;
		fputc('"', out);
		comma = ",";
	}
	fputs("\n\t]\n}\n", out);
	return fclose(out) == 0 ? text : NULL;
}

static char *firefox_policy(size_t n_cas)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	fputs("{\n\t\"policies\": {\n\t\t\"DisableEncryptedClientHello\": true,\n"
	      "\t\t\"Certificates\": {\n\t\t\t\"ImportEnterpriseRoots\": true,\n\t\t\t\"Install\": "
	      "[",
		out);
	for (size_t i = 0; i < n_cas; i++)
		fprintf(out, "%s\n\t\t\t\t\"" FIREFOX_CA "%zu.pem\"", i ? "," : "", i);
	fputs("\n\t\t\t]\n\t\t}\n\t}\n}\n", out);
	return fclose(out) == 0 ? text : NULL;
}

/* NULL removes the file. */
static int put_file(const char *root, const char *name, const char *text, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s%s", root, name);
	int r;

	if (!text)
		return unlink(path) < 0 && errno != ENOENT
			       ? err_errno(err, -errno, "cannot remove %s in the guest", path)
			       : 0;
	r = file_make_parents(path, err);
	return r < 0 ? r : file_say(path, text, err);
}

static bool is_ours_or_new(const char *root, const char *name)
{
	AUTO_FREE char *path = xasprintf("%s%s", root, name), *old = NULL;
	int r = file_read(path, &old);

	return r == -ENOENT || (r == 0 && strstr(old, FIREFOX_CA));
}

/* One file per certificate; removes those of an earlier, longer list. */
static int put_cas(const char *root, const char *pem, size_t *ret_n, struct err *err)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < BROWSER_MAX_CAS; i++) {
		AUTO_FREE char *name = xasprintf(FIREFOX_CA "%zu.pem", i), *one = NULL;
		AUTO_FREE char *path = xasprintf("%s%s", root, name);
		const char *begin = strstr(pem, PEM_BEGIN);
		const char *end = begin ? strstr(begin, PEM_END) : NULL;

		if (!end && access(path, F_OK) < 0)
			break;
		if (end) {
			end += strlen(PEM_END);
			one = xasprintf("%.*s\n", (int)(end - begin), begin);
			pem = end;
			n++;
		}
		r = put_file(root, name, one, err);
	}
	*ret_n = n;
	return r;
}

int browser_write(const char *root, const char *pem, struct err *err)
{
	AUTO_FREE char *for_chromium = NULL, *for_firefox = NULL;
	size_t n_cas = 0;
	int r = put_cas(root, pem, &n_cas, err);

	if (n_cas) {
		for_chromium = chromium_policy(pem);
		for_firefox = firefox_policy(n_cas);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(chromium); i++)
		r = put_file(root, chromium[i], for_chromium, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(firefox); i++)
		if (is_ours_or_new(root, firefox[i]))
			r = put_file(root, firefox[i], for_firefox, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(firefox_prefs); i++)
		r = put_file(root, firefox_prefs[i], n_cas ? prefs : NULL, err);
	return r;
}
