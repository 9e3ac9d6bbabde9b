/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's own files; users.c has the functions on their text. */
#include "users.h"

#include <errno.h>
#include "file.h"
#include "lib/base/mem.h"

int users_lookup(const char *spec, struct guest_user *ret, struct err *err)
{
	AUTO_FREE char *passwd = NULL;
	AUTO_FREE char *group = NULL;
	int r = file_read("/etc/passwd", &passwd);

	if (r < 0)
		return err_errno(err, r, "cannot read /etc/passwd in the sandbox");
	r = file_read("/etc/group", &group);
	if (r < 0)
		return err_errno(err, r, "cannot read /etc/group in the sandbox");
	return users_find(passwd, group, spec, ret, err);
}

int users_group_id(const char *name, gid_t *ret_gid)
{
	AUTO_FREE char *group = NULL;
	int r = file_read("/etc/group", &group);

	if (r < 0)
		return r;
	return users_find_group(group, name, ret_gid) ? 0 : -ENOENT;
}

static int edit_files(const char *passwd, const char *group, uid_t uid, gid_t gid, struct err *err)
{
	AUTO_FREE char *new_passwd = users_edit_passwd(passwd, USERS_AGENT, uid, gid);
	AUTO_FREE char *new_group = users_edit_group(group, USERS_AGENT, gid);
	int r;

	if (!new_passwd)
		return err_set(err, -ENOENT, "user 'agent' not found in the template");
	/* The group first: if interrupted, the next start sees the old uid and continues. */
	r = new_group ? file_replace("/etc/group", new_group, err) : 0;
	return r < 0 ? r : file_replace("/etc/passwd", new_passwd, err);
}

int users_set_agent(uid_t uid, gid_t gid, struct err *err)
{
	AUTO_FREE char *passwd = NULL;
	AUTO_FREE char *group = NULL;
	struct guest_user agent;
	int r;

	r = file_read("/etc/passwd", &passwd);
	if (r == 0)
		r = file_read("/etc/group", &group);
	if (r < 0)
		return err_errno(err, r, "cannot read the user files of the sandbox");
	r = users_find(passwd, group, USERS_AGENT, &agent, err);
	if (r < 0 || (agent.uid == uid && agent.gid == gid))
		return r;
	/* The home before the files: an interrupted change is repeated from the start. */
	r = file_chown_tree(agent.home, (uid_t[]){agent.uid, agent.gid}, (uid_t[]){uid, gid});
	if (r < 0 && r != -ENOENT)
		return err_errno(
			err, r, "cannot change the owner of %s to uid %u", agent.home, uid);
	return edit_files(passwd, group, uid, gid, err);
}
