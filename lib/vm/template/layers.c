/* SPDX-License-Identifier: Apache-2.0 */
#include "layers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/fs/dir.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "template_internal.h"

char *layers_path(const char *dir, enum template_disk disk, unsigned n)
{
	return n ? xasprintf("%s/%s.%u.qcow2", dir, template_disk_name(disk), n)
		 : xasprintf("%s/%s.qcow2", dir, template_disk_name(disk));
}

/* The N of STEM.N.qcow2; 0 if the name has another form. */
static unsigned number_of(const char *name, const char *stem)
{
	size_t n = strlen(stem), digits;
	char text[8];
	uint64_t v;

	if (strncmp(name, stem, n) != 0 || name[n] != '.')
		return 0;
	name += n + 1;
	digits = strspn(name, "0123456789");
	if (digits == 0 || digits >= sizeof(text) || name[0] == '0' ||
		strcmp(name + digits, ".qcow2") != 0)
		return 0;
	(void)snprintf(text, sizeof(text), "%.*s", (int)digits, name);
	return str_to_u64(text, 1, LAYERS_MAX_NUMBER, &v) < 0 ? 0 : (unsigned)v;
}

static int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? -1 : x > y;
}

int layers_find(const char *dir, enum template_disk disk, struct layers *ret)
{
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	ret->n = 0;
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((e = dir_next(d))) {
		unsigned number = number_of(e->d_name, template_disk_name(disk));

		if (number && ret->n == LAYERS_MAX)
			return -EMLINK;
		if (number)
			ret->number[ret->n++] = number;
	}
	if (ret->n)
		qsort(ret->number, ret->n, sizeof(ret->number[0]), by_number);
	return 0;
}

int layers_copy(const char *from, const char *to, struct err *err)
{
	return template_copy(from, to, err);
}

unsigned layers_last(const struct layers *l)
{
	return l->n ? l->number[l->n - 1] : 0;
}
