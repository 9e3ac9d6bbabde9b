/* SPDX-License-Identifier: Apache-2.0 */
/* What parses must still parse after a key was set and after it was unset, with that value. */
#include <assert.h>
#include "lib/base/mem.h"
#include "lib/rules/settings/settings_internal.h"
#include "lib/rules/settings/settings_net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_SETTINGS struct settings s = {0}, t = {0}, u = {0};
	AUTO_FREE char *set = NULL, *unset = NULL;
	static struct egress_config config;
	struct err err;
	int r;

	if (settings_parse(slice_of(data, size), "fuzz", &s, &err) < 0)
		return 0;
	for (size_t i = 0; i < SETTINGS_N; i++)
		if (settings_keys[i].type != SETTINGS_CHOICE &&
			settings_keys[i].type != SETTINGS_TEXT)
			(void)settings_get_u64(&s, (enum settings_id)i);
	/* What was checked when it was read can be used. */
	r = settings_net_config(&s, &config, &err);
	assert(r == 0 && config.n_pins <= EGRESS_MAX_PINS);
	set = settings_rewrite(slice_of(data, size), "vm.cpus", "7");
	if (strlen(set) > SETTINGS_MAX_BYTES)
		return 0;
	r = settings_parse(slice_from_str(set), "set", &t, &err);
	assert(r == 0 && settings_get_u64(&t, SETTINGS_VM_CPUS) == 7);
	unset = settings_rewrite(slice_from_str(set), "vm.cpus", NULL);
	r = settings_parse(slice_from_str(unset), "unset", &u, &err);
	assert(r == 0 && !settings_is_set(&u, SETTINGS_VM_CPUS));
	return 0;
}
