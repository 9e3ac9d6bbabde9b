/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that are shipped; the argument is their folder. */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/policy.h"

static const char *folder;

static char *read_preset(const char *name, size_t *ret_n)
{
	AUTO_FREE char *path = xasprintf("%s/%s.policy", folder, name);
	char *text = NULL;
	struct err err;

	if (file_load(path, RULES_MAX_BYTES, &text, ret_n, &err) < 0)
		fail_msg("%s: %s", path, err.text);
	return text;
}

static struct policy *load(const char *name, const char *more)
{
	size_t n;
	AUTO_FREE char *text = read_preset(name, &n);
	AUTO_RULES struct rules rules = {0};
	struct rule rule = {0};
	struct policy *p;
	struct err err;

	if (rules_decode(slice_of(text, n), name, &rules, &err) < 0)
		fail_msg("%s", err.text);
	if (more) {
		assert_int_equal(rule_parse(slice_from_str(more), &rule, &err), 0);
		assert_int_equal(rules_add(&rules, &rule, &err), 0);
	}
	p = policy_new(&rules, "demo");
	assert_null(policy_fault(p));
	return p;
}

static bool allows(const struct policy *p, const char *target)
{
	struct policy_op op = {.kind = RULE_NETWORK};
	struct policy_decision d;
	struct slice host;
	struct host h;

	assert_int_equal(host_split(slice_from_str(target), &host, &op.port, NULL), 0);
	assert_int_equal(host_from_wire(host, &h, NULL), 0);
	op.host = &h;
	policy_decide(p, &op, &d);
	return d.allowed;
}

static void expect(const struct policy *p, bool want, const char *const *targets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (allows(p, targets[i]) != want)
			fail_msg("%s is %s", targets[i], want ? "denied" : "allowed");
}

static const char *const special[] = {"169.254.169.254:80", "127.0.0.1:80", "10.0.0.1:443",
	"[::1]:443", "[fd00:ec2::254]:80", "0x7f.1:80"};

static void balanced_opens_what_is_needed(void **state)
{
	static const char *const yes[] = {"github.com:443", "api.github.com:443",
		"codeload.github.com:443", "gitlab.com:443", "index.crates.io:443",
		"proxy.golang.org:443", "rubygems.org:443", "nodejs.org:443", "x.debian.org:80",
		"archive.ubuntu.com:80", "auth.docker.io:443", "mcr.microsoft.com:443",
		"eastus.data.mcr.microsoft.com:443", "crl3.digicert.com:80", "r10.o.lencr.org:80",
		"developer.mozilla.org:443"};
	struct policy *p = load("balanced", NULL);

	expect(p, true, yes, ARRAY_LEN(yes));
	policy_free(p);
}

static void balanced_has_no_place_to_drop_things(void **state)
{
	static const char *const no[] = {"s3.amazonaws.com:443", "bucket.s3.amazonaws.com:443",
		"bucket.s3.eu-west-1.amazonaws.com:443", "sts.amazonaws.com:443",
		"storage.googleapis.com:443", "bucket.storage.googleapis.com:443",
		"x.blob.core.windows.net:443", "x.r2.cloudflarestorage.com:443", "x.r2.dev:443",
		"x.public.blob.vercel-storage.com:443", "gist.github.com:443",
		"gist.githubusercontent.com:443", "user-images.githubusercontent.com:443",
		"uploads.github.com:443", "x.github.io:443", "pastebin.com:443", "transfer.sh:443",
		"webhook.site:443", "x.ngrok.io:443", "files.oaiusercontent.com:443",
		"x.googleusercontent.com:443", "docs.google.com:443", "www.google.com:443",
		"discord.com:443", "api.telegram.org:443", "example.com:443",
		/* model APIs are an agent's to request */
		"api.anthropic.com:443", "api.openai.com:443", "chatgpt.com:443", "claude.ai:443",
		"generativelanguage.googleapis.com:443", "api.individual.githubcopilot.com:443",
		"openrouter.ai:443", "api.perplexity.ai:443", "api2.cursor.sh:443",
		"app.factory.ai:443", "oauth2.googleapis.com:443", "auth.openai.com:443",
		/* no other port of an allowed host */
		"github.com:22", "github.com:80", "github.com:9999", "crl3.digicert.com:443",
		"archive.ubuntu.com:22",
		/* no neighbour of one */
		"xgithub.com:443", "github.com.example:443", "a.b.debian.org:443", "debian.org:443",
		"evil.api.anthropic.com:443", "lencr.org:80"};
	struct policy *p = load("balanced", NULL);

	expect(p, false, no, ARRAY_LEN(no));
	expect(p, false, special, ARRAY_LEN(special));
	policy_free(p);
}

