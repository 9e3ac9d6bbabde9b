/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "settings_internal.h"
#include "settings_net.h"

/* The lock is a separate file, because the rename replaces the settings file itself. */
static int lock_settings(struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_CONFIG, NULL);
	AUTO_FREE char *path = paths_get(PATHS_CONFIG, "settings.lock");
	int r = paths_make(dir, err);

	if (r < 0)
		return r;
	r = file_lock(path, SETTINGS_LOCK_MS, err);
	return r == -EBUSY ? err_set(err, r, "another process is changing the settings") : r;
}

static bool is_line_of(struct slice line, const char *key)
{
	size_t n = strlen(key), i = 0;

	while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'))
		i++;
	if (line.n - i < n || memcmp(line.p + i, key, n) != 0)
		return false;
	for (i += n; i < line.n && line.p[i] != '='; i++)
		if (line.p[i] != ' ' && line.p[i] != '\t')
			return false;
	return i < line.n;
}

static void append_change(char **text, size_t *n, struct slice s)
{
	*text = xrealloc(*text, *n + s.n + 1);
	if (s.n)
		memcpy(*text + *n, s.p, s.n);
	*n += s.n;
	(*text)[*n] = '\0';
}

char *settings_rewrite(struct slice old, const char *key, const char *value)
{
	AUTO_FREE char *line = value ? xasprintf("%s = %s", key, value) : NULL;
	char *text = xstrdup("");
	size_t n = 0;

	while (old.n) {
		struct slice s = slice_next_line(&old);

		if (is_line_of(s, key)) {
			if (!line)
				continue;
			s = slice_from_str(line);
			append_change(&text, &n, s);
			free(TAKE(line));
		} else {
			append_change(&text, &n, s);
		}
		append_change(&text, &n, slice_from_str("\n"));
	}
	if (line) {
		append_change(&text, &n, slice_from_str(line));
		append_change(&text, &n, slice_from_str("\n"));
	}
	return text;
}

int settings_change(enum settings_id id, const char *value, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	int r = 0;

	if (id == SETTINGS_NETWORK_EXTRA_CA && value && value[0]) {
		r = settings_check_value(id, value, err);
		fd = r < 0 ? r : settings_net_open_ca(value, err);
		r = fd < 0 ? fd : 0;
	}
	return r < 0 ? r : settings_change_with(id, value, fd, err);
}

int settings_change_with(enum settings_id id, const char *value, int fd, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_CONFIG, "settings.conf");
	AUTO_FREE char *old = NULL, *new = NULL;
	AUTO_SETTINGS struct settings now = {0};
	AUTO_CLOSE int lock = -1;
	size_t n = 0;
	int r;

	r = value ? settings_check_value(id, value, err) : 0;
	if (r < 0)
		return r;
	lock = lock_settings(err);
	if (lock < 0)
		return lock;
	r = file_load(path, SETTINGS_MAX_BYTES, &old, &n, err);
	if (r < 0 && r != -ENOENT)
		return r;
	r = settings_parse(slice_of(old, n), path, &now, err);
	if (r < 0)
		return r;
	new = settings_rewrite(slice_of(old, n), settings_keys[id].name, value);
	if (strlen(new) > SETTINGS_MAX_BYTES)
		return err_set(
			err, -EFBIG, "%s would be larger than %d bytes", path, SETTINGS_MAX_BYTES);
	if (id == SETTINGS_NETWORK_EXTRA_CA)
		r = settings_net_copy_ca(value ? value : "", fd, err);
	if (r < 0)
		return r;
	return file_save(path, slice_from_str(new), err);
}
