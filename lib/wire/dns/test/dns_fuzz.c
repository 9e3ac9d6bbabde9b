/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte: verdict (2 bits), transport (1), size of the pieces in which a stream comes (5).
 * Every answer is walked: what it echoes, how its records fit, how long it is.
 */
#include <stdlib.h>
#include "lib/wire/dns/test/dns_frame.h"
#include "lib/wire/dns/dns_internal.h"
#include "lib/wire/dns/dns_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

/* A record of ours: its name is the root or a pointer to the question. */
static void walk_record(struct rd *rd)
{
	uint8_t first = rd_u8(rd);

	must(first == 0 || (first == 0xc0 && rd_u8(rd) == DNS_HEADER));
	(void)rd_bytes(rd, 8);
	(void)rd_bytes(rd, rd_be16(rd));
}

static void walk_answer(const struct dns_query *q, struct slice answer)
{
	struct rd rd = rd_init(answer);
	uint16_t id = rd_be16(&rd), flags = rd_be16(&rd), questions = rd_be16(&rd);
	unsigned records = rd_be16(&rd);

	records += rd_be16(&rd);
	records += rd_be16(&rd);
	must(id == q->id && (flags & 0x8080) == 0x8080 && q->rd == !!(flags & 0x0100));
	must(questions == (q->question.n > 0) && records <= 2);
	must(slice_eq(rd_bytes(&rd, q->question.n), q->question));
	for (unsigned i = 0; i < records; i++)
		walk_record(&rd);
	must(rd_finish(&rd) == 0);
	must(q->via != DNS_OVER_UDP || answer.n <= q->udp_size);
}

static void ask(struct slice msg, enum dns_via via, uint8_t how)
{
	static const uint8_t addr[16] = {198, 18, 1, 1};
	uint8_t buf[DNS_MAX_REPLY];
	struct dns_facts facts = {
		.verdict = (enum dns_verdict)(how % 3), .why = msg, .v4 = addr, .v6 = addr};
	struct dns_query q;
	int status = dns_query_parse(msg, via, &q);
	size_t n;

	if (status < 0)
		return;
	facts.ptr = dns_query_host(&q);
	must(dns_reply_build(&q, status, &facts, buf, sizeof(buf), &n) == 0);
	walk_answer(&q, slice_of(buf, n));
	must(!(buf[2] & 2)); /* never truncated: DNS_MAX_REPLY suffices */
	/* Where there is little room, it is kept. */
	n = 0;
	if (dns_reply_build(&q, status, &facts, buf, msg.n % 400, &n) == 0) {
		must(n <= msg.n % 400);
		walk_answer(&q, slice_of(buf, n));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t how = rd_u8(&rd);
	struct dns_frame frame;
	struct slice msg;

	if (!(how & 4)) {
		ask(slice_of(rd.p, rd.n), DNS_OVER_UDP, how & 3);
		return 0;
	}
	dns_frame_init(&frame);
	while (rd.n > 0) {
		struct slice in = rd_bytes(&rd, MIN((size_t)(how >> 3) + 1, rd.n));

		while (dns_frame_feed(&frame, &in, &msg) == 1)
			ask(msg, DNS_OVER_STREAM, how & 3);
	}
	return 0;
}
