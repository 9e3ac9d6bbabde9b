/* SPDX-License-Identifier: Apache-2.0 */
/* The program git-remote-sbx: the commands of gitremote-helpers(7) on stdin and stdout. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "lib/rules/spec/spec.h"
#include "clone.h"
#include "git.h"
#include "transfer.h"

#define MAX_LINE 8192
#define MAX_PUSH 512

/* One run of the helper. */
struct helper {
	struct transfer pl;
	struct refs refs;
	bool listed, format; /* git asked for the object format */
	char line[MAX_LINE];
};

/* A batch of fetch or push lines. */
struct batch {
	char **v;
	size_t n;
};

static void batch_done(struct batch *b)
{
	mem_free_list(b->v, b->n);
}

static void batch_add(struct batch *b, const char *word)
{
	if ((b->n & (b->n - 1)) == 0)
		b->v = xrealloc(b->v, MAX(b->n * 2, (size_t)16) * sizeof(*b->v));
	b->v[b->n++] = xstrdup(word);
}

/* Without the newline; false at the end. */
static bool read_line(struct helper *h)
{
	size_t n;

	if (!fgets(h->line, sizeof(h->line), stdin))
		return false;
	n = strlen(h->line);
	if (n > 0 && h->line[n - 1] == '\n')
		h->line[n - 1] = '\0';
	return true;
}

/* "NAME" of sbx::NAME, or sbx://NAME. */
static int open_place(struct helper *h, const char *url, struct problem *p)
{
	const char *name = str_starts(url, "sbx://") ? url + strlen("sbx://") : url;
	const char *git_dir = getenv("GIT_DIR");
	AUTO_JSON json_t *s = NULL, *running = NULL;
	int r = spec_check_name(name, &p->err);

	if (r < 0)
		return r;
	if (!git_dir)
		return err_set(
			&p->err, -EINVAL, "git-remote-sbx is run by git: GIT_DIR is not set");
	r = sandbox_get(name, &s, p);
	if (r == 0)
		r = transfer_of(s, &h->pl, p);
	if (r == 0)
		r = repo_open(NULL, git_dir, &h->pl.repo, p);
	return r == 0 ? sandbox_start(name, NULL, &running, p) : r;
}

static void answer_option(struct helper *h, const char *words)
{
	static const char *const known[] = {
		"verbosity ", "progress ", "followtags ", "cloning ", "object-format"};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_starts(words, known[i])) {
			h->format = h->format || str_starts(words, "object-format");
			printf("ok\n");
			return;
		}
	printf("unsupported\n");
}

static int answer_list(struct helper *h, struct problem *p)
{
	int r = h->listed ? 0 : transfer_list(&h->pl, &h->refs, p);

	if (r < 0)
		return r;
	h->listed = true;
	if (h->format)
		printf(":object-format %s\n", h->pl.repo.format);
	for (size_t i = 0; i < h->refs.n; i++)
		if (strcmp(h->refs.v[i].name, "HEAD") != 0 || !h->refs.head)
			printf("%s %s\n", h->refs.v[i].oid, h->refs.v[i].name);
	if (h->refs.head)
		printf("@%s HEAD\n", h->refs.head);
	printf("\n");
	return 0;
}

/* "fetch OID NAME" lines until an empty one. */
static int answer_fetch(struct helper *h, struct problem *p)
{
	CLEANUP(batch_done) struct batch b = {0};
	AUTO_FREE char *keep = NULL;
	int r;

	do {
		char *oid = h->line + strlen("fetch ");

		oid[strcspn(oid, " ")] = '\0';
		if (!str_starts(h->line, "fetch ") ||
			!refs_is_oid(slice_from_str(oid), repo_hex(&h->pl.repo)))
			return err_set(&p->err, -EBADMSG, "unexpected line from git");
		batch_add(&b, oid);
	} while (read_line(h) && h->line[0]);
	r = transfer_fetch(&h->pl, b.v, b.n, &keep, p);
	if (r == 0 && keep)
		printf("lock %s\n", keep);
	if (r == 0)
		printf("\n");
	return r;
}

