/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_internal - network byte order for the files of this directory; lib/base speaks little-endian.
 */
#pragma once

#include "lib/base/slice.h"

static inline uint16_t rd_be16(struct rd *rd)
{
	uint8_t high = rd_u8(rd);

	return (uint16_t)(high << 8 | rd_u8(rd));
}

static inline void wr_be16(struct wr *wr, uint16_t v)
{
	wr_u8(wr, (uint8_t)(v >> 8));
	wr_u8(wr, (uint8_t)v);
}

static inline void wr_be32(struct wr *wr, uint32_t v)
{
	wr_be16(wr, (uint16_t)(v >> 16));
	wr_be16(wr, (uint16_t)v);
}
