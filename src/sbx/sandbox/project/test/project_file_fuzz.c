/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a project: what is read names no absolute path and no pattern of hosts. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "src/sbx/sandbox/project/project_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_PROJECT_FILE struct project_file f = {0};
	struct err err = {0};

	if (project_parse(slice_of(data, size), "fuzz", &f, &err) < 0) {
		assert(err.text[0] && !f.template && f.path.n + f.host.n + f.port.n == 0);
		return 0;
	}
	for (size_t i = 0; i < f.path.n; i++)
		assert(strncmp(f.path.v[i].text, "../", 3) == 0 &&
			!strstr(f.path.v[i].text + 2, "/../") && !strchr(f.path.v[i].text, ':'));
	for (size_t i = 0; i < f.host.n; i++)
		assert(!strchr(f.host.v[i].text, '*') && strchr(f.host.v[i].text, ':'));
	for (size_t i = 0; i < f.port.n; i++)
		assert(strspn(f.port.v[i].text, "0123456789:") == strlen(f.port.v[i].text));
	return 0;
}
