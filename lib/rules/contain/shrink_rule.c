/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "shrink_internal.h"

/* One host of the new rule, on one port. */
struct item {
	char *text;	   /* as a resource without a port */
	const char *below; /* in text: what follows the first label; NULL for an address */
	uint16_t port;
};

struct items {
	struct item *v;
	size_t n;
	char **line; /* resources with ports, sorted */
	size_t n_lines;
};

static void items_done(struct items *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i].text);
	free(list->v);
	for (size_t i = 0; i < list->n_lines; i++)
		free(list->line[i]);
	free(list->line);
}

/* ---- names below one domain ---- */

static int compare_below(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int r = strcmp(x->below ? x->below : "", y->below ? y->below : "");

	if (r == 0)
		r = (int)x->port - (int)y->port;
	return r ? r : strcmp(x->text, y->text);
}

static bool ends_with_domain(const char *name, const char *domain)
{
	size_t n = strlen(name), k = strlen(domain);

	return n >= k && strcmp(name + n - k, domain) == 0 && (n == k || name[n - k - 1] == '.');
}

/* Whether a resource matches each name with one more label in front. */
static bool has_all_below(const struct netrule *net, const char *domain)
{
	if (net->form == NETRULE_EVERY)
		return true;
	if (net->form != NETRULE_NAME)
		return false;
	if (net->deep)
		return net->n_glob == 0 && ends_with_domain(domain, net->name);
	return strncmp(net->name, "*.", 2) == 0 && strcmp(net->name + 2, domain) == 0;
}

static bool has_port(const struct rule *rule, const struct netrule *net, uint16_t port)
{
	struct netrule_ports range[NETRULE_MAX_PORTS];
	size_t n = rule_get_ports(rule, net, range);

	for (size_t i = 0; i < n; i++)
		if (port >= range[i].lo && port <= range[i].hi)
			return true;
	return false;
}

static bool allows_all_below(const struct rule *rule, const char *domain, uint16_t port)
{
	for (size_t i = 0; i < rule->n_net; i++)
		if (has_all_below(&rule->net[i], domain) && has_port(rule, &rule->net[i], port))
			return true;
	return false;
}

static void remove_equal(struct items *list)
{
	size_t n = 0;

	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), compare_below);
	for (size_t i = 0; i < list->n; i++) {
		if (n && compare_below(&list->v[n - 1], &list->v[i]) == 0)
			free(list->v[i].text);
		else
			list->v[n++] = list->v[i];
	}
	list->n = n;
}

/* The end of the items from `at` on that have its domain and its port. */
static size_t end_of_siblings(const struct items *list, size_t at)
{
	size_t end = at + 1;

	while (end < list->n && list->v[end].port == list->v[at].port && list->v[end].below &&
		strcmp(list->v[end].below, list->v[at].below) == 0)
		end++;
	return end;
}

static void join_siblings(const struct rule *rule, struct items *list)
{
	size_t n = 0, end;

	for (size_t at = 0; at < list->n; at = end) {
		struct item first = list->v[at];
		bool has_domain = first.below && strchr(first.below, '.');

		end = has_domain ? end_of_siblings(list, at) : at + 1;
		if (end - at >= SHRINK_SIBLINGS &&
			allows_all_below(rule, first.below, first.port)) {
			char *text = xasprintf("*.%s", first.below);

			for (size_t i = at; i < end; i++)
				free(list->v[i].text);
			list->v[n++] = (struct item){.text = text, .port = first.port};
			continue;
		}
		for (size_t i = at; i < end; i++)
			list->v[n++] = list->v[i];
	}
	list->n = n;
}

/* ---- resources ---- */

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int r = strcmp(x->text, y->text);

	return r ? r : (int)x->port - (int)y->port;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A rule without a port is for 80 and 443. */
static void add_lines(struct items *list)
{
	size_t end;

	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), compare_items);
	for (size_t at = 0; at < list->n; at = end) {
		const struct item *v = &list->v[at];

		end = at + 1;
		while (end < list->n && strcmp(list->v[end].text, v->text) == 0)
			end++;
		if (end - at == 2 && v[0].port == 80 && v[1].port == 443) {
			list->line[list->n_lines++] = xstrdup(v->text);
			continue;
		}
		for (size_t i = at; i < end; i++)
			list->line[list->n_lines++] = xasprintf("%s:%u", v->text, list->v[i].port);
	}
}

