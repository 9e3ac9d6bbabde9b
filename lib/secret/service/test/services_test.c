/* SPDX-License-Identifier: Apache-2.0 */
/* Many services together, and those that are shipped; the argument is their folder. */
#include "lib/secret/service/services.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/secret/service/service_match.h"

static const char *folder;

static int add(struct services *set, const char *name, const char *more, struct err *err)
{
	AUTO_FREE char *text =
		xasprintf("service 1\nname %s\nabout x\n%s\nbasic x\nend\n", name, more);
	AUTO_FREE char *file = xasprintf("%s.conf", name);

	return services_add(set, slice_from_str(text), file, err);
}

static const struct service *find(const struct services *set, const char *target)
{
	struct slice text;
	struct host host;
	uint16_t port;

	assert_int_equal(host_split(slice_from_str(target), &text, &port, NULL), 0);
	assert_int_equal(host_from_wire(text, &host, NULL), 0);
	return services_find(set, &host, port);
}

static void two_services_never_meet(void **state)
{
	static const struct {
		const char *more, *says;
	} rows[] = {
		{"slot x\nhost api.a.example:443", "api.a.example:443 may be the same host as"},
		{"slot x\nhost *.a.example:443", "*.a.example:443 may be"},
		{"slot x\nhost **.a.example:1-65535", "**.a.example:1-65535 may be"},
		{"slot x\nhost z.example:443,eu.b.example:443",
			"*.b.example:443 of service 'first'"},
		{"env A_KEY proxy-managed\nslot x\nhost z.example:443", "variable A_KEY"},
		{"token login.a.example:443 /t\nfield access a proxy-managed\nslot x\nhost "
		 "z.example:443",
			"login.a.example:443"},
	};
	struct services *set = services_new();
	struct err err;

	assert_int_equal(add(set, "first",
				 "env A_KEY proxy-managed\n"
				 "token login.a.example:443 /t\n"
				 "field access a proxy-managed\n"
				 "slot x\nhost api.a.example:443,*.b.example:443",
				 &err),
		0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(add(set, "second", rows[i].more, &err), -EEXIST);
		if (!strstr(err.text, rows[i].says) || strncmp(err.text, "second.conf: ", 13) != 0)
			fail_msg("row %zu says '%s'", i, err.text);
		assert_int_equal(services_count(set), 1);
	}
	assert_int_equal(add(set, "first", "slot x\nhost z.example:443", &err), -EEXIST);
	assert_null(find(set, "z.example:443"));
	assert_int_equal(
		add(set, "second", "slot x\nhost api.a.example:8443,b.example:443", &err), 0);
	assert_string_equal(find(set, "api.a.example:443")->name, "first");
	assert_string_equal(find(set, "api.a.example:8443")->name, "second");
	assert_string_equal(find(set, "b.example:443")->name, "second");
	assert_string_equal(find(set, "login.a.example:443")->name, "first");
	assert_null(find(set, "api.a.example:80"));
	services_free(set);
}

static void nothing_is_found_in_nothing(void **state)
{
	struct services *set = services_new();

	assert_null(find(set, "a.example:443"));
	assert_null(services_by_name(set, "a"));
	assert_null(services_get(set, 0));
	assert_null(services_fault(set, 0));
	services_free(set);
	services_free(NULL);
}

static void there_is_a_limit(void **state)
{
	struct services *set = services_new();
	struct err err;

	for (unsigned i = 0; i <= SERVICES_MAX; i++) {
		AUTO_FREE char *name = xasprintf("s%u", i);
		AUTO_FREE char *more = xasprintf("slot x\nhost h%u.example:443", i);

		assert_int_equal(add(set, name, more, &err), i < SERVICES_MAX ? 0 : -E2BIG);
	}
	assert_string_equal(find(set, "h255.example:443")->name, "s255");
	assert_null(find(set, "h256.example:443"));
	services_free(set);
}

/* ---- a folder ---- */

