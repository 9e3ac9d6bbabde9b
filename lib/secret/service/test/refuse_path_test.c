/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No path that some server takes for a refused endpoint or a token endpoint passes. The servers
 * here are rows of steps, each one thing that real servers do to a path, written without the code
 * that is tested.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <cmocka.h>
#include "lib/secret/service/service.h"
#include "lib/secret/service/service_match.h"

#define MAX_PATH 1024
#define N_PATHS 40000
#define MIN_HITS 20 /* of each server; most have thousands */

static const char *const rules[] = {"/user/keys", "/repos/*/*/keys", "/p/**/tokens"};

static const char service_text[] = "service 1\nname x\nabout x\n"
				   "refuse * /user/keys\n"
				   "refuse * /repos/*/*/keys\n"
				   "refuse * /p/**/tokens\n"
				   "slot x\nhost a.example:443\nbasic x\nend\n";

/* The first of the rules as a token endpoint. */
static const char login_text[] =
	"service 1\nname x\nabout x\n"
	"token a.example:443 /user/keys\nfield access access_token a-proxy-managed\n"
	"slot x\nhost a.example:443\nbasic x\nend\n";

/* ---- steps of servers, each in place ---- */

static void undo_escapes(char *s, bool keeps_slashes)
{
	char *to = s;

	while (*s) {
		char hex[3] = {s[0] == '%' ? s[1] : 0, s[0] == '%' && s[1] ? s[2] : 0, 0};
		char *end;
		long c = strtol(hex, &end, 16);

		if (end != hex + 2 || (keeps_slashes && (c == '/' || c == '\\'))) {
			*to++ = *s++;
			continue;
		}
		*to++ = (char)c;
		s += 3;
	}
	*to = '\0';
}

static void merge_slashes(char *s)
{
	char *to = s;

	for (; *s; s++)
		if (*s != '/' || s[1] != '/')
			*to++ = *s;
	*to = '\0';
}

static void drop_parameters(char *s)
{
	char *to = s;

	while (*s)
		if (*s == ';')
			s += strcspn(s, "/");
		else
			*to++ = *s++;
	*to = '\0';
}

static void turn_backslashes(char *s)
{
	for (; *s; s++)
		if (*s == '\\')
			*s = '/';
}

static void cut_at_marks(char *s)
{
	s[strcspn(s, "?#")] = '\0';
}

/* At both ends of each segment. */
static void drop_blanks(char *s)
{
	char out[MAX_PATH] = "";
	size_t n = 0;

	while (*s == '/') {
		size_t from = 1, to = 1 + strcspn(s + 1, "/"), next = to;

		while (from < to && s[from] == ' ')
			from++;
		while (to > from && s[to - 1] == ' ')
			to--;
		out[n++] = '/';
		memcpy(out + n, s + from, to - from);
		n += to - from;
		memmove(s, s + next, strlen(s + next) + 1);
	}
	out[n] = '\0';
	memcpy(s, out, n + 1);
}

/* RFC 3986, 5.2.4: empty segments are segments, and ".." takes the last one away. */
static void resolve_dots(char *s)
{
	char out[MAX_PATH] = "";
	size_t n = 0, i = 0;

	while (s[i] == '/') {
		size_t len = strcspn(s + i + 1, "/");
		const char *segment = s + i + 1;
		bool is_up = len == 2 && strncmp(segment, "..", 2) == 0;
		bool is_last = segment[len] == '\0';

		if (is_up)
			while (n > 0 && out[--n] != '/')
				;
		if (is_up || (len == 1 && *segment == '.')) {
			if (is_last)
				out[n++] = '/';
		} else {
			out[n++] = '/';
			memcpy(out + n, segment, len);
			n += len;
		}
		i += 1 + len;
	}
	out[n] = '\0';
	memcpy(s, out, n + 1);
}

