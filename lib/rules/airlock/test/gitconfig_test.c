/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/gitconfig_internal.h"

#define BASE                               \
	"[core]\n"                         \
	"\trepositoryformatversion = 0\n"  \
	"\tfilemode = true\n"              \
	"\tbare = false\n"                 \
	"\tlogallrefupdates = true\n"      \
	"[remote \"origin\"]\n"            \
	"\turl = https://example.test/a\n" \
	"\tfetch = +refs/heads/*:refs/remotes/origin/*\n"

static struct err last_err;

static int check_at(const char *path, const char *old, const char *new, char **ret)
{
	struct gitconfig_place place = {.path = path};
	size_t n = 0;
	int r;

	*ret = NULL;
	last_err.text[0] = '\0';
	r = gitconfig_check(old, strlen(old), new, strlen(new), &place, ret, &n, &last_err);
	assert_true(r < 0 ? *ret == NULL : strlen(*ret) == n);
	return r;
}

static void expect_text(const char *old, const char *new, const char *expected)
{
	AUTO_FREE char *text = NULL;

	if (check_at(".git/config", old, new, &text) < 0)
		fail_msg("%s: %s", new, last_err.text);
	assert_string_equal(text, expected);
}

static void expect_same(const char *old, const char *new)
{
	expect_text(old, new, new);
}

/* The message begins with the key. */
static void expect_refused(const char *old, const char *new, const char *key)
{
	AUTO_FREE char *text = NULL;
	int r = check_at(".git/config", old, new, &text);

	if (r != -EACCES)
		fail_msg("%d for %s", r, new);
	if (strncmp(last_err.text, key, strlen(key)) != 0 || last_err.text[strlen(key)] != ':')
		fail_msg("%s instead of %s", last_err.text, key);
}

static void expect_bad(const char *new)
{
	AUTO_FREE char *text = NULL;

	if (check_at(".git/config", "", new, &text) != -EBADMSG)
		fail_msg("accepted: %s", new);
}

/* ---- the grammar ---- */

static void a_text_of_git_is_written_back_as_it_is(void **state)
{
	(void)state;
	expect_same("", BASE);
	expect_same(BASE, BASE);
	expect_same(BASE, BASE "[user]\n\tname = A B\n\temail = a@example.test\n");
}

