/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

#include <stdio.h>
#include <string.h>

#include "lib/rules/settings/settings.h"

/* Completion of a positional, in the syntax of each shell. */
static const char *words_of(enum verb_word w)
{
	static const char *const words[] = {
		[VERB_SANDBOX] = "sandbox",
		[VERB_AGENT] = "agent",
		[VERB_RUN] = "run",
		[VERB_PATH] = "path",
		[VERB_COPY] = "copy",
		[VERB_KEY] = "key",
		[VERB_SHELL] = "shell",
		[VERB_PRESET] = "preset",
		[VERB_KIND] = "kind",
		[VERB_SERVICE] = "service",
		[VERB_SECRET] = "secret",
		[VERB_TEMPLATE] = "template",
		[VERB_PACK] = "pack",
		[VERB_HOLD] = "hold",
	};

	return w < ARRAY_LEN(words) && words[w] ? words[w] : "none";
}

static void print_keys(const char *separator)
{
	for (size_t i = 0; i < SETTINGS_N; i++)
		printf("%s%s", i ? separator : "", settings_keys[i].name);
}

static void print_options(const struct opt_def *defs)
{
	for (; defs && defs->name; defs++) {
		if (defs->hidden)
			continue;
		printf("--%s ", defs->name);
		if (defs->letter)
			printf("-%c ", defs->letter);
	}
	printf("--help");
}

/* Completion of the value of an option. */
static enum verb_word value_word(const struct opt_def *d)
{
	return strcmp(d->name, "sandbox") == 0	  ? VERB_SANDBOX
	       : strcmp(d->name, "template") == 0 ? VERB_TEMPLATE
						  : VERB_PATH;
}

/* Options whose value is the next word, as rows of a case. */
static void print_valued(const struct opt_def *defs)
{
	for (; defs && defs->name; defs++) {
		if (!defs->arg || defs->optional)
			continue;
		printf("--%s", defs->name);
		if (defs->letter)
			printf("|-%c", defs->letter);
		printf(") value=%s ;; ", words_of(value_word(defs)));
	}
}

static void print_names(void)
{
	for (const struct verb *const *v = verb_table; *v; v++)
		printf("%s ", (*v)->name);
	printf("help");
}

static void print_subs(const struct verb *v)
{
	for (const struct verb *s = v->subs; s->name; s++)
		printf("%s%s", s == v->subs ? "" : " ", s->name);
}

/* One `case` row: the words of the verb. Works in bash and zsh. */
static void print_row(const char *path, const struct verb *v)
{
	printf("\t'%s')\n\t\topts='", path);
	print_options(v->opts);
	printf("' first=%s others=%s\n\t\tcase \"$prev\" in ", words_of(v->first),
		words_of(v->others));
	print_valued(v->opts);
	printf("esac ;;\n");
}

static void print_rows(void)
{
	for (const struct verb *const *v = verb_table; *v; v++) {
		char path[64];

		if (!(*v)->subs) {
			print_row((*v)->name, *v);
			continue;
		}
		for (const struct verb *s = (*v)->subs; s->name; s++) {
			(void)snprintf(path, sizeof(path), "%s %s", (*v)->name, s->name);
			print_row(path, s);
		}
	}
}

static void print_groups(void)
{
	for (const struct verb *const *v = verb_table; *v; v++) {
		if (!(*v)->subs)
			continue;
		printf("\t%s) subs='", (*v)->name);
		print_subs(*v);
		printf("' ;;\n");
	}
}

/* Nothing here expands its input: file names may come from a guest. readline completes file names
 * (-o default) and quotes them. _sbx_words has words in $1 and a suffix for each in $2. */
