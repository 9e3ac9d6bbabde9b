/* SPDX-License-Identifier: Apache-2.0 */
#include "seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include "lib/base/mem.h"

#define MAGIC "SBXVAULT"
#define VERSION 1
#define CIPHER_AES_256_GCM 1
#define SCRYPT_N (1U << 15)

int seal_random(void *p, size_t n)
{
	return getrandom(p, n, 0) == (ssize_t)n ? 0 : -EIO;
}

int seal_key_from_passphrase(struct slice passphrase, const uint8_t salt[SEAL_SALT],
	struct secret *ret_key, struct err *err)
{
	AUTO_SECRET struct secret key = {0};
	int r = secret_init(&key, SEAL_KEY, err);

	if (r < 0)
		return r;
	if (EVP_PBE_scrypt((const char *)passphrase.p, passphrase.n, salt, SEAL_SALT, SCRYPT_N, 8,
		    1, 64U << 20, key.p, SEAL_KEY) != 1)
		return err_set(err, -ENOMEM, "scrypt failed");
	key.n = SEAL_KEY;
	*ret_key = secret_take(&key);
	return 0;
}

/* HMAC-SHA256 over a word, the salt and a number: separates the uses of the key. */
static int mac_seal(const struct secret *key, const char *word, const uint8_t salt[SEAL_SALT],
	uint64_t number, uint8_t ret[32])
{
	uint8_t text[64];
	struct wr wr = wr_init(text, sizeof(text));
	unsigned n = 32;

	wr_cstr(&wr, word);
	wr_bytes(&wr, slice_of(salt, SEAL_SALT));
	wr_u64(&wr, number);
	if (key->n != SEAL_KEY || wr_finish(&wr) < 0 ||
		!HMAC(EVP_sha256(), key->p, SEAL_KEY, text, wr.n, ret, &n))
		return -EIO;
	return 0;
}

static void put_head(struct wr *wr, const struct seal_head *head)
{
	wr_bytes(wr, slice_from_str(MAGIC));
	wr_u16(wr, VERSION);
	wr_u8(wr, CIPHER_AES_256_GCM);
	wr_u8(wr, (uint8_t)head->source);
	wr_u64(wr, head->generation);
	wr_bytes(wr, slice_of(head->salt, sizeof(head->salt)));
	wr_bytes(wr, slice_of(head->check, sizeof(head->check)));
	wr_bytes(wr, slice_of(head->nonce, sizeof(head->nonce)));
	wr_u32(wr, head->n);
}

static void free_cipher(EVP_CIPHER_CTX **ctx)
{
	EVP_CIPHER_CTX_free(*ctx); /* wipes it */
}

static int encrypt_seal(const struct secret *key, const uint8_t *nonce, struct slice head,
	struct slice plain, uint8_t *out)
{
	CLEANUP(free_cipher) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n;

	if (!ctx || EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key->p, nonce) != 1 ||
		EVP_EncryptUpdate(ctx, NULL, &n, head.p, (int)head.n) != 1 ||
		EVP_EncryptUpdate(ctx, out, &n, plain.p, (int)plain.n) != 1 ||
		EVP_EncryptFinal_ex(ctx, out + n, &n) != 1 ||
		EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, SEAL_TAG, out + plain.n) != 1)
		return -EIO;
	return 0;
}

int seal_write(const struct secret *key, const struct seal_head *head, struct slice plain,
	uint8_t **ret, size_t *ret_n, struct err *err)
{
	struct seal_head h = *head;
	size_t n = SEAL_HEAD + plain.n + SEAL_TAG;
	AUTO_FREE uint8_t *file = NULL;
	uint8_t check[32];
	struct wr wr;

	if (plain.n == 0 || n > SEAL_MAX)
		return err_set(err, -EFBIG, "the vault is full");
	if (mac_seal(key, "check", h.salt, 0, check) < 0 ||
		seal_random(h.nonce, sizeof(h.nonce)) < 0)
		return err_set(
			err, -EIO, "cannot seal the credentials: no random numbers or no hash");
	memcpy(h.check, check, sizeof(h.check));
	h.n = (uint32_t)plain.n;
	file = xmalloc(n);
	wr = wr_init(file, n);
	put_head(&wr, &h);
	if (wr.n != SEAL_HEAD ||
		encrypt_seal(key, h.nonce, slice_of(file, SEAL_HEAD), plain, file + SEAL_HEAD) < 0)
		return err_set(err, -EIO, "cannot seal the credentials");
	*ret = TAKE(file);
	*ret_n = n;
	return 0;
}

