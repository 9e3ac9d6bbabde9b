/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: the product of all patterns as automata. A state is the set of places in patterns that a
 * beginning of a name can have reached; a whole name in the same state matches the same patterns.
 * States are found breadth first, so each one has a shortest name.
 */
#include "contain_internal.h"

#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/base/hash/siphash.h"

#define MAX_PLACES (16u << 20) /* in all states together */

/* A place is the index of a row and of a byte of its pattern. Of a deep pattern 0 is before the
 * first label of `**`, 1 inside one of its labels, and the name begins at 2. */
struct place {
	uint32_t row, at;
};

struct state {
	uint32_t from, n; /* of its places */
	uint32_t parent;
	uint8_t byte; /* the last one of the name */
	uint8_t n_name;
	bool in_label; /* the last byte is not a dot */
};

struct product {
	struct contain *c;
	struct state *state;
	struct place *place;
	uint32_t *slot; /* hash table of states, plus one */
	uint32_t n_states, n_places, room_places;
	bool is_full;
};

#define N_SLOTS (CONTAIN_MAX_STATES * 2)

static bool is_label_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_in_set(const char *set, uint32_t n, uint8_t c)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i + 2 < n && set[i + 1] == '-') {
			if (c >= (uint8_t)set[i] && c <= (uint8_t)set[i + 2])
				return true;
			i += 2;
		} else if (c == (uint8_t)set[i]) {
			return true;
		}
	}
	return false;
}

static uint32_t set_len(const struct netrule *net, uint32_t i)
{
	uint32_t n = i;

	while (net->name[n] != ']')
		n++;
	return n + 1 - i;
}

static uint32_t pattern_end(const struct netrule *net)
{
	return (uint32_t)net->n_name + (net->deep ? 2 : 0);
}

/* ---- places ---- */

static void add_place(struct product *p, uint32_t row, uint32_t at)
{
	if (p->n_places == p->room_places) {
		if (p->room_places >= MAX_PLACES) {
			p->is_full = true;
			return;
		}
		p->room_places *= 2;
		p->place = xrealloc(p->place, p->room_places * sizeof(*p->place));
	}
	p->place[p->n_places++] = (struct place){row, at};
}

/* A star may also be nothing. */
static void add_closure(struct product *p, uint32_t row, uint32_t at)
{
	const struct netrule *net = p->c->row[row].net;
	uint32_t skip = net->deep ? 2 : 0;

	add_place(p, row, at);
	while (at >= skip && at < pattern_end(net) && net->name[at - skip] == '*')
		add_place(p, row, ++at);
}

static void step_deep(struct product *p, struct place from, uint8_t c)
{
	if (is_label_byte(c)) {
		add_place(p, from.row, 1);
	} else if (from.at == 1) {
		add_place(p, from.row, 0);
		add_closure(p, from.row, 2);
	}
}

