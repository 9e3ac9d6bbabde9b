/* SPDX-License-Identifier: Apache-2.0 */
#include "rulebook.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/rules/audit/audit_crypto.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

static char *policy_path(void)
{
	return paths_get(PATHS_STATE, "policy");
}

void rulebook_abandon(struct rulebook *b)
{
	if (b->prepared)
		(void)unlink(b->prepared);
	free(TAKE(b->prepared));
	b->fresh = false;
}

void rulebook_done(struct rulebook *b)
{
	rulebook_abandon(b);
	rules_done(&b->rules);
	managed_done(&b->managed);
}

int rulebook_text(char **ret_text, size_t *ret_n, struct err *err)
{
	AUTO_FREE char *path = policy_path();

	return file_load(path, RULES_MAX_BYTES, ret_text, ret_n, err);
}

void rulebook_clean(void)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, NULL);
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = dir_next(d)))
		if (str_starts(e->d_name, "policy.new.") ||
			str_starts(e->d_name, RULEBOOK_IMPORT_PREFIX))
			(void)unlinkat(dirfd(d), e->d_name, 0);
}

static bool is_seen(const struct rulebook *b, const struct stat *st)
{
	return b->seen.st_dev == st->st_dev && b->seen.st_ino == st->st_ino &&
	       b->seen.st_size == st->st_size && b->seen.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       b->seen.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

static void next_revision(struct rulebook *b)
{
	uint64_t now = clock_wall_ms();

	b->revision = b->revision < now ? now : b->revision + 1;
}

static bool has_pack(const char *service)
{
	AUTO_FREE char *shipped = paths_get(PATHS_SHARE, "apis/%s.api", service),
		       *own = paths_get(PATHS_CONFIG, "apis/%s.api", service);

	return strcmp(service, "**") == 0 || access(shipped, R_OK) == 0 || access(own, R_OK) == 0;
}

int rulebook_check_requests(const struct rule *list, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].kind != RULE_NETWORK && !RULEBOOK_HAS_REQUESTS)
			return err_set(err, -ENOTSUP, "rules of kind %s are not supported yet",
				rule_kind_name(list[i].kind));
		for (size_t k = 0; list[i].kind == RULE_API && k < list[i].n_net; k++)
			if (!has_pack(list[i].net[k].path))
				return err_set(
					err, -ENOENT, "no API pack for '%s'", list[i].net[k].path);
	}
	return 0;
}

static void log_managed(const struct managed *m)
{
	if (m->fault.text[0])
		log_error("all traffic is denied: the managed policy cannot be used: %s",
			m->fault.text);
	else if (m->exists)
		log_info("the managed policy " MANAGED_FILE " has %zu rules", m->rules.n);
}

void rulebook_look_managed(struct rulebook *b)
{
	if (!managed_refresh(&b->managed))
		return;
	log_managed(&b->managed);
	next_revision(b);
	b->n_managed++;
}

void rulebook_refresh(struct rulebook *b)
{
	AUTO_FREE char *path = policy_path();
	AUTO_FREE char *text = NULL;
	struct stat st = {0};
	size_t n = 0;
	int r;

	rulebook_look_managed(b);
	if (stat(path, &st) < 0)
		st = (struct stat){0};
	if (b->fresh && is_seen(b, &st))
		return;
	rules_done(&b->rules);
	b->fault = (struct err){0};
	r = rulebook_text(&text, &n, &b->fault);
	b->exists = r != -ENOENT;
	if (r == 0)
		r = rules_decode(slice_of(text, n), "policy", &b->rules, &b->fault);
	if (r == 0)
		r = rulebook_check_requests(b->rules.rule, b->rules.n, &b->fault);
	if (r < 0)
		rules_done(&b->rules);
	if (r < 0 && r != -ENOENT && !b->fault.text[0])
		(void)err_errno(&b->fault, r, "cannot read %s", path);
	b->seen = st;
	b->fresh = true;
	next_revision(b);
}

int rulebook_need(struct rulebook *b, struct err *err)
{
	rulebook_refresh(b);
	if (!b->exists)
		return err_set(err, -ENOENT,
			"no network policy is set: all traffic is denied and there is nothing to "
			"change");
	if (b->fault.text[0])
		return err_set(err, -EBADMSG,
			"all traffic is denied: cannot read the policy: %.400s", b->fault.text);
	return 0;
}

static void take_hash(struct rulebook *b, struct slice text)
{
	uint8_t sum[AUDIT_HASH_LEN];
	struct audit_hash h = {0};

	audit_hash_init(&h);
	audit_hash_of(&h, text, sum);
	audit_hash_done(&h);
	hex_print(sum, sizeof(sum), b->hash);
}

