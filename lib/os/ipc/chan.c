/* SPDX-License-Identifier: Apache-2.0 */
#include "chan.h"

static const struct chan_row *find_row(const struct chan *chan, uint16_t type)
{
	return type < chan->n_rows && chan->rows[type].name ? &chan->rows[type] : NULL;
}

bool chan_allows(const struct chan *chan, unsigned phase, unsigned from, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);

	return row && phase < chan->n_phases && row->from == from && row->phases & 1U << phase;
}

uint8_t chan_after(const struct chan *chan, unsigned phase, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);

	return row && row->after ? row->after : (uint8_t)phase;
}

bool chan_may_have_fd(const struct chan *chan, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);

	return row && row->flags & (CHAN_FD | CHAN_MAY_FD);
}

const char *chan_name(const struct chan *chan, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);

	return row ? row->name : "?";
}
