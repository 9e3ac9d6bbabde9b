/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_fixture - what the tests of this folder share: an installation in a temporary folder.
 *
 * How      fixture_up makes the folder and its key, fixture_open a log in it with small limits. A
 *          crash is audit_free: nothing is signed, synced or told.
 * Trust    Test programs only.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/rules/audit/audit_internal.h"
#include "lib/rules/audit/audit_read.h"

#define FIXTURE_ID "0123456789ab"

struct fixture {
	char dir[64];
	struct audit_key *key;
	unsigned head_records, head_ms;
	uint64_t max_bytes, segment_bytes, room;
};

static inline void fixture_up(struct fixture *f)
{
	struct err err = {0};

	*f = (struct fixture){.dir = "/tmp/audit_test.XXXXXX", .head_records = 10};
	assert_non_null(mkdtemp(f->dir));
	if (audit_key_load(f->dir, &f->key, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void fixture_down(struct fixture *f)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", f->dir);

	audit_key_free(f->key);
	assert_int_equal(system(rm), 0);
}

static inline int fixture_try(
	const struct fixture *f, const char *id, struct audit **ret, struct err *err)
{
	struct audit_options o = {.dir = f->dir,
		.sandbox = id,
		.name = "demo",
		.key = f->key,
		.max_bytes = f->max_bytes,
		.segment_bytes = f->segment_bytes,
		.room = f->room,
		.head_records = f->head_records,
		.head_ms = f->head_ms ? f->head_ms : 100000};

	return audit_open(&o, ret, err);
}

static inline struct audit *fixture_open(const struct fixture *f, const char *id)
{
	struct audit *a = NULL;
	struct err err = {0};

	if (fixture_try(f, id, &a, &err) < 0)
		fail_msg("%s", err.text);
	return a;
}

static inline struct audit *fixture_open_room(struct fixture *f, const char *id, uint64_t room)
{
	f->room = room;
	return fixture_open(f, id);
}

/* One decision; i makes them differ. */
static inline int fixture_append(struct audit *a, unsigned i, uint64_t *ret_seq)
{
	char host[32];
	struct audit_event ev = {.kind = AUDIT_KIND_DECISION,
		.decision = i % 3 ? AUDIT_ALLOW : AUDIT_DENY,
		.type = slice_from_str(i % 2 ? "https" : "dns"),
		.port = 443,
		.path = slice_from_str("transparent"),
		.rule = slice_from_str(i % 3 ? "r17" : ""),
		.reason = slice_from_str(i % 3 ? "" : "no applicable policies")};

	(void)snprintf(host, sizeof(host), "h%u.example", i);
	ev.host = slice_from_str(host);
	return audit_append(a, &ev, ret_seq, NULL);
}

static inline void fixture_fill(struct audit *a, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(fixture_append(a, i, NULL), 0);
}

static inline struct audit_report fixture_verify(const struct fixture *f, const char *id)
{
	struct audit_report rep = {0};
	struct err err = {0};
	int r = audit_verify(f->dir, id, audit_key_pub(f->key), NULL, &rep, &err);

	assert_int_equal(r, rep.bad == AUDIT_OK ? 0 : -EBADMSG);
	if (r < 0 && rep.bad != AUDIT_BAD_KEPT_HEAD)
		assert_non_null(strstr(err.text, audit_bad_text(rep.bad)));
	return rep;
}

static inline void fixture_must_verify(const struct fixture *f, const char *id)
{
	struct audit_report rep = fixture_verify(f, id);

	if (rep.bad != AUDIT_OK)
		fail_msg("record %llu: %s", (unsigned long long)rep.seq, audit_bad_text(rep.bad));
}

static inline char *fixture_segment(const struct fixture *f, const char *id, unsigned number)
{
	AUTO_FREE char *dir = xasprintf("%s/%s", f->dir, id);

	return audit_segment_path(dir, number);
}

/* Puts bytes behind the end of a segment. */
static inline void fixture_soil(
	const struct fixture *f, unsigned number, const void *bytes, size_t n)
{
	AUTO_FREE char *path = fixture_segment(f, FIXTURE_ID, number);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
}
