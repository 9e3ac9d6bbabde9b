/* SPDX-License-Identifier: Apache-2.0 */
/* A compromised edge: it asks the keeper about one request and sends another one, or the keeper has
 * a fault and makes a ticket for a request that rules deny. Only the decided request passes, and
 * only if rules permit it. Arguments: number of attempts, and the seed. */
#include "origin_play.h"
#include "origin_play_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/test/policy_text.h"
#include "lib/wire/http/canon/canon_named.h"

static const char rules[] = "policy 2\n"
			    "allow network **\n"
			    "allow http api.example.com/v1/** method GET,HEAD\n"
			    "allow http api.example.com/w/* method POST header x-role=dev\n"
			    "allow http api.example.com/q/** method GET query dry=1\n"
			    "deny http api.example.com/v1/secret/**\n"
			    "end\n";

/* Rules of the managed policy: they count as those above. */
static const char managed[] = "policy 2\n"
			      "allow network **\n"
			      "deny http api.example.com/** header x-debug=*\n"
			      "end\n";

static uint64_t state;

static uint32_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 24);
}

struct
try {
	const char *method, *path, *query;
	struct http_header header[3];
	size_t n_headers;
};

#define PICK(list) (list)[draw() % ARRAY_LEN(list)]

static void draw_headers(struct try *t)
{
	static const char *const names[] = {"x-role", "x-debug", "x-other", "accept"};
	static const char *const values[] = {"dev", "ops", "", "dev,dev"};

	t->n_headers = draw() % 4;
	for (size_t i = 0; i < t->n_headers; i++)
		t->header[i] = (struct http_header){
			slice_from_str(PICK(names)), slice_from_str(PICK(values))};
}

static struct try draw_try(void)
{
	static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "get", "DELETE"};
	static const char *const paths[] = {"/v1/x", "/v1/x/y", "/v1/secret/k", "/v1/Secret/k",
		"/v1/%73ecret/k", "/w/a", "/w/a/b", "/q/a", "/v2", "/v1//x", "/v1/./secret/k",
		"/v1/x/..%2fsecret/k", "/v1", "/"};
	static const char *const queries[] = {
		NULL, "", "dry=1", "dry=2", "dry=1&dry=2", "a=b&dry=1", "dry=%31", "dry=1;x"};
	struct try t = {PICK(methods), PICK(paths), PICK(queries), .n_headers = 0};

	draw_headers(&t);
	return t;
}

/* What edge sends instead: one part is another one, or none. */
static struct try lie(const struct try *told)
{
	struct try other = draw_try(), t = *told;

	switch (draw() % 6) {
	case 0:
		t.method = other.method;
		break;
	case 1:
		t.path = other.path;
		break;
	case 2:
		t.query = other.query;
		break;
	case 3:
		memcpy(t.header, other.header, sizeof(t.header));
		t.n_headers = other.n_headers;
		break;
	case 4:
		return other;
	default:
		break;
	}
	return t;
}

static struct http_req request_of(struct try *t)
{
	return (struct http_req){.method = slice_from_str(t->method),
		.scheme = HTTP_SCHEME_HTTPS,
		.host = slice_from_str("api.example.com"),
		.port = 443,
		.path = slice_from_str(t->path),
		.has_query = t->query != NULL,
		.query = slice_from_str(t->query ? t->query : ""),
		.headers = {t->header, t->n_headers, ARRAY_LEN(t->header)}};
}

static size_t named_text(struct try *t, char *buf, size_t size)
{
	const struct http_req q = request_of(t);
	struct wr wr = wr_init(buf, size);

	play_check(canon_named_write(&wr, &q.headers, slice_from_str("x-debug,x-role")) == 0,
		"the headers fit");
	return wr.n;
}

static struct ticket ticket_of(struct try *t)
{
	const struct http_req q = request_of(t);
	char named[256];
	const struct ticket_request r = {.tls = true,
		.method = q.method,
		.host = q.host,
		.port = q.port,
		.path = q.path,
		.query = q.query,
		.has_query = q.has_query,
		.named = slice_of(named, named_text(t, named, sizeof(named)))};
	struct ticket ticket;

	ticket_make(&r, &ticket);
	return ticket;
}