static const char bash_words[] = "_sbx_words()\n{\n"
				 "\tlocal word words\n"
				 "\tread -r -d '' -a words <<< \"$1\" || :\n"
				 "\tfor word in \"${words[@]}\"; do\n"
				 "\t\tif [[ $word${2-} == \"$cur\"* ]]; then "
				 "COMPREPLY+=(\"$(printf %q \"$word\")${2-}\"); fi\n"
				 "\tdone\n}\n\n"
				 "_sbx_copy()\n{\n"
				 "\tlocal name\n"
				 "\t_sbx_words \"$(env SBX_COMPLETE=1 sbx ls -q 2>/dev/null)\" :\n"
				 "\t((${#COMPREPLY[@]})) || return 0\n"
				 "\twhile IFS= read -r name; do\n"
				 "\t\tCOMPREPLY+=(\"$(printf %q \"$name\")\")\n"
				 "\tdone < <(compgen -f -- \"$cur\")\n}\n\n";

static void bash_word_kinds(void)
{
	printf("_sbx_word()\n{\n"
	       "\tcase \"$1\" in\n"
	       "\tsandbox) _sbx_words \"$(env SBX_COMPLETE=1 sbx ls -q 2>/dev/null)\" ;;\n"
	       "\tagent) _sbx_words \"$(env SBX_COMPLETE=1 sbx agent ls -q 2>/dev/null)\" ;;\n"
	       "\trun) _sbx_words \"$(env SBX_COMPLETE=1 sbx agent ls -q 2>/dev/null; "
	       "env SBX_COMPLETE=1 sbx ls -q 2>/dev/null)\" ;;\n"
	       "\tpath) ;;\n"
	       "\tcopy) _sbx_copy ;;\n"
	       "\tkey) _sbx_words '");
	print_keys(" ");
	printf("' ;;\n"
	       "\tshell) _sbx_words 'bash zsh fish' ;;\n"
	       "\tpreset) _sbx_words 'allow-all balanced deny-all' ;;\n"
	       "\tkind) _sbx_words 'network http git api' ;;\n"
	       "\tservice) _sbx_words \"$(env SBX_COMPLETE=1 sbx secret services -q 2>/dev/null)\" "
	       ";;\n"
	       "\ttemplate) _sbx_words \"$(env SBX_COMPLETE=1 sbx template ls -q 2>/dev/null)\" "
	       ";;\n"
	       "\tpack) _sbx_words \"$(env SBX_COMPLETE=1 sbx api ls -q 2>/dev/null)\" ;;\n"
	       "\thold) _sbx_words \"$(env SBX_COMPLETE=1 sbx approve -q 2>/dev/null)\" ;;\n"
	       "\tsecret) _sbx_words \"$(env SBX_COMPLETE=1 sbx secret ls -q 2>/dev/null)\" ;;\n"
	       "\tesac\n}\n\n");
}

void completion_bash(void)
{
	printf("# bash completion for sbx, written by `sbx completion bash`\n%s", bash_words);
	bash_word_kinds();
	printf("_sbx()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\tlocal verb=${COMP_WORDS[1]} path subs='' opts='' first=none others=none "
	       "value='' at=2\n"
	       "\tCOMPREPLY=()\n"
	       "\tif ((COMP_CWORD == 1)); then\n\t\t_sbx_words '");
	print_names();
	printf("'\n\t\treturn\n\tfi\n"
	       "\tpath=$verb\n\tcase \"$verb\" in\n");
	print_groups();
	printf("\thelp) _sbx_words '");
	print_names();
	printf("'; return ;;\n\tesac\n"
	       "\tif [[ -n $subs ]]; then\n"
	       "\t\tif ((COMP_CWORD == 2)); then _sbx_words \"$subs\"; return; fi\n"
	       "\t\tpath=\"$verb ${COMP_WORDS[2]}\" at=3\n"
	       "\tfi\n"
	       "\tcase \"$path\" in\n");
	print_rows();
	printf("\tesac\n"
	       "\tif [[ -n $value ]]; then _sbx_word $value; return; fi\n"
	       "\tif [[ $cur == -* ]]; then _sbx_words \"$opts\"; return; fi\n"
	       "\tlocal i n=0\n"
	       "\tfor ((i = at; i < COMP_CWORD; i++)); do [[ ${COMP_WORDS[i]} == -* ]] || ((++n)); "
	       "done\n"
	       "\tif ((n == 0)); then _sbx_word \"$first\"; else _sbx_word \"$others\"; fi\n"
	       "}\ncomplete -o default -F _sbx sbx\n");
}

