/* SPDX-License-Identifier: Apache-2.0 */
#include "gitref.h"

#include "lib/base/hex.h"

static bool ends_with(struct slice s, const char *end)
{
	size_t n = strlen(end);

	return s.n >= n && memcmp(s.p + s.n - n, end, n) == 0;
}

static bool begins_with(struct slice s, const char *begin)
{
	size_t n = strlen(begin);

	return s.n >= n && memcmp(s.p, begin, n) == 0;
}

static bool is_permitted(uint8_t c)
{
	return c > 0x20 && c != 0x7f && !strchr("~^:?*[\\", c);
}

static bool is_component(struct slice s)
{
	if (s.n == 0 || s.p[0] == '.' || ends_with(s, ".lock"))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		uint8_t next = i + 1 < s.n ? s.p[i + 1] : 0;

		if (!is_permitted(s.p[i]) || (s.p[i] == '.' && next == '.') ||
			(s.p[i] == '@' && next == '{'))
			return false;
	}
	return true;
}

bool gitref_is_valid(struct slice name)
{
	size_t n_components = 0, from = 0;

	if (name.n > GITREF_MAX || !begins_with(name, "refs/") || ends_with(name, "."))
		return false;
	for (size_t i = 0; i <= name.n; i++) {
		if (i < name.n && name.p[i] != '/')
			continue;
		if (!is_component(slice_of(name.p + from, i - from)))
			return false;
		from = i + 1;
		n_components++;
	}
	return n_components >= 3;
}

bool gitoid_parse(struct slice hex, struct git_oid *ret)
{
	return hex.n == GITOID_HEX && hex_decode(hex, ret->b) == 0;
}

bool gitoid_is_zero(const struct git_oid *oid)
{
	return gitoid_eq(oid, &(struct git_oid){0});
}

bool gitoid_eq(const struct git_oid *a, const struct git_oid *b)
{
	return memcmp(a->b, b->b, GITOID_BYTES) == 0;
}

void gitoid_print(const struct git_oid *oid, char ret[GITOID_HEX + 1])
{
	hex_print(oid->b, GITOID_BYTES, ret);
}

struct slice gitcap_next(struct slice *list)
{
	size_t n = 0;

	while (list->n > 0 && (*list->p == ' ' || *list->p == '\n'))
		(void)slice_take(list, 1);
	while (n < list->n && list->p[n] != ' ' && list->p[n] != '\n')
		n++;
	return slice_take(list, n);
}

bool gitcap_is(struct slice word, const char *name)
{
	size_t n = strlen(name);

	return name[n - 1] == '=' ? begins_with(word, name) : slice_eq_str(word, name);
}
