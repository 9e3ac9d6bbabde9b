/* SPDX-License-Identifier: Apache-2.0 */
/* A real VM (net_rig.h) with a CA: which programs then trust a server in the guest with a leaf of
 * that CA, which of them without any variable, and the same in containers and builds. Needs a
 * template directory in SBX_TEST_TEMPLATE; argv[1] is sbx-guest. SBX_TEST_FILTER selects tests;
 * those with Docker take minutes and run if SBX_LONG is set (tests/long/machines). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/pem.h>
#include "src/guest/net/test/net_rig.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/secret/mint/mint.h"

#define STEP_MS 240000
#define DOCKER_MS 400000
#define URL "https://localhost:4443/"

static const char *template, *guest_path;
static struct rig rig;
static struct mint *mints[2];
static char *cas[2];

static int try_script(const char *script, unsigned timeout_ms)
{
	return rig_run(&rig, script, timeout_ms);
}

static void run(const char *script, unsigned timeout_ms)
{
	uint64_t t = clock_mono_ms();
	int status = try_script(script, timeout_ms);

	print_message("%u ms\n", (unsigned)(clock_mono_ms() - t));
	if (status != 0) {
		print_message("%s\n%s\n", script, rig.output);
		fail_msg("status %d", status);
	}
}

static void must_have(const char *part)
{
	if (!strstr(rig.output, part))
		fail_msg("no \"%s\" in:\n%s", part, rig.output);
}

static void must_lack(const char *part)
{
	if (strstr(rig.output, part))
		fail_msg("\"%s\" is in:\n%s", part, rig.output);
}

/* The leaf and its key as PEM. */
static char *leaf_pem(struct mint *m)
{
	BIO *bio = BIO_new(BIO_s_mem());
	struct slice der;
	struct host host;
	X509 *x = NULL;
	char *text, *ret;
	long n;

	assert_int_equal(host_from_wire(slice_from_str("localhost"), &host, NULL), 0);
	assert_int_equal(mint_leaf(m, &host, clock_wall_ms() / 1000, &der, NULL), 0);
	assert_int_equal(mint_x509(m, der, &x), 0);
	assert_int_equal(PEM_write_bio_X509(bio, x), 1);
	assert_int_equal(
		PEM_write_bio_PrivateKey(bio, mint_leaf_key(m), NULL, NULL, 0, NULL, NULL), 1);
	n = BIO_get_mem_data(bio, &text);
	ret = xstrndup(text, (size_t)n);
	X509_free(x);
	BIO_free(bio);
	return ret;
}

/* A server with a leaf of that mint, which replaces the previous one. */
static void serve(struct mint *m)
{
	AUTO_FREE char *leaf = leaf_pem(m);
	AUTO_FREE char *script = xasprintf(
		"cat >/tmp/leaf.pem <<'END'\n%sEND\n"
		"[ -f /tmp/server.pid ] && kill $(cat /tmp/server.pid)\n"
		"setsid openssl s_server -accept 4443 -www -cert /tmp/leaf.pem -key /tmp/leaf.pem "
		"</dev/null >/tmp/server.log 2>&1 & echo $! >/tmp/server.pid\n"
		"for i in $(seq 100); do "
		"  (exec 3<>/dev/tcp/127.0.0.1/4443) 2>/dev/null && exit 0; sleep 0.1; done; exit "
		"1",
		leaf);

	run(script, STEP_MS);
}

/* Before, so that the rest is meaningful. */
static void not_without(void **state)
{
	serve(mints[0]);
	assert_int_equal(try_script("curl -sS " URL, STEP_MS), 60);
	assert_int_not_equal(try_script("env | grep -q NODE_EXTRA_CA_CERTS", STEP_MS), 0);
}

static void told(void **state)
{
	char *env[] = {(char *)"GH_TOKEN=ghp_proxymanaged", NULL};
	uint64_t t = clock_mono_ms();

	rig_trust(&rig, cas[0], env, 1);
	print_message("/trust answered after %u ms", (unsigned)(clock_mono_ms() - t));
	t = clock_mono_ms();
	rig_trust(&rig, cas[0], env, 1);
	print_message(", asked again %u ms\n", (unsigned)(clock_mono_ms() - t));
	run("env; sudo -u agent sudo env | sed s/^/sudo:/; sudo -n true", STEP_MS);
	must_have("\nGH_TOKEN=ghp_proxymanaged\n");
	must_have("\nNODE_EXTRA_CA_CERTS=/run/sbx/ca.pem\n");
	must_have("-Djavax.net.ssl.trustStore=/run/sbx/cacerts\n");
	must_have("JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=");
	must_have("sudo:SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\n");
	must_have("sudo:GH_TOKEN=ghp_proxymanaged\n");
}

