/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_internal - what image.c (the store) and image_child.c (the child processes) share.
 */
#pragma once

#include <openssl/evp.h>
#include "image.h"

struct image_sum {
	EVP_MD_CTX *ctx;
	uint64_t size;
};

int image_sum_begin(struct image_sum *s) MUST_CHECK;
int image_sum_add(struct image_sum *s, const void *p, size_t n) MUST_CHECK;
/* Frees; ret may be NULL. */
int image_sum_end(struct image_sum *s, struct image_file *ret);
/* Copies a guest's memory of `size` bytes, in which pages of zeros are holes or become some;
 * `to` has that size and is all zeros; -1: only hashes. The hash is of what was read. */
int image_copy_memory(int from, int to, uint64_t size, struct image_file *ret) MUST_CHECK;
bool image_file_equal(const struct image_file *a, const struct image_file *b);
