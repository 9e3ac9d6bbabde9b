/* SPDX-License-Identifier: Apache-2.0 */
/* Configs as Docker writes them, and a container root in a directory of the test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/guest/base/file.h"
#include "src/guest/docker/oci.h"
#include "lib/base/mem.h"

#define CA "-----BEGIN CERTIFICATE-----\nT1VS\n-----END CERTIFICATE-----\n"
#define OWN "# own\n-----BEGIN CERTIFICATE-----\nT1dO\n-----END CERTIFICATE-----\n"
#define SYSTEM "# system\n-----BEGIN CERTIFICATE-----\nU1lT\n-----END CERTIFICATE-----\n"
#define CONFIG                                                                             \
	"{\"ociVersion\":\"1.0.2\",\"process\":{\"args\":[\"sh\"],\"env\":[\"PATH=/bin\"," \
	"\"CURL_CA_BUNDLE=/mine\"],\"rlimits\":[{\"hard\":18446744073709551615}]},"        \
	"\"root\":{\"path\":\"rootfs\"},\"mounts\":[{\"destination\":\"/"                  \
	"proc\",\"type\":\"proc\"},"                                                       \
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\"}],\"linux\":{\"x\":1e3}}"
#define BUNDLE_OF_DEBIAN "/etc/ssl/certs/ca-certificates.crt"

static char dir[] = "/tmp/sbx-oci-test-XXXXXX";
static struct oci_host host;
static char *bundle;

static char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void put(const char *name, const char *text)
{
	AUTO_FREE char *path = in_dir(name);
	struct err err;

	assert_int_equal(file_make_parents(path, &err), 0);
	assert_int_equal(file_replace(path, text, &err), 0);
}

static char *get(const char *name)
{
	AUTO_FREE char *path = in_dir(name);
	char *text = NULL;

	assert_int_equal(file_read(path, &text), 0);
	return text;
}

/* ---- arguments ---- */

static void expect_args(
	const char *line, enum oci_kind kind, const char *folder, const char *process)
{
	AUTO_FREE char *copy = xstrdup(line);
	char *argv[32] = {NULL}, *save = NULL;
	struct oci_args args;
	int argc = 0;

	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	oci_parse(argc, argv, &args);
	assert_int_equal(args.kind, kind);
	assert_string_equal(args.bundle, folder);
	if (process)
		assert_string_equal(args.process, process);
	else
		assert_null(args.process);
}

static void test_arguments(void **state)
{
	expect_args("runc", OCI_OTHER, ".", NULL);
	expect_args("runc --version", OCI_OTHER, ".", NULL);
	expect_args(
		"runc --root /run/r --log /l --log-format json create --bundle /b --pid-file /p id",
		OCI_CREATE, "/b", NULL);
	expect_args("runc --root create delete --force id", OCI_OTHER, ".", NULL);
	expect_args(
		"runc --log=/l --systemd-cgroup run --bundle=/b --keep id", OCI_RUN, "/b", NULL);
	expect_args("runc run -b /b id", OCI_RUN, "/b", NULL);
	expect_args("runc create id --bundle /not-ours", OCI_CREATE, ".", NULL);
	expect_args("runc --root /r exec --process /p.json --detach --pid-file /x id", OCI_EXEC,
		".", "/p.json");
	expect_args("runc exec id sh -p x", OCI_EXEC, ".", NULL);
	expect_args("runc create --bundle", OCI_CREATE, ".", NULL);
	expect_args("runc state id", OCI_OTHER, ".", NULL);
}

/* ---- edits ---- */

static json_t *edit(const char *config, const struct oci_add *add)
{
	AUTO_FREE char *text = NULL;
	json_t *j;

	assert_int_equal(oci_edit(config, add, &text), 0);
	j = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
	if (!j)
		fail_msg("not JSON: %s", text);
	return j;
}

static const char *env_at(json_t *j, size_t i)
{
	json_t *env = json_object_get(json_object_get(j, "process"), "env");

	return json_string_value(json_array_get(env, i));
}

static void test_edit(void **state)
{
	struct oci_add add = {.folder = "/f", .bundle = "/f/b", .n_binds = 1, .binds = {"/etc/x"}};
	AUTO_FREE char *text = NULL;
	json_t *j, *mounts;

	env_put(&add.env, "A=\"1\"\\\n");
	env_put(&add.env, "CURL_CA_BUNDLE=/ours");
	env_put(&add.env, "PATHS=2");
	j = edit(CONFIG, &add);
	assert_string_equal(env_at(j, 0), "A=\"1\"\\\n");
	assert_string_equal(env_at(j, 1), "PATHS=2");
	assert_string_equal(env_at(j, 2), "PATH=/bin");
	assert_string_equal(env_at(j, 3), "CURL_CA_BUNDLE=/mine");
	assert_null(env_at(j, 4));
	mounts = json_object_get(j, "mounts");
	assert_int_equal(json_array_size(mounts), 4);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(mounts, 2), "source")), "/f");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(mounts, 2), "destination")),
		OCI_PLACE);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(mounts, 3), "destination")),
		"/etc/x");
	json_decref(j);
	/* The original text is unchanged, including large numbers. */
	assert_int_equal(oci_edit(CONFIG, &add, &text), 0);
	assert_non_null(strstr(text, "18446744073709551615"));
	assert_non_null(strstr(text, "{\"x\":1e3}"));
	env_done(&add.env);
}

