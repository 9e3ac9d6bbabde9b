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
bool image_file_equal(const struct image_file *a, const struct image_file *b);
