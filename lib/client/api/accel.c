/* SPDX-License-Identifier: Apache-2.0 */
#include "accel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fs/fd.h"
#include "lib/rules/settings/settings.h"
#include "api.h"

#define ACCEPT_HINT "sbx settings set vm.accel tcg"

/* 0, or why not. */
static int try_kvm(void)
{
	AUTO_CLOSE int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	return fd >= 0 ? 0 : -errno;
}

const char *accel_open_command(void)
{
	struct stat st;

	/* Being in its group helps only where that is kvm and may open it. */
	if (stat("/dev/kvm", &st) == 0 && ((st.st_mode & 0060) != 0060 || st.st_gid == 0))
		return "sudo chgrp kvm /dev/kvm && sudo chmod 660 /dev/kvm && "
		       "sudo usermod -aG kvm $USER && newgrp kvm";
	return "sudo usermod -aG kvm $USER && newgrp kvm";
}

/* There, but not for this user: one command away from being right, so emulation is not offered. */
static int say_not_yours(struct problem *p)
{
	(void)err_set(&p->err, -EACCES,
		"cannot open /dev/kvm: permission denied. Software emulation (" ACCEPT_HINT
		") is slow and not an isolation boundary");
	return problem_hint(p, -EACCES, "%s", accel_open_command());
}

static bool ask_accel(int why)
{
	ui_note("KVM is not available (/dev/kvm: %s). KVM is the isolation boundary of a sandbox.",
		strerror(-why));
	ui_note("To use KVM, enable virtualization in the firmware, or nested virtualization in "
		"the hypervisor.");
	ui_note("Without KVM, sandboxes can run in software emulation (TCG), which is slow and "
		"not an isolation boundary.");
	ui_note("The jail around QEMU is then the only isolation layer. Do not run code that "
		"you do not trust.");
	return ui_confirm("Use software emulation from now on (" ACCEPT_HINT ")?");
}

int accel_require(json_t *body, struct problem *p)
{
	int why, r;

	if (strcmp(api_str(body, "accel"), "tcg") == 0)
		return 0;
	why = try_kvm();
	if (why == 0)
		return 0;
	if (why == -EACCES || why == -EPERM)
		return say_not_yours(p);
	if (strcmp(api_str(body, "accel"), "kvm") != 0 && ui_can_ask() && ask_accel(why)) {
		r = settings_change(SETTINGS_VM_ACCEL, "tcg", &p->err);
		if (r == 0)
			(void)json_object_set_new(body, "accel", json_string("tcg"));
		return r;
	}
	(void)err_set(&p->err, -ENOTSUP,
		"KVM is not available (/dev/kvm: %s). Software emulation (--accel tcg) is slow and not an isolation boundary",
		strerror(-why));
	return problem_hint(p, -ENOTSUP, ACCEPT_HINT);
}