#define PYTHON                                                                                     \
	"python3 -c 'import urllib.request as u; print(\"python\", u.urlopen(\"" URL "\").status)" \
	"'"

static void programs(void **state)
{
	run("curl -sS -o /dev/null -w 'curl %{http_code}\\n' " URL ";"
	    "python3 -c 'import urllib.request as u; from pip._vendor import requests as r\n"
	    "print(\"python\", u.urlopen(\"" URL "\").status)\n"
	    "print(\"requests\", r.get(\"" URL "\").status_code)';"
	    "node -e 'fetch(\"" URL "\").then(r => console.log(\"node\", r.status)).then(() =>"
	    "require(\"https\").get(\"" URL "\", r => "
	    "{ console.log(\"https\", r.statusCode); r.destroy() }))';"
	    /* It is not a repository, but that is detected only after the handshake. */
	    "git ls-remote " URL "x 2>&1 | grep -v warning",
		STEP_MS);
	must_have("curl 200\n");
	must_have("python 200\n");
	must_have("requests 200\n");
	must_have("node 200\n");
	must_have("https 200\n");
	must_have("x/info/refs not valid");
}

/* The system's own store: a new login, cron, a daemon. */
static void programs_without_variables(void **state)
{
	run("clean() { env -i PATH=$PATH HOME=/root \"$@\"; };"
	    "clean curl -sS -o /dev/null -w 'curl %{http_code}\\n' " URL ";"
	    "clean " PYTHON ";"
	    "clean git ls-remote " URL "x 2>&1 | grep -v warning;"
	    "clean openssl s_client -connect localhost:4443 -verify_return_error "
	    "-verify_hostname localhost </dev/null 2>/dev/null | grep 'Verify return';"
	    /* by the hash alone */
	    "clean openssl verify -no-CAfile -CApath /etc/ssl/certs /tmp/leaf.pem",
		STEP_MS);
	must_have("curl 200\n");
	must_have("python 200\n");
	must_have("x/info/refs not valid");
	must_have("Verify return code: 0 (ok)");
	must_have("leaf.pem: OK");
}

/* A root of the guest's own files: plain has no bundle, own has its own, tools also has programs
 * that would rewrite it. */
static void docker_images(void **state)
{
	run("set -e; mkdir -p /tmp/r; cd /tmp/r; mkdir -p bin etc/ssl/certs tmp usr/bin\n"
	    "for f in bash curl env grep mv sleep touch; do cp -L $(command -v $f) bin/; done\n"
	    "ldd bin/* | grep -o '/[^ ]*\\.so[^ ]*' | sort -u | while read l; do\n"
	    "  mkdir -p .${l%/*}; cp -L $l .$l; done\n"
	    "ln -s bash bin/sh\n"
	    "tar c . | docker import -c 'ENV PATH=/bin' - plain; docker create --name cc plain sh\n"
	    /* own: another certificate, so that its bundle differs from the guest's */
	    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null"
	    " -subj /CN=own -out etc/ssl/certs/ca-certificates.crt 2>/dev/null\n"
	    "docker cp etc/ssl/certs/ca-certificates.crt cc:/etc/ssl/certs/; docker commit cc own\n"
	    "touch usr/bin/dpkg; docker cp usr/bin/dpkg cc:/usr/bin/; docker commit cc tools",
		DOCKER_MS);
}

#define CURL "curl -sS -o /dev/null -w '%{http_code}\\n' " URL
#define RUN "docker run --rm --network host "

static void docker_containers(void **state)
{
	run(RUN "plain " CURL "; " RUN "plain env; " RUN "-e GH_TOKEN=mine plain env | grep GH_",
		DOCKER_MS);
	must_have("200\n");
	must_have("CURL_CA_BUNDLE=/dev/sbx/ca-bundle.pem\n");
	must_have("GH_TOKEN=ghp_proxymanaged\n");
	must_have("GH_TOKEN=mine\n");
	/* Without a variable if the bundle can be covered, and its own certificate is still
	 * there. */
	run(RUN "own env -i /bin/" CURL ";" RUN
		"own grep -c BEGIN /etc/ssl/certs/ca-certificates.crt /dev/sbx/ca-bundle.pem",
		DOCKER_MS);
	must_have("200\n/etc/ssl/certs/ca-certificates.crt:2\n/dev/sbx/ca-bundle.pem:2\n");
	/* A container that may write it can, and has the variables. */
	run(RUN "tools sh -c \"" CURL "; cd /etc/ssl/certs && touch n && mv n ca-certificates.crt"
		" && echo moved\"",
		DOCKER_MS);
	must_have("200\nmoved\n");
	run("docker run -d --name dd --network host plain sleep 600 >/dev/null; docker exec "
	    "dd " CURL "; docker exec dd env; docker rm -f dd",
		DOCKER_MS);
	must_have("200\n");
	must_have("SSL_CERT_FILE=/dev/sbx/ca-bundle.pem\n");
	must_have("GH_TOKEN=ghp_proxymanaged\n");
	run("cat /var/log/dockerd.log", STEP_MS);
	must_lack("sbx: container starts without");
	/* Fail safe. */
	run("rm -rf /run/sbx/oci; touch /run/sbx/oci;" RUN "own sh -c 'env; echo started';"
	    "rm /run/sbx/oci; grep ^sbx: /var/log/dockerd.log",
		DOCKER_MS);
	must_have("started\nsbx: container starts without the sandbox CA: ");
	must_lack("SSL_CERT_FILE");
}

