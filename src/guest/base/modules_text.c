/* SPDX-License-Identifier: Apache-2.0 */
/* What the bytes of a module and modules.dep mean; no I/O. */
#include "modules.h"

#include <stdbool.h>
#include <string.h>
#include "lib/base/mem.h"

#define MAGIC "~Module signature appended~\n"
/* Before the magic: eight bytes, then the signature's length in network order. */
#define TRAILER (12 + strlen(MAGIC))

struct slice modules_unsigned(struct slice file)
{
	const uint8_t *end;
	size_t n;

	if (file.n < TRAILER)
		return file;
	end = file.p + file.n - strlen(MAGIC);
	if (memcmp(end, MAGIC, strlen(MAGIC)) != 0)
		return file;
	end -= 4;
	n = (size_t)end[0] << 24 | (size_t)end[1] << 16 | (size_t)end[2] << 8 | end[3];
	return n > file.n - TRAILER ? file : slice_of(file.p, file.n - TRAILER - n);
}

/* Whether the path at the start of the line is a module of that name. */
static bool is_module(const char *line, size_t n, const char *name)
{
	const char *base = memrchr(line, '/', n);
	size_t k = strlen(name);

	base = base ? base + 1 : line;
	return (size_t)(line + n - base) > k && !memcmp(base, name, k) &&
	       !strncmp(base + k, ".ko", 3);
}

char *modules_find_dep(const char *dep, const char *name)
{
	for (const char *p = dep; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t n = strcspn(p, ":\n");

		if (p[n] == ':' && is_module(p, n, name))
			return xstrndup(p, strcspn(p, "\n"));
	}
	return NULL;
}
