/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_writer FOLDER - writes audit logs as its stdin says, for tests of the commands that read
 * them.
 *
 * A line is words separated by tabs: ID NAME KIND VERDICT ACTION TYPE HOST PORT PATH RULE REASON
 * COUNT OP EFFECTS HOLD FROM ("-" for an empty one), or `sync ID`, `close ID`, `fill ID NAME N` (N
 * decisions), or `die` (end without closing anything), or `age SECONDS` (what follows was so long
 * ago). Each line is answered with "ok" or with what was wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/rules/audit/audit.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define MAX_LOGS 64
#define N_WORDS 16

static struct {
	char *dir;
	struct audit_key *key;
	struct {
		char id[32];
		struct audit *a;
	} logs[MAX_LOGS];
	size_t n;
	uint64_t age_ms;
} w;

uint64_t __real_clock_wall_ms(void);
uint64_t __wrap_clock_wall_ms(void);

/* The linker gives it to lib/rules/audit. */
uint64_t __wrap_clock_wall_ms(void)
{
	return __real_clock_wall_ms() - w.age_ms;
}

static int find(const char *id, const char *name, struct audit **ret, struct err *err)
{
	struct audit_options o = {
		.dir = w.dir, .sandbox = id, .name = name, .key = w.key, .segment_bytes = 1 << 20};
	size_t i = 0;
	int r;

	while (i < w.n && strcmp(w.logs[i].id, id) != 0)
		i++;
	if (i == MAX_LOGS)
		return err_set(err, -ENOSPC, "too many logs");
	if (i == w.n) {
		(void)snprintf(w.logs[i].id, sizeof(w.logs[i].id), "%s", id);
		w.n++;
	}
	r = w.logs[i].a ? 0 : audit_open(&o, &w.logs[i].a, err);
	if (r == 0)
		r = audit_set_name(w.logs[i].a, name);
	*ret = w.logs[i].a;
	return r;
}

static enum audit_kind kind_of(const char *name)
{
	for (int k = 0; k < AUDIT_N_KINDS; k++)
		if (strcmp(name, audit_kind_name(k)) == 0)
			return k;
	return AUDIT_KIND_DECISION;
}

static struct slice text(const char *word)
{
	return strcmp(word, "-") == 0 ? (struct slice){0} : slice_from_str(word);
}

static int event(char **word, struct err *err)
{
	struct audit *a;
	struct audit_event ev = {.kind = kind_of(word[2]),
		.decision = strcmp(word[3], "allow") == 0  ? AUDIT_ALLOW
			    : strcmp(word[3], "deny") == 0 ? AUDIT_DENY
							   : AUDIT_NONE,
		.action = text(word[4]),
		.type = text(word[5]),
		.host = text(word[6]),
		.port = strtoul(word[7], NULL, 10),
		.path = text(word[8]),
		.rule = text(word[9]),
		.reason = text(word[10]),
		.count = strtoul(word[11], NULL, 10),
		.op = text(word[12]),
		.effects = text(word[13]),
		.hold = text(word[14]),
		.from = text(word[15])};
	int r = find(word[0], word[1], &a, err);

	if (ev.effects.n)
		memset(ev.digest, 0xee, sizeof(ev.digest));
	return r < 0 ? r : audit_append(a, &ev, NULL, err);
}

static int fill(char **word, struct err *err)
{
	unsigned long n = strtoul(word[3], NULL, 10);
	struct audit *a;
	int r = find(word[1], word[2], &a, err);

	for (unsigned long i = 0; i < n && r == 0; i++) {
		char host[32];
		struct audit_event ev = {.kind = AUDIT_KIND_DECISION,
			.decision = i % 5 ? AUDIT_ALLOW : AUDIT_DENY,
			.type = slice_from_str("https"),
			.port = 443,
			.path = slice_from_str("forward-bypass"),
			.rule = slice_from_str("balanced:17")};

		(void)snprintf(host, sizeof(host), "h%lu.example", i % 1000);
		ev.host = slice_from_str(host);
		r = audit_append(a, &ev, NULL, err);
	}
	return r;
}

static int finish(const char *id, bool close, struct err *err)
{
	for (size_t i = 0; i < w.n; i++) {
		struct audit *a = w.logs[i].a;

		if (strcmp(w.logs[i].id, id) != 0 || !a)
			continue;
		if (close)
			w.logs[i].a = NULL;
		return close ? audit_close(a, err) : audit_sync(a, err);
	}
	return err_set(err, -ENOENT, "no log %s is open", id);
}

static int obey(char *line, struct err *err)
{
	char *word[N_WORDS], *save = NULL;
	size_t n = 0;

	for (char *at = strtok_r(line, "\t\n", &save); at && n < N_WORDS;
		at = strtok_r(NULL, "\t\n", &save))
		word[n++] = at;
	if (n == 1 && strcmp(word[0], "die") == 0)
		_exit(0);
	if (n == 2 && strcmp(word[0], "sync") == 0)
		return finish(word[1], false, err);
	if (n == 2 && strcmp(word[0], "close") == 0)
		return finish(word[1], true, err);
	if (n == 2 && strcmp(word[0], "age") == 0) {
		w.age_ms = strtoull(word[1], NULL, 10) * 1000;
		return 0;
	}
	if (n == 4 && strcmp(word[0], "fill") == 0)
		return fill(word, err);
	return n == N_WORDS ? event(word, err) : err_set(err, -EINVAL, "%zu words", n);
}

int main(int argc, char **argv)
{
	struct err err = {0};
	char line[4096];
	int r;

	if (argc != 2)
		return 2;
	w.dir = argv[1];
	r = audit_key_load(w.dir, &w.key, &err);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		int done = obey(line, &err);

		printf("%s\n", done < 0 ? err_text(&err, done) : "ok");
		(void)fflush(stdout);
	}
	for (size_t i = 0; i < w.n && r == 0; i++)
		r = audit_close(w.logs[i].a, &err);
	if (r < 0)
		fprintf(stderr, "audit_writer: %s\n", err_text(&err, r));
	audit_key_free(w.key);
	return r < 0;
}
