/* SPDX-License-Identifier: Apache-2.0 */
/* Items of a vault and files of services become bindings. */
#include "src/keeper/credential/creds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/secret/service/service_match.h"

#define ID "0123456789ab"

static char dir[64];
static struct vault_item items[16];
static size_t n_items;
static struct creds *creds;
static struct creds_input in; /* modified by tests */

static void put_file(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
}

static void put_service(const char *name, const char *rest)
{
	AUTO_FREE char *file = xasprintf("%s.conf", name);
	AUTO_FREE char *text = xasprintf("service 1\nname %s\nabout A test\n%s\nend\n", name, rest);

	put_file(file, text);
}

static int up(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/creds_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	put_service("demo",
		"env DEMO_KEY dk-proxy-managed-0\ntoken auth.demo.example:443 /token\n"
		"field access access_token at-proxy-managed-0\n"
		"slot api\nhost api.demo.example:443,*.api.demo.example:443\n"
		"header authorization Bearer %s\n"
		"slot account\nhost api.demo.example:443\nheader x-account %s\nvalue access\n");
	put_service("other", "env OTHER_KEY ok-proxy-managed-0\nslot api\nhost other.example:8443\n"
			     "header x-key %s\n");
	put_file("auth-names", "# names\nknown header x-some-key\nknown query some_key\n");
	put_service("broken", "slot api\nhost **\nheader x-key %s\n");
	memset(items, 0, sizeof(items));
	n_items = 0;
	creds = NULL;
	in = (struct creds_input){0};
	return 0;
}

static int down(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	creds_free(creds);
	return system(rm);
}

static struct vault_item *add(const char *name, const char *scope, enum vault_kind kind)
{
	struct vault_item *item = &items[n_items++];

	(void)!str_copy(item->meta.name, sizeof(item->meta.name), name);
	(void)!str_copy(item->meta.scope, sizeof(item->meta.scope), scope);
	item->meta.kind = kind;
	item->serial = 100 + n_items;
	return item;
}

static struct vault_item *add_custom(const char *name, const char *hosts, const char *format)
{
	struct vault_item *item = add(name, "", VAULT_CUSTOM);

	(void)!str_copy(item->meta.hosts, sizeof(item->meta.hosts), hosts);
	(void)!str_copy(item->meta.header, sizeof(item->meta.header), "X-Api-Key");
	(void)!str_copy(item->meta.format, sizeof(item->meta.format), format);
	return item;
}

static void join(void)
{
	creds_free(creds);
	in.items = items;
	in.n = n_items;
	in.shipped = dir;
	in.own = "/nowhere";
	in.sandbox = ID;
	creds = creds_new(&in);
}

static void a_service_is_bound_to_its_hosts(void **state)
{
	const struct binding *b;

	join();
	assert_null(creds_find(creds, "api.demo.example", 443));
	(void)add("demo", "", VAULT_SERVICE);
	join();
	assert_int_equal(creds_count_faults(creds), 0);
	b = creds_find(creds, "api.demo.example", 443);
	assert_non_null(b);
	assert_string_equal(b->name, "demo");
	assert_int_equal(b->has, ORIGIN_HAS_SECRET);
	assert_int_equal(b->value[ORIGIN_SECRET].serial, 101);
	assert_non_null(strstr(b->text, "name demo"));
	assert_ptr_equal(creds_find(creds, "eu.api.demo.example", 443), b);
	assert_ptr_equal(creds_find(creds, "auth.demo.example", 443), b);
	assert_null(creds_find(creds, "api.demo.example", 8443));
	assert_null(creds_find(creds, "API.demo.example", 443));
	assert_null(creds_find(creds, "api.demo.example.", 443));
	assert_null(creds_find(creds, "other.example", 8443)); /* no item, no binding */
	assert_null(creds_find(NULL, "api.demo.example", 443));
}

static enum service_verdict judge(
	const struct binding *b, enum service_where where, const char *name)
{
	return service_judge(b->service, where, slice_from_str(name), slice_from_str("thief"));
}

