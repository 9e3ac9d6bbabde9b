/* SPDX-License-Identifier: Apache-2.0 */
#include "gitpush_internal.h"

#include <errno.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define MAX_HEAD_OBJECT (1u << 20) /* bytes of a commit or a tag */
#define MAX_TREE (16u << 20)
#define MAX_TAGS 8 /* one upon another */
#define MAX_SHOWN 120

struct gitpush *gitpush_new(const struct gitcommands *commands, struct gitpack *pack, bool paths)
{
	struct gitpush *p = xcalloc(1, sizeof(*p));

	p->commands = commands;
	p->paths = paths;
	p->pack[0] = pack;
	p->n_packs = 1;
	if (pack)
		p->mark[0] = xcalloc(gitpack_count(pack) + 1, sizeof(*p->mark[0]));
	p->ref = xcalloc(commands->n + 1, sizeof(*p->ref));
	for (unsigned i = 0; i < commands->n; i++)
		p->ref[i].command = &commands->list[i];
	return p;
}

static void clear_paths(struct gitpush_ref *ref)
{
	for (size_t i = 0; i < ref->n_paths; i++)
		free(ref->path[i].path);
	free(TAKE(ref->path));
	ref->n_paths = 0;
}

static void clear_commits(struct gitpush_ref *ref)
{
	for (size_t i = 0; i < ref->n_commits; i++) {
		free(ref->commit[i].author);
		free(ref->commit[i].subject);
	}
	free(TAKE(ref->commit));
	ref->n_commits = ref->n_all_commits = 0;
}

void gitpush_free(struct gitpush **pp)
{
	struct gitpush *p = *pp;

	if (!p)
		return;
	for (unsigned i = 0; i < p->commands->n; i++) {
		clear_paths(&p->ref[i]);
		clear_commits(&p->ref[i]);
	}
	for (unsigned i = 0; i < p->n_packs; i++) {
		gitpack_free(&p->pack[i]);
		free(p->mark[i]);
	}
	free(p->ref);
	free(p);
	*pp = NULL;
}

const struct gitpush_ref *gitpush_ref(const struct gitpush *p, unsigned i)
{
	return &p->ref[i];
}

struct slice gitpush_pack(const struct gitpush *p)
{
	return p->pack[0] ? gitpack_bytes(p->pack[0]) : slice_of(NULL, 0);
}

void gitpush_supply(struct gitpush *p, struct gitpack *pack)
{
	if (!pack && !p->unfiltered) {
		p->unfiltered = true;
		p->asked.n_wants = 0;
		p->tried = false;
		return;
	}
	p->failed |= !pack && p->asked.kind == GITPUSH_TREES;
	if (!pack || p->n_packs == ARRAY_LEN(p->pack)) {
		gitpack_free(&pack);
		return;
	}
	p->mark[p->n_packs] = xcalloc(gitpack_count(pack) + 1, sizeof(*p->mark[0]));
	p->pack[p->n_packs++] = pack;
}

void gitpush_set_head(struct gitpush *p, const struct git_oid *head)
{
	p->knows_head = true;
	p->has_head = head != NULL;
	if (head)
		p->head = *head;
}

/* ---- objects ---- */

/* Where an object is. */
struct place {
	unsigned pack;
	uint32_t i;
};

static bool find_object(const struct gitpush *p, const struct git_oid *oid, struct place *ret)
{
	for (unsigned k = 0; k < p->n_packs; k++) {
		int64_t i = p->pack[k] ? gitpack_find(p->pack[k], oid) : -1;

		if (i < 0)
			continue;
		*ret = (struct place){.pack = k, .i = (uint32_t)i};
		return true;
	}
	return false;
}

int gitpush_visit(struct gitpush *p, struct err *err)
{
	if (++p->n_visits > GITPUSH_MAX_VISITS)
		return err_set(err, -E2BIG, "the push has too many objects to be read");
	return 0;
}

/* -EAGAIN: the object is needed. Asked for twice, the server does not have it. */
static int need_object(struct gitpush *p, const struct git_oid *oid, struct err *err)
{
	bool asked = p->asked.kind == GITPUSH_TREES && p->asked.n_wants == 1 &&
		     gitoid_eq(&p->asked.want[0], oid);

	if (p->failed || asked)
		return err_set(err, -ENOENT,
			"the push refers to objects that neither it nor the server has");
	if (p->n_packs == ARRAY_LEN(p->pack))
		return err_set(err, -E2BIG, "the push refers to too many objects of the server");
	p->need = (struct gitpush_need){
		.kind = GITPUSH_TREES, .unfiltered = p->unfiltered, .n_wants = 1};
	p->need.want[0] = *oid;
	return -EAGAIN;
}