static void write_in(const char *dir, const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

#define TAIL "\nslot x\nbasic u\nhost "

static void one_bad_file_does_not_take_the_others_away(void **state)
{
	static const char *const files[][2] = {
		{"a.conf", "service 1\nname a\nabout x" TAIL "a.example:443\nend\n"},
		{"b.conf", "service 1\nname b\nabuot x" TAIL "b.example:443\nend\n"},
		{"c.conf", "service 1\nname c\nabout x" TAIL "a.example:443\nend\n"},
		{"d.conf", "service 1\nname e\nabout x" TAIL "d.example:443\nend\n"},
		{"e.conf", "service 1\nname e\nabout x" TAIL "e.example:443\nend\n"},
		{"f.text", "no service at all"},
		{".g.conf", "no service at all"},
	};
	struct services *set = services_new();
	char dir[] = "/tmp/sbx-services-XXXXXX";
	AUTO_FREE char *fifo = NULL;
	struct err err;

	assert_non_null(mkdtemp(dir));
	fifo = xasprintf("%s/h.conf", dir);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		write_in(dir, files[i][0], files[i][1]);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	(void)alarm(10); /* a reader that waits for a writer of the FIFO */
	assert_int_equal(services_load(set, dir, &err), 0);
	(void)alarm(0);
	assert_int_equal(services_count(set), 2);
	assert_string_equal(find(set, "a.example:443")->name, "a");
	assert_string_equal(find(set, "e.example:443")->name, "e");
	assert_null(find(set, "d.example:443"));
	assert_int_equal(services_count_faults(set), 4);
	assert_non_null(strstr(services_fault(set, 0), "/b.conf: line 3: unknown keyword 'abuot'"));
	assert_non_null(strstr(services_fault(set, 1), "/c.conf: a.example:443 may be"));
	assert_non_null(strstr(services_fault(set, 2), "/d.conf: the file defines service 'e'"));
	assert_non_null(strstr(services_fault(set, 3), "/h.conf is not a regular file"));
	assert_int_equal(unlink(fifo), 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, files[i][0]);

		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(services_load(set, dir, &err), 0);
	services_free(set);
}

/* Hosts of one slot are intercepted without a credential, and its neighbours are not. */
static void a_slot_says_that_it_is_always_intercepted(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		bool is_slot, is_always;
	} rows[] = {
		{"api.example.com", 443, true, true},
		{"eu.api.example.com", 443, true, true},
		{"code.example.com", 443, true, false},
		{"both.example.com", 443, true, true},
		{"api.example.com", 8443, false, false},
		{"login.example.com", 443, false, false},
		{"xapi.example.com", 443, false, false},
	};
	static const char text[] =
		"service 1\nname demo\nabout x\ntoken login.example.com:443 /t\n"
		"field access a oat-proxy-managed\n"
		"slot git\nhost code.example.com:443,both.example.com:443\npath /git/**\nbasic x\n"
		"slot api\nhost api.example.com:443,*.api.example.com:443,both.example.com:443\n"
		"intercept always\nheader authorization Bearer %s\nend\n";
	AUTO_SERVICE struct service s = {0};

	assert_int_equal(service_parse(slice_from_str(text), "demo.conf", &s, NULL), 0);
	assert_true(service_has_always(&s));
	s.slot[1].always = false;
	assert_false(service_has_always(&s));
	s.slot[1].always = true;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct service_request req = {.port = rows[i].port};
		struct host host;

		assert_int_equal(host_from_wire(slice_from_str(rows[i].host), &host, NULL), 0);
		req.host = &host;
		assert_int_equal(service_is_slot_host(&s, &req, false), rows[i].is_slot);
		assert_int_equal(service_is_slot_host(&s, &req, true), rows[i].is_always);
	}
}

/* ---- what is shipped ---- */

static struct services *shipped(void)
{
	struct services *set = services_new();
	struct err err;