/* Single quotes for zsh and fish: ' becomes '\''. */
static void print_quoted(const char *s)
{
	(void)putchar('\'');
	for (; *s; s++)
		if (*s == '\'')
			printf("'\\''");
		else
			(void)putchar(*s);
	(void)putchar('\'');
}

static void print_described(const char *name, const char *summary)
{
	char pair[256];

	(void)snprintf(pair, sizeof(pair), "%s:%s", name, summary);
	printf(" ");
	print_quoted(pair);
}

void completion_zsh(void)
{
	printf("#compdef sbx\n# zsh completion for sbx, written by `sbx completion zsh`\n"
	       "_sbx_word() {\n"
	       "\tcase \"$1\" in\n"
	       "\tsandbox) compadd -- ${(f)\"$(env SBX_COMPLETE=1 sbx ls -q 2>/dev/null)\"} ;;\n"
	       "\tagent) compadd -- ${(f)\"$(env SBX_COMPLETE=1 sbx agent ls -q 2>/dev/null)\"} "
	       ";;\n"
	       "\trun) compadd -- ${(f)\"$(env SBX_COMPLETE=1 sbx agent ls -q 2>/dev/null; "
	       "env SBX_COMPLETE=1 sbx ls -q 2>/dev/null)\"} ;;\n"
	       "\tpath) _files ;;\n"
	       "\tcopy) _files; compadd -S '' -- ${^${(f)\"$(env SBX_COMPLETE=1 sbx ls -q "
	       "2>/dev/null)\"}}: ;;\n"
	       "\tkey) compadd ");
	print_keys(" ");
	printf(" ;;\n\tshell) compadd bash zsh fish ;;\n"
	       "\tpreset) compadd allow-all balanced deny-all ;;\n\tkind) compadd network http git api ;;\n"
	       "\tservice) compadd -- ${(f)\"$(env SBX_COMPLETE=1 sbx secret services -q "
	       "2>/dev/null)\"} ;;\n"
	       "\tsecret) compadd -- ${(f)\"$(env SBX_COMPLETE=1 sbx secret ls -q 2>/dev/null)\"} "
	       ";;\n"
	       "\ttemplate) compadd -- ${(f)\"$(env SBX_COMPLETE=1 sbx template ls -q "
	       "2>/dev/null)\"} ;;\n"
	       "\tpack) compadd -- ${(f)\"$(env SBX_COMPLETE=1 sbx api ls -q 2>/dev/null)\"} ;;\n"
	       "\thold) compadd -- ${(f)\"$(env SBX_COMPLETE=1 sbx approve -q 2>/dev/null)\"} ;;\n"
	       "\tesac\n}\n\n_sbx() {\n"
	       "\tlocal cur=${words[CURRENT]} prev=${words[CURRENT-1]} verb=${words[2]} verb_path "
	       "subs=''\n"
	       "\tlocal opts='' first=none others=none value='' at=3 i n=0\n"
	       "\tif ((CURRENT == 2)); then\n\t\tlocal -a verbs\n\t\tverbs=(");
	for (const struct verb *const *v = verb_table; *v; v++)
		print_described((*v)->name, (*v)->summary);
	print_described("help", "help on a command");
	printf(")\n\t\t_describe command verbs\n\t\treturn\n\tfi\n"
	       "\tverb_path=$verb\n\tcase \"$verb\" in\n");
	print_groups();
	printf("\thelp) compadd ");
	print_names();
	printf("; return ;;\n\tesac\n"
	       "\tif [[ -n $subs ]]; then\n"
	       "\t\tif ((CURRENT == 3)); then compadd ${=subs}; return; fi\n"
	       "\t\tverb_path=\"$verb ${words[3]}\" at=4\n\tfi\n"
	       "\tcase \"$verb_path\" in\n");
	print_rows();
	printf("\tesac\n"
	       "\tif [[ -n $value ]]; then _sbx_word $value; return; fi\n"
	       "\tif [[ $cur == -* ]]; then compadd -- ${=opts}; return; fi\n"
	       "\tfor ((i = at; i < CURRENT; i++)); do [[ ${words[i]} == -* ]] || ((++n)); done\n"
	       "\tif ((n == 0)); then _sbx_word \"$first\"; else _sbx_word \"$others\"; fi\n"
	       "}\n\n[[ ${funcstack[1]} == _sbx ]] && _sbx \"$@\" || compdef _sbx sbx\n");
}

