/* SPDX-License-Identifier: Apache-2.0 */
#include "der.h"

#include <errno.h>

void der_put(struct der *d, struct slice s)
{
	if (d->bad || s.n > d->at) {
		d->bad = true;
		return;
	}
	d->at -= s.n;
	if (s.n)
		memcpy(d->buf + d->at, s.p, s.n);
}

static void put_byte(struct der *d, size_t byte)
{
	uint8_t b = (uint8_t)byte;

	der_put(d, slice_of(&b, 1));
}

void der_wrap(struct der *d, enum der_tag tag, size_t mark)
{
	size_t n = mark - d->at;

	if (d->bad)
		return;
	if (n < 0x80) {
		put_byte(d, n);
	} else {
		size_t octets = 0;

		for (; n; n >>= 8, octets++)
			put_byte(d, n & 0xff);
		put_byte(d, 0x80 | octets);
	}
	put_byte(d, tag);
}

/* The date of a day since 1970. libc's gmtime_r would read the file of the local time zone. */
static void date_of(uint64_t days, unsigned *ret_y, unsigned *ret_m, unsigned *ret_d)
{
	/* Years that begin in March, in eras of 400 years: leap days are then at the end. */
	uint64_t z = days + 719468, era = z / 146097, doe = z % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	*ret_d = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
	*ret_m = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
	*ret_y = (unsigned)(yoe + era * 400 + (*ret_m <= 2));
}

static void put_digits(uint8_t **p, unsigned v)
{
	*(*p)++ = (uint8_t)('0' + v / 10 % 10);
	*(*p)++ = (uint8_t)('0' + v % 10);
}

#define LAST_SECOND 253402300799u /* of the year 9999 */

void der_time(struct der *d, uint64_t seconds)
{
	uint8_t text[16], *p = text;
	unsigned y, m, day, s = (unsigned)(seconds % 86400);
	size_t mark = der_mark(d);

	if (seconds > LAST_SECOND) {
		d->bad = true;
		return;
	}
	date_of(seconds / 86400, &y, &m, &day);
	if (y >= 2050)
		put_digits(&p, y / 100);
	put_digits(&p, y % 100);
	put_digits(&p, m);
	put_digits(&p, day);
	put_digits(&p, s / 3600);
	put_digits(&p, s / 60 % 60);
	put_digits(&p, s % 60);
	*p++ = 'Z';
	der_put(d, slice_of(text, (size_t)(p - text)));
	der_wrap(d, y >= 2050 ? DER_GENERALIZED_TIME : DER_UTC_TIME, mark);
}

int der_end(const struct der *d, struct slice *ret)
{
	if (d->bad)
		return -EMSGSIZE;
	*ret = slice_of(d->buf + d->at, d->size - d->at);
	return 0;
}