	if (services_load(set, folder, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < services_count_faults(set); i++)
		fail_msg("%s", services_fault(set, i));
	return set;
}

static void all_that_are_promised_are_there(void **state)
{
	static const char *const names[] = {"amp", "anthropic", "aws", "dashscope", "dockerhub",
		"factory", "ghcr", "github", "gitlab", "google", "groq", "huggingface", "mistral",
		"nebius", "npm", "openai", "opencode", "openrouter", "perplexity", "pypi", "quay",
		"xai"};
	struct services *set = shipped();

	assert_int_equal(services_count(set), ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!services_by_name(set, names[i]))
			fail_msg("%s is missing", names[i]);
	services_free(set);
}

static void requests_find_their_slots(void **state)
{
	static const struct {
		const char *target, *path, *service, *slot, *access;
	} rows[] = {
		{"api.anthropic.com:443", "/v1/messages", "anthropic", "api", "account"},
		{"api.openai.com:443", "/v1/responses", "openai", "api", "-"},
		{"chatgpt.com:443", "/backend-api/codex/responses", "openai", "-", "account"},
		{"generativelanguage.googleapis.com:443", "/v1beta/models", "google", "gemini",
			"-"},
		{"europe-west4-aiplatform.googleapis.com:443", "/v1", "google", "gemini", "-"},
		{"cloudcode-pa.googleapis.com:443", "/v1internal", "google", "-", "account"},
		{"api.github.com:443", "/user", "github", "api", "-"},
		{"github.com:443", "/o/r.git/info/refs?service=git-upload-pack", "github", "git",
			"-"},
		{"github.com:443", "/o/r/git-receive-pack", "github", "git", "-"},
		{"github.com:443", "/login/oauth/access_token", "github", "-", "-"},
		{"gist.github.com:443", "/0123/info/refs", "github", "git", "-"},
		{"api.business.githubcopilot.com:443", "/models", "github", "copilot", "-"},
		{"gitlab.com:443", "/api/v4/user", "gitlab", "api", "-"},
		{"gitlab.com:443", "/g/sub/r.git/git-upload-pack", "gitlab", "git", "-"},
		{"gitlab.com:443", "/g/r", "gitlab", "-", "-"},
		{"huggingface.co:443", "/api/models", "huggingface", "api", "-"},
		{"huggingface.co:443", "/o/m/info/refs", "huggingface", "git", "-"},
		{"openrouter.ai:443", "/api/v1/chat/completions", "openrouter", "api", "-"},
		{"auth.docker.io:443", "/token?service=x", "dockerhub", "login", "-"},
		{"index.docker.io:443", "/v2/library/debian/manifests/12", "dockerhub", "-",
			"registry"},
		{"bedrock-runtime.us-east-1.amazonaws.com:443", "/model", "aws", "api", "-"},
		{"bucket.s3.eu-central-1.amazonaws.com:443", "/k", "aws", "api", "-"},
		{"sts.amazonaws.com:443", "/", "aws", "api", "-"},
		{"ampcode.com:443", "/api/internal", "amp", "api", "-"},
		{"dashscope-intl.aliyuncs.com:443", "/compatible-mode/v1/chat/completions",
			"dashscope", "api", "-"},
		{"lambda.eu-west-1.api.aws:443", "/", "aws", "api", "-"},
	};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct service *s = find(set, rows[i].target);
		struct service_request req = {.path = slice_from_str(rows[i].path)};
		const struct service_slot *secret, *access;
		struct slice text;
		struct host host;

		if (!s || strcmp(s->name, rows[i].service) != 0)
			fail_msg("%s is %s", rows[i].target, s ? s->name : "nobody's");
		assert_int_equal(
			host_split(slice_from_str(rows[i].target), &text, &req.port, NULL), 0);
		assert_int_equal(host_from_wire(text, &host, NULL), 0);
		req.host = &host;
		secret = service_pick_slot(s, &req, SERVICE_SECRET);
		access = service_pick_slot(s, &req, SERVICE_ACCESS);
		if (strcmp(secret ? secret->name : "-", rows[i].slot) != 0 ||
			strcmp(access ? access->name : "-", rows[i].access) != 0)
			fail_msg("%s%s: another slot", rows[i].target, rows[i].path);
	}
	services_free(set);
}