/* //HOST/PATH as a reference without its scheme; also with more slashes, and with backslashes. */
static void take_host(char *s)
{
	size_t n = strspn(s, "/\\");

	if (n < 2)
		return;
	n += strcspn(s + n, "/\\?#");
	memmove(s, s + n, strlen(s + n) + 1);
}

static void apply(char *s, char what)
{
	switch (what) {
	case 'd':
		undo_escapes(s, false);
		break;
	case 'k':
		undo_escapes(s, true);
		break;
	case 'm':
		merge_slashes(s);
		break;
	case 'r':
		resolve_dots(s);
		break;
	case 'p':
		drop_parameters(s);
		break;
	case 'b':
		turn_backslashes(s);
		break;
	case 't':
		drop_blanks(s);
		break;
	case 'h':
		take_host(s);
		break;
	default:
		cut_at_marks(s);
		break;
	}
}

/* Each letter is a step. */
static const struct {
	const char *name, *steps;
} servers[] = {
	{"takes it as it is", ""},
	{"RFC 3986", "r"},
	{"RFC 3986, slashes merged before", "mr"},
	{"RFC 3986, slashes merged after", "rm"},
	{"decodes, then resolves", "dr"},
	{"decodes twice, then resolves", "ddr"},
	{"decodes, merges, resolves", "dmr"},
	{"resolves, then decodes", "rd"},
	{"decodes all but slashes, merges, resolves", "kmr"},
	{"a proxy and a server behind it", "rdr"},
	{"a merging proxy and a server behind it", "kmrdr"},
	{"drops parameters, decodes, merges, resolves", "pdmr"},
	{"drops parameters, resolves", "pr"},
	{"decodes, drops parameters, resolves", "dpr"},
	{"decodes, takes backslashes for slashes", "dbr"},
	{"the same, and drops blanks", "dbtmr"},
	{"drops blanks, then resolves", "dtr"},
	{"resolves, then drops blanks", "drt"},
	{"decodes, cuts at marks, resolves", "dcr"},
	{"takes a host from the front", "h"},
	{"decodes, takes a host, resolves", "dhr"},
};

/* ---- the endpoint ---- */

/* A pattern at the end wants a text: /functions/ is the list, and /functions/NAME has a rule. */
static bool is_element(const char *want, size_t n_want, const char *got, size_t n_got)
{
	if (n_want == 1 && *want == '*')
		return n_got > 0 || want[1];
	return n_want == n_got && strncasecmp(want, got, n_got) == 0;
}

static bool is_match(const char *rule, const char *path)
{
	size_t n_rule, n_path;

	if (!*rule || !*path)
		return !*rule && !*path;
	n_rule = strcspn(rule + 1, "/");
	n_path = strcspn(path + 1, "/");
	if (n_rule == 2 && strncmp(rule + 1, "**", 2) == 0) {
		for (const char *p = path + 1 + n_path;; p += 1 + strcspn(p + 1, "/")) {
			if (is_match(rule + 1 + n_rule, p))
				return true;
			if (!*p)
				return false;
		}
	}
	return is_element(rule + 1, n_rule, path + 1, n_path) &&
	       is_match(rule + 1 + n_rule, path + 1 + n_path);
}

/* Of the first n_rules. */
static bool is_endpoint(const char *resolved, size_t n_rules)
{
	char s[MAX_PATH];
	size_t n = strlen(resolved);
	char *dot;

	memcpy(s, resolved, n + 1);
	while (n > 0 && s[n - 1] == '/')
		s[--n] = '\0';
	dot = strrchr(s, '.');
	for (size_t i = 0; i < n_rules; i++)
		if (is_match(rules[i], s))
			return true;
	if (!dot || strchr(dot, '/'))
		return false;
	*dot = '\0';
	for (size_t i = 0; i < n_rules; i++)
		if (is_match(rules[i], s))
			return true;
	return false;
}

/* ---- paths ---- */

static uint64_t seed = 1;

static unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

