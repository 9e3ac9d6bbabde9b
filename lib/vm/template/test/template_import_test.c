/* SPDX-License-Identifier: Apache-2.0 */
/* A template as one file: from one installation to another, and everything that a file may lie
 * about. */
#include "template_fixture.h"

#include <dirent.h>
#include <endian.h>
#include <openssl/sha.h>
#include <zstd.h>

#define SEED 20

static void must(int r, const struct err *err)
{
	if (r < 0)
		fail_msg("%s", err_text(err, r));
}

/* The whole file in memory. */
struct blob {
	uint8_t *p;
	size_t n;
};

static void blob_done(struct blob *b)
{
	free(b->p);
}
#define AUTO_BLOB CLEANUP(blob_done)

static void export_to(const struct template *t, struct blob *ret)
{
	AUTO_FREE char *path = xasprintf("%s/exported", fixture_dir);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct err err = {0};
	struct stat st;

	must(template_export(t, fd, NULL, NULL, &err), &err);
	assert_int_equal(fstat(fd, &st), 0);
	ret->n = (size_t)st.st_size;
	ret->p = xmalloc(ret->n);
	assert_int_equal(pread(fd, ret->p, ret->n, 0), ret->n);
}

/* The user's part: what the file was allowed, and what it asked for. */
static int verdict;
static char asked[128];

static int answer(void *arg, const char *name, const char *id, struct err *err)
{
	(void)snprintf(asked, sizeof(asked), "%s %s", name, id);
	return verdict < 0 ? err_set(err, verdict, "the user did not agree") : 0;
}

static struct template_naming naming = {.may_take = answer};

static int import_from(struct slice s, const char *name, struct template *ret, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/to-import", fixture_dir);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(fd_write_all(fd, s.p, s.n), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	naming.name = name;
	return template_import(fd, &naming, NULL, NULL, ret, err);
}

/* Nothing published, nothing left over. */
static void assert_store_empty(void)
{
	AUTO_FREE char *store = template_store(NULL);
	DIR *d = opendir(store);

	for (struct dirent *e; d && (e = readdir(d));)
		if (template_is_id(e->d_name) || strncmp(e->d_name, ".new.", 5) == 0)
			fail_msg("%s is in the store", e->d_name);
	if (d)
		closedir(d);
}

static void make_child(struct template *ret)
{
	AUTO_TEMPLATE struct template base = {0};

	fixture_publish("base", SEED, &base);
	fixture_child("tools", &base, SEED, ret);
}