/* METHOD and path, a target header ("> ") or a query ("? "). */
static const struct {
	const char *service, *method, *path;
	bool refused;
} refusals[] = {
	{"anthropic", "POST", "/api/oauth/claude_cli/create_api_key", true},
	{"google", "POST", "/batch", true}, /* its content is other requests */
	{"google", "POST", "/batch/generativelanguage/v1beta", true},
	{"google", "POST", "/$rpc/x.v1alpha.AuthTokenService/CreateToken", true},
	{"google", "POST", "/v1beta/batches", false},
	{"anthropic", "POST", "/v1/messages", false},
	{"anthropic", "GET", "/api/oauth/profile", false},
	{"openai", "POST", "/v1/realtime/client_secrets", true},
	{"openai", "POST", "/v1/realtime/sessions", true},
	{"openai", "POST", "/v1/organization/admin_api_keys", true},
	{"openai", "POST", "/v1/organization/projects/p/service_accounts", true},
	{"openai", "POST", "/v1/realtime//../client_secrets", true},
	{"openai", "POST", "/v1/organization/projects/p//../service_accounts", true},
	{"openai", "POST", "/v1/responses", false},
	{"openai", "GET", "/v1/realtime", false},
	{"github", "GET", "/copilot_internal/v2/token", true},
	{"github", "GET", "/copilot_internal/user", false},
	{"github", "POST", "/user/keys", true},
	{"github", "GET", "/user/keys", false},
	{"github", "POST", "/user//../keys", true},
	{"github", "POST", "/user/.;x/../keys", true},
	{"github", "POST", "/user/;x/../keys", true},
	{"github", "POST", "/user/%20/../keys", true},
	{"github", "POST", "/user/gpg_keys", true},
	{"github", "POST", "/user/ssh_signing_keys", true},
	{"github", "POST", "/repos/o/r/keys", true},
	{"github", "POST", "/repos/o/r/actions/runners/registration-token", true},
	{"github", "POST", "/app/installations/1/access_tokens", true},
	{"github", "POST", "/repositories/1/keys", true},
	{"github", "POST", "/repositories/1/actions/runners/registration-token", true},
	{"github", "POST", "/repositories/1/actions/runners/remove-token", true},
	{"github", "POST", "/repositories/1/actions/runners/generate-jitconfig", true},
	{"github", "POST", "/organizations/1/actions/runners/registration-token", true},
	{"github", "POST", "/organizations/1/actions/runners/remove-token", true},
	{"github", "POST", "/organizations/1/actions/runners/generate-jitconfig", true},
	{"github", "POST", "/repositories/1/issues", false},
	{"github", "GET", "/organizations/1/actions/runners", false},
	{"github", "POST", "/repos/o/r/issues", false},
	{"gitlab", "POST", "/api/v4/personal_access_tokens/self/rotate", true},
	{"gitlab", "POST", "/api/v4/personal_access_tokens/7/rotate", true},
	{"gitlab", "GET", "/api/v4/personal_access_tokens/self", false},
	{"gitlab", "POST", "/api/v4/projects/g%2Fs%2Fp/access_tokens", true},
	{"gitlab", "POST", "/api/v4/projects/1/access_tokens/2/rotate", true},
	{"gitlab", "POST", "/api/v4/groups/g/access_tokens/self/rotate", true},
	{"gitlab", "POST", "/api/v4/projects/1/deploy_tokens", true},
	{"gitlab", "POST", "/api/v4/projects/1/deploy_keys", true},
	{"gitlab", "POST", "/api/v4/user/runners", true},
	{"gitlab", "POST", "/api/v4/runners", true},
	{"gitlab", "GET", "/api/v4/projects/1/triggers", true},
	{"gitlab", "GET", "/api/v4/admin/ci/variables", true},
	{"gitlab", "GET", "/api/v4/admin/ci/variables/NAME", true},
	{"gitlab", "GET", "/jwt/auth", true},
	{"gitlab", "POST", "/api/v4/projects/1/merge_requests", false},
	{"gitlab", "GET", "/api/v4/projects/g%2Fp", false},
	{"npm", "POST", "/-/npm/v1/tokens", true},
	{"npm", "PUT", "/-/user/org.couchdb.user:a", true},
	{"npm", "PUT", "/@scope%2fname", false},
	{"npm", "POST", "/-/npm/v1/security/advisories/bulk", false},
	{"google", "POST", "/v1alpha/auth_tokens", true},
	{"google", "POST", "/google.ai.generativelanguage.v1alpha.AuthTokenService/CreateToken",
		true},
	{"google", "POST", "/google.ai.generativelanguage.v1beta.GenerativeService/CountTokens",
		false},
	{"google", "POST", "/v1beta/models/gemini:generateContent", false},
	{"openrouter", "POST", "/api/v1/keys", true},
	{"openrouter", "POST", "/api/v1/chat/completions", false},
	{"xai", "POST", "/v1/realtime/client_secrets", true},
	{"aws", "> ", "secretsmanager.GetSecretValue", true},
	{"aws", "> ", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken", true},
	{"aws", "> ", "AmazonSSM.GetParametersByPath", true},
	{"aws", "> ", "AWSCognitoIdentityService.GetCredentialsForIdentity", true},
	{"aws", "> ", "DynamoDB_20120810.GetItem", false},
	{"aws", "> ", "secretsmanager.ListSecrets", false},
	{"aws", "? ", "Action=AssumeRoleWithWebIdentity&Version=2011-06-15", true},
	{"aws", "? ", "Action=GetSessionToken", true},
	{"aws", "? ", "Action=CreateAccessKey&UserName=a", true},
	{"aws", "? ", "session", true},
	{"aws", "? ", "session=", true},
	{"aws", "? ", "sessions=1", false},
	{"aws", "? ", "Action=GetCallerIdentity", false},
	{"aws", "GET", "/v1/authorization-token", true},
	{"aws", "GET", "/federation/credentials", true},
	{"aws", "GET", "/bucket/key", false},
};

static void endpoints_that_create_credentials_are_refused(void **state)
{
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		const struct service *s = services_by_name(set, refusals[i].service);
		struct slice text = slice_from_str(refusals[i].path);
		const struct service_refusal *r;

		if (refusals[i].method[0] == '>')
			r = service_refuses_header(s, slice_from_str("x-amz-target"), text);
		else if (refusals[i].method[0] == '?')
			r = service_refuses_query(s, text);
		else
			r = service_refuses_path(s, slice_from_str(refusals[i].method), text);
		if ((r != NULL) != refusals[i].refused)
			fail_msg("%s: %s %s", refusals[i].service, refusals[i].method,
				refusals[i].path);
	}
	services_free(set);
}

