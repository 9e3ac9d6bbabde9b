/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and related functions as sbx-edge is linked with them (--wrap): all allocations are
 * counted, including those of nghttp2 and OpenSSL, so that none can be forgotten. */
#include "edge.h"

#include <malloc.h>
#include <stdlib.h>

/* malloc's header of each block. */
#define OVERHEAD 16

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static size_t cost_alloc(void *p)
{
	return p ? malloc_usable_size(p) + OVERHEAD : 0;
}

static void *count_alloc(void *p)
{
	budget_used += cost_alloc(p);
	return p;
}

/* Memory that libc allocated itself may also be freed here. */
static void uncount_alloc(size_t n)
{
	budget_used -= MIN(n, budget_used);
}

void *__wrap_malloc(size_t n)
{
	return count_alloc(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return count_alloc(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	size_t before = cost_alloc(p);
	void *q = __real_realloc(p, n);

	if (!q && n > 0)
		return NULL; /* p is unchanged */
	uncount_alloc(before);
	return count_alloc(q);
}

void __wrap_free(void *p)
{
	uncount_alloc(cost_alloc(p));
	__real_free(p);
}
