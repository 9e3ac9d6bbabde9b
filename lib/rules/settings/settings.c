/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "detach_keys.h"
#include "settings_internal.h"
#include "settings_net.h"

/* As lib/rules/spec has it for `template`. */
static int check_template(const char *value, struct err *err)
{
	size_t n = strlen(value);

	if (n > 63 ||
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") !=
			n)
		return err_set(err, -EINVAL, "invalid template name '%.80s'", value);
	return 0;
}

const struct settings_key settings_keys[SETTINGS_N] = {
	[SETTINGS_VM_ACCEL] = {.name = "vm.accel",
		.type = SETTINGS_CHOICE,
		.standard = "auto",
		.choices = "auto|kvm|tcg",
		.help = "accelerator: kvm, tcg (slow, not an isolation boundary) or auto (kvm "
			"if it works, else an error)"},
	[SETTINGS_VM_CPUS] = {.name = "vm.cpus",
		.type = SETTINGS_NUMBER,
		.standard = "0",
		.max = 256,
		.help = "CPUs of a new sandbox; 0: the number of host CPUs"},
	[SETTINGS_VM_MEMORY] = {.name = "vm.memory",
		.type = SETTINGS_SIZE,
		.standard = "0",
		.min = 256ull << 20,
		.max = 4ull << 40,
		.help = "memory of a new sandbox, for example 2g; 0: half of the host's memory, "
			"512m to 4g"},
	[SETTINGS_VM_MEMORY_BACKING] = {.name = "vm.memory-backing",
		.type = SETTINGS_CHOICE,
		.standard = "file",
		.choices = "file|memfd",
		.help = "where the memory of a sandbox is: file (a file in the state directory, "
			"so that the host can write unused memory to the disk) or memfd (memory "
			"of the host); applies at the next start"},
	[SETTINGS_VM_DISK] = {.name = "vm.disk",
		.type = SETTINGS_SIZE,
		.standard = "0",
		.min = 1ull << 30,
		.max = 1ull << 40,
		.help = "root disk size of a new sandbox, for example 40g, at least that of its "
			"template; 0: the size of the template's disk"},
	[SETTINGS_VM_IDLE_TIMEOUT] = {.name = "vm.idle-timeout",
		.type = SETTINGS_SECONDS,
		.standard = "0",
		.min = 1,
		.max = 365ull * 24 * 3600,
		.help = "suspend a new sandbox after this time without activity, for example "
			"30m; 0 disables it"},
	[SETTINGS_DISK_RESERVE] = {.name = "disk.reserve",
		.type = SETTINGS_SIZE,
		.standard = "256m",
		.min = 1ull << 20,
		.max = 1ull << 50,
		.help = "free host disk space below which a writing sandbox is paused, for "
			"example 1g, at most a tenth of the file system; 0 disables it"},
	[SETTINGS_STOP_TIMEOUT] = {.name = "stop.timeout",
		.type = SETTINGS_SECONDS,
		.standard = "10s",
		.max = 3600,
		.help = "time to wait for a clean shutdown before the sandbox is killed, for "
			"example 30s"},
	[SETTINGS_STOP_SUSPEND] = {.name = "stop.suspend",
		.type = SETTINGS_CHOICE,
		.standard = "true",
		.choices = "true|false",
		.help = "whether sbx stop suspends an idle sandbox whose memory is in a file, so "
			"that it resumes faster than it boots; its memory stays on the disk"},
	[SETTINGS_SHARE_SPECIAL_FILES] = {.name = "share.special-files",
		.type = SETTINGS_CHOICE,
		.standard = "false",
		.choices = "true|false",
		.help = "whether programs in a sandbox can create FIFOs and sockets in a "
			"workspace; applies at the next start"},
	[SETTINGS_SHARE_GUARD] = {.name = "share.guard",
		.type = SETTINGS_CHOICE,
		.standard = "default",
		.choices = "default|strict|report|off",
		.help = "guard of a new sandbox: which files that programs of the host run a "
			"sandbox can write in a workspace"},
	[SETTINGS_STAGE_KEEP] = {.name = "stage.keep",
		.type = SETTINGS_NUMBER,
		.standard = "20",
		.max = 100000,
		.help = "number of applies to a staged workspace that sbx undo can revert; old "
			"versions of earlier ones are removed; 0: no limit"},
	[SETTINGS_CHECKPOINT_EVERY] = {.name = "checkpoint.every",
		.type = SETTINGS_SECONDS,
		.standard = "0",
		.min = 1,
		.max = 365ull * 24 * 3600,
		.help = "time between automatic checkpoints of a running sandbox that has written "
			"since the last one, for example 1h; 0 disables them"},
	[SETTINGS_CHECKPOINT_KEEP] = {.name = "checkpoint.keep",
		.type = SETTINGS_NUMBER,
		.standard = "5",
		.max = 13,
		.help = "number of automatic checkpoints of a sandbox; older ones are removed; 0: "
			"no limit"},
	[SETTINGS_CHECKPOINT_APPLY] = {.name = "checkpoint.before-apply",
		.type = SETTINGS_CHOICE,
		.standard = "false",
		.choices = "true|false",
		.help = "whether sbx apply creates a checkpoint of a running sandbox before it "
			"changes the workspace"},
	[SETTINGS_NETWORK_CONNECT_TO] = {.name = "network.connect-to",
		.type = SETTINGS_TEXT,
		.standard = "",
		.check = settings_net_check_pins,
		.help = "addresses to use instead of DNS: comma-separated HOST:PORT=ADDR:PORT; "
			"the policy still applies to the host name"},
	[SETTINGS_NETWORK_EXTRA_CA] = {.name = "network.extra-ca",
		.type = SETTINGS_TEXT,
		.standard = "",
		.check = settings_net_check_ca,
		.help = "PEM file of additional certificate authorities; copied when it is set"},
	[SETTINGS_NETWORK_PROXY] = {.name = "network.proxy",
		.type = SETTINGS_TEXT,
		.standard = "",
		.check = settings_net_check_proxy,
		.help = "upstream proxy: http://[USER@]HOST:PORT or socks5://[USER@]HOST:PORT; its "
			"password: sbx secret set --proxy"},
	[SETTINGS_NETWORK_NO_PROXY] = {.name = "network.no-proxy",
		.type = SETTINGS_TEXT,
		.standard = "",
		.check = settings_net_check_no_proxy,
		.help = "targets to connect to without the proxy: comma-separated HOST, .DOMAIN "
			"(the names below it), ADDRESS or NETWORK, each with an optional :PORT"},
	[SETTINGS_AUDIT_MAX_SIZE] = {.name = "audit.max-size",
		.type = SETTINGS_SIZE,
		.standard = "1g",
		.min = 1ull << 20,
		.max = 1ull << 50,
		.help = "maximum size of the audit log of a sandbox, for example 2g; at this "
			"size its traffic is denied; 0: no limit"},
	[SETTINGS_AUDIT_KEEP] = {.name = "audit.keep",
		.type = SETTINGS_SECONDS,
		.standard = "0",
		.min = 3600,
		.max = 100ull * 365 * 24 * 3600,
		.help = "time to keep audit records, for example 90d; older ones are removed "
			"automatically, as by sbx audit prune; 0: no limit"},
	[SETTINGS_AUDIT_KEEP_SIZE] = {.name = "audit.keep-size",
		.type = SETTINGS_SIZE,
		.standard = "0",
		.min = 1ull << 20,
		.max = 1ull << 50,
		.help = "size to keep of each audit log, for example 500m; the oldest records "
			"are removed automatically; 0: no limit"},
	[SETTINGS_CREDENTIALS_OAUTH] = {.name = "credentials.oauth",
		.type = SETTINGS_CHOICE,
		.standard = "true",
		.choices = "true|false",
		.help = "whether the tokens of a login inside a sandbox are stored on the host; "
			"false: in the sandbox"},
	[SETTINGS_CREDENTIALS_INTERCEPT] = {.name = "credentials.intercept",
		.type = SETTINGS_CHOICE,
		.standard = "false",
		.choices = "true|false",
		.help = "whether the hosts of every service are intercepted even without a "
			"credential, so that keys inside a sandbox are denied; false: model APIs only"},
	[SETTINGS_VAULT_KEY] = {.name = "vault.key",
		.type = SETTINGS_CHOICE,
		.standard = "auto",
		.choices = "auto|secret-service|systemd-creds|passphrase|file",
		.help = "where the key of the credentials goes when the first one is set: the "
			"desktop's Secret Service, systemd-creds, a passphrase (sbx secret "
			"unlock), "
			"a file that only you can read, or auto, the first of them that works"},
	[SETTINGS_AGENTS_ALLOW_HOSTS] = {.name = "agents.allow-hosts",
		.type = SETTINGS_CHOICE,
		.standard = "ask",
		.choices = "ask|always|never",
		.help = "whether the hosts that an agent needs are allowed for its new sandbox: "
			"ask on a terminal, always, or never; deny rules still apply"},
	[SETTINGS_ASK_MAX_OPEN] = {.name = "ask.max-open",
		.type = SETTINGS_NUMBER,
		.standard = "5",
		.max = 32,
		.help = "number of requests of a sandbox that can wait for approval at the same "
			"time; others are refused without a prompt"},
	[SETTINGS_ASK_MAX_HOUR] = {.name = "ask.max-hour",
		.type = SETTINGS_NUMBER,
		.standard = "20",
		.max = 240,
		.help = "number of approvals that a sandbox can request in an hour; others are "
			"refused without a prompt"},
	[SETTINGS_ASK_BELL] = {.name = "ask.bell",
		.type = SETTINGS_CHOICE,
		.standard = "true",
		.choices = "true|false",
		.help = "whether an attached terminal shows in its title, with one bell, that a "
			"request of its sandbox waits for approval"},
	[SETTINGS_ASK_NOTIFY] = {.name = "ask.notify",
		.type = SETTINGS_CHOICE,
		.standard = "true",
		.choices = "true|false",
		.help = "whether a desktop notification shows that a request waits for approval, "
			"with an action that refuses it"},
	[SETTINGS_GIT_IDENTITY] = {.name = "git.identity",
		.type = SETTINGS_CHOICE,
		.standard = "ask",
		.choices = "ask|yes|no",
		.help = "whether a new sandbox gets user.name and user.email of your git "
			"configuration: ask once on a terminal, yes, or no"},
	[SETTINGS_DETACH_KEYS] = {.name = "session.detach-keys",
		.type = SETTINGS_TEXT,
		.standard = DETACH_STANDARD,
		.check = detach_keys_check,
		.help = "keys that detach from a session, for example ctrl-p,ctrl-q; none "
			"disables them"},
	[SETTINGS_WARM_IMAGES] = {.name = "warm.images",
		.type = SETTINGS_CHOICE,
		.standard = "true",
		.choices = "true|false",
		.help = "whether a snapshot is created in the background after a template was "
			"booted with new values of CPUs and memory; later starts restore it instead of booting"},
	[SETTINGS_DAEMON_SANDBOXES] = {.name = "daemon.max-sandboxes",
		.type = SETTINGS_NUMBER,
		.standard = "1024",
		.min = 1,
		.max = 4096,
		.help = "maximum number of running sandboxes, including the VMs of the "
			"pool; 0: 4096"},
	[SETTINGS_DAEMON_STARTS] = {.name = "daemon.max-starts",
		.type = SETTINGS_NUMBER,
		.standard = "0",
		.max = 4096,
		.help = "maximum number of sandboxes that start at the same time; others wait in "
			"the order of their starts; 0: two for each CPU"},
	[SETTINGS_DAEMON_CONNECTIONS] = {.name = "daemon.max-connections",
		.type = SETTINGS_NUMBER,
		.standard = "256",
		.min = 16,
		.max = 4096,
		.help = "maximum number of connections to sbxd: one for each running sbx command; "
			"0: 4096"},
	[SETTINGS_POOL_SIZE] = {.name = "pool.size",
		.type = SETTINGS_NUMBER,
		.standard = "0",
		.max = 256,
		.help = "number of started VMs that wait for a new sandbox with vm.cpus and "
			"vm.memory; 0 disables it"},
	[SETTINGS_POOL_TEMPLATE] = {.name = "pool.template",
		.type = SETTINGS_TEXT,
		.standard = "",
		.check = check_template,
		.help = "template of the waiting VMs (pool.size); empty: debian"},
};