/* Also of a service whose file does not mention them, and of a credential without a file. */
static void names_that_carry_credentials_are_known_everywhere(void **state)
{
	static const char *const hosts[] = {"api.demo.example", "own.example"};

	(void)add("demo", "", VAULT_SERVICE);
	(void)add_custom("own", "own.example", "%s");
	join();
	assert_int_equal(creds_count_faults(creds), 0);
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		const struct binding *b = creds_find(creds, hosts[i], 443);

		assert_non_null(b);
		assert_int_equal(judge(b, SERVICE_IN_HEADER, "X-Some-Key"), SERVICE_FOREIGN);
		assert_int_equal(judge(b, SERVICE_IN_QUERY, "some%5Fkey"), SERVICE_FOREIGN);
		assert_int_equal(judge(b, SERVICE_IN_COOKIE, "some_key"), SERVICE_PLAIN);
		assert_non_null(strstr(b->text, "known header x-some-key"));
	}
}

static void without_the_names_no_credential_is_used(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/auth-names", dir);

	assert_int_equal(unlink(path), 0);
	(void)add("demo", "", VAULT_SERVICE);
	join();
	assert_int_equal(creds_count_faults(creds), 1);
	assert_non_null(strstr(creds_fault(creds, 0), "auth-names"));
	assert_null(creds_find(creds, "api.demo.example", 443));
}

static void any_port_of_such_a_host(void **state)
{
	(void)add("demo", "", VAULT_SERVICE);
	join();
	assert_true(creds_has_host(creds, "api.demo.example"));
	assert_true(creds_has_host(creds, "eu.api.demo.example"));
	assert_true(creds_has_host(creds, "auth.demo.example"));
	assert_false(creds_has_host(creds, "demo.example"));
	assert_false(creds_has_host(creds, "www.demo.example"));
	assert_false(creds_has_host(creds, "example"));
	assert_false(creds_has_host(creds, "10.0.0.1"));
	assert_false(creds_has_host(creds, "2001:db8::1"));
	assert_false(creds_has_host(NULL, "api.demo.example"));
}

static void the_sandboxs_own_stands_in_front(void **state)
{
	const struct binding *b;

	(void)add("demo", "", VAULT_SERVICE);
	(void)add("demo", ID, VAULT_SERVICE);
	(void)add("other", "ffffffffffff", VAULT_SERVICE); /* another sandbox's */
	join();
	b = creds_find(creds, "api.demo.example", 443);
	assert_int_equal(b->value[ORIGIN_SECRET].serial, 102);
	assert_null(creds_find(creds, "other.example", 8443));
	/* in any order */
	(void)!str_copy(items[0].meta.scope, sizeof(items[0].meta.scope), ID);
	items[1].meta.scope[0] = '\0';
	join();
	b = creds_find(creds, "api.demo.example", 443);
	assert_int_equal(b->value[ORIGIN_SECRET].serial, 101);
}

static void tokens_are_values_of_their_service(void **state)
{
	const struct binding *b;

	(void)add("demo.access", "", VAULT_SERVICE);
	(void)add("demo.refresh", "", VAULT_SERVICE);
	join();
	b = creds_find(creds, "api.demo.example", 443);
	assert_string_equal(b->name, "demo");
	assert_int_equal(b->has, ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH);
	assert_string_equal(b->value[ORIGIN_ACCESS].name, "demo.access");
	assert_string_equal(b->value[ORIGIN_REFRESH].name, "demo.refresh");
	assert_string_equal(b->value[ORIGIN_SECRET].name, "");
}

static void a_custom_one_is_a_service_too(void **state)
{
	struct vault_item *item = add_custom("My.Key_1", "one.example two.example:8443", "Key %s");
	char env[CREDS_MAX_FIELD];
	const struct binding *b;

	(void)!str_copy(item->meta.env, sizeof(item->meta.env), "MY_KEY MY_OTHER");
	(void)!str_copy(item->meta.sentinel, sizeof(item->meta.sentinel), "mk-proxy-managed-****");
	join();
	if (creds_count_faults(creds))
		fail_msg("%s", creds_fault(creds, 0));
	b = creds_find(creds, "one.example", 443);
	assert_non_null(b);
	assert_string_equal(b->name, "My.Key_1");
	assert_ptr_equal(creds_find(creds, "two.example", 8443), b);
	assert_null(creds_find(creds, "two.example", 443));
	assert_string_equal(b->service->slot[0].header, "x-api-key");
	assert_string_equal(b->service->slot[0].format, "Key %s");
	assert_true(creds_env(creds, 0, env));
	assert_string_equal(env, "MY_KEY=mk-proxy-managed-0123");
	assert_true(creds_env(creds, 1, env));
	assert_string_equal(env, "MY_OTHER=mk-proxy-managed-0123");
	assert_false(creds_env(creds, 2, env));
}