static bool is_in_networks(const struct rule *rule, const struct host *host, uint16_t port)
{
	for (size_t i = 0; i < rule->n_net; i++)
		if (rule->net[i].form == NETRULE_ADDR &&
			addr_net_has(&rule->net[i].net, &host->addr) &&
			has_port(rule, &rule->net[i], port))
			return true;
	return false;
}

static void add_item(const struct rule *rule, const struct shrink_target *t, struct items *list)
{
	struct item item = {.port = t->port};
	struct host host = {0};

	if (!t->is_addr) {
		item.text = xstrdup(t->host);
		item.below = strchr(item.text, '.');
		item.below = item.below ? item.below + 1 : NULL;
	} else {
		if (host_from_wire(slice_from_str(t->host), &host, NULL) < 0 ||
			is_in_networks(rule, &host, t->port))
			return;
		item.text = xasprintf(host.addr.n == 16 ? "[%s]" : "%s", t->host);
	}
	list->v[list->n++] = item;
}

static void add_networks(const struct rule *rule, struct items *list)
{
	for (size_t i = 0; i < rule->n_net; i++) {
		char text[NETRULE_MAX_TEXT];

		if (rule->net[i].form != NETRULE_ADDR)
			continue;
		netrule_print(&rule->net[i], text);
		list->line[list->n_lines++] = xstrdup(text);
	}
}

static bool is_unchanged(const struct rule *rule, const struct items *list)
{
	if (rule->n_net != list->n_lines)
		return false;
	for (size_t i = 0; i < rule->n_net; i++) {
		char text[NETRULE_MAX_TEXT], *key = text;

		netrule_print(&rule->net[i], text);
		if (!bsearch(&key, list->line, list->n_lines, sizeof(*list->line), compare_lines))
			return false;
	}
	return true;
}

/* ---- rules ---- */

static int add_rule(const struct rule *from, struct rule *rule, struct rules *ret, struct err *err)
{
	if (from->comment)
		rule->comment = xstrdup(from->comment);
	rule->group = from->group;
	return rules_add(ret, rule, err);
}

int shrink_keep_rule(const struct rule *rule, struct rules *ret, struct err *err)
{
	AUTO_FREE char *line = rule_print(rule, RULE_PRINT_ALL);
	AUTO_RULE struct rule copy = {0};
	int r = rule_parse(slice_from_str(line), &copy, err);

	return r < 0 ? r : add_rule(rule, &copy, ret, err);
}

static int add_list(const struct rule *from, const char *list, struct rules *ret, struct err *err)
{
	AUTO_RULE struct rule rule = {0};
	int r = rule_make(from->effect, from->kind, slice_from_str(list), &rule, err);

	if (r < 0)
		return r;
	if (from->sandbox)
		rule.sandbox = xstrdup(from->sandbox);
	rule.until_ms = from->until_ms;
	return add_rule(from, &rule, ret, err);
}

/* As many rules as the limits of one need. */
static int add_all_lines(
	const struct rule *from, const struct items *list, struct rules *ret, struct err *err)
{
	size_t n = 0;
	AUTO_FREE char *text = xstrdup("");
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n_lines; i++) {
		AUTO_FREE char *before = text;

		if (n == RULE_MAX_RESOURCES ||
			strlen(text) + strlen(list->line[i]) + 1 > RULE_MAX_LIST) {
			r = add_list(from, text, ret, err);
			n = 0;
		}
		text = xasprintf("%s%s%s", n ? before : "", n ? "," : "", list->line[i]);
		n++;
	}
	return r == 0 && n ? add_list(from, text, ret, err) : r;
}

int shrink_one_rule(const struct rule *rule, const struct shrink_target *v, size_t n,
	struct rules *ret, struct err *err)
{
	CLEANUP(items_done) struct items list = {0};

	list.v = xcalloc(n + 1, sizeof(*list.v));
	list.line = xcalloc(n + rule->n_net + 1, sizeof(*list.line));
	for (size_t i = 0; i < n; i++)
		add_item(rule, &v[i], &list);
	remove_equal(&list);
	join_siblings(rule, &list);
	add_lines(&list);
	add_networks(rule, &list);
	if (list.n_lines)
		qsort(list.line, list.n_lines, sizeof(*list.line), compare_lines);
	return is_unchanged(rule, &list) ? shrink_keep_rule(rule, ret, err)
					 : add_all_lines(rule, &list, ret, err);
}