static void list_keys(char *buf, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < SETTINGS_N && n < size; i++)
		n += (size_t)snprintf(
			buf + n, size - n, "%s%s", i ? ", " : "", settings_keys[i].name);
}

int settings_find(const char *name, enum settings_id *ret_id, struct err *err)
{
	char known[512];

	for (size_t i = 0; i < SETTINGS_N; i++) {
		if (strcmp(settings_keys[i].name, name) == 0) {
			*ret_id = (enum settings_id)i;
			return 0;
		}
	}
	list_keys(known, sizeof(known));
	return err_set(err, -ENOENT, "unknown setting '%.60s': expected one of %s", name, known);
}

static bool is_choice(const char *choices, const char *value)
{
	size_t n = strlen(value);

	while (*choices) {
		size_t k = strcspn(choices, "|");

		if (k == n && strncmp(choices, value, n) == 0)
			return true;
		choices += k + (choices[k] == '|');
	}
	return false;
}

/* The number of a value; 0 is "not set" and always valid. */
static int to_number(const struct settings_key *key, const char *value, uint64_t *ret)
{
	uint64_t v = 0;
	int r = -EINVAL;

	if (key->type == SETTINGS_NUMBER)
		r = str_to_u64(value, 0, UINT64_MAX, &v);
	else if (key->type == SETTINGS_SIZE)
		r = str_to_size(value, &v);
	else if (key->type == SETTINGS_SECONDS && strcmp(value, "0") != 0)
		r = str_to_seconds(value, &v);
	else if (key->type == SETTINGS_SECONDS)
		r = 0;
	if (r < 0)
		return r;
	if (v != 0 && (v < key->min || v > key->max))
		return -ERANGE;
	*ret = v;
	return 0;
}