static void read_bytes(struct rd *rd, void *p, size_t n)
{
	struct slice s = rd_bytes(rd, n);

	if (!rd->bad)
		memcpy(p, s.p, n);
}

int seal_read_head(struct slice file, struct seal_head *ret, struct err *err)
{
	struct rd rd = rd_init(file);
	uint8_t magic[8] = {0}, cipher, source;
	uint16_t version;

	read_bytes(&rd, magic, sizeof(magic));
	version = rd_u16(&rd);
	cipher = rd_u8(&rd);
	source = rd_u8(&rd);
	ret->generation = rd_u64(&rd);
	read_bytes(&rd, ret->salt, sizeof(ret->salt));
	read_bytes(&rd, ret->check, sizeof(ret->check));
	read_bytes(&rd, ret->nonce, sizeof(ret->nonce));
	ret->n = rd_u32(&rd);
	if (rd.bad || memcmp(magic, MAGIC, sizeof(magic)) != 0)
		return err_set(err, -EBADMSG, "not a sealed file of sbx, or truncated");
	if (version != VERSION || cipher != CIPHER_AES_256_GCM)
		return err_set(err, -EBADMSG, "unsupported version %u: expected version %d",
			version, VERSION);
	if (source == VAULT_KEY_NONE || source >= VAULT_N_KEYS || ret->generation == 0)
		return err_set(err, -EBADMSG, "invalid header");
	if (rd.n != (size_t)ret->n + SEAL_TAG || ret->n == 0)
		return err_set(err, -EBADMSG, "truncated, or data was added");
	ret->source = (enum vault_key)source;
	return 0;
}

static int decrypt_seal(const struct secret *key, const struct seal_head *h, struct slice file,
	struct secret *plain)
{
	CLEANUP(free_cipher) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t tag[SEAL_TAG];
	int n;

	memcpy(tag, file.p + SEAL_HEAD + h->n, SEAL_TAG);
	if (!ctx || EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key->p, h->nonce) != 1 ||
		EVP_DecryptUpdate(ctx, NULL, &n, file.p, SEAL_HEAD) != 1 ||
		EVP_DecryptUpdate(ctx, plain->p, &n, file.p + SEAL_HEAD, (int)h->n) != 1 ||
		EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, SEAL_TAG, tag) != 1 ||
		EVP_DecryptFinal_ex(ctx, plain->p + n, &n) != 1)
		return -EBADMSG;
	plain->n = h->n;
	return 0;
}

int seal_open(
	const struct secret *key, struct slice file, struct secret *ret_plain, struct err *err)
{
	AUTO_SECRET struct secret plain = {0};
	struct seal_head h;
	uint8_t check[32];
	int r = file.n > SEAL_MAX ? err_set(err, -EBADMSG, "the file is too large")
				  : seal_read_head(file, &h, err);

	if (r < 0)
		return r;
	if (mac_seal(key, "check", h.salt, 0, check) < 0)
		return err_set(err, -EIO, "cannot compute a hash");
	if (CRYPTO_memcmp(check, h.check, sizeof(h.check)) != 0)
		return err_set(err, -EKEYREJECTED, "the key does not match the sealed file");
	r = secret_init(&plain, h.n, err);
	if (r < 0)
		return r;
	if (decrypt_seal(key, &h, file, &plain) < 0)
		return err_set(err, -EBADMSG, "the file was changed after it was sealed");
	*ret_plain = secret_take(&plain);
	return 0;
}

int seal_anchor_make(
	const struct secret *key, const struct seal_head *head, uint8_t ret[SEAL_ANCHOR])
{
	struct wr wr = wr_init(ret, SEAL_ANCHOR);

	wr_u64(&wr, head->generation);
	return mac_seal(key, "anchor", head->salt, head->generation, ret + 8);
}

int seal_anchor_read(const struct secret *key, const struct seal_head *head, struct slice anchor,
	uint64_t *ret_generation)
{
	struct rd rd = rd_init(anchor);
	uint64_t generation = rd_u64(&rd);
	uint8_t want[32];

	if (anchor.n != SEAL_ANCHOR || mac_seal(key, "anchor", head->salt, generation, want) < 0 ||
		CRYPTO_memcmp(want, anchor.p + 8, sizeof(want)) != 0)
		return -EBADMSG;
	*ret_generation = generation;
	return 0;
}