static void test_edit_without_env(void **state)
{
	static const char *const configs[] = {"{\"process\":{}}", "{\"process\":{ }}",
		"{\"process\":{\"cwd\":\"/\"}}", "{\"process\":{\"env\":[]}}",
		"{\"process\":{\"env\":[ ]}}"};
	struct oci_add add = {0};

	env_put(&add.env, "A=1");
	for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
		json_t *j = edit(configs[i], &add);

		assert_string_equal(env_at(j, 0), "A=1");
		json_decref(j);
	}
	env_done(&add.env);
}

static void test_edit_refused(void **state)
{
	static const char *const bad[] = {
		"", "[]", "{}", "{\"process\":1}", "{\"process\":{}", CONFIG "x"};
	struct oci_add add = {0};
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(oci_edit(bad[i], &add, &text), -EBADMSG);
}

static void test_dev(void **state)
{
	assert_true(oci_has_dev(CONFIG));
	assert_false(oci_has_dev("{\"mounts\":[{\"destination\":\"/dev\",\"type\":\"bind\"}]}"));
	assert_false(oci_has_dev("{\"mounts\":[{\"destination\":\"/dev\",\"type\":\"tmpfs\"},"
				 "{\"destination\":\"/dev\",\"type\":\"bind\"}]}"));
	assert_false(oci_has_dev("{\"mounts\":[]}"));
	assert_false(oci_has_dev("{}"));
	assert_false(oci_has_dev("x"));
}

/* ---- files ---- */

static int prepare(enum oci_kind kind, struct err *err)
{
	struct oci_args args = {.kind = kind, .bundle = bundle};

	return oci_prepare(&host, &args, err);
}

/* The bundle that the container sees at OCI_PLACE; "" if there is none. */
static char *seen_bundle(void)
{
	AUTO_FREE char *text = get("c/config.json"), *path = NULL;
	json_t *j = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
	json_t *m = json_array_get(json_object_get(j, "mounts"), 2);
	const char *source = json_string_value(json_object_get(m, "source"));
	char *ret = NULL;

	path = xasprintf("%s/ca-bundle.pem", source ? source : "/nonexistent");
	if (file_read(path, &ret) < 0)
		ret = xstrdup("");
	json_decref(j);
	return ret;
}

static bool is_bound(const char *place)
{
	AUTO_FREE char *text = get("c/config.json");
	AUTO_FREE char *part = xasprintf("{\"destination\":\"%s\"", place);

	return strstr(text, part) != NULL;
}

static void start(enum oci_kind kind)
{
	struct err err = {0};

	put("c/config.json", CONFIG);
	if (prepare(kind, &err) < 0)
		fail_msg("%s", err.text);
}

static void test_own_bundle(void **state)
{
	AUTO_FREE char *seen = NULL, *config = NULL;

	put("c/rootfs" BUNDLE_OF_DEBIAN, OWN);
	start(OCI_CREATE);
	seen = seen_bundle();
	assert_non_null(strstr(seen, OWN));
	assert_non_null(strstr(seen, CA));
	assert_null(strstr(seen, SYSTEM));
	assert_true(is_bound(BUNDLE_OF_DEBIAN));
	assert_false(is_bound("/etc/ssl/cert.pem"));
	config = get("c/config.json");
	assert_non_null(strstr(config, "\"SSL_CERT_FILE=/dev/sbx/ca-bundle.pem\""));
	assert_non_null(strstr(config, "\"GH_TOKEN=sentinel\""));
	assert_non_null(strstr(config, "\"CURL_CA_BUNDLE=/mine\""));
	assert_null(strstr(config, "CURL_CA_BUNDLE=/dev"));
}

/* In a build, and where a program of the container would rename onto the bundle. */
static void test_no_bind_where_it_would_break(void **state)
{
	AUTO_FREE char *dpkg = in_dir("c/rootfs/usr/bin/dpkg");

	put("c/rootfs" BUNDLE_OF_DEBIAN, OWN);
	start(OCI_RUN);
	assert_false(is_bound(BUNDLE_OF_DEBIAN));
	assert_true(is_bound(OCI_PLACE));
	put("c/rootfs/usr/bin/dpkg", "");
	start(OCI_CREATE);
	assert_false(is_bound(BUNDLE_OF_DEBIAN));
	assert_true(is_bound(OCI_PLACE));
	(void)unlink(dpkg);
}

static void test_no_bundle(void **state)
{
	AUTO_FREE char *path = in_dir("c/rootfs" BUNDLE_OF_DEBIAN), *seen = NULL;

	(void)unlink(path);
	start(OCI_CREATE);
	seen = seen_bundle();
	assert_non_null(strstr(seen, SYSTEM));
	assert_non_null(strstr(seen, CA));
	assert_false(is_bound(BUNDLE_OF_DEBIAN));
	assert_int_equal(access(path, F_OK), -1);
}