int settings_check_value(enum settings_id id, const char *value, struct err *err)
{
	static const char *const kinds[] = {
		[SETTINGS_NUMBER] = "a whole number",
		[SETTINGS_SIZE] = "a size such as 512m or 4g",
		[SETTINGS_SECONDS] = "a duration such as 30s or 5m",
	};
	const struct settings_key *key = &settings_keys[id];
	uint64_t v;
	int r;

	if (key->type == SETTINGS_TEXT)
		return key->check(value, err);
	if (key->type == SETTINGS_CHOICE)
		return is_choice(key->choices, value)
			       ? 0
			       : err_set(err, -EINVAL, "%s must be one of %s, not '%.60s'",
					 key->name, key->choices, value);
	r = to_number(key, value, &v);
	if (r == -ERANGE)
		return err_set(err, r, "%s cannot be '%.60s': it must be 0 or %llu to %llu",
			key->name, value, (unsigned long long)key->min,
			(unsigned long long)key->max);
	if (r < 0)
		return err_set(
			err, r, "%s must be %s, not '%.60s'", key->name, kinds[key->type], value);
	return 0;
}

/* A file that was edited elsewhere may end its lines with CR LF. */
static struct slice without_cr(struct slice line)
{
	return line.n && line.p[line.n - 1] == '\r' ? slice_of(line.p, line.n - 1) : line;
}