static void balanced_says_for_each_rule_why_and_on_which_port(void **state)
{
	size_t n;
	AUTO_FREE char *text = read_preset("balanced", &n);
	AUTO_RULES struct rules rules = {0};

	assert_int_equal(rules_decode(slice_of(text, n), "balanced", &rules, NULL), 0);
	for (size_t i = 0; i < rules.n_groups; i++)
		assert_non_null(rules.group[i].comment);
	for (size_t i = 0; i < rules.n; i++) {
		const struct rule *rule = &rules.rule[i];

		assert_int_equal(rule->effect, RULE_ALLOW);
		assert_true(rule->group > 0);
		for (size_t j = 0; j < rule->n_net; j++) {
			const struct netrule *net = &rule->net[j];

			assert_int_equal(net->form, NETRULE_NAME);
			assert_int_equal(net->ports.lo, net->ports.hi);
			assert_true(net->ports.lo == 80 || net->ports.lo == 443);
			/* Any depth is for names of one owner who lets nobody else in. */
			if (net->deep)
				assert_string_equal(net->name, "lencr.org");
		}
	}
}

static void allow_all_opens_the_public_internet(void **state)
{
	static const char *const yes[] = {
		"example.com:443", "example.com:22", "a.b.c:65535", "8.8.8.8:1", "[2606::1]:8080"};
	struct policy *p = load("allow-all", NULL);

	expect(p, true, yes, ARRAY_LEN(yes));
	expect(p, false, special, ARRAY_LEN(special));
	policy_free(p);
}

static void deny_all_opens_what_is_allowed_and_nothing_else(void **state)
{
	static const char *const yes[] = {"a.example:443", "a.example:80"};
	static const char *const no[] = {"b.example:443", "a.example:22", "8.8.8.8:80",
		"10.0.0.1:22", "localhost:8080", "[2606::1]:443"};
	struct policy *p = load("deny-all", "allow network a.example");

	expect(p, true, yes, ARRAY_LEN(yes));
	expect(p, false, no, ARRAY_LEN(no));
	expect(p, false, special, ARRAY_LEN(special));
	policy_free(p);
}

/* Whatever an agent or a template brings along. */
static void locked_cannot_be_overridden(void **state)
{
	static const char *const brought[] = {NULL, "allow network **:1-65535",
		"allow network a.example:22 for sandbox demo",
		"allow network 8.8.8.8,10.0.0.1:1-65535"};
	static const char *const no[] = {"a.example:443", "a.example:22", "8.8.8.8:80",
		"10.0.0.1:22", "localhost:8080", "[2606::1]:443"};

	for (size_t i = 0; i < ARRAY_LEN(brought); i++) {
		struct policy *p = load("locked", brought[i]);

		expect(p, false, no, ARRAY_LEN(no));
		expect(p, false, special, ARRAY_LEN(special));
		policy_free(p);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(balanced_opens_what_is_needed),
		cmocka_unit_test(balanced_has_no_place_to_drop_things),
		cmocka_unit_test(balanced_says_for_each_rule_why_and_on_which_port),
		cmocka_unit_test(allow_all_opens_the_public_internet),
		cmocka_unit_test(deny_all_opens_what_is_allowed_and_nothing_else),
		cmocka_unit_test(locked_cannot_be_overridden),
	};

	folder = argc > 1 ? argv[1] : "data/policies";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