static void step_place(struct product *p, struct place from, uint8_t c)
{
	const struct netrule *net = p->c->row[from.row].net;
	uint32_t skip = net->deep ? 2 : 0, i = from.at - skip, len = 1;
	bool is_label = is_label_byte(c);

	if (from.at < skip) {
		step_deep(p, from, c);
		return;
	}
	if (from.at == pattern_end(net))
		return;
	switch (net->name[i]) {
	case '*':
		if (is_label)
			add_closure(p, from.row, from.at);
		return;
	case '?':
		if (!is_label)
			return;
		break;
	case '[':
		len = set_len(net, i);
		if (!is_in_set(net->name + i + 1, len - 2, c))
			return;
		break;
	default:
		if ((uint8_t)net->name[i] != c)
			return;
	}
	add_closure(p, from.row, from.at + len);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* ---- states ---- */

static bool is_state(const struct product *p, const struct state *s, const struct state *other)
{
	return s->n == other->n && s->in_label == other->in_label &&
	       memcmp(p->place + s->from, p->place + other->from, s->n * sizeof(*p->place)) == 0;
}

/* The places from s->from to the end of the list; they are dropped if the state exists. */
static void add_state(struct product *p, struct state s)
{
	static const uint8_t key[16] = {0};
	struct place *list = p->place + s.from;
	size_t hash;

	s.n = 0;
	qsort(list, p->n_places - s.from, sizeof(*list), compare_places);
	for (uint32_t i = 0; i < p->n_places - s.from; i++)
		if (s.n == 0 || compare_places(&list[s.n - 1], &list[i]) != 0)
			list[s.n++] = list[i];
	p->n_places = s.from + s.n;
	hash = siphash(key, slice_of(list, s.n * sizeof(*list))) + s.in_label;
	while (p->slot[hash % N_SLOTS]) {
		if (is_state(p, &p->state[p->slot[hash % N_SLOTS] - 1], &s)) {
			p->n_places = s.from;
			return;
		}
		hash++;
	}
	if (p->n_states == CONTAIN_MAX_STATES) {
		p->is_full = true;
		return;
	}
	p->state[p->n_states++] = s;
	p->slot[hash % N_SLOTS] = p->n_states;
}

/* Bytes after which states differ: those that patterns have at the places, one that none has, and
 * the dot. */
static void list_bytes(const struct product *p, const struct state *s, bool ret[256])
{
	static const char order[] = "xqzjkvwyabcdefghilmnoprstu0123456789_-";
	bool in_set[256] = {false};

	for (uint32_t i = 0; i < s->n; i++) {
		const struct place *pl = &p->place[s->from + i];
		const struct netrule *net = p->c->row[pl->row].net;
		uint32_t skip = net->deep ? 2 : 0;

		if (pl->at < skip || pl->at == pattern_end(net))
			continue;
		if (net->name[pl->at - skip] == '[')
			for (size_t k = 0; order[k]; k++)
				in_set[(uint8_t)order[k]] = true;
		else
			in_set[(uint8_t)net->name[pl->at - skip]] = true;
	}
	for (size_t k = 0; order[k]; k++) {
		ret[(uint8_t)order[k]] = in_set[(uint8_t)order[k]];
		if (!in_set[(uint8_t)order[k]] && !ret[0]) {
			ret[(uint8_t)order[k]] = true;
			ret[0] = true; /* the one that none has is chosen */
		}
	}
	ret[0] = false;
	ret['.'] = s->in_label;
}

static void step_state(struct product *p, uint32_t number, uint8_t c)
{
	struct state s = p->state[number];
	struct state next = {.from = p->n_places,
		.parent = number,
		.byte = c,
		.n_name = (uint8_t)(s.n_name + 1),
		.in_label = c != '.'};

	for (uint32_t i = 0; i < s.n && !p->is_full; i++)
		step_place(p, p->place[s.from + i], c);
	if (!p->is_full)
		add_state(p, next);
}

/* Whether the policy that should be contained allows some name that begins so. */
static bool can_matter(const struct product *p, const struct state *s, bool every)
{
	for (uint32_t i = 0; !every && i < s->n; i++)
		every = p->c->row[p->place[s->from + i].row].is_inner_allow;
	return every && s->n_name < HOST_MAX_NAME;
}

static bool try_state(struct product *p, uint32_t number)
{
	char name[HOST_MAX_NAME + 1];
	const struct state *s = &p->state[number];
	struct host host;
	struct err err = {0};
	size_t n = s->n_name;

	if (!s->in_label)
		return false;
	for (size_t i = n; i > 0; i--, s = &p->state[s->parent])
		name[i - 1] = (char)s->byte;
	if (host_from_wire(slice_of(name, n), &host, &err) < 0 || host.is_addr)
		return false;
	return contain_try(p->c, &host);
}

static bool walk_product(struct product *p, bool every)
{
	bool bytes[256] = {false};

	for (uint32_t i = 0; i < p->n_states && !p->is_full; i++) {
		struct state s = p->state[i];

		if (try_state(p, i))
			return true;
		if (!can_matter(p, &s, every))
			continue;
		list_bytes(p, &s, bytes);
		for (unsigned c = 0; c < 256 && !p->is_full; c++)
			if (bytes[c])
				step_state(p, i, (uint8_t)c);
	}
	return false;
}

bool contain_try_names(struct contain *c, bool *ret_unproven)
{
	struct product p = {.c = c,
		.state = xcalloc(CONTAIN_MAX_STATES, sizeof(*p.state)),
		.slot = xcalloc(N_SLOTS, sizeof(*p.slot)),
		.room_places = 1024};
	bool every = false, found;

	p.place = xcalloc(p.room_places, sizeof(*p.place));
	for (uint32_t i = 0; i < c->n_rows; i++) {
		every = every || (c->row[i].net->form == NETRULE_EVERY && c->row[i].is_inner_allow);
		if (c->row[i].net->form == NETRULE_NAME)
			add_closure(&p, i, 0);
	}
	add_state(&p, (struct state){0});
	found = walk_product(&p, every);
	*ret_unproven = p.is_full;
	free(p.state);
	free(p.slot);
	free(p.place);
	return found;
}