int rulebook_prepare(struct rulebook *b, struct err *err)
{
	AUTO_FREE char *text = rules_encode(&b->rules, RULE_PRINT_ALL);
	AUTO_FREE char *temp = paths_get(PATHS_STATE, "policy.new.XXXXXX");
	struct slice s = slice_from_str(text);
	AUTO_CLOSE int fd = -1;
	int r;

	if (s.n > RULES_MAX_BYTES)
		return err_set(
			err, -E2BIG, "the policy would be larger than %u bytes", RULES_MAX_BYTES);
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot write %s", temp);
	r = fd_write_all(fd, s.p, s.n);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlink(temp);
		return err_errno(err, r, "cannot write %s", temp);
	}
	take_hash(b, s);
	b->prepared = TAKE(temp);
	return 0;
}

static int sync_state(struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, NULL);
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? err_errno(err, -errno, "cannot sync %s", dir) : 0;
}

/* The file that older versions of sbx can read, before one that they cannot replaces it. */
static void keep_first_form(const char *path)
{
	AUTO_FREE char *kept = paths_get(PATHS_STATE, "policy.1"), *text = NULL;
	AUTO_RULES struct rules old = {0};
	size_t n = 0;

	if (file_load(path, RULES_MAX_BYTES, &text, &n, NULL) < 0 ||
		rules_decode(slice_of(text, n), path, &old, NULL) < 0 || rules_has_requests(&old))
		return;
	(void)unlink(kept);
	if (link(path, kept) < 0)
		log_warn("cannot keep %s: %s", kept, strerror(errno));
}

/* The policy has this form again. */
static void drop_first_form(void)
{
	AUTO_FREE char *kept = paths_get(PATHS_STATE, "policy.1");

	if (unlink(kept) < 0 && errno != ENOENT)
		log_warn("cannot remove %s: %s", kept, strerror(errno));
}

int rulebook_commit(struct rulebook *b, struct err *err)
{
	AUTO_FREE char *path = policy_path();
	int r;

	if (rules_has_requests(&b->rules))
		keep_first_form(path);
	if (rename(b->prepared, path) < 0) {
		r = err_errno(err, -errno, "cannot rename %s", b->prepared);
		rulebook_abandon(b);
		return r;
	}
	if (!rules_has_requests(&b->rules))
		drop_first_form();
	free(TAKE(b->prepared));
	b->exists = true;
	b->fault = (struct err){0};
	b->fresh = stat(path, &b->seen) == 0;
	next_revision(b);
	return sync_state(err);
}

int rulebook_erase(struct rulebook *b, struct err *err)
{
	AUTO_FREE char *path = policy_path();

	rulebook_abandon(b);
	if (unlink(path) < 0)
		return errno == ENOENT ? err_set(err, -ENOENT, "no network policy is set")
				       : err_errno(err, -errno, "cannot remove %s", path);
	rulebook_refresh(b);
	return sync_state(err);
}

int rulebook_import(
	struct rulebook *b, struct slice text, const char *name, uint64_t now_ms, struct err *err)
{
	AUTO_RULES struct rules rules = {0};
	int r = rules_decode(text, name, &rules, err);

	if (r == 0)
		r = rulebook_check_requests(rules.rule, rules.n, err);
	if (r == 0)
		r = rulebook_check_ids(&rules, err);
	if (r < 0)
		return r;
	rulebook_complete(&rules, "import", now_ms);
	rules_done(&b->rules);
	b->rules = rules;
	b->fresh = false;
	rules = (struct rules){0};
	return 0;
}

int rulebook_load_preset(
	struct rulebook *b, const char *preset, bool lock, uint64_t now_ms, struct err *err)
{
	AUTO_FREE char *path =
		paths_get(PATHS_SHARE, "policies/%s.policy", lock ? "locked" : preset);
	AUTO_RULES struct rules rules = {0};
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r = file_load(path, RULES_MAX_BYTES, &text, &n, err);

	if (r == -ENOENT)
		return err_set(err, -EIO, "incomplete installation: %s is missing", path);
	if (r == 0)
		r = rules_decode(slice_of(text, n), path, &rules, err);
	rulebook_refresh(b);
	if (r == 0 && b->fault.text[0])
		r = err_set(
			err, -EBADMSG, "cannot read the existing policy: %.400s", b->fault.text);
	if (r < 0)
		return r;
	r = rulebook_set_preset(&b->rules, &rules, preset, err);
	b->fresh = false;
	if (r == 0)
		rulebook_complete(&b->rules, "local", now_ms);
	return r;
}