static bool is_same(struct try *a, struct try *b)
{
	char x[256], y[256];
	size_t n = named_text(a, x, sizeof(x));

	return strcmp(a->method, b->method) == 0 && strcmp(a->path, b->path) == 0 &&
	       !a->query == !b->query && (!a->query || strcmp(a->query, b->query) == 0) &&
	       n == named_text(b, y, sizeof(y)) && memcmp(x, y, n) == 0;
}

static unsigned count(const struct try *t, const char *name, const char *value)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->n_headers; i++)
		n += slice_eq_str(t->header[i].name, name) &&
		     (!value || slice_eq_str(t->header[i].value, value));
	return n;
}

/* The rules above, once more. The names in the paths have one reading that is a secret. */
static bool is_permitted(const struct try *t)
{
	bool is_get = strcmp(t->method, "GET") == 0;
	bool plain = !strpbrk(t->path, "%") && !strstr(t->path, "//") && !strstr(t->path, "/.");

	if (!plain || count(t, "x-debug", NULL))
		return false;
	if (strcmp(t->path, "/v1/x") == 0 || strcmp(t->path, "/v1/x/y") == 0)
		return is_get || strcmp(t->method, "HEAD") == 0;
	if (strcmp(t->path, "/w/a") == 0)
		return strcmp(t->method, "POST") == 0 && count(t, "x-role", NULL) == 1 &&
		       count(t, "x-role", "dev") == 1;
	if (strcmp(t->path, "/q/a") == 0)
		return is_get && t->query &&
		       (strcmp(t->query, "dry=1") == 0 || strcmp(t->query, "a=b&dry=1") == 0 ||
			       strcmp(t->query, "dry=%31") == 0);
	return false;
}

/* Whether sbx-origin would send it. */
static bool passes(struct try *decided, struct try *sent)
{
	static uint8_t buf[CANON_FRAME_HEADER + CANON_MAX_HEAD];
	const struct http_req q = request_of(sent);
	const struct ticket ticket = ticket_of(decided);
	struct wr wr = wr_init(buf, sizeof(buf));
	static uint32_t id;
	struct exchange *x;
	struct mux_stream *s;
	bool ret;

	play_check(canon_put_req(&wr, OUT_STREAM, &q) == 0, "a request cannot be written");
	id = id % MUX_MAX_ID + 1;
	s = mux_open(&play_mux, id);
	exchange_open(&play_origin, id, &ticket, -1);
	x = &play_origin.exchanges[0];
	play_check(x->id == id, "the exchange is the first one");
	play_check(mux_send(s, slice_of(buf, wr.n), (struct slice){0}) == wr.n, "the head fits");
	play_carry();
	exchange_run_streams(&play_origin);
	ret = x->state == EXCHANGE_LINE;
	play_check(ret || x->state == EXCHANGE_ENDING || x->state == EXCHANGE_FREE,
		"it is neither sent nor refused");
	mux_close(s);
	play_carry();
	if (x->state != EXCHANGE_FREE)
		exchange_finish(&play_origin, x);
	play_check(play_origin.n_open == 0, "an exchange is left");
	return ret;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	struct play_stats stats = {0};
	unsigned long n_lies = 0, n_passed = 0, n_denied = 0;

	state = (argc > 2 ? strtoul(argv[2], NULL, 10) : 1) * 0x9e3779b97f4a7c15U + 1;
	play_run(slice_of(NULL, 0), &stats);
	policy_free(play_origin.policy);
	play_origin.policy = policy_load_limited(
		slice_from_str(rules), slice_from_str(managed), "policy", "demo");
	play_check(!policy_fault(play_origin.policy), "the rules have a fault");
	for (unsigned long i = 0; i < n; i++) {
		struct try decided = draw_try(), sent = lie(&decided);
		bool same = is_same(&decided, &sent), permitted = is_permitted(&sent);
		bool passed = passes(&decided, &sent);

		n_lies += !same;
		n_denied += same && !permitted;
		n_passed += passed;
		if (passed != (same && permitted)) {
			(void)fprintf(stderr, "attempt %lu: %s %s?%s, for %s %s?%s: %s\n", i,
				sent.method, sent.path, sent.query ? sent.query : "(none)",
				decided.method, decided.path,
				decided.query ? decided.query : "(none)",
				passed ? "passed" : "was refused");
			return 1;
		}
	}
	printf("%lu attempts: %lu lies and %lu denied requests refused, %lu passed\n", n, n_lies,
		n_denied, n_passed);
	return n_lies > n / 4 && n_denied > n / 8 && n_passed > n / 200 ? 0 : 1;
}
