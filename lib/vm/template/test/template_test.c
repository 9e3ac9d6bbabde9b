/* SPDX-License-Identifier: Apache-2.0 */
/* The store on a real file system: names, hashes, links, what is refused and what is removed. */
#include "template_fixture.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include "lib/base/fs/paths.h"

static void must(int r, const struct err *err)
{
	if (r < 0)
		fail_msg("%s", err_text(err, r));
}

static size_t count(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static size_t count_store(void)
{
	AUTO_FREE char *store = template_store(NULL);

	return count(store);
}

static void published_is_found_by_name_and_id(void **state)
{
	AUTO_TEMPLATE struct template t = {0}, by_name = {0}, by_id = {0};
	struct err err = {0};
	struct stat st;

	fixture_publish("base", 1, &t);
	must(template_open("base", &by_name, &err), &err);
	must(template_open(t.id, &by_id, &err), &err);
	assert_string_equal(by_name.id, t.id);
	assert_string_equal(by_id.dir, t.dir);
	assert_int_equal(by_id.disks[TEMPLATE_ROOT].n, 1);
	assert_int_equal(stat(by_id.disks[TEMPLATE_DOCKER].files[0], &st), 0);
	assert_int_equal(st.st_mode & 0777, 0444);
	assert_int_equal(access(by_id.kernel, R_OK) + access(by_id.modules, R_OK), 0);
	assert_string_equal(json_string_value(json_object_get(by_id.manifest, "kind")), "base");
	must(template_verify("base", NULL, NULL, &err), &err);
}

static void what_is_not_there_is_said(void **state)
{
	AUTO_TEMPLATE struct template t = {0};
	char id[TEMPLATE_ID_LEN + 1];
	struct err err = {0};

	assert_int_equal(template_open("nothing", &t, &err), -ENOENT);
	assert_non_null(strstr(err.text, "template 'nothing' not found"));
	assert_int_equal(template_open("0123456789abcdef", &t, &err), -ENOENT);
	assert_int_equal(template_open("../../etc", &t, &err), -EINVAL);
	assert_int_equal(template_untag("nothing", &err), -ENOENT);
	assert_int_equal(template_resolve("nothing", id, &err), -ENOENT);
}

static void names_are_plain(void **state)
{
	assert_true(template_is_name("a") && template_is_name("node-22.1"));
	assert_false(template_is_name("") || template_is_name(".store") ||
		     template_is_name("a/b") || template_is_name("..") || template_is_name("-a") ||
		     template_is_name("a-") || template_is_name("a b") ||
		     template_is_name("0123456789abcdef"));
	assert_false(template_is_name(
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void equal_content_is_one_template(void **state)
{
	AUTO_TEMPLATE struct template a = {0}, b = {0}, c = {0};

	fixture_publish("one", 1, &a);
	fixture_publish("two", 1, &b);
	fixture_publish("three", 2, &c);
	assert_string_equal(a.id, b.id);
	assert_string_not_equal(a.id, c.id);
	assert_int_equal(count_store(), 2);
}

/* Where holes lie does not matter, what is in the file does. */
static void hash_is_of_content(void **state)
{
	AUTO_FREE char *sparse = xasprintf("%s/sparse", fixture_dir),
		       *dense = xasprintf("%s/dense", fixture_dir);
	AUTO_FREE uint8_t *zeros = xcalloc(1, 5 * TEMPLATE_BLOCK);
	char a[TEMPLATE_HASH_HEX + 1], b[TEMPLATE_HASH_HEX + 1];
	uint64_t size = 5 * TEMPLATE_BLOCK;

	fixture_write(dense, 0, zeros, size);
	fixture_write(dense, 3 * TEMPLATE_BLOCK, "x", 1);
	fixture_write(sparse, 3 * TEMPLATE_BLOCK, "x", 1);
	assert_int_equal(truncate(sparse, (off_t)size), 0);
	assert_int_equal(template_hash_file(sparse, size, NULL, a, NULL), 0);
	assert_int_equal(template_hash_file(dense, size, NULL, b, NULL), 0);
	assert_string_equal(a, b);
	fixture_write(dense, 3 * TEMPLATE_BLOCK + 9, "y", 1);
	assert_int_equal(template_hash_file(dense, size, NULL, b, NULL), 0);
	assert_string_not_equal(a, b);
	assert_int_equal(truncate(sparse, (off_t)size + TEMPLATE_BLOCK), 0);
	assert_int_equal(template_hash_file(sparse, size + TEMPLATE_BLOCK, NULL, b, NULL), 0);
	assert_string_not_equal(a, b);
}

static void child_shares_files_and_outlives_its_parent(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, child = {0}, again = {0};
	struct err err = {0};
	struct stat a, b;

	fixture_publish("base", 1, &base);
	fixture_child("child", &base, 7, &child);
	assert_int_equal(child.disks[TEMPLATE_ROOT].n, 2);
	assert_int_equal(stat(base.disks[TEMPLATE_ROOT].files[0], &a), 0);
	assert_int_equal(stat(child.disks[TEMPLATE_ROOT].files[0], &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_nlink, 2);
	must(template_untag("base", &err), &err);
	must(template_collect(NULL, 0, &err), &err);
	assert_int_equal(access(base.dir, F_OK), -1);
	must(template_verify("child", NULL, NULL, &err), &err);
	must(template_open("child", &again, &err), &err);
}

/* A layer says nothing about the host it comes from. */
static void layers_lose_their_backing_name(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, child = {0};
	AUTO_FREE char *cmd = NULL;

	fixture_publish("base", 1, &base);
	fixture_child("child", &base, 7, &child);
	cmd = xasprintf("! grep -q somebody %s", child.disks[TEMPLATE_ROOT].files[1]);
	assert_int_equal(system(cmd), 0);
}

static void set_times(const char *path, const struct stat *st)
{
	struct timespec ts[2] = {st->st_atim, st->st_mtim};

	assert_int_equal(utimensat(AT_FDCWD, path, ts, 0), 0);
}

static void changed_bytes_are_refused(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, t = {0}, child = {0};
	struct err err = {0};
	struct stat st;
	char *layer;

	fixture_publish("base", 1, &base);
	fixture_child("child", &base, 7, &child);
	layer = child.disks[TEMPLATE_ROOT].files[1];
	assert_int_equal(stat(layer, &st), 0);
	assert_int_equal(chmod(layer, 0600), 0);
	fixture_write(layer, 2 * TEMPLATE_BLOCK + 5, "!", 1);
	set_times(layer, &st); /* ctime still tells */
	assert_int_equal(template_open("child", &t, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "root.1.qcow2"));
	assert_non_null(strstr(err.text, "sbx template rm child"));
	must(template_open("base", &t, &err), &err);
}

/* The origin of a layer was removed, so its links changed, and with them the rule for ctime. */
static void a_changed_layer_is_refused_after_its_origin_went(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, t = {0}, child = {0};
	AUTO_FREE char *origin = xasprintf("%s/layer-7", fixture_dir);
	struct err err = {0};
	struct stat st;

	fixture_publish("base", 1, &base);
	fixture_child("child", &base, 7, &child);
	assert_int_equal(stat(origin, &st), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(chmod(origin, 0600), 0);
	fixture_write(origin, 2 * TEMPLATE_BLOCK + 5, "!", 1);
	set_times(origin, &st);
	assert_int_equal(unlink(origin), 0);
	assert_int_equal(template_open("child", &t, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "root.1.qcow2"));
}

/* As `sbx template save` of a running sandbox does it; gives the file of the layer in the
 * template. */
static int save_live(const char *name, const char *layer, struct template *ret, struct err *err)
{
	AUTO_DRAFT struct template_draft d = {0};
	AUTO_TEMPLATE struct template base = {0};
	int r = template_open("base", &base, err);

	if (r == 0)
		r = template_draft_begin(&d, err);
	if (r == 0)
		r = template_draft_add_template(&d, &base, err);
	if (r == 0)
		r = template_draft_add_layer(&d, TEMPLATE_ROOT, layer, true, err);
	return r < 0 ? r : template_draft_publish(&d, name, NULL, NULL, NULL, ret, err);
}

static ino_t inode(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

/* What qemu holds open is not the template's, before and after the sandbox's name is the
 * template's file. */
static void a_live_layer_is_copied_once(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, first = {0}, second = {0};
	AUTO_FREE char *layer = xasprintf("%s/root.1.qcow2", fixture_dir),
		       *temp = xasprintf("%s.shared", layer);
	struct err err = {0};
	struct stat st;
	const char *in_first;
	int qemu;

	fixture_publish("base", 1, &base);
	fixture_layer(layer, "/nowhere/root.img", 7);
	qemu = open(layer, O_RDWR | O_CLOEXEC);
	must(save_live("first", layer, &first, &err), &err);
	in_first = first.disks[TEMPLATE_ROOT].files[1];
	assert_int_equal(stat(in_first, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0400);
	assert_int_not_equal(inode(in_first), inode(layer));
	template_share_layer(&first, TEMPLATE_ROOT, 1, layer);
	assert_int_equal(inode(in_first), inode(layer));
	assert_int_equal(pwrite(qemu, "changed", 7, 2 * TEMPLATE_BLOCK), 7);
	must(template_verify("first", NULL, NULL, &err), &err);
	must(save_live("second", layer, &second, &err), &err);
	assert_string_equal(first.id, second.id);
	template_share_layer(&second, TEMPLATE_ROOT, 1, layer);
	template_share_layer(&second, TEMPLATE_ROOT, 9, layer);
	assert_int_equal(inode(in_first), inode(layer));
	assert_int_equal(access(temp, F_OK), -1);
	(void)close(qemu);
}

/* Not by fixture_write: these files take no pwrite. */
static void say_to(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void mount_small_disk(const char *dir)
{
	AUTO_FREE char *uid = xasprintf("0 %d 1", (int)getuid()),
		       *gid = xasprintf("0 %d 1", (int)getgid());
	struct err err = {0};

	assert_int_equal(unshare(CLONE_NEWUSER | CLONE_NEWNS), 0);
	say_to("/proc/self/uid_map", uid);
	say_to("/proc/self/setgroups", "deny");
	say_to("/proc/self/gid_map", gid);
	must(paths_make(dir, &err), &err);
	assert_int_equal(mount("tmpfs", dir, "tmpfs", 0, "size=513m"), 0);
}

/* In a process of its own, which has a mount namespace of its own. */
static void save_on_a_full_disk(void)
{
	AUTO_FREE char *data = paths_get(PATHS_DATA, NULL), *store = template_store(NULL),
		       *top = template_top("large"), *layer = xasprintf("%s/layer", fixture_dir),
		       *cmd = NULL;
	AUTO_TEMPLATE struct template base = {0}, t = {0};
	struct err err = {0};

	mount_small_disk(data);
	fixture_publish("base", 1, &base);
	fixture_layer(layer, "/nowhere/root.img", 7);
	must(save_live("fits", layer, &t, &err), &err);
	must(template_verify("fits", NULL, NULL, &err), &err);
	cmd = xasprintf("cmp -i 4096 %s %s", layer, t.disks[TEMPLATE_ROOT].files[1]);
	assert_int_equal(system(cmd), 0);
	for (uint64_t at = 4096; at < 1 << 20; at += 4096)
		fixture_write(layer, at, "x", 1);
	assert_int_equal(save_live("large", layer, &t, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "513 MiB of free disk space are required"));
	assert_int_equal(count(store), 2);
	assert_int_equal(access(top, F_OK), -1);
}

static void a_copy_that_does_not_fit_leaves_nothing(void **state)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		save_on_a_full_disk();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void cut_and_missing_files_are_refused(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, t = {0};
	struct err err = {0};

	fixture_publish("base", 1, &base);
	assert_int_equal(chmod(base.disks[0].files[0], 0600), 0);
	assert_int_equal(truncate(base.disks[0].files[0], 5 * TEMPLATE_BLOCK), 0);
	assert_int_equal(template_open("base", &t, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "original size"));
	assert_int_equal(unlink(base.disks[0].files[0]), 0);
	assert_int_equal(template_open("base", &t, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "is missing"));
	assert_int_equal(symlink("/etc/passwd", base.disks[0].files[0]), 0);
	assert_int_equal(template_open("base", &t, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "not a regular file"));
}

static void changed_manifest_is_refused(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, t = {0};
	struct err err = {0};
	AUTO_FREE char *path = NULL;
	json_t *files;

	fixture_publish("base", 1, &base);
	path = xasprintf("%s/manifest.json", base.dir);
	files = json_object_get(base.manifest, "files");
	(void)json_object_del(files, "docker.img");
	assert_int_equal(json_dump_file(base.manifest, path, 0), 0);
	assert_int_equal(template_open("base", &t, &err), -EUCLEAN);
	assert_int_equal(template_open(base.id, &t, &err), -EUCLEAN);
}

/* Its hashes are of another kind: it would be called damaged, and nobody would know what to do. */
static void manifest_of_another_version_says_what_to_do(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, t = {0};
	struct err err = {0};
	AUTO_FREE char *path = NULL;

	fixture_publish("base", 1, &base);
	path = xasprintf("%s/manifest.json", base.dir);
	(void)json_object_set_new(base.manifest, "format", json_integer(TEMPLATE_FORMAT - 1));
	assert_int_equal(json_dump_file(base.manifest, path, 0), 0);
	assert_int_equal(template_open("base", &t, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "build or save it again"));
}

/* Opening reads no disk: rubbish behind an unchanged stamp is found by verify only. */
static void untouched_files_are_not_read_again(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, t = {0};
	AUTO_FREE char *link_path = xasprintf("%s/second-name", fixture_dir);
	struct err err = {0};
	struct stat st, now;
	json_t *stamps;

	fixture_publish("base", 1, &base);
	assert_int_equal(link(base.kernel, link_path), 0);
	stamps = template_stamps_read(base.dir);
	assert_int_equal(stat(base.kernel, &st), 0);
	assert_non_null(template_stamp_get(stamps, "vmlinuz", &st));
	now = st;
	now.st_mtim.tv_nsec ^= 1;
	assert_null(template_stamp_get(stamps, "vmlinuz", &now));
	now = st;
	now.st_size++;
	assert_null(template_stamp_get(stamps, "vmlinuz", &now));
	now = st;
	now.st_ino++;
	assert_null(template_stamp_get(stamps, "vmlinuz", &now));
	now = st;
	now.st_nlink = 1; /* as at publication, but ctime differs */
	assert_null(template_stamp_get(stamps, "vmlinuz", &now));
	json_decref(stamps);
	must(template_open("base", &t, &err), &err);
}

/* A folder made by template-build alone, elsewhere, behind a link: it has no hashes. */
static void make_foreign(const char *dir, unsigned seed)
{
	AUTO_FREE char *cmd = NULL, *manifest = xasprintf("%s/manifest.json", dir);
	AUTO_TEMPLATE struct template t = {0};
	const char *name;
	json_t *file;

	fixture_publish("temporary", seed, &t);
	cmd = xasprintf("mkdir -p %s && cp %s/* %s && rm -f %s/stamps.json", dir, t.dir, dir, dir);
	assert_int_equal(system(cmd), 0);
	json_object_foreach (json_object_get(t.manifest, "files"), name, file)
		(void)json_object_del(file, "hash");
	(void)json_object_del(t.manifest, "id");
	assert_int_equal(json_dump_file(t.manifest, manifest, 0), 0);
	assert_int_equal(template_untag("temporary", NULL), 0);
	assert_int_equal(template_collect(NULL, 0, NULL), 0);
}

static void folder_elsewhere_is_hashed_once(void **state)
{
	AUTO_FREE char *dir = xasprintf("%s/elsewhere/debian", fixture_dir),
		       *name = template_top("debian"), *image = xasprintf("%s/root.img", dir);
	AUTO_TEMPLATE struct template a = {0}, b = {0}, c = {0};
	char id[TEMPLATE_ID_LEN + 1];
	struct err err = {0};

	make_foreign(dir, 3);
	assert_int_equal(symlink(dir, name), 0);
	assert_int_equal(template_resolve("debian", id, &err), -ENODATA);
	/* sbxd keeps the memory image of a template that is not hashed. */
	assert_true(template_exists("debian"));
	assert_false(template_exists("none"));
	must(template_open("debian", &a, &err), &err);
	assert_true(template_exists(a.id));
	must(template_resolve("debian", id, &err), &err);
	assert_string_equal(id, a.id);
	assert_string_equal(a.dir, dir);
	/* Found by its id after the name has gone, as long as somebody stands on it. */
	must(template_untag("debian", &err), &err);
	must(template_collect((const char *[]){a.id}, 1, &err), &err);
	must(template_open(a.id, &b, &err), &err);
	assert_int_equal(chmod(image, 0600), 0);
	fixture_write(image, 100, "?", 1);
	assert_int_equal(template_open(a.id, &c, &err), -EUCLEAN);
	must(template_collect(NULL, 0, &err), &err);
	assert_int_equal(access(image, F_OK), 0);
	assert_int_equal(template_open(a.id, &c, &err), -ENOENT);
	assert_false(template_exists(a.id));
}

/* From before the store: a folder where a link should be. */
static void old_folder_gives_way(void **state)
{
	AUTO_FREE char *dir = template_top("debian");
	AUTO_TEMPLATE struct template old = {0}, new = {0}, t = {0};
	struct err err = {0};

	make_foreign(dir, 3);
	must(template_open("debian", &old, &err), &err);
	fixture_publish("debian", 4, &new);
	must(template_open("debian", &t, &err), &err);
	assert_string_equal(t.id, new.id);
	template_done(&t);
	must(template_open(old.id, &t, &err), &err);
	must(template_collect(NULL, 0, &err), &err);
	assert_int_equal(count_store(), 1);
}

static void collect_keeps_what_is_needed(void **state)
{
	AUTO_TEMPLATE struct template a = {0}, b = {0}, c = {0};
	struct err err = {0};

	fixture_publish("one", 1, &a);
	fixture_publish("two", 2, &b);
	fixture_publish("three", 3, &c);
	must(template_untag("one", &err), &err);
	must(template_untag("two", &err), &err);
	must(template_collect((const char *[]){a.id}, 1, &err), &err);
	assert_int_equal(count_store(), 2);
	assert_int_equal(access(b.dir, F_OK), -1);
	must(template_collect(NULL, 0, &err), &err);
	assert_int_equal(count_store(), 1);
}

static void list_says_what_there_is(void **state)
{
	AUTO_TEMPLATE struct template base = {0}, child = {0};
	AUTO_FREE char *broken = template_top("broken");
	json_t *list;

	fixture_publish("base", 1, &base);
	fixture_child("a-child", &base, 7, &child);
	assert_int_equal(symlink("/nowhere", broken), 0);
	list = template_list();
	assert_int_equal(json_array_size(list), 3);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(list, 0), "id")), child.id);
	assert_true(json_integer_value(json_object_get(json_array_get(list, 0), "shared")) > 0);
	assert_non_null(json_object_get(json_array_get(list, 2), "broken"));
	json_decref(list);
}

static void draft_that_is_left_is_removed(void **state)
{
	AUTO_DRAFT struct template_draft d = {0};
	AUTO_FREE char *left = template_store(".new.2147483646.0"), *file = NULL;
	struct err err = {0};

	must(template_make_store(&err), &err);
	assert_int_equal(mkdir(left, 0700), 0);
	file = xasprintf("%s/root.img", left);
	fixture_file(file, 1000, 1);
	must(template_draft_begin(&d, &err), &err);
	assert_int_equal(access(left, F_OK), -1);
}

static void draft_with_a_gap_is_refused(void **state)
{
	AUTO_DRAFT struct template_draft d = {0};
	AUTO_TEMPLATE struct template t = {0};
	struct err err = {0};

	must(template_draft_begin(&d, &err), &err);
	fixture_fill(&d, 1);
	template_chain_done(&d.disks[TEMPLATE_DOCKER]);
	assert_int_equal(template_draft_publish(&d, "x", NULL, NULL, NULL, &t, &err), -EUCLEAN);
	assert_int_equal(template_open("x", &t, &err), -ENOENT);
}

static void chain_is_bounded(void **state)
{
	AUTO_DRAFT struct template_draft d = {0};
	AUTO_FREE char *layer = xasprintf("%s/layer", fixture_dir);
	struct err err = {0};

	fixture_layer(layer, NULL, 5);
	must(template_draft_begin(&d, &err), &err);
	fixture_fill(&d, 1);
	for (unsigned i = 1; i < TEMPLATE_MAX_LAYERS; i++)
		must(template_draft_add_layer(&d, TEMPLATE_ROOT, layer, false, &err), &err);
	assert_int_equal(template_draft_add_layer(&d, TEMPLATE_ROOT, layer, false, &err), -EMLINK);
	assert_non_null(strstr(err.text, "--flat"));
}

/* Each of them would let qemu open, or need, what is not in the template. */
static void hostile_layers_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
		const char *why;
	} rows[] = {
		{0, 'X', "not a qcow2"},
		{7, 2, "not a qcow2"},
		{15, 8, "backing"},
		{19, 8, "backing"},
		{35, 1, "encrypted"},
		{63, 1, "snapshots"},
		{79, 4, "external data file"},
		{79, 1, "features"},
		{72, 0x80, "features"},
		{95, 2, "features"},
		{23, 63, "out of range"},
		{24, 1, "out of range"},
	};
	AUTO_FREE char *path = xasprintf("%s/hostile", fixture_dir);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};

		fixture_layer(path, NULL, 5);
		must(template_qcow2_check(path, NULL, &err), &err);
		fixture_write(path, rows[i].at, &rows[i].byte, 1);
		assert_int_equal(template_qcow2_check(path, NULL, &err), -EUCLEAN);
		if (!strstr(err.text, rows[i].why))
			fail_msg("row %zu: %s", i, err.text);
	}
	assert_int_equal(truncate(path, 50), 0);
	assert_int_equal(template_qcow2_check(path, NULL, NULL), -EUCLEAN);
}

static void file_names_are_known_ones(void **state)
{
	static const char *const bad[] = {"", "root", "root.", "root.img.", "root.0.qcow2",
		"root.01.qcow2", "root.32.qcow2", "root.1.img", "root.1", "docker.x.qcow2",
		"../root.img", "manifest.json", "stamps.json", "root.1.qcow2/x"};
	struct template_name n;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(template_file_name(bad[i], &n));
	assert_true(template_file_name("docker.31.qcow2", &n) && n.layer == 31 &&
		    n.disk == TEMPLATE_DOCKER);
	assert_true(template_file_name("root.img", &n) && n.part == TEMPLATE_PART_BASE);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(published_is_found_by_name_and_id),
		STORE_TEST(what_is_not_there_is_said),
		STORE_TEST(names_are_plain),
		STORE_TEST(equal_content_is_one_template),
		STORE_TEST(hash_is_of_content),
		STORE_TEST(child_shares_files_and_outlives_its_parent),
		STORE_TEST(layers_lose_their_backing_name),
		STORE_TEST(changed_bytes_are_refused),
		STORE_TEST(a_changed_layer_is_refused_after_its_origin_went),
		STORE_TEST(a_live_layer_is_copied_once),
		STORE_TEST(a_copy_that_does_not_fit_leaves_nothing),
		STORE_TEST(cut_and_missing_files_are_refused),
		STORE_TEST(changed_manifest_is_refused),
		STORE_TEST(manifest_of_another_version_says_what_to_do),
		STORE_TEST(untouched_files_are_not_read_again),
		STORE_TEST(folder_elsewhere_is_hashed_once),
		STORE_TEST(old_folder_gives_way),
		STORE_TEST(collect_keeps_what_is_needed),
		STORE_TEST(list_says_what_there_is),
		STORE_TEST(draft_that_is_left_is_removed),
		STORE_TEST(draft_with_a_gap_is_refused),
		STORE_TEST(chain_is_bounded),
		STORE_TEST(hostile_layers_are_refused),
		STORE_TEST(file_names_are_known_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