/* Each kind of builder; the image contains only what RUN wrote. */
static void build(const char *kind, const char *image)
{
	AUTO_FREE char *script = xasprintf(
		"set -e; rm -rf /tmp/b; mkdir -p /tmp/b; cd /tmp/b\n"
		"printf 'FROM %s\\nRUN "
		"curl -sS -o /tmp/page " URL " && env >/tmp/env\\n' >Dockerfile\n"
		"%s docker build --network host -t built . >log 2>&1 || { cat log; exit 1; }\n"
		"docker save built -o i.tar; tar xf i.tar\n"
		"if docker inspect -f '{{.Config.Env}}' built | grep -E 'SSL_|GH_'; then exit 1; "
		"fi\n"
		/* the last layer */
		"l=$(python3 -c 'import json; "
		"print(json.load(open(\"manifest.json\"))[0][\"Layers\"][-1])')\n"
		"echo layer:; tar tf $l\n"
		"tar xOf $l tmp/env | grep SSL_CERT_FILE",
		image, kind);

	run(script, DOCKER_MS);
	must_have("tmp/page\n");
	must_have("\nSSL_CERT_FILE=/dev/sbx/ca-bundle.pem\n");
	must_lack("dev/sbx\n");
	must_lack("dev/sbx/\n");
	must_lack("ca-certificates.crt");
	print_message("%s%s", kind, strstr(rig.output, "layer:"));
}

static void docker_builds(void **state)
{
	build("DOCKER_BUILDKIT=1", "plain");
	build("DOCKER_BUILDKIT=0", "own");
}

/* The CA of the next start, also after the user has run Debian's program. */
static void another_one(void **state)
{
	run("update-ca-certificates >/dev/null 2>&1; curl -sS -o /dev/null " URL
	    "; grep -c '^# sbx' /etc/ssl/certs/ca-certificates.crt",
		STEP_MS);
	must_have("1\n");
	rig_trust(&rig, cas[1], NULL, 0);
	assert_int_equal(try_script("curl -sS " URL, STEP_MS), 60);
	serve(mints[1]);
	run("curl -sS -o /dev/null " URL "; env", STEP_MS);
	must_lack("GH_TOKEN");
	rig_trust(&rig, "", NULL, 0);
	assert_int_equal(try_script("curl -sS " URL, STEP_MS), 60);
	run("env; ls /etc/ssl/certs /run/sbx; openssl rehash -v /etc/ssl/certs | grep -i sbx; true",
		STEP_MS);
	must_lack("SSL_CERT_FILE");
	must_lack("sbx.pem");
	must_lack("cacerts");
}

static int boot(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(mints); i++) {
		struct err err;

		if (mint_new(i ? "b" : "a", clock_wall_ms() / 1000, &mints[i], &err) < 0)
			return -1;
		cas[i] = slice_dup(mint_ca_pem(mints[i]));
	}
	rig_start(&rig, template, guest_path, 1024ULL << 20);
	return 0;
}

static int halt(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(mints); i++) {
		mint_free(mints[i]);
		free(cas[i]);
	}
	rig_stop(&rig);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_without),
		cmocka_unit_test(told),
		cmocka_unit_test(programs),
		cmocka_unit_test(programs_without_variables),
		cmocka_unit_test(docker_images),
		cmocka_unit_test(docker_containers),
		cmocka_unit_test(docker_builds),
		cmocka_unit_test(another_one),
	};

	template = getenv("SBX_TEST_TEMPLATE");
	if (!template || argc < 2) {
		printf("SBX_TEST_TEMPLATE names no template: skipped\n");
		return 77;
	}
	guest_path = argv[1];
	cmocka_set_message_output(CM_OUTPUT_STDOUT);
	cmocka_set_test_filter(getenv("SBX_TEST_FILTER"));
	rig_leave_docker_out(tests, ARRAY_LEN(tests));
	return cmocka_run_group_tests(tests, boot, halt);
}
