/* SPDX-License-Identifier: Apache-2.0 */
#include "deny.h"

#include <errno.h>
#include <inttypes.h>

enum escape { ESCAPE_NOTHING, ESCAPE_JSON, ESCAPE_QUOTED };

/* Printable ASCII only: what a peer wrote must not become a header, a terminal code or markup. */
static void put_some(struct wr *wr, struct slice s, size_t max)
{
	for (size_t i = 0; i < s.n && i < max; i++)
		wr_u8(wr, s.p[i] >= 0x20 && s.p[i] < 0x7f ? s.p[i] : '?');
	if (s.n > max)
		wr_printf(wr, "...");
}

static void put_clean(struct wr *wr, struct slice s)
{
	put_some(wr, s, DENY_MAX_TEXT);
}

static void put_target(struct wr *wr, const struct deny *d)
{
	bool is_v6 = d->host.n > 0 && memchr(d->host.p, ':', d->host.n);

	wr_printf(wr, "%s", is_v6 ? "[" : "");
	put_clean(wr, d->host);
	wr_printf(wr, "%s", is_v6 ? "]" : "");
	if (d->port)
		wr_printf(wr, ":%u", d->port);
}

static void put_operation(struct wr *wr, const struct deny *d)
{
	wr_printf(wr, "op(action=net:connect:tcp, resource=net:domain:");
	put_target(wr, d);
	wr_printf(wr, ")");
}

static void put_reason(struct wr *wr, const struct deny *d)
{
	if (d->reason.n > 0) {
		put_clean(wr, d->reason);
	} else if (d->rule.n > 0) {
		wr_printf(wr, "denied: rule \"");
		put_clean(wr, d->rule);
		wr_printf(wr, "\" matched ");
		put_operation(wr, d);
	} else {
		wr_printf(wr, "no applicable policies for ");
		put_operation(wr, d);
	}
}

/* A word for a shell: what is not plainly harmless goes between quotes. */
static void put_word(struct wr *wr, const char *before, struct slice s)
{
	uint8_t buf[DENY_MAX_TEXT + 64];
	struct wr word = wr_init(buf, sizeof(buf));
	bool plain = true;

	wr_printf(&word, "%s", before);
	put_clean(&word, s);
	for (size_t i = 0; i < word.n; i++)
		plain = plain && (canon_text_is_token(slice_of(&buf[i], 1)) || buf[i] == ':') &&
			!memchr("!#$&'*`|~", buf[i], 9);
	wr_printf(wr, "%s", plain ? "" : "'");
	for (size_t i = 0; i < word.n; i++)
		wr_u8(wr, buf[i] == '\'' ? '?' : buf[i]);
	wr_printf(wr, "%s", plain ? "" : "'");
}

static void put_log_command(struct wr *wr, const struct deny *d)
{
	wr_printf(wr, "sbx policy log");
	if (d->sandbox.n > 0) {
		wr_printf(wr, " ");
		put_word(wr, "", d->sandbox);
	}
}

/* A deny wins over every allow, so it must be removed; otherwise an allow is missing. If neither
 * applies, the log has the reason. */
static void put_command(struct wr *wr, const struct deny *d)
{
	uint8_t buf[DENY_MAX_TEXT + 64];
	struct wr target = wr_init(buf, sizeof(buf));

	if (d->approval.n > 0) {
		wr_printf(wr, "sbx approve ");
		put_clean(wr, d->approval);
		return;
	}
	if (d->no_rule_helps) {
		put_log_command(wr, d);
		return;
	}
	if (d->command.n > 0) {
		put_some(wr, d->command, DENY_MAX_LINE);
		return;
	}
	if (d->rule.n > 0) {
		wr_printf(wr, "sbx policy rm network --resource ");
		put_word(wr, "", d->rule);
	} else {
		put_target(&target, d);
		wr_printf(wr, "sbx policy allow network ");
		put_word(wr, "", slice_of(buf, target.n));
	}
	if (d->sandbox.n > 0) {
		wr_printf(wr, " --sandbox ");
		put_word(wr, "", d->sandbox);
	}
}

static void put_effect(struct wr *wr, const struct deny *d)
{
	put_some(wr, d->effect, DENY_MAX_LINE);
}

static void put_instead(struct wr *wr, const struct deny *d)
{
	put_clean(wr, d->instead);
}

/* Not denied: it can be approved. */
static int write_pending_text(struct wr *wr, const struct deny *d)
{
	wr_printf(wr, "Waiting for approval: ");
	put_target(wr, d);
	if (d->effect.n > 0) {
		wr_printf(wr, "\n  request: ");
		put_effect(wr, d);
	}
	wr_printf(wr, "\n  reason:  ");
	put_reason(wr, d);
	wr_printf(wr, "\n  retry:   the same request, in %d s or later\n  approve: ", DENY_RETRY_S);
	put_command(wr, d);
	wr_printf(wr, "     (run on the host)\n");
	return wr_finish(wr);
}

