/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes of a few objects. Histories that git made are in gitpush_oracle.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <zlib.h>
#include "lib/base/hash/sha1.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/wire/git/gitfetch.h"
#include "lib/wire/git/gitpush.h"

static const struct gitpack_limits limits = {
	.bytes = 1u << 20, .objects = 1000, .work = UINT64_C(8) << 20};

/* ---- a pack of whole objects ---- */

struct maker {
	uint8_t p[200000];
	size_t n;
	uint8_t n_objects;
};

static void begin(struct maker *m)
{
	memcpy(m->p, "PACK\0\0\0\2\0\0\0\0", 12);
	m->n = 12;
	m->n_objects = 0;
}

static struct git_oid name_of(enum gitobject_type type, struct slice content)
{
	static const char *const names[] = {"", "commit", "tree", "blob", "tag"};
	struct git_oid oid;
	char head[32];
	int n = snprintf(head, sizeof(head), "%s %zu", names[type], content.n);
	struct sha1 hash;

	sha1_init(&hash);
	sha1_add(&hash, slice_of(head, (size_t)n + 1));
	sha1_add(&hash, content);
	sha1_end(&hash, oid.b);
	return oid;
}

/* Into the pack, or only its name without one. */
static struct git_oid put(struct maker *m, enum gitobject_type type, struct slice content)
{
	size_t left = content.n >> 4;
	uLongf n = sizeof(m->p) - m->n;
	uint8_t c = (uint8_t)(type << 4 | (content.n & 15));

	if (!m)
		return name_of(type, content);
	for (; left > 0; left >>= 7) {
		m->p[m->n++] = c | 0x80;
		c = left & 0x7f;
	}
	m->p[m->n++] = c;
	n = sizeof(m->p) - m->n;
	assert_int_equal(compress(m->p + m->n, &n, content.p, content.n), Z_OK);
	m->n += n;
	m->n_objects++;
	return name_of(type, content);
}

static struct gitpack *finish(struct maker *m)
{
	struct gitpack *pack = gitpack_new(&limits);
	struct sha1 hash;

	m->p[11] = m->n_objects;
	sha1_init(&hash);
	sha1_add(&hash, slice_of(m->p, m->n));
	sha1_end(&hash, m->p + m->n);
	m->n += SHA1_BYTES;
	assert_int_equal(gitpack_put(pack, slice_of(m->p, m->n), NULL), 0);
	assert_int_equal(gitpack_index(pack, NULL), 0);
	return pack;
}

static struct git_oid put_text(struct maker *m, const char *text)
{
	return put(m, GITOBJECT_BLOB, slice_from_str(text));
}

struct item {
	const char *mode_and_name;
	struct git_oid oid;
};

static struct git_oid put_tree(struct maker *m, const struct item *items, size_t n)
{
	uint8_t buf[1000];
	struct wr wr = wr_init(buf, sizeof(buf));

	for (size_t i = 0; i < n; i++) {
		wr_bytes(&wr, slice_of(items[i].mode_and_name, strlen(items[i].mode_and_name) + 1));
		wr_bytes(&wr, slice_of(items[i].oid.b, GITOID_BYTES));
	}
	return put(m, GITOBJECT_TREE, slice_of(buf, wr.n));
}
#define TREE(m, ...)                                      \
	put_tree((m), (const struct item[]){__VA_ARGS__}, \
		sizeof((const struct item[]){__VA_ARGS__}) / sizeof(struct item))

static struct git_oid put_commit(
	struct maker *m, struct git_oid tree, const struct git_oid *parent, const char *subject)
{
	char text[400], hex[2][GITOID_HEX + 1] = {"", ""};
	int n;

	gitoid_print(&tree, hex[0]);
	if (parent)
		gitoid_print(parent, hex[1]);
	n = snprintf(text, sizeof(text),
		"tree %s\n%s%s%sauthor A <a@test> 1 +0000\ncommitter A <a@test> 1 +0000\n\n%s\n",
		hex[0], parent ? "parent " : "", hex[1], parent ? "\n" : "", subject);
	return put(m, GITOBJECT_COMMIT, slice_of(text, (size_t)n));
}

/* ---- pushes ---- */

static struct gitcommands commands;

