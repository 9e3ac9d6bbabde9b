/* SPDX-License-Identifier: Apache-2.0 */
#include "setup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "src/guest/net/net.h"
#include "src/guest/trust/trust.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static void drop_setup(struct facts *f)
{
	free(f->id);
	free(f->name);
	free(f->workdir);
	env_done(&f->env);
}

void facts_trust(struct facts *f, const struct guest_trust *trust)
{
	env_done(&f->trust);
	env_put_all(&f->trust, trust->env);
	/* Without the file Java would trust no server. */
	f->has_ca = trust->ca_pem[0] && access(TRUST_JKS, F_OK) == 0;
}

static void take_facts(struct facts *f, const struct guest_setup *setup)
{
	drop_setup(f);
	f->id = xstrdup(setup->id);
	f->name = xstrdup(setup->name);
	f->workdir = xstrdup(setup->workdir);
	env_put_all(&f->env, setup->env);
}

int setup_clock(uint64_t wall_ms, struct err *err)
{
	struct timespec t = {
		.tv_sec = (time_t)(wall_ms / 1000), .tv_nsec = (long)(wall_ms % 1000) * 1000000};

	if (clock_settime(CLOCK_REALTIME, &t) < 0)
		return err_errno(err, -errno, "cannot set the guest's clock");
	return 0;
}

void setup_entropy(const uint8_t bytes[GUEST_ENTROPY])
{
	AUTO_CLOSE int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
	/* struct rand_pool_info with its bytes. */
	struct {
		int entropy_count, buf_size;
		uint8_t bytes[GUEST_ENTROPY];
	} pool = {.entropy_count = GUEST_ENTROPY * 8, .buf_size = GUEST_ENTROPY};

	memcpy(pool.bytes, bytes, GUEST_ENTROPY);
	/* An initialized generator would use the bytes only at its next reseed. */
	if (fd < 0 || ioctl(fd, RNDADDENTROPY, &pool) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0)
		log_warn("adding entropy: %s", strerror(errno));
}

static int set_names(const struct guest_setup *s, struct err *err)
{
	AUTO_FREE char *host = xasprintf("%s\n", s->hostname);
	AUTO_FREE char *machine = xasprintf("%s\n", s->machine_id);
	AUTO_FREE char *hosts =
		xasprintf("127.0.0.1\tlocalhost\n127.0.1.1\t%s\n"
			  "::1\tlocalhost ip6-localhost ip6-loopback\n" NETCONF_HOSTS,
			s->hostname);
	int r;

	if (sethostname(s->hostname, strlen(s->hostname)) < 0)
		return err_errno(err, -errno, "cannot set the guest's host name");
	r = file_say("/etc/hostname", host, err);
	if (r == 0)
		r = file_say("/etc/hosts", hosts, err);
	return r < 0 ? r : file_say("/etc/machine-id", machine, err);
}

int setup_user(uid_t uid, gid_t gid, struct err *err)
{
	int r = users_set_agent(uid, gid, err);

	if (r == 0)
		netconf_write();
	return r;
}

int setup_apply(struct facts *f, struct mounts *m, const struct guest_setup *s, struct err *err)
{
	int r;

	setup_entropy(s->entropy);
	take_facts(f, s);
	r = setup_clock(s->wall_ms, err);
	if (r == 0)
		r = set_names(s, err);
	if (r == 0)
		r = setup_user(s->uid, s->gid, err);
	mounts_set_id(m, s->id);
	return r < 0 ? r : mounts_apply(m, &s->mounts, err);
}