/* What clients of these services send every day: no rule may be in their way. */
static void everyday_requests_pass(void **state)
{
	static const struct {
		const char *service, *method, *path;
	} rows[] = {
		{"anthropic", "POST", "/v1/messages"},
		{"anthropic", "POST", "/v1/messages/count_tokens"},
		{"anthropic", "POST", "//v1/messages"}, /* a base URL with a slash at its end */
		{"anthropic", "GET", "/v1/models"},
		{"anthropic", "POST", "/v1/files"},
		{"anthropic", "GET", "/v1/messages/batches/msgbatch_01/results"},
		{"anthropic", "GET", "/api/oauth/usage"},
		{"anthropic", "GET", "/api/claude_cli/bootstrap"},
		{"openai", "POST", "/v1/chat/completions"},
		{"openai", "POST", "/v1/responses"},
		{"openai", "GET", "/v1/responses/resp_1/input_items"},
		{"openai", "POST", "/v1/audio/transcriptions"},
		{"openai", "GET", "/v1/organization/usage/completions"},
		{"openai", "POST", "/backend-api/codex/responses"},
		{"google", "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent"},
		{"google", "POST", "/v1/projects/p/locations/l/publishers/google/models/m:predict"},
		{"google", "POST", "/v1internal:loadCodeAssist"},
		{"google", "POST", "/upload/v1beta/files"},
		{"openrouter", "GET", "/api/v1/key"},
		{"openrouter", "GET", "/api/v1/models"},
		{"xai", "POST", "/v1/chat/completions"},
		{"github", "GET", "/"},
		{"github", "GET", "/user/keys"},
		{"github", "POST", "/graphql"},
		{"github", "POST", "/repos/o/r/pulls/1/reviews"},
		{"github", "GET", "/repos/o/r/keys"},
		{"github", "GET", "/repos/o/r/contents/src/user/keys"},
		{"github", "PUT", "/repos/o/r/contents/a%20b/%C3%A4.txt"},
		{"github", "GET", "/repos/o/r/compare/v1.0...v2.0"},
		{"github", "GET", "/repos/o/r/compare/main..x"},
		{"github", "GET", "/repos/o/r/git/ref/heads/feature%2Fa"},
		{"github", "GET", "/repositories/1/issues"},
		{"github", "POST", "/repos/o/r/actions/workflows/ci.yml/dispatches"},
		{"github", "GET", "/repos/o/r/actions/runners"},
		{"github", "GET", "/o/r.git/info/refs"},
		{"github", "POST", "/o/r.git/git-upload-pack"},
		{"github", "POST", "/o/r.git/info/lfs/objects/batch"},
		{"github", "GET", "/copilot_internal/user"},
		{"gitlab", "GET", "/api/v4/projects/g%2Fs%2Fp/repository/tree"},
		{"gitlab", "GET", "/api/v4/projects/1/repository/files/src%2Fmain.c/raw"},
		{"gitlab", "POST", "/api/v4/projects/1/repository/commits"},
		{"gitlab", "GET", "/api/v4/projects/1/repository/compare"},
		{"gitlab", "POST", "/api/v4/projects/g%2Fp/merge_requests/1/notes"},
		{"gitlab", "GET", "/api/v4/projects/1/access_tokens"},
		{"gitlab", "POST", "/api/v4/projects/1/pipeline"},
		{"gitlab", "POST", "/api/graphql"},
		{"gitlab", "GET", "/g/s/p.git/info/refs"},
		{"npm", "GET", "/@scope%2fname"},
		{"npm", "GET", "/name/-/name-1.0.0.tgz"},
		{"npm", "PUT", "/name"},
		{"npm", "GET", "/-/npm/v1/tokens"},
		{"npm", "GET", "/-/whoami"},
		{"npm", "GET", "/-/v1/search"},
		{"aws", "GET", "/"},
		{"aws", "GET", "/bucket/a//b/c.txt"},
		{"aws", "PUT", "/dir%20x/file;v=1.tar.gz"},
		{"aws", "GET", "/.well-known/x"},
		{"aws", "GET", "/2015-03-31/functions/"}, /* the list, not one function */
		{"aws", "GET", "/2015-03-31/functions"},
		{"aws", "POST", "/model/anthropic.claude-v1%3A0/invoke"},
		{"aws", "POST", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ap%2Fx/converse"},
	};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct service_refusal *r =
			service_refuses_path(services_by_name(set, rows[i].service),
				slice_from_str(rows[i].method), slice_from_str(rows[i].path));

		if (r)
			fail_msg("%s %s: %s", rows[i].method, rows[i].path, r->rule);
	}
	services_free(set);
}

