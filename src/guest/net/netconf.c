/* SPDX-License-Identifier: Apache-2.0 */
#include "netconf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "opener.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define GATEWAY_NAME "gateway.docker.internal"
#define PROXY_PORT "3128"
#define PROXY "http://" GATEWAY_NAME ":" PROXY_PORT
#define NO_PROXY "localhost,127.0.0.1,::1,gateway.docker.internal,gateway.sbx.internal"
#define JAVA                                                                   \
	"-Dhttp.proxyHost=" GATEWAY_NAME " -Dhttp.proxyPort=" PROXY_PORT       \
	" -Dhttps.proxyHost=" GATEWAY_NAME " -Dhttps.proxyPort=" PROXY_PORT    \
	" -Dhttp.nonProxyHosts=localhost|127.*|[::1]|gateway.docker.internal|" \
	"gateway.sbx.internal"

/* The file of image/customize, which is not a setting of the user. */
#define RESOLV_OF_TEMPLATE "nameserver 127.0.0.1\n"
#define RESOLV "nameserver " NET_GATEWAY "\n"

static const char *const variables[] = {
	"http_proxy=" PROXY,
	"https_proxy=" PROXY,
	"HTTP_PROXY=" PROXY,
	"HTTPS_PROXY=" PROXY,
	"no_proxy=" NO_PROXY,
	"NO_PROXY=" NO_PROXY,
	"JAVA_TOOL_OPTIONS=" JAVA,
	"NODE_USE_ENV_PROXY=1",
	"BROWSER=" OPENER_BIN,
};

/* The pools are Docker's own, and one for networks created with --ipv6. */
/* For dockerd's own requests, such as a pull. Containers and builds get no proxy variables: their
 * connections are redirected, and with a proxy two services of one network could not reach each
 * other. */
const char netconf_daemon_json[] =
	"{\n"
	"	\"dns\": [\"" NET_GATEWAY "\"],\n"
	"	\"ipv6\": true,\n"
	"	\"fixed-cidr-v6\": \"fd5b:7862:19d3:2::/64\",\n"
	"	\"default-address-pools\": [\n"
	"		{\"base\": \"172.17.0.0/16\", \"size\": 16},\n"
	"		{\"base\": \"172.18.0.0/15\", \"size\": 16},\n"
	"		{\"base\": \"172.20.0.0/14\", \"size\": 16},\n"
	"		{\"base\": \"172.24.0.0/13\", \"size\": 16},\n"
	"		{\"base\": \"192.168.0.0/16\", \"size\": 20},\n"
	"		{\"base\": \"fd5b:7862:19d3:100::/56\", \"size\": 64}\n"
	"	],\n"
	"	\"proxies\": {\n"
	"		\"http-proxy\": \"" PROXY "\",\n"
	"		\"https-proxy\": \"" PROXY "\",\n"
	"		\"no-proxy\": \"" NO_PROXY "\"\n"
	"	}\n"
	"}\n";

static const char sudo_keep[] = "# root uses the same proxy settings\n"
				"Defaults env_keep += \"JAVA_TOOL_OPTIONS NODE_USE_ENV_PROXY "
				"PIP_BREAK_SYSTEM_PACKAGES\"\n";

void netconf_env(struct env *e)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		env_put(e, variables[i]);
}

const char *netconf_resolv(const char *old)
{
	return !old || !strcmp(old, RESOLV_OF_TEMPLATE) ? RESOLV : NULL;
}

static void write_resolv(void)
{
	AUTO_FREE char *old = NULL;
	const char *new;
	struct err err;

	if (file_read("/etc/resolv.conf", &old) < 0)
		old = NULL;
	new = netconf_resolv(old);
	if (new &&file_replace("/etc/resolv.conf", new, &err) < 0)
		log_warn("%s", err.text);
}

/* Only if it does not exist. Also creates the parent directory, for the same owner. */
static int write_new(
	const char *folder, const char *name, const char *text, mode_t mode, uid_t uid, gid_t gid)
{
	bool made = mkdir(folder, 0755) == 0;
	AUTO_CLOSE int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int fd = -1;

	if (dir < 0 || (made && fchown(dir, uid, gid) < 0))
		return -errno;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

static void give_netconf(
	const char *folder, const char *name, const char *text, mode_t mode, uid_t uid, gid_t gid)
{
	int r = write_new(folder, name, text, mode, uid, gid);

	if (r < 0)
		log_warn("cannot write %s/%s: %s", folder, name, strerror(-r));
}

void netconf_write(void)
{
	write_resolv();
	give_netconf("/etc/docker", "daemon.json", netconf_daemon_json, 0644, 0, 0);
	give_netconf("/etc/sudoers.d", "sbx-network", sudo_keep, 0440, 0, 0);
}
