/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a staged workspace by value: their log, and refs/sbx. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "clone.h"
#include "lost.h"

#define MAX_SHOWN 50 /* branches with a log */
#define MAX_LOG (1u << 20)

static int open_place(const struct clone_place *w, struct transfer *ret, struct problem *p)
{
	*ret = (struct transfer){
		.ref = xstrdup(w->sandbox), .id = xstrdup(w->id), .guest = xstrdup(w->guest)};
	return repo_open(w->host, NULL, &ret->repo, p);
}

/* ui_clean keeps the length. */
static void clean_lines(char *text)
{
	for (char *s = text; *s;) {
		size_t n = strcspn(s, "\n");
		char end = s[n];

		s[n] = '\0';
		ui_clean(s);
		s[n] = end;
		s += n + (end != '\0');
	}
}

/* Refs of the quarantine are what the host has. The caller frees the text. */
static char *load_log(struct quarantine *q, const char *oid)
{
	const char *argv[] = {"git", "log", "--no-color", "--no-decorate", "--no-ext-diff",
		"--no-textconv", "--no-renames", "--no-show-signature", "--stat=100",
		"--max-count=200", "--date=iso", "--encoding=UTF-8",
		"--format=commit %H%nAuthor: %an <%ae>%nDate:   %ad%n%n%w(0,4,4)%B", oid, "--not",
		"--all", "--", NULL};
	struct err err = {0};
	char *text = NULL;
	size_t n = 0;
	int r = quarantine_run(q, argv, MAX_LOG, &text, &n, &err);

	if (r == 0) {
		clean_lines(text); /* until a NUL */
		return text;
	}
	free(text);
	return xstrdup(r == -EFBIG ? "no log: larger than 1 MiB\n" : "no log: git failed\n");
}

int clone_show(const struct clone_place *w, clone_put *put, void *arg, struct problem *p)
{
	AUTO_TRANSFER struct transfer pl = {0};
	AUTO_REFS struct refs refs = {0};
	AUTO_LOST struct lost lost = {0};
	AUTO_QUARANTINE struct quarantine q = {0};
	int r = open_place(w, &pl, p);

	if (r == 0)
		r = transfer_list(&pl, &refs, p);
	if (r < 0)
		return r;
	lost_find(&pl.repo, &refs, &lost);
	if (lost.n > 0)
		r = transfer_quarantine(&pl, lost.oids, lost.n, &q, p);
	for (size_t i = 0; r == 0 && i < lost.n; i++) {
		AUTO_FREE char *log = i < MAX_SHOWN ? load_log(&q, lost.oids[i])
						    : xstrdup("no log: too many branches\n");

		put(arg, lost.names[i], lost.oids[i], log);
	}
	return r;
}

int clone_fetch(const struct clone_place *w, char *const *oids, char *const *branches, size_t n,
	size_t *ret_n, struct problem *p)
{
	AUTO_TRANSFER struct transfer pl = {0};
	AUTO_LOST struct lost lost = {0};
	int r = open_place(w, &pl, p);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (!lost_is_kept(&pl.repo, oids[i], NULL))
			lost_add(&lost, oids[i], branches[i]);
	*ret_n = lost.n;
	return r < 0 || lost.n == 0 ? r : lost_fetch(&pl, &lost, p);
}

bool clone_is_branch(const char *oid, const char *branch)
{
	AUTO_FREE char *full = xasprintf("refs/heads/%s", branch);
	size_t n = strlen(oid);

	return (n == 40 || n == 64) && refs_is_oid(slice_from_str(oid), n) &&
	       (refs_is_name(full) || strcmp(branch, "HEAD") == 0);
}