/* Responses that are useful but for one field. What is not JSON there is refused, so files and
 * archives must not match. */
static void fields_with_credentials_are_captured(void **state)
{
	static const struct {
		const char *service, *method, *path;
		bool is_captured;
	} rows[] = {
		{"github", "GET", "/repos/o/r", true},
		{"github", "PATCH", "/repos/o/r.name", true},
		{"github", "GET", "/user/repos", true},
		{"github", "GET", "/orgs/o/repos", true},
		{"github", "GET", "/user/1/repos", true},
		{"github", "GET", "/user/1/starred", true},
		{"github", "GET", "/user/1/subscriptions", true},
		{"github", "GET", "/organizations/1/repos", true},
		{"github", "GET", "/organizations/1/team/2/repos", true},
		{"github", "GET", "/repositories/1/forks", true},
		{"github", "POST", "/repositories/1/generate", true},
		{"github", "POST", "/repositories/1/transfer", true},
		{"github", "GET", "/user/1", false},
		{"github", "GET", "/repositories/1/tarball", false},
		{"github", "GET", "/repos/o/r/contents/a.json", false},
		{"github", "GET", "/repos/o/r/tarball", false},
		{"github", "GET", "/repos/o/r/pulls", false},
		{"github", "GET", "/o/r/main/README", false},
		{"gitlab", "GET", "/api/v4/projects/1", true},
		{"gitlab", "GET", "/api/v4/projects/g%2Fs%2Fp", true},
		{"gitlab", "PUT", "/api/v4/groups/g", true},
		{"gitlab", "GET", "/api/v4/projects/1/repository/files/a/raw", false},
		{"gitlab", "GET", "/api/v4/projects/g%2Fp/repository/archive.tar.gz", false},
		{"gitlab", "GET", "/g/p/info/refs", false},
		{"openai", "POST", "/v1/responses", false},
	};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if ((service_captures(services_by_name(set, rows[i].service),
			     slice_from_str(rows[i].method), slice_from_str(rows[i].path)) != 0) !=
			rows[i].is_captured)
			fail_msg("%s: %s %s", rows[i].service, rows[i].method, rows[i].path);
	services_free(set);
}

