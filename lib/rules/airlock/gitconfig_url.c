/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and ref names in a git configuration.
 *
 * Permitted: https, http, ssh and git URLs, and HOST:PATH. The guest may choose the server, so the
 * weakness of http and git (no proof of the server) adds nothing.
 * Refused: `X::ADDRESS` and every other scheme, since git runs the program git-remote-X; paths and
 * file URLs, since `git push` runs the hooks of the repository at that path as the host user, and
 * the guest can write such a repository; a leading '-' of user, host or path, which ssh could read
 * as an option; control characters, also as %0a, which have been used to forge requests to a
 * credential helper. */
#include "gitconfig_internal.h"
#include "lib/base/text/text.h"

static bool is_alnum_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool has_prefix(struct slice s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && !memcmp(s.p, prefix, n);
}

static bool has_suffix(struct slice s, const char *suffix)
{
	size_t n = strlen(suffix);

	return s.n >= n && !memcmp(s.p + s.n - n, suffix, n);
}

static struct slice drop_bytes(struct slice s, size_t n)
{
	return slice_of(s.p + n, s.n - n);
}

static bool contains_byte(struct slice s, char c)
{
	return s.n && memchr(s.p, c, s.n);
}

static bool is_one_of(uint8_t c, const char *set)
{
	return c && strchr(set, c);
}

/* Letters, digits and these; at least one. */
static bool is_made_of(struct slice s, const char *others)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_alnum_byte(s.p[i]) && !is_one_of(s.p[i], others))
			return false;
	return s.n > 0;
}

static int digit_value(uint8_t c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";

	return is_one_of(c, digits) ? (int)((strchr(digits, c) - digits) % 16) : -1;
}

/* Two hexadecimal digits after each '%', and never a control character. */
static bool has_sane_escapes(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		int high, low;

		if (s.p[i] != '%')
			continue;
		if (s.n - i < 3)
			return false;
		high = digit_value(s.p[i + 1]);
		low = digit_value(s.p[i + 2]);
		if (high < 2 || low < 0 || (high == 7 && low == 15))
			return false;
	}
	return true;
}

static bool is_port(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.n > 0 && s.n <= 5;
}

/* A name, an IPv4 address or an IPv6 address in brackets. */
static bool is_host_name(struct slice s)
{
	if (s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
		return is_made_of(slice_of(s.p + 1, s.n - 2), ":.");
	return is_made_of(s, ".-_") && is_alnum_byte(s.p[0]);
}

/* For ssh a plain name only, also without escapes, which git decodes: the user's ssh configuration
 * may put it into a shell command (%r in ProxyCommand). For the others USER or USER:PASSWORD. */
static bool is_user_part(struct slice s, bool is_ssh)
{
	return is_made_of(s, is_ssh ? ".-_" : ".-_~+=:%") && s.p[0] != '-' && has_sane_escapes(s);
}

/* [USER@]HOST; *s is what follows the user. */
static bool take_user(struct slice *s, bool is_ssh)
{
	const uint8_t *at = s->n ? memchr(s->p, '@', s->n) : NULL;
	struct slice user;

	if (!at)
		return true;
	user = slice_take(s, (size_t)(at - s->p));
	*s = drop_bytes(*s, 1);
	return is_user_part(user, is_ssh);
}

/* [USER@]HOST[:PORT] */
static bool is_authority(struct slice s, bool is_ssh)
{
	size_t n;

	if (!take_user(&s, is_ssh))
		return false;
	for (n = s.n; n && s.p[n - 1] != ':' && s.p[n - 1] != ']'; n--)
		;
	if (!n || s.p[n - 1] == ']')
		return is_host_name(s);
	return is_port(drop_bytes(s, n)) && is_host_name(slice_of(s.p, n - 1));
}

/* The path of an address. The server reads it; the local ssh gets it as one argument. */
static bool is_address_path(struct slice s)
{
	return text_is_all_plain(s) && has_sane_escapes(s) && !contains_byte(s, ' ') &&
	       !contains_byte(s, '\\') && !contains_byte(s, '"') && !contains_byte(s, '\'');
}

/* [USER@]HOST:PATH without a slash before the colon. A second colon makes it the call of a
 * transport helper, and a path with "//" in front could be a URL that another program knows. */
static bool is_scp_address(struct slice s)
{
	size_t n = 0;
	struct slice host, path;

	while (n < s.n && s.p[n] != ':' && s.p[n] != '/')
		n++;
	if (n == s.n || s.p[n] != ':')
		return false;
	host = slice_take(&s, n);
	path = drop_bytes(s, 1);
	if (!take_user(&host, true) || !is_host_name(host) || !path.n || contains_byte(host, '['))
		return false;
	return path.p[0] != ':' && path.p[0] != '-' && !has_prefix(path, "//") &&
	       is_address_path(path);
}

bool gitconfig_url_is_harmless(struct slice url)
{
	static const char *const schemes[] = {"https://", "http://", "ssh://", "git://"};
	struct slice rest = url;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		if (!has_prefix(url, schemes[i]))
			continue;
		rest = drop_bytes(url, strlen(schemes[i]));
		while (n < rest.n && rest.p[n] != '/')
			n++;
		return is_authority(slice_of(rest.p, n), !strcmp(schemes[i], "ssh://")) &&
		       is_address_path(drop_bytes(rest, n));
	}
	return is_scp_address(url);
}

/* ---- refs ---- */

static bool is_ref_byte(uint8_t c)
{
	return c > ' ' && c != 0x7f && !is_one_of(c, "~^:?*[\\\"'`$|;&<>(){}!");
}

/* One component. */
static bool is_ref_part(struct slice part)
{
	if (!part.n || part.p[0] == '.' || part.p[part.n - 1] == '.' || has_suffix(part, ".lock"))
		return false;
	for (size_t i = 0; i < part.n; i++)
		if (!is_ref_byte(part.p[i]) || (i && part.p[i] == '.' && part.p[i - 1] == '.'))
			return false;
	return text_is_all_plain(part);
}

bool gitconfig_name_is_sane(struct slice name)
{
	if (!name.n || name.n > 255 || name.p[0] == '-' || slice_eq_str(name, "@"))
		return false;
	for (;;) {
		const uint8_t *slash = memchr(name.p, '/', name.n);
		struct slice part = slice_take(&name, slash ? (size_t)(slash - name.p) : name.n);

		if (!is_ref_part(part))
			return false;
		if (!slash)
			return true;
		name = drop_bytes(name, 1);
		if (!name.n)
			return false;
	}
}

bool gitconfig_ref_is_sane(struct slice ref, bool stars)
{
	uint8_t copy[256];
	size_t n_stars = 0;

	if (!has_prefix(ref, "refs/") || ref.n > sizeof(copy))
		return false;
	/* A star stands for a part of a name, so a letter in its place must give a name. */
	for (size_t i = 0; i < ref.n; i++) {
		n_stars += ref.p[i] == '*';
		copy[i] = ref.p[i] == '*' ? 'x' : ref.p[i];
	}
	return n_stars <= (stars ? 1u : 0u) && gitconfig_name_is_sane(slice_of(copy, ref.n));
}
