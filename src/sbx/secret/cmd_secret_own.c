/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "lib/client/api/policy_api.h"
#include "secret_api.h"
#include "secret_verbs.h"

const struct opt_def secret_own_opts[] = {
	{0, "sandbox", "NAME", "sandbox name (required)"},
	{0, "off", NULL, "revoke the permission"},
	{0},
};

static int check_own(const struct opts *o, bool is_own, struct problem *p)
{
	AUTO_JSON json_t *answer = NULL;
	const json_t *service;
	int r;

	if (!opts_value(o, "sandbox")) {
		(void)err_set(&p->err, -EINVAL, "missing --sandbox NAME");
		return problem_hint(p, -EINVAL, "sbx secret own --help");
	}
	r = secret_check_sandbox(opts_value(o, "sandbox"), p);
	if (r < 0 || !is_own)
		return r;
	r = secret_services(&answer, p);
	return r < 0 ? r : secret_find_service(answer, o->args.v[0], &service, p);
}

static void say_own(const char *service, const char *sandbox, bool is_own)
{
	if (is_own) {
		printf("Sandbox %s can use its own credentials for %s\n", sandbox, service);
		ui_warning(
			"sbx does not intercept the hosts of %s in this sandbox: it adds no credential, and it cannot tell your key from the key of another account",
			service);
	} else {
		printf("Sandbox %s can no longer use its own credentials for %s\n", sandbox,
			service);
	}
}

int secret_own_run(struct opts *o)
{
	bool is_own = !opts_has(o, "off");
	AUTO_JSON json_t *body = NULL, *answer = NULL;
	AUTO_FREE char *quoted = NULL, *path = NULL;
	struct problem p = {0};
	int r = check_own(o, is_own, &p);

	if (r < 0)
		return ui_problem(&p, r);
	body = json_pack("{s:s,s:b}", "service", o->args.v[0], "own", is_own);
	quoted = api_quote(opts_value(o, "sandbox"));
	path = xasprintf("/v1/sandboxes/%s/own", quoted);
	r = api_call("POST", path, body, POLICY_TIMEOUT_MS, &answer, &p);
	if (r < 0)
		return ui_problem(&p, r);
	say_own(o->args.v[0], api_str(answer, "sandbox"), is_own);
	policy_say_not_taken(answer);
	return EXIT_OK;
}
