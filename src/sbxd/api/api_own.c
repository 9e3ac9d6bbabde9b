/* SPDX-License-Identifier: Apache-2.0 */
/* Services for which one sandbox may use its own credentials. A change is recorded, stored in the
 * directory of spec.json, which the keeper cannot write, and sent to the keeper. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include "api_internal.h"
#include "api_service.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/secret/service/own.h"
#include "reload_reply.h"
#include "src/sbxd/journal/journal.h"

/* A service that no longer has a file can still be removed. */
static int check_service(const struct api_own_body *own, struct err *err)
{
	struct services *set = api_load_services(err);
	bool found = set && services_by_name(set, own->service);

	if (!set)
		return -EIO;
	services_free(set);
	return found || !own->is_own ? 0
				     : err_set(err, -ENOENT, "unknown service '%s'", own->service);
}

static int record_own(
	struct sbxd *d, const struct spec *spec, const struct api_own_body *own, struct err *err)
{
	AUTO_FREE char *reason = xasprintf("%s, sandbox %s", own->service, spec->name);
	struct journal_entry e = {.kind = AUDIT_KIND_POLICY_CHANGE,
		.action = own->is_own ? "own-credential" : "own-credential-off",
		.sandbox = spec->name,
		.reason = reason};

	return journal_append(d, &e, err);
}

/* ret_changed: the new value differs. */
static int change_own(struct sbxd *d, const struct spec *spec, const struct api_own_body *own,
	bool *ret_changed, struct err *err)
{
	AUTO_FREE char *dir = spec_dir(spec->id), *old = NULL, *new = NULL;
	int r = own_load(dir, &old, err);

	if (r < 0)
		return r;
	*ret_changed = own_has(old, own->service) != own->is_own;
	if (!*ret_changed)
		return 0;
	new = own_change(old, own->service, own->is_own);
	r = record_own(d, spec, own, err);
	if (r == 0)
		r = paths_make(dir, err);
	return r < 0 ? r : own_save(dir, new, err);
}

void api_own(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	struct api_own_body own = {0};
	bool changed = false;
	struct err err = {0};
	int r = api_decode_own(c->http.body, &own, &err);

	if (r == 0)
		r = check_service(&own, &err);
	if (r == -ENOENT) {
		api_fail(d, c, 404, "no-service", err.text, "sbx secret services");
		return;
	}
	if (r == 0 && !api_find(d, c, req->ref, &row))
		return;
	if (r == 0)
		r = change_own(d, &row.spec, &own, &changed, &err);
	if (!api_succeeded(d, c, r, &err))
		return;
	reload_reply(d, c, 200,
		json_pack("{s:s,s:s,s:b,s:b}", "sandbox", row.spec.name, "service", own.service,
			"own", own.is_own, "changed", changed),
		row.spec.id);
}
