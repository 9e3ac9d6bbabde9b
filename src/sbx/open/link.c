/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/api/policy_api.h"
#include "src/sbx/policy/policy.h"

int link_read(const json_t *hold, struct link *ret, struct problem *p)
{
	const json_t *lines = json_object_get(hold, "effects");
	const char *text = json_string_value(json_array_get(lines, 0));
	int r;

	*ret = (struct link){.hold = hold};
	if (strcmp(api_str(hold, "kind"), "link") != 0) {
		r = err_set(&p->err, -EINVAL, "%s is not a link but a request for approval",
			api_str(hold, "id"));
		return problem_hint(p, r, "sbx approve %s", api_str(hold, "id"));
	}
	r = url_parse(slice_from_str(text ? text : ""), &ret->url, &p->err);
	if (r == 0 && (json_array_size(lines) != 1 || strcmp(text, ret->url.text) != 0))
		r = err_set(&p->err, -EINVAL, "the link has more than one form");
	if (r < 0)
		return err_wrap(&p->err, r, "invalid link %s", api_str(hold, "id"));
	ret->has_callback = callback_of(&ret->url, &ret->callback, &ret->no_callback) == 1;
	return 0;
}

static char *target_of(const struct link *l)
{
	bool is_v6 = strchr(l->url.host.name, ':') != NULL;

	return xasprintf(
		"%s%s%s:%u", is_v6 ? "[" : "", l->url.host.name, is_v6 ? "]" : "", l->url.port);
}

void link_ask_policy(struct link *l)
{
	AUTO_FREE char *target = target_of(l), *quoted = api_quote(target),
		       *name = api_quote(api_str(l->hold, "sandbox")),
		       *path = xasprintf("/v1/policy/check?target=%s&sandbox=%s", quoted, name);
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};

	if (api_call("GET", path, NULL, POLICY_TIMEOUT_MS, &answer, &p) == 0)
		l->policy = json_is_true(json_object_get(answer, "allowed")) ? LINK_ALLOWED
									     : LINK_DENIED;
}

static void print_policy(FILE *f, const struct link *l)
{
	static const char *const says[] = {[LINK_UNKNOWN] = "the policy is not known",
		[LINK_ALLOWED] = "the policy allows the sandbox to connect to",
		[LINK_DENIED] = "the policy does NOT allow the sandbox to connect to"};
	AUTO_FREE char *target = target_of(l);

	(void)fprintf(f, "policy    %s%s%s\n", says[l->policy], l->policy ? " " : "",
		l->policy ? target : "");
}

static void print_callback(FILE *f, const struct link *l)
{
	const struct url_callback *at = &l->callback.at;

	if (l->has_callback)
		(void)fprintf(f,
			"callback  one request of the browser to http://127.0.0.1:%u%s is passed into "
			"the sandbox\n",
			at->port, at->path);
	else if (l->no_callback.text[0])
		(void)fprintf(f, "callback  not received: %s\n", l->no_callback.text);
}

void link_print(FILE *f, const struct link *l)
{
	char left[32];

	hold_text_left(l->hold, left, sizeof(left));
	(void)fprintf(f, "Link %s of sandbox %s: %s, %s\n\n    %s\n\n", api_str(l->hold, "id"),
		api_str(l->hold, "sandbox"), api_str(l->hold, "state"), left, l->url.text);
	(void)fprintf(f, "host      %s\n", l->url.host.name);
	if (url_has_punycode(&l->url))
		(void)fprintf(f, "          the name has letters that are not ASCII (punycode): it "
				 "may look like another name\n");
	if (!l->url.tls)
		(void)fprintf(f, "          the connection is not encrypted (http)\n");
	print_policy(f, l);
	print_callback(f, l);
	(void)fprintf(f, "digest    %s\n", api_str(l->hold, "digest"));
}

json_t *link_to_json(const struct link *l)
{
	json_t *o = json_deep_copy(l->hold);

	json_object_set_new(o, "url", json_string(l->url.text));
	json_object_set_new(o, "host", json_string(l->url.host.name));
	json_object_set_new(o, "port", json_integer(l->url.port));
	json_object_set_new(o, "punycode", json_boolean(url_has_punycode(&l->url)));
	json_object_set_new(o, "policy_allows",
		l->policy ? json_boolean(l->policy == LINK_ALLOWED) : json_null());
	json_object_set_new(o, "callback",
		l->has_callback ? json_pack("{s:i,s:s}", "port", l->callback.at.port, "path",
					  l->callback.at.path)
				: json_null());
	return o;
}

/* ---- its address ---- */

static bool is_public(const struct sockaddr *sa)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
	struct addr a = sa->sa_family == AF_INET ? addr_from_v4((const uint8_t *)&v4->sin_addr)
						 : addr_from_v6(v6->sin6_addr.s6_addr);

	return addr_classify(&a, NULL) == ADDR_PUBLIC;
}

int link_check_address(const struct link *l, struct err *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	bool ok = true;

	if (l->url.host.is_addr || getaddrinfo(l->url.host.name, NULL, &hints, &list) != 0)
		return 0;
	for (const struct addrinfo *i = list; i; i = i->ai_next)
		if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
			ok = ok && is_public(i->ai_addr);
	freeaddrinfo(list);
	return ok ? 0
		  : err_set(err, -EPERM, "%s has an address of a private network: not opened",
			    l->url.host.name);
}