/* A symlink of the container does not leave its root. */
static void test_links_stay_inside(void **state)
{
	AUTO_FREE char *path = in_dir("c/rootfs" BUNDLE_OF_DEBIAN), *secret = in_dir("secret");
	AUTO_FREE char *seen = NULL;

	put("secret", "secret");
	(void)unlink(path);
	assert_int_equal(symlink(secret, path), 0);
	start(OCI_CREATE);
	seen = seen_bundle();
	assert_null(strstr(seen, "secret"));
	(void)unlink(path);
	assert_int_equal(symlink("../../../../../../../../../../secret", path), 0);
	start(OCI_CREATE);
	free(seen);
	seen = seen_bundle();
	assert_null(strstr(seen, "secret"));
	(void)unlink(path);
}

static void test_same_bundle_same_folder(void **state)
{
	AUTO_FREE char *first = NULL, *second = NULL;

	start(OCI_CREATE);
	first = get("c/config.json");
	start(OCI_CREATE);
	second = get("c/config.json");
	assert_string_equal(first, second);
}

/* Fail safe: the config is unchanged. */
static void test_failure_changes_nothing(void **state)
{
	static const char broken[] = "{\"process\":{}";
	struct oci_host full = host;
	AUTO_FREE char *text = NULL, *file = in_dir("ca");
	struct oci_args args = {.kind = OCI_CREATE, .bundle = bundle};
	struct err err = {0};

	put("c/config.json", broken);
	assert_true(prepare(OCI_CREATE, &err) < 0);
	text = get("c/config.json");
	assert_string_equal(text, broken);
	put("c/config.json", CONFIG);
	full.dir = file; /* a file, in which no directory can be created */
	assert_true(oci_prepare(&full, &args, &err) < 0);
	free(text);
	text = get("c/config.json");
	assert_string_equal(text, CONFIG);
}

static void test_exec(void **state)
{
	AUTO_FREE char *process = in_dir("p.json"), *with = NULL, *without = NULL;
	struct oci_args args = {.kind = OCI_EXEC, .bundle = bundle, .process = process};
	struct err err;

	start(OCI_CREATE);
	put("p.json", "{\"env\":[\"PATH=/bin\"]}");
	assert_int_equal(oci_prepare(&host, &args, &err), 0);
	with = get("p.json");
	assert_non_null(strstr(with, "\"SSL_CERT_FILE=/dev/sbx/ca-bundle.pem\""));
	assert_non_null(strstr(with, "\"GH_TOKEN=sentinel\""));
	/* A container that was created without the directory has no file to point to. */
	put("c/config.json", CONFIG);
	put("p.json", "{\"env\":[\"PATH=/bin\"]}");
	assert_int_equal(oci_prepare(&host, &args, &err), 0);
	without = get("p.json");
	assert_null(strstr(without, "SSL_CERT_FILE"));
	assert_non_null(strstr(without, "GH_TOKEN"));
}

static void test_without_ca(void **state)
{
	struct oci_args args = {.kind = OCI_CREATE, .bundle = bundle};
	struct oci_host none = {.ca = "/nonexistent",
		.variables = "/nonexistent",
		.bundle = "/nonexistent",
		.dir = "/nonexistent"};
	AUTO_FREE char *text = NULL;
	struct err err;

	put("c/config.json", CONFIG);
	assert_int_equal(oci_prepare(&none, &args, &err), 0);
	text = get("c/config.json");
	assert_string_equal(text, CONFIG);
}

static void test_folders_are_bounded(void **state)
{
	struct err err = {0};
	unsigned made = 0;

	for (unsigned i = 0; i < OCI_MAX_FOLDERS + 3; i++) {
		AUTO_FREE char *own = xasprintf("# %u\n" OWN, i);

		put("c/rootfs" BUNDLE_OF_DEBIAN, own);
		put("c/config.json", CONFIG);
		made += prepare(OCI_CREATE, &err) == 0;
	}
	assert_true(made < OCI_MAX_FOLDERS);
	assert_non_null(strstr(err.text, "different bundles"));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	bundle = in_dir("c");
	host = (struct oci_host){.ca = in_dir("ca"),
		.variables = in_dir("variables"),
		.bundle = in_dir("system"),
		.dir = in_dir("oci")};
	put("ca", CA);
	put("variables", "GH_TOKEN=sentinel\n");
	put("system", SYSTEM);
	return 0;
}

static int teardown(void **state)
{
	free(bundle);
	free((char *)host.ca);
	free((char *)host.variables);
	free((char *)host.bundle);
	free((char *)host.dir);
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_edit),
		cmocka_unit_test(test_edit_without_env),
		cmocka_unit_test(test_edit_refused),
		cmocka_unit_test(test_dev),
		cmocka_unit_test(test_own_bundle),
		cmocka_unit_test(test_no_bind_where_it_would_break),
		cmocka_unit_test(test_no_bundle),
		cmocka_unit_test(test_links_stay_inside),
		cmocka_unit_test(test_same_bundle_same_folder),
		cmocka_unit_test(test_failure_changes_nothing),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_without_ca),
		cmocka_unit_test(test_folders_are_bounded),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
