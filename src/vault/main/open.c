/* SPDX-License-Identifier: Apache-2.0 */
/* Gets the key from its configured place, then opens the sealed file. Until the first success or
 * failure no peer is served: connections wait in the backlog. */
#include <errno.h>
#include <stdio.h>
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/secret/secret/keyring.h"
#include "vault.h"

#define STORED (SEAL_KEY + 8) /* in the Secret Service: the key and the last generation */

static void fail_vault(struct vault *v, int r, const struct err *err)
{
	struct err why = {0};

	(void)err_set(&why, r, "%s", err_text(err, r));
	v->why = why;
	v->state = VAULT_FAILED;
	log_error("cannot open the vault: %s", v->why.text);
	peer_serve(v);
}

static void load_safe(struct vault *v, uint64_t floor)
{
	struct err err = {0};
	int r;

	vault_note_memory(v, &v->safe.key);
	r = safe_load(&v->safe, &v->book, floor, &err);
	if (r < 0) {
		secret_done(&v->safe.key);
		fail_vault(v, r, &err);
		return;
	}
	for (size_t i = 0; i < v->book.n; i++)
		vault_note_memory(v, &v->book.list[i]->value);
	v->state = VAULT_READY;
	v->why.text[0] = '\0';
	log_info("%zu credentials, key source: %s, memory: %s", v->book.n,
		vault_key_text(v->safe.head.source),
		v->weakest == SECRET_HIDDEN   ? "hidden"
		: v->weakest == SECRET_LOCKED ? "locked"
					      : "not locked (memory lock limit)");
	open_remember(v);
	peer_serve(v);
	peer_tell_changed(v, "");
}

static int make_key(struct vault *v, struct err *err)
{
	int r = secret_init(&v->safe.key, SEAL_KEY, err);

	if (r == 0)
		r = seal_random(v->safe.key.p, SEAL_KEY);
	if (r == 0)
		v->safe.key.n = SEAL_KEY;
	return r;
}

/* ---- the Secret Service: sbx-vault-keyring ---- */

static int ask_keyring(struct vault *v, enum job_kind kind, enum keyring_op op, uint64_t generation,
	struct err *err)
{
	static const struct run run = {.kind = RUN_KEYRING, .timeout_ms = KEY_TIMEOUT_MS};
	struct keyring_ask ask = {.op = op};
	AUTO_SECRET struct secret stored = {0}, message = {0};
	struct wr wr;
	int r = secret_init(&message, KEYRING_MAX, err);

	if (r == 0)
		r = secret_init(&stored, STORED, err);
	if (r < 0)
		return r;
	hex_print(v->safe.head.salt, SEAL_SALT, ask.name);
	if (op == KEYRING_PUT) {
		wr = wr_init(stored.p, STORED);
		wr_bytes(&wr, secret_slice(&v->safe.key));
		wr_u64(&wr, generation);
		ask.value = slice_of(stored.p, wr.n);
	}
	wr = wr_init(message.p, KEYRING_MAX);
	r = keyring_put_ask(&wr, &ask);
	return r < 0 ? r : job_start(v, kind, &run, slice_of(message.p, wr.n), 0, err);
}

void open_remember(struct vault *v)
{
	struct err err = {0};
	int r;

	if (v->safe.head.source != VAULT_KEY_SECRET_SERVICE || v->state != VAULT_READY)
		return;
	for (size_t i = 0; i < MAX_JOBS; i++) {
		if (v->jobs[i].kind == JOB_FLOOR) {
			v->is_floor_due = true;
			return;
		}
	}
	v->is_floor_due = false;
	r = ask_keyring(v, JOB_FLOOR, KEYRING_PUT, v->safe.head.generation, &err);
	if (r < 0)
		log_warn("cannot send the generation to the Secret Service: %s", err_text(&err, r));
}

/* Returns 0 with an answer, or the error. */
static int read_keyring(const struct job *j, int how, struct keyring_answer *ret, struct err *err)
{
	if (how < 0)
		return err_errno(err, how, "cannot query the Secret Service");
	if (keyring_get_answer(secret_slice(&j->out), ret) < 0)
		return err_set(err, -EPROTO, "invalid response from the Secret Service");
	if (ret->status != KEYRING_OK)
		return err_set(err,
			ret->status == KEYRING_NOT_FOUND ? -ENOKEY
			: ret->status == KEYRING_LOCKED	 ? -EACCES
							 : -EIO,
			"Secret Service: %s", ret->text);
	return 0;
}

static int take_stored(
	struct vault *v, const struct keyring_answer *a, uint64_t *ret_floor, struct err *err)
{
	struct rd rd = rd_init(a->value);
	struct slice key = rd_bytes(&rd, SEAL_KEY);

	*ret_floor = rd_u64(&rd);
	if (rd_finish(&rd) < 0)
		return err_set(err, -EBADMSG, "the item in the Secret Service is not an sbx key");
	return secret_copy(&v->safe.key, key, err);
}

