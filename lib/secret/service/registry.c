/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "service.h"

#define PREFIX "registry-"

/* Where registries have their token service if it is on their own host: Docker's example and ghcr,
 * Google, Quay, Harbor, Azure, GitLab. */
static const char *const token_paths[] = {
	"/token", "/v2/token", "/v2/auth", "/service/token", "/oauth2/token", "/jwt/auth"};

/* One name or address; the port is 443 if there is none. The text is canonical. */
static int take_host(const char *text, char **ret, struct err *err)
{
	AUTO_FREE char *canonical = xmalloc(NETRULE_MAX_TEXT);
	struct netrule nr = {0};
	int r = netrule_parse(slice_from_str(text), &nr, err);
	bool is_one = r == 0 && nr.form == NETRULE_NAME && !nr.deep && !nr.n_glob &&
		      nr.ports.lo == nr.ports.hi;
	bool has_port = r == 0 && nr.ports.lo;

	if (r < 0)
		return r;
	netrule_print(&nr, canonical);
	netrule_done(&nr);
	if (!is_one)
		return err_set(err, -EINVAL,
			"invalid registry '%.100s': expected a name such as registry.example.com or registry.example.com:5000",
			text);
	*ret = xasprintf("%s%s", canonical, has_port ? "" : ":443");
	return 0;
}

int registry_name(const char *host, char buf[REGISTRY_MAX_NAME], struct err *err)
{
	AUTO_FREE char *canonical = NULL;
	size_t n;
	int r = take_host(host, &canonical, err);

	if (r < 0)
		return r;
	if (str_ends(canonical, ":443"))
		canonical[strlen(canonical) - 4] = '\0';
	for (char *c = canonical; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : '-';
	n = (size_t)snprintf(buf, REGISTRY_MAX_NAME, PREFIX "%s", canonical);
	return n < REGISTRY_MAX_NAME
		       ? 0
		       : err_set(err, -ENAMETOOLONG,
				 "the name of the registry is longer than %zu characters",
				 REGISTRY_MAX_NAME - sizeof(PREFIX));
}

/* Lines with the endpoints, and lines with their paths for a slot. */
static int add_tokens(
	const char *host, const char *given, char **ret_tokens, char **ret_slot, struct err *err)
{
	const char *slash = given ? strchr(given, '/') : NULL;
	AUTO_FREE char *at = NULL, *name = slash ? xstrndup(given, (size_t)(slash - given)) : NULL;
	AUTO_FREE char *tokens = xstrdup(""), *slot = NULL;
	size_t n = given ? 1 : ARRAY_LEN(token_paths);
	int r;

	if (given && (!slash || slash == given))
		return err_set(err, -EINVAL,
			"invalid token service '%.100s': expected HOST/PATH, such as auth.example.com/token",
			given);
	r = take_host(given ? name : host, &at, err);
	if (r < 0)
		return r;
	slot = xasprintf("slot login\nhost %s\n", at);
	for (size_t i = 0; i < n; i++) {
		const char *path = given ? slash : token_paths[i];
		char *more = xasprintf("%stoken %s %s\n", tokens, at, path);
		char *paths = xasprintf("%spath %s\n", slot, path);

		free(tokens);
		free(slot);
		tokens = more;
		slot = paths;
	}
	*ret_tokens = TAKE(tokens);
	*ret_slot = TAKE(slot);
	return 0;
}

static int check_word(const char *what, const char *word, struct err *err)
{
	if (!word || (str_is_printable(word) && word[0] && !strpbrk(word, " #:")))
		return 0;
	return err_set(err, -EINVAL, "invalid %s '%.80s': expected one word", what, word);
}

/* The parser is the judge of what was written. */
static int check_text(const char *text, struct err *err)
{
	AUTO_SERVICE struct service s = {0};

	return service_parse(slice_from_str(text), "registry", &s, err);
}

int registry_text(const struct registry *reg, char **ret, struct err *err)
{
	AUTO_FREE char *host = NULL, *tokens = NULL, *login = NULL, *text = NULL;
	char name[REGISTRY_MAX_NAME];
	AUTO_FREE char *basic =
		xasprintf("basic%s%s", reg->user ? " " : "", reg->user ? reg->user : "");
	int r = registry_name(reg->host, name, err);

	if (r == 0)
		r = check_word("user", reg->user, err);
	if (r == 0 && reg->token && strpbrk(reg->token, " #"))
		r = err_set(err, -EINVAL, "the token service contains a space or '#'");
	if (r == 0)
		r = take_host(reg->host, &host, err);
	if (r == 0)
		r = add_tokens(host, reg->token, &tokens, &login, err);
	if (r < 0)
		return r;
	text = xasprintf(REGISTRY_MARK
		"\n\nservice 1\nname %s\nabout pull and push images at %s\n%s"
		"field access token registry-proxy-managed-*\n"
		"field access access_token registry-proxy-managed-*\n"
		"field refresh refresh_token registry-refresh-proxy-managed-*\n"
		"field expires expires_in\n\n"
		"%s%s\n\n"
		"slot token\nhost %s\npath /v2/**\nheader authorization Bearer %%s\nvalue access\n\n"
		"slot password\nhost %s\npath /v2/**\n%s\n\nend\n",
		name, host, tokens, login, basic, host, host, basic);
	r = check_text(text, err);
	if (r < 0)
		return r;
	*ret = TAKE(text);
	return 0;
}
