/* SPDX-License-Identifier: Apache-2.0 */
#include "npmrc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/secret/service/services.h"

void npmrc_done(struct npmrc *n)
{
	free(n->registry);
	free(n->cafile);
	free(n->proxy);
	*n = (struct npmrc){0};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* "key = value", with quotes around the value or not; ${X} is not filled in. */
static void take_line(struct npmrc *n, char *line)
{
	char *value = strchr(line, '='), **place = NULL;
	size_t len;

	if (!value || line[0] == '#' || line[0] == ';')
		return;
	*value++ = '\0';
	for (len = strlen(line); len && is_blank(line[len - 1]);)
		line[--len] = '\0';
	while (is_blank(*value) || *value == '"')
		value++;
	for (len = strlen(value); len && (is_blank(value[len - 1]) || value[len - 1] == '"');)
		value[--len] = '\0';
	if (strstr(line, "_authToken") || strstr(line, "_auth") || strstr(line, "_password"))
		n->has_token = true;
	else if (strcmp(line, "registry") == 0)
		place = &n->registry;
	else if (strcmp(line, "cafile") == 0)
		place = &n->cafile;
	else if (strcmp(line, "https-proxy") == 0 || strcmp(line, "proxy") == 0)
		place = &n->proxy;
	if (place && !*place && value[0] && strcmp(value, "null") != 0)
		*place = xstrdup(value);
}

void npmrc_take(struct npmrc *n, struct slice text)
{
	AUTO_FREE char *copy = text.n ? xstrndup((const char *)text.p, text.n) : xstrdup("");

	for (char *save = NULL, *line = strtok_r(copy, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		while (is_blank(*line))
			line++;
		take_line(n, line);
	}
}

static void take_variable(struct npmrc *n, const char *name, const char *key)
{
	const char *value = getenv(name);
	AUTO_FREE char *line = value ? xasprintf("%s=%s", key, value) : NULL;

	if (line)
		npmrc_take(n, slice_from_str(line));
}

static void take_file(struct npmrc *n, const char *path)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;

	if (file_load(path, NPMRC_MAX_BYTES, &text, &len, NULL) == 0)
		npmrc_take(n, slice_of(text, len));
}

/* The service npm is for npm's default registry. */
static char *standard_registry(void)
{
	struct services *all = services_new();
	AUTO_FREE char *host = xmalloc(NETRULE_MAX_TEXT);
	const struct service *npm;
	struct err ignored = {0};
	char *url = NULL;

	if (services_load_installed(all, &ignored) == 0 && (npm = services_by_name(all, "npm"))) {
		netrule_print(&npm->slot[0].host[0], host);
		host[strcspn(host, ":")] = '\0';
		/* `*.HOST` of the slot `registry` */
		url = xasprintf("https://%s%s/", host[0] == '*' ? npm->slot[0].name : "",
			host + (host[0] == '*'));
	}
	services_free(all);
	return url;
}

int npmrc_read(struct npmrc *ret, struct err *err)
{
	static const char *const keys[] = {"registry", "cafile"};
	const char *home = getenv("HOME"), *own = getenv("npm_config_userconfig");
	AUTO_FREE char *path = own ? xstrdup(own) : xasprintf("%s/.npmrc", home ? home : "");
	AUTO_FREE char *target = NULL;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		AUTO_FREE char *low = xasprintf("npm_config_%s", keys[i]),
			       *up = xasprintf("NPM_CONFIG_%s", i ? "CAFILE" : "REGISTRY");

		take_variable(ret, low, keys[i]);
		take_variable(ret, up, keys[i]);
	}
	take_file(ret, path);
	take_file(ret, "/etc/npmrc");
	if (!ret->registry)
		ret->registry = standard_registry();
	if (!ret->registry)
		return err_set(err, -ENOENT, "npm registry unknown: service 'npm' not found");
	target = npmrc_target(ret, err);
	return target ? 0 : -EINVAL;
}

static bool is_host_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '-' || c == ':';
}

char *npmrc_target(const struct npmrc *n, struct err *err)
{
	bool tls = str_starts(n->registry, "https://");
	const char *host = tls ? n->registry + 8 : n->registry + 7;
	size_t len;

	if (!tls && !str_starts(n->registry, "http://")) {
		(void)err_set(err, -EINVAL, "npm registry: expected an http:// or https:// URL");
		return NULL;
	}
	len = strcspn(host, "/");
	if (memchr(host, '@', len)) {
		(void)err_set(err, -EPERM,
			"npm registry: the URL contains a user or a password, which the sandbox could read");
		return NULL;
	}
	for (size_t i = 0; i < len; i++)
		if (!is_host_byte(host[i]))
			len = 0;
	if (len == 0 || len > 255) {
		(void)err_set(err, -EINVAL, "npm registry: the URL has no host");
		return NULL;
	}
	return xasprintf("%.*s%s", (int)len, host,
		memchr(host, ':', len) ? ""
		: tls		       ? ":443"
				       : ":80");
}
