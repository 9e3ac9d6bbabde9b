/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "policy_internal.h"
#include "policy_request.h"

static bool has_sections(const struct table_head *h)
{
	for (size_t i = 0; i < TABLE_N_SECTIONS; i++) {
		const struct table_range *s = &h->section[i];

		if (s->n && (s->at < sizeof(*h) || s->at % TABLE_ALIGN || s->at > h->size ||
				    s->n > (h->size - s->at) / table_width((enum table_section)i)))
			return false;
	}
	return true;
}

static bool fits_nets(const struct table_head *h, enum table_section keys)
{
	const struct table_range *s = &h->section[keys];

	return s[1].n == s[0].n && s[2].n == (s[0].n ? POLICY_N_DOORS : 0) && s[0].n < NO_NET;
}

/* Sections that belong together have as many elements as the head promises. */
static bool fits_head(const struct table_head *h)
{
	size_t slots = h->section[TABLE_SLOTS].n;

	if (h->slot_bits > 24 || h->max_labels > HOST_MAX_NAME / 2 + 1)
		return false;
	if (slots != (h->max_labels || h->slot_bits ? 1ul << h->slot_bits : 0) ||
		(slots && h->slot_bits == 0))
		return false;
	return fits_nets(h, TABLE_V4_KEYS) && fits_nets(h, TABLE_V6_KEYS);
}

static int check_head(
	const struct table_head *h, size_t size, enum policy_part part, struct err *err)
{
	char build[TABLE_MAX_BUILD] = SBX_BUILD;

	if (memcmp(h->magic, TABLE_MAGIC, sizeof(h->magic)) != 0)
		return err_set(err, -EBADMSG, "not a table");
	if (h->format != TABLE_FORMAT || memcmp(h->build, build, sizeof(build)) != 0)
		return err_set(
			err, -EBADMSG, "made by another version of sbx: restart the sandbox");
	if (h->size != size)
		return err_set(err, -EBADMSG, "truncated");
	if (h->part != part || h->state >= TABLE_N_STATES || h->only > 1 || !has_sections(h) ||
		!fits_head(h))
		return err_set(err, -EBADMSG, "damaged");
	return 0;
}

static const void *section_at(const struct table *t, enum table_section section)
{
	const struct table_range *s = &t->head.section[section];

	return (const uint8_t *)t->map + (s->n ? s->at : 0);
}

static struct nets nets_at(const struct table *t, enum table_section keys)
{
	return (struct nets){.key = section_at(t, keys),
		.net = section_at(t, keys + 1),
		.door = section_at(t, keys + 2),
		.n = table_count(t, keys)};
}

/* t has map and size. */
static int view_table(struct table *t, enum policy_part part, struct err *err)
{
	int r;

	if (t->size < sizeof(t->head))
		return err_set(err, -EBADMSG, "%s", t->size ? "truncated" : "empty");
	memcpy(&t->head, t->map, sizeof(t->head));
	r = check_head(&t->head, t->size, part, err);
	if (r < 0)
		return r;
	t->span = section_at(t, TABLE_SPANS);
	t->text = section_at(t, TABLE_TEXT);
	t->glob = section_at(t, TABLE_GLOBS);
	t->nodes = section_at(t, TABLE_NODES);
	t->slot = section_at(t, TABLE_SLOTS);
	t->rule = section_at(t, TABLE_RULES);
	t->v4 = nets_at(t, TABLE_V4_KEYS);
	t->v6 = nets_at(t, TABLE_V6_KEYS);
	t->req_slot = section_at(t, TABLE_REQ_SLOTS);
	t->req_group = section_at(t, TABLE_REQ_GROUPS);
	t->req_host = section_at(t, TABLE_REQ_HOSTS);
	t->req_place = section_at(t, TABLE_REQ_PLACES);
	t->req_row = section_at(t, TABLE_REQ_ROWS);
	t->req_header = section_at(t, TABLE_REQ_HEADERS);
	return 0;
}

static bool has_byte(int file, uint64_t at)
{
	uint8_t c;

	return pread(file, &c, 1, (off_t)at) == 1;
}

/* The size that the head promises, without a system call that sbx-egress does not have. */
static int read_size(int file, enum policy_part part, size_t *ret, struct err *err)
{
	struct table_head head = {0};
	ssize_t n = pread(file, &head, sizeof(head), 0);
	int r;

	if (n != (ssize_t)sizeof(head))
		return err_set(err, -EBADMSG, "%s", n == 0 ? "empty" : "truncated");
	r = check_head(&head, head.size, part, err);
	if (r < 0)
		return r;
	if (head.size < sizeof(head) || head.size > TABLE_MAX_BYTES ||
		!has_byte(file, head.size - 1) || has_byte(file, head.size))
		return err_set(err, -EBADMSG, "truncated");
	*ret = head.size;
	return 0;
}

/* A file that any process can still change is refused: what was checked must stay. */
static int map_table(int file, enum policy_part part, struct table *t, struct err *err)
{
	int seals = file < 0 ? -1 : fcntl(file, F_GET_SEALS), r;
	size_t size = 0;
	void *map;

	if (file < 0)
		return err_set(err, -ENOENT, "missing");
	if (seals < 0 || (seals & TABLE_SEALS) != TABLE_SEALS)
		return err_set(err, -EBADMSG, "not sealed");
	r = read_size(file, part, &size, err);
	if (r < 0)
		return r;
	map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
	if (map == MAP_FAILED)
		return err_set(err, -errno, "cannot be mapped: %s", strerror(errno));
	*t = (struct table){.map = map, .size = size, .is_mapped = true};
	return 0;
}

