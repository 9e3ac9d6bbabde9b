/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "policy_internal.h"

size_t table_width(enum table_section section)
{
	static const uint8_t widths[TABLE_N_SECTIONS] = {
		[TABLE_SPANS] = sizeof(struct span),
		[TABLE_TEXT] = 1,
		[TABLE_GLOBS] = sizeof(struct glob),
		[TABLE_NODES] = 1,
		[TABLE_SLOTS] = sizeof(uint32_t),
		[TABLE_RULES] = sizeof(struct table_rule),
		[TABLE_V4_KEYS] = sizeof(addr_bits),
		[TABLE_V4_NETS] = sizeof(struct net),
		[TABLE_V4_DOORS] = sizeof(uint32_t),
		[TABLE_V6_KEYS] = sizeof(addr_bits),
		[TABLE_V6_NETS] = sizeof(struct net),
		[TABLE_V6_DOORS] = sizeof(uint32_t),
		[TABLE_REQ_SLOTS] = sizeof(uint32_t),
		[TABLE_REQ_GROUPS] = sizeof(struct req_group),
		[TABLE_REQ_HOSTS] = sizeof(struct req_host),
		[TABLE_REQ_PLACES] = sizeof(struct req_place),
		[TABLE_REQ_ROWS] = sizeof(struct req_row),
		[TABLE_REQ_HEADERS] = 1,
	};

	return widths[section];
}

/* ---- making ---- */

static void draft_done(struct table_draft *draft)
{
	for (size_t i = 0; i < TABLE_N_SECTIONS; i++)
		free(draft->bytes[i]);
	*draft = (struct table_draft){0};
}

static void draft_fault(struct table_draft *draft, const char *fault)
{
	draft_done(draft);
	draft->head.state = TABLE_IS_FAULTY;
	draft->bytes[TABLE_TEXT] = xstrndup(fault, TABLE_MAX_FAULT);
	draft->head.section[TABLE_TEXT].n = strlen(draft->bytes[TABLE_TEXT]);
}

static size_t align_up(size_t n)
{
	return (n + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
}

static void place_sections(struct table_draft *draft)
{
	size_t at = align_up(sizeof(draft->head));

	for (size_t i = 0; i < TABLE_N_SECTIONS; i++) {
		struct table_range *s = &draft->head.section[i];

		if (!s->n)
			continue;
		s->at = at;
		at = align_up(at + s->n * table_width((enum table_section)i));
	}
	draft->head.size = at;
}

static void draft_make(const struct table_wish *wish, struct table_draft *draft)
{
	struct table_head *head = &draft->head;
	struct err err = {0};
	int r = 0;

	if (wish->fault)
		draft_fault(draft, wish->fault);
	else if (wish->unset)
		head->state = TABLE_IS_UNSET;
	else
		r = policy_compile(wish, draft, &err);
	if (r < 0)
		draft_fault(draft, err_text(&err, r));
	place_sections(draft);
	if (head->size > TABLE_MAX_BYTES) {
		draft_fault(draft, "the policy is too large");
		place_sections(draft);
	}
	memcpy(head->magic, TABLE_MAGIC, sizeof(head->magic));
	head->format = TABLE_FORMAT;
	head->part = wish->part;
	head->only = wish->only;
	(void)snprintf(head->build, sizeof(head->build), "%s", SBX_BUILD);
}

void *table_build(const struct table_wish *wish, size_t *ret_n)
{
	struct table_draft draft = {0};
	uint8_t *bytes;

	draft_make(wish, &draft);
	bytes = aligned_alloc(TABLE_ALIGN, draft.head.size);
	if (!bytes)
		abort();
	memset(bytes, 0, draft.head.size);
	memcpy(bytes, &draft.head, sizeof(draft.head));
	for (size_t i = 0; i < TABLE_N_SECTIONS; i++) {
		const struct table_range *s = &draft.head.section[i];

		if (s->n)
			memcpy(bytes + s->at, draft.bytes[i],
				s->n * table_width((enum table_section)i));
	}
	*ret_n = draft.head.size;
	draft_done(&draft);
	return bytes;
}

static int write_at(int fd, const void *bytes, size_t n, uint64_t at)
{
	if (lseek(fd, (off_t)at, SEEK_SET) < 0)
		return -errno;
	return fd_write_all(fd, bytes, n);
}

/* The head comes last: until then the file does not have the first bytes of a table. */
static int write_table(int fd, const struct table_draft *draft)
{
	int r = ftruncate(fd, (off_t)draft->head.size) < 0 ? -errno : 0;

	for (size_t i = 0; i < TABLE_N_SECTIONS && r == 0; i++) {
		const struct table_range *s = &draft->head.section[i];

		if (s->n)
			r = write_at(fd, draft->bytes[i], s->n * table_width((enum table_section)i),
				s->at);
	}
	if (r == 0)
		r = write_at(fd, &draft->head, sizeof(draft->head), 0);
	return r == 0 && fcntl(fd, F_ADD_SEALS, TABLE_SEALS) < 0 ? -errno : r;
}

int table_make(const struct table_wish *wish)
{
	AUTO_CLOSE int fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct table_draft draft = {0};
	char path[64];
	int r;

	if (fd < 0)
		return -errno;
	draft_make(wish, &draft);
	r = write_table(fd, &draft);
	draft_done(&draft);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_RDONLY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

uint32_t *table_pick(const struct rules *rules, const char *sandbox, size_t *ret_n)
{
	uint32_t *pick = xcalloc(rules->n + 1, sizeof(*pick));
	size_t n = 0;

	for (size_t i = 0; i < rules->n; i++) {
		const char *scope = rules->rule[i].sandbox;

		if (sandbox ? scope && strcmp(scope, sandbox) == 0 : !scope)
			pick[n++] = (uint32_t)i;
	}
	*ret_n = n;
	return pick;
}
