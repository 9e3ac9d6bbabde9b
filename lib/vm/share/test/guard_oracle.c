/* SPDX-License-Identifier: Apache-2.0 */
#include "guard_oracle.h"

#include <fnmatch.h>
#include <string.h>
#include "lib/base/attr.h"

#define ROWS(row)                                                                                 \
	row(1, deny, ".git/hooks/*") row(1, allow, ".git/hooks/*.sample")                         \
		row(2, check, ".git/config") row(5, check, ".git/modules/**/config")              \
			row(10, deny, "HEAD") row(10, allow, ".git/HEAD") row(15, deny, ".envrc") \
				row(36, deny, ".claude/**") row(42, report, "Makefile")           \
					row(7, fixed, ".git/commondir")                           \
						row(7, fixed, ".git/modules/*/commondir")

#define AS_TEXT(kind, mode, pattern) #kind " " #mode " " pattern " program\n"
#define AS_ROW(kind, mode, pattern) {#mode, pattern},

const char oracle_rows[] = ROWS(AS_TEXT);

static const struct {
	const char *mode, *pattern;
} rows[] = {ROWS(AS_ROW)};

static const char *after(const char *p)
{
	p += strcspn(p, "/");
	return *p ? p + 1 : p;
}

static bool is_component(const char *pattern, const char *path)
{
	char a[256] = {0}, b[256] = {0};

	memcpy(a, pattern, strcspn(pattern, "/"));
	memcpy(b, path, strcspn(path, "/"));
	return fnmatch(a, b, 0) == 0;
}

/* `part`: the path may end before the pattern does. */
static bool matches(const char *pattern, const char *path, bool part)
{
	bool deep = strncmp(pattern, "**", 2) == 0;

	if (!*path)
		return part && *pattern;
	if (!*pattern)
		return false;
	if (deep && (matches(after(pattern), path, part) || matches(pattern, after(path), part)))
		return true;
	if (deep)
		return !*after(pattern); /* everything below */
	if (!is_component(pattern, path))
		return false;
	if (!*after(pattern) && !*after(path))
		return !part;
	return matches(after(pattern), after(path), part);
}

static bool matches_anywhere(const char *pattern, const char *path, bool part)
{
	for (; *path; path = after(path))
		if (matches(pattern, path, part))
			return true;
	return false;
}

enum oracle_mode oracle_mode(const char *path)
{
	enum oracle_mode mode = ORACLE_FREE;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!matches_anywhere(rows[i].pattern, path, false))
			continue;
		if (rows[i].mode[0] == 'a')
			mode = ORACLE_FREE;
		else if (rows[i].mode[0] != 'r')
			mode = ORACLE_REFUSED;
		else if (mode == ORACLE_FREE)
			mode = ORACLE_REPORTED;
	}
	return mode;
}

bool oracle_leads(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strchr("dcf", rows[i].mode[0]) && matches_anywhere(rows[i].pattern, path, true))
			return true;
	return false;
}
