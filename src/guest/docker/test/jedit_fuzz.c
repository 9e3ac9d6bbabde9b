/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted container config is still JSON after the edit, according to another parser. */
#include <jansson.h>
#include "src/guest/docker/jedit.h"
#include "src/guest/docker/oci.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_json(const char *text)
{
	json_t *j = json_loads(text, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, NULL);

	json_decref(j);
	return j != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = xstrndup((const char *)data, size), *new = NULL;
	struct oci_add add = {
		.folder = "/run/sbx/oci/x", .bundle = "/b", .n_binds = 1, .binds = {"/c"}};

	env_put(&add.env, "NAME=a\"b\\c\n");
	env_put(&add.env, "PATH=/bin");
	(void)oci_has_dev(text);
	if (oci_edit(text, &add, &new) == 0 && is_json(text) && !is_json(new))
		abort();
	env_done(&add.env);
	return 0;
}
