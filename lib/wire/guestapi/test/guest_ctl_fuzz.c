/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses the message, the rest is its body. */
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/base/mem.h"

static void check_wake(struct slice body)
{
	struct guest_wake wake;
	struct guest_parking parking;

	(void)!guest_get_park(body, &parking);
	if (guest_get_wake(body, &wake) == 0)
		guest_wake_done(&wake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was accepted is said again in the same bytes. */
static void check_setup(struct slice body)
{
	static uint8_t buf[1 << 21];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_setup setup;

	if (guest_get_setup(body, &setup) < 0)
		return;
	if (guest_put_setup(&wr, &setup) < 0 || !slice_eq(slice_of(buf, wr.n), body))
		abort();
	guest_setup_done(&setup);
}

static void check_trust(struct slice body)
{
	static uint8_t buf[1 << 21];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct guest_trust trust;

	if (guest_get_trust(body, &trust) < 0)
		return;
	if (guest_put_trust(&wr, &trust) < 0 || !slice_eq(slice_of(buf, wr.n), body))
		abort();
	guest_trust_done(&trust);
}

static void check_reply(struct slice body)
{
	struct guest_reply reply;

	if (guest_get_reply(body, &reply) < 0)
		return;
	for (const char *p = reply.text; *p; p++)
		if ((unsigned char)*p < 32)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd rd = rd_init(slice_of(data, size));
	uint8_t which = rd_u8(&rd);
	struct slice body = slice_of(rd.p, rd.n);
	struct keeper_stats stats;
	enum guest_power kind;

	if (which == 0)
		check_setup(body);
	else if (which == 2)
		check_reply(body);
	else if (which == 3)
		(void)!guest_get_stats(body, &stats);
	else if (which == 6)
		check_trust(body);
	else if (which == 7)
		check_wake(body);
	else
		(void)!guest_get_power(body, &kind);
	return 0;
}