static void command(const struct git_oid *old, const struct git_oid *new, const char *name)
{
	struct gitcommand *c = &commands.list[commands.n++];

	c->old = old ? *old : (struct git_oid){0};
	c->new = new ? *new : (struct git_oid){0};
	c->name = xstrdup(name);
}

static int forget(void **state)
{
	gitcommands_done(&commands);
	return 0;
}

static struct maker server, client;
static struct git_oid base, base_tree, script;

/* A repository with a script in the directory bin, and main at the commit `base`. */
static int make_server(void **state)
{
	struct git_oid bin;

	gitcommands_init(&commands);
	begin(&server);
	begin(&client);
	script = put_text(&server, "echo hello\n");
	bin = TREE(&server, {"100755 run.yml", script});
	base_tree = TREE(&server, {"40000 bin", bin});
	base = put_commit(&server, base_tree, NULL, "first");
	return 0;
}

static int judge(struct gitpush *p, struct gitpush_need *need)
{
	struct err err = {0};
	int r = gitpush_judge(p, need, &err);

	assert_true(r >= 0 || err.text[0]);
	return r;
}

static void a_file_moved_into_workflows_without_a_blob_is_seen(void **state)
{
	AUTO_GITPUSH struct gitpush *p = NULL;
	struct git_oid flows, github, tree, next;
	struct gitpush_need need;
	const struct gitpush_ref *ref;

	flows = TREE(&client, {"100755 run.yml", script});
	github = TREE(&client, {"40000 workflows", flows});
	tree = TREE(&client, {"40000 .github", github});
	next = put_commit(&client, tree, &base, "move");
	command(&base, &next, "refs/heads/main");
	/* the tree of bin has the same content as that of workflows: git sends it or not */
	p = gitpush_new(&commands, finish(&client), true);
	assert_int_equal(judge(p, &need), GITPUSH_NEED);
	assert_int_equal(need.kind, GITPUSH_TREES);
	assert_true(gitoid_eq(&need.want[0], &base));
	gitpush_supply(p, finish(&server));
	assert_int_equal(judge(p, &need), GITPUSH_DONE);
	ref = gitpush_ref(p, 0);
	assert_int_equal(ref->verbs, GITPUSH_PUSH);
	assert_true(ref->has_paths);
	assert_int_equal(ref->n_paths, 2);
	assert_string_equal(ref->path[0].path, ".github/workflows/run.yml");
	assert_int_equal(ref->path[0].status, 'A');
	assert_string_equal(ref->path[1].path, "bin/run.yml");
	assert_int_equal(ref->path[1].status, 'D');
	assert_int_equal(ref->n_commits, 1);
	assert_string_equal(ref->commit[0].subject, "move");
}

static void an_amended_commit_is_a_force_push(void **state)
{
	AUTO_GITPUSH struct gitpush *p = NULL;
	struct git_oid amended = put_commit(&client, base_tree, NULL, "amended");
	struct gitpush_need need;

	command(&base, &amended, "refs/heads/main");
	p = gitpush_new(&commands, finish(&client), false);
	assert_int_equal(judge(p, &need), GITPUSH_DONE);
	assert_int_equal(gitpush_ref(p, 0)->verbs, GITPUSH_FORCE);
}

/* A branch that is moved to a commit of the server: what it is follows from the commits between. */
static void commits_of_the_server_prove_a_fast_forward(void **state)
{
	for (int gives = 0; gives < 2; gives++) {
		AUTO_GITPUSH struct gitpush *p = NULL;
		struct git_oid next;
		struct gitpush_need need;

		(void)make_server(NULL);
		next = put_commit(&client, base_tree, &base, "on the server");
		command(&base, &next, "refs/heads/main");
		p = gitpush_new(&commands, NULL, false);
		assert_int_equal(judge(p, &need), GITPUSH_NEED);
		assert_int_equal(need.kind, GITPUSH_COMMITS);
		assert_true(gitoid_eq(&need.want[0], &next));
		assert_true(gitoid_eq(&need.have, &base));
		assert_false(need.unfiltered);
		gitpush_supply(p, gives ? finish(&client) : NULL);
		if (!gives) {
			assert_int_equal(judge(p, &need), GITPUSH_NEED);
			assert_true(need.unfiltered);
			gitpush_supply(p, NULL);
		}
		assert_int_equal(judge(p, &need), GITPUSH_DONE);
		assert_int_equal(gitpush_ref(p, 0)->verbs, gives ? GITPUSH_PUSH : GITPUSH_FORCE);
		gitpush_free(&p);
		(void)forget(NULL);
	}
}