static void every_spelling_becomes_the_same_text(void **state)
{
	static const char *const spellings[] = {
		"[user]\n\tname = A B\n",
		"\xef\xbb\xbf[user]\r\n\tname = A B\r\n",
		"[USER] Name=A B",
		"[user]\nname = A B ; comment\n",
		"[user]name = \"A B\" # comment\n",
		"[user]\nname = A\\\n B\n",
		"[user]\n\n  name\t= A\" \"B   \n\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(spellings); i++)
		expect_text("", spellings[i], "[user]\n\tname = A B\n");
}

static void subsections_keep_their_case_and_escapes(void **state)
{
	(void)state;
	expect_same("", "[branch \"Main\"]\n\tdescription = a\n");
	expect_text("", "[branch \"a\\b\"]\n\trebase\n", "[branch \"ab\"]\n\trebase\n");
	expect_text("", "[Branch.Main]\nrebase = no\n", "[branch \"main\"]\n\trebase = no\n");
	expect_same("[x \"a\\\\\\\"b\"]\n\ty = 1\n", "[x \"a\\\\\\\"b\"]\n\ty = 1\n");
}

static void a_value_with_special_characters_is_quoted(void **state)
{
	(void)state;
	expect_text("", "[branch \"m\"]\ndescription = \"  a\\n\\\"b\\\\;#\"\n",
		"[branch \"m\"]\n\tdescription = \"  a\\n\\\"b\\\\;#\"\n");
	expect_same("[x]\n\ty = \"\\ta\\b\"\n", "[x]\n\ty = \"\\ta\\b\"\n");
	expect_same("[x]\n\ty\n\ty =\n", "[x]\n\ty\n\ty =\n");
}

static void comments_of_a_whole_line_are_kept(void **state)
{
	(void)state;
	expect_text("", "# a\n[user]\n  ; b\n\tname = x # gone\n# c \\\n# d\x1b[2J\n# e\n",
		"# a\n[user]\n; b\n\tname = x\n# e\n");
	/* A comment cannot swallow or hide the line after it. */
	expect_refused("", "# a \\\n[core]\n\tpager = x\n", "core.pager");
	expect_refused("", "[user]\n\tname = a # \\\n[core]\n\tpager = x\n", "core.pager");
}

static void texts_that_git_rejects_are_rejected(void **state)
{
	static const char *const texts[] = {"a = b\n", "[a\n]b = c\n", "[]\nb = c\n",
		"[a]\n1 = c\n", "[a]\nb c\n", "[a]\nb # c\n", "[a \"b]\nc = d\n",
		"[a \"b\" ]\nc = d\n", "[a b]\nc = d\n", "[a]\nb = \"c\n", "[a]\nb = \\x\n",
		"[a_b]\nc = d\n", "[a]\nb_c = d\n", "\xef\xbb[a]\n", "{}", "[a", "[a ", "[a \"",
		"[a \"b\"", "[a]\n\vb = c\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		expect_bad(texts[i]);
}

static void texts_that_versions_of_git_read_differently_are_rejected(void **state)
{
	static const char *const texts[] = {"[user]\nname = a\tb\n", "[user]\rname = b\n",
		"[user]\nname = a\r", "[user]\nname = \"a\r\"\n", "[branch.a \"b\"]\nrebase\n",
		"[branch.]\nrebase\n", "[.branch]\nrebase\n", "[user]\nname = a\\",
		"[user]\nname = a\\\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		expect_bad(texts[i]);
}

static void a_nul_is_rejected(void **state)
{
	static const char text[] = "[user]\nname = a\0\n[core]\npager = x\n";
	struct gitconfig_place place = {.path = ".git/config"};
	char *ret = NULL;
	size_t n;

	(void)state;
	assert_int_equal(
		gitconfig_check("", 0, text, sizeof(text) - 1, &place, &ret, &n, NULL), -EBADMSG);
}

static void texts_above_the_limits_are_rejected(void **state)
{
	size_t n = 0;
	AUTO_FREE char *text = xmalloc(GITCONFIG_MAX_BYTES + 64), *ret = NULL;
	struct gitconfig_place place = {.path = ".git/config"};

	(void)state;
	memset(text, '\n', GITCONFIG_MAX_BYTES + 1);
	assert_int_equal(
		gitconfig_check("", 0, text, GITCONFIG_MAX_BYTES + 1, &place, &ret, &n, NULL),
		-E2BIG);
	n = (size_t)sprintf(text, "[core]\n");
	for (size_t i = 0; i <= GITCONFIG_MAX_ENTRIES; i++)
		n += (size_t)sprintf(text + n, "bare\n");
	assert_int_equal(gitconfig_check("", 0, text, n, &place, &ret, &n, NULL), -E2BIG);
	/* Escapes must not make the result too large to be read again. */
	n = (size_t)sprintf(text, "[branch \"m\"]\ndescription = \"");
	memset(text + n, 'a', 1025);
	text[n + 1025] = '"';
	assert_int_equal(gitconfig_check("", 0, text, n + 1026, &place, &ret, &n, NULL), -EACCES);
}

/* ---- keys ---- */

static void keys_that_run_programs_are_refused(void **state)
{
	static const struct {
		const char *line, *key;
	} rows[] = {
		{"[core]\nfsmonitor = x\n", "core.fsmonitor"},
		{"[core]\nsshCommand = x\n", "core.sshcommand"},
		{"[core]\npager = x\n", "core.pager"},
		{"[core]\neditor = x\n", "core.editor"},
		{"[core]\nhooksPath = x\n", "core.hookspath"},
		{"[core]\ngitProxy = x\n", "core.gitproxy"},
		{"[core]\naskPass = x\n", "core.askpass"},
		{"[core]\nattributesFile = x\n", "core.attributesfile"},
		{"[core]\nexcludesFile = x\n", "core.excludesfile"},
		{"[core]\nworktree = ..\n", "core.worktree"},
		{"[core \"x\"]\nbare = true\n", "core.x.bare"},
		{"[include]\npath = x\n", "include.path"},
		{"[includeIf \"gitdir:x\"]\npath = x\n", "includeif.gitdir:x.path"},
		{"[filter \"x\"]\nclean = x\n", "filter.x.clean"},
		{"[diff \"x\"]\ntextconv = x\n", "diff.x.textconv"},
		{"[diff]\nexternal = x\n", "diff.external"},
		{"[merge \"x\"]\ndriver = x\n", "merge.x.driver"},
		{"[alias]\nst = !x\n", "alias.st"},
		{"[credential]\nhelper = !x\n", "credential.helper"},
		{"[gpg]\nprogram = x\n", "gpg.program"},
		{"[url \"ext::x\"]\ninsteadOf = https:\n", "url.ext::x.insteadof"},
		{"[submodule \"x\"]\nupdate = !x\n", "submodule.x.update"},
		{"[submodule \"../x\"]\nactive = true\n", "submodule.../x.active"},
		{"[remote \"o\"]\nuploadpack = x\n", "remote.o.uploadpack"},
		{"[remote \"o\"]\nreceivepack = x\n", "remote.o.receivepack"},
		{"[remote \"o\"]\nvcs = x\n", "remote.o.vcs"},
		{"[remote \"o\"]\nproxy = x\n", "remote.o.proxy"},
		{"[remote \"o\"]\npush = :refs/heads/main\n", "remote.o.push"},
		{"[remote \"o\"]\nmirror = true\n", "remote.o.mirror"},
		{"[remote \"o\"]\npromisor = true\n", "remote.o.promisor"},
		{"[remote \"-o\"]\nprune = true\n", "remote.-o.prune"},
		{"[remote]\npushDefault = x\n", "remote.pushdefault"},
		{"[extensions]\nworktreeConfig = true\n", "extensions.worktreeconfig"},
		{"[extensions]\npartialClone = o\n", "extensions.partialclone"},
		{"[branch \"m\"]\nmergeOptions = -s x\n", "branch.m.mergeoptions"},
		{"[pull]\ntwohead = x\n", "pull.twohead"},
		{"[push]\ndefault = matching\n", "push.default"},
		{"[push]\ndefault = upstream\n", "push.default"},
		{"[sequence]\neditor = x\n", "sequence.editor"},
		{"[http]\nsslVerify = false\n", "http.sslverify"},
		{"[protocol \"ext\"]\nallow = always\n", "protocol.ext.allow"},
		{"[uploadpack]\npackObjectsHook = x\n", "uploadpack.packobjectshook"},
		{"[commit]\ngpgSign = false\n", "commit.gpgsign"},
		{"[trailer \"x\"]\ncmd = x\n", "trailer.x.cmd"},
		{"[user]\nname = \"a\\nb\"\n", "user.name"},
		{"[user]\nname\n", "user.name"},
		{"[user]\nname = \xe2\x80\xae x\n", "user.name"},
		{"[core]\nbare = x\n", "core.bare"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *text = xasprintf("%s%s", BASE, rows[i].line);

		expect_refused("", rows[i].line, rows[i].key);
		expect_refused(BASE, text, rows[i].key);
	}
}

static void keys_of_the_user_stay_as_they_are(void **state)
{
	static const char old[] = "[core]\n\tpager = less\n[alias]\n\ta = b\n\tc = d\n";

	(void)state;
	expect_same(old, old);
	expect_text(old, "[alias]\n[core]\npager = less\n[user]\nname = n\n[alias]\na = b\nc = d\n",
		"[core]\n\tpager = less\n[user]\n\tname = n\n[alias]\n\ta = b\n\tc = d\n");
	expect_refused(old, "[core]\n\tpager = more\n[alias]\n\ta = b\n\tc = d\n", "core.pager");
	expect_refused(old, "[alias]\n\ta = b\n\tc = d\n", "alias.a");
	expect_refused(old, "[core]\n\tpager = less\n[alias]\n\ta = b\n", "alias.c");
	expect_refused(old, "[core]\n\tpager = less\n[alias]\n\tc = d\n\ta = b\n", "alias.c");
	expect_refused(old, "[core]\n\tpager = less\n\tpager = less\n[alias]\n\ta = b\n\tc = d\n",
		"core.pager");
	expect_refused(old, "[core]\n\tpager\n[alias]\n\ta = b\n\tc = d\n", "core.pager");
	/* A comment in front does not make a key disappear. */
	expect_refused(old, "# [core]\n#\tpager = less\n[alias]\n\ta = b\n\tc = d\n", "alias.a");
}

static void a_value_of_the_user_can_stay_or_go(void **state)
{
	static const char old[] = "[remote \"o\"]\n\turl = /srv/a\n[push]\n\tdefault = matching\n";

	(void)state;
	expect_same(old, old);
	expect_same(old, "[push]\n\tdefault = matching\n");
	expect_same(old, "[remote \"o\"]\n\turl = /srv/a\n[push]\n\tdefault = simple\n");
	expect_refused(old, "[remote \"p\"]\n\turl = /srv/a\n", "remote.p.url");
	expect_refused(old, "[remote \"o\"]\n\turl = /srv/b\n", "remote.o.url");
	expect_refused(old, "[remote \"o\"]\n\tpushurl = /srv/a\n", "remote.o.pushurl");
}

static void harmless_keys_are_accepted(void **state)
{
	static const char *const texts[] = {"[pull]\n\trebase = merges\n\tff = only\n",
		"[push]\n\tdefault = current\n\tautosetupremote = true\n",
		"[submodule]\n\tactive = .\n[submodule \"lib/a b\"]\n\tactive = true\n"
		"\turl = git@example.test:a/b.git\n\tupdate = rebase\n",
		"[extensions]\n\tobjectformat = sha256\n", "[init]\n\tdefaultbranch = main\n",
		"[rerere]\n\tenabled\n", "[gc]\n\tauto = 0\n", "[advice]\n\tdetachedhead = false\n",
		"[remote \"o\"]\n\tgh-resolved = base\n\ttagopt = --no-tags\n\tprune = true\n",
		"[lfs]\n\trepositoryformatversion = 0\n"
		"[lfs \"https://example.test/a.git/info/lfs\"]\n\tlocksverify = true\n",
		"[branch \"f/x\"]\n\trebase = true\n\tdescription = \"a\\nb\\n\"\n"
		"\tvscode-merge-base = origin/main\n",
		"[core]\n\tautocrlf = input\n\teol = lf\n\tsymlinks = false\n\tignorecase = true\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		expect_same("", texts[i]);
}

/* ---- values ---- */

static void expect_urls(const char *const *urls, size_t n, bool expected)
{
	for (size_t i = 0; i < n; i++)
		if (gitconfig_url_is_harmless(slice_from_str(urls[i])) != expected)
			fail_msg("%s", urls[i]);
}

static void addresses_of_servers_are_accepted(void **state)
{
	static const char *const urls[] = {"https://example.test/a/b.git",
		"http://127.0.0.1:3000/x", "https://user:p%40ss@example.test:8443/a",
		"ssh://git@example.test:22/~u/a.git", "ssh://[::1]:22/a", "ssh://[::1]/a",
		"git://example.test/a", "git@example.test:a/b.git", "example.test:a",
		"user@example.test:/srv/a", "https://example.test", "https://example.test/a%20b",
		"org-1@example.test:a:b"};

	(void)state;
	expect_urls(urls, ARRAY_LEN(urls), true);
}

static void addresses_that_run_programs_or_name_files_are_refused(void **state)
{
	static const char *const urls[] = {"", "ext::sh -c x", "ext::x", "a::b", "fd::3",
		"https::x", "ssh::x", "user@host::x", "ext://x", "file:///a", "file://host/a", "/a",
		"./a", "../a", "a", "a/b:c", ".", "-a:b", "-oProxyCommand=x", "host:-x",
		"-o@host:x", "ssh://-oProxyCommand=x/a", "ssh://-ox@host/a", "ssh://user@-host/a",
		"ssh://host:-1/a", "ssh://host:/a", "ssh://host:22x/a", "ssh://[-x]/a",
		"ssh://[::1/a", "ssh://a;b@host/c", "ssh://a%3bb@host/c", "ssh://$(a)@host/b",
		"a`b`@host:c", "a$b@host:c", "a;b@host:c", "ssh://host;a/b", "https://a;b@host/c",
		"ssh:///a", "ssh://", "https://", "https:///a", "HTTPS://host/a",
		"git+ssh://host/a", "rsync://host/a", "ftp://host/a", "https://a b/c",
		"https://host/a b", "https://host/a%0ab", "https://host%0a/a",
		"https://us%0der@host/a", "https://host/%", "https://host/%0", "https://host/%7f",
		"https://host/%zz", "https://a@b@c/d", "https://host\\x/a", "host:a\\b", "host:a'b",
		"host://x", "https://host/\xe2\x80\xae", "https://host/\xff", "[host:22]:a",
		" https://host/a", "https://host/a\n"};

	(void)state;
	expect_urls(urls, ARRAY_LEN(urls), false);
}

static void a_branch_follows_only_a_configured_remote_or_an_address(void **state)
{
	static const char head[] = "[remote \"o\"]\n\turl = https://example.test/a\n";
	static const char *const good[] = {
		"o", ".", "https://example.test/b", "git@example.test:b"};
	static const char *const bad[] = {"p", "../x", "x/y", "ext::x", "", "-o", "O"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		AUTO_FREE char *text = xasprintf("%s[branch \"m\"]\n\tremote = %s\n"
						 "\tmerge = refs/heads/m\n\tpushremote = %s\n",
			head, good[i], good[i]);

		expect_same("", text);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_FREE char *text =
			xasprintf("%s[branch \"m\"]\n\tpushremote = %s\n", head, bad[i]);

		expect_refused("", text, "branch.m.pushremote");
	}
}

/* git would use the name as a path below the work tree. */
static void a_branch_whose_remote_goes_away_loses_it(void **state)
{
	static const char old[] = "[remote \"o\"]\n\turl = https://example.test/a\n"
				  "[branch \"m\"]\n\tremote = o\n\tmerge = refs/heads/m\n"
				  "[branch \"n\"]\n\tremote = ../local\n";

	(void)state;
	expect_text(old,
		"[branch \"m\"]\n\tremote = o\n\tmerge = refs/heads/m\n"
		"[branch \"n\"]\n\tremote = ../local\n",
		"[branch \"m\"]\n\tmerge = refs/heads/m\n[branch \"n\"]\n\tremote = ../local\n");
	expect_text(old,
		"[remote \"p\"]\n\turl = https://example.test/b\n[branch \"m\"]\n\tremote = o\n",
		"[remote \"p\"]\n\turl = https://example.test/b\n");
	expect_refused(old, "[branch \"x\"]\n\tremote = ../local\n", "branch.x.remote");
}

/* git renames the remote first and the remotes of branches afterwards. */
static void a_branch_follows_a_renamed_remote(void **state)
{
	static const char old[] = "[remote \"o\"]\n\turl = https://example.test/a\n"
				  "[branch \"m\"]\n\tremote = o\n\tmerge = refs/heads/m\n";

	(void)state;
	expect_text(old,
		"[remote \"p\"]\n\turl = https://example.test/a\n[branch \"m\"]\n\tremote = o\n"
		"\tmerge = refs/heads/m\n",
		"[remote \"p\"]\n\turl = https://example.test/a\n[branch \"m\"]\n\tremote = p\n"
		"\tmerge = refs/heads/m\n");
}

static void refspecs_have_sane_refs(void **state)
{
	static const char *const good[] = {"+refs/heads/*:refs/remotes/o/*", "refs/heads/m",
		"refs/heads/m:refs/remotes/o/m", "^refs/heads/x*", "+refs/tags/*:refs/tags/*",
		"+refs/pull/*/head:refs/remotes/o/pr/*", "HEAD:refs/remotes/o/HEAD"};
	static const char *const bad[] = {"", "+", ":", "^", "m", "refs/heads/*:refs/remotes/m",
		"refs/heads/m:HEAD", "refs/../m:refs/x", "refs/heads/m:refs/..",
		"refs/heads/m:refs/a..b", "refs/heads/m:refs//x", "refs/heads/*:refs/*/*",
		"^refs/a:refs/b", "refs/heads/a b", "refs/heads/m.lock", "refs/heads/.m",
		"refs/heads/m:", ":refs/heads/m", "refs/heads/m/", "refs/heads/*",
		"refs/heads/m:x:refs/y", "++refs/heads/m", "-refs/heads/m"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good) + ARRAY_LEN(bad); i++) {
		bool ok = i < ARRAY_LEN(good);
		const char *spec = ok ? good[i] : bad[i - ARRAY_LEN(good)];
		AUTO_FREE char *text = xasprintf("[remote \"o\"]\n\tfetch = %s\n", spec);

		if (ok)
			expect_same("", text);
		else
			expect_refused("", text, "remote.o.fetch");
	}
}

static void a_submodule_leads_back_into_its_work_tree_only(void **state)
{
	static const struct {
		const char *path, *value;
		bool ok;
	} rows[] = {
		{".git/modules/a/config", "../../../a", true},
		{".git/modules/a/b/config", "../../../../a/b", true},
		{"x/y/.git/modules/a/config", "../../../deps/a", true},
		{".git/modules/a/modules/b/config", "../../../../../a/b", true},
		{"a/.git/x/.git/modules/a/config", "../../../a", true},
		{".git/modules/a/config", "../../../../a", false},
		{".git/modules/a/config", "../../a", false},
		{".git/modules/a/config", "../../..", false},
		{".git/modules/a/config", "../../../", false},
		{".git/modules/a/config", "../../../.git", false},
		{".git/modules/a/config", "../../../a/.GIT/hooks", false},
		{".git/modules/a/config", "../../../git~1", false},
		{".git/modules/a/config", "../../../a/../../b", false},
		{".git/modules/a/config", "../../../a//b", false},
		{".git/modules/a/config", "../../../a/", false},
		{".git/modules/a/config", "../../.././a", false},
		{".git/modules/a/config", "/tmp", false},
		{".git/modules/a/config", "", false},
		{".git/config", "../a", false},
		{".git/modules/config", "../../a", false},
		{"x.git/modules/a/config", "../../../a", false},
		{"modules/a/config", "../../a", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *ret = NULL,
			       *text = xasprintf("[core]\n\tworktree = %s\n", rows[i].value);
		int r = check_at(rows[i].path, "", text, &ret);

		if (r != (rows[i].ok ? 0 : -EACCES))
			fail_msg("%s %s: %d", rows[i].path, rows[i].value, r);
	}
}

static void the_name_in_a_message_is_harmless(void **state)
{
	(void)state;
	expect_refused("", "[x \"a\x1b]0;b\x07\"]\ny = 1\n", "x.a?]0;b?.y");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_of_git_is_written_back_as_it_is),
		cmocka_unit_test(every_spelling_becomes_the_same_text),
		cmocka_unit_test(subsections_keep_their_case_and_escapes),
		cmocka_unit_test(a_value_with_special_characters_is_quoted),
		cmocka_unit_test(comments_of_a_whole_line_are_kept),
		cmocka_unit_test(texts_that_git_rejects_are_rejected),
		cmocka_unit_test(texts_that_versions_of_git_read_differently_are_rejected),
		cmocka_unit_test(a_nul_is_rejected),
		cmocka_unit_test(texts_above_the_limits_are_rejected),
		cmocka_unit_test(keys_that_run_programs_are_refused),
		cmocka_unit_test(keys_of_the_user_stay_as_they_are),
		cmocka_unit_test(a_value_of_the_user_can_stay_or_go),
		cmocka_unit_test(harmless_keys_are_accepted),
		cmocka_unit_test(addresses_of_servers_are_accepted),
		cmocka_unit_test(addresses_that_run_programs_or_name_files_are_refused),
		cmocka_unit_test(a_branch_follows_only_a_configured_remote_or_an_address),
		cmocka_unit_test(a_branch_whose_remote_goes_away_loses_it),
		cmocka_unit_test(a_branch_follows_a_renamed_remote),
		cmocka_unit_test(refspecs_have_sane_refs),
		cmocka_unit_test(a_submodule_leads_back_into_its_work_tree_only),
		cmocka_unit_test(the_name_in_a_message_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
