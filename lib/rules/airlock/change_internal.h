/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change_internal - the parts of change.c: entries of manifests, and characters.
 *
 * How      A reader of a manifest calls change_add for each entry of one text. An entry with a
 *          value is new if no entry of the old text has the same name and value.
 * Trust    See change.h.
 */
#pragma once

#include "change.h"

struct change_entry {
	enum change_kind kind;
	struct slice name, value; /* value: what counts besides the name; may be empty */
};

struct change_list {
	struct change_entry v[CHANGE_MAX_ENTRIES];
	size_t n;
	bool is_full, is_bad; /* bad: not a text of this format */
};

/* Both without blanks around them; without a name nothing is added. */
void change_add(
	struct change_list *l, enum change_kind kind, struct slice name, struct slice value);
void change_report(struct change_found *f, enum change_kind kind, struct slice name);

typedef void change_reader(struct slice text, struct change_list *ret);
/* package.json */
void change_read_package(struct slice text, struct change_list *ret);
/* Cargo.toml and pyproject.toml */
void change_read_toml(struct slice text, struct change_list *ret);
void change_read_requirements(struct slice text, struct change_list *ret);
void change_read_gomod(struct slice text, struct change_list *ret);
void change_read_gemfile(struct slice text, struct change_list *ret);
void change_read_pom(struct slice text, struct change_list *ret);
void change_read_gradle(struct slice text, struct change_list *ret);

void change_find_characters(struct slice old, struct slice new, struct change_found *f);
