/* SPDX-License-Identifier: Apache-2.0 */
#include "secret_verify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/sandbox.h"
#include "lib/secret/service/services.h"
#include "src/sbx/session/session.h"

#define VERIFY_MS 60000

/* "HOST:PORT" and the URL, on the heap. */
static int find_check(const char *name, char **ret_target, char **ret_url, struct problem *p)
{
	struct services *all = services_new();
	AUTO_FREE char *target = xmalloc(NETRULE_MAX_TEXT);
	const struct service *s = NULL;
	int r = services_load_installed(all, &p->err);

	if (r == 0)
		s = services_by_name(all, name);
	if (s && s->check.path) {
		netrule_print(&s->check.host, target);
		*ret_url = xasprintf("https://%s%s", target, s->check.path);
		*ret_target = TAKE(target);
	} else if (r == 0) {
		r = err_set(&p->err, -ENOENT,
			"the file of service '%s' has no line 'check': the credential is set, but not verified",
			name);
	}
	services_free(all);
	return r;
}

static int check_policy(const char *target, const char *sandbox, struct problem *p)
{
	AUTO_FREE char *host = api_quote(target), *name = api_quote(sandbox);
	AUTO_FREE char *path = xasprintf("/v1/policy/check?target=%s&sandbox=%s", host, name);
	AUTO_JSON json_t *answer = NULL;
	int r = api_call("GET", path, NULL, POLICY_TIMEOUT_MS, &answer, p);

	if (r < 0 || json_is_true(json_object_get(answer, "allowed")))
		return r;
	(void)err_set(&p->err, -EPERM,
		"the policy does not allow %s for sandbox '%s': the credential is set, but not verified",
		target, sandbox);
	return problem_hint(p, -EPERM, "sbx policy allow network %s --sandbox %s", target, sandbox);
}

static int judge_status(const char *target, const char *sandbox, uint64_t status, struct problem *p)
{
	if (status == 401 || status == 403)
		return err_set(&p->err, -EACCES,
			"%s refused the credential (status %u): it is set, but not valid", target,
			(unsigned)status);
	if (status >= 500 || status == 429)
		return err_set(&p->err, -EIO,
			"%s did not decide (status %u): the credential is set, but not verified",
			target, (unsigned)status);
	printf("%s %s accepted the credential (status %u, reported by sandbox '%s')\n", ui_tick(),
		target, (unsigned)status, sandbox);
	return 0;
}

int secret_verify(const char *service, const char *sandbox, struct problem *p)
{
	AUTO_FREE char *target = NULL, *url = NULL;
	const char *argv[] = {
		"curl", "-sS", "-o", "/dev/null", "-m", "30", "-w", "%{http_code}", NULL, NULL};
	struct guest_run g = {.ref = sandbox, .argv = argv, .max_ms = VERIFY_MS};
	AUTO_FREE char *out = NULL;
	uint64_t status;
	int r = find_check(service, &target, &url, p);

	if (r == 0)
		r = check_policy(target, sandbox, p);
	if (r == 0)
		r = sandbox_start(sandbox, NULL, NULL, p);
	if (r < 0)
		return r;
	argv[8] = url;
	r = guest_run(&g, p);
	out = g.out;
	if (r < 0)
		return r;
	if (!out || str_to_u64(out, 100, 599, &status) < 0)
		return err_set(&p->err, -EIO,
			"sandbox '%s' reported no status: the credential is set, but not verified",
			sandbox);
	return judge_status(target, sandbox, status, p);
}
