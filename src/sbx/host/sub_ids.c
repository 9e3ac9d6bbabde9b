/* SPDX-License-Identifier: Apache-2.0 */
#include "sub_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/attr.h"
#include "lib/base/str.h"

#define LOWEST 100000u /* SUB_UID_MIN of /etc/login.defs */

struct range {
	const char *user;
	uint64_t first, count;
};

/* Changes the line. */
static bool parse_range(char *line, struct range *ret)
{
	char *save = NULL, *first, *count;

	ret->user = strtok_r(line, ":", &save);
	first = strtok_r(NULL, ":", &save);
	count = strtok_r(NULL, ":\n", &save);
	return ret->user && first && count && str_to_u64(first, 0, UINT32_MAX, &ret->first) == 0 &&
	       str_to_u64(count, 1, UINT32_MAX, &ret->count) == 0;
}

bool sub_ids_has(const char *file, const char *user, uid_t uid)
{
	FILE *f = fopen(file, "re");
	char line[256], number[24];
	bool found = false;
	struct range r;

	(void)snprintf(number, sizeof(number), "%u", (unsigned)uid);
	while (f && !found && fgets(line, sizeof(line), f))
		found = parse_range(line, &r) && r.count >= SUB_IDS &&
			(strcmp(r.user, user) == 0 || strcmp(r.user, number) == 0);
	if (f)
		(void)fclose(f);
	return found;
}

/* The ID after all ranges of the file; 0 if there are none. */
static uint64_t end_of(const char *file)
{
	FILE *f = fopen(file, "re");
	char line[256];
	uint64_t end = 0;
	struct range r;

	while (f && fgets(line, sizeof(line), f)) {
		if (parse_range(line, &r))
			end = MAX(end, r.first + r.count);
	}
	if (f)
		(void)fclose(f);
	return end;
}

uint32_t sub_ids_free(const char *uids, const char *gids)
{
	uint64_t uid = end_of(uids), gid = end_of(gids), first = MAX(uid, gid);

	first = MAX(first, LOWEST);
	/* The last ID, (uid_t)-1, means "no change". */
	return first + SUB_IDS <= UINT32_MAX ? (uint32_t)first : 0;
}