/* Removing another credential must not stop its process. */
static void a_custom_one_is_the_same_when_others_go(void **state)
{
	struct binding was;

	(void)add_custom("first", "one.example", "%s");
	(void)add_custom("second", "two.example", "%s");
	join();
	creds_copy(creds_find(creds, "two.example", 443), &was);
	items[0] = items[--n_items];
	join();
	assert_null(creds_find(creds, "one.example", 443));
	assert_true(creds_is_same(&was, creds_find(creds, "two.example", 443)));
	creds_drop(&was);
}

static void customs_that_cannot_be(void **state)
{
	(void)add_custom("every", "**", "%s");
	(void)add_custom("line", "a.example", "x\nend");
	(void)add_custom("comment", "b.example", "Key %s #x");
	(void)add_custom("none", "", "%s");
	(void)add_custom("nothing", "c.example", "fixed");
	(void)!str_copy(
		add_custom("host", "d.example", "%s")->meta.header, VAULT_MAX_HEADER, "Host");
	join();
	assert_int_equal(creds_count_faults(creds), 6);
	for (char host[] = "a.example"; host[0] <= 'd'; host[0]++)
		assert_false(creds_has_host(creds, host));
	assert_non_null(strstr(creds_fault(creds, 0), "the credential every is not used: "));
}

/* The first one stays, and the other cannot claim its host. */
static void two_for_one_host(void **state)
{
	(void)add_custom("mine", "api.demo.example", "%s");
	(void)add("demo", "", VAULT_SERVICE);
	join();
	assert_string_equal(creds_find(creds, "api.demo.example", 443)->name, "demo");
	assert_int_equal(creds_count_faults(creds), 1);
	assert_non_null(strstr(creds_fault(creds, 0), "mine"));
}

static void files_that_cannot_be(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/liar.conf", dir);
	static const char text[] = "service 1\nname other\nabout x\nslot a\nhost liar.example:443\n"
				   "header x-key %s\nend\n";

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
	(void)add("broken", "", VAULT_SERVICE);
	(void)add("missing", "", VAULT_SERVICE);
	(void)add("liar", "", VAULT_SERVICE);
	(void)add("demo", "", VAULT_SERVICE);
	join();
	assert_int_equal(creds_count_faults(creds), 3);
	assert_null(creds_find(creds, "liar.example", 443));
	assert_non_null(creds_find(creds, "api.demo.example", 443));
}

static void what_makes_it_another(void **state)
{
	struct binding was = {0};
	struct vault_item *item = add("demo", "", VAULT_SERVICE);

	join();
	creds_copy(creds_find(creds, "api.demo.example", 443), &was);
	join();
	assert_true(creds_is_same(&was, creds_find(creds, "api.demo.example", 443)));
	item->serial++;
	join();
	assert_false(creds_is_same(&was, creds_find(creds, "api.demo.example", 443)));
	item->serial--;
	(void)add("demo.access", "", VAULT_SERVICE);
	join();
	assert_false(creds_is_same(&was, creds_find(creds, "api.demo.example", 443)));
	n_items--;
	put_service("demo", "slot api\nhost api.demo.example:443\nheader x-key %s\n");
	join();
	assert_false(creds_is_same(&was, creds_find(creds, "api.demo.example", 443)));
	creds_drop(&was);
}

static void how_long_a_value_may_be_used(void **state)
{
	struct vault_item *item = add("demo", "", VAULT_SERVICE);

	join();
	assert_int_equal(creds_find(creds, "api.demo.example", 443)->value[ORIGIN_SECRET].use_s, 0);
	item->ref = VAULT_REF_WHOLE;
	join(); /* refresh on-demand */
	assert_int_equal(creds_find(creds, "api.demo.example", 443)->value[ORIGIN_SECRET].use_s, 1);
	item->refresh_s = 300;
	join();
	assert_int_equal(
		creds_find(creds, "api.demo.example", 443)->value[ORIGIN_SECRET].use_s, 300);
}

