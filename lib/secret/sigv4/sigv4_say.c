/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4_say - tests only: requests of sigv4_rig.h from stdin, each ended by a line "end"; what
 * became of them to stdout in the same words, or "refused SENTENCE".
 */
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/secret/sigv4/test/sigv4_rig.h"

static void say_all(const char *word, struct slice text)
{
	printf("%s ", word);
	(void)fwrite(text.p, 1, text.n, stdout);
	printf("\n");
}

static void say_result(struct sigv4_rig *rig)
{
	struct err err = {0};
	int r = sigv4_rig_run(rig, &err);

	if (r < 0) {
		printf("refused %s\nend\n", err_text(&err, r));
		return;
	}
	if (rig->req.has_query)
		say_all("query", rig->req.query);
	for (size_t i = 0; i < rig->req.headers.n; i++) {
		printf("header ");
		(void)fwrite(rig->req.headers.list[i].name.p, 1, rig->req.headers.list[i].name.n,
			stdout);
		say_all("", rig->req.headers.list[i].value);
	}
	printf("body ");
	for (size_t i = 0; i < rig->n_sent; i++)
		printf("%02x", rig->sent[i]);
	printf("\nend\n");
}

int main(void)
{
	char *lines[256], *buf = NULL;
	size_t n = 0, size = 0;
	ssize_t len;
	struct sigv4_rig rig;

	sigv4_rig_init(&rig);
	while ((len = getline(&buf, &size, stdin)) > 0) {
		if (buf[len - 1] == '\n')
			buf[--len] = '\0';
		if (strcmp(buf, "end") == 0) {
			say_result(&rig);
			sigv4_rig_done(&rig);
			sigv4_rig_init(&rig);
			while (n > 0)
				free(lines[--n]);
			continue;
		}
		if (n == ARRAY_LEN(lines) ||
			!sigv4_rig_line(&rig, slice_from_str(lines[n] = xstrdup(buf)))) {
			fprintf(stderr, "sigv4_say: cannot read: %s\n", buf);
			return 2;
		}
		n++;
	}
	sigv4_rig_done(&rig);
	while (n > 0)
		free(lines[--n]);
	free(buf);
	return 0;
}
