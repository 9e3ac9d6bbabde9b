/* SPDX-License-Identifier: Apache-2.0 */
/* For gitpush_oracle.py: reads bodies of pushes from stdin and prints what each does. A message is
 * a line with a number of bytes, then the bytes. What is needed of the server is printed as a
 * message after "need"; the answer is read as a message. */
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/wire/git/gitfetch.h"

static const struct gitpack_limits limits = {
	.bytes = GITPACK_MAX_BYTES, .objects = 1000000, .work = UINT64_C(4) << 30};

struct text {
	uint8_t *p;
	size_t n;
};

static void append(void *arg, struct slice bytes)
{
	struct text *t = arg;

	t->p = xrealloc(t->p, t->n + bytes.n + 1);
	memcpy(t->p + t->n, bytes.p, bytes.n);
	t->n += bytes.n;
}

static bool read_message(struct text *ret)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		return false;
	ret->n = strtoull(line, NULL, 10);
	ret->p = xmalloc(ret->n + 1);
	return fread(ret->p, 1, ret->n, stdin) == ret->n;
}

static int supply(struct gitpush *p, const struct gitpush_need *need, struct err *err)
{
	AUTO_GITPACK struct gitpack *pack =
		need->kind == GITPUSH_HEAD ? NULL : gitpack_new(&limits);
	struct gitfetch f;
	struct text in = {0}, request = {0};
	int r;

	gitfetch_request(need, append, &request);
	printf("need %zu\n", request.n);
	(void)fwrite(request.p, 1, request.n, stdout);
	(void)fflush(stdout);
	free(request.p);
	if (!read_message(&in))
		exit(2);
	gitfetch_init(&f, need->kind, pack);
	r = gitfetch_read(&f, slice_of(in.p, in.n), err);
	free(in.p);
	if (r == 0)
		r = gitfetch_end(&f);
	if (r == 0 && pack)
		r = gitpack_index(pack, err);
	if (need->kind == GITPUSH_HEAD)
		gitpush_set_head(p, f.has_head ? &f.head : NULL);
	else
		gitpush_supply(p, r == 0 ? TAKE(pack) : NULL);
	if (r < 0)
		printf("failed %s\n", err->text);
	return 0;
}

static void print_ref(const struct gitpush_ref *ref)
{
	printf("ref %u %zu %s\n", ref->verbs, ref->n_all_commits, ref->command->name);
	for (size_t i = 0; i < ref->n_paths; i++)
		printf("path %c %s%c", ref->path[i].status, ref->path[i].path, 0);
	for (size_t i = 0; i < ref->n_commits; i++)
		printf("commit %s%c", ref->commit[i].subject, 0);
}

static int judge(const struct gitcommands *c, struct gitpack *pack, struct err *err)
{
	AUTO_GITPUSH struct gitpush *p = gitpush_new(c, pack, true);
	struct gitpush_need need;
	int r;

	while ((r = gitpush_judge(p, &need, err)) == GITPUSH_NEED)
		if (supply(p, &need, err) < 0)
			return -1;
	for (unsigned i = 0; r == 0 && i < c->n; i++)
		print_ref(gitpush_ref(p, i));
	return r;
}

static int say(struct slice body, struct gitcommands *c, struct err *err)
{
	AUTO_GITPACK struct gitpack *pack = NULL;
	int r = gitcommands_read(c, &body, err);

	if (r != GITCOMMANDS_DONE)
		return r < 0 ? r : -1;
	if (body.n > 0) {
		pack = gitpack_new(&limits);
		r = gitpack_put(pack, body, err);
		if (r == 0)
			r = gitpack_index(pack, err);
		if (r < 0)
			return r;
	} else {
		r = 0;
	}
	return judge(c, TAKE(pack), err);
}

int main(void)
{
	static struct gitcommands c;
	struct text body;

	gitcommands_init(&c);
	while (read_message(&body)) {
		struct err err = {0};

		if (say(slice_of(body.p, body.n), &c, &err) < 0)
			printf("unknown %s\n", err.text);
		printf("done\n");
		(void)fflush(stdout);
		gitcommands_done(&c);
		free(body.p);
	}
	return 0;
}
