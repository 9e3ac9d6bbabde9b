/* SPDX-License-Identifier: Apache-2.0 */
#include "api_request.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "lib/client/cli/ui.h"
#include "lib/rules/pack/pack_graphql.h"

#define MAX_BODY (16u << 20)

void asked_done(struct asked *a)
{
	free(a->text);
	free(a->body);
	for (size_t i = 0; i < a->headers.n; i++)
		free(a->lines[i]);
	arena_done(&a->arena);
}

static int read_host(struct asked *a, char *authority, uint16_t default_port, struct err *err)
{
	struct slice name;
	int r = host_split(slice_from_str(authority), &name, &a->port, err);

	if (r < 0)
		return r;
	if (a->port == 0)
		a->port = default_port;
	return host_from_wire(name, &a->host, err);
}

/* The path and the query; a fragment is never sent. */
static int read_target(struct asked *a, char *target, struct err *err)
{
	char *mark;

	target[strcspn(target, "#")] = '\0';
	mark = strchr(target, '?');
	if (mark) {
		*mark = '\0';
		a->req.query = slice_from_str(mark + 1);
		a->has_query = true;
	}
	if (canon_check_query(a->req.query) < 0)
		return err_set(err, -EINVAL, "invalid query '?%s'", mark + 1);
	if (*target)
		a->path = slice_from_str(target);
	arena_init(&a->arena, HTTP_ARENA_SIZE);
	return canon_normal_path(slice_from_str(*target ? target : "/"), &a->arena, &a->req.path,
		       &a->req.odd) < 0
		       ? err_set(err, -EINVAL, "invalid path '%s'", target)
		       : 0;
}

static int read_url(struct asked *a, const char *text, struct err *err)
{
	char *url, *authority, *path, *slash;
	AUTO_FREE char *host = NULL;
	bool is_tls;

	a->text = xstrdup(text);
	a->path = slice_from_str("/");
	url = strchr(a->text, ' ');
	if (!url)
		return err_set(err, -EINVAL, "expected 'METHOD URL'");
	*url++ = '\0';
	is_tls = !str_starts(url, "http://");
	authority = strstr(url, "://");
	if (authority && is_tls && !str_starts(url, "https://"))
		return err_set(err, -EINVAL, "invalid URL '%s': expected https:// or http://", url);
	authority = authority ? authority + 3 : url;
	slash = authority + strcspn(authority, "/?#");
	host = xstrndup(authority, (size_t)(slash - authority));
	path = *slash ? slash : slash + strlen(slash);
	a->req.method = slice_from_str(a->text);
	if (strchr(host, '@'))
		return err_set(err, -EINVAL, "a URL with a user name is not supported");
	if (read_host(a, host, is_tls ? 443 : 80, err) < 0)
		return -EINVAL;
	return read_target(a, path, err);
}

static int read_header(struct asked *a, const char *text, struct err *err)
{
	size_t n = strcspn(text, ":");
	char *line;

	if (a->headers.n == ASKED_MAX_HEADERS)
		return err_set(err, -E2BIG, "more than %d headers", ASKED_MAX_HEADERS);
	if (n == 0 || !text[n])
		return err_set(err, -EINVAL, "invalid --header '%s': expected NAME: VALUE", text);
	line = a->lines[a->headers.n] = xstrdup(text);
	for (size_t i = 0; i < n; i++)
		line[i] = (char)tolower((unsigned char)line[i]);
	a->header[a->headers.n++] =
		(struct http_header){slice_of(line, n), slice_trim(slice_from_str(line + n + 1))};
	return 0;
}

static bool has_type(const struct asked *a)
{
	for (size_t i = 0; i < a->headers.n; i++)
		if (slice_eq_str(a->header[i].name, "content-type"))
			return true;
	return false;
}

int asked_read(struct asked *a, const char *text, const struct opt_list *headers, const char *body,
	struct err *err)
{
	size_t n = 0;
	int r = read_url(a, text, err);

	a->headers.list = a->header;
	a->req.headers = &a->headers;
	for (size_t i = 0; r == 0 && i < headers->n; i++)
		r = read_header(a, headers->v[i], err);
	/* a request with a type has a body, which is not known without --body */
	a->req.no_body = !body && !has_type(a);
	if (r < 0 || !body)
		return r;
	r = file_load(body, MAX_BODY, &a->body, &n, err);
	if (r == -ENOENT)
		return err_errno(err, r, "cannot read %s", body);
	a->req.body = slice_of(a->body, n);
	a->req.has_body = r == 0;
	return r;
}

static void print_effect(const struct pack *p, const struct pack_effect *e)
{
	if (!e->row) {
		printf("unknown     %s: %s\n", p->name, e->why);
		return;
	}
	printf("%-10s  %.*s on ", pack_risk_name(e->row->risk), (int)e->row->verb.n,
		e->row->verb.p);
	ui_put(e->object);
	(void)putchar('\n');
	if (e->say[0]) {
		printf("            ");
		ui_put(e->say);
		(void)putchar('\n');
	}
}

static json_t *describe_effect(const struct pack *p, const struct pack_effect *e)
{
	return e->row ? json_pack("{s:s, s:s, s:s%, s:s, s:s?, s:i, s:n}", "service", p->name,
				"risk", pack_risk_name(e->row->risk), "verb", e->row->verb.p,
				e->row->verb.n, "object", e->object, "say",
				e->say[0] ? e->say : NULL, "line", (int)e->row->line, "why")
		      : json_pack("{s:s, s:s, s:n, s:n, s:n, s:n, s:s}", "service", p->name, "risk",
				"unknown", "verb", "object", "say", "line", "why", e->why);
}

static void print_json(const struct pack *p, const struct pack_effects *effects)
{
	json_t *list = json_array();
	AUTO_JSON json_t *whole = json_pack("{s:o}", "effects", list);

	for (size_t i = 0; i < effects->n; i++)
		(void)json_array_append_new(list, describe_effect(p, &effects->v[i]));
	api_print(whole);
}

int api_request_test(const struct packs *all, const char *text, const struct opts *o)
{
	CLEANUP(asked_done) struct asked a = {0};
	struct pack_effects effects;
	const struct pack *p;
	struct err err = {0};

	if (asked_read(&a, text, opts_list(o, "header"), opts_value(o, "body"), &err) < 0) {
		ui_error("%s", err.text);
		ui_hint("sbx help api test");
		return EXIT_USAGE;
	}
	p = packs_of_host(all, host_slice(&a.host), a.port);
	if (!p) {
		ui_error("no API pack has the host %s:%u", a.host.name, a.port);
		ui_hint("sbx api ls");
		return EXIT_FAILED;
	}
	pack_match_all(p, &a.req, &effects);
	if (opts_has(o, "json"))
		print_json(p, &effects);
	for (size_t i = 0; !opts_has(o, "json") && i < effects.n; i++)
		print_effect(p, &effects.v[i]);
	return EXIT_OK;
}