static void a_new_branch_is_compared_with_the_default_branch(void **state)
{
	AUTO_GITPUSH struct gitpush *p = NULL;
	struct git_oid next = put_commit(&client, base_tree, &base, "same files");
	struct gitpush_need need;

	command(NULL, &next, "refs/heads/agent/x");
	p = gitpush_new(&commands, finish(&client), true);
	assert_int_equal(judge(p, &need), GITPUSH_NEED);
	assert_int_equal(need.kind, GITPUSH_HEAD);
	gitpush_set_head(p, &base);
	assert_int_equal(judge(p, &need), GITPUSH_NEED);
	gitpush_supply(p, finish(&server));
	assert_int_equal(judge(p, &need), GITPUSH_DONE);
	assert_int_equal(gitpush_ref(p, 0)->verbs, GITPUSH_CREATE);
	assert_true(gitpush_ref(p, 0)->has_paths);
	assert_int_equal(gitpush_ref(p, 0)->n_paths, 0);
}

static void in_an_empty_repository_every_file_is_new(void **state)
{
	AUTO_GITPUSH struct gitpush *p = NULL;
	struct gitpush_need need;

	command(NULL, &base, "refs/heads/main");
	p = gitpush_new(&commands, finish(&server), true);
	assert_int_equal(judge(p, &need), GITPUSH_NEED);
	gitpush_set_head(p, NULL);
	assert_int_equal(judge(p, &need), GITPUSH_DONE);
	assert_int_equal(gitpush_ref(p, 0)->n_paths, 1);
	assert_string_equal(gitpush_ref(p, 0)->path[0].path, "bin/run.yml");
}

static void tags_and_deletions_have_their_verbs(void **state)
{
	AUTO_GITPUSH struct gitpush *p = NULL;
	struct gitpush_need need;
	struct git_oid tag;
	char text[200], hex[GITOID_HEX + 1];
	int n;

	gitoid_print(&base, hex);
	n = snprintf(text, sizeof(text), "object %s\ntype commit\ntag v1\n\nv1\n", hex);
	tag = put(&client, GITOBJECT_TAG, slice_of(text, (size_t)n));
	command(NULL, &tag, "refs/tags/v1");
	command(&base, &tag, "refs/tags/v2");
	command(&base, NULL, "refs/heads/old");
	command(&base, NULL, "refs/tags/old");
	p = gitpush_new(&commands, finish(&client), false);
	assert_int_equal(judge(p, &need), GITPUSH_DONE);
	assert_int_equal(gitpush_ref(p, 0)->verbs, GITPUSH_CREATE | GITPUSH_TAG);
	assert_int_equal(gitpush_ref(p, 1)->verbs, GITPUSH_FORCE | GITPUSH_TAG);
	assert_int_equal(gitpush_ref(p, 2)->verbs, GITPUSH_DELETE);
	assert_int_equal(gitpush_ref(p, 3)->verbs, GITPUSH_DELETE | GITPUSH_TAG);
}

static void what_nobody_has_is_unknown(void **state)
{
	for (int gives = 0; gives < 2; gives++) {
		AUTO_GITPUSH struct gitpush *p = NULL;
		struct git_oid next;
		struct gitpush_need need;
		unsigned n = 0;
		int r;

		(void)make_server(NULL);
		/* its tree is nowhere */
		next = put_commit(&client, script, &base, "no tree");
		command(&base, &next, "refs/heads/main");
		p = gitpush_new(&commands, finish(&client), true);
		while ((r = judge(p, &need)) == GITPUSH_NEED && n++ < 10) {
			(void)make_server(NULL);
			commands.n = 1;
			gitpush_supply(p, gives && n == 1 ? finish(&server) : NULL);
		}
		assert_true(r == -ENOENT || r == -EBADMSG);
		gitpush_free(&p); /* it points to the commands */
		(void)forget(NULL);
	}
}