/* Neighbours, other ports, and what strangers can put under the same domain. */
static void credentials_go_nowhere_else(void **state)
{
	static const char *const no[] = {"github.com:80", "github.com:22",
		"api.github.com.evil.example:443", "evil-github.com:443",
		"objects.githubusercontent.com:443", "user.github.io:443",
		"release-assets.githubusercontent.com:443", "storage.googleapis.com:443",
		"googleapis.com:443", "anthropic.com:443", "x.api.openai.com:443",
		"ec2-192-0-2-1.compute-1.amazonaws.com:443",
		"ec2-192-0-2-1.us-west-2.compute.amazonaws.com:443", "x.elb.amazonaws.com:443",
		"x.us-east-1.elb.amazonaws.com:443", "x.execute-api.us-east-1.amazonaws.com:443",
		"x.lambda-url.us-east-1.on.aws:443", "amazonaws.com:443", "docker.io:443",
		"a.b.docker.io:443", "example.com:443", "192.0.2.1:443"};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (find(set, no[i]))
			fail_msg("%s is %s's", no[i], find(set, no[i])->name);
	services_free(set);
}

static void only_https_and_only_sentinels_of_their_own(void **state)
{
	struct services *set = shipped();

	for (size_t i = 0; i < services_count(set); i++) {
		const struct service *s = services_get(set, i);

		for (size_t k = 0; k < s->n_slots; k++)
			for (size_t h = 0; h < s->slot[k].n_hosts; h++) {
				assert_int_equal(s->slot[k].host[h].form, NETRULE_NAME);
				assert_false(s->slot[k].host[h].deep);
				assert_int_equal(s->slot[k].host[h].ports.lo, 443);
				assert_int_equal(s->slot[k].host[h].ports.hi, 443);
			}
		for (size_t k = 0; k < services_count(set); k++)
			for (size_t e = 0; e < s->n_envs && k != i; e++) {
				AUTO_FREE char *value = xasprintf("Bearer %s", s->env[e].sentinel);

				assert_int_not_equal(
					service_judge(services_get(set, k), SERVICE_IN_HEADER,
						slice_from_str("authorization"),
						slice_from_str(value)),
					SERVICE_SENTINEL);
			}
	}
	services_free(set);
}

/* An agent believes that it is logged in by the variable that it reads itself: `codex exec` reads
 * CODEX_API_KEY and not OPENAI_API_KEY. tests/long/agents runs the real ones. */