#define PICK(list) list[draw(ARRAY_LEN(list))]

static void put(char *path, const char *text)
{
	size_t n = strlen(path);

	(void)snprintf(path + n, MAX_PATH - n, "%s", text);
}

static void put_separator(char *path)
{
	static const char *const rare[] = {"//", "%2f", "%2F", "%252f", "%5c", "\\", "/./", "/%20/",
		"/;x/", "/.;x/", "/%2e/", "/x/../", "/x/%2e%2e/", "/x/%252e%252e/", "//../",
		"/%20/../", "/;x/../", "/x/..;y/", "\\..\\", "%2f..%2f", "/x/..%20/", "//x/",
		"/%2fx/", "///x%2fy/"};

	put(path, draw(3) ? "/" : PICK(rare));
}

/* The text as it is, or in another spelling. */
static void put_spelled(char *path, const char *text)
{
	static const char *const tails[] = {";a=b", "%3bx", "%20", ".json", "%3fx", "%23x", ""};
	unsigned way = draw(6);

	for (const char *p = text; *p; p++) {
		unsigned char c = (unsigned char)(way == 1 ? toupper((unsigned char)*p) : *p);
		char one[8] = {(char)c};

		if (way == 2 && draw(2))
			(void)snprintf(one, sizeof(one), "%%%02x", c);
		if (way == 3 && draw(2))
			(void)snprintf(one, sizeof(one), "%%25%02x", c);
		put(path, one);
	}
	if (way == 4)
		put(path, PICK(tails));
}

/* An endpoint with odd things in between, or a random walk over the same words. */
static void make_path(char *path)
{
	static const char *const ways[][4] = {
		{"user", "keys"}, {"repos", "o", "r", "keys"}, {"p", "a", "b", "tokens"}};
	static const char *const words[] = {
		"user", "keys", "repos", "p", "tokens", "a", ";x", " ", "..", ".", ""};
	const char *const *way = PICK(ways);
	unsigned n = draw(8);

	path[0] = '\0';
	if (draw(4) == 0) {
		for (unsigned i = 0; i <= n; i++) {
			put_separator(path);
			put(path, PICK(words));
		}
		return;
	}
	for (size_t i = 0; i < 4 && way[i]; i++) {
		put_separator(path);
		put_spelled(path, way[i]);
	}
	if (draw(8) == 0)
		put_separator(path);
}

struct both {
	struct service refuses, login;
	struct host host;
};

static void load(const char *text, struct service *ret)
{
	struct err err;

	*ret = (struct service){0};
	if (service_parse(slice_from_str(text), "x", ret, &err) < 0)
		fail_msg("%s", err.text);
}

static void load_both(struct both *ret)
{
	load(service_text, &ret->refuses);
	load(login_text, &ret->login);
	assert_int_equal(host_from_wire(slice_from_str("a.example"), &ret->host, NULL), 0);
}

static void both_done(struct both *b)
{
	service_done(&b->refuses);
	service_done(&b->login);
}

static bool is_refused(const struct both *b, const char *path)
{
	return service_refuses_path(&b->refuses, slice_from_str("GET"), slice_from_str(path));
}

static bool may_be_login(const struct both *b, const char *path)
{
	const struct service_request req = {
		.host = &b->host, .port = 443, .path = slice_from_str(path)};

	return service_may_be_endpoint(&b->login, &req);
}

static void resolve(const char *path, const char *steps, char ret[MAX_PATH])
{
	memcpy(ret, path, strlen(path) + 1);
	for (; *steps && *ret; steps++)
		apply(ret, *steps);
}

/* Whether the server finds an endpoint there. */
static bool must_not_pass(
	const struct both *b, const char *path, const char *steps, const char *server)
{
	char s[MAX_PATH];

	resolve(path, steps, s);
	if (s[0] != '/' || !is_endpoint(s, ARRAY_LEN(rules)))
		return false;
	if (!is_refused(b, path))
		fail_msg("'%s' passes: %s", path, server);
	if (is_endpoint(s, 1) && !may_be_login(b, path))
		fail_msg("'%s' is no token endpoint: %s", path, server);
	return true;
}

