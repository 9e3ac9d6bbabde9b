/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration is read by the real sshd where the host has one (tests/cli/ssh). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "lib/base/mem.h"
#include "src/guest/ssh/sshd_config.h"

static char *text_of(char **env, bool remote)
{
	return sshd_config_text(&(struct sshd_want){
		.dir = "/run/sbx/ssh.x", .user = "agent", .env = env, .remote = remote});
}

static void has(const char *text, const char *line)
{
	AUTO_FREE char *whole = xasprintf("\n%s\n", line);

	if (!strstr(text, whole))
		fail_msg("no line '%s' in:\n%s", line, text);
}

static void the_keys_are_those_of_the_connection(void **state)
{
	AUTO_FREE char *text = text_of(NULL, false), *all = xasprintf("\n%s", text);

	has(all, "HostKey /run/sbx/ssh.x/host_key");
	has(all, "HostCertificate /run/sbx/ssh.x/host_key-cert.pub");
	has(all, "AuthorizedKeysFile /run/sbx/ssh.x/user_key.pub");
	has(all, "AllowUsers agent");
}

static void only_a_key_logs_in_and_nothing_is_forwarded_to_the_client(void **state)
{
	static const char *const lines[] = {"PasswordAuthentication no",
		"KbdInteractiveAuthentication no", "PermitRootLogin no", "UsePAM no",
		"PermitUserEnvironment no", "X11Forwarding no", "AllowAgentForwarding no",
		"PermitTunnel no", "AllowTcpForwarding local", "AllowStreamLocalForwarding local"};
	AUTO_FREE char *text = text_of(NULL, false);

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		has(text, lines[i]);
	assert_null(strstr(text, "AcceptEnv"));
}

static void remote_forwarding_is_on_request(void **state)
{
	AUTO_FREE char *text = text_of(NULL, true);

	has(text, "AllowTcpForwarding yes");
	has(text, "PermitTunnel no");
}

static void programs_get_the_environment_of_exec(void **state)
{
	char *env[] = {(char *)"PATH=/a:/b", (char *)"HTTP_PROXY=http://x:1",
		(char *)"HOME=/home/agent", (char *)"SSH_X=1", NULL};
	AUTO_FREE char *text = text_of(env, false);

	has(text, "SetEnv \"PATH=/a:/b\" \"SBX_PATH=/a:/b\" \"HTTP_PROXY=http://x:1\"");
}

static void a_value_cannot_end_its_line(void **state)
{
	char *env[] = {
		(char *)"A=1\nPermitRootLogin yes", (char *)"B=x\" \"C=y\\", (char *)"D=\rE", NULL};
	AUTO_FREE char *text = text_of(env, false);

	has(text, "SetEnv \"B=x\\\" \\\"C=y\\\\\"");
	assert_null(strstr(text, "PermitRootLogin yes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_keys_are_those_of_the_connection),
		cmocka_unit_test(only_a_key_logs_in_and_nothing_is_forwarded_to_the_client),
		cmocka_unit_test(remote_forwarding_is_on_request),
		cmocka_unit_test(programs_get_the_environment_of_exec),
		cmocka_unit_test(a_value_cannot_end_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
