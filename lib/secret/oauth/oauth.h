/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oauth - requests to and responses of a token endpoint, with the real tokens replaced.
 *
 * How      oauth_judge reads the body of a request (JSON or a form): which grant it is, and where
 *          our refresh placeholder is; oauth_fill writes the body with the real token in that
 *          place. oauth_rewrite copies the JSON answer with placeholders instead of the tokens that
 *          the service's fields name, and gives the tokens; all other bytes stay as they were. A
 *          JWT of `field unsign` keeps header and claims, and its signature becomes
 *          OAUTH_SIGNATURE, because readers expect three parts.
 * Trust    Input: requests of a guest, responses of a server, both untrusted. Handles secrets.
 * Owns     Nothing: texts are in the caller's memory, which should be a struct secret.
 * Limits   OAUTH_MAX_*, OAUTH_MAX_DEPTH.
 * Never    Passes a token outside of the fields of the service: such a response is rejected, as is
 *          a request with a real token of the guest or with an unknown grant.
 * See      lib/secret/service/service.h, proto/PROTOCOL.service, oauth_test.c, oauth_fuzz.c
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/json/jtext.h"
#include "lib/secret/service/service.h"

#define OAUTH_MAX_REQUEST 16384
#define OAUTH_MAX_ANSWER 131072
#define OAUTH_MAX_TOKEN 8192 /* what lib/secret/scrub looks for */
#define OAUTH_MAX_DEPTH 32   /* of JSON */
#define OAUTH_TAIL 16	     /* letters and digits for the `*` of a placeholder */
#define OAUTH_SIGNATURE "proxymanaged"
/* Room for what is written. A form has three bytes for one. */
#define OAUTH_MAX_FILLED (OAUTH_MAX_REQUEST + 3 * OAUTH_MAX_TOKEN)
#define OAUTH_MAX_REWRITTEN \
	(OAUTH_MAX_ANSWER + SERVICE_MAX_FIELDS * (2 * SERVICE_MAX_TEXT + OAUTH_TAIL + 2))

enum oauth_form { OAUTH_JSON, OAUTH_FORM };

enum oauth_grant {
	OAUTH_NO_GRANT, /* no content: a registry's token service */
	OAUTH_CODE,	/* a login: by a code of the browser's */
	OAUTH_DEVICE,	/* a login: by a code that was typed in elsewhere */
	OAUTH_REFRESH,
};

struct oauth_request {
	enum oauth_form form;
	enum oauth_grant grant;
	struct slice body;
	struct slice refresh; /* REFRESH: the placeholder as it is written in the body */
};

/* By the value of content-type; -ENOTSUP for any other. */
int oauth_parse_type(struct slice type, enum oauth_form *ret) MUST_CHECK;
/* -EPERM: a real token of the guest; -ENOTSUP: an unknown grant; -EBADMSG: cannot be parsed. */
int oauth_judge(const struct service *s, enum oauth_form form, struct slice body,
	struct oauth_request *ret) MUST_CHECK;
/* A token endpoint's query has no grant and no token in it: -EPERM. */
int oauth_judge_query(const struct service *s, struct slice query) MUST_CHECK;
/* The body with the token instead of the placeholder. -EMSGSIZE; -EINVAL: not a token. */
int oauth_fill(const struct oauth_request *req, struct slice token, struct wr *wr) MUST_CHECK;

struct oauth_tokens {
	struct slice access, refresh; /* empty: not in this answer */
	uint32_t expires_s;	      /* 0: unknown */
};

/*
 * tail: OAUTH_TAIL letters and digits. The answer goes to `wr`, the tokens to `room`, which has 2 *
 * OAUTH_MAX_TOKEN bytes. -EBADMSG: no JSON object; -EPROTO: a token that cannot be replaced;
 * -EMSGSIZE.
 */
int oauth_rewrite(const struct service *s, struct slice answer, const char *tail, struct wr *wr,
	struct wr *room, struct oauth_tokens *ret) MUST_CHECK;