static void close_table(struct table *t)
{
	if (t->is_mapped)
		(void)munmap(t->map, t->size);
	else
		free(t->map);
	*t = (struct table){0};
}

static void set_fault(struct policy *p, const char *fault)
{
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		close_table(&p->part[i]);
	policy_free(TAKE(p->managed));
	free(p->fault);
	p->fault = xstrdup(fault);
}

/* The text of a table with a fault is printed: a compromised sender must not choose its bytes. */
static bool take_fault(struct policy *p, const struct table *t)
{
	char text[TABLE_MAX_FAULT + 1] = "";

	if (t->head.state != TABLE_IS_FAULTY)
		return false;
	(void)snprintf(text, sizeof(text), "%.*s",
		(int)MIN(table_count(t, TABLE_TEXT), (size_t)TABLE_MAX_FAULT), t->text);
	str_make_printable(text);
	set_fault(p, text[0] ? text : "the policy has a fault");
	return true;
}

/* The managed policy is one of its own, which is asked first. */
static void split_managed(struct policy *p)
{
	struct table *t = &p->part[POLICY_MANAGED];

	if (t->map && t->head.state == TABLE_IS_UNSET)
		close_table(t);
	if (!t->map)
		return;
	p->managed = xcalloc(1, sizeof(*p->managed));
	p->managed->part[POLICY_ALL] = *t;
	*t = (struct table){0};
}

/* Half of the names fit in each table, but not those of three tables. */
static void check_headers(struct policy *p)
{
	struct slice names[POLICY_MAX_HEADERS];

	if (policy_header_names(p, names) > POLICY_MAX_HEADERS)
		set_fault(p, "the rules name too many headers of requests");
}

/* All parts are in memory. */
static struct policy *finish_policy(struct policy *p)
{
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		if (p->part[i].map && take_fault(p, &p->part[i]))
			return p;
	split_managed(p);
	check_headers(p);
	if (p->fault)
		return p;
	p->is_unset = p->part[POLICY_ALL].head.state == TABLE_IS_UNSET;
	if (p->is_unset)
		set_fault(p, POLICY_UNSET);
	return p;
}

static void refuse_table(struct policy *p, size_t part, const struct err *err)
{
	static const char *const names[] = {[POLICY_ALL] = "for all sandboxes",
		[POLICY_MANAGED] = "of the managed policy",
		[POLICY_OWN] = "of this sandbox"};
	char text[ERR_MAX_TEXT + 64];

	(void)snprintf(text, sizeof(text), "the compiled rules %s: %s", names[part], err->text);
	set_fault(p, text);
}

struct policy *policy_open(const int files[POLICY_N_PARTS])
{
	struct policy *p = xcalloc(1, sizeof(*p));

	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		struct err err = {0};
		int r = map_table(files[i], (enum policy_part)i, &p->part[i], &err);

		if (r == 0)
			r = view_table(&p->part[i], (enum policy_part)i, &err);
		if (r < 0) {
			refuse_table(p, i, &err);
			return p;
		}
	}
	return finish_policy(p);
}

struct policy *policy_from(void *const bytes[POLICY_N_PARTS], const size_t n[POLICY_N_PARTS])
{
	struct policy *p = xcalloc(1, sizeof(*p));
	struct err err = {0};

	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		p->part[i] = (struct table){.map = bytes[i], .size = n[i]};
	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		if (!bytes[i] && i != POLICY_ALL)
			continue;
		if (view_table(&p->part[i], (enum policy_part)i, &err) < 0) {
			refuse_table(p, i, &err);
			return p;
		}
	}
	return finish_policy(p);
}

void policy_limit(struct policy *p, const struct rules *rules, const char *fault)
{
	struct table_wish wish = {.part = POLICY_MANAGED, .rules = rules, .fault = fault};
	AUTO_FREE uint32_t *pick = table_pick(rules, NULL, &wish.n);
	struct table *t = &p->part[POLICY_MANAGED];
	struct err err = {0};

	if (p->fault)
		return;
	wish.pick = pick;
	t->map = table_build(&wish, &t->size);
	if (view_table(t, POLICY_MANAGED, &err) < 0)
		refuse_table(p, POLICY_MANAGED, &err);
	else if (!take_fault(p, t))
		split_managed(p);
	check_headers(p);
}

const char *policy_fault(const struct policy *p)
{
	return p->fault;
}

bool policy_is_closed(const struct policy *p)
{
	return p->part[POLICY_OWN].head.only;
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		close_table(&p->part[i]);
	policy_free(p->managed);
	free(p->fault);
	free(p);
}

int policy_inbox_take(
	struct policy_inbox *in, uint8_t part, uint32_t id, int fd, struct policy **policy)
{
	AUTO_CLOSE int own = fd;
	int files[POLICY_N_PARTS];
	bool is_next = part == POLICY_ALL ||
		       (part < POLICY_N_PARTS && in->id == id && in->file[part - 1] >= 0);

	if (!is_next || (part != POLICY_ALL && part != POLICY_OWN && in->file[part] >= 0))
		return -EBADMSG;
	for (size_t i = 0; part == POLICY_ALL && i < POLICY_OWN; i++)
		fd_close(&in->file[i]);
	in->id = id;
	if (part != POLICY_OWN) {
		in->file[part] = TAKE_FD(own);
		return 0;
	}
	memcpy(files, in->file, sizeof(in->file));
	files[POLICY_OWN] = own;
	policy_free(*policy);
	*policy = policy_open(files);
	for (size_t i = 0; i < POLICY_OWN; i++)
		fd_close(&in->file[i]);
	return 1;
}