int gitpush_load(struct gitpush *p, const struct git_oid *oid, enum gitobject_type type,
	uint8_t **ret, size_t *ret_n, struct err *err)
{
	uint32_t max = type == GITOBJECT_TREE ? MAX_TREE : MAX_HEAD_OBJECT;
	struct place at;

	if (!find_object(p, oid, &at))
		return need_object(p, oid, err);
	if (gitpack_type(p->pack[at.pack], at.i) != type)
		return err_set(err, -EBADMSG, "the push has an object of the wrong type");
	*ret_n = gitpack_size(p->pack[at.pack], at.i);
	if (*ret_n > max)
		return err_set(err, -E2BIG, "a commit or a directory of the push is too large");
	return gitpack_load(p->pack[at.pack], at.i, ret, err);
}

static int load_commit(struct gitpush *p, const struct git_oid *oid, struct gitcommit *ret,
	uint8_t **ret_bytes, struct err *err)
{
	size_t n;
	int r = gitpush_load(p, oid, GITOBJECT_COMMIT, ret_bytes, &n, err);

	if (r < 0)
		return r;
	if (gitcommit_parse(slice_of(*ret_bytes, n), ret) < 0)
		return err_set(err, -EBADMSG, "a commit of the push is malformed");
	return 0;
}

/* From a tag to what it is for. -EAGAIN if an object on the way is not there. */
static int peel_tags(struct gitpush *p, struct git_oid *oid, struct err *err)
{
	struct place at;

	for (unsigned i = 0; i < MAX_TAGS; i++) {
		AUTO_FREE uint8_t *bytes = NULL;
		size_t n;
		int r;

		if (!find_object(p, oid, &at))
			return need_object(p, oid, err);
		if (gitpack_type(p->pack[at.pack], at.i) != GITOBJECT_TAG)
			return 0;
		r = gitpush_load(p, oid, GITOBJECT_TAG, &bytes, &n, err);
		if (r < 0)
			return r;
		if (gittag_parse(slice_of(bytes, n), oid) < 0)
			return err_set(err, -EBADMSG, "a tag of the push is malformed");
	}
	return err_set(err, -EBADMSG, "a tag of the push is for a tag for a tag, and so on");
}

/* ---- commits: is it a fast-forward? ---- */

struct walk {
	struct gitpush *p;
	struct gitpush_ref *ref;
	struct git_oid *queue;
	size_t n, done, size;
	bool found;	 /* the old object is a parent */
	bool overflowed; /* of `missing` */
	unsigned n_missing;
	struct git_oid missing[GITPUSH_MAX_WANTS];
};

static void note_missing(struct walk *w, const struct git_oid *oid)
{
	for (unsigned i = 0; i < w->n_missing; i++)
		if (gitoid_eq(&w->missing[i], oid))
			return;
	if (w->n_missing == ARRAY_LEN(w->missing))
		w->overflowed = true;
	else
		w->missing[w->n_missing++] = *oid;
}

static void queue_commit(struct walk *w, const struct git_oid *oid)
{
	struct place at;

	if (gitoid_eq(oid, &w->ref->command->old)) {
		w->found = true;
		return;
	}
	if (!find_object(w->p, oid, &at)) {
		note_missing(w, oid);
		return;
	}
	if (w->p->mark[at.pack][at.i] == w->p->walk)
		return;
	w->p->mark[at.pack][at.i] = w->p->walk;
	if (w->n == w->size) {
		w->size = MAX(64u, 2 * w->size);
		w->queue = xrealloc(w->queue, w->size * sizeof(*w->queue));
	}
	w->queue[w->n++] = *oid;
}

static char *cut_text(struct slice s)
{
	size_t n = MIN(s.n, (size_t)MAX_SHOWN);
	char *text = xstrndup((const char *)s.p, n);

	return text;
}

static void list_commit(struct walk *w, const struct git_oid *oid, const struct gitcommit *commit)
{
	struct gitpush_ref *ref = w->ref;
	struct place at;

	if (!find_object(w->p, oid, &at) || at.pack != 0)
		return;
	if (++ref->n_all_commits > GITPUSH_MAX_COMMITS)
		return;
	if (!ref->commit)
		ref->commit = xcalloc(GITPUSH_MAX_COMMITS, sizeof(*ref->commit));
	ref->commit[ref->n_commits++] = (struct gitpush_commit){.oid = *oid,
		.author = cut_text(commit->author),
		.subject = cut_text(commit->subject)};
}

static int walk_commit(struct walk *w, struct git_oid oid, struct err *err)
{
	AUTO_FREE uint8_t *bytes = NULL;
	struct gitcommit commit;
	int r = gitpush_visit(w->p, err);

	if (r == 0)
		r = load_commit(w->p, &oid, &commit, &bytes, err);
	if (r < 0)
		return r;
	list_commit(w, &oid, &commit);
	for (unsigned i = 0; i < commit.n_parents; i++)
		queue_commit(w, &commit.parent[i]);
	return 0;
}