static int ask_creds(struct vault *v, struct err *err)
{
	struct run run = {.kind = RUN_ENCRYPT, .timeout_ms = KEY_TIMEOUT_MS};
	AUTO_FREE char *blob = NULL;
	size_t n = 0;
	int r;

	if (v->safe.is_new)
		return job_start(v, JOB_SEAL_CREDS, &run, secret_slice(&v->safe.key), 0, err);
	r = safe_creds_read(&v->safe, &blob, &n, err);
	if (r == -ENOENT)
		return err_set(err, -ENOKEY, "the sealed key %s/%s does not exist", v->safe.dir,
			SAFE_CREDS);
	if (r < 0)
		return r;
	run.kind = RUN_DECRYPT;
	return job_start(v, JOB_UNSEAL_CREDS, &run, slice_of(blob, n), 0, err);
}

static int get_key(struct vault *v, struct err *err)
{
	int r;

	switch (v->safe.head.source) {
	case VAULT_KEY_SECRET_SERVICE:
		if (!v->safe.is_new)
			return ask_keyring(v, JOB_KEY_GET, KEYRING_GET, 0, err);
		r = make_key(v, err);
		return r < 0 ? r : ask_keyring(v, JOB_KEY_PUT, KEYRING_PUT, 0, err);
	case VAULT_KEY_SYSTEMD_CREDS:
		r = v->safe.is_new ? make_key(v, err) : 0;
		return r < 0 ? r : ask_creds(v, err);
	case VAULT_KEY_PASSPHRASE:
		(void)err_set(&v->why, 0, "the vault is locked: passphrase required");
		v->state = VAULT_LOCKED;
		peer_serve(v);
		return 0;
	default:
		r = safe_key_from_file(&v->safe, err);
		if (r == 0)
			load_safe(v, 0);
		return r;
	}
}

static void try_source(struct vault *v)
{
	struct err err = {0};
	int r;

	v->state = VAULT_OPENING;
	v->tried_ms = clock_mono_ms();
	r = get_key(v, &err);
	if (r < 0)
		fail_vault(v, r, &err);
}

/* A new vault without a fixed key source tries the next one. */
static void source_failed(struct vault *v, int r, const struct err *err)
{
	secret_done(&v->safe.key);
	if (!v->safe.is_new || v->wanted != VAULT_KEY_NONE) {
		fail_vault(v, r, err);
		return;
	}
	log_info("key source not used: %s", err_text(err, r));
	v->safe.head.source = v->safe.head.source == VAULT_KEY_SECRET_SERVICE
				      ? VAULT_KEY_SYSTEMD_CREDS
				      : VAULT_KEY_FILE;
	try_source(v);
}

void open_on_job(struct vault *v, struct job *j, int how)
{
	struct keyring_answer answer;
	struct err err = {0};
	uint64_t floor = 0;
	int r = 0;

	if (j->kind == JOB_FLOOR) {
		j->kind = JOB_KEY_PUT; /* no longer awaited */
		r = read_keyring(j, how, &answer, &err);
		if (r < 0)
			log_warn("cannot store the generation: %s", err.text);
		if (v->is_floor_due)
			open_remember(v);
		return;
	}
	if (v->state != VAULT_OPENING)
		return;
	if (j->kind == JOB_KEY_GET || j->kind == JOB_KEY_PUT)
		r = read_keyring(j, how, &answer, &err);
	else if (how != 0)
		r = err_set(&err, -EIO, "systemd-creds is not available to this user");
	if (r == 0 && j->kind == JOB_KEY_GET)
		r = take_stored(v, &answer, &floor, &err);
	if (r == 0 && j->kind == JOB_SEAL_CREDS)
		r = safe_creds_write(&v->safe, secret_slice(&j->out), &err);
	if (r == 0 && j->kind == JOB_UNSEAL_CREDS)
		r = j->out.n == SEAL_KEY ? secret_copy(&v->safe.key, secret_slice(&j->out), &err)
					 : err_set(&err, -EBADMSG, "the sealed key is corrupt");
	if (r < 0)
		source_failed(v, r, &err);
	else
		load_safe(v, floor);
}

int open_with_passphrase(struct vault *v, struct secret *passphrase, struct err *err)
{
	int r;

	if (v->state != VAULT_LOCKED)
		return err_set(err, -EINVAL, "the vault is not waiting for a passphrase");
	if (passphrase->n == 0 || passphrase->n > 1024)
		return err_set(err, -EINVAL, "invalid passphrase length: expected 1 to 1024 bytes");
	r = seal_key_from_passphrase(
		secret_slice(passphrase), v->safe.head.salt, &v->safe.key, err);
	if (r < 0)
		return r;
	load_safe(v, 0);
	if (v->state == VAULT_READY)
		return 0;
	/* a wrong one may be followed by the right one */
	r = err_set(err, -EKEYREJECTED, "%s", v->why.text);
	v->state = VAULT_LOCKED;
	return r;
}

void open_again(struct vault *v)
{
	if (v->state == VAULT_FAILED && v->has_safe && clock_mono_ms() - v->tried_ms >= REOPEN_MS)
		try_source(v);
}

void open_start(struct vault *v, const char *dir, bool accept_old)
{
	struct err err = {0};
	int r = safe_look(&v->safe, dir, accept_old, &err);

	if (r == -EBUSY) {
		log_error("%s", err.text);
		v->done = true;
		v->status = 1;
		return;
	}
	if (r < 0) {
		fail_vault(v, r, &err);
		return;
	}
	v->has_safe = true;
	if (v->safe.is_new)
		v->safe.head.source =
			v->wanted == VAULT_KEY_NONE ? VAULT_KEY_SECRET_SERVICE : v->wanted;
	try_source(v);
}