static void no_server_finds_an_endpoint_behind_a_path_that_passes(void **state)
{
	unsigned n_hits[ARRAY_LEN(servers)] = {0};
	CLEANUP(both_done) struct both b;
	char path[MAX_PATH];

	load_both(&b);
	for (unsigned i = 0; i < N_PATHS; i++) {
		make_path(path);
		for (size_t k = 0; k < ARRAY_LEN(servers); k++)
			n_hits[k] += must_not_pass(&b, path, servers[k].steps, servers[k].name);
	}
	for (size_t k = 0; k < ARRAY_LEN(servers); k++)
		if (n_hits[k] < MIN_HITS)
			fail_msg("%u hits: %s", n_hits[k], servers[k].name);
}

/* Servers that nobody has thought of: any steps, in any order. */
static void no_chain_of_steps_finds_one_either(void **state)
{
	CLEANUP(both_done) struct both b;
	char path[MAX_PATH], steps[8];
	unsigned n_hits = 0;

	load_both(&b);
	for (unsigned i = 0; i < 4 * N_PATHS; i++) {
		unsigned n = draw(sizeof(steps));

		for (unsigned k = 0; k < n; k++)
			steps[k] = "dkmrpbtch"[draw(9)];
		steps[n] = '\0';
		make_path(path);
		n_hits += must_not_pass(&b, path, steps, steps);
	}
	assert_true(n_hits > N_PATHS / 4);
}

static void a_plain_path_is_refused_for_its_rule_only(void **state)
{
	static const char *const words[] = {"user", "keys", "repos", "p", "tokens", "a", "keys2",
		"x..y", "...", "v1.2", "a%20b", "@s", "%C3%A4"};
	CLEANUP(both_done) struct both b;
	char path[MAX_PATH];
	unsigned n_refused = 0, n_logins = 0;

	load_both(&b);
	for (unsigned i = 0; i < N_PATHS; i++) {
		unsigned n = draw(6);

		path[0] = '\0';
		for (unsigned k = 0; k <= n; k++) {
			put(path, "/");
			put(path, PICK(words));
		}
		if (draw(4) == 0)
			put(path, "/");
		n_refused += is_refused(&b, path);
		n_logins += may_be_login(&b, path);
		if (is_refused(&b, path) != is_endpoint(path, ARRAY_LEN(rules)) ||
			may_be_login(&b, path) != is_endpoint(path, 1))
			fail_msg("'%s'", path);
	}
	assert_true(n_refused > 100);
	assert_true(n_logins > 10);
}

/* The findings, one by one. */
static void dots_never_pass(void **state)
{
	static const char *const rows[] = {"/user//../keys", "/user/.;x/../keys",
		"/user/;x/../keys", "/user/%20/../keys", "/a/../b", "/..", "/a/%2e%2e",
		"/a/%252e%252e/b", "/a/..;x/b", "/a/.%2e%3bx", "/a%2f..%2fb", "/a\\..\\b",
		"/a%5c..%5cb", "/a/..%20", "/a/..%3fx", "/a/%c0%ae%c0%ae/b", "/a/.%09./b"};
	CLEANUP(both_done) struct both b;

	load_both(&b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (service_refuses_path(&b.refuses, slice_from_str("GET"),
			    slice_from_str(rows[i])) != &service_odd_path ||
			!may_be_login(&b, rows[i]))
			fail_msg("'%s' passes", rows[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_server_finds_an_endpoint_behind_a_path_that_passes),
		cmocka_unit_test(no_chain_of_steps_finds_one_either),
		cmocka_unit_test(a_plain_path_is_refused_for_its_rule_only),
		cmocka_unit_test(dots_never_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
