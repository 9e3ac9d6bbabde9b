/* SPDX-License-Identifier: Apache-2.0 */
/* Parses input in the order of a connection: request, route, body. */
#include "src/sbxd/http/api_body.h"
#include "src/sbxd/http/api_route.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_policy(const struct api_http *h, const struct api_request *req)
{
	AUTO_API_POLICY struct api_policy policy = {0};
	AUTO_RULE struct rule rule = {0};
	struct host host;
	struct err err;
	uint16_t port;

	if (req->call == API_POLICY_PUT)
		(void)!api_decode_policy(h->body, &policy, &err);
	if (req->call == API_RULE_ADD)
		(void)!api_decode_rule(h->body, 1000, &rule, &err);
	if (req->call == API_POLICY_CHECK)
		(void)!api_parse_target(req->target, &host, &port, &err);
}

static void decode_secret(const struct api_http *h, const struct api_request *req)
{
	AUTO_API_SECRET struct api_secret secret = {0};
	struct err err;

	if (req->call == API_SECRET_PUT)
		(void)!api_decode_secret(h->body, req->ref, &secret, &err);
}

static void decode_body(const struct api_http *h, enum api_call call)
{
	AUTO_SPEC struct spec spec = {0}, old = {0};
	AUTO_API_CREATE struct api_create_body create = {0};
	enum spec_accel accel = SPEC_ACCEL_AUTO;
	char label[33] = "";
	bool cold = false;
	uint64_t n = 0;
	struct err err;

	if (call == API_CREATE)
		(void)!api_decode_create(h->body, 1000, &spec, &create, &err);
	if (call == API_START)
		(void)!api_decode_start(h->body, &accel, &cold, &err);
	if (call == API_STOP)
		(void)!api_decode_stop(h->body, &n, &(bool){false}, &(bool){false}, &err);
	if (call == API_CHECKPOINT)
		(void)!api_decode_checkpoint(
			h->body, label, sizeof(label), &(bool){false}, &(bool){false}, &err);
	if (call == API_REWIND)
		(void)!api_decode_rewind(h->body, label, sizeof(label), &err);
	if (call == API_HOLD_ANSWER)
		(void)!api_decode_hold(h->body, &(struct api_hold_body){0}, &err);
	if (call == API_STAGE)
		(void)!api_decode_stage(h->body, &(struct api_stage_body){0}, &err);
	if (call == API_OWN)
		(void)!api_decode_own(h->body, &(struct api_own_body){0}, &err);
	if (call == API_PORT_ADD)
		(void)!api_decode_ports(h->body, &spec.ports, &spec.n_ports, &err);
	if (call == API_PATCH &&
		spec_decode(slice_from_str("{\"name\":\"old\",\"cpus\":2}"), &old, &err) == 0)
		(void)!api_decode_patch(h->body, &old, &spec, &n, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct api_http h = {0};
	size_t at = 0;

	while (at < size) {
		struct api_request req = {0};
		struct err err;

		at += api_http_feed(&h, slice_of(data + at, size - at));
		if (h.state != API_HTTP_READY)
			break;
		if (api_route(&h, &req, &err) == 0) {
			decode_body(&h, req.call);
			decode_policy(&h, &req);
			decode_secret(&h, &req);
		}
		api_http_reset(&h);
	}
	api_http_done(&h);
	return 0;
}