/* A directory that contains itself 10 times, 40 deep: 10^40 files, and none of them is one. */
static void a_bomb_of_directories_ends(void **state)
{
	AUTO_GITPUSH struct gitpush *p = NULL;
	struct git_oid tree = put_tree(&client, NULL, 0), next;
	struct gitpush_need need;

	for (int depth = 0; depth < 40; depth++) {
		struct item items[10];
		char names[10][16];

		for (int i = 0; i < 10; i++) {
			(void)snprintf(names[i], sizeof(names[i]), "40000 %d", i);
			items[i] = (struct item){.mode_and_name = names[i], .oid = tree};
		}
		tree = put_tree(&client, items, 10);
	}
	next = put_commit(&client, tree, NULL, "bomb");
	command(NULL, &next, "refs/heads/main");
	p = gitpush_new(&commands, finish(&client), true);
	assert_int_equal(judge(p, &need), GITPUSH_NEED);
	gitpush_set_head(p, NULL);
	assert_int_equal(judge(p, &need), -E2BIG);
}

/* ---- fetches ---- */

struct text {
	char p[4000];
	size_t n;
};

static void append(void *arg, struct slice bytes)
{
	struct text *t = arg;

	assert_true(t->n + bytes.n < sizeof(t->p));
	memcpy(t->p + t->n, bytes.p, bytes.n);
	t->n += bytes.n;
	t->p[t->n] = 0;
}

static void requests_are_those_of_protocol_version_2(void **state)
{
	struct gitpush_need need = {.kind = GITPUSH_TREES, .n_wants = 1};
	struct text t = {0};

	gitfetch_request(&need, append, &t);
	assert_non_null(strstr(t.p, "0012command=fetch\n"));
	assert_non_null(strstr(t.p, "0032want 0000"));
	assert_non_null(strstr(t.p, "000ddeepen 1\n0015filter blob:none\n0009done\n0000"));
	t.n = 0;
	need.unfiltered = true;
	gitfetch_request(&need, append, &t);
	assert_null(strstr(t.p, "filter"));
	t.n = 0;
	need = (struct gitpush_need){.kind = GITPUSH_HEAD};
	gitfetch_request(&need, append, &t);
	assert_non_null(strstr(t.p, "ref-prefix HEAD\n0000"));
}

static int read_answer(enum gitpush_need_kind kind, const char *text, struct gitfetch *f)
{
	AUTO_GITPACK struct gitpack *pack = gitpack_new(&limits);
	int r;

	gitfetch_init(f, kind, pack);
	r = gitfetch_read(f, slice_from_str(text), NULL);
	return r < 0 ? r : gitfetch_end(f);
}

static void answers_are_complete_or_refused(void **state)
{
	static struct gitfetch f;

	assert_int_equal(read_answer(GITPUSH_HEAD,
				 "0032aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HEAD\n0000", &f),
		0);
	assert_true(f.has_head);
	assert_int_equal(f.head.b[0], 0xaa);
	assert_int_equal(read_answer(GITPUSH_HEAD, "0000", &f), 0);
	assert_false(f.has_head);
	assert_int_equal(read_answer(GITPUSH_HEAD, "", &f), -EBADMSG);
	assert_int_equal(read_answer(GITPUSH_HEAD, "000bERR no\n0000", &f), -ENOENT);
	assert_int_equal(read_answer(GITPUSH_TREES,
				 "0011shallow-info\n0001000dpackfile\n"
				 "0009\1PACK0008\2abc0000",
				 &f),
		0);
	assert_int_equal(read_answer(GITPUSH_TREES, "000dpackfile\n0009\1PACK", &f), -EBADMSG);
	assert_int_equal(read_answer(GITPUSH_TREES, "000dpackfile\n0009\3oops0000", &f), -EBADMSG);
	assert_int_equal(read_answer(GITPUSH_TREES, "0000", &f), -EBADMSG);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_server, forget)
	const struct CMUnitTest tests[] = {
		TEST(a_file_moved_into_workflows_without_a_blob_is_seen),
		TEST(an_amended_commit_is_a_force_push),
		TEST(commits_of_the_server_prove_a_fast_forward),
		TEST(a_new_branch_is_compared_with_the_default_branch),
		TEST(in_an_empty_repository_every_file_is_new),
		TEST(tags_and_deletions_have_their_verbs),
		TEST(what_nobody_has_is_unknown),
		TEST(a_bomb_of_directories_ends),
		cmocka_unit_test(requests_are_those_of_protocol_version_2),
		cmocka_unit_test(answers_are_complete_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