static int walk_all(struct walk *w, struct err *err)
{
	struct git_oid from = w->ref->command->new;
	struct place at;
	int r = 0;

	clear_commits(w->ref);
	w->p->walk++;
	if (find_object(w->p, &from, &at))
		r = peel_tags(w->p, &from, err);
	if (r < 0 && r != -EAGAIN)
		return r;
	/* a tag may be for a tree or a file: those have no history */
	if (find_object(w->p, &from, &at) &&
		gitpack_type(w->p->pack[at.pack], at.i) != GITOBJECT_COMMIT)
		return 0;
	queue_commit(w, &from);
	for (r = 0; r == 0 && w->done < w->n;)
		r = walk_commit(w, w->queue[w->done++], err);
	return r;
}

static bool is_tag(const struct gitcommand *c)
{
	return str_starts(c->name, "refs/tags/");
}

/* -EAGAIN: the commits behind the missing ones are needed. */
static int judge_update(struct gitpush *p, struct walk *w)
{
	bool forward = w->found || gitoid_eq(&w->ref->command->old, &w->ref->command->new);

	if (!is_tag(w->ref->command) && forward) {
		w->ref->verbs = GITPUSH_PUSH;
		return 0;
	}
	w->ref->verbs = GITPUSH_FORCE;
	if (is_tag(w->ref->command) || p->tried || w->n_missing == 0 || w->overflowed ||
		p->n_packs == ARRAY_LEN(p->pack))
		return 0;
	p->tried = true;
	p->need = (struct gitpush_need){.kind = GITPUSH_COMMITS,
		.unfiltered = p->unfiltered,
		.n_wants = w->n_missing,
		.have = w->ref->command->old};
	memcpy(p->need.want, w->missing, w->n_missing * sizeof(w->missing[0]));
	return -EAGAIN;
}

static int judge_verbs(struct gitpush *p, struct gitpush_ref *ref, struct err *err)
{
	struct walk w = {.p = p, .ref = ref};
	int r = 0;

	ref->verbs = gitcommand_is_delete(ref->command) ? GITPUSH_DELETE : GITPUSH_CREATE;
	if (ref->verbs != GITPUSH_DELETE)
		r = walk_all(&w, err);
	if (r == 0 && ref->verbs != GITPUSH_DELETE && !gitcommand_is_create(ref->command))
		r = judge_update(p, &w);
	if (is_tag(ref->command))
		ref->verbs |= GITPUSH_TAG;
	free(w.queue);
	return r;
}

/* ---- paths ---- */

static int tree_of(
	struct gitpush *p, const struct git_oid *oid, struct git_oid *ret, struct err *err)
{
	AUTO_FREE uint8_t *bytes = NULL;
	struct git_oid at = *oid;
	struct gitcommit commit;
	int r = peel_tags(p, &at, err);

	if (r == 0)
		r = load_commit(p, &at, &commit, &bytes, err);
	if (r == 0)
		*ret = commit.tree;
	return r;
}

static int judge_paths(struct gitpush *p, struct gitpush_ref *ref, struct err *err)
{
	const struct git_oid *base = &ref->command->old;
	struct git_oid old, new;
	int r;

	if (gitcommand_is_create(ref->command) && !p->knows_head) {
		p->need = (struct gitpush_need){.kind = GITPUSH_HEAD};
		return -EAGAIN;
	}
	if (gitcommand_is_create(ref->command))
		base = p->has_head ? &p->head : NULL;
	r = base ? tree_of(p, base, &old, err) : 0;
	if (r == 0)
		r = tree_of(p, &ref->command->new, &new, err);
	if (r < 0)
		return r;
	clear_paths(ref);
	r = gitpush_diff(p, base ? &old : NULL, &new, ref, err);
	ref->has_paths = r == 0;
	return r;
}

void gitpush_drop_paths(struct gitpush *p)
{
	p->paths = p->failed = false;
	if (p->next < p->commands->n)
		clear_paths(&p->ref[p->next]);
}

int gitpush_judge(struct gitpush *p, struct gitpush_need *ret, struct err *err)
{
	while (p->next < p->commands->n) {
		struct gitpush_ref *ref = &p->ref[p->next];
		int r = judge_verbs(p, ref, err);

		if (r == 0 && p->paths && !gitcommand_is_delete(ref->command))
			r = judge_paths(p, ref, err);
		if (r == -EAGAIN) {
			*ret = p->asked = p->need;
			return GITPUSH_NEED;
		}
		if (r < 0)
			return r;
		p->next++;
		p->tried = false;
	}
	return GITPUSH_DONE;
}