/* 1 with a key and a value, 0 when it is empty or a comment. */
static int split_line(struct slice line, char *key, char *value, size_t size, struct err *err)
{
	struct slice s = slice_trim(without_cr(line));
	const uint8_t *eq;

	if (line.n >= SETTINGS_MAX_LINE)
		return err_set(err, -E2BIG, "longer than %d bytes", SETTINGS_MAX_LINE - 1);
	if (line.n && memchr(line.p, 0, line.n))
		return err_set(err, -EINVAL, "contains a NUL byte");
	if (s.n == 0 || s.p[0] == '#')
		return 0;
	eq = memchr(s.p, '=', s.n);
	if (!eq)
		return err_set(err, -EINVAL, "expected 'key = value'");
	if (slice_to_cstr(slice_trim(slice_of(s.p, (size_t)(eq - s.p))), key, size) < 0 ||
		slice_to_cstr(slice_trim(slice_of(eq + 1, s.n - (size_t)(eq - s.p) - 1)), value,
			size) < 0)
		return err_set(err, -EINVAL, "too long");
	return 1;
}

static int take_line(struct slice line, struct settings *s, struct err *err)
{
	char key[SETTINGS_MAX_LINE], value[SETTINGS_MAX_LINE];
	enum settings_id id;
	int r;

	r = split_line(line, key, value, sizeof(key), err);
	if (r <= 0)
		return r;
	r = settings_find(key, &id, err);
	if (r < 0)
		return r;
	r = settings_check_value(id, value, err);
	if (r < 0)
		return r;
	if (s->value[id])
		return err_set(err, -EINVAL, "%s is set twice", key);
	s->value[id] = xstrdup(value);
	return 0;
}