static const char *fish_words(enum verb_word w)
{
	static const char run[] =
		"-a '(env SBX_COMPLETE=1 sbx agent ls -q 2>/dev/null; env SBX_COMPLETE=1 "
		"sbx ls -q 2>/dev/null)'";
	static const char *const words[] = {
		[VERB_SANDBOX] = "-f -a '(env SBX_COMPLETE=1 sbx ls -q 2>/dev/null)'",
		[VERB_COPY] =
			"-a '(env SBX_COMPLETE=1 sbx ls -q 2>/dev/null | string replace -r \\$ :)'",
		[VERB_AGENT] = "-a '(env SBX_COMPLETE=1 sbx agent ls -q 2>/dev/null)'",
		[VERB_RUN] = run,
		[VERB_SHELL] = "-f -a 'bash zsh fish'",
		[VERB_PRESET] = "-f -a 'allow-all balanced deny-all'",
		[VERB_KIND] = "-f -a 'network http git api'",
		[VERB_SERVICE] = "-f -a '(env SBX_COMPLETE=1 sbx secret services -q 2>/dev/null)'",
		[VERB_SECRET] = "-f -a '(env SBX_COMPLETE=1 sbx secret ls -q 2>/dev/null)'",
		[VERB_TEMPLATE] = "-f -a '(env SBX_COMPLETE=1 sbx template ls -q 2>/dev/null)'",
		[VERB_PACK] = "-f -a '(env SBX_COMPLETE=1 sbx api ls -q 2>/dev/null)'",
		[VERB_HOLD] = "-f -a '(env SBX_COMPLETE=1 sbx approve -q 2>/dev/null)'",
		[VERB_PATH] = "-F",
	};

	return w < ARRAY_LEN(words) && words[w] ? words[w] : "-f";
}

static void fish_verb(const char *condition, const struct verb *v)
{
	printf("complete -c sbx -n '%s' ", condition);
	if (v->first == VERB_KEY) {
		printf("-f -a '");
		print_keys(" ");
		printf("'\n");
	} else {
		printf("%s\n", fish_words(v->first));
	}
	for (const struct opt_def *d = v->opts; d && d->name; d++) {
		if (d->hidden)
			continue;
		printf("complete -c sbx -n '%s' -l %s", condition, d->name);
		if (d->letter)
			printf(" -s %c", d->letter);
		if (d->arg && !d->optional)
			printf(" -r %s", fish_words(value_word(d)));
		printf(" -d ");
		print_quoted(d->help);
		printf("\n");
	}
}

static void fish_group(const struct verb *v)
{
	char condition[256];

	for (const struct verb *s = v->subs; s->name; s++) {
		printf("complete -c sbx -f -n '__fish_seen_subcommand_from %s; and not "
		       "__fish_seen_subcommand_from ",
			v->name);
		print_subs(v);
		printf("' -a %s -d ", s->name);
		print_quoted(s->summary);
		(void)snprintf(condition, sizeof(condition),
			"__fish_seen_subcommand_from %s; and __fish_seen_subcommand_from %s",
			v->name, s->name);
		printf("\n");
		fish_verb(condition, s);
	}
}

void completion_fish(void)
{
	char condition[128];

	printf("# fish completion for sbx, written by `sbx completion fish`\n");
	for (const struct verb *const *v = verb_table; *v; v++) {
		printf("complete -c sbx -f -n __fish_use_subcommand -a %s -d ", (*v)->name);
		print_quoted((*v)->summary);
		printf("\n");
		if ((*v)->subs) {
			fish_group(*v);
			continue;
		}
		(void)snprintf(
			condition, sizeof(condition), "__fish_seen_subcommand_from %s", (*v)->name);
		fish_verb(condition, *v);
	}
}
