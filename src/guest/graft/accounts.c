/* SPDX-License-Identifier: Apache-2.0 */
#include "accounts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/base/slice.h"
#include "lib/base/str.h"

#define STR_(x) #x
#define STR(x) STR_(x)
#define ID STR(ACCOUNTS_ID)
#define PASSWD_FIELDS 7
#define GROUP_FIELDS 4

static const char *const joined[] = {"sudo", "wheel", "docker"};

/* One line without its line end. */
struct row {
	const char *p;
	size_t n;
};

static bool next_row(const char **text, struct row *ret)
{
	if (!**text)
		return false;
	*ret = (struct row){*text, strcspn(*text, "\n")};
	*text += ret->n + ((*text)[ret->n] == '\n');
	return true;
}

/* The field, counted from 0, and the number of fields. */
static struct row field_accounts(const struct row *row, size_t which, size_t *ret_count)
{
	struct row found = {"", 0};
	const char *p = row->p, *end = row->p + row->n;
	size_t i = 0;

	for (;; i++) {
		const char *colon = memchr(p, ':', (size_t)(end - p));

		if (i == which)
			found = (struct row){p, (size_t)((colon ? colon : end) - p)};
		if (!colon)
			break;
		p = colon + 1;
	}
	*ret_count = i + 1;
	return found;
}

static bool has_accounts(const struct row *row, size_t which, size_t fields, const char *text)
{
	size_t count;
	struct row f = field_accounts(row, which, &count);

	return count == fields && f.n == strlen(text) && !memcmp(f.p, text, f.n);
}

static bool has_entry(const char *text, size_t which, size_t fields, const char *value)
{
	struct row row;

	while (next_row(&text, &row))
		if (has_accounts(&row, which, fields, value))
			return true;
	return false;
}

/* The output, and the position of the missing line. */
struct copy {
	FILE *f;
	char *text;
	size_t size;
	bool done;
};

static void begin_accounts(struct copy *c)
{
	*c = (struct copy){0};
	c->f = open_memstream(&c->text, &c->size);
	if (!c->f)
		abort();
}

static char *finish_accounts(struct copy *c)
{
	if (fclose(c->f) != 0)
		abort();
	return c->text;
}

static void put_row(struct copy *c, const struct row *row)
{
	(void)fprintf(c->f, "%.*s\n", (int)row->n, row->p);
}

static void put_once(struct copy *c, const char *line)
{
	if (!c->done)
		(void)fputs(line, c->f);
	c->done = true;
}

/* Whether the image's own agent is usable. */
static int check_agent(const char *old, struct err *err)
{
	struct row row;
	size_t n;

	while (next_row(&old, &row)) {
		if (!has_accounts(&row, 0, PASSWD_FIELDS, ACCOUNTS_AGENT))
			continue;
		if (has_accounts(&row, 2, PASSWD_FIELDS, "0"))
			return err_set(err, -EPERM, "the image's user agent is root");
		if (field_accounts(&row, 5, &n).n < 2 || field_accounts(&row, 5, &n).p[0] != '/')
			return err_set(err, -EPERM, "the image's user agent has no home");
		return 0;
	}
	return -ENOENT;
}

int accounts_passwd(const char *old, const char *shell, char **ret, struct err *err)
{
	AUTO_FREE char *line = xasprintf(
		ACCOUNTS_AGENT ":x:" ID ":" ID ":" ACCOUNTS_AGENT ":" ACCOUNTS_HOME ":%s\n", shell);
	int r = check_agent(old, err);
	struct copy c;
	struct row row;

	if (r < 0 && r != -ENOENT)
		return r;
	begin_accounts(&c);
	c.done = r == 0;
	if (!has_entry(old, 0, PASSWD_FIELDS, "root"))
		(void)fprintf(c.f, "root:x:0:0:root:/root:%s\n", shell);
	while (next_row(&old, &row)) {
		if (has_accounts(&row, 2, PASSWD_FIELDS, ID))
			put_once(&c, line);
		put_row(&c, &row);
	}
	put_once(&c, line);
	*ret = finish_accounts(&c);
	return 0;
}

static bool is_member(const struct row *row)
{
	size_t count;
	struct row list = field_accounts(row, 3, &count);

	while (list.n > 0) {
		const char *comma = memchr(list.p, ',', list.n);
		size_t n = comma ? (size_t)(comma - list.p) : list.n;

		if (n == strlen(ACCOUNTS_AGENT) && !memcmp(list.p, ACCOUNTS_AGENT, n))
			return true;
		n += comma != NULL;
		list = (struct row){list.p + n, list.n - n};
	}
	return false;
}

static void put_group(struct copy *c, const struct row *row)
{
	size_t count;
	bool joins = false;

	for (size_t i = 0; i < ARRAY_LEN(joined); i++)
		joins = joins || has_accounts(row, 0, GROUP_FIELDS, joined[i]);
	if (!joins || is_member(row))
		put_row(c, row);
	else
		(void)fprintf(c->f, "%.*s%s" ACCOUNTS_AGENT "\n", (int)row->n, row->p,
			field_accounts(row, 3, &count).n > 0 ? "," : "");
}

char *accounts_group(const char *old)
{
	static const char line[] = ACCOUNTS_AGENT ":x:" ID ":\n";
	struct copy c;
	struct row row;

	begin_accounts(&c);
	c.done = has_entry(old, 0, GROUP_FIELDS, ACCOUNTS_AGENT);
	if (!has_entry(old, 0, GROUP_FIELDS, "root"))
		(void)fputs("root:x:0:\n", c.f);
	while (next_row(&old, &row)) {
		if (has_accounts(&row, 2, GROUP_FIELDS, ID))
			put_once(&c, line);
		put_group(&c, &row);
	}
	put_once(&c, line);
	return finish_accounts(&c);
}

char *accounts_shadow(const char *old)
{
	struct copy c;
	struct row row;
	size_t n = strlen(ACCOUNTS_AGENT);

	begin_accounts(&c);
	while (next_row(&old, &row)) {
		c.done = c.done ||
			 (row.n > n && !memcmp(row.p, ACCOUNTS_AGENT, n) && row.p[n] == ':');
		put_row(&c, &row);
	}
	/* No date: the same image gives the same bytes on any day. */
	put_once(&c, ACCOUNTS_AGENT ":!::0:99999:7:::\n");
	return finish_accounts(&c);
}
