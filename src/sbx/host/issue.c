/* SPDX-License-Identifier: Apache-2.0 */
#include "issue.h"

#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/client/cli/ui.h"

#define RELEASE "/etc/os-release"
#define MAX_RELEASE 16384

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Replaces every `name` that is not part of a longer word. */
static char *replace_word(const char *text, const char *name, const char *with)
{
	size_t n = name ? strlen(name) : 0, at = 0;
	char *out = xmalloc(strlen(text) * (strlen(with) + 1) + 1);

	for (const char *s = text; *s;) {
		bool begins = s == text || !is_word(s[-1]) || !is_word(name ? name[0] : '\0');

		if (n && begins && strncmp(s, name, n) == 0 && !is_word(s[n])) {
			memcpy(out + at, with, strlen(with));
			at += strlen(with);
			s += n;
		} else {
			out[at++] = *s++;
		}
	}
	out[at] = '\0';
	return out;
}

char *issue_clean(const char *text, const struct issue_names *names)
{
	const char *home = names->home && names->home[0] && names->home[1] ? names->home : NULL;
	AUTO_FREE char *first = replace_word(text, home, "~");
	AUTO_FREE char *second = replace_word(first, names->user, "USER");

	return replace_word(second, names->host, "HOST");
}

static void print_release(void)
{
	AUTO_FREE char *text = NULL;
	static const char key[] = "PRETTY_NAME=";
	size_t n = 0;
	char *at;

	if (file_load(RELEASE, MAX_RELEASE, &text, &n, NULL) < 0)
		return;
	at = strstr(text, key);
	if (!at)
		return;
	at += strlen(key);
	at += *at == '"';
	at[strcspn(at, "\"\n")] = '\0';
	printf("- distribution: ");
	ui_put(at);
	(void)putchar('\n');
}

void issue_begin(struct issue_names *ret)
{
	static struct utsname u; /* *ret points into it */
	const struct passwd *user = getpwuid(getuid());

	*ret = (struct issue_names){.home = getenv("HOME"), .user = user ? user->pw_name : NULL};
	printf("- sbx: %s\n", SBX_VERSION);
	print_release();
	if (uname(&u) == 0) {
		ret->host = u.nodename;
		printf("- kernel: ");
		ui_put(u.release);
		printf(" %s\n", u.machine);
	}
	printf("\n| check | result |\n|---|---|\n");
}

void issue_row(const char *name, const char *status, char *message)
{
	for (char *s = message; *s; s++)
		*s = *s == '|' ? '/' : *s;
	printf("| %s | %s", name, status);
	if (message[0]) {
		printf(": ");
		ui_put(message);
	}
	printf(" |\n");
}