static void agents_find_the_variables_that_they_read(void **state)
{
	static const char *const rows[][2] = {{"anthropic", "ANTHROPIC_API_KEY"},
		{"openai", "CODEX_API_KEY"}, {"openai", "OPENAI_API_KEY"},
		{"google", "GEMINI_API_KEY"}, {"amp", "AMP_API_KEY"},
		{"dashscope", "DASHSCOPE_API_KEY"}};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct service *s = services_by_name(set, rows[i][0]);
		bool found = false;

		for (size_t e = 0; e < s->n_envs; e++)
			found = found || strcmp(s->env[e].name, rows[i][1]) == 0;
		if (!found)
			fail_msg("%s has no %s", rows[i][0], rows[i][1]);
	}
	services_free(set);
}

/* H2: a key of an attacker would do for an upload. Forges and registries are a setting. */
static void model_apis_are_always_intercepted(void **state)
{
	static const struct {
		const char *host;
		bool want;
	} rows[] = {
		{"api.anthropic.com", true},
		{"mcp-proxy.anthropic.com", true},
		{"api.openai.com", true},
		{"chatgpt.com", true},
		{"generativelanguage.googleapis.com", true},
		{"us-central1-aiplatform.googleapis.com", true},
		{"cloudcode-pa.googleapis.com", true},
		{"api.mistral.ai", true},
		{"api.x.ai", true},
		{"openrouter.ai", true},
		{"opencode.ai", true},
		{"api.groq.com", true},
		{"api.perplexity.ai", true},
		{"api.factory.ai", true},
		{"app.factory.ai", true},
		{"api.studio.nebius.com", true},
		{"router.huggingface.co", true},
		{"api.githubcopilot.com", true},
		{"api.business.githubcopilot.com", true},
		{"ampcode.com", true},
		{"dashscope-intl.aliyuncs.com", true},
		{"api.github.com", false},
		{"github.com", false},
		{"gitlab.com", false},
		{"huggingface.co", false},
		{"s3.amazonaws.com", false},
	};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct service_request req = {.port = 443};
		const struct service *s;
		struct host host;

		assert_int_equal(host_from_wire(slice_from_str(rows[i].host), &host, NULL), 0);
		req.host = &host;
		s = services_find(set, &host, 443);
		if (!s || service_is_slot_host(s, &req, true) != rows[i].want)
			fail_msg("%s is %s", rows[i].host, rows[i].want ? "open" : "intercepted");
	}
	services_free(set);
}

/* A comment in each file says what it is, and behind each host why it is there. */
static void each_host_says_why_it_is_there(void **state)
{
	struct services *set = shipped();

	for (size_t i = 0; i < services_count(set); i++) {
		AUTO_FREE char *path = xasprintf("%s/%s.conf", folder, services_get(set, i)->name);
		AUTO_FREE char *text = NULL;
		size_t n;

		assert_int_equal(file_load(path, SERVICE_MAX_BYTES, &text, &n, NULL), 0);
		assert_int_equal(text[0], '#');
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			if ((strncmp(line, "host ", 5) == 0 || strncmp(line, "token ", 6) == 0) &&
				!strstr(line, "  # "))
				fail_msg("%s: '%s' does not say why", path, line);
	}
	services_free(set);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_services_never_meet),
		cmocka_unit_test(nothing_is_found_in_nothing),
		cmocka_unit_test(there_is_a_limit),
		cmocka_unit_test(one_bad_file_does_not_take_the_others_away),
		cmocka_unit_test(a_slot_says_that_it_is_always_intercepted),
		cmocka_unit_test(all_that_are_promised_are_there),
		cmocka_unit_test(requests_find_their_slots),
		cmocka_unit_test(endpoints_that_create_credentials_are_refused),
		cmocka_unit_test(fields_with_credentials_are_captured),
		cmocka_unit_test(everyday_requests_pass),
		cmocka_unit_test(credentials_go_nowhere_else),
		cmocka_unit_test(only_https_and_only_sentinels_of_their_own),
		cmocka_unit_test(agents_find_the_variables_that_they_read),
		cmocka_unit_test(model_apis_are_always_intercepted),
		cmocka_unit_test(each_host_says_why_it_is_there),
	};

	folder = argc > 1 ? argv[1] : "data/services";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