int deny_write_text(struct wr *wr, const struct deny *d)
{
	if (d->approval.n > 0)
		return write_pending_text(wr, d);
	wr_printf(wr, "Blocked by network policy: ");
	put_target(wr, d);
	if (d->effect.n > 0) {
		wr_printf(wr, "\n  request: ");
		put_effect(wr, d);
	}
	wr_printf(wr, "\n  reason:  ");
	put_reason(wr, d);
	if (d->instead.n > 0) {
		wr_printf(wr, "\n  allowed: ");
		put_instead(wr, d);
	}
	if (d->count > 0)
		wr_printf(wr, "\n  blocked: %" PRIu64 " time%s; retrying will not help", d->count,
			d->count == 1 ? "" : "s");
	wr_printf(wr, "%s", d->no_rule_helps ? "\n  see:     " : "\n  allow:   ");
	put_command(wr, d);
	wr_printf(wr, "     (run on the host)\n");
	return wr_finish(wr);
}

/* Copies printable text, quotes and backslashes escaped; a line end becomes \n in JSON. */
static void put_escaped(struct wr *wr, struct slice s, enum escape how)
{
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];

		if (c == '\n') {
			wr_printf(wr, "%s", how == ESCAPE_JSON ? "\\n" : " ");
			continue;
		}
		if (how != ESCAPE_NOTHING && (c == '"' || c == '\\'))
			wr_u8(wr, '\\');
		wr_u8(wr, c);
	}
}

static void put_member(struct wr *wr, const char *key, const struct deny *d,
	void (*value)(struct wr *, const struct deny *))
{
	uint8_t buf[DENY_ROOM / 4];
	struct wr text = wr_init(buf, sizeof(buf));

	value(&text, d);
	wr_printf(wr, ",\"%s\":\"", key);
	put_escaped(wr, slice_of(buf, text.n), ESCAPE_JSON);
	wr_printf(wr, "\"");
}

static void put_detail(struct wr *wr, const struct deny *d)
{
	wr_printf(wr, d->approval.n ? "Waiting for approval: " : "Blocked by network policy: ");
	put_target(wr, d);
	wr_printf(wr, ": ");
	put_reason(wr, d);
}

static void put_approval(struct wr *wr, const struct deny *d)
{
	put_clean(wr, d->approval);
}

static void put_rule(struct wr *wr, const struct deny *d)
{
	put_clean(wr, d->rule);
}

/* The member that clients of APIs print: all in one line. */
static void put_message(struct wr *wr, const struct deny *d)
{
	put_detail(wr, d);
	if (d->instead.n > 0) {
		wr_printf(wr, "; allowed: ");
		put_instead(wr, d);
	}
	wr_printf(wr, d->approval.n > 0	 ? "; approve: "
		      : d->no_rule_helps ? "; see: "
					 : "; allow: ");
	put_command(wr, d);
}

static int write_json(struct wr *wr, const struct deny *d)
{
	bool pending = d->approval.n > 0;

	wr_printf(wr, "{\"type\":\"%s\",\"title\":\"%s\",\"status\":403",
		pending ? "urn:sbx:pending" : "about:blank",
		pending ? "Waiting for approval" : "Blocked by network policy");
	put_member(wr, "detail", d, put_detail);
	put_member(wr, "message", d, put_message);
	put_member(wr, "target", d, put_target);
	if (d->rule.n > 0)
		put_member(wr, "rule", d, put_rule);
	put_member(wr, "reason", d, put_reason);
	if (d->effect.n > 0)
		put_member(wr, "effect", d, put_effect);
	if (d->instead.n > 0)
		put_member(wr, "allowed_instead", d, put_instead);
	if (pending) {
		put_member(wr, "approval", d, put_approval);
		wr_printf(wr, ",\"retry-after\":%d", DENY_RETRY_S);
	}
	put_member(wr, pending ? "approve" : d->no_rule_helps ? "see" : "allow", d, put_command);
	wr_printf(wr, ",\"refused\":%" PRIu64 "}\n", d->count);
	return wr_finish(wr);
}

/* application/problem+json, application/vnd.github+json ... */
static bool is_json_type(struct slice type)
{
	static const char begin[] = "application/", end[] = "+json";
	size_t n = sizeof(begin) - 1, m = sizeof(end) - 1;

	return type.n > n + m && canon_text_eq_fold(slice_of(type.p, n), begin) &&
	       canon_text_eq_fold(slice_of(type.p + type.n - m, m), end);
}