static void logins_need_no_item(void **state)
{
	char field[CREDS_MAX_FIELD];
	struct services *logins;
	const struct binding *b;

	put_service("acct", "env ACCT_KEY ak-proxy-managed-0\ntoken auth.acct.example:443 /token\n"
			    "field access access_token at-proxy-managed\n"
			    "field refresh refresh_token rt-proxy-managed\n"
			    "slot api\nhost api.acct.example:443\nheader authorization Bearer %s\n"
			    "value access\n");
	put_service("registry",
		"token auth.registry.example:443 /token\n"
		"field access token t-proxy-managed-*\n"
		"field refresh refresh_token r-proxy-managed-*\n"
		"slot api\nhost registry.example:443\nheader authorization Bearer %s\n"
		"value access\n");
	logins = services_new();
	assert_int_equal(services_load(logins, dir, NULL), 0);
	in.services = logins;
	in.logins = true;
	join();
	b = creds_find(creds, "auth.acct.example", 443);
	assert_non_null(b);
	assert_int_equal(b->has, 0);
	assert_null(creds_find(creds, "api.acct.example", 443));
	assert_true(creds_has_host(creds, "auth.acct.example"));
	assert_false(creds_has_host(creds, "api.acct.example"));
	assert_false(creds_env(creds, 0, field));
	/* tokens issued for a secret, and a service without a refresh token */
	assert_null(creds_find(creds, "auth.registry.example", 443));
	assert_null(creds_find(creds, "auth.demo.example", 443));
	/* the user's item takes precedence, and its absence is not a fault */
	(void)add_custom("mine", "auth.acct.example:443", "%s");
	join();
	assert_string_equal(creds_find(creds, "auth.acct.example", 443)->name, "mine");
	assert_int_equal(creds_count_faults(creds), 0);
	/* with a token all hosts are intercepted */
	n_items = 0;
	(void)add("acct.access", ID, VAULT_SERVICE);
	join();
	assert_int_equal(creds_find(creds, "api.acct.example", 443)->has, ORIGIN_HAS_ACCESS);
	services_free(logins);
}

/* The services of the directory, one of them intercepted always. */
static struct services *load_all(void)
{
	struct services *all = services_new();

	put_service("model",
		"env MODEL_KEY mk-proxy-managed-0\ntoken auth.model.example:443 /token\n"
		"field access access_token at-proxy-managed\n"
		"field refresh refresh_token rt-proxy-managed\n"
		"slot api\nhost api.model.example:443\nheader authorization Bearer %s\n"
		"intercept always\n"
		"slot files\nhost files.model.example:443\nheader authorization Bearer %s\n");
	assert_int_equal(services_load(all, dir, NULL), 0);
	in.services = all;
	return all;
}

static void a_model_api_needs_no_item(void **state)
{
	struct services *all = load_all();
	char field[CREDS_MAX_FIELD];
	const struct binding *b;

	join();
	assert_int_equal(creds_count_faults(creds), 0);
	b = creds_find(creds, "api.model.example", 443);
	assert_non_null(b);
	assert_string_equal(b->name, "model");
	assert_int_equal(b->has, 0);
	assert_non_null(strstr(b->text, "known header x-some-key"));
	assert_true(creds_has_host(creds, "api.model.example"));
	assert_false(creds_env(creds, 0, field)); /* no placeholder without a value */
	/* its other slot, the endpoint of an uncaptured login, and forges */
	assert_null(creds_find(creds, "files.model.example", 443));
	assert_null(creds_find(creds, "auth.model.example", 443));
	assert_null(creds_find(creds, "api.model.example", 8443));
	assert_null(creds_find(creds, "other.example", 8443));
	assert_false(creds_has_host(creds, "files.model.example"));
	assert_false(creds_has_host(creds, "auth.model.example"));
	assert_false(creds_has_host(creds, "other.example"));
	/* on every port; on none for an uncaptured login and a forge */
	assert_true(creds_guards_host(creds, "api.model.example"));
	assert_false(creds_guards_host(creds, "files.model.example"));
	assert_false(creds_guards_host(creds, "auth.model.example"));
	assert_false(creds_guards_host(creds, "other.example"));
	in.logins = true;
	join();
	assert_true(creds_guards_host(creds, "auth.model.example"));
	assert_non_null(creds_find(creds, "auth.model.example", 443));
	assert_true(creds_has_host(creds, "auth.model.example"));
	/* an item fills it, and adds the other hosts */
	(void)add("model", "", VAULT_SERVICE);
	join();
	assert_int_equal(creds_find(creds, "api.model.example", 443)->has, ORIGIN_HAS_SECRET);
	assert_non_null(creds_find(creds, "files.model.example", 443));
	services_free(all);
}

