/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_internal - what image.c (the store) and image_child.c (the child processes) share.
 */
#pragma once

#include <openssl/evp.h>
#include "image.h"

/* Of `memory.sums`. */
#define IMAGE_PIECE (2ULL << 20)
#define IMAGE_HASH_BYTES (IMAGE_HASH_HEX / 2)

static inline size_t image_table_size(uint64_t memory)
{
	return (size_t)((memory + IMAGE_PIECE - 1) / IMAGE_PIECE * IMAGE_HASH_BYTES);
}

struct image_sum {
	EVP_MD_CTX *ctx;
	uint64_t size;
};

int image_sum_begin(struct image_sum *s) MUST_CHECK;
int image_sum_add(struct image_sum *s, const void *p, size_t n) MUST_CHECK;
/* Frees; ret may be NULL. */
int image_sum_end(struct image_sum *s, struct image_file *ret);
/* The same, without the hexadecimal digits. */
int image_sum_end_bytes(struct image_sum *s, uint8_t hash[IMAGE_HASH_BYTES]) MUST_CHECK;
/* As format 2 has it. Copies a guest's memory of `size` bytes, in which pages of zeros are holes or
 * become some; `to` has that size and is all zeros; -1: only hashes. The hash is of what was read.
 */
int image_copy_memory(int from, int to, uint64_t size, struct image_file *ret) MUST_CHECK;
/* As format 3 has it: the table has the hash of each piece. is_known: -EUCLEAN and the number of
 * a piece that differs; otherwise it is filled. Several processes do it. */
int image_copy_pieces(
	int from, int to, uint64_t size, uint8_t *table, bool is_known, int *ret_bad) MUST_CHECK;
bool image_file_equal(const struct image_file *a, const struct image_file *b);