bool deny_wants_json(struct slice accept)
{
	struct slice item;

	while (canon_text_next(&accept, &item)) {
		const uint8_t *mark = item.n ? memchr(item.p, ';', item.n) : NULL;
		size_t n = mark ? (size_t)(mark - item.p) : item.n;
		struct slice type = canon_text_trim(canon_text_cut(item, 0, n));

		if (canon_text_eq_fold(type, "application/json") || is_json_type(type))
			return true;
	}
	return false;
}

static void put_proxy_status(struct wr *wr, const char *error, struct slice details)
{
	wr_printf(wr, "proxy-status: sbx; error=%s; details=\"", error);
	put_escaped(wr, details, ESCAPE_QUOTED);
	wr_printf(wr, "\"\r\n");
}

enum form { FORM_HEAD = 1, FORM_CLOSE = 2, FORM_RETRY = 4 };

static unsigned form_of(bool is_head, bool close)
{
	return (is_head ? FORM_HEAD : 0) | (close ? FORM_CLOSE : 0);
}

static int write_answer(struct wr *wr, uint16_t status, const char *error, struct slice details,
	const char *type, struct slice content, unsigned form)
{
	wr_printf(wr, "HTTP/1.1 %u %s\r\n", status, canon_reason(status));
	put_proxy_status(wr, error, details);
	wr_printf(wr, "content-type: %s\r\ncache-control: no-store\r\ncontent-length: %zu", type,
		content.n);
	if (form & FORM_RETRY)
		wr_printf(wr, "\r\nretry-after: %d", DENY_RETRY_S);
	wr_printf(wr, "%s\r\n\r\n", form & FORM_CLOSE ? "\r\nconnection: close" : "");
	if (!(form & FORM_HEAD))
		wr_bytes(wr, content);
	return wr_finish(wr);
}

int deny_write_http(struct wr *wr, const struct deny *d, bool json, bool is_head, bool close)
{
	uint8_t content[DENY_ROOM / 2], details[DENY_ROOM / 4];
	struct wr body = wr_init(content, sizeof(content)), why = wr_init(details, sizeof(details));

	put_reason(&why, d);
	if (wr_finish(&why) < 0 || (json ? write_json(&body, d) : deny_write_text(&body, d)) < 0)
		return -EMSGSIZE;
	return write_answer(wr, 403, "http_request_denied", slice_of(details, why.n),
		json ? "application/problem+json" : "text/plain; charset=utf-8",
		slice_of(content, body.n),
		form_of(is_head, close) | (d->approval.n ? FORM_RETRY : 0));
}

/* "Connection to example.test:80 failed (the host is allowed): the name has no address" */
static void put_failure(struct wr *wr, const struct deny *d)
{
	wr_printf(wr, "Connection to ");
	put_target(wr, d);
	wr_printf(wr, " failed (the host is allowed): ");
	put_clean(wr, d->reason);
}

static void write_failure_json(struct wr *wr, const struct deny *d, uint16_t status)
{
	wr_printf(wr, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u",
		canon_reason(status), status);
	put_member(wr, "detail", d, put_failure);
	put_member(wr, "target", d, put_target);
	put_member(wr, "reason", d, put_reason);
	wr_printf(wr, "}\n");
}

int deny_write_failed(
	struct wr *wr, const struct deny *d, uint16_t status, bool json, bool is_head, bool close)
{
	uint8_t content[DENY_ROOM / 2], details[DENY_ROOM / 4];
	struct wr body = wr_init(content, sizeof(content)), why = wr_init(details, sizeof(details));

	put_clean(&why, d->reason);
	if (json) {
		write_failure_json(&body, d, status);
	} else {
		put_failure(&body, d);
		wr_printf(&body, "\n");
	}
	if (wr_finish(&why) < 0 || wr_finish(&body) < 0)
		return -EMSGSIZE;
	return write_answer(wr, status,
		status == 504 ? "connection_timeout" : "destination_unavailable",
		slice_of(details, why.n),
		json ? "application/problem+json" : "text/plain; charset=utf-8",
		slice_of(content, body.n), form_of(is_head, close));
}

int deny_write_connect(struct wr *wr, const struct deny *d)
{
	return deny_write_http(wr, d, false, false, true);
}

int deny_write_fault(struct wr *wr, const struct http_fault *fault, bool is_head)
{
	uint8_t content[512];
	struct wr body = wr_init(content, sizeof(content));

	wr_printf(&body, "Malformed request rejected: %s\n", fault->why);
	if (wr_finish(&body) < 0)
		return -EMSGSIZE;
	return write_answer(wr, fault->status,
		fault->status >= 500 ? "http_protocol_error" : "http_request_error",
		slice_from_str(fault->why), "text/plain; charset=utf-8", slice_of(content, body.n),
		form_of(is_head, true));
}