static void forges_are_intercepted_by_the_setting(void **state)
{
	struct services *all = load_all();

	in.all = true;
	join();
	assert_int_equal(creds_find(creds, "other.example", 8443)->has, 0);
	assert_int_equal(creds_find(creds, "api.demo.example", 443)->has, 0);
	assert_int_equal(creds_find(creds, "files.model.example", 443)->has, 0);
	assert_true(creds_has_host(creds, "other.example"));
	assert_null(creds_find(creds, "else.example", 443));
	services_free(all);
}

static void a_sandbox_may_use_its_own(void **state)
{
	struct services *all = load_all();

	in.logins = in.all = true;
	in.own_services = "demo\nmodel\n";
	(void)add("model", "", VAULT_SERVICE);
	(void)add("model.access", ID, VAULT_SERVICE);
	(void)add("other", "", VAULT_SERVICE);
	join();
	assert_null(creds_find(creds, "api.model.example", 443));
	assert_null(creds_find(creds, "auth.model.example", 443));
	assert_null(creds_find(creds, "api.demo.example", 443));
	assert_false(creds_has_host(creds, "api.model.example"));
	assert_int_equal(creds_find(creds, "other.example", 8443)->has, ORIGIN_HAS_SECRET);
	/* a credential for the user's own hosts does not belong to a service, whatever its name */
	(void)add_custom("demo", "mine.example", "%s");
	join();
	assert_non_null(creds_find(creds, "mine.example", 443));
	services_free(all);
}

/* The user's credential for one host of the service stays, and the fault lists the host. */
static void a_host_of_the_users_own_stands_in_front(void **state)
{
	struct services *all = load_all();

	(void)add_custom("mine", "api.model.example", "%s");
	join();
	assert_string_equal(creds_find(creds, "api.model.example", 443)->name, "mine");
	assert_int_equal(creds_count_faults(creds), 1);
	assert_non_null(
		strstr(creds_fault(creds, 0), "the hosts of service model are not intercepted: "));
	services_free(all);
}

static void tokens_are_renewed(void **state)
{
	struct binding was = {0};

	(void)add("demo", "", VAULT_SERVICE);
	(void)add("demo.access", ID, VAULT_SERVICE);
	join();
	creds_copy(creds_find(creds, "api.demo.example", 443), &was);
	items[1].serial++;
	(void)add("demo.refresh", ID, VAULT_SERVICE);
	join();
	assert_true(creds_is_renewal(&was, creds_find(creds, "api.demo.example", 443)));
	assert_false(creds_is_same(&was, creds_find(creds, "api.demo.example", 443)));
	/* another secret, or a missing token, is not a renewal */
	items[0].serial++;
	join();
	assert_false(creds_is_renewal(&was, creds_find(creds, "api.demo.example", 443)));
	items[0].serial--;
	(void)!str_copy(items[1].meta.name, sizeof(items[1].meta.name), "other");
	join();
	assert_false(creds_is_renewal(&was, creds_find(creds, "api.demo.example", 443)));
	creds_drop(&was);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_service_is_bound_to_its_hosts),
		TEST(names_that_carry_credentials_are_known_everywhere),
		TEST(without_the_names_no_credential_is_used),
		TEST(any_port_of_such_a_host),
		TEST(the_sandboxs_own_stands_in_front),
		TEST(tokens_are_values_of_their_service),
		TEST(a_custom_one_is_a_service_too),
		TEST(a_custom_one_is_the_same_when_others_go),
		TEST(customs_that_cannot_be),
		TEST(two_for_one_host),
		TEST(files_that_cannot_be),
		TEST(what_makes_it_another),
		TEST(how_long_a_value_may_be_used),
		TEST(logins_need_no_item),
		TEST(a_model_api_needs_no_item),
		TEST(forges_are_intercepted_by_the_setting),
		TEST(a_sandbox_may_use_its_own),
		TEST(a_host_of_the_users_own_stands_in_front),
		TEST(tokens_are_renewed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
