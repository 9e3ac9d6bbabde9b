/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include "lib/base/mem.h"
#include "pack_path.h"

static const char *const risks[PACK_N_RISKS] = {
	[PACK_READ] = "read",
	[PACK_WRITE] = "write",
	[PACK_DANGER] = "danger",
	[PACK_MONEY] = "money",
	[PACK_CREDENTIAL] = "credential",
	[PACK_SEND] = "send",
	[PACK_ADMIN] = "admin",
};

const char *pack_risk_name(enum pack_risk risk)
{
	return risks[risk];
}

void pack_done(struct pack *p)
{
	for (size_t i = 0; i < p->n_rows; i++)
		pack_path_done(&p->row[i].path);
	free(p->row);
	free(p->field);
	free(p->cases);
	free(p->name);
	free(p->text);
	*p = (struct pack){0};
}

/* `*.` in a pattern is one label. */
static bool covers_host(struct slice pattern, struct slice host)
{
	const uint8_t *dot = host.n ? memchr(host.p, '.', host.n) : NULL;
	size_t label = dot ? (size_t)(dot - host.p) : 0;

	if (slice_eq(pattern, host))
		return true;
	return label > 0 && pattern.n > 2 && pattern.p[0] == '*' &&
	       slice_eq(slice_of(pattern.p + 1, pattern.n - 1),
		       slice_of(host.p + label, host.n - label));
}

bool pack_shares_host(const struct pack *a, const struct pack *b, struct slice *ret)
{
	for (size_t i = 0; i < a->n_hosts; i++)
		for (size_t k = 0; k < b->n_hosts; k++) {
			const struct pack_host *x = &a->host[i], *y = &b->host[k];

			*ret = x->name;
			if (x->port == y->port &&
				(covers_host(x->name, y->name) || covers_host(y->name, x->name)))
				return true;
		}
	return false;
}

bool pack_has_host(const struct pack *p, struct slice host, uint16_t port)
{
	for (size_t i = 0; i < p->n_hosts; i++)
		if (p->host[i].port == port && covers_host(p->host[i].name, host))
			return true;
	return false;
}