/* "[+]SRC:DST" as "[+]OID:DST"; NULL if it cannot be pushed. */
static char *push_spec(const struct helper *h, const char *word)
{
	bool force = word[0] == '+';
	const char *src = word + force, *colon = strrchr(src, ':');
	AUTO_FREE char *name = colon ? xstrndup(src, (size_t)(colon - src)) : NULL;
	const char *args[] = {"rev-parse", "--verify", "-q", "--end-of-options", name, NULL};
	AUTO_FREE char *oid = NULL;

	if (!colon || !refs_is_name(colon + 1))
		return NULL;
	if (!name[0])
		return xasprintf("%s%s", force ? "+" : "", colon);
	oid = git_line(NULL, h->pl.repo.git_dir, args);
	if (!oid || !refs_is_oid(slice_from_str(oid), repo_hex(&h->pl.repo)))
		return NULL;
	return xasprintf("%s%s%s", force ? "+" : "", oid, colon);
}

/* The line of the report about `dst`: FLAG TAB FROM:TO TAB TEXT. */
static void print_result(char *const *lines, size_t n, const char *dst)
{
	for (size_t i = 0; i < n; i++) {
		const char *tab = strchr(lines[i], '\t'), *end = tab ? strchr(tab + 1, '\t') : NULL;
		const char *colon = tab ? strchr(tab + 1, ':') : NULL;

		if (!end || !colon || colon > end || (size_t)(end - colon - 1) != strlen(dst) ||
			strncmp(colon + 1, dst, strlen(dst)) != 0)
			continue;
		if (lines[i][0] == '!')
			printf("error %s %s\n", dst, end + 1);
		else
			printf("ok %s\n", dst);
		return;
	}
	printf("error %s the sandbox did not report this ref\n", dst);
}

static void print_results(const struct batch *b, char *report)
{
	CLEANUP(batch_done) struct batch lines = {0};

	for (char *s = report ? strtok(report, "\n") : NULL; s; s = strtok(NULL, "\n"))
		if (lines.n < 2 * MAX_PUSH) {
			char *text = strrchr(s, '\t');

			if (text)
				ui_clean(text + 1); /* may be the guest's */
			batch_add(&lines, s);
		}
	for (size_t i = 0; i < b->n; i++)
		print_result(lines.v, lines.n, strrchr(b->v[i], ':') + 1);
	printf("\n");
}

/* Pushes what can be pushed. */
static int push_batch(struct helper *h, const struct batch *b, struct problem *p)
{
	char *specs[MAX_PUSH + 1] = {NULL};
	struct transfer_push t = {.specs = (const char *const *)specs};
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < b->n; i++) {
		specs[n] = push_spec(h, b->v[i]);
		if (specs[n])
			n++;
	}
	if (n > 0)
		r = transfer_push(&h->pl, &t, p);
	if (r == 0 || r == -EREMOTEIO)
		print_results(b, t.report);
	free(t.report);
	for (size_t i = 0; i < n; i++)
		free(specs[i]);
	return r == -EREMOTEIO ? 0 : r;
}

/* "push [+]SRC:DST" lines until an empty one. */
static int answer_push(struct helper *h, struct problem *p)
{
	CLEANUP(batch_done) struct batch b = {0};

	do {
		if (!str_starts(h->line, "push ") || !strchr(h->line, ':'))
			return err_set(&p->err, -EBADMSG, "unexpected line from git");
		if (b.n == MAX_PUSH)
			return err_set(&p->err, -E2BIG, "cannot push more than %d refs", MAX_PUSH);
		batch_add(&b, h->line + strlen("push "));
	} while (read_line(h) && h->line[0]);
	return push_batch(h, &b, p);
}

static int answer_one(struct helper *h, struct problem *p)
{
	if (strcmp(h->line, "capabilities") == 0)
		printf("fetch\npush\noption\nobject-format\n\n");
	else if (str_starts(h->line, "option "))
		answer_option(h, h->line + strlen("option "));
	else if (strcmp(h->line, "list") == 0 || strcmp(h->line, "list for-push") == 0)
		return answer_list(h, p);
	else if (str_starts(h->line, "fetch "))
		return answer_fetch(h, p);
	else if (str_starts(h->line, "push "))
		return answer_push(h, p);
	else
		return err_set(&p->err, -EBADMSG, "unknown command of git '%.60s'", h->line);
	return 0;
}

int remote_main(int argc, char **argv)
{
	struct helper h = {.listed = false};
	struct problem p = {0};
	int r = argc == 3 ? open_place(&h, argv[2], &p)
			  : err_set(&p.err, -EINVAL,
				    "git-remote-sbx is run by git: "
				    "expected REMOTE and URL");

	while (r == 0 && read_line(&h) && h.line[0]) {
		r = answer_one(&h, &p);
		if (fflush(stdout) != 0)
			break;
	}
	transfer_done(&h.pl);
	refs_done(&h.refs);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}
