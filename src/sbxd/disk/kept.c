/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

static char *file_of(const char *id, const char *name)
{
	return paths_get(PATHS_STATE, "sandboxes/%s/suspend%s%s", id, name[0] ? "/" : "", name);
}

bool kept_is_there(const char *id)
{
	AUTO_FREE char *path = file_of(id, "image.json");

	return access(path, F_OK) == 0;
}

/* "request", "stop" or "idle"; NULL: unknown, as of an earlier version or of a checkpoint. */
static const char *find_reason(const char *id)
{
	static const char *const reasons[] = {"request", "stop", "idle"};
	AUTO_FREE char *path = file_of(id, "by"), *text = NULL;
	size_t n;

	if (file_load_no_link(path, 16, &text, &n, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (strcmp(text, reasons[i]) == 0)
			return reasons[i];
	return NULL;
}

bool kept_is_parked(const char *id)
{
	const char *by = kept_is_there(id) ? find_reason(id) : NULL;

	return by && strcmp(by, "idle") == 0;
}

void kept_describe(json_t *o, const char *id)
{
	const char *by = find_reason(id);
	AUTO_FREE char *path = file_of(id, "memory");
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	json_object_set_new(o, "suspended_at",
		json_integer((json_int_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000));
	json_object_set_new(o, "suspended_bytes", json_integer((json_int_t)st.st_blocks * 512));
	if (by)
		json_object_set_new(o, "suspended_by", json_string(by));
}

bool kept_is_current(const struct spec *spec, const char *accel)
{
	AUTO_FREE char *path = spec_path(spec->id);
	AUTO_SPEC struct spec last = {0};

	return spec_load(path, &last, NULL) == 0 && spec->cpus == last.cpus &&
	       spec->memory == last.memory &&
	       (spec->accel == SPEC_ACCEL_AUTO || strcmp(spec_accel_name(spec->accel), accel) == 0);
}

void kept_fit(struct spec *spec, bool accel)
{
	AUTO_FREE char *path = spec_path(spec->id);
	AUTO_SPEC struct spec last = {0};

	if (!kept_is_there(spec->id) || spec_load(path, &last, NULL) < 0)
		return;
	spec->cpus = last.cpus;
	spec->memory = last.memory;
	if (accel)
		spec->accel = last.accel;
}

/* A symbolic link of a compromised keeper is removed and not followed. image.json first: without it
 * the other files are unused. */
void kept_remove_folder(const char *id, const char *folder)
{
	static const char *const names[] = {"image.json", "ca", "by", "state", "memory",
		"memory.sums", "root.qcow2", "docker.qcow2"};
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/%s", id, folder);
	AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(names); i++)
		(void)unlinkat(dir, names[i], 0);
	if (rmdir(path) < 0 && errno == ENOTDIR)
		(void)unlink(path);
}

void kept_remove_bad(const char *id)
{
	kept_remove_folder(id, "suspend.bad");
}

void kept_remove(const char *id)
{
	kept_remove_folder(id, "suspend");
	kept_remove_folder(id, "suspend.new");
	kept_remove_folder(id, "suspend.used");
	kept_remove_bad(id);
}
