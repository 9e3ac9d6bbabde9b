/* SPDX-License-Identifier: Apache-2.0 */
#include "custom.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/policy/netrule.h"

struct text {
	char *p;
	size_t n;
	bool is_full;
};

static void put_custom(struct text *t, const char *a, const char *b, const char *c)
{
	int n = snprintf(t->p + t->n, CUSTOM_MAX_TEXT - t->n, "%s%s%s\n", a, b, c);

	if (n < 0 || (size_t)n >= CUSTOM_MAX_TEXT - t->n)
		t->is_full = true;
	else
		t->n += (size_t)n;
}

/* '#' after a space begins a comment: such a word would change the meaning of the line. */
static int check_line(const char *what, const char *s, struct err *err)
{
	if (!s[0])
		return err_set(err, -EINVAL, "%s is missing", what);
	if (!str_is_printable(s))
		return err_set(err, -EINVAL, "%s is not printable ASCII", what);
	if (s[0] == ' ' || s[strlen(s) - 1] == ' ' || strstr(s, " #") || s[0] == '#')
		return err_set(err, -EINVAL, "%s is invalid: '%.80s'", what, s);
	return 0;
}

static int put_host(struct text *t, const char *host, struct err *err)
{
	struct netrule nr = {0};
	AUTO_FREE char *canonical = xmalloc(NETRULE_MAX_TEXT);
	int r = netrule_parse(slice_from_str(host), &nr, err);
	bool has_port = r == 0 && nr.ports.lo;

	if (r < 0)
		return r;
	netrule_print(&nr, canonical);
	netrule_done(&nr);
	put_custom(t, "host ", canonical, has_port ? "" : ":443");
	return 0;
}

static int put_words(struct text *t, const struct custom *c, bool hosts, struct err *err)
{
	AUTO_FREE char *list = xstrdup(hosts ? c->hosts : c->env);
	AUTO_FREE char *tail = xasprintf(" %s", c->sentinel);
	char *rest = NULL;
	int r = 0;

	for (char *w = strtok_r(list, " ", &rest); w && r == 0; w = strtok_r(NULL, " ", &rest)) {
		if (hosts)
			r = put_host(t, w, err);
		else
			put_custom(t, "env ", w, tail);
	}
	return r;
}

int custom_text(const struct custom *c, char **ret, struct err *err)
{
	AUTO_FREE char *p = xmalloc(CUSTOM_MAX_TEXT);
	AUTO_FREE char *format = xasprintf(" %s", c->format);
	AUTO_FREE char *header = xstrdup(c->header);
	struct text t = {.p = p};
	int r = check_line("the host", c->hosts, err);

	if (r == 0)
		r = check_line("the header", c->header, err);
	if (r == 0)
		r = check_line("the format", c->format, err);
	if (r == 0 && c->env[0])
		r = check_line("the variable", c->env, err);
	if (r == 0 && c->env[0])
		r = check_line("the placeholder", c->sentinel, err);
	if (r == 0 && strchr(c->header, ' '))
		r = err_set(err, -EINVAL, "the header name contains a space");
	if (r == 0 && c->env[0] && strchr(c->sentinel, ' '))
		r = err_set(err, -EINVAL, "the placeholder contains a space");
	if (r < 0)
		return r;
	put_custom(&t, "service 1\nname ", c->name, "");
	put_custom(&t, "about a credential of the user's own", "", "");
	r = put_words(&t, c, false, err);
	put_custom(&t, "slot own", "", "");
	if (r == 0)
		r = put_words(&t, c, true, err);
	for (char *h = header; *h; h++)
		*h = (char)tolower((unsigned char)*h);
	put_custom(&t, "header ", header, format);
	put_custom(&t, "end", "", "");
	if (r == 0 && t.is_full)
		r = err_set(err, -E2BIG, "the service is longer than %d bytes", CUSTOM_MAX_TEXT);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}
