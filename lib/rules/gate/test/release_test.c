/* SPDX-License-Identifier: Apache-2.0 */
/* Twelve gates: each is taken away alone, and must be the one that is named. */
#include "lib/rules/gate/release.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/slice.h"

#define TARGET                     \
	{                          \
		"api.example", 443 \
	}

static struct release_facts good(void)
{
	return (struct release_facts){.is_bound = true,
		.bound_serial = 7,
		.decided_serial = 7,
		.host_allowed = true,
		.port_allowed = true,
		.names_agree = true,
		.asked = TARGET,
		.is_tls = true,
		.method = "POST",
		.is_verified = true,
		.address_passed = true,
		.connected = TARGET,
		.has_service = true,
		.serves = TARGET,
		.is_recorded = true};
}

static void shut(const struct release_facts *f, enum release_gate gate)
{
	assert_int_equal(release_check(f), gate);
	assert_true(strlen(release_text(gate)) > 10);
}

static void all_are_open(void **state)
{
	struct release_facts f = good(), none = {0};

	assert_int_equal(release_check(&f), RELEASE_N_GATES);
	shut(&none, RELEASE_BINDING);
}

static void gate_binding(void **state)
{
	struct release_facts f = good();

	f.is_bound = false;
	shut(&f, RELEASE_BINDING);
	f = good();
	f.bound_serial = 8; /* set anew after it was decided */
	shut(&f, RELEASE_BINDING);
}

static void gate_host(void **state)
{
	struct release_facts f = good();

	f.host_allowed = false;
	shut(&f, RELEASE_HOST);
}

static void gate_port(void **state)
{
	struct release_facts f = good();

	f.port_allowed = false;
	shut(&f, RELEASE_PORT);
}

static void gate_names(void **state)
{
	struct release_facts f = good();

	f.names_agree = false;
	shut(&f, RELEASE_NAMES);
	f = good();
	f.asked.host = NULL; /* no request waits */
	shut(&f, RELEASE_NAMES);
	f.asked.host = "";
	shut(&f, RELEASE_NAMES);
}

static void gate_tls(void **state)
{
	struct release_facts f = good();

	f.is_tls = false;
	shut(&f, RELEASE_TLS);
}

static void gate_cert(void **state)
{
	struct release_facts f = good();

	f.is_verified = false;
	shut(&f, RELEASE_CERT);
}

static void gate_address(void **state)
{
	struct release_facts f = good();

	f.address_passed = false;
	shut(&f, RELEASE_ADDRESS);
}

static void gate_method(void **state)
{
	static const char *const methods[] = {"TRACE", "CONNECT", "trace", "Connect", "", NULL};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		struct release_facts f = good();

		f.method = methods[i];
		shut(&f, RELEASE_METHOD);
	}
}

static void gate_foreign(void **state)
{
	struct release_facts f = good();

	f.has_service = false;
	shut(&f, RELEASE_FOREIGN);
}

static void gate_redirect(void **state)
{
	struct release_facts f = good();

	f.connected.host = "evil.example";
	shut(&f, RELEASE_REDIRECT);
	f = good();
	f.connected.port = 8443;
	shut(&f, RELEASE_REDIRECT);
	f.connected.host = NULL;
	shut(&f, RELEASE_REDIRECT);
}

static void gate_single(void **state)
{
	struct release_facts f = good();

	f.serves.host = "other.example";
	shut(&f, RELEASE_SINGLE);
	f = good();
	f.serves.port = 80;
	shut(&f, RELEASE_SINGLE);
	f = good();
	f.serves.host = "api.example."; /* one more byte is another host */
	shut(&f, RELEASE_SINGLE);
}

static void gate_record(void **state)
{
	struct release_facts f = good();

	f.is_recorded = false;
	shut(&f, RELEASE_RECORD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_open),
		cmocka_unit_test(gate_binding),
		cmocka_unit_test(gate_host),
		cmocka_unit_test(gate_port),
		cmocka_unit_test(gate_names),
		cmocka_unit_test(gate_tls),
		cmocka_unit_test(gate_cert),
		cmocka_unit_test(gate_address),
		cmocka_unit_test(gate_method),
		cmocka_unit_test(gate_foreign),
		cmocka_unit_test(gate_redirect),
		cmocka_unit_test(gate_single),
		cmocka_unit_test(gate_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
