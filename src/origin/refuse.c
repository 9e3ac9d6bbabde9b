/* Requests that sbx-origin does not send because the response contains a new credential. Reads the
 * guest's request; changes nothing. */
#include "origin.h"

#include <errno.h>
#include <stdio.h>

/* Frameworks let these replace the method of the request line. */
static bool overrides_method(const struct http_req *req)
{
	static const char *const names[] = {
		"x-http-method-override", "x-http-method", "x-method-override"};

	for (size_t i = 0; i < req->headers.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (slice_eq_str(req->headers.list[i].name, names[k]))
				return true;
	return service_has_query(req->query, "_method");
}

static const struct service_refusal *find(const struct origin *o, const struct http_req *req)
{
	const struct service_refusal *found = service_refuses_path(
		&o->service, overrides_method(req) ? slice_of(NULL, 0) : req->method, req->path);

	if (!found)
		found = service_refuses_query(&o->service, req->query);
	for (size_t i = 0; i < req->headers.n && !found; i++)
		found = service_refuses_header(
			&o->service, req->headers.list[i].name, req->headers.list[i].value);
	return found;
}

int refuse_judge(const struct origin *o, const struct exchange *x, char ret_where[SLOT_MAX_WHERE])
{
	const struct service_refusal *found = find(o, &x->talk->req);

	if (!found)
		return 0;
	(void)snprintf(ret_where, SLOT_MAX_WHERE,
		"rule 'refuse %.100s'; create it on the host, then: sbx secret set %.40s",
		found->rule, o->service.name);
	return -EPERM;
}