static void second_installation_has_the_same(void **state)
{
	AUTO_TEMPLATE struct template t = {0}, other = {0}, renamed = {0};
	AUTO_BLOB struct blob a = {0}, b = {0}, c = {0};
	struct err err = {0};
	struct stat st;

	make_child(&t);
	export_to(&t, &a);
	export_to(&t, &b);
	fixture_at("second");
	must(import_from(slice_of(a.p, a.n), NULL, &other, &err), &err);
	assert_string_equal(other.id, t.id);
	assert_true(template_same_files(
		json_object_get(t.manifest, "files"), json_object_get(other.manifest, "files")));
	must(template_verify("tools", NULL, NULL, &err), &err);
	export_to(&other, &c);
	assert_true(slice_eq(slice_of(a.p, a.n), slice_of(b.p, b.n)));
	assert_true(slice_eq(slice_of(a.p, a.n), slice_of(c.p, c.n)));
	/* Holes are holes again, and a name can be given. */
	assert_int_equal(stat(other.disks[TEMPLATE_ROOT].files[0], &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size);
	must(import_from(slice_of(a.p, a.n), "mine", &renamed, &err), &err);
	assert_string_equal(renamed.dir, other.dir);
}

/* A file that says "debian" replaced the user's debian, and "Loaded template" named another one. */
static void the_name_in_the_file_needs_a_yes(void **state)
{
	AUTO_TEMPLATE struct template t = {0}, no = {0}, yes = {0}, typed = {0};
	AUTO_BLOB struct blob a = {0};
	char want[128];
	struct err err = {0};

	make_child(&t);
	export_to(&t, &a);
	fixture_at("second");
	verdict = -EEXIST;
	assert_int_equal(import_from(slice_of(a.p, a.n), NULL, &no, &err), -EEXIST);
	verdict = 0;
	assert_store_empty();
	(void)snprintf(want, sizeof(want), "tools %s", t.id);
	assert_string_equal(asked, want);
	naming.may_take = NULL;
	assert_int_equal(import_from(slice_of(a.p, a.n), NULL, &no, &err), -EINVAL);
	naming.may_take = answer;
	assert_store_empty();
	must(import_from(slice_of(a.p, a.n), NULL, &yes, &err), &err);
	assert_string_equal(naming.given, "tools");
	assert_true(json_is_true(json_object_get(yes.manifest, "loaded")));
	/* A typed name is the user's own: no question, and it is the one that was given. */
	verdict = -EEXIST;
	must(import_from(slice_of(a.p, a.n), "mine", &typed, &err), &err);
	verdict = 0;
	assert_string_equal(naming.given, "mine");
}

static void every_changed_byte_is_refused(void **state)
{
	AUTO_TEMPLATE struct template t = {0}, no = {0};
	AUTO_BLOB struct blob a = {0};
	unsigned seed = 4711;

	make_child(&t);
	export_to(&t, &a);
	fixture_at("second");
	for (unsigned i = 0; i < 200; i++) {
		size_t at = (size_t)rand_r(&seed) % a.n;
		uint8_t bits = (uint8_t)(1u << (rand_r(&seed) % 8));
		struct err err = {0};

		a.p[at] ^= bits;
		if (import_from(slice_of(a.p, a.n), NULL, &no, &err) == 0)
			fail_msg("byte %zu", at);
		a.p[at] ^= bits;
	}
	/* The sum itself, and what no other hash is about: the facts of the manifest. */
	for (size_t at = 8; at < a.n; at = at == 800 ? a.n - TEMPLATE_HASH_LEN : at + 1) {
		struct err err = {0};

		a.p[at] ^= 1;
		if (import_from(slice_of(a.p, a.n), NULL, &no, &err) == 0)
			fail_msg("byte %zu", at);
		a.p[at] ^= 1;
	}
	assert_store_empty();
}

static void every_cut_is_refused(void **state)
{
	AUTO_TEMPLATE struct template t = {0}, no = {0};
	AUTO_BLOB struct blob a = {0};
	struct err err = {0};

	make_child(&t);
	export_to(&t, &a);
	fixture_at("second");
	for (size_t n = 0; n < a.n; n += n < 40 || a.n - n < 40 ? 1 : 997)
		assert_int_equal(import_from(slice_of(a.p, n), NULL, &no, &err), -EBADMSG);
	a.p = xrealloc(a.p, a.n + 1);
	a.p[a.n] = 0;
	assert_int_equal(import_from(slice_of(a.p, a.n + 1), NULL, &no, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "the checksum is wrong"));
	assert_store_empty();
}

/* ---- liars that get their sums right ---- */

struct liar {
	struct wr wr;
	uint8_t *buf;
};

static void liar_begin(struct liar *l, const json_t *manifest)
{
	AUTO_FREE char *text = json_dumps(manifest, JSON_COMPACT | JSON_SORT_KEYS);

	l->buf = xmalloc(8 << 20);
	l->wr = wr_init(l->buf, 8 << 20);
	wr_bytes(&l->wr, slice_of(TEMPLATE_MAGIC, TEMPLATE_MAGIC_LEN));
	wr_u32(&l->wr, (uint32_t)strlen(text));
	wr_bytes(&l->wr, slice_from_str(text));
}

static void liar_frame(struct liar *l, struct slice raw)
{
	size_t max = ZSTD_compressBound(raw.n);
	AUTO_FREE uint8_t *packed = xmalloc(max);
	size_t n = ZSTD_compress(packed, max, raw.p, raw.n, 1);

	wr_u32(&l->wr, (uint32_t)raw.n);
	wr_u32(&l->wr, (uint32_t)n);
	wr_bytes(&l->wr, slice_of(packed, n));
}

static void assert_refused(struct liar *l, int want, const char *why)
{
	AUTO_TEMPLATE struct template no = {0};
	uint8_t sum[SHA256_DIGEST_LENGTH];
	struct err err = {0};
	int r;

	SHA256(l->buf, l->wr.n, sum);
	wr_bytes(&l->wr, slice_of(sum, sizeof(sum)));
	assert_int_equal(wr_finish(&l->wr), 0);
	r = import_from(slice_of(l->buf, l->wr.n), NULL, &no, &err);
	free(l->buf);
	if (r != want || !strstr(err.text, why))
		fail_msg("%d %s, not %s", r, err.text, why);
	assert_store_empty();
}

/* The manifest says one thing wrong; `change` is merged into it (files into files). */
static void lie(const struct template *t, json_t *change, const char *why)
{
	json_t *m = json_deep_copy(t->manifest), *files = json_object_get(change, "files");
	struct liar l;
	char id[TEMPLATE_ID_LEN + 1];

	if (files) {
		(void)json_object_update(json_object_get(m, "files"), files);
		(void)json_object_del(change, "files");
		if (template_make_id(json_object_get(m, "files"), id) == 0)
			(void)json_object_set_new(m, "id", json_string(id));
	}
	(void)json_object_update(m, change);
	liar_begin(&l, m);
	assert_refused(&l, -EBADMSG, why);
	json_decref(m);
	json_decref(change);
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static json_t *one_file(const char *name, json_int_t size)
{
	return json_pack("{s:{s:{s:s,s:I}}}", "files", name, "hash", HASH, "size", size);
}

static void manifests_that_lie_are_refused(void **state)
{
	AUTO_TEMPLATE struct template t = {0};

	make_child(&t);
	fixture_at("second");
	lie(&t, one_file("../../../x", 10), "of a template file");
	lie(&t, one_file("manifest.json", 10), "of a template file");
	lie(&t, one_file("root.3.qcow2", 10), "is missing");
	lie(&t, one_file("root.img", -1), "out of range");
	lie(&t, one_file("root.img", (json_int_t)TEMPLATE_MAX_DISK + 1), "out of range");
	lie(&t, one_file("vmlinuz", (json_int_t)TEMPLATE_MAX_SMALL + 1), "out of range");
	lie(&t, json_pack("{s:{s:{s:s,s:i}}}", "files", "vmlinuz", "hash", "xyz", "size", 9),
		"hash of vmlinuz");
	lie(&t, json_pack("{s:{s:{s:i}}}", "files", "vmlinuz", "size", 9), "hash of vmlinuz");
	lie(&t, json_pack("{s:s}", "id", "0123456789abcdef"), "the id does not match");
	lie(&t, json_pack("{s:i}", "format", TEMPLATE_FORMAT - 1), "another version");
	lie(&t, one_file("root.img", (json_int_t)(64ull << 30) + 1), "larger than 64 GiB");
	lie(&t, json_pack("{s:s}", "agent", "a\033[2Jb"), "control characters");
	lie(&t, json_pack("{s:s}", "kind", "a\342\200\256b"), "control characters");
	lie(&t, json_pack("{s:s}", "kind", "a\302\233b"), "control characters");
	lie(&t, json_pack("{s:[[[[[i]]]]]}", "deep", 1), "too many fields");
}

static void a_name_must_be_one(void **state)
{
	AUTO_TEMPLATE struct template t = {0}, no = {0};
	json_t *m;
	struct liar l;
	struct err err = {0};

	make_child(&t);
	fixture_at("second");
	m = json_deep_copy(t.manifest);
	(void)json_object_set_new(m, "name", json_string("../evil"));
	liar_begin(&l, m);
	assert_refused(&l, -EINVAL, "sbx template load FILE NAME");
	json_decref(m);
	assert_int_equal(import_from(slice_from_str("nothing of ours"), NULL, &no, &err), -EBADMSG);
}

/* Pieces of docker.img, which comes first: 9 blocks. */
static void lie_in_pieces(
	const struct template *t, uint64_t a, uint64_t b, size_t n, uint8_t fill, const char *why)
{
	AUTO_FREE uint8_t *raw = xmalloc(2 * TEMPLATE_PIECE);
	struct wr wr = wr_init(raw, 2 * TEMPLATE_PIECE);
	AUTO_FREE uint8_t *block = xmalloc(TEMPLATE_BLOCK);
	struct liar l;

	memset(block, fill, TEMPLATE_BLOCK);
	wr_u64(&wr, a);
	wr_bytes(&wr, slice_of(block, TEMPLATE_BLOCK));
	wr_u64(&wr, b);
	wr_bytes(&wr, slice_of(block, n));
	liar_begin(&l, t->manifest);
	liar_frame(&l, slice_of(raw, wr.n));
	wr_u32(&l.wr, 0);
	assert_refused(&l, -EBADMSG, why);
}

static void frames_that_lie_are_refused(void **state)
{
	AUTO_TEMPLATE struct template t = {0};
	AUTO_FREE uint8_t *big = xcalloc(1, TEMPLATE_MAX_RAW + 1);
	struct liar l;

	make_child(&t);
	fixture_at("second");
	lie_in_pieces(&t, 0, 0, TEMPLATE_BLOCK, 1, "out of order");
	lie_in_pieces(&t, TEMPLATE_BLOCK, 0, TEMPLATE_BLOCK, 1, "out of order");
	lie_in_pieces(&t, 0, 100, TEMPLATE_BLOCK, 1, "out of order");
	lie_in_pieces(&t, 0, 9 * TEMPLATE_BLOCK, TEMPLATE_BLOCK, 1, "out of order");
	lie_in_pieces(&t, 0, UINT64_MAX - TEMPLATE_BLOCK + 1, TEMPLATE_BLOCK, 1, "out of order");
	lie_in_pieces(&t, 0, TEMPLATE_BLOCK, 100, 1, "truncated or empty");
	lie_in_pieces(&t, 0, TEMPLATE_BLOCK, TEMPLATE_BLOCK, 0, "truncated or empty");
	lie_in_pieces(&t, 0, TEMPLATE_BLOCK, TEMPLATE_BLOCK, 1, "does not match its hash");
	liar_begin(&l, t.manifest);
	liar_frame(&l, slice_of(big, TEMPLATE_MAX_RAW + 1));
	assert_refused(&l, -EBADMSG, "too long");
	liar_begin(&l, t.manifest);
	liar_frame(&l, slice_of(big, 1000));
	l.buf[l.wr.n - 1] ^= 0xff;
	assert_refused(&l, -EBADMSG, "decompressed");
}

/* Exports the template with this layer in it: hash and sum are right. */
static void export_with_layer(struct template *t, const char *layer, struct blob *ret)
{
	char hash[TEMPLATE_HASH_HEX + 1], id[TEMPLATE_ID_LEN + 1];
	json_t *files = json_object_get(t->manifest, "files");
	struct err err = {0};

	assert_int_equal(rename(layer, t->disks[TEMPLATE_ROOT].files[1]), 0);
	must(template_hash_file(
		     t->disks[TEMPLATE_ROOT].files[1], 3 * TEMPLATE_BLOCK, NULL, hash, &err),
		&err);
	(void)json_object_set_new(
		json_object_get(files, "root.1.qcow2"), "hash", json_string(hash));
	assert_int_equal(template_make_id(files, id), 0);
	(void)json_object_set_new(t->manifest, "id", json_string(id));
	export_to(t, ret);
	fixture_at("second");
}

/* A stranger's layer that would make qemu open a file of the host. */
static void hostile_layer_is_refused(void **state)
{
	AUTO_TEMPLATE struct template t = {0}, no = {0};
	AUTO_FREE char *layer = xasprintf("%s/evil", fixture_dir);
	AUTO_BLOB struct blob a = {0};
	struct err err = {0};

	make_child(&t);
	fixture_layer(layer, "/etc/passwd", SEED);
	export_with_layer(&t, layer, &a);
	assert_int_equal(import_from(slice_of(a.p, a.n), NULL, &no, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "backing file"));
	assert_store_empty();
}

/* A small layer whose head says how large the disks of its sandboxes are. */
static int load_layer_for(uint64_t size, struct err *err)
{
	AUTO_TEMPLATE struct template t = {0}, got = {0};
	AUTO_FREE char *layer = xasprintf("%s/large", fixture_dir);
	AUTO_BLOB struct blob a = {0};

	make_child(&t);
	fixture_layer(layer, NULL, SEED);
	size = htobe64(size);
	fixture_write(layer, 24, &size, sizeof(size));
	export_with_layer(&t, layer, &a);
	return import_from(slice_of(a.p, a.n), NULL, &got, err);
}

static void a_layer_for_the_largest_disk_is_loaded(void **state)
{
	struct err err = {0};

	must(load_layer_for(64ull << 30, &err), &err);
}

static void a_layer_for_a_larger_disk_is_refused(void **state)
{
	struct err err = {0};

	assert_int_equal(load_layer_for((64ull << 30) + 1, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "larger than 64 GiB"));
	assert_store_empty();
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(second_installation_has_the_same),
		STORE_TEST(the_name_in_the_file_needs_a_yes),
		STORE_TEST(every_changed_byte_is_refused),
		STORE_TEST(every_cut_is_refused),
		STORE_TEST(manifests_that_lie_are_refused),
		STORE_TEST(a_name_must_be_one),
		STORE_TEST(frames_that_lie_are_refused),
		STORE_TEST(hostile_layer_is_refused),
		STORE_TEST(a_layer_for_the_largest_disk_is_loaded),
		STORE_TEST(a_layer_for_a_larger_disk_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
