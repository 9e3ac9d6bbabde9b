/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables behind each other, the size of the first one in four bytes: what a compromised keeper
 * could send to sbx-egress. Build and format are those of the reader, so that the rest is reached.
 * No content leads a reader out of the table, and what is allowed is allowed by a rule.
 */
#include <assert.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/policy_internal.h"
#include "lib/rules/policy/policy_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_INPUT (size_t)(1 << 20)

static const char *const names[] = {"a.x.com", "x.com", "api1.x.com", "b.a.y.com", "10.1.2.3",
	"1.2.3.4", "2606::1", "64:ff9b::a01:203", "host.docker.internal", "com"};

/* A copy of exactly this size, so that a sanitizer sees one byte too many. */
static void *copy_table(struct slice s, enum policy_part part)
{
	size_t n = (MIN(s.n, MAX_INPUT) + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
	struct table_head head = {0};
	uint8_t *bytes = NULL;

	if (posix_memalign((void **)&bytes, TABLE_ALIGN, n ? n : TABLE_ALIGN) != 0)
		abort();
	memset(bytes, 0, n ? n : TABLE_ALIGN);
	if (s.n)
		memcpy(bytes, s.p, MIN(s.n, n));
	if (n < sizeof(head))
		return bytes;
	memcpy(&head, bytes, sizeof(head));
	memcpy(head.magic, TABLE_MAGIC, sizeof(head.magic));
	memset(head.build, 0, sizeof(head.build));
	memcpy(head.build, SBX_BUILD, sizeof(SBX_BUILD));
	head.format = TABLE_FORMAT;
	head.part = part;
	head.size = n;
	memcpy(bytes, &head, sizeof(head));
	return bytes;
}

/* A request that rules of each kind may speak of. */
static void check_request(const struct policy *p, const struct policy_op *op)
{
	const struct effect http = {.verb = slice_from_str("POST"),
		.host = host_slice(op->host),
		.port = op->port,
		.object = slice_from_str("/v1/x"),
		.has_query = true,
		.query = slice_from_str("a=1&b=%202")};
	const struct effect api[] = {{.kind = EFFECT_API,
					     .verb = slice_from_str("issue.create"),
					     .target = slice_from_str("github"),
					     .object = slice_from_str("repo/acme/app"),
					     .risk = slice_from_str("write")},
		{.kind = EFFECT_API, .is_unknown = true, .target = slice_from_str("github")}};
	const struct effect git = {.kind = EFFECT_GIT,
		.verb = slice_from_str("push"),
		.host = host_slice(op->host),
		.target = slice_from_str("acme/app"),
		.object = slice_from_str("refs/heads/main")};
	const struct policy_description list[] = {
		{&http, 1, false}, {api, 2, false}, {&git, 1, false}};
	const struct policy_request req = {.op = *op, .list = list, .n = ARRAY_LEN(list)};
	struct policy_decision network;
	struct policy_outcome out;
	char text[POLICY_MAX_EXPLAIN];

	policy_decide(p, op, &network);
	policy_decide_request(p, &req, &out);
	assert(network.allowed || out.verdict == POLICY_DENIES);
	assert(out.verdict == POLICY_DENIES || out.by.why == POLICY_RULE);
	policy_explain_request(&req, &out, text, sizeof(text));
}

static void decide(const struct policy *p, const char *name, uint16_t port)
{
	struct policy_op op = {.kind = RULE_NETWORK, .port = port, .now_ms = 2};
	struct policy_decision d;
	char text[POLICY_MAX_EXPLAIN];
	struct addr addr = addr_from_v4((const uint8_t[]){8, 8, 8, 8});
	struct host host;

	if (host_from_wire(slice_from_str(name), &host, NULL) < 0)
		abort();
	op.host = &host;
	check_request(p, &op);
	policy_decide(p, &op, &d);
	assert(!d.allowed || d.why == POLICY_RULE);
	assert(!policy_fault(p) || !d.allowed);
	policy_explain(&op, &d, text, sizeof(text));
	policy_decide_address(p, &op, &addr, &d);
	assert(!policy_fault(p) || !d.allowed);
	policy_explain(&op, &d, text, sizeof(text));
}

static void try_tables(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	size_t first = MIN(rd_u32(&rd), size);
	struct slice rest = slice_of(rd.p, rd.n), s = slice_take(&rest, first);
	/* The same bytes as a managed policy for some inputs. */
	bool limits = s.n && s.p[s.n - 1] & 1;
	void *bytes[POLICY_N_PARTS] = {[POLICY_ALL] = copy_table(s, POLICY_ALL),
		[POLICY_MANAGED] = limits ? copy_table(s, POLICY_MANAGED) : NULL,
		[POLICY_OWN] = copy_table(rest, POLICY_OWN)};
	const size_t n[POLICY_N_PARTS] = {
		[POLICY_ALL] = (s.n + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN,
		[POLICY_MANAGED] = (s.n + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN,
		[POLICY_OWN] = (rest.n + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN};
	struct policy *p = policy_from(bytes, n);
	struct policy_op op = {.kind = RULE_NETWORK, .now_ms = 2};
	struct slice headers[POLICY_MAX_HEADERS];
	struct host host;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		decide(p, names[i], i % 2 ? 443 : 80);
	if (size < 4096 && host_from_wire(slice_from_str(names[0]), &host, NULL) == 0) {
		op.host = &host;
		(void)policy_has_port(p, &op);
	}
	(void)policy_header_names(p, headers);
	policy_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= MAX_INPUT)
		try_tables(data, size);
	return 0;
}