int settings_parse(struct slice text, const char *name, struct settings *ret, struct err *err)
{
	unsigned number = 0;
	int r;

	if (text.n > SETTINGS_MAX_BYTES)
		return err_set(err, -E2BIG, "%s is larger than %d bytes", name, SETTINGS_MAX_BYTES);
	while (text.n) {
		number++;
		r = take_line(slice_next_line(&text), ret, err);
		if (r < 0) {
			settings_done(ret);
			return err_wrap(err, r, "%s line %u", name, number);
		}
	}
	return 0;
}

int settings_load(struct settings *ret, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_CONFIG, "settings.conf");
	AUTO_FREE char *text = NULL;
	size_t n;
	int r;

	r = file_load(path, SETTINGS_MAX_BYTES, &text, &n, err);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : settings_parse(slice_of(text, n), path, ret, err);
}

void settings_done(struct settings *s)
{
	for (size_t i = 0; i < SETTINGS_N; i++)
		free(s->value[i]);
	*s = (struct settings){0};
}

bool settings_is_set(const struct settings *s, enum settings_id id)
{
	return s->value[id] != NULL;
}

const char *settings_get(const struct settings *s, enum settings_id id)
{
	return s->value[id] ? s->value[id] : settings_keys[id].standard;
}

uint64_t settings_get_u64(const struct settings *s, enum settings_id id)
{
	uint64_t v = 0;
	int r = to_number(&settings_keys[id], settings_get(s, id), &v);

	/* Every value was checked when it was read; a CHOICE or TEXT has no number. */
	assert(r == 0);
	return v;
}

int settings_accel(const struct settings *s, const char **ret, struct err *err)
{
	const char *env = getenv("SBX_ACCEL");
	int r;

	if (!env || !env[0]) {
		*ret = settings_get(s, SETTINGS_VM_ACCEL);
		return 0;
	}
	r = settings_check_value(SETTINGS_VM_ACCEL, env, NULL);
	if (r < 0)
		return err_set(err, r, "SBX_ACCEL must be one of %s, not '%.60s'",
			settings_keys[SETTINGS_VM_ACCEL].choices, env);
	*ret = env;
	return 0;
}
