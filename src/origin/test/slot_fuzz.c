/* SPDX-License-Identifier: Apache-2.0 */
/* A request (a query, a line end, lines of headers) is checked and filled. An accepted request has
 * no foreign credential in a known place and ours in one; a denied one had a foreign one. */
#include "src/origin/origin.h"

#include "lib/base/mem.h"
#include "lib/secret/service/service_match.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char text[] = "service 1\n"
			   "name demo\n"
			   "about Demo: a service for tests\n"
			   "env DEMO_KEY sk-proxy-managed-0\n"
			   "known header x-api-key\n"
			   "known query key\n"
			   "known cookie session\n"
			   "slot api\n"
			   "host api.example.com:443\n"
			   "header authorization Bearer %s\n"
			   "end\n";
static const char value[] = "sk-live";

static struct origin o;

static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static struct slice cut_line(struct slice *s, const char *ends)
{
	size_t n = 0;
	struct slice line;

	while (n < s->n && !strchr(ends, s->p[n] ? s->p[n] : 'x'))
		n++;
	line = slice_of(s->p, n);
	n += n < s->n;
	*s = slice_of(s->p + n, s->n - n);
	return line;
}

/* Counts the pairs of a list with this verdict, independently of slot.c. */
static unsigned count_pairs(
	struct slice list, enum service_where where, const char *ends, enum service_verdict verdict)
{
	unsigned n = 0;

	while (list.n) {
		struct slice rest = cut_line(&list, ends), name = cut_line(&rest, "=");

		n += service_judge(&o.service, where, canon_text_trim(name), rest) == verdict;
	}
	return n;
}

/* Names with _ are treated as with -. */
static struct slice fold(struct slice name)
{
	static uint8_t buf[HTTP_MAX_HEAD];

	for (size_t i = 0; i < name.n; i++)
		buf[i] = name.p[i] == '_' ? '-' : name.p[i];
	return slice_of(buf, name.n);
}

static unsigned count(const struct http_req *req, enum service_verdict verdict)
{
	unsigned n = count_pairs(req->query, SERVICE_IN_QUERY, "&;", verdict);

	for (size_t i = 0; i < req->headers.n; i++) {
		const struct http_header *h = &req->headers.list[i];

		n += service_judge(&o.service, SERVICE_IN_HEADER, fold(h->name), h->value) ==
		     verdict;
		if (slice_eq_str(h->name, "cookie"))
			n += count_pairs(h->value, SERVICE_IN_COOKIE, ";", verdict);
	}
	return n;
}

static void make_request(struct talk *t, struct slice in)
{
	struct http_req *req = &t->req;

	*req = (struct http_req){.method = slice_from_str("GET"),
		.scheme = HTTP_SCHEME_HTTPS,
		.host = host_slice(&o.host),
		.port = 443,
		.path = slice_from_str("/"),
		.has_query = true};
	req->query = cut_line(&in, "\n");
	canon_headers_init(&req->headers, &t->req_arena, HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS);
	while (in.n && req->headers.n < HTTP_MAX_HEADERS) {
		struct slice rest = cut_line(&in, "\n"), name = cut_line(&rest, ":");

		req->headers.list[req->headers.n++] =
			(struct http_header){name, canon_text_trim(rest)};
	}
}

static void check_filled(struct exchange *x)
{
	struct value v = {.frame = {.value = slice_from_str(value)}};
	size_t at;

	check(x->slot != NULL);
	check(slot_fill(&o, x, &v) == 0);
	check(canon_check_req(&x->talk->req) == 0);
	check(canon_find_header(&x->talk->req.headers, "authorization", &at) == 0);
	check(slice_eq_str(x->talk->req.headers.list[at].value, "Bearer sk-live"));
	check(canon_find_header(&x->talk->req.headers, "accept-encoding", &at) == 0);
	slot_wipe(x);
	check(canon_find_header(&x->talk->req.headers, "authorization", &at) < 0);
	for (size_t i = 0; i < SERVICE_MAX_SLOTS; i++)
		secret_done(&v.text[i]);
}

static void judge(struct exchange *x)
{
	char where[ORIGIN_MAX_WHERE];
	unsigned n_foreign;

	if (canon_check_req(&x->talk->req) < 0)
		return; /* canon_get_req would not return it */
	n_foreign = count(&x->talk->req, SERVICE_FOREIGN);
	if (slot_judge(&o, x, where) != ORIGIN_DONE) {
		check(n_foreign > 0 && where[0]);
		return;
	}
	check(n_foreign == 0);
	check(count(&x->talk->req, SERVICE_FOREIGN) == 0);
	check(count(&x->talk->req, SERVICE_SENTINEL) == 0);
	check_filled(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct talk t = {0};
	struct exchange x = {.talk = &t};

	if (!o.service.name) {
		secret_forbid_hidden();
		o.config.port = 443;
		o.config.has = ORIGIN_HAS_SECRET;
		arena_init(&o.arena, HTTP_ARENA_SIZE);
		check(host_from_wire(slice_from_str("api.example.com"), &o.host, NULL) == 0);
		check(service_parse(slice_of(text, sizeof(text) - 1), "fuzz", &o.service, NULL) ==
			0);
	}
	t.head = xmalloc(n + 1);
	memcpy(t.head, p, n);
	arena_init(&t.req_arena, 16384);
	make_request(&t, slice_of(t.head, n));
	judge(&x);
	arena_done(&t.req_arena);
	free(t.head);
	return 0;
}
